//! A proxy that does to a call what networks and servers do.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to a call.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It is passed on, and so is the answer.
    None,
    /// The connection ends before the request is passed on.
    DropBefore,
    /// The request is carried out, and the connection ends without an answer.
    DropAfter,
    /// The request is carried out, and its answer never comes.
    Silence,
    /// The request is carried out, and half of its answer comes.
    HalfAnswer,
    /// Somebody else answers, with this status and body; the request is passed on if so wanted.
    Answer { status: u16, body: &'static str, is_passed_on: bool },
}

/// A proxy; each call takes the next fault, and none when there is no more.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    faults: Arc<Mutex<Vec<Fault>>>,
    passed_on: Arc<Mutex<usize>>,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let faults: Arc<Mutex<Vec<Fault>>> = Arc::default();
        let passed_on: Arc<Mutex<usize>> = Arc::default();
        let proxy =
            Proxy { address, faults: Arc::clone(&faults), passed_on: Arc::clone(&passed_on) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let next = faults.lock().unwrap().pop().unwrap_or(Fault::None);
                tokio::spawn(connection(client, server, next, Arc::clone(&passed_on)));
            }
        });
        proxy
    }

    /// The next call meets this.
    pub(crate) fn next(&self, fault: Fault) {
        self.faults.lock().unwrap().insert(0, fault);
    }

    /// How many requests reached the server.
    pub(crate) fn passed_on(&self) -> usize {
        *self.passed_on.lock().unwrap()
    }
}

async fn connection(
    mut client: TcpStream,
    server: SocketAddr,
    fault: Fault,
    passed_on: Arc<Mutex<usize>>,
) {
    let Some(request) = read_message(&mut client).await else { return };
    let pass_on = async || {
        let mut upstream = TcpStream::connect(server).await.unwrap();
        upstream.write_all(&request).await.unwrap();
        *passed_on.lock().unwrap() += 1;
        read_message(&mut upstream).await.unwrap()
    };
    let answer = match fault {
        Fault::None => pass_on().await,
        Fault::DropBefore => return,
        Fault::DropAfter => {
            pass_on().await;
            return;
        }
        Fault::Silence => {
            pass_on().await;
            // Until the client gives up.
            let _ = client.read(&mut [0; 1]).await;
            return;
        }
        Fault::HalfAnswer => {
            let mut answer = pass_on().await;
            answer.truncate(answer.len() - 60);
            answer
        }
        Fault::Answer { status, body, is_passed_on } => {
            if is_passed_on {
                pass_on().await;
            }
            let head = format!("HTTP/1.1 {status} Any\r\ncontent-length: {}\r\n\r\n", body.len());
            [head.as_bytes(), body.as_bytes()].concat()
        }
    };
    let _ = client.write_all(&answer).await;
}

/// A head, and as much as it says.
async fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let head = bytes.windows(4).position(|it| it == b"\r\n\r\n");
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |it| it.trim().parse().unwrap());
            if bytes.len() >= head + 4 + length {
                return Some(bytes);
            }
        }
        let mut more = [0; 4096];
        let read = stream.read(&mut more).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&more[..read]);
    }
}
