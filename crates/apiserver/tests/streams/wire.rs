//! A client on a connection of its own: the head of a request by hand, and then frames of WebSocket.

use crate::asking::DEADLINE;
use crate::{PODS, Scene};
use interlock_apiserver::{Config, Listening, Transport};
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const V5: &str = "v5.channel.k8s.io";
pub(crate) const V4: &str = "v4.channel.k8s.io";
pub(crate) const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// A scene that can be reached, by somebody with a token.
pub(crate) struct Reached {
    pub(crate) scene: Scene,
    pub(crate) address: SocketAddr,
    directory: tempfile::TempDir,
}

impl Reached {
    pub(crate) async fn new() -> Reached {
        Reached::over(Transport::InTheClear).await
    }

    /// With TLS, for clients who show no token without it.
    pub(crate) async fn with_tls() -> Reached {
        let reached = Reached::over(Transport::Tls).await;
        let authority = reached.scene.admin.server.authority().expect("it has certificates");
        let pem = authority.server_authority_pem().expect("it has an authority");
        std::fs::write(reached.authority_file(), pem).expect("it is written");
        reached
    }

    /// What a client must trust.
    pub(crate) fn authority_file(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
    }

    async fn over(transport: Transport) -> Reached {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("tokens");
        let text = "admin-token,admin,1,\"system:masters\"\nreader-token,reader,2,\n";
        std::fs::write(&path, text).expect("it is written");
        // Certificates are kept with the data.
        let data_directory = (transport == Transport::Tls).then(|| directory.path().join("data"));
        let config = Config { token_file: Some(path), data_directory, ..Config::default() };
        let scene = Scene::with(config).await;
        let address = "127.0.0.1:0".parse().expect("an address");
        let listening = Listening::on(&scene.admin.server, address, transport);
        let listening = listening.await.expect("a port");
        let address = listening.address();
        tokio::spawn(listening.run());
        Reached { scene, address, directory }
    }

    /// Sends the head of a request with these headers, and gives that of the answer.
    pub(crate) async fn asked(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
    ) -> (String, TcpStream) {
        self.asked_at(method, &format!("/clusters/west{PODS}/{path}"), headers).await
    }

    /// The same for any path.
    async fn asked_at(&self, method: &str, path: &str, headers: &[&str]) -> (String, TcpStream) {
        let mut stream = TcpStream::connect(self.address).await.expect("the server listens");
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\n");
        for header in headers {
            head = format!("{head}{header}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).await.expect("it is open");
        let mut answer = Vec::new();
        let reading = async {
            while !answer.ends_with(b"\r\n\r\n") {
                answer.push(stream.read_u8().await.expect("more of the head"));
            }
        };
        tokio::time::timeout(DEADLINE, reading).await.expect("an answer in time");
        let head = String::from_utf8(answer).expect("text");
        (head, stream)
    }

    /// Asks for a WebSocket as somebody with this token.
    pub(crate) async fn websocket_as(
        &self,
        token: &str,
        path: &str,
        protocol: &str,
    ) -> (String, Client) {
        self.websocket_at(token, &format!("/clusters/west{PODS}/{path}"), protocol).await
    }

    /// The same for any path.
    pub(crate) async fn websocket_at(
        &self,
        token: &str,
        path: &str,
        protocol: &str,
    ) -> (String, Client) {
        let token = format!("authorization: Bearer {token}");
        let protocol = format!("sec-websocket-protocol: {protocol}");
        let headers = [
            token.as_str(),
            "connection: Upgrade",
            "upgrade: websocket",
            "sec-websocket-version: 13",
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
            &protocol,
        ];
        let (head, stream) = self.asked_at("GET", path, &headers).await;
        (head, Client { stream })
    }

    /// A WebSocket that must come about.
    pub(crate) async fn websocket(&self, path: &str, protocol: &str) -> Client {
        let (head, client) = self.websocket_as("admin-token", path, protocol).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.to_lowercase().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="));
        client
    }
}

/// The client's end of a WebSocket.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
}

impl Client {
    /// Sends a message whole.
    pub(crate) async fn send(&mut self, message: &[u8]) {
        let mut frame = vec![0x82];
        match u8::try_from(message.len()) {
            Ok(length @ 0..=125) => frame.push(0x80 | length),
            _ => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(message.len()).expect("it is short").to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(message);
        self.stream.write_all(&frame).await.expect("it is open");
    }

    /// The next message; None once the server has said farewell.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        tokio::time::timeout(DEADLINE, self.message()).await.expect("a message in time")
    }

    async fn message(&mut self) -> Option<Vec<u8>> {
        loop {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head).await.ok()?;
            let length = match head[1] {
                126 => usize::from(self.stream.read_u16().await.ok()?),
                127 => usize::try_from(self.stream.read_u64().await.ok()?).ok()?,
                length => usize::from(length),
            };
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).await.ok()?;
            match head[0] {
                0x82 => return Some(payload),
                0x88 => return None,
                // Somebody asks whether we are there.
                0x89 => {}
                other => panic!("the server sent a frame {other:#x}"),
            }
        }
    }

    /// What is said on a channel, up to a message on another one, which is given too.
    pub(crate) async fn all_of(&mut self, channel: u8) -> (Vec<u8>, Option<Vec<u8>>) {
        let mut said = Vec::new();
        loop {
            match self.next().await {
                Some(message) if message.first() == Some(&channel) => said.extend(&message[1..]),
                other => return (said, other),
            }
        }
    }
}
