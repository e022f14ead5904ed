//! API servers and agents that go away in the middle of an update and come back.

use super::super::fleet::{Fleet, condition, until};
use super::{
    Asked, about_west, asked, ends_as, gate, has_exactly, in_wave, map, on_west, open, story,
    succeeds, token, until_one_of, until_there,
};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a request may take whose agent goes away for longer: an agent counts as silent after 4 s.
const DEADLINE_SECONDS: u32 = 25;

/// A version of which half is applied before its gate, and half after it.
fn in_halves(version: &str) -> Vec<Value> {
    let late = in_wave(map("late", version), 6);
    vec![map("app", version), in_wave(gate(&format!("gate-{version}")), 5), late]
}

/// Waits until the first half of a version is applied, and the second is not.
fn until_halfway(fleet: &Fleet, version: &str) {
    until_there(fleet, &format!("pods/gate-{version}"));
    until_one_of(fleet, version, &["Applying"]);
}

#[test]
fn an_update_ends_well_when_the_api_server_or_the_agent_comes_back_in_time() {
    let fleet = Fleet::of(&["west"]);
    succeeds(&fleet, "v1", vec![map("app", "v1")]);

    // The hub and the cluster are one server here: both are away.
    asked("v2", in_halves("v2")).submit(&fleet);
    until_halfway(&fleet, "v2");
    fleet.kill_hub(Duration::from_secs(2));
    assert_eq!(token(&fleet), 2, "{}", story(&fleet, &Value::Null));
    open(&fleet, "gate-v2");
    ends_as(&fleet, "v2", "Succeeded");
    assert_eq!(token(&fleet), 2, "the target is what it was");
    has_exactly(&fleet, &[("app", "v2"), ("late", "v2")]);

    // The agent is away for so long that the hub says so.
    asked("v3", in_halves("v3")).submit(&fleet);
    until_halfway(&fleet, "v3");
    fleet.kill("west");
    until("the hub says that the agent is silent", || {
        let record = about_west(&fleet, "clusterrollouts");
        let reachable = condition(&record, "TargetReachable");
        let is_said = reachable["status"] == "False" && reachable["reason"] == "Silent";
        if is_said { Ok(()) } else { Err(story(&fleet, &record)) }
    });
    open(&fleet, "gate-v3");
    fleet.start("west");
    ends_as(&fleet, "v3", "Succeeded");
    assert_eq!(token(&fleet), 3, "the target is what it was");
    has_exactly(&fleet, &[("app", "v3"), ("late", "v3")]);
    fleet.end(&[]);
}

#[test]
fn an_agent_that_is_away_beyond_the_deadline_rolls_back_when_it_returns_and_the_bundle_is_not_bad()
{
    let fleet = Fleet::of(&["west"]);
    succeeds(&fleet, "v1", vec![map("app", "v1")]);
    let how = json!({"deadlineSeconds": DEADLINE_SECONDS});
    Asked { how, ..asked("v2", in_halves("v2")) }.submit(&fleet);
    until_there(&fleet, "pods/gate-v2");
    fleet.kill("west");
    let status = until_one_of(&fleet, "v2", &["RollingBack"]);
    assert_eq!(status["reason"], "ClusterUnreachable", "{status:#}");
    // Nobody is there to roll it back.
    assert_eq!(token(&fleet), 3);
    assert!(!fleet.get(&on_west("pods/gate-v2")).is_null());

    fleet.start("west");
    let status = ends_as(&fleet, "v2", "RolledBack");
    let message = status["message"].as_str().unwrap_or_default();
    let words = format!("has not reported on it within {DEADLINE_SECONDS} s");
    assert!(message.contains(&words), "{status:#}");
    assert_eq!(token(&fleet), 3);
    has_exactly(&fleet, &[("app", "v1")]);
    assert!(fleet.get(&on_west("pods/gate-v2")).is_null(), "the gate is gone");
    let record = about_west(&fleet, "clusterrollouts");
    assert!(record["status"]["bad"].is_null(), "{record:#}");

    // So the same bundle is taken again.
    asked("again", in_halves("v2")).submit(&fleet);
    until_there(&fleet, "pods/gate-v2");
    open(&fleet, "gate-v2");
    ends_as(&fleet, "again", "Succeeded");
    has_exactly(&fleet, &[("app", "v2"), ("late", "v2")]);
    fleet.end(&[]);
}
