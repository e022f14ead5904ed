//! Network namespaces, and the programs that are run in them.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A network namespace, for as long as this lives.
pub(crate) struct Space(Child);

impl Space {
    /// A new one; with a user namespace of its own if asked for.
    pub(crate) fn new(with_user: bool) -> Space {
        let user: &[&str] = if with_user { &["--user", "--map-root-user"] } else { &[] };
        Space::held_by(&[&["unshare"][..], user, &["--net"]].concat())
    }

    /// The one of this process.
    pub(crate) fn here() -> Space {
        Space::held_by(&[])
    }

    /// The one that a sleeping child of these words is in.
    fn held_by(words: &[&str]) -> Space {
        let words = [words, &["sh", "-c", "echo made; exec sleep 3600"]].concat();
        let mut child =
            Command::new(words[0]).args(&words[1..]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "made\n", "a namespace is made");
        Space(child)
    }

    /// Its file below /proc: `net` or `user`.
    pub(crate) fn file(&self, kind: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/{kind}", self.0.id()))
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.file("net").display()));
        command.args(["sh", "-c", line]);
        command
    }

    pub(crate) fn try_run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a line of shell there, which has to succeed.
    pub(crate) fn run(&self, line: &str) -> String {
        let output = self.try_run(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A cable between an interface here and one there.
    pub(crate) fn cable(&self, here: &str, other: &Space, there: &str) {
        let pid = other.0.id();
        self.run(&format!("ip link add {here} type veth peer name {there} netns {pid}"));
    }

    /// Starts something that prints lines.
    pub(crate) fn start(&self, line: &str) -> Running {
        let mut command = self.command(&format!("exec {line}"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (output, seen) = (child.stdout.take().unwrap(), lines.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                seen.lock().unwrap().push(line);
            }
        });
        Running { child, lines }
    }

    /// Three echo requests with nothing known about neighbours: one failed ARP would answer for the others.
    pub(crate) fn reaches(&self, address: &str) -> bool {
        (0..3).any(|_| {
            self.run("ip neigh flush all");
            self.try_run(&format!("ping -c 1 -W 1 {address}")).status.success()
        })
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that prints lines while it runs.
pub(crate) struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Running {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for a line that begins so.
    pub(crate) fn prints(&self, begin: &str) {
        eventually(begin, || self.lines().iter().any(|line| line.starts_with(begin)));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text between angle brackets in a frame that was sniffed, and when it came.
pub(crate) fn marks(running: &Running) -> Vec<(u64, String)> {
    let mark = |line: String| {
        let (when, hex) = line.split_once(' ')?;
        let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map_while(byte).collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (_, mark) = text.rsplit_once('<')?;
        let (mark, _) = mark.split_once('>')?;
        Some((when.parse().ok()?, mark.to_owned()))
    };
    running.lines().into_iter().filter_map(mark).collect()
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
