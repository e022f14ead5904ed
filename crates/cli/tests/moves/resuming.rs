//! `interlock up`, stopped and started again.

use super::fleet::{GROUP, interlock, place, until};
use super::harness::{DataDirectory, Process};
use super::numbers::Numbers;
use super::processes::{Watcher, left_in, signal};
use serde_json::Value;

/// Kills what a test left behind.
struct Guard<'a>(&'a DataDirectory);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        for (pid, _) in left_in(&self.0.path("")) {
            signal(pid, "KILL");
        }
    }
}

fn up(at: &DataDirectory) -> Process {
    let mut command = interlock();
    command.args(["up", "--clusters", "west,east", "--listen", "127.0.0.1:0", "--insecure-http"]);
    command.arg("--data-dir").arg(at.data()).arg("--token-file").arg(at.tokens());
    command.arg("--allow-root-processes");
    Process::spawn(command).ready()
}

/// The grant, once its owner has written something after this number.
fn writes_on(up: &Process, uid: &str, numbers: &Numbers, after: u64) -> Value {
    let name = interlock_api::names::grant_name("ledger", uid);
    until("the writer writes", || {
        let grant = up.client().call("GET", &format!("{GROUP}/grants/{name}"), None);
        let grant = grant.expect("the hub answers").json();
        let last = numbers.last().filter(|last| last.number > after);
        let is_written = last.is_some_and(|last| grant["status"]["epoch"] == last.epoch);
        if is_written { Ok(grant) } else { Err(format!("{grant:#}\n{}", up.says())) }
    })
}

fn get(up: &Process, path: &str) -> Value {
    let answer = up.client().call("GET", &format!("{GROUP}/{path}"), None);
    let answer = answer.expect("the hub answers");
    if answer.status == 200 { answer.json() } else { Value::Null }
}

/// Stops it; nothing may be left.
fn stop(mut up: Process, at: &DataDirectory, with: &str) {
    up.signal(with);
    let (status, _) = up.end();
    assert!(status.success(), "{status}: {}", up.says());
    let left = left_in(&at.path(""));
    assert!(left.is_empty(), "processes are left: {left:?}\n{}", up.says());
    let said = up.says();
    let refused = said.lines().find(|line| line.contains("cannot") && line.contains("User"));
    assert_eq!(refused, None, "somebody asked for what their role does not allow");
}

#[test]
fn up_resumes_the_same_fleet() {
    let at = DataDirectory::new();
    let _guard = Guard(&at);
    let numbers = Numbers::in_new(at.path("numbers"));
    let watcher = Watcher::of(numbers.directory());

    let first = up(&at);
    let uid = place(&mut first.client(), "ledger", "east", &numbers);
    let before = writes_on(&first, &uid, &numbers, 0);
    stop(first, &at, "TERM");
    let written = numbers.last().expect("it wrote").number;

    let second = up(&at);
    let after = writes_on(&second, &uid, &numbers, written);
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(after["status"]["owner"], before["status"]["owner"]);
    assert_eq!(after["status"]["owner"]["name"], "east");
    assert_eq!(after["status"]["epoch"], 1, "nothing was taken back and granted again");
    stop(second, &at, "INT");

    assert_eq!(numbers.prove_one_writer_after_another(), [1]);
    let seen = watcher.saw();
    assert!(seen.together.is_empty() && seen.with_one > 10, "{seen:?}");
}

#[test]
fn the_first_start_makes_tenants_and_machines_and_a_second_one_brings_back_none_that_was_deleted() {
    let at = DataDirectory::new();
    let _guard = Guard(&at);
    let first = up(&at);
    for name in ["n1", "n2"] {
        until(&format!("{name} is in the pool"), || {
            let found = get(&first, &format!("physicalnodes/{name}"));
            let is_there = found["status"]["phase"] == "Available";
            if is_there { Ok(()) } else { Err(format!("{found:#}\n{}", first.says())) }
        });
    }
    let kept = ["tenants/blue", "tenants/green", "racks/r1", "physicalnodes/n1"];
    let before = kept.map(|path| get(&first, path)["metadata"]["uid"].clone());
    assert!(before.iter().all(Value::is_string), "{before:?}");
    first.client().must("DELETE", &format!("{GROUP}/physicalnodes/n2"), None);
    until("n2 is deleted", || {
        let found = get(&first, "physicalnodes/n2");
        if found.is_null() { Ok(()) } else { Err(format!("{found:#}\n{}", first.says())) }
    });
    stop(first, &at, "TERM");

    let second = up(&at);
    assert_eq!(kept.map(|path| get(&second, path)["metadata"]["uid"].clone()), before);
    assert!(get(&second, "physicalnodes/n2").is_null());
    stop(second, &at, "INT");
}
