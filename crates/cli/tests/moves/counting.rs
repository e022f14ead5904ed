//! What a move costs is the same in a large fleet as in a small one.

use super::fleet::{Fleet, GROUP, condition, until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

const MOVES: usize = 10;
/// So many namespaces are placed at once: a machine that is busy with other things has to keep up.
const BATCH: usize = 50;
/// So many looks in a row must show that nothing more is written.
const STILL: usize = 40;
/// The pause before a look.
const PAUSE: Duration = Duration::from_millis(20);
/// More writes than a large fleet needs to come to rest.
const MOST_WRITES: u64 = 20_000;

fn name(number: usize) -> String {
    format!("ns-{number}")
}

/// Waits until these namespaces run on a cluster.
fn run_on(fleet: &Fleet, numbers: std::ops::Range<usize>, cluster: &str) {
    let asked: BTreeSet<String> = numbers.map(name).collect();
    let is_there = |grant: &&Value| {
        let namespace = grant["spec"]["namespace"]["name"].as_str().unwrap_or_default();
        asked.contains(namespace)
            && grant["status"]["phase"] == "Granted"
            && grant["status"]["owner"]["name"] == cluster
            && condition(grant, "Running")["status"] == "True"
    };
    until(&format!("{} run on {cluster}", asked.len()), || {
        let grants = fleet.get(&format!("{GROUP}/grants"));
        let there = grants["items"].as_array().into_iter().flatten().filter(is_there).count();
        if there == asked.len() { Ok(()) } else { Err(format!("{there} do")) }
    });
}

/// How many writes the server has done, without those that go on for ever: heartbeats and leases.
/// Events are reported beside the work, and not all of them.
fn writes(fleet: &Fleet) -> u64 {
    let answer = fleet.client().call("GET", "/metrics", None).expect("the hub answers");
    let lines = answer.text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
    let of = |line: &str, label: &str| -> String {
        let value = line.split_once(&format!("{label}=\"")).expect(line).1;
        value.split('"').next().unwrap_or_default().to_owned()
    };
    let counted = lines.filter(|line| {
        let verb = of(line, "verb");
        let resource = of(line, "resource");
        let goes_on = ["leases", "workloadclusters", "events"];
        ["create", "update", "patch", "apply", "delete"].contains(&verb.as_str())
            && !goes_on.iter().any(|other| resource.starts_with(other))
            && of(line, "code").starts_with('2')
    });
    let number = |line: &str| line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
    counted.map(|line| number(line).expect(line)).sum()
}

/// Waits until nothing more is written; how many writes there were until then. A machine that is busy
/// with other things may take long, so what is limited is the number of writes.
fn writes_at_rest(fleet: &Fleet) -> u64 {
    let first = writes(fleet);
    let mut last = first;
    loop {
        let is_still = (0..STILL).all(|_| {
            thread::sleep(PAUSE);
            writes(fleet) == last
        });
        if is_still {
            return last;
        }
        last = writes(fleet);
        assert!(last - first < MOST_WRITES, "writes go on: {first} at first, {last} now");
    }
}

/// How many writes a move takes, of a few that begin together.
fn writes_of_a_move(fleet: &Fleet, to: &str) -> f64 {
    let before = writes_at_rest(fleet);
    (0..MOVES).for_each(|number| fleet.place_on(&name(number), to));
    run_on(fleet, 0..MOVES, to);
    (writes_at_rest(fleet) - before) as f64 / MOVES as f64
}

#[test]
fn a_move_takes_as_many_writes_in_a_large_fleet_as_in_a_small_one() {
    let fleet = Fleet::of(&["west", "east"]);
    let (mut placed, mut costs) = (0, Vec::new());
    for (size, to) in [(10, "east"), (100, "west")] {
        while placed < size {
            let batch = placed..size.min(placed + BATCH);
            batch.clone().for_each(|number| {
                fleet.place_empty(&name(number), "west");
            });
            run_on(&fleet, batch.clone(), "west");
            placed = batch.end;
        }
        costs.push(writes_of_a_move(&fleet, to));
    }
    eprintln!("writes of a move among 10 and among 100: {costs:?}");
    let (small, large) = (costs[0], costs[1]);
    assert!(small > 5.0, "too few to be a move: {costs:?}");
    // Who comes first decides whether two labels are written at once or one after the other.
    assert!(large < small + 3.0, "it grows with the fleet: {costs:?}");
    assert!(large.max(small) < 24.0, "too many: {costs:?}");
    fleet.end(&[]);
}
