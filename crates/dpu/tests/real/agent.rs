//! An agent of one DPU as a process of its own, and the lines that it is driven with.
//!
//! `read PORT`, `device`, or an action of one port. It answers each line with one: JSON, `ok` or `refused`.

use interlock_dpu::{Calls, Driver, Namespaces, Settings, Wiring};
use interlock_nodes::outside::{Action, Entry, Failure, Question, Tag, Term};
use rustix::process::{Pid, Signal, getpid, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const ROLE: &str = "INTERLOCK_TEST_DPU_AGENT";
const USER: &str = "INTERLOCK_TEST_DPU_USER_NAMESPACE";
const NETWORK: &str = "INTERLOCK_TEST_DPU_NETWORK_NAMESPACE";
const FOLDER: &str = "INTERLOCK_TEST_DPU_FOLDER";
const BOOT: &str = "INTERLOCK_TEST_DPU_BOOT";
const VTEP: &str = "INTERLOCK_TEST_DPU_VTEP";
const PORTS: &str = "INTERLOCK_TEST_DPU_PORTS";
const NFT: &str = "INTERLOCK_TEST_DPU_NFT";
const STOP: &str = "INTERLOCK_TEST_DPU_STOP";

/// Where an agent stops itself: before a call by its number, killed; or before the first call of a name, stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    Never,
    KilledAt(usize),
    HeldBefore(&'static str),
}

/// How an agent is started.
#[derive(Debug, Clone)]
pub(crate) struct Start<'a> {
    pub(crate) user: Option<PathBuf>,
    pub(crate) network: PathBuf,
    pub(crate) folder: &'a Path,
    pub(crate) boot: &'a str,
    pub(crate) vtep: &'a str,
    pub(crate) ports: &'a str,
    pub(crate) nft: &'a Path,
    pub(crate) stop: Stop,
}

/// The process.
pub(crate) struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// In a process that was started as an agent: enters its namespaces, before any thread exists, and serves.
pub(crate) fn serve_if_asked() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let text = |name: &str| std::env::var(name).unwrap();
    Namespaces { user: path(USER), network: path(NETWORK) }.enter().unwrap();
    let settings = Settings { folder: path(FOLDER).unwrap(), boot: text(BOOT), calls: stopping() };
    let wiring = Wiring {
        ports: text(PORTS).split(',').map(str::to_owned).collect(),
        vtep: text(VTEP).parse().unwrap(),
        nft: path(NFT).unwrap(),
    };
    let driver = Driver::linux(settings, wiring).unwrap();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", answered(&driver, &line)).unwrap();
        out.flush().unwrap();
    }
    std::process::exit(0);
}

fn stopping() -> Calls {
    let Ok(stop) = std::env::var(STOP) else { return Calls::default() };
    let made = AtomicUsize::new(0);
    Calls::watched(move |call| {
        let number = made.fetch_add(1, Ordering::Relaxed).to_string();
        if stop == number {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        if stop == call {
            kill_process(getpid(), Signal::STOP).unwrap();
        }
    })
}

fn answered(driver: &Driver, line: &str) -> String {
    let question = match line.split_once(' ') {
        Some(("read", port)) => Some(Question::Port(port.to_owned())),
        _ if line == "device" => Some(Question::Device),
        _ => None,
    };
    let refused = |failure: Failure| format!("refused {}: {}", failure.reason, failure.message);
    match question {
        Some(question) => match driver.answer(&question) {
            Ok(answer) => serde_json::to_string(&answer).unwrap(),
            Err(failure) => refused(failure),
        },
        None => driver.perform(&action(line)).map_or_else(refused, |()| "ok".to_owned()),
    }
}

/// An action out of its words.
fn action(line: &str) -> Action {
    let mut words = line.split(' ');
    let mut next = || words.next().unwrap_or_else(|| panic!("{line} is cut off")).to_owned();
    let what = next();
    let addresses = |text: String| {
        text.split(',').filter(|it| *it != "-").map(|it| it.parse().unwrap()).collect()
    };
    match &*what {
        "flood" => Action::Flood { vni: next().parse().unwrap(), vteps: addresses(next()) },
        "forget" => Action::Forget { vni: next().parse().unwrap() },
        _ => {
            let (port, term) = (next(), Term(next()));
            match &*what {
                "adopt" => {
                    Action::Adopt { port, term, node: next(), floor: next().parse().unwrap() }
                }
                "isolate" => {
                    Action::Isolate { port, term, node: next(), floor: next().parse().unwrap() }
                }
                "detach" => Action::Detach {
                    port,
                    term,
                    tag: match &*next() {
                        "-" => None,
                        node => Some(tag(node, next().parse().unwrap())),
                    },
                },
                "attach" => {
                    let tag = tag(&next(), next().parse().unwrap());
                    let (vni, mac, own) = (next().parse().unwrap(), next(), addresses(next()));
                    let entry = Entry { tag, vni, mac, addresses: own };
                    Action::Attach { port, term, entry, vteps: addresses(next()) }
                }
                other => panic!("there is no action {other}"),
            }
        }
    }
}

/// The tag of an entry, as long as those of Kubernetes.
fn tag(node: &str, epoch: i64) -> Tag {
    Tag {
        node: node.to_owned(),
        tenant: "7a3f0a5e-2f0c-4d6e-9a41-6a2f0f7f7d10".to_owned(),
        claim: "0c5e7d6f-15be-4f53-9c47-2d1a4c0a8e21".to_owned(),
        attachment: "b1d7c9a2-6f3e-4a8b-8d52-93e0f4c6a732".to_owned(),
        epoch,
    }
}

impl Agent {
    pub(crate) fn start(how: &Start<'_>) -> Agent {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .env(ROLE, "yes")
            .env(NETWORK, &how.network)
            .env(FOLDER, how.folder)
            .env(BOOT, how.boot)
            .env(VTEP, how.vtep)
            .env(PORTS, how.ports)
            .env(NFT, how.nft)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(user) = &how.user {
            command.env(USER, user);
        }
        match how.stop {
            Stop::Never => {}
            Stop::KilledAt(number) => drop(command.env(STOP, number.to_string())),
            Stop::HeldBefore(call) => drop(command.env(STOP, call)),
        }
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Agent { child, input, output: BufReader::new(output) }
    }

    /// Sends a line, without waiting.
    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// The next answer; none if the agent died.
    pub(crate) fn receive(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    pub(crate) fn ask(&mut self, line: &str) -> Option<String> {
        self.send(line);
        self.receive()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until it has stopped itself.
    pub(crate) fn is_held(&self) {
        let status = format!("/proc/{}/stat", self.child.id());
        let is_stopped = || std::fs::read_to_string(&status).unwrap().contains(") T ");
        super::net::eventually("the agent stops itself", is_stopped);
    }

    /// Waits until it has opened a file, such as the lock of a port that it waits for.
    pub(crate) fn opens(&self, file: &Path) {
        let folder = format!("/proc/{}/fd", self.child.id());
        let is_file = |open: std::io::Result<std::fs::DirEntry>| {
            open.and_then(|open| std::fs::read_link(open.path())).is_ok_and(|path| path == file)
        };
        let is_open = || std::fs::read_dir(&folder).unwrap().any(is_file);
        super::net::eventually("the agent opens the file", is_open);
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// What it says of a port.
    pub(crate) fn read(&mut self, port: &str) -> Value {
        let line = self.ask(&format!("read {port}")).expect("the agent answers");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        answer["ports"].get(0).cloned().unwrap_or(Value::Null)
    }

    pub(crate) fn device(&mut self) -> Value {
        let line = self.ask("device").expect("the agent answers");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    pub(crate) fn term(&mut self, port: &str) -> String {
        self.read(port)["record"]["term"].as_str().unwrap().to_owned()
    }

    /// Does something to a port under the term that it has now.
    pub(crate) fn act(&mut self, what: &str, port: &str, rest: &str) -> String {
        let term = self.term(port);
        self.ask(&format!("{what} {port} {term} {rest}")).expect("the agent answers")
    }

    pub(crate) fn done(&mut self, what: &str, port: &str, rest: &str) {
        let said = self.act(what, port, rest);
        assert_eq!(said, "ok", "{what} {port} {rest}");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
