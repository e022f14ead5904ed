//! The real `interlock serve` as a child process, and a small client that speaks plain HTTP to it.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

mod client;
pub(crate) mod proxy;
pub(crate) mod random;

#[allow(unused_imports, reason = "each test program uses a part of it")]
pub(crate) use client::{Answer, Client, version};

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The token of an administrator in every token file that is written here.
pub(crate) const TOKEN: &str = "the-administrators-token";
/// A machine that is busy with other things must not fail a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// Waits until something is there, and says what was seen instead if it does not come.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if began.elapsed() > TIMEOUT => {
                panic!("{what}: not after {TIMEOUT:?}: {seen}")
            }
            // The pause between two looks.
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// A kubeconfig with a token.
pub(crate) fn write_kubeconfig(path: &Path, server: &str, token: &str) {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: hub\n\
         clusters:\n- name: hub\n  cluster: {{server: \"http://{server}\"}}\n\
         contexts:\n- name: hub\n  context: {{cluster: hub, user: operator}}\n\
         users:\n- name: operator\n  user: {{token: {token}}}\n"
    );
    std::fs::write(path, text).expect("the directory is ours");
}

/// Where an object of its kind is made.
pub(crate) fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().expect("it has one");
    let root = if version == "v1" { "/api/v1".into() } else { format!("/apis/{version}") };
    let within = object["metadata"]["namespace"].as_str();
    let within = within.map_or(String::new(), |name| format!("/namespaces/{name}"));
    let kind = object["kind"].as_str().expect("it has one").to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => kind.clone() + if kind.ends_with('s') { "es" } else { "s" },
    };
    format!("{root}{within}/{plural}")
}

/// A data directory of its own, with a token file beside the data.
pub(crate) struct DataDirectory {
    directory: tempfile::TempDir,
}

impl DataDirectory {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = DataDirectory { directory };
        let line = format!("{TOKEN},admin,1,\"system:masters\"\n");
        std::fs::write(place.tokens(), line).expect("the directory is ours");
        place
    }

    /// The data directory; nothing has made it yet.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.directory.path().join("tokens")
    }

    /// Where a test may put other things.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The last segment of the store's log.
    pub(crate) fn last_segment(&self) -> PathBuf {
        let names = std::fs::read_dir(self.data().join("store")).expect("the store is there");
        let names = names.map(|entry| entry.expect("readable").path());
        let is_log = |path: &PathBuf| path.to_string_lossy().contains("/log-");
        names.filter(is_log).max().expect("a store has a log")
    }

    /// `interlock serve` on this place, on a port that the machine chooses.
    pub(crate) fn command(&self) -> Command {
        self.command_on("127.0.0.1:0")
    }

    fn command_on(&self, address: &str) -> Command {
        let mut command = serve();
        command.arg("--data-dir").arg(self.data()).arg("--token-file").arg(self.tokens());
        command.args(["--listen", address, "--insecure-http"]);
        command
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn start(&self) -> Process {
        Process::spawn(self.command()).ready()
    }

    /// Starts the server again where its clients know it, and waits until it is ready.
    pub(crate) fn start_again_on(&self, address: SocketAddr) -> Process {
        Process::spawn(self.command_on(&address.to_string())).ready()
    }
}

/// Our program. Another one than was just built can be named, to try a release.
pub(crate) fn interlock() -> Command {
    let binary = std::env::var_os("INTERLOCK_BINARY");
    Command::new(binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_interlock").into()))
}

/// `interlock serve`, with nothing else said.
pub(crate) fn serve() -> Command {
    let mut command = interlock();
    command.arg("serve").env_remove("RUST_LOG").env("NO_COLOR", "1");
    command
}

/// Runs a server that is expected not to start.
pub(crate) fn refused(mut command: Command) -> Output {
    command.stdin(Stdio::null()).output().expect("the binary runs")
}

/// A server, killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    url: Receiver<String>,
    reader: Option<JoinHandle<()>>,
    address: Option<SocketAddr>,
    spawned: Instant,
    /// How long it took until it said that it was ready, and was.
    pub(crate) took: Duration,
}

/// Where accounts of programs are.
const SYSTEM: &str = "interlock-system";

/// The hub of a fleet: `cluster` is empty for the hub itself, and `/clusters/blue` for a logical cluster of it.
impl Client {
    /// Makes an object, or finds that it is there.
    pub(crate) fn make(&mut self, cluster: &str, object: &Value) {
        let path = format!("{cluster}{}", collection(object));
        // A kind that was just defined is served a moment later.
        until(&format!("{path} can be made"), || {
            let made = self.call("POST", &path, Some(object));
            let made = made.map_err(|why| why.to_string())?;
            if [201, 409].contains(&made.status) { Ok(()) } else { Err(made.text) }
        });
    }

    /// Makes what `interlock manifests` prints.
    pub(crate) fn apply_manifests(&mut self, cluster: &str, args: &[&str]) {
        let printed = interlock().arg("manifests").args(args).arg("--json").output();
        let printed = printed.expect("the binary runs");
        assert!(printed.status.success(), "{printed:?}");
        let list: Value = serde_json::from_slice(&printed.stdout).expect("it is JSON");
        for object in list["items"].as_array().expect("it is a list") {
            self.make(cluster, object);
        }
    }

    /// A token of the account of a program.
    pub(crate) fn token_of(&mut self, cluster: &str, account: &str) -> String {
        let path = format!("{cluster}/api/v1/namespaces/{SYSTEM}/serviceaccounts/{account}/token");
        let body = serde_json::json!({"spec": {"expirationSeconds": 3600}});
        let made = self.must("POST", &path, Some(&body));
        made["status"]["token"].as_str().expect("a token was asked for").to_owned()
    }
}

impl Process {
    /// Starts a server, and does not wait for it.
    pub(crate) fn spawn(mut command: Command) -> Process {
        let spawned = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let (found, url) = mpsc::channel();
        let heard = Arc::clone(&said);
        let reader = thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let word = |prefix: &str| {
                    line.split_whitespace().find_map(|word| word.strip_prefix(prefix))
                };
                if let Some(url) = word("url=").filter(|_| line.contains("ready")) {
                    // The test may have gone on without it.
                    let _ = found.send(url.to_owned());
                }
                heard.lock().expect("nobody panics with it").push(line);
            }
        });
        let (address, took) = (None, Duration::ZERO);
        Process { child, said, url, reader: Some(reader), address, spawned, took }
    }

    /// Waits until it is ready.
    pub(crate) fn ready(mut self) -> Process {
        let Ok(url) = self.url.recv_timeout(TIMEOUT) else {
            panic!("the server is not ready; it says:\n{}", self.says());
        };
        let address = url.split("://").nth(1).expect("a URL has a scheme");
        self.address = Some(address.parse().expect("the URL has an address and a port"));
        let answer = self.client().call("GET", "/readyz", None).expect("it listens");
        assert_eq!(answer.status, 200, "{}", self.says());
        self.took = self.spawned.elapsed();
        self
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("it is ready")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How much memory it has from the machine.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("it runs, and this is Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let line = line.expect("it is there").trim().trim_end_matches(" kB");
        line.parse().expect("it is a number")
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address())
    }

    /// All that it has said on standard error so far.
    pub(crate) fn says(&self) -> String {
        self.said.lock().expect("nobody panics with it").join("\n")
    }

    /// Takes its life, as a power cut would, and waits until the kernel has cleaned up.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Whether its end was seen already.
    pub(crate) fn is_killed(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_some())
    }

    /// Sends it a signal: `TERM`, `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let signal = format!("-{name}");
        let sent = Command::new("kill").args([&signal, &self.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits until it has ended by itself, and says how, and how long that took.
    pub(crate) fn end(&mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        while began.elapsed() < TIMEOUT {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                if let Some(reader) = self.reader.take() {
                    reader.join().expect("it only reads lines");
                }
                return (status, began.elapsed());
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("the server does not end; it says:\n{}", self.says());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The permissions of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(path).unwrap_or_else(|why| panic!("{path:?}: {why}"));
    metadata.permissions().mode() & 0o777
}

/// A whole file.
pub(crate) fn read(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = std::fs::File::open(path).expect("the file is there");
    file.read_to_end(&mut bytes).expect("the file is readable");
    bytes
}
