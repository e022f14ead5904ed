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
