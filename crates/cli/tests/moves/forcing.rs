//! An owner that is cut off.

use super::fleet::{Fleet, GROUP, until};
use super::processes::{Watcher, signal, writers};
use serde_json::{Value, json};

/// The words of a command line as a shell would have them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('"').enumerate() {
        if place % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// The command that `explain` says to go on with, once it says that the owner sends no heartbeat.
fn told_to_force(fleet: &Fleet) -> Vec<String> {
    let line = until("it is reported that the owner is silent", || {
        let said = fleet.run(&["explain", "ledger"]);
        let next = said.out.lines().find_map(|line| line.strip_prefix("next: "));
        let next = next.filter(|next| next.starts_with("interlock force-release"));
        let is_reported = said.code == Some(1) && said.out.contains("west has sent no heartbeat");
        match next {
            Some(next) if is_reported => Ok(next.to_owned()),
            _ => Err(fleet.story(&json!(format!("{said:?}")))),
        }
    });
    let said = fleet.run(&["status", "ledger"]);
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(said.out.contains(&line) && said.out.contains("OwnerUnreachable"), "{said:#?}");
    words(&line)
}

fn only<T: std::fmt::Debug>(found: Vec<T>) -> T {
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().expect("it was counted")
}

fn copy_on<'a>(grant: &'a Value, cluster: &str) -> &'a Value {
    let copies = grant["status"]["copies"].as_array().expect("a list");
    copies.iter().find(|copy| copy["cluster"]["name"] == cluster).unwrap_or(&Value::Null)
}

#[test]
fn an_owner_that_is_cut_off_is_held_until_forced() {
    let fleet = Fleet::of(&["west", "east"]);
    let numbers = fleet.numbers();
    let watcher = Watcher::of(numbers.directory());
    let uid = fleet.place_with_claim("ledger", "west", &numbers);
    fleet.writes_on("ledger", &uid, "west");
    let volume = only(fleet.volumes("west"));
    std::fs::write(volume.join("orders"), "what west wrote").expect("the volume is a folder");
    let writer = writers(numbers.directory());

    fleet.kill("west");
    fleet.place_on("ledger", "east");
    let line = told_to_force(&fleet);
    let wanted = ["interlock", "force-release", "ledger", "--owner", "west", "--epoch", "1"];
    assert_eq!(line[..wanted.len()], wanted, "{line:?}");
    let grant = fleet.grant("ledger", &uid);
    assert_eq!(
        (&grant["status"]["epoch"], &grant["status"]["owner"]["name"]),
        (&json!(1), &json!("west"))
    );
    assert_eq!(writers(numbers.directory()), writer, "it writes on, and nobody else does");

    // That the attestation is true is the business of whoever gives it.
    for writer in &writer {
        signal(writer.pid, "KILL");
    }
    until("the writer is dead", || {
        let left = writers(numbers.directory());
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    let mut args: Vec<&str> = line[1..].iter().map(String::as_str).collect();
    args.push("--yes");
    let said = fleet.run(&args);
    assert_eq!(said.code, Some(0), "{said:#?}");
    assert!(said.out.contains("applied: west is declared gone"), "{said:#?}");
    let grant = fleet.writes_on("ledger", &uid, "east");
    assert_eq!(grant["status"]["epoch"], 2);
    assert_eq!(copy_on(&grant, "west")["state"], "Unclosed");

    fleet.start("west");
    let grant = until("west says what became of it", || {
        let grant = fleet.grant("ledger", &uid);
        let is_settled = copy_on(&grant, "west")["state"] == "Diverged";
        if is_settled { Ok(grant) } else { Err(fleet.story(&grant)) }
    });
    assert_eq!(copy_on(&grant, "east")["state"], "Live");
    let here = fleet.downstream("west", "ledger", &uid);
    let notes = &here["metadata"]["annotations"];
    assert_eq!(notes["interlock.dev/released"], "1", "{here:#}");
    assert_eq!(notes["interlock.dev/running"].as_str().unwrap_or_default(), "", "{here:#}");
    let kept = std::fs::read_to_string(volume.join("orders")).expect("its volume is kept");
    assert_eq!(kept, "what west wrote");
    let entries = std::fs::read_dir(only(fleet.volumes("east"))).expect("a folder");
    assert_eq!(entries.count(), 0, "there was no snapshot, so east began with nothing");
    let said = fleet.run(&["status", "ledger"]);
    assert_eq!(said.code, Some(1), "a person has to say what happens to the copy: {said:#?}");
    let seen = watcher.saw();
    assert!(seen.together.is_empty() && seen.with_one > 100, "{seen:?}");
    assert_eq!(numbers.prove_one_writer_after_another(), [1, 2]);

    // Until then it is kept; the namespace cannot go either.
    let forget = json!({"metadata": {"annotations": {
        "interlock.dev/forget-copies": grant["metadata"]["uid"],
    }}});
    fleet.client().must("PATCH", &format!("{GROUP}/workloadclusters/west"), Some(&forget));
    until("the copy is forgotten", || {
        let grant = fleet.grant("ledger", &uid);
        if copy_on(&grant, "west").is_null() { Ok(()) } else { Err(fleet.story(&grant)) }
    });
    fleet.end(&["ledger"]);
}
