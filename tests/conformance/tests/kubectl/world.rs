//! A server of its own for each test, and a kubectl that talks to it as a user would.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long anything may take before the test gives up on it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running `interlock serve`, and one kubectl.
pub(crate) struct TestServer {
    kubectl: PathBuf,
    /// The kubectl's minor version: what it can do depends on it.
    pub(crate) minor: u32,
    context: Option<String>,
    directory: tempfile::TempDir,
    server: Child,
}

/// Runs a test with each kubectl that is to be tried, on a server of its own.
pub(crate) fn each(test: impl Fn(&TestServer)) {
    each_mut(|world| test(world));
}

/// The same for a test that changes contexts.
pub(crate) fn each_mut(test: impl Fn(&mut TestServer)) {
    for kubectl in kubectls() {
        let mut world = TestServer::start(kubectl);
        eprintln!("with {} (1.{})", world.kubectl.display(), world.minor);
        test(&mut world);
    }
}

/// The ones in INTERLOCK_KUBECTL, or the one that a shell would find. To have none is a failure: a test that
/// was skipped looks too much like one that passed.
fn kubectls() -> Vec<PathBuf> {
    if let Some(list) = std::env::var_os("INTERLOCK_KUBECTL") {
        let named: Vec<PathBuf> = std::env::split_paths(&list).collect();
        for kubectl in &named {
            assert!(kubectl.is_file(), "INTERLOCK_KUBECTL: there is no {}", kubectl.display());
        }
        return named;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|f| f.is_file());
    vec![found.expect(
        "there is no kubectl: `apt-get install -y kubernetes-client`, or `cargo xtask test-real`, \
         or name one in INTERLOCK_KUBECTL",
    )]
}

/// The binary under test: named by `cargo xtask test-real`, or built beside this test.
fn interlock() -> PathBuf {
    if let Some(named) = std::env::var_os("INTERLOCK_BINARY") {
        return named.into();
    }
    let this = std::env::current_exe().expect("a test knows its own file");
    let folder = this.parent().and_then(Path::parent).expect("tests are built in target/*/deps");
    let binary = folder.join("interlock");
    assert!(binary.is_file(), "there is no {}: `cargo build -p interlock`", binary.display());
    binary
}

impl TestServer {
    fn start(kubectl: PathBuf) -> TestServer {
        let directory = tempfile::tempdir().expect("a directory for the server");
        let mut server = Command::new(interlock())
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory.path().join("data"))
            .stderr(Stdio::piped())
            .spawn()
            .expect("interlock starts");
        let log = server.stderr.take().expect("its log was asked for");
        let (ready, is_ready) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                if line.contains(" ready ") {
                    let _ = ready.send(());
                } else if line.contains("WARN") || line.contains("ERROR") {
                    eprintln!("server: {line}");
                }
            }
        });
        is_ready.recv_timeout(TIMEOUT).expect("the server becomes ready");
        let minor = minor(&kubectl);
        TestServer { kubectl, minor, context: None, directory, server }
    }

    /// The certificate that signs the server's own.
    pub(crate) fn authority(&self) -> PathBuf {
        self.directory.path().join("data/pki/ca.crt")
    }

    /// Whether the kubectl is at least of this minor version.
    pub(crate) fn since(&self, minor: u32) -> bool {
        self.minor >= minor
    }

    /// Writes a file where kubectl runs.
    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).expect("a small file");
    }

    /// Makes a folder where kubectl runs.
    pub(crate) fn folder(&self, name: &str) {
        std::fs::create_dir(self.directory.path().join(name)).expect("a new folder");
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory.path())
            .env("KUBECONFIG", self.directory.path().join("data/kubeconfig"))
            .current_dir(self.directory.path());
        if let Some(context) = &self.context {
            command.args(["--context", context]);
        }
        let mut arguments = words(line).into_iter();
        let mut left = arguments.next();
        // As in a shell: NAME=VALUE before the command is its environment.
        while let Some(word) = &left
            && let Some((name, value)) = word.split_once('=')
            && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        {
            command.env(name, value);
            left = arguments.next();
        }
        command.args(left).args(arguments);
        command
    }

    /// Runs kubectl to its end.
    pub(crate) fn run(&self, line: &str, input: &str) -> Said {
        let mut child = self
            .command(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("its input was asked for");
        // A kubectl that reads nothing has closed it; that is its business.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("kubectl ends");
        Said {
            line: line.to_owned(),
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            error: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// What kubectl prints when it succeeds.
    #[track_caller]
    pub(crate) fn ok(&self, line: &str) -> String {
        self.run(line, "").succeeded()
    }

    /// kubectl succeeds and prints exactly this.
    #[track_caller]
    pub(crate) fn says(&self, line: &str, expected: &str) {
        let out = self.ok(line);
        assert_eq!(out.trim_end(), expected.trim_end(), "kubectl {line}");
    }

    /// kubectl, given this input, succeeds and prints exactly that.
    #[track_caller]
    pub(crate) fn given(&self, input: &str, line: &str, expected: &str) {
        let out = self.run(line, input).succeeded();
        assert_eq!(out.trim_end(), expected.trim_end(), "kubectl {line}");
    }

    /// kubectl succeeds and prints each of these somewhere.
    #[track_caller]
    pub(crate) fn mentions(&self, line: &str, expected: &[&str]) {
        let out = self.ok(line);
        for text in expected {
            assert!(out.contains(text), "kubectl {line}: no {text:?} in\n{out}");
        }
    }

    /// kubectl succeeds and prints this table, whatever the spaces between columns and the ages.
    #[track_caller]
    pub(crate) fn table(&self, line: &str, expected: &[&str]) {
        let out = self.ok(line);
        let rows: Vec<String> = out.lines().map(row).filter(|row| !row.is_empty()).collect();
        assert_eq!(rows, expected, "kubectl {line}");
    }

    /// kubectl fails and complains with exactly this.
    #[track_caller]
    pub(crate) fn fails(&self, line: &str, expected: &str) {
        let said = self.run(line, "").failed();
        assert_eq!(said.trim_end(), expected.trim_end(), "kubectl {line}");
    }

    /// kubectl, given this input, fails and complains with each of these.
    #[track_caller]
    pub(crate) fn refuses(&self, input: &str, line: &str, expected: &[&str]) {
        let said = self.run(line, input).failed();
        for text in expected {
            assert!(said.contains(text), "kubectl {line}: no {text:?} in\n{said}");
        }
    }

    /// Deletes, which newer kubectls report with the namespace.
    #[track_caller]
    pub(crate) fn deletes(&self, line: &str, expected: &[&str]) {
        let out = self.ok(line);
        let lines: Vec<&str> =
            out.lines().map(|line| line.split(" from ").next().unwrap_or(line)).collect();
        assert_eq!(lines, expected, "kubectl {line}");
    }

    /// Starts a kubectl that prints until it is stopped.
    pub(crate) fn start_watching(&self, line: &str) -> Watching {
        let mut child = self.command(line).stdout(Stdio::piped()).spawn().expect("kubectl starts");
        let out = child.stdout.take().expect("its output was asked for");
        let (sender, rows) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(row(&line)).is_err() {
                    return;
                }
            }
        });
        Watching { child, rows }
    }

    /// Starts a `kubectl wait`, and returns once it watches: what happens next is what it waits for.
    pub(crate) fn start_waiting(&self, line: &str) -> Watching {
        let mut child = self
            .command(&format!("{line} --timeout=60s -v=6"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        let out = child.stdout.take().expect("its output was asked for");
        let log = child.stderr.take().expect("its log was asked for");
        let (said_watch, watches) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                if line.contains("watch=true") {
                    let _ = said_watch.send(());
                }
            }
        });
        watches.recv_timeout(TIMEOUT).expect("kubectl begins to watch");
        let (sender, rows) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = sender.send(row(&line));
            }
        });
        Watching { child, rows }
    }

    /// The same server through the context of another cluster.
    pub(crate) fn context(&mut self, name: Option<&str>) {
        self.context = name.map(str::to_owned);
    }

    /// Runs the same question until it is answered as expected: for what the server does by itself.
    #[track_caller]
    pub(crate) fn comes_to_say(&self, line: &str, expected: &str) {
        let end = Instant::now() + TIMEOUT;
        loop {
            let said = self.run(line, "");
            if said.code == Some(0) && said.out.trim_end() == expected.trim_end() {
                return;
            }
            assert!(Instant::now() < end, "kubectl {line}: {said:?}, never {expected:?}");
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What one kubectl said.
#[derive(Debug)]
pub(crate) struct Said {
    line: String,
    /// Its exit code.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) error: String,
}

impl Said {
    #[track_caller]
    fn succeeded(self) -> String {
        let Said { line, code, out, error } = self;
        assert_eq!(code, Some(0), "kubectl {line}\n{out}{error}");
        out
    }

    #[track_caller]
    fn failed(self) -> String {
        let Said { line, code, out, error } = self;
        assert!(matches!(code, Some(1 | 2)), "kubectl {line}: exit {code:?}\n{out}{error}");
        assert!(!error.contains("panic:"), "kubectl {line}\n{error}");
        error
    }
}

/// A kubectl that goes on printing.
pub(crate) struct Watching {
    child: Child,
    rows: Receiver<String>,
}

impl Watching {
    /// The next line is this, whatever the spaces and ages.
    #[track_caller]
    pub(crate) fn prints(&self, expected: &str) {
        let printed = self.rows.recv_timeout(TIMEOUT).expect("kubectl prints one more line");
        assert_eq!(printed, expected);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The minor version of a kubectl.
fn minor(kubectl: &Path) -> u32 {
    let output = Command::new(kubectl)
        .args(["version", "--client", "--output=json"])
        .output()
        .expect("kubectl starts");
    let version: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("kubectl tells its version in JSON");
    let minor = version["clientVersion"]["minor"].as_str().unwrap_or_default();
    minor.trim_end_matches('+').parse().expect("a minor version is a number")
}

/// A line of a table with single spaces, its ages replaced.
fn row(line: &str) -> String {
    let words: Vec<&str> =
        line.split_whitespace().map(|word| if is_age(word) { "<age>" } else { word }).collect();
    words.join(" ")
}

fn is_age(word: &str) -> bool {
    let digits = word.trim_end_matches(['s', 'm']);
    word.ends_with(['s', 'm'])
        && digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == 'm')
}

/// Splits a line as a shell does; single quotes keep words together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_quoted, mut is_word) = (String::new(), false, false);
    for character in line.chars() {
        match character {
            '\'' => (is_quoted, is_word) = (!is_quoted, true),
            ' ' if !is_quoted => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            other => {
                word.push(other);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}
