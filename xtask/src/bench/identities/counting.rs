//! A proxy in front of an account that counts what passes, with the time of each call.

use anyhow::Context;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The proxy. It ends with the process.
pub(super) struct Proxy {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

/// What passed since the count began.
struct Seen {
    calls: Vec<(Instant, String)>,
    last: Instant,
}

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) writes: usize,
    pub(super) reads: usize,
    /// From the first call to the last.
    pub(super) seconds: f64,
    /// When each came, in seconds since the first.
    times: Vec<f64>,
}

impl Calls {
    /// The most that any window has above the rate: each window begins with a call and ends with one.
    pub(super) fn most_above(&self, per_second: f64) -> f64 {
        // The calls up to a time, less what the rate allows by then; a window is the difference of two.
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for (number, time) in self.times.iter().enumerate() {
            let allowed = time * per_second;
            least = least.min(number as f64 - allowed);
            most = most.max(number as f64 + 1.0 - allowed - least);
        }
        most
    }
}

impl Proxy {
    pub(super) fn start(account: SocketAddr) -> anyhow::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let address = listener.local_addr()?;
        let seen = Seen { calls: Vec::new(), last: Instant::now() };
        let seen = Arc::new(Mutex::new(seen));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&shared);
                thread::spawn(move || pass_on(client, account, &seen));
            }
        });
        Ok(Proxy { address, seen })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts from here on.
    pub(super) fn begin(&self) {
        let mut seen = lock(&self.seen);
        *seen = Seen { calls: Vec::new(), last: Instant::now() };
    }

    pub(super) fn so_far(&self) -> usize {
        lock(&self.seen).calls.len()
    }

    /// Since when nothing came.
    pub(super) fn quiet_for(&self) -> Duration {
        lock(&self.seen).last.elapsed()
    }

    /// What came since the count began.
    pub(super) fn calls(&self) -> Calls {
        let seen = lock(&self.seen);
        let mut calls = Calls::default();
        let mut by_action: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, action) in &seen.calls {
            let is_read = action.starts_with("Get") || action.starts_with("List");
            *(if is_read { &mut calls.reads } else { &mut calls.writes }) += 1;
            *by_action.entry(action).or_default() += 1;
            let first = seen.calls.first().map_or(*at, |(first, _)| *first);
            calls.times.push(at.duration_since(first).as_secs_f64());
        }
        calls.seconds = calls.times.last().copied().unwrap_or(0.0);
        let by_action: Vec<String> =
            by_action.iter().map(|(action, count)| format!("{action} {count}")).collect();
        eprintln!("{}", by_action.join(", "));
        calls
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection: calls one after the other, each passed on over a connection of its own.
fn pass_on(mut client: TcpStream, account: SocketAddr, seen: &Mutex<Seen>) {
    while let Some(call) = message(&mut client) {
        let now = Instant::now();
        let mut count = lock(seen);
        count.last = now;
        count.calls.push((now, action(&call)));
        drop(count);
        let answer = TcpStream::connect(account).ok().and_then(|mut account| {
            account.write_all(&call).ok()?;
            message(&mut account)
        });
        let Some(answer) = answer else { return };
        if client.write_all(&answer).is_err() {
            return;
        }
    }
}

/// The action that a form asks for.
fn action(call: &[u8]) -> String {
    let text = String::from_utf8_lossy(call);
    let form = text.split_once("\r\n\r\n").map_or("", |(_, form)| form);
    let action = form.split('&').find_map(|field| field.strip_prefix("Action="));
    action.unwrap_or("none").to_owned()
}

/// One request or response, with its body.
fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut bytes, mut part) = (Vec::new(), [0; 16 * 1024]);
    loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.and_then(|it| it.trim().parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                return Some(bytes);
            }
        }
        match stream.read(&mut part) {
            Ok(read) if read > 0 => bytes.extend_from_slice(&part[..read]),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_above_the_rate_is_found() {
        let calls = |times: &[f64]| Calls { times: times.to_vec(), ..Calls::default() };
        // One a second is never more than one above.
        assert_eq!(calls(&[0.0, 1.0, 2.0, 3.0]).most_above(1.0), 1.0);
        // A pause, and then three at once.
        assert_eq!(calls(&[0.0, 10.0, 10.0, 10.0]).most_above(1.0), 3.0);
        assert_eq!(calls(&[]).most_above(1.0), 0.0);
    }

    #[test]
    fn the_action_is_that_of_the_form() {
        let call = b"POST / HTTP/1.1\r\nhost: x\r\n\r\nVersion=1&Action=GetRole&RoleName=x";
        assert_eq!(action(call), "GetRole");
        assert_eq!(action(b"POST / HTTP/1.1\r\n\r\n"), "none");
    }
}
