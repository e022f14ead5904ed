//! A proxy in front of the cloud that does to calls what networks and servers do, by a seed.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long a call may be under way that nobody waits for any more. The controllers wait longer.
const LATEST: Duration = Duration::from_millis(2_500);
/// Throttling slows the whole account down for minutes, so it comes this often and no more.
const MOST_THROTTLED: usize = 3;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The connection ends before the call is passed on.
    DropBefore,
    /// The call is carried out, and the connection ends without an answer.
    DropAfter,
    /// The connection ends, and the call is carried out later.
    Late,
    /// The answer comes, but not at once.
    Slow,
    /// The call is carried out twice; the second answer is passed back.
    Twice,
    /// The server says that it cannot.
    Unavailable,
    /// The account asks for fewer calls.
    Throttled,
}

const FAULTS: [Fault; 7] = [
    Fault::DropBefore,
    Fault::DropAfter,
    Fault::Late,
    Fault::Slow,
    Fault::Twice,
    Fault::Unavailable,
    Fault::Throttled,
];

/// The proxy. It ends with the process.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    told: Arc<Told>,
}

/// What the connections share.
struct Told {
    cloud: SocketAddr,
    is_calm: AtomicBool,
    chance: Mutex<u64>,
    throttled: AtomicUsize,
    /// The form of each call, in the order in which they came.
    calls: Mutex<Vec<String>>,
}

impl Proxy {
    pub(crate) fn start(cloud: SocketAddr, seed: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let told = Arc::new(Told {
            cloud,
            is_calm: AtomicBool::new(false),
            chance: Mutex::new(seed | 1),
            throttled: AtomicUsize::new(0),
            calls: Mutex::default(),
        });
        let shared = Arc::clone(&told);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let told = Arc::clone(&shared);
                thread::spawn(move || told.serve(client));
            }
        });
        Proxy { address, told }
    }

    /// Whether calls are passed on as they are from now on.
    pub(crate) fn set_calm(&self, is_calm: bool) {
        self.told.is_calm.store(is_calm, Ordering::Relaxed);
    }

    /// The form of each call that came so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.told.calls.lock().expect("nobody panics with it").clone()
    }
}

impl Told {
    fn chance(&self, of: u64) -> u64 {
        let mut state = self.chance.lock().expect("nobody panics with it");
        // xorshift64*: any sequence will do, and the same one for the same seed.
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) % of
    }

    /// One call in five meets a fault.
    fn fault(&self) -> Option<Fault> {
        if self.is_calm.load(Ordering::Relaxed) || self.chance(5) != 0 {
            return None;
        }
        let fault = FAULTS[self.chance(FAULTS.len() as u64) as usize];
        if fault != Fault::Throttled {
            return Some(fault);
        }
        let before = self.throttled.fetch_add(1, Ordering::Relaxed);
        (before < MOST_THROTTLED).then_some(fault)
    }

    fn pass_on(&self, call: &[u8]) -> Option<Vec<u8>> {
        let mut cloud = TcpStream::connect(self.cloud).ok()?;
        cloud.write_all(call).ok()?;
        message(&mut cloud)
    }

    fn serve(&self, mut client: TcpStream) {
        let Some(call) = message(&mut client) else { return };
        let form = call.windows(4).position(|it| it == b"\r\n\r\n").map(|at| &call[at + 4..]);
        let form = String::from_utf8_lossy(form.unwrap_or_default()).into_owned();
        self.calls.lock().expect("nobody panics with it").push(form);
        let fault = self.fault();
        let answer = match fault {
            None => self.pass_on(&call),
            Some(Fault::DropBefore) => None,
            Some(Fault::DropAfter) => {
                self.pass_on(&call);
                None
            }
            Some(Fault::Late) => {
                let _ = client.shutdown(Shutdown::Both);
                thread::sleep(LATEST.mul_f64(self.chance(1_000) as f64 / 1_000.0));
                self.pass_on(&call);
                None
            }
            Some(Fault::Slow) => {
                thread::sleep(Duration::from_millis(self.chance(1_000)));
                self.pass_on(&call)
            }
            Some(Fault::Twice) => {
                self.pass_on(&call);
                self.pass_on(&call)
            }
            Some(Fault::Unavailable) => Some(error(503, "ServiceUnavailable")),
            Some(Fault::Throttled) => Some(error(400, "Throttling")),
        };
        if let Some(answer) = answer {
            let _ = client.write_all(&answer);
        }
    }
}

/// An error as the Query API writes it.
fn error(status: u16, code: &str) -> Vec<u8> {
    let body = format!(
        "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>by the proxy</Message></Error>\
         <RequestId>0</RequestId></ErrorResponse>"
    );
    let head = format!("HTTP/1.1 {status} Any\r\ncontent-length: {}\r\n\r\n", body.len());
    [head, body].concat().into_bytes()
}

/// A head, and as much as it says.
fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let mut bytes = Vec::new();
    loop {
        if let Some(head) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.and_then(|it| it.trim().parse().ok()).unwrap_or(0);
            if bytes.len() >= head + 4 + length {
                return Some(bytes);
            }
        }
        let mut more = [0; 4096];
        let read = stream.read(&mut more).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&more[..read]);
    }
}
