//! Ports of pods, over SPDY: in the messages of a WebSocket as kubectl has it now, and on a connection of its own as
//! it had before.

use crate::asking::DEADLINE;
use crate::wire::{Client, Reached, TUNNEL};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The client's end of SPDY.
struct Spdy {
    wire: Wire,
    received: Vec<u8>,
    has_begun: bool,
    /// What was said on each stream, and whether it has ended.
    streams: HashMap<u32, (Vec<u8>, bool)>,
    /// Streams that were answered, and those that were refused.
    replied: Vec<u32>,
    refused: Vec<u32>,
    pings: u32,
}

enum Wire {
    Tunnelled(Client),
    Plain(TcpStream),
}

impl Spdy {
    fn over(wire: Wire) -> Spdy {
        Spdy {
            wire,
            received: Vec::new(),
            has_begun: false,
            streams: HashMap::new(),
            replied: Vec::new(),
            refused: Vec::new(),
            pings: 0,
        }
    }

    async fn tunnelled(reached: &Reached) -> Spdy {
        Spdy::over(Wire::Tunnelled(reached.websocket("web/portforward", TUNNEL).await))
    }

    async fn plain(reached: &Reached, path: &str, protocol: &str) -> Spdy {
        let protocol = format!("X-Stream-Protocol-Version: {protocol}");
        let headers = [
            "authorization: Bearer admin-token",
            "connection: Upgrade",
            "upgrade: SPDY/3.1",
            &protocol,
            "content-length: 0",
        ];
        let (head, stream) = reached.asked("POST", path, &headers).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.to_lowercase().contains(&protocol.to_lowercase()), "{head}");
        Spdy::over(Wire::Plain(stream))
    }

    async fn send(&mut self, frame: &[u8]) {
        match &mut self.wire {
            Wire::Tunnelled(client) => client.send(frame).await,
            Wire::Plain(stream) => stream.write_all(frame).await.expect("it is open"),
        }
    }

    /// Opens a stream with these headers.
    async fn open(&mut self, id: u32, headers: &[(&str, &str)]) {
        let mut list = u32::try_from(headers.len()).expect("few").to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            list.extend(u32::try_from(text.len()).expect("short").to_be_bytes());
            list.extend(text.as_bytes());
        }
        // Stored as it is, in a stream of zlib without a dictionary.
        let length = u16::try_from(list.len()).expect("short");
        let mut payload = [&id.to_be_bytes()[..], &[0; 6]].concat();
        if !self.has_begun {
            payload.extend([0x78, 0x01]);
            self.has_begun = true;
        }
        payload.push(0);
        payload.extend(length.to_le_bytes());
        payload.extend((!length).to_le_bytes());
        payload.extend(list);
        payload.extend([0, 0, 0, 0xFF, 0xFF]);
        self.send(&control(1, &payload)).await;
    }

    async fn say(&mut self, id: u32, bytes: &[u8], is_final: bool) {
        let length = u32::try_from(bytes.len()).expect("short").to_be_bytes();
        let head = [&id.to_be_bytes()[..], &[u8::from(is_final)], &length[1..]].concat();
        self.send(&[&head, bytes].concat()).await;
    }

    /// Reads until it is so.
    async fn until(&mut self, what: &str, is_so: impl Fn(&Spdy) -> bool) {
        while !is_so(self) {
            let more = tokio::time::timeout(DEADLINE, self.more()).await;
            let is_open = more.unwrap_or_else(|_| panic!("waited in vain until {what}"));
            assert!(is_open || is_so(self), "it ended before {what}");
        }
    }

    async fn more(&mut self) -> bool {
        match &mut self.wire {
            Wire::Tunnelled(client) => match client.next().await {
                Some(message) => self.received.extend(message),
                None => return false,
            },
            Wire::Plain(stream) => {
                let mut part = [0; 4096];
                match stream.read(&mut part).await {
                    Ok(count @ 1..) => self.received.extend(&part[..count]),
                    _ => return false,
                }
            }
        }
        self.take_apart();
        true
    }

    fn take_apart(&mut self) {
        while let Some(head) = self.received.first_chunk::<8>().copied() {
            let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
            if self.received.len() < 8 + length {
                return;
            }
            let frame: Vec<u8> = self.received.drain(..8 + length).collect();
            let number = |place: usize| {
                u32::from_be_bytes(frame[place..place + 4].try_into().expect("four"))
            };
            match (head[0] & 0x80, head[3]) {
                (0, _) => {
                    let (said, has_ended) = self.streams.entry(number(0)).or_default();
                    said.extend(&frame[8..]);
                    *has_ended |= head[4] & 1 != 0;
                }
                (_, 2) => self.replied.push(number(8)),
                (_, 3) => self.refused.push(number(8)),
                (_, 6) => self.pings += 1,
                (_, other) => panic!("the server sent a control frame {other}"),
            }
        }
    }

    /// Opens both streams of a connection to a port.
    async fn connect(&mut self, id: u32, port: &str) {
        let request = id.to_string();
        let headers =
            |what| [("streamtype", what), ("port", port), ("requestid", request.as_str())];
        self.open(id, &headers("error")).await;
        self.say(id, b"", true).await;
        self.open(id + 2, &headers("data")).await;
        self.until("both streams are open", |it| it.replied.ends_with(&[id, id + 2])).await;
    }

    fn said(&self, id: u32) -> (&[u8], bool) {
        self.streams.get(&id).map_or((&[], false), |(said, has_ended)| (said, *has_ended))
    }
}

fn control(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&[0x80, 3, 0, kind, 0][..], &length[1..], payload].concat()
}

async fn until_quiet(reached: &Reached) {
    let began = Instant::now();
    while !reached.scene.fake.is_quiet() {
        assert!(began.elapsed() < DEADLINE, "a connection goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn forwards(reached: &Reached, mut client: Spdy) {
    client.connect(1, "7").await;
    client.connect(5, "80").await;
    client.say(3, b"echo", false).await;
    client.until("the echo is back", |it| it.said(3).0 == b"echo").await;
    client.until("the other one has ended", |it| it.said(7) == (b"hello", true)).await;
    client.until("and nothing failed", |it| it.said(5) == (b"", true)).await;
    client.send(&control(6, &[0, 0, 0, 9])).await;
    client.until("the ping is back", |it| it.pings == 1).await;
    client.say(3, b"!", true).await;
    client.until("the port has closed", |it| it.said(3) == (b"echo!", true)).await;
    client.until("and nothing failed", |it| it.said(1) == (b"", true)).await;
    until_quiet(reached).await;
}

#[tokio::test]
async fn ports_are_forwarded_in_a_websocket() {
    let reached = Reached::new().await;
    forwards(&reached, Spdy::tunnelled(&reached).await).await;
}

#[tokio::test]
async fn ports_are_forwarded_to_an_old_kubectl() {
    let reached = Reached::new().await;
    let client = Spdy::plain(&reached, "web/portforward", "portforward.k8s.io").await;
    forwards(&reached, client).await;
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_says_so_and_the_others_go_on() {
    let reached = Reached::new().await;
    let mut client = Spdy::tunnelled(&reached).await;
    for (id, port, why) in
        [(1, "81", "web does not listen on 81"), (5, "http", "between 1 and 65535")]
    {
        client.connect(id, port).await;
        client.until("it has failed", |it| it.said(id).1 && it.said(id + 2).1).await;
        let said = String::from_utf8_lossy(client.said(id).0).into_owned();
        assert!(said.contains(why), "{said}");
    }
    client.connect(9, "80").await;
    client.until("another one works", |it| it.said(11) == (b"hello", true)).await;
}

#[tokio::test]
async fn connections_end_with_their_client_and_when_they_are_given_up() {
    let reached = Reached::new().await;
    let mut client = Spdy::tunnelled(&reached).await;
    client.connect(1, "9").await;
    client.connect(5, "9").await;
    client.send(&control(3, &[0, 0, 0, 3, 0, 0, 0, 5])).await;
    let began = Instant::now();
    while reached.scene.fake.under_way.load(std::sync::atomic::Ordering::SeqCst) != 1 {
        assert!(began.elapsed() < DEADLINE, "the one that was given up goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(client);
    until_quiet(&reached).await;
}

#[tokio::test]
async fn a_client_that_breaks_the_rules_of_spdy_is_cut_off() {
    let reached = Reached::new().await;
    let mut client = Spdy::tunnelled(&reached).await;
    client.connect(1, "9").await;
    client.send(&[0x80, 2, 0, 1, 0, 0, 0, 0]).await;
    while tokio::time::timeout(DEADLINE, client.more()).await.expect("an end in time") {}
    until_quiet(&reached).await;
}

#[tokio::test]
async fn commands_run_for_an_old_kubectl() {
    let reached = Reached::new().await;
    let path = "web/exec?command=cat&stdin=true&stdout=true&stderr=true";
    let mut client = Spdy::plain(&reached, path, "v4.channel.k8s.io").await;
    for (id, what) in [(1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")] {
        client.open(id, &[("streamtype", what)]).await;
    }
    client.until("all are open", |it| it.replied == [1, 3, 5, 7]).await;
    client.say(3, b"hello", false).await;
    client.until("it is back", |it| it.said(5).0 == b"hello").await;
    client.say(3, b"", true).await;
    client.until("it has ended", |it| [1, 5, 7].iter().all(|id| it.said(*id).1)).await;
    let status: serde_json::Value = serde_json::from_slice(client.said(1).0).expect("JSON");
    assert_eq!(status["status"], "Success");
    until_quiet(&reached).await;
}
