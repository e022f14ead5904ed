//! A writer that is moved around while everything around it is killed.

use super::fleet::{CONTROLLERS, Fleet, HUB, until};
pub(crate) use super::harness::random::{Random, seed};
use super::harness::version;
use super::processes::{Watcher, writers};
use std::thread;
use std::time::Duration;

pub(crate) const MOVES: usize = 10;

/// How often something was done to the fleet.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) killed: u32,
    /// The server itself, with all that it had not told anybody yet.
    pub(crate) hub_killed: u32,
    /// Stopped, replaced by another one, and let go on beside it with all that it believed.
    pub(crate) frozen: u32,
    /// Either of these, while the namespace was between two owners.
    pub(crate) in_the_middle: u32,
}

impl Done {
    /// Takes lives in the middle of a move, and gives them back.
    pub(crate) fn disturb(
        &mut self,
        fleet: &Fleet,
        namespace: &str,
        uid: &str,
        random: &mut Random,
    ) {
        for _ in 0..1 + random.below(3) {
            let names = [CONTROLLERS, "west", "east", HUB];
            let name = names[usize::try_from(random.below(4)).expect("it is below four")];
            // A move takes a tenth of a second and more: this is some moment in it.
            thread::sleep(Duration::from_millis(random.below(150)));
            if name == HUB {
                // What it says now it must still say when it is back, or something later.
                let before = fleet.grant(namespace, uid);
                fleet.kill_hub(Duration::from_millis(random.below(3) * 100));
                let after = fleet.grant(namespace, uid);
                assert!(version(&before) <= version(&after), "from {before:#} to {after:#}");
                self.hub_killed += 1;
                self.in_the_middle += u32::from(before["status"]["phase"] != "Granted");
                continue;
            }
            if random.below(4) == 0 {
                fleet.freeze(name);
                self.frozen += 1;
            } else {
                fleet.kill(name);
                self.killed += 1;
            }
            let phase = &fleet.grant(namespace, uid)["status"]["phase"];
            self.in_the_middle += u32::from(phase != "Granted");
            // Sometimes it is away for a while.
            thread::sleep(Duration::from_millis(random.below(3) * 100));
            fleet.start(name);
        }
        // Long enough that others have taken over in many cases, and not in all.
        thread::sleep(Duration::from_millis(random.below(2_500)));
        fleet.thaw();
    }
}

#[test]
fn a_writer_moves_ten_times_under_random_kills() {
    let fleet = Fleet::of(&["west", "east"]);
    let numbers = fleet.numbers();
    let watcher = Watcher::of(numbers.directory());
    let uid = fleet.place("ledger", "west", &numbers);
    fleet.writes_on("ledger", &uid, "west");
    let (mut random, mut done) = (Random(seed()), Done::default());
    for to in ["east", "west"].iter().cycle().take(MOVES) {
        fleet.place_on("ledger", to);
        done.disturb(&fleet, "ledger", &uid, &mut random);
        fleet.writes_on("ledger", &uid, to);
    }
    let (found, grant) = (writers(numbers.directory()), fleet.grant("ledger", &uid));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(grant["status"]["epoch"], 1 + MOVES as i64, "every move is one epoch");
    fleet.delete("ledger");
    until("no writer is left", || match &writers(numbers.directory())[..] {
        [] => Ok(()),
        left => Err(format!("{left:?}")),
    });
    let seen = watcher.saw();
    assert!(seen.together.is_empty(), "two writers at once (seed {}): {seen:?}", seed());
    assert!(seen.with_one > 100, "too little: {seen:?}");
    assert!(done.in_the_middle > 0 && done.hub_killed > 1, "too little: {done:?}");
    eprintln!("{done:?}, {} looks", seen.looks);
    let epochs: Vec<i64> = (1..=1 + MOVES as i64).collect();
    assert_eq!(numbers.prove_one_writer_after_another(), epochs, "every owner wrote");
    fleet.end(&[]);
}
