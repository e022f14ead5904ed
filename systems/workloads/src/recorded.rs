//! For the tests of rooms that no world explores: facts that are read back from a record give the same decision.

use interlock_kernel::testing::{Dice, TestServers, spoil};
use interlock_kernel::{Controller, LiveReads, Nothing, Subject};
use serde_json::Value;
use std::collections::BTreeSet;

/// As many ways to spoil the objects as make most of the rows of a room.
const SEEDS: u64 = 400;

/// Takes a step on these objects, whole and spoilt, and asks the rules again about the facts as JSON.
pub(crate) fn judged_again<C: Controller<Outside = Nothing>>(controller: &C, objects: &[Value]) {
    let mut decisions = BTreeSet::new();
    for seed in 0..SEEDS {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut spoilt = objects.to_vec();
        if seed > 0 {
            let place = dice.below(spoilt.len());
            spoil(&mut spoilt[place], &mut dice);
        }
        let servers =
            TestServers::of(controller as &dyn Controller<Outside = Nothing>).with(spoilt);
        for subject in servers.subjects(controller) {
            decisions.extend(judged(controller, &servers, &subject));
        }
    }
    assert!(decisions.len() > 1, "the objects make more than one row: {decisions:?}");
}

fn judged<C: Controller<Outside = Nothing>>(
    controller: &C,
    servers: &TestServers,
    subject: &Subject,
) -> Option<String> {
    let view = servers.view();
    let (_, decided) = controller.step_on_record(subject, &view, &LiveReads::default());
    let decided = decided?;
    let read =
        |text: &str| -> Value { serde_json::from_str(text).expect("it was written as JSON") };
    let facts = read(&decided.facts);
    let again = controller.judge(&facts).expect("these are its facts").expect("it is a room");
    assert_eq!(again, read(&decided.decision), "{facts}");
    Some(decided.decision)
}
