//! Over the network: who is cut off, who is let in, and that nobody takes the server down.
//!
//! Where a timeout is awaited, the clock of the runtime is paused: it jumps ahead as soon as everybody waits.

#[path = "support/asking.rs"]
mod asking;

use asking::{Asker, DEADLINE, Numbers};
use interlock_apiserver::access::certificates::CertificateAndKey;
use interlock_apiserver::{Config, ListenError, Listening, Server, Transport};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A server that can be reached, and where.
struct Reached {
    server: Server,
    address: SocketAddr,
    _directory: Option<tempfile::TempDir>,
}

async fn in_the_clear() -> Reached {
    let server = Server::in_memory().await.expect("a server");
    let address = "127.0.0.1:0".parse().expect("an address");
    let listening = Listening::on(&server, address, Transport::InTheClear).await.expect("a port");
    let address = listening.address();
    tokio::spawn(listening.run());
    Reached { server, address, _directory: None }
}

async fn with_tls() -> Reached {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config { data_directory: Some(directory.path().to_owned()), ..Config::default() };
    let server = Server::start(config).await.expect("a server");
    let address = "127.0.0.1:0".parse().expect("an address");
    let listening = Listening::on(&server, address, Transport::Tls).await.expect("a port");
    let address = listening.address();
    tokio::spawn(listening.run());
    Reached { server, address, _directory: Some(directory) }
}

impl Reached {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the server listens")
    }

    /// Connects with TLS, with a certificate if there is one, speaking this protocol.
    async fn connect_with(
        &self,
        certificate: Option<&CertificateAndKey>,
        protocol: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let authority = self.server.authority().expect("it has certificates");
        let pem = authority.server_authority_pem().expect("it has an authority");
        let mut roots = rustls::RootCertStore::empty();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is PEM");
        roots.add(der).expect("it is an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the versions are known")
            .with_root_certificates(roots);
        let mut config = match certificate {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let chain = CertificateDer::from_pem_slice(pair.certificate_pem.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes());
                let chain = vec![chain.expect("it is PEM")];
                builder.with_client_auth_cert(chain, key.expect("it is PEM")).expect("they fit")
            }
        };
        if !protocol.is_empty() {
            config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        }
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, self.connect().await).await
    }

    /// What the server says to a request, over TLS and HTTP/1.1; nothing if it hangs up.
    async fn asked_with(
        &self,
        certificate: Option<&CertificateAndKey>,
        path: &str,
    ) -> Option<String> {
        let mut stream = self.connect_with(certificate, "http/1.1").await.ok()?;
        let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // The server may close without a farewell; what it said counts.
        let _ = stream.read_to_end(&mut answer).await;
        (!answer.is_empty()).then(|| String::from_utf8_lossy(&answer).into_owned())
    }

    async fn still_works(&self) {
        let admin = Asker::admin(&self.server);
        let map = json!({"metadata": {"generateName": "still-"}});
        admin.make("/api/v1/namespaces/default/configmaps", &map).await;
    }
}

/// Reads until the other side hangs up, and returns what it said.
async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut said = Vec::new();
    let mut part = [0; 4096];
    loop {
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&said).into_owned(),
            Ok(count) => said.extend_from_slice(&part[..count]),
        }
    }
}

fn now_seconds() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[tokio::test]
async fn the_clear_is_for_loopback_only() {
    let server = Server::in_memory().await.expect("a server");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[2001:db8::1]:0"] {
        let address: SocketAddr = address.parse().expect("an address");
        let refused = Listening::on(&server, address, Transport::InTheClear).await;
        assert!(matches!(refused, Err(ListenError::InTheClear(_))), "{address}");
    }
    let address = "127.0.0.1:0".parse().expect("an address");
    let refused = Listening::on(&server, address, Transport::Tls).await;
    assert!(matches!(refused, Err(ListenError::NoCertificates)));
}

#[tokio::test]
async fn whoever_is_slow_to_ask_is_cut_off() {
    let reached = in_the_clear().await;
    tokio::time::pause();
    let slow: [&[u8]; 7] = [
        b"",
        b"G",
        b"GET /version HTTP/1.1\r\n",
        b"GET /version HTTP/1.1\r\nhost: x\r\nx: ",
        b"PRI * HTTP/2.0\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ];
    for said in slow {
        let began = tokio::time::Instant::now();
        let mut stream = reached.connect().await;
        stream.write_all(said).await.expect("it is sent");
        let closed = tokio::time::timeout(Duration::from_secs(60), until_closed(&mut stream)).await;
        let shown = String::from_utf8_lossy(said);
        assert!(closed.is_ok(), "{shown:?} is still connected after a minute");
        assert!(began.elapsed() >= Duration::from_secs(9), "{shown:?} had no time to ask");
    }
    // Nor does it help to send a little now and then.
    let mut stream = reached.connect().await;
    let (mut reader, mut writer) = stream.split();
    let drip = async {
        let mut head = b"GET /version HTTP/1.1\r\nx: ".to_vec();
        loop {
            if writer.write_all(&head).await.is_err() {
                return;
            }
            head = b"x".to_vec();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let closed =
        async { tokio::time::timeout(Duration::from_secs(60), until_closed(&mut reader)).await };
    tokio::select! {
        () = drip => {}
        closed = closed => assert!(closed.is_ok(), "it drips for a minute"),
    }
}

#[tokio::test]
async fn whoever_is_slow_to_ask_again_or_to_shake_hands_is_cut_off() {
    let clear = in_the_clear().await;
    let reached = with_tls().await;
    let mut established = reached.connect_with(None, "http/1.1").await.expect("TLS");
    let mut second_version = reached.connect_with(None, "h2").await.expect("TLS");
    tokio::time::pause();
    let mut stream = clear.connect().await;
    stream.write_all(b"GET /version HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is sent");
    let said = tokio::time::timeout(Duration::from_secs(60), until_closed(&mut stream)).await;
    assert!(said.expect("an idle connection ends").starts_with("HTTP/1.1 200"));
    for stream in [&mut established, &mut second_version] {
        let closed = tokio::time::timeout(Duration::from_secs(60), until_closed(stream)).await;
        assert!(closed.is_ok(), "a silent connection stays");
    }
    for said in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01"] {
        let mut stream = reached.connect().await;
        stream.write_all(said).await.expect("it is sent");
        let closed = tokio::time::timeout(Duration::from_secs(60), until_closed(&mut stream)).await;
        assert!(closed.is_ok(), "{said:?} is still shaking hands after a minute");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_while_the_client_still_sends() {
    let reached = with_tls().await;
    let admin = reached.server.authority().expect("certificates").admin();
    for head in ["content-length: 8388608", "transfer-encoding: chunked"] {
        let mut stream = reached.connect_with(Some(&admin), "http/1.1").await.expect("TLS");
        let start = format!(
            "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\n\
             connection: close\r\ncontent-type: application/json\r\n{head}\r\n\r\n"
        );
        stream.write_all(start.as_bytes()).await.expect("it is sent");
        let part = vec![b' '; 64 * 1024];
        // The whole body is taken: a client that does not read before it has sent all gets its answer.
        for _ in 0..8 * 16 {
            if head.starts_with("transfer") {
                stream.write_all(b"10000\r\n").await.expect("it is taken");
            }
            stream.write_all(&part).await.expect("it is taken");
            if head.starts_with("transfer") {
                stream.write_all(b"\r\n").await.expect("it is taken");
            }
        }
        if head.starts_with("transfer") {
            stream.write_all(b"0\r\n\r\n").await.expect("it is taken");
        }
        let said = until_closed(&mut stream).await;
        assert!(said.starts_with("HTTP/1.1 413"), "{said}");
        assert!(said.contains("RequestEntityTooLarge"), "{said}");
    }
    reached.still_works().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let reached = with_tls().await;
    let admin = reached.server.authority().expect("certificates").admin();
    let mut stream = reached.connect_with(Some(&admin), "http/1.1").await.expect("TLS");
    tokio::time::pause();
    let head = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\n\
                 content-type: application/json\r\ncontent-length: 1000\r\n\r\n{";
    stream.write_all(head).await.expect("it is sent");
    let said = tokio::time::timeout(Duration::from_secs(300), until_closed(&mut stream)).await;
    let said = said.expect("it is cut off");
    assert!(said.starts_with("HTTP/1.1 408"), "{said}");
    assert!(said.contains("\"code\":408"), "{said}");
}

#[tokio::test]
async fn clients_that_hang_up_in_mid_body_leave_nothing_behind() {
    let reached = with_tls().await;
    let admin = reached.server.authority().expect("certificates").admin();
    // More than one caller may have under way.
    for round in 0..250 {
        let mut stream = reached.connect_with(Some(&admin), "http/1.1").await.expect("TLS");
        let head = format!(
            "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\n\
             content-type: application/json\r\ncontent-length: 1000\r\n\r\n\
             {{\"metadata\": {{\"name\": \"half-{round}\"}}}}"
        );
        stream.write_all(head.as_bytes()).await.expect("it is sent");
        if round % 2 == 0 {
            stream.shutdown().await.expect("it says goodbye");
        }
    }
    let asked = tokio::time::timeout(DEADLINE, async {
        loop {
            let path = "/api/v1/namespaces/default/configmaps";
            let answer = reached.asked_with(Some(&admin), path).await.expect("an answer");
            if !answer.starts_with("HTTP/1.1 429") {
                return answer;
            }
        }
    });
    let answer = asked.await.expect("places are given back");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.contains("half-"), "{answer}");
    reached.still_works().await;
}

#[tokio::test]
async fn garbage_is_answered_with_a_refusal_or_not_at_all() {
    let clear = in_the_clear().await;
    let reached = with_tls().await;
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(500));
    let large = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(1_000_000));
    let mut all: Vec<Vec<u8>> = [
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\0\0\0\0\0\0\0\0\0\0",
        &long,
        &many,
        &large,
        "GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "CONNECT x:1 HTTP/1.1\r\n\r\n",
        "GET http://a@b:99999/ HTTP/1.1\r\n\r\n",
        "GET * HTTP/1.1\r\n\r\n",
        "\u{16}\u{3}\u{1}",
        "SSH-2.0-x\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u{7f}\u{7f}\u{7f}\0\0\0\0\0\0",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    let mut numbers = Numbers::new(7);
    all.extend((0..200).map(|_| (0..numbers.below(300)).map(|_| numbers.next() as u8).collect()));
    for (place, bytes) in all.iter().enumerate() {
        for server in [&clear, &reached] {
            let mut stream = server.connect().await;
            // The server may hang up before it has read everything.
            let _ = stream.write_all(bytes).await;
            let _ = stream.shutdown().await;
            let said = tokio::time::timeout(DEADLINE, until_closed(&mut stream)).await;
            let said = said.unwrap_or_else(|_| panic!("garbage {place} keeps a connection open"));
            if let Some(rest) = said.strip_prefix("HTTP/1.1 ") {
                assert!(
                    !rest.starts_with('5') && !rest.starts_with('2'),
                    "garbage {place}: {said}"
                );
            }
        }
        if !bytes.is_empty() {
            let mut stream = reached.connect_with(None, "").await.expect("TLS");
            let _ = stream.write_all(bytes).await;
            let _ = stream.shutdown().await;
            let said = tokio::time::timeout(DEADLINE, until_closed(&mut stream)).await;
            assert!(said.is_ok(), "garbage {place} inside of TLS keeps a connection open");
        }
    }
    clear.still_works().await;
    reached.still_works().await;
}

#[tokio::test]
async fn certificates_count_if_they_are_ours_and_in_time() {
    let reached = with_tls().await;
    let authority = reached.server.authority().expect("certificates");
    let groups = ["system:masters".to_owned()];
    let issue = |cluster: Option<&str>, at: i64| {
        authority.client_certificate("alice", &groups, cluster, at).expect("a certificate")
    };
    let (now, year) = (now_seconds(), 365 * 86_400);
    let good = reached.asked_with(Some(&authority.admin()), "/api").await.expect("an answer");
    assert!(good.starts_with("HTTP/1.1 200"), "{good}");
    let good =
        reached.asked_with(Some(&issue(None, now)), "/api/v1/secrets").await.expect("an answer");
    assert!(good.starts_with("HTTP/1.1 200"), "{good}");
    let nobody = reached.asked_with(None, "/api").await.expect("an answer");
    assert!(nobody.starts_with("HTTP/1.1 401"), "{nobody}");
    let nobody = reached.asked_with(None, "/version").await.expect("an answer");
    assert!(nobody.starts_with("HTTP/1.1 200"), "{nobody}");
    // Clocks may disagree by five minutes, and no more.
    let late = reached.asked_with(Some(&issue(None, now - year - 60)), "/api").await;
    assert!(late.is_some_and(|answer| answer.starts_with("HTTP/1.1 200")));
    for at in [now - year - 3600, now - 2 * year, now + 86_400] {
        assert_eq!(reached.asked_with(Some(&issue(None, at)), "/api").await, None, "{}", at - now);
    }
    // One that names a cluster is nobody at the hub.
    let tenant =
        reached.asked_with(Some(&issue(Some("c1"), now)), "/api").await.expect("an answer");
    assert!(tenant.starts_with("HTTP/1.1 401"), "{tenant}");
    // Somebody else's authority, and a certificate that signs itself.
    let other = with_tls().await;
    let foreign = other.server.authority().expect("certificates").admin();
    assert_eq!(reached.asked_with(Some(&foreign), "/api").await, None);
    let mut parameters = rcgen::CertificateParams::default();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "root-admin");
    parameters.distinguished_name.push(rcgen::DnType::OrganizationName, "system:masters");
    let key = rcgen::KeyPair::generate().expect("a key");
    let own = parameters.self_signed(&key).expect("a certificate");
    let own = CertificateAndKey { certificate_pem: own.pem(), key_pem: key.serialize_pem() };
    assert_eq!(reached.asked_with(Some(&own), "/api").await, None);
    // A serving certificate is for serving.
    let pki = authority.directory();
    let read = |name: &str| std::fs::read_to_string(pki.join(name)).expect("it is there");
    let serving =
        CertificateAndKey { certificate_pem: read("serving.crt"), key_pem: read("serving.key") };
    assert_eq!(reached.asked_with(Some(&serving), "/api").await, None);
    reached.still_works().await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The head of a GET, in HPACK without compression.
fn head_of(path: &str) -> Vec<u8> {
    // Methods and schemes that the static table has, then a path and a host of our own.
    let mut block = vec![0x82, 0x87, 0x04, u8::try_from(path.len()).expect("a short path")];
    block.extend(path.as_bytes());
    block.extend([0x01, 1, b'x']);
    block
}

/// The next frame: its kind, its stream and what is in it.
async fn next_frame(stream: &mut (impl AsyncRead + Unpin)) -> Option<(u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; usize::try_from(length).expect("a frame fits in memory")];
    stream.read_exact(&mut payload).await.ok()?;
    Some((head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;

async fn begin(stream: &mut (impl AsyncWrite + Unpin)) {
    stream.write_all(PREFACE).await.expect("it is sent");
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.expect("it is sent");
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_as_the_client_chooses() {
    let reached = with_tls().await;
    for (asked, chosen) in [("http/1.1", Some("http/1.1")), ("h2", Some("h2")), ("", None)] {
        let stream = reached.connect_with(None, asked).await.expect("TLS");
        let protocol = stream
            .get_ref()
            .1
            .alpn_protocol()
            .map(|name| String::from_utf8_lossy(name).into_owned());
        assert_eq!(protocol.as_deref(), chosen);
    }
    let answer = reached.asked_with(None, "/version").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("gitVersion"), "{answer}");
    let mut stream = reached.connect_with(None, "h2").await.expect("TLS");
    begin(&mut stream).await;
    let ends = 0x1 | 0x4;
    // Several at once on one connection.
    for id in [1, 3, 5] {
        let head = frame(HEADERS, ends, id, &head_of("/version"));
        stream.write_all(&head).await.expect("it is sent");
    }
    let mut answers = std::collections::BTreeMap::<u32, (u8, Vec<u8>)>::new();
    let read = async {
        while answers.values().filter(|(_, body)| body.ends_with(b"}")).count() < 3 {
            let (kind, id, payload) = next_frame(&mut stream).await.expect("the connection stays");
            match kind {
                HEADERS => answers.entry(id).or_default().0 = payload[0],
                DATA => answers.entry(id).or_default().1.extend(payload),
                _ => {}
            }
        }
    };
    tokio::time::timeout(DEADLINE, read).await.expect("three answers");
    for (status, body) in answers.values() {
        assert_eq!(*status, 0x88, "200 in HPACK's table");
        assert!(String::from_utf8_lossy(body).contains("gitVersion"));
    }
}

#[tokio::test]
async fn floods_of_resets_and_settings_end_the_connection_and_nothing_else() {
    let reached = with_tls().await;
    for is_reset in [true, false] {
        let mut stream = reached.connect_with(None, "h2").await.expect("TLS");
        begin(&mut stream).await;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let flood = async {
            for number in 0..20_000_u32 {
                let id = number * 2 + 1;
                let bytes = if is_reset {
                    let head = frame(HEADERS, 0x1 | 0x4, id, &head_of("/version"));
                    [head, frame(RESET, 0, id, &[0, 0, 0, 8])].concat()
                } else {
                    frame(SETTINGS, 0, 0, &[])
                };
                if writer.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            let _ = writer.shutdown().await;
        };
        let both = async { tokio::join!(flood, until_closed(&mut reader)) };
        tokio::time::timeout(DEADLINE, both).await.expect("the server hangs up, or keeps up");
    }
    let answer = reached.asked_with(None, "/version").await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    reached.still_works().await;
}
