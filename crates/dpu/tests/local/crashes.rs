//! A crash before each call of the driver: the port is as it was before the action, or as it is after it.

use crate::support::{PORT, Scene, attach, driver, entry, watched};
use interlock_dpu::Calls;
use interlock_nodes::outside::{Action, Gate, Network, Question};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What an agent does at a port, one action after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Do {
    Adopt(&'static str, i64),
    Attach(i64),
    Isolate(i64),
    Detach(i64),
    Flood,
    Forget,
}

const STORY: &[Do] = &[
    Do::Adopt("n", 1),
    Do::Attach(2),
    Do::Flood,
    Do::Isolate(2),
    Do::Attach(3),
    Do::Detach(3),
    Do::Forget,
    Do::Attach(3),
    Do::Isolate(2),
    Do::Adopt("n", 4),
    Do::Attach(5),
    Do::Adopt("m", 0),
];

fn act(scene: &Scene, what: Do) {
    let (port, term) = (PORT.to_owned(), scene.term());
    let action = match what {
        Do::Adopt(node, floor) => Action::Adopt { port, term, node: node.to_owned(), floor },
        Do::Attach(epoch) => attach(term, entry("n", epoch)),
        Do::Isolate(floor) => Action::Isolate { port, term, node: "n".to_owned(), floor },
        Do::Detach(epoch) => Action::Detach { port, term, tag: Some(entry("n", epoch).tag) },
        Do::Flood => Action::Flood { vni: 4096, vteps: vec!["192.0.2.7".parse().unwrap()] },
        Do::Forget => Action::Forget { vni: 4096 },
    };
    scene.0.perform(&action).unwrap();
}

/// What can be read, without the term.
#[derive(Debug, Clone, PartialEq)]
struct State {
    node: Option<String>,
    floor: i64,
    gate: Gate,
    networks: Vec<Network>,
}

fn state(scene: &Scene) -> State {
    let answer = scene.0.answer(&Question::Device).unwrap();
    let port = scene.port();
    let networks = answer.networks;
    State { node: port.record.node, floor: port.record.floor, gate: port.gate, networks }
}

/// A driver that stops before its n-th call, as if the process had died there. What it did is done.
fn stopping(folder: &Path, at: usize) -> Scene {
    let made = AtomicUsize::new(0);
    let calls = Calls::watched(move |_| {
        if made.fetch_add(1, Ordering::Relaxed) == at {
            // Without the message that a panic prints.
            std::panic::resume_unwind(Box::new("stopped"));
        }
    });
    Scene(watched(folder, "boot", calls))
}

#[test]
fn a_crash_before_any_call_leaves_the_port_as_before_or_as_after_the_action() {
    let (folder, mut states) = (tempfile::tempdir().unwrap(), Vec::new());
    let scene = Scene(driver(folder.path(), "boot"));
    states.push(state(&scene));
    for what in STORY {
        act(&scene, *what);
        states.push(state(&scene));
    }
    let mut crashes = 0;
    for (number, what) in STORY.iter().enumerate() {
        for at in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let before = Scene(driver(folder.path(), "boot"));
            before.port();
            STORY[..number].iter().for_each(|what| act(&before, *what));
            let stopped = stopping(folder.path(), at);
            if catch_unwind(AssertUnwindSafe(|| act(&stopped, *what))).is_ok() {
                assert!(at > 0 || *what == Do::Isolate(2), "{what:?} calls something");
                break;
            }
            crashes += 1;
            let after = Scene(driver(folder.path(), "boot"));
            let found = state(&after);
            let mut may_be = vec![states[number].clone(), states[number + 1].clone()];
            if let Do::Attach(_) = what {
                // Opened, and the flood list not yet replaced: the next flood puts it right.
                let mut opened = states[number + 1].clone();
                opened.networks = states[number].networks.clone();
                opened.networks.iter_mut().for_each(|network| network.is_used = true);
                if opened.networks.is_empty() {
                    opened.networks.push(Network { vni: 4096, vteps: vec![], is_used: true });
                }
                may_be.push(opened);
            }
            assert!(may_be.contains(&found), "{what:?} stopped before call {at}: {found:?}");
            // Whoever comes next goes on. An attach that was done is not done again.
            if !(matches!(what, Do::Attach(_)) && found.gate != Gate::Closed) {
                act(&after, *what);
            }
            STORY[number + 1..].iter().for_each(|what| act(&after, *what));
            assert_eq!(&state(&after), states.last().unwrap(), "{what:?} at {at}");
        }
    }
    assert!(crashes > 50, "only {crashes} crashes");
}

#[test]
fn a_record_is_on_disk_before_it_replaces_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let calls = Calls::watched(move |call| log.lock().unwrap().push(call));
    let scene = Scene(watched(folder.path(), "boot", calls));
    scene.port();
    let expected = ["create", "write", "sync", "rename", "sync of the folder"];
    assert_eq!(*seen.lock().unwrap(), expected);
}
