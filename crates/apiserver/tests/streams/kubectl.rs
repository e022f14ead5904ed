//! kubectl itself, over WebSocket as it is now and over SPDY as it was: skipped where there is none.

use crate::wire::Reached;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// kubectl, if it is on the machine.
fn kubectl() -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = assets.into_iter().chain(std::env::split_paths(&path));
    let found = folders.map(|folder| folder.join("kubectl")).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: there is no kubectl in KUBEBUILDER_ASSETS or PATH");
    }
    found
}

/// Which protocol is asked for.
const PROTOCOLS: [&str; 2] = ["true", "false"];

fn command(kubectl: &PathBuf, reached: &Reached, websockets: &str, args: &[&str]) -> Command {
    let mut command = Command::new(kubectl);
    let home = std::env::temp_dir();
    let server = format!("https://{}/clusters/west", reached.address);
    let authority = reached.authority_file();
    command.env_clear().env("HOME", home).env("KUBECONFIG", "/dev/null");
    command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets);
    command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets);
    command.arg(format!("--server={server}")).arg("--token=admin-token");
    command.arg("--certificate-authority").arg(authority).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end, with this to read.
async fn run(mut command: Command, input: &'static [u8]) -> Output {
    let ended = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("it reads");
        // It may end before it has read all.
        let _ = stdin.write_all(input);
        drop(stdin);
        child.wait_with_output().expect("kubectl ends")
    });
    ended.await.expect("no panic")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_logs() {
    let Some(kubectl) = kubectl() else { return };
    let reached = Reached::with_tls().await;
    let logs = command(&kubectl, &reached, "true", &["logs", "web", "--tail=5", "-f"]);
    let output = run(logs, b"").await;
    assert_eq!(text(&output.stdout), "\"one\"\n\"two\"\n", "{}", text(&output.stderr));
    let logs = command(&kubectl, &reached, "true", &["logs", "web", "-c", "db"]);
    let output = run(logs, b"").await;
    assert!(text(&output.stderr).contains("container db is not valid"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_runs_commands() {
    let Some(kubectl) = kubectl() else { return };
    let reached = Reached::with_tls().await;
    for websockets in PROTOCOLS {
        let cat = command(&kubectl, &reached, websockets, &["exec", "-i", "web", "--", "cat"]);
        let output = run(cat, b"hello\nyou\n").await;
        assert!(output.status.success(), "websockets {websockets}: {output:?}");
        assert_eq!(text(&output.stdout), "hello\nyou\n", "websockets {websockets}");
        let exit = command(&kubectl, &reached, websockets, &["exec", "web", "--", "exit", "3"]);
        let output = run(exit, b"").await;
        assert_eq!(output.status.code(), Some(3), "websockets {websockets}: {output:?}");
        let none = command(&kubectl, &reached, websockets, &["exec", "web", "--", "nonsense"]);
        let output = run(none, b"").await;
        let said = text(&output.stderr);
        assert!(said.contains("there is no command"), "websockets {websockets}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_forwards_ports() {
    let Some(kubectl) = kubectl() else { return };
    let reached = Reached::with_tls().await;
    for websockets in PROTOCOLS {
        let mut forward =
            command(&kubectl, &reached, websockets, &["port-forward", "pod/web", ":80", ":81"]);
        let said = tokio::task::spawn_blocking(move || {
            let mut child = forward.spawn().expect("kubectl starts");
            let lines = BufReader::new(child.stdout.take().expect("it writes")).lines();
            // `Forwarding from 127.0.0.1:40000 -> 80`
            let address = |line: &str, port: &str| {
                let rest = line.strip_prefix("Forwarding from ")?;
                rest.strip_suffix(&format!(" -> {port}")).map(str::to_owned)
            };
            let mut lines = lines.map_while(Result::ok);
            let works = lines.find_map(|line| address(&line, "80")).expect("an address");
            let fails = lines.find_map(|line| address(&line, "81")).expect("an address");
            let mut said = Vec::new();
            for _ in 0..2 {
                let mut connection = TcpStream::connect(&works).expect("kubectl listens");
                connection.read_to_end(&mut said).expect("it is read to its end");
            }
            let mut connection = TcpStream::connect(&fails).expect("kubectl listens");
            let _ = connection.read_to_end(&mut Vec::new());
            let _ = child.kill();
            let output = child.wait_with_output().expect("kubectl ends");
            (text(&said), text(&output.stderr))
        });
        let (said, errors) = said.await.expect("no panic");
        assert_eq!(said, "hellohello", "websockets {websockets}: {errors}");
        assert!(errors.contains("does not listen on 81"), "websockets {websockets}: {errors}");
    }
}
