//! The programs of `interlock envtest assets`, started as controller-runtime's envtest starts them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A machine that is busy with other things must not fail a test.
const TIMEOUT: Duration = Duration::from_secs(180);

/// A program, killed when it is dropped.
struct Program(Child);

impl Program {
    fn start(path: &Path, words: &[String]) -> Program {
        let mut command = Command::new(path);
        let child = command.args(words).stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        Program(child.expect("the program starts"))
    }

    /// Asks it to end, as envtest does, and says with which code it does.
    fn stop(mut self) -> Option<i32> {
        let pid = self.0.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        assert!(asked.success(), "there is no process {pid}");
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn output(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn assets(directory: &Path) -> String {
    let mut interlock = Command::new(env!("CARGO_BIN_EXE_interlock"));
    text(&output(interlock.args(["envtest", "assets"]).arg(directory)).stdout)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it listens").port()
}

/// What is answered to a request in the clear; none while nobody listens.
fn answer(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < TIMEOUT, "{what}: not after {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_directory_has_three_programs_and_the_setting_is_printed() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("it's here");
    let said = assets(&directory);
    let quoted = directory.to_str().expect("it is text").replace('\'', r"'\''");
    assert_eq!(said, format!("export KUBEBUILDER_ASSETS='{quoted}'\n"));
    for name in ["kube-apiserver", "etcd", "kubectl"] {
        let mode =
            std::fs::metadata(directory.join(name)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{name}");
    }
    assert_eq!(assets(&directory), said, "a second time changes nothing");
    for (name, option) in [("kube-apiserver", "--secure-port"), ("etcd", "--listen-client-urls")] {
        let help = text(&output(Command::new(directory.join(name)).arg("--help")).stdout);
        assert!(help.contains(&format!("\n      {option} ")), "{help}");
        // By these two options envtest knows versions of both programs that are not ours.
        assert!(!help.contains("--insecure-port") && !help.contains("--unsafe-no-fsync"), "{help}");
    }
}

#[test]
fn an_api_server_that_is_started_again_has_its_data_beside_those_of_its_etcd() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("assets");
    assets(&directory);
    let port = free_port();
    let etcd_url = format!("http://127.0.0.1:{port}");
    let data = place.path().join("etcd");
    let etcd = [
        format!("--listen-client-urls={etcd_url}"),
        format!("--advertise-client-urls={etcd_url}"),
        format!("--data-dir={}", data.display()),
    ];
    let etcd = Program::start(&directory.join("etcd"), &etcd);
    let is_healthy = || answer(port, "/health").is_some_and(|it| it.starts_with("HTTP/1.1 200 OK"));
    until("etcd is healthy", is_healthy);
    assert!(answer(port, "/v3/kv").expect("it answers").starts_with("HTTP/1.1 404 "));
    let kubeconfig = data.join("interlock").join("kubeconfig");
    for round in ["first", "second"] {
        let certificates = place.path().join(round);
        std::fs::create_dir(&certificates).expect("a directory");
        let words = [
            format!("--etcd-servers={etcd_url}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", free_port()),
            format!("--cert-dir={}", certificates.display()),
            "--authorization-mode=RBAC".to_owned(),
        ];
        let server = Program::start(&directory.join("kube-apiserver"), &words);
        until("the API server is reached", || kubeconfig.is_file());
        assert_eq!(server.stop(), Some(0), "{round}");
        std::fs::remove_file(&kubeconfig).expect("it was written");
    }
    assert_eq!(etcd.stop(), Some(0));
}

#[test]
fn an_etcd_that_is_not_ours_is_named() {
    let place = tempfile::tempdir().expect("a directory");
    assets(place.path());
    let port = free_port();
    let output = Command::new(place.path().join("kube-apiserver"))
        .args([format!("--etcd-servers=http://127.0.0.1:{port}"), "--secure-port=1".to_owned()])
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("cannot reach the etcd at 127.0.0.1:{port}")), "{said}");
}
