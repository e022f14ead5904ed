//! A proxy in front of the cloud that does to calls what networks and servers do.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What happens to a call.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The connection ends before the call is passed on.
    DropBefore,
    /// The call is carried out, and the connection ends without an answer.
    DropAfter,
    /// The connection ends, and the call is carried out so much later.
    Late(Duration),
    /// The call is carried out so much later, and the answer comes then.
    Slow(Duration),
    /// The call is carried out twice; the second answer is passed back.
    Twice,
    /// The server says that it cannot.
    Unavailable,
    /// The account asks for fewer calls.
    Throttled,
    /// The call is on its way until it is let go.
    Held(Arc<Hold>),
    /// The call is carried out, and its answer is on its way until it is let go.
    AnswerHeld(Arc<Hold>),
}

/// A call on its way.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Progress {
    is_reached: bool,
    is_let_go: bool,
    is_over: bool,
}

impl Hold {
    fn when(&self, what: &str, is_so: impl Fn(&Progress) -> bool) {
        let progress = self.progress.lock().expect("nobody panics with it");
        let waited =
            self.changed.wait_timeout_while(progress, super::TIMEOUT, |progress| !is_so(progress));
        let (progress, _) = waited.expect("nobody panics with it");
        assert!(is_so(&progress), "{what}: not after {:?}", super::TIMEOUT);
    }

    fn set(&self, change: impl Fn(&mut Progress)) {
        change(&mut self.progress.lock().expect("nobody panics with it"));
        self.changed.notify_all();
    }

    /// Waits until the call is on its way.
    pub(crate) fn reached(&self) {
        self.when("the call is on its way", |progress| progress.is_reached);
    }

    /// Lets the call go on, and waits until the cloud has answered it.
    pub(crate) fn let_go(&self) {
        self.set(|progress| progress.is_let_go = true);
        self.when("the call is answered", |progress| progress.is_over);
    }

    fn hold(&self) {
        self.set(|progress| progress.is_reached = true);
        self.when("the call is let go", |progress| progress.is_let_go);
    }

    fn over(&self) {
        self.set(|progress| progress.is_over = true);
    }
}

/// The proxy. It ends with the process.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    told: Arc<Told>,
}

/// Which fault a call meets, by its form.
type Choice = dyn Fn(&str) -> Option<Fault> + Send + Sync;

/// What the connections share.
struct Told {
    cloud: SocketAddr,
    fault: Box<Choice>,
    /// The form of each call, in the order in which they came.
    calls: Mutex<Vec<String>>,
}

impl Proxy {
    pub(crate) fn start(
        cloud: SocketAddr,
        fault: impl Fn(&str) -> Option<Fault> + Send + Sync + 'static,
    ) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let told = Arc::new(Told { cloud, fault: Box::new(fault), calls: Mutex::default() });
        let shared = Arc::clone(&told);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let told = Arc::clone(&shared);
                thread::spawn(move || told.serve(client));
            }
        });
        Proxy { address, told }
    }

    /// The form of each call that came so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.told.calls.lock().expect("nobody panics with it").clone()
    }
}

impl Told {
    fn pass_on(&self, call: &[u8]) -> Option<Vec<u8>> {
        let mut cloud = TcpStream::connect(self.cloud).ok()?;
        cloud.write_all(call).ok()?;
        message(&mut cloud)
    }

    fn serve(&self, mut client: TcpStream) {
        let Some(call) = message(&mut client) else { return };
        let form = call.windows(4).position(|it| it == b"\r\n\r\n").map(|at| &call[at + 4..]);
        let form = String::from_utf8_lossy(form.unwrap_or_default()).into_owned();
        let fault = (self.fault)(&form);
        self.calls.lock().expect("nobody panics with it").push(form);
        let answer = match fault {
            None => self.pass_on(&call),
            Some(Fault::DropBefore) => None,
            Some(Fault::DropAfter) => {
                self.pass_on(&call);
                None
            }
            Some(Fault::Late(time)) => {
                let _ = client.shutdown(Shutdown::Both);
                thread::sleep(time);
                self.pass_on(&call);
                None
            }
            Some(Fault::Slow(time)) => {
                thread::sleep(time);
                self.pass_on(&call)
            }
            Some(Fault::Twice) => {
                self.pass_on(&call);
                self.pass_on(&call)
            }
            Some(Fault::Unavailable) => Some(error(503, "ServiceUnavailable")),
            Some(Fault::Throttled) => Some(error(400, "Throttling")),
            Some(Fault::Held(hold)) => {
                hold.hold();
                let answer = self.pass_on(&call);
                hold.over();
                answer
            }
            Some(Fault::AnswerHeld(hold)) => {
                let answer = self.pass_on(&call);
                hold.hold();
                hold.over();
                answer
            }
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
