//! The connections between an API server and etcd, carried frame by frame: what watches bring, or the writes of one text,
//! can be held back while all else is carried.
//!
//! gRPC is HTTP/2, here without TLS, and each call is a stream. A watch is the call whose client does not end its half
//! of the stream, so what etcd sends on such a stream is what a watch brings. A write has the object in its request.
//! Headers are never held: each is compressed by those before it, so their order must stay as it is.

use anyhow::Context;
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::spawn;

/// What a client sends before its first frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The length, the kind, the flags and the stream of a frame.
const HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const CONTINUATION: u8 = 9;
/// The flag of the last frame that one side sends on a stream.
const END_STREAM: u8 = 1;

/// What is held back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Hold {
    /// Nothing is.
    #[default]
    Nothing,
    /// What etcd sends to watches.
    Watches,
    /// Calls to etcd whose request has this text in it.
    CallsWith(String),
}

/// The link between an API server and etcd. It ends with this process.
pub(super) struct Link {
    /// Where the API server is to find etcd.
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    etcd: SocketAddr,
    state: Mutex<State>,
    lanes: Mutex<Vec<Arc<Lane>>>,
}

/// What is held, and what came of it since that was said.
#[derive(Default)]
struct State {
    hold: Hold,
    /// How many calls were caught by it.
    caught: usize,
    /// How many of them their client has given up.
    given_up: usize,
}

impl Link {
    /// A link to an etcd.
    pub(super) fn start(etcd: SocketAddr) -> anyhow::Result<Link> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let address = listener.local_addr()?;
        let (state, lanes) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { etcd, state, lanes });
        let of_listener = Arc::clone(&shared);
        spawn(move || {
            for server in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&of_listener);
                spawn(move || shared.serve(&server));
            }
        });
        Ok(Link { address, shared })
    }

    /// Holds this from now on; what was held before arrives, in its order.
    pub(super) fn set(&self, hold: Hold) {
        *locked(&self.shared.state) = State { hold, ..State::default() };
        for lane in locked(&self.shared.lanes).iter() {
            lane.release();
        }
    }

    /// How many calls were caught since this is held.
    pub(super) fn caught(&self) -> usize {
        locked(&self.shared.state).caught
    }

    /// How many of the calls that were caught the API server has given up.
    pub(super) fn given_up(&self) -> usize {
        locked(&self.shared.state).given_up
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One frame, as it is on the wire.
struct Frame(Vec<u8>);

impl Frame {
    fn read(from: &mut impl Read) -> io::Result<Frame> {
        let mut bytes = vec![0; HEAD];
        from.read_exact(&mut bytes)?;
        let length = bytes[..3].iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
        bytes.resize(HEAD + length, 0);
        from.read_exact(&mut bytes[HEAD..])?;
        Ok(Frame(bytes))
    }

    fn kind(&self) -> u8 {
        self.0[3]
    }

    /// Without the first bit, which means nothing.
    fn stream(&self) -> u32 {
        u32::from_be_bytes([self.0[5] & 0x7f, self.0[6], self.0[7], self.0[8]])
    }

    /// Whether whoever sent it sends nothing more on its stream.
    fn ends(&self) -> bool {
        let is_last = matches!(self.kind(), DATA | HEADERS) && self.0[4] & END_STREAM != 0;
        is_last || self.kind() == RESET
    }

    fn is_of_headers(&self) -> bool {
        matches!(self.kind(), HEADERS | CONTINUATION)
    }

    fn has(&self, text: &str) -> bool {
        self.0[HEAD..].windows(text.len().max(1)).any(|part| part == text.as_bytes())
    }
}

/// One direction of a connection.
struct Lane {
    line: Mutex<Line>,
}

/// Where the frames of a lane go, and those that are held, with their streams.
struct Line {
    to: TcpStream,
    held: VecDeque<Frame>,
    streams: BTreeSet<u32>,
}

impl Lane {
    fn new(to: &TcpStream) -> io::Result<Arc<Lane>> {
        let line = Line { to: to.try_clone()?, held: VecDeque::new(), streams: BTreeSet::new() };
        Ok(Arc::new(Lane { line: Mutex::new(line) }))
    }

    /// Carries a frame, or keeps it with those of its stream. Whether it is held is asked while the lane is locked: a
    /// release comes either before that, or after the frame is kept.
    fn pass(&self, frame: Frame, is_held: impl FnOnce(&Frame, bool) -> bool) -> io::Result<()> {
        let mut line = locked(&self.line);
        let stream = frame.stream();
        let follows = line.streams.contains(&stream);
        if (is_held(&frame, follows) || follows) && !frame.is_of_headers() {
            line.streams.insert(stream);
            line.held.push_back(frame);
            return Ok(());
        }
        line.to.write_all(&frame.0)
    }

    fn release(&self) {
        let mut line = locked(&self.line);
        line.streams.clear();
        while let Some(frame) = line.held.pop_front() {
            if line.to.write_all(&frame.0).is_err() {
                line.held.clear();
            }
        }
    }
}

impl Shared {
    /// A connection, from its beginning to its end.
    fn serve(self: Arc<Self>, server: &TcpStream) {
        let Ok(etcd) = TcpStream::connect(self.etcd) else { return };
        let _ = (server.set_nodelay(true), etcd.set_nodelay(true));
        let (Ok(up), Ok(down)) = (Lane::new(&etcd), Lane::new(server)) else { return };
        let (Ok(from_server), Ok(from_etcd)) = (server.try_clone(), etcd.try_clone()) else {
            return;
        };
        locked(&self.lanes).extend([Arc::clone(&up), Arc::clone(&down)]);
        // Streams whose client has more to send.
        let open = Arc::new(Mutex::new(BTreeSet::new()));
        let (shared, of_server) = (Arc::clone(&self), Arc::clone(&open));
        let (to, ends) = (Arc::clone(&up), [server.try_clone(), etcd.try_clone()]);
        let upwards = spawn(move || {
            let _ = shared.carry_up(from_server, &to, &of_server);
            // Whoever waits at the other end learns of it, and so does the other direction.
            for end in ends.iter().flatten() {
                let _ = end.shutdown(Shutdown::Both);
            }
        });
        let _ = self.carry_down(from_etcd, &down, &open);
        let _ = (server.shutdown(Shutdown::Both), etcd.shutdown(Shutdown::Both));
        let _ = upwards.join();
        locked(&self.lanes).retain(|lane| !Arc::ptr_eq(lane, &up) && !Arc::ptr_eq(lane, &down));
    }

    fn carry_up(
        &self,
        from: TcpStream,
        lane: &Lane,
        open: &Mutex<BTreeSet<u32>>,
    ) -> io::Result<()> {
        let mut from = BufReader::new(from);
        let mut preface = vec![0; PREFACE.len()];
        from.read_exact(&mut preface)?;
        locked(&lane.line).to.write_all(&preface)?;
        loop {
            let frame = Frame::read(&mut from)?;
            match frame.ends() {
                true => locked(open).remove(&frame.stream()),
                false if frame.kind() == HEADERS => locked(open).insert(frame.stream()),
                false => false,
            };
            lane.pass(frame, |frame, follows| self.catches(frame, follows))?;
        }
    }

    /// Whether a frame of a request is held. That it follows one that is held is counted, too: what was given up is known.
    fn catches(&self, frame: &Frame, follows: bool) -> bool {
        let mut state = locked(&self.state);
        let is_it = match &state.hold {
            Hold::CallsWith(text) => frame.kind() == DATA && frame.has(text),
            Hold::Nothing | Hold::Watches => false,
        };
        state.caught += usize::from(is_it && !follows);
        state.given_up += usize::from(follows && frame.kind() == RESET);
        is_it
    }

    fn carry_down(
        &self,
        from: TcpStream,
        lane: &Lane,
        open: &Mutex<BTreeSet<u32>>,
    ) -> io::Result<()> {
        let mut from = BufReader::new(from);
        loop {
            let frame = Frame::read(&mut from)?;
            lane.pass(frame, |frame, _| {
                let is_of_watch = frame.kind() == DATA && locked(open).contains(&frame.stream());
                is_of_watch && locked(&self.state).hold == Hold::Watches
            })?;
        }
    }
}

#[cfg(test)]
mod tests;
