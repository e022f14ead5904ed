//! Probes of runs: tried and counted here, in the background; whoever asks is given what was found so far.
//!
//! One thread knows when each probe is due, and a try has a thread of its own, so that one that hangs holds
//! up no other. A run that nobody asks about any more is not probed any more. What was counted is kept in
//! memory only: after a restart of this program it begins anew, and until then nothing is known.

use super::beside::{Beside, Purpose};
use super::{Ending, Error, Processes, Started};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tracing::{debug, warn};

/// A run that nobody has asked about for so long is not probed any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// How often it is seen whether there is anything to do at least.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How many tries are under way at once, at most: the others come a little later.
const MOST_TRIES: usize = 128;
/// The stack of a try, which needs little.
const STACK_BYTES: usize = 256 * 1024;
/// How much of an answer is read for its first line.
const LONGEST_LINE_BYTES: usize = 4096;

/// A run whose probes are to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The run.
    pub id: String,
    /// Its probes.
    pub probes: Probes,
    /// Whether it is known to have started: its startup probe is not run any more.
    pub is_started: bool,
}

/// The probes of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    /// Until it succeeds the others are not run.
    pub startup: Option<Probe>,
    /// Whether the run lives.
    pub liveness: Option<Probe>,
    /// Whether the run can serve.
    pub readiness: Option<Probe>,
}

/// A probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What is tried.
    pub check: Check,
    /// How long after the start of the run it is tried first.
    pub initial_delay: Duration,
    /// How long after the last try it is tried again.
    pub period: Duration,
    /// How long a try may take.
    pub timeout: Duration,
    /// So many successes in a row are a success.
    pub successes: u64,
    /// So many failures in a row are a failure.
    pub failures: u64,
}

/// What a probe tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A command beside the run, which is to end with 0.
    Exec(Vec<String>),
    /// A GET over HTTP, whose answer is to be from 200 to 399.
    Http {
        /// Who is asked.
        host: String,
        /// At which port.
        port: u16,
        /// For what.
        path: String,
        /// With these headers.
        headers: Vec<(String, String)>,
    },
    /// A connection.
    Tcp {
        /// To whom.
        host: String,
        /// At which port.
        port: u16,
    },
}

/// What the probes of a run have found; None: not enough yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Of the startup probe.
    pub startup: Option<Verdict>,
    /// Of the liveness probe.
    pub liveness: Option<Verdict>,
    /// Of the readiness probe.
    pub readiness: Option<Verdict>,
}

/// What a probe has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It succeeded as often as it has to.
    Success,
    /// It failed as often as it may.
    Failure,
}

/// Runs the probes of runs, until it is dropped.
#[derive(Debug)]
pub struct Prober {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    processes: Arc<Processes>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<String, Run>,
    /// Whether a thread sees to them.
    is_at_work: bool,
    tries: usize,
    is_over: bool,
}

/// A run that is probed.
#[derive(Debug)]
struct Run {
    started: Started,
    probes: Probes,
    /// Whether its startup probe need not be run.
    is_started: bool,
    begun: Instant,
    asked: Instant,
    counts: [Count; 3],
}

/// What was found by one probe of a run.
#[derive(Debug, Default)]
struct Count {
    successes: u64,
    failures: u64,
    verdict: Option<Verdict>,
    is_under_way: bool,
    /// When the last try began.
    tried: Option<Instant>,
}

/// The probes by their places.
const KINDS: [Purpose; 3] = [Purpose::Startup, Purpose::Liveness, Purpose::Readiness];

impl Run {
    fn probe(&self, place: usize) -> Option<&Probe> {
        let Probes { startup, liveness, readiness } = &self.probes;
        [startup, liveness, readiness].into_iter().nth(place)?.as_ref()
    }

    /// When a probe is due; None: not as things are.
    fn due(&self, place: usize) -> Option<Instant> {
        let (probe, count) = (self.probe(place)?, &self.counts[place]);
        let startup = self.counts[0].verdict;
        let has_started =
            self.is_started || self.probes.startup.is_none() || startup == Some(Verdict::Success);
        // The startup probe is over when it has found something, and the others begin after it.
        let is_its_time = match place {
            0 => !has_started && startup.is_none(),
            _ => has_started,
        };
        if count.is_under_way || !is_its_time {
            return None;
        }
        Some(match count.tried {
            Some(tried) => tried + probe.period,
            None => self.begun + probe.initial_delay,
        })
    }

    fn verdicts(&self) -> Verdicts {
        let [startup, liveness, readiness] = &self.counts;
        Verdicts {
            startup: startup.verdict,
            liveness: liveness.verdict,
            readiness: readiness.verdict,
        }
    }
}

impl Count {
    fn note(&mut self, probe: &Probe, is_success: bool) {
        match is_success {
            true => (self.successes, self.failures) = (self.successes.saturating_add(1), 0),
            false => (self.successes, self.failures) = (0, self.failures.saturating_add(1)),
        }
        if self.successes >= probe.successes.max(1) {
            self.verdict = Some(Verdict::Success);
        }
        if self.failures >= probe.failures.max(1) {
            self.verdict = Some(Verdict::Failure);
        }
    }
}

impl Prober {
    /// A prober of the runs of a directory.
    pub fn new(processes: Arc<Processes>) -> Prober {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Prober { shared: Arc::new(Shared { processes, state, changed }) }
    }

    /// What the probes of a run have found since its last start. It is probed from now on, if it lives.
    pub fn verdicts(&self, watched: &Watched) -> Result<Verdicts, Error> {
        let started = match self.shared.processes.observe(&watched.id)? {
            super::Observed::Running { pid, since, .. } => Started { pid, since },
            _ => {
                self.shared.state().runs.remove(&watched.id);
                return Ok(Verdicts::default());
            }
        };
        let mut state = self.shared.state();
        let now = Instant::now();
        let known = state.runs.get_mut(&watched.id);
        let is_same = |run: &&mut Run| run.started == started && run.probes == watched.probes;
        if let Some(run) = known.filter(is_same) {
            run.asked = now;
            return Ok(run.verdicts());
        }
        let age = started.since.elapsed().unwrap_or_default();
        let run = Run {
            started,
            probes: watched.probes.clone(),
            is_started: watched.is_started,
            begun: now.checked_sub(age).unwrap_or(now),
            asked: now,
            counts: Default::default(),
        };
        state.runs.insert(watched.id.clone(), run);
        self.shared.be_at_work(&mut state);
        self.shared.changed.notify_all();
        Ok(Verdicts::default())
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
    }
}

/// A try that is due.
struct Try {
    id: String,
    started: Started,
    place: usize,
    probe: Probe,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn be_at_work(self: &Arc<Self>, state: &mut State) {
        if state.is_at_work {
            return;
        }
        let own = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("probes".to_owned());
        match thread.stack_size(STACK_BYTES).spawn(move || see_to_them(&own)) {
            Ok(_) => state.is_at_work = true,
            Err(error) => warn!(%error, "cannot run probes; trying again"),
        }
    }

    /// What is due now, and how long nothing is.
    fn due(&self, state: &mut State) -> (Vec<Try>, Duration) {
        let now = Instant::now();
        state.runs.retain(|_, run| now.duration_since(run.asked) < FORGOTTEN_AFTER);
        let mut due = Vec::new();
        let mut wait = LONGEST_WAIT;
        let room = MOST_TRIES.saturating_sub(state.tries);
        for (id, run) in &mut state.runs {
            for place in 0..KINDS.len() {
                let Some(at) = run.due(place) else { continue };
                let Some(probe) = run.probe(place).filter(|_| at <= now && due.len() < room) else {
                    wait = wait.min(at.saturating_duration_since(now));
                    continue;
                };
                let (probe, started) = (probe.clone(), run.started);
                run.counts[place].is_under_way = true;
                run.counts[place].tried = Some(now);
                due.push(Try { id: id.clone(), started, place, probe });
            }
        }
        state.tries += due.len();
        (due, wait.max(Duration::from_millis(5)))
    }

    fn begin(self: &Arc<Self>, order: Try) {
        let own = Arc::clone(self);
        let (id, started, place) = (order.id.clone(), order.started, order.place);
        let thread = std::thread::Builder::new().name("probe".to_owned()).stack_size(STACK_BYTES);
        let begun = thread.spawn(move || {
            let found = own.try_it(&order);
            own.note(&order.id, order.started, order.place, found);
        });
        if let Err(error) = begun {
            warn!(%error, run = id, "cannot run a probe; trying again");
            self.note(&id, started, place, None);
        }
    }

    fn note(&self, id: &str, started: Started, place: usize, found: Option<bool>) {
        let mut state = self.state();
        state.tries = state.tries.saturating_sub(1);
        if let Some(run) = state.runs.get_mut(id).filter(|run| run.started == started) {
            run.counts[place].is_under_way = false;
            if let (Some(is_success), Some(probe)) = (found, run.probe(place).cloned()) {
                run.counts[place].note(&probe, is_success);
            }
        }
        self.changed.notify_all();
    }

    /// Whether it succeeded; None: nothing can be said.
    fn try_it(&self, Try { id, place, probe, .. }: &Try) -> Option<bool> {
        // What is held still does not answer, and is not to blame.
        let is_frozen = || self.processes.is_frozen(id).unwrap_or(false);
        let found = match &probe.check {
            Check::Exec(command) => {
                match self.processes.run_beside(id, KINDS[*place], command, probe.timeout) {
                    Ok(Beside::Ended(ending)) => ending == Ending::Code(0),
                    Ok(Beside::TimedOut | Beside::NoProgram) => false,
                    Ok(Beside::NotRunning | Beside::Busy) => return None,
                    Err(error) => {
                        debug!(run = id, %error, "a probe could not be run");
                        return None;
                    }
                }
            }
            Check::Http { host, port, path, headers } => {
                let get = Get { host, port: *port, path, headers };
                get.status(probe.timeout).is_ok_and(|status| (200..400).contains(&status))
            }
            Check::Tcp { host, port } => connect(host, *port, probe.timeout).is_ok(),
        };
        match found {
            true => Some(true),
            false if is_frozen() => None,
            false => Some(false),
        }
    }
}

/// Sees to all probes until nobody needs them any more.
fn see_to_them(own: &Weak<Shared>) {
    loop {
        let Some(shared) = own.upgrade() else { return };
        let mut state = shared.state();
        if state.is_over {
            return;
        }
        let (due, wait) = shared.due(&mut state);
        if due.is_empty() {
            // Whatever wakes it, and even if nothing does, it sees what is due.
            drop(shared.changed.wait_timeout(state, wait));
            continue;
        }
        drop(state);
        due.into_iter().for_each(|order| shared.begin(order));
    }
}

fn connect(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let until = Instant::now() + timeout;
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A GET over HTTP.
struct Get<'a> {
    host: &'a str,
    port: u16,
    path: &'a str,
    headers: &'a [(String, String)],
}

impl Get<'_> {
    /// The status of the answer.
    fn status(&self, timeout: Duration) -> io::Result<u16> {
        let until = Instant::now() + timeout;
        let mut stream = connect(self.host, self.port, timeout)?;
        let left = || match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
            left => Ok(left),
        };
        stream.set_write_timeout(Some(left()?))?;
        stream.write_all(self.request()?.as_bytes())?;
        let mut line = Vec::new();
        let mut part = [0; 256];
        while !line.contains(&b'\n') && line.len() < LONGEST_LINE_BYTES {
            stream.set_read_timeout(Some(left()?))?;
            match stream.read(&mut part) {
                Ok(0) => break,
                Ok(count) => line.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        status_in(&line).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn request(&self) -> io::Result<String> {
        let is_named =
            |name: &str| self.headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
        let mut text = format!("GET {} HTTP/1.1\r\n", self.path);
        if !is_named("Host") {
            text.push_str(&format!("Host: {}:{}\r\n", self.host, self.port));
        }
        if !is_named("User-Agent") {
            text.push_str("User-Agent: kube-probe/interlock\r\n");
        }
        for (name, value) in self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let lines = 1 + usize::from(!is_named("Host")) + usize::from(!is_named("User-Agent"));
        // A header or a path that has a line in it would be another request.
        if text.lines().count() != lines + self.headers.len() || self.path.contains(' ') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        text.push_str("Connection: close\r\n\r\n");
        Ok(text)
    }
}

/// The status in the first line of an answer.
fn status_in(answer: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(answer);
    let line = text.lines().next()?;
    let mut words = line.strip_prefix("HTTP/")?.split(' ');
    words.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(successes: u64, failures: u64) -> Probe {
        Probe {
            check: Check::Exec(Vec::new()),
            initial_delay: Duration::from_secs(2),
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            successes,
            failures,
        }
    }

    fn run(probes: Probes, is_started: bool) -> Run {
        let now = Instant::now();
        let started = Started { pid: 1, since: std::time::SystemTime::UNIX_EPOCH };
        let counts = Default::default();
        Run { started, probes, is_started, begun: now, asked: now, counts }
    }

    #[test]
    fn a_verdict_changes_when_enough_tries_in_a_row_say_so() {
        use Verdict::{Failure, Success};
        let mut count = Count::default();
        let mut found = |is_success| {
            count.note(&probe(2, 3), is_success);
            count.verdict
        };
        let tries = [true, false, true, true, false, false, true, false, false, false, true, true];
        let expected = [
            None,
            None,
            None,
            Some(Success),
            Some(Success),
            Some(Success),
            Some(Success),
            Some(Success),
            Some(Success),
            Some(Failure),
            Some(Failure),
            Some(Success),
        ];
        assert_eq!(tries.map(&mut found), expected);
    }

    #[test]
    fn the_others_wait_for_the_startup_probe() {
        let probes =
            Probes { startup: Some(probe(1, 1)), liveness: Some(probe(1, 1)), readiness: None };
        let mut begun = run(probes.clone(), false);
        assert_eq!(begun.due(0), Some(begun.begun + Duration::from_secs(2)));
        assert_eq!((begun.due(1), begun.due(2)), (None, None));
        begun.counts[0].verdict = Some(Verdict::Failure);
        assert_eq!((begun.due(0), begun.due(1)), (None, None));
        begun.counts[0].verdict = Some(Verdict::Success);
        assert_eq!(begun.due(0), None, "it is over");
        let now = Instant::now();
        begun.counts[1].tried = Some(now);
        assert_eq!(begun.due(1), Some(now + Duration::from_secs(10)));
        begun.counts[1].is_under_way = true;
        assert_eq!(begun.due(1), None);
        let known = run(probes, true);
        assert!(known.due(0).is_none() && known.due(1).is_some(), "it started before we came");
    }

    #[test]
    fn the_status_is_in_the_first_line() {
        assert_eq!(status_in(b"HTTP/1.1 204 No Content\r\nA: b\r\n"), Some(204));
        assert_eq!(status_in(b"HTTP/1.0 500\r\n"), Some(500));
        for broken in ["", "HTTP/1.1", "SSH-2.0-OpenSSH", "HTTP/1.1 abc\n"] {
            assert_eq!(status_in(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn a_header_cannot_smuggle_a_second_request() {
        let header = |value: &str| [("A".to_owned(), value.to_owned())];
        let get = |headers: &[(String, String)]| {
            Get { host: "127.64.0.1", port: 80, path: "/ok", headers }.request()
        };
        let text = get(&header("b")).unwrap();
        assert!(text.starts_with("GET /ok HTTP/1.1\r\nHost: 127.64.0.1:80\r\n"), "{text}");
        assert!(text.ends_with("A: b\r\nConnection: close\r\n\r\n"), "{text}");
        assert!(get(&header("b\r\n\r\nGET /evil HTTP/1.1")).is_err());
        let own = [("host".to_owned(), "web".to_owned())];
        assert!(!get(&own).unwrap().contains("Host: 127"), "a host of its own comes first");
    }
}
