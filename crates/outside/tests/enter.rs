//! Commands beside real processes: what they see, when they end, and that they never outlive what a run holds.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod scene;

use interlock_outside::processes::{EnterError, Entered, Entry, Left, Locking, Signal, resize};
use scene::{Scene, lives, until};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(180);
/// A run that goes on until it is stopped.
const WAITS: &str = "while :; do sleep 0.05; done";

fn entry(script: &str) -> Entry {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    Entry { command, ..Entry::default() }
}

fn enter(scene: &Scene, entry: &Entry) -> Result<(Entered, Receiver<Left>), EnterError> {
    let (tell, told) = channel();
    let entered = scene.processes.enter("a", entry, move |left| {
        let _ = tell.send(left);
    })?;
    Ok((entered, told))
}

fn all(end: Option<OwnedFd>) -> String {
    let mut said = String::new();
    File::from(end.unwrap()).read_to_string(&mut said).unwrap();
    said
}

/// Runs a script to its end.
fn said(scene: &Scene, script: &str) -> (String, String, Left) {
    let (mut entered, told) = enter(scene, &entry(script)).unwrap();
    let (out, errors) = (all(entered.stdout.take()), all(entered.stderr.take()));
    (out, errors, told.recv_timeout(DEADLINE).unwrap())
}

#[test]
fn a_command_sees_what_the_run_sees() {
    let scene = Scene::new();
    let mut run = scene.shell("a", &format!("touch here; {WAITS}"));
    run.env.insert("GREETING".to_owned(), "hello you".to_owned());
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    scene.until_file("a", "here");
    let (out, errors, left) = said(&scene, "echo $GREETING; ls; echo oops >&2; exit 3");
    assert_eq!((out.as_str(), errors.as_str()), ("hello you\nhere\n", "oops\n"));
    assert_eq!(left, Left::Code(3));
    let (_, errors, left) = said(&scene, "exec no-such-program");
    assert_eq!(left, Left::Code(127));
    assert!(errors.contains("no-such-program"), "{errors}");
    let (_, _, left) = said(&scene, "kill -9 $$");
    assert_eq!(left, Left::Code(137));
}

#[test]
fn a_command_reads_what_is_written_to_it_and_nothing_else() {
    let scene = Scene::new();
    scene.start("a", WAITS);
    let with_input = Entry { stdin: true, ..entry("cat; echo over") };
    let (mut entered, told) = enter(&scene, &with_input).unwrap();
    let mut stdin = File::from(entered.stdin.take().unwrap());
    stdin.write_all(b"go\none\ntwo\n").unwrap();
    drop(stdin);
    assert_eq!(all(entered.stdout.take()), "go\none\ntwo\nover\n");
    assert_eq!(told.recv_timeout(DEADLINE).unwrap(), Left::Code(0));
    let (out, _, _) = said(&scene, "cat; echo nothing");
    assert_eq!(out, "nothing\n");
}

#[test]
fn a_command_with_a_terminal_has_one_of_its_own() {
    let scene = Scene::new();
    scene.start("a", WAITS);
    let script = "tty >/dev/null && echo it is; \
                  until [ \"$(stty size)\" = '37 101' ]; do sleep 0.02; done; stty size; exit 7";
    let with_terminal = Entry { stdin: true, terminal: true, ..entry(script) };
    let (entered, told) = enter(&scene, &with_terminal).unwrap();
    assert!(entered.stdin.is_none() && entered.stdout.is_none());
    let terminal = File::from(entered.terminal.unwrap());
    let mut said = String::new();
    let mut read = |expected: &str| {
        until(&format!("the terminal says {expected:?}"), || {
            let mut part = [0; 256];
            if let Ok(count) = (&terminal).read(&mut part) {
                said.push_str(&String::from_utf8_lossy(&part[..count]));
            }
            said.contains(expected)
        });
    };
    read("it is");
    resize(&terminal, 101, 37).unwrap();
    read("37 101");
    assert_eq!(told.recv_timeout(DEADLINE).unwrap(), Left::Code(7));
    // What a person types reaches it, and its control characters are signals.
    let waits = "trap 'exit 130' INT; echo ready; while :; do sleep 0.02; done";
    let (entered, told) = enter(&scene, &Entry { terminal: true, ..entry(waits) }).unwrap();
    let mut terminal = File::from(entered.terminal.unwrap());
    let mut said = Vec::new();
    until("it is ready", || {
        let mut part = [0; 64];
        said.extend(
            terminal.read(&mut part).map(|count| part[..count].to_vec()).unwrap_or_default(),
        );
        said.starts_with(b"ready")
    });
    // As often as a person would: a shell that is just starting another program can lose a signal.
    let mut left = None;
    until("it is interrupted", || {
        let _gone = terminal.write_all(&[3]);
        left = told.recv_timeout(Duration::from_millis(100)).ok();
        left.is_some()
    });
    assert_eq!(left, Some(Left::Code(130)));
}

/// As in a process that a script started in its background.
#[allow(unsafe_code)]
fn ignore_usr2() {
    // SAFETY: no handler is installed that could run at a bad moment, and no other test has to do with this signal.
    unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
}

#[test]
fn a_signal_that_the_program_itself_ignores_is_not_ignored_by_what_it_starts() {
    ignore_usr2();
    let scene = Scene::new();
    let traps = "trap 'echo trapped > trapped.new; mv trapped.new trapped' USR2; kill -USR2 $$; ";
    scene.start("a", &format!("{traps} while :; do sleep 0.02; done"));
    scene.until_file("a", "trapped");
    let (_entered, told) =
        enter(&scene, &entry("trap 'exit 3' USR2; kill -USR2 $$; exit 1")).unwrap();
    assert_eq!(told.recv_timeout(DEADLINE).unwrap(), Left::Code(3));
}

#[test]
fn a_command_ends_with_its_connection_and_takes_its_children_along() {
    let scene = Scene::new();
    scene.start("a", WAITS);
    let script = "trap '' HUP; sleep 1000 & echo $$ $! > pids.new; mv pids.new pids; wait";
    let (entered, told) = enter(&scene, &entry(script)).unwrap();
    scene.until_file("a", "pids");
    let pids = std::fs::read_to_string(scene.file("a", "pids")).unwrap();
    let pids: Vec<i32> = pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| lives(*pid)));
    drop(entered);
    told.recv_timeout(DEADLINE).unwrap();
    until("both are gone", || !pids.iter().any(|pid| lives(*pid)));
    assert!(!scene.processes.is_gone("a").unwrap(), "the run goes on");
}

#[test]
fn a_command_ends_with_the_run() {
    let scene = Scene::new();
    let started = scene.start("a", WAITS);
    let (_entered, told) =
        enter(&scene, &entry("trap '' HUP TERM; while :; do sleep 0.05; done")).unwrap();
    // Not by a signal to the run as a whole, which would reach the command itself.
    assert!(
        std::process::Command::new("kill")
            .args(["-9", &started.pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(told.recv_timeout(DEADLINE).unwrap(), Left::WithTheRun);
    scene.until_gone("a");
}

#[test]
fn nobody_has_the_lock_while_a_command_lives() {
    let scene = Scene::new();
    let started = scene.start("a", WAITS);
    // It leaves its session, so that nothing but the variables of the run tells whose it is.
    let script = "setsid sh -c 'trap \"\" HUP; touch away; while [ ! -e ../go ]; do sleep 0.02; done' & wait";
    let (_entered, _told) = enter(&scene, &entry(script)).unwrap();
    scene.until_file("a", "away");
    assert!(
        std::process::Command::new("kill")
            .args(["-9", &started.pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
    until("the leader is gone", || !lives(started.pid));
    assert!(!scene.processes.is_free("volumes").unwrap());
    assert!(matches!(scene.processes.lock("volumes").unwrap(), Locking::HeldByAnother { .. }));
    assert!(!scene.processes.is_gone("a").unwrap());
    // The run cannot be started again either, nor can anything be run beside what is left of it.
    assert!(matches!(enter(&scene, &entry("true")), Err(EnterError::NotThere { .. })));
    until("a kill of the run reaches it", || {
        scene.processes.signal("a", Signal::Kill).unwrap();
        scene.processes.is_gone("a").unwrap()
    });
    until("the lock is free", || scene.processes.is_free("volumes").unwrap());
}

#[test]
fn nothing_is_run_beside_what_does_not_live_or_was_killed() {
    let scene = Scene::new();
    assert!(matches!(enter(&scene, &entry("true")), Err(EnterError::NotThere { .. })));
    scene.start("a", "trap '' TERM; touch there; while :; do sleep 0.05; done");
    scene.until_file("a", "there");
    assert_eq!(said(&scene, "echo yes").0, "yes\n");
    scene.processes.signal("a", Signal::Term).unwrap();
    assert_eq!(said(&scene, "echo still").0, "still\n", "it may be asked why it does not end");
    scene.processes.signal("a", Signal::Kill).unwrap();
    assert!(matches!(enter(&scene, &entry("true")), Err(EnterError::NotThere { .. })));
    scene.until_gone("a");
}

#[test]
fn words_that_are_no_command_are_refused() {
    let scene = Scene::new();
    scene.start("a", WAITS);
    for words in [vec![], vec![""], vec!["-c", "x"], vec!["echo", "a\0b"]] {
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        let refused = enter(&scene, &Entry { command, ..Entry::default() });
        assert!(
            matches!(refused, Err(EnterError::NoCommand | EnterError::ZeroByte)),
            "{words:?} was not refused"
        );
    }
}

#[test]
fn a_command_beside_a_run_does_nothing_before_it_was_let_go() {
    let scene = Scene::new();
    let started = scene.start("a", WAITS);
    assert!(
        std::process::Command::new("kill")
            .args(["-9", &started.pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
    until("the leader is gone", || !lives(started.pid));
    assert!(enter(&scene, &entry("touch trace")).is_err());
    scene.until_gone("a");
    assert!(!scene.file("a", "trace").exists());
}

#[test]
fn only_the_ports_of_a_run_are_its_ports() {
    let scene = Scene::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let others_port = other.local_addr().unwrap().port();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = format!(
        "exec perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(LocalAddr => \"127.0.0.1\", \
         LocalPort => {free}, Listen => 5, ReuseAddr => 1) or die $!; \
         while (my $c = $s->accept) {{ print $c \"hello\\n\"; close $c }}'"
    );
    scene.start("a", &script);
    let mut address = None;
    until("it listens", || {
        address = scene.processes.listening("a", free).unwrap();
        address.is_some()
    });
    let mut hello = String::new();
    TcpStream::connect(address.unwrap()).unwrap().read_to_string(&mut hello).unwrap();
    assert_eq!(hello, "hello\n");
    assert_eq!(scene.processes.listening("a", others_port).unwrap(), None, "it is ours");
    assert_eq!(scene.processes.listening("nobody", free).unwrap(), None);
}
