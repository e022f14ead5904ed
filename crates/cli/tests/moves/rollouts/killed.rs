//! Agents that are killed in each phase of a request: the next one finishes, under the same token.

use super::super::fleet::{Fleet, until};
use super::{
    asked, cancel, ends_as, gate, has_exactly, hold, in_wave, map, maps, on_west, open, story,
    succeeds, token, until_one_of, until_there,
};
use serde_json::Value;

/// Kills the agent of west while the target has this token, lets something happen, and starts another one.
fn replaced(fleet: &Fleet, token_of_target: i64, meanwhile: impl FnOnce()) {
    fleet.kill("west");
    assert_eq!(token(fleet), token_of_target, "{}", story(fleet, &Value::Null));
    meanwhile();
    fleet.start("west");
}

#[test]
fn an_agent_that_is_killed_in_any_phase_before_the_end_is_followed_by_one_that_finishes() {
    let fleet = Fleet::of(&["west"]);
    succeeds(&fleet, "v1", vec![map("app", "v1"), map("only-v1", "v1")]);
    assert_eq!(token(&fleet), 1);

    // It waits: nobody has checked it.
    fleet.kill("west");
    asked("v2", vec![map("app", "v2")]).submit(&fleet);
    until_one_of(&fleet, "v2", &["Queued"]);
    assert_eq!(token(&fleet), 1);
    has_exactly(&fleet, &[("app", "v1"), ("only-v1", "v1")]);
    fleet.start("west");
    ends_as(&fleet, "v2", "Succeeded");
    assert_eq!(token(&fleet), 2);
    has_exactly(&fleet, &[("app", "v2")]);

    // Half of it is on the cluster, and the rest waits for the gate.
    let rest = in_wave(map("rest", "v3"), 6);
    let gate_v3 = in_wave(gate("gate-v3"), 5);
    asked("v3", vec![map("app", "v3"), gate_v3, rest]).submit(&fleet);
    until_there(&fleet, "pods/gate-v3");
    until_one_of(&fleet, "v3", &["Applying"]);
    replaced(&fleet, 3, || open(&fleet, "gate-v3"));
    ends_as(&fleet, "v3", "Succeeded");
    assert_eq!(token(&fleet), 3, "the next agent went on with the same target");
    has_exactly(&fleet, &[("app", "v3"), ("rest", "v3")]);

    // All of it is on the cluster, and is not healthy yet.
    asked("v4", vec![map("app", "v4"), gate("gate-v4")]).submit(&fleet);
    until_one_of(&fleet, "v4", &["Verifying"]);
    replaced(&fleet, 4, || open(&fleet, "gate-v4"));
    ends_as(&fleet, "v4", "Succeeded");
    assert_eq!(token(&fleet), 4, "the next agent went on with the same target");
    has_exactly(&fleet, &[("app", "v4")]);
    fleet.end(&[]);
}

#[test]
fn an_agent_that_is_killed_while_it_rolls_back_is_followed_by_one_that_finishes() {
    let fleet = Fleet::of(&["west"]);
    succeeds(&fleet, "v1", vec![map("app", "v1")]);
    asked("v2", vec![map("app", "v2"), map("only-v2", "v2"), gate("gate")]).submit(&fleet);
    until_one_of(&fleet, "v2", &["Verifying"]);
    assert_eq!(token(&fleet), 2);
    hold(&fleet, "only-v2", true);
    cancel(&fleet, "v2");
    let status = until_one_of(&fleet, "v2", &["RollingBack"]);
    assert_eq!(status["reason"], "Cancelled", "{status:#}");
    until("what is only in v2 is being deleted", || {
        let found = fleet.get(&on_west("configmaps/only-v2"));
        match found["metadata"]["deletionTimestamp"].is_string() {
            true => Ok(()),
            false => Err(story(&fleet, &found)),
        }
    });
    replaced(&fleet, 3, || {
        assert!(maps(&fleet).contains_key("only-v2"), "it is held");
        hold(&fleet, "only-v2", false);
    });
    let status = ends_as(&fleet, "v2", "RolledBack");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("back at version 1"), "{status:#}");
    assert_eq!(token(&fleet), 3, "the next agent went on with the same target");
    has_exactly(&fleet, &[("app", "v1")]);
    fleet.end(&[]);
}
