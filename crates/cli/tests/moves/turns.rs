//! MaintenanceTurns, as `interlock up` serves them.

use super::fleet::{GROUP, until};
use super::registering::Up;
use serde_json::json;

/// Waits until `interlock status` shows these words.
fn shows(up: &Up, wanted: &str) {
    until(wanted, || {
        let words = up.run(&["status"]).split_whitespace().collect::<Vec<_>>().join(" ");
        if words.contains(wanted) { Ok(()) } else { Err(words) }
    });
}

#[test]
fn a_cluster_has_one_turn_after_the_other() {
    let (up, turns) = (Up::start(), format!("{GROUP}/maintenanceturns"));
    for (name, then) in [("disks", "Open Opened"), ("kernel", "Waiting OtherTurn")] {
        let turn = json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "MaintenanceTurn",
            "metadata": {"name": name}, "spec": {"cluster": "west"}});
        up.process.client().must("POST", &turns, Some(&turn));
        shows(&up, &format!("west {name} {then}"));
    }
    up.delete(&format!("{turns}/disks"));
    shows(&up, "west kernel Open Opened");
    up.end();
}
