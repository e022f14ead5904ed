//! Agents that are stopped in each phase of a request, and wake up after others have brought the cluster elsewhere.
//!
//! What the agent itself writes when it wakes is a matter of chance: mostly it knows that it does not lead any more. So
//! the write that it may have been about to make is made here too, as the very user that it writes as.

use super::super::fleet::{Fleet, GROUP, until};
use super::super::harness::Answer;
use super::{
    UPDATES, about_west, asked, cancel, ends_as, gate, has_exactly, hold, in_wave, map, maps,
    on_west, open, story, succeeds, token, until_one_of, until_there,
};
use interlock_programs::Account;
use serde_json::{Value, json};

/// Enough objects that an agent can be stopped between two of them.
const OBJECTS: usize = 40;

fn late(number: usize) -> String {
    format!("late-{number}")
}

/// Makes an object of the second version, as an agent does under a token.
fn create(fleet: &Fleet, token: i64, options: &str) -> Answer {
    let cluster = fleet.get(&format!("{GROUP}/workloadclusters/west"));
    let name = "of-a-late-agent";
    let mut object = map(name, "v2");
    object["metadata"]["labels"] = json!({"interlock.dev/rollout": cluster["metadata"]["uid"]});
    object["metadata"]["annotations"] = json!({
        "interlock.dev/id": format!("/ConfigMap/default/{name}"),
        "interlock.dev/token": token.to_string(),
    });
    let mut agent = fleet.client().acting_as(&Account::Applier.user(Some("west")));
    let path = on_west(&format!("configmaps{options}"));
    agent.call("POST", &path, Some(&object)).expect("the cluster answers")
}

/// What an agent would make under an older token than that of the fence is refused, and for that.
fn is_refused(fleet: &Fleet, token: i64, fence: i64) {
    let refused = create(fleet, token, "");
    assert_eq!(refused.status, 422, "{refused:?}");
    let words = format!("Fenced: the write has token {token}, and the fence is at {fence}");
    assert!(refused.text.contains(&words), "{refused:?}");
}

#[test]
fn an_agent_that_wakes_up_after_the_rollback_makes_nothing_and_exactly_the_target_is_left() {
    let fleet = Fleet::of(&["west"]);
    succeeds(&fleet, "v1", vec![map("app", "v1")]);
    let mut objects: Vec<Value> = (0..OBJECTS).map(|number| map(&late(number), "v2")).collect();
    // It is never healthy: this version does not succeed, however fast the next agent is.
    objects.extend([map("app", "v2"), in_wave(gate("gate"), 5)]);
    asked("v2", objects).submit(&fleet);
    until("v2 begins", || match maps(&fleet).values().any(|version| version == "v2") {
        true => Ok(()),
        false => Err(story(&fleet, &Value::Null)),
    });
    fleet.freeze("west");
    assert_eq!(token(&fleet), 2);
    let now = create(&fleet, 2, "?dryRun=All");
    assert_eq!(now.status, 201, "under the token of the target it is taken: {now:?}");

    fleet.start("west");
    cancel(&fleet, "v2");
    ends_as(&fleet, "v2", "RolledBack");
    assert_eq!(token(&fleet), 3);
    has_exactly(&fleet, &[("app", "v1")]);

    fleet.thaw();
    is_refused(&fleet, 2, 3);
    // It was refused for its token, and for nothing else.
    let now = create(&fleet, 3, "?dryRun=All");
    assert_eq!(now.status, 201, "{now:?}");
    has_exactly(&fleet, &[("app", "v1")]);

    // Whatever the agent that woke up does beside the other one, the cluster gets to the next version, and to no other.
    succeeds(&fleet, "v3", vec![map("app", "v3")]);
    has_exactly(&fleet, &[("app", "v3")]);
    fleet.end(&[]);
}

/// Stops the agent of west, and starts another one beside it.
fn stopped(fleet: &Fleet, token_of_target: i64) {
    fleet.freeze("west");
    assert_eq!(token(fleet), token_of_target, "{}", story(fleet, &Value::Null));
    fleet.start("west");
}

/// Lets requests for west start, or makes them wait.
fn pause(fleet: &Fleet, is_paused: bool) {
    let record = about_west(fleet, "clusterrollouts");
    let name = record["metadata"]["name"].as_str().expect("west has a record");
    let path = format!("{GROUP}/clusterrollouts/{name}");
    fleet.client().must("PATCH", &path, Some(&json!({"spec": {"paused": is_paused}})));
}

/// Waits until the agent of west has checked a request.
fn until_checked(fleet: &Fleet, name: &str) {
    until(&format!("the request {name} is checked"), || {
        let uid = fleet.get(&format!("{UPDATES}/{name}"))["metadata"]["uid"].clone();
        let said = about_west(fleet, "rolloutreports")["status"]["preflight"].clone();
        match uid.is_string() && said["uid"] == uid {
            true => Ok(()),
            false => Err(story(fleet, &said)),
        }
    });
}

#[test]
fn agents_that_are_stopped_in_the_other_phases_and_wake_up_much_later_leave_exactly_the_target() {
    let fleet = Fleet::of(&["west"]);
    succeeds(&fleet, "v1", vec![map("app", "v1"), map("only-v1", "v1")]);

    // Queued: the first agent has checked it, and does not see it start.
    pause(&fleet, true);
    asked("v2", vec![map("app", "v2")]).submit(&fleet);
    until_checked(&fleet, "v2");
    until_one_of(&fleet, "v2", &["Queued"]);
    stopped(&fleet, 1);
    pause(&fleet, false);
    ends_as(&fleet, "v2", "Succeeded");
    assert_eq!(token(&fleet), 2);
    has_exactly(&fleet, &[("app", "v2")]);

    // Verifying: the second one does not see that it is healthy.
    asked("v3", vec![map("app", "v3"), map("only-v3", "v3"), gate("gate-v3")]).submit(&fleet);
    until_one_of(&fleet, "v3", &["Verifying"]);
    stopped(&fleet, 3);
    open(&fleet, "gate-v3");
    ends_as(&fleet, "v3", "Succeeded");
    assert_eq!(token(&fleet), 3);
    has_exactly(&fleet, &[("app", "v3"), ("only-v3", "v3")]);

    // RollingBack: the third one does not see that what is only in the fourth version goes.
    asked("v4", vec![map("app", "v4"), map("only-v4", "v4"), gate("gate-v4")]).submit(&fleet);
    until_one_of(&fleet, "v4", &["Verifying"]);
    hold(&fleet, "only-v4", true);
    cancel(&fleet, "v4");
    until_one_of(&fleet, "v4", &["RollingBack"]);
    until("the fence is raised for the rollback", || {
        let said = about_west(&fleet, "rolloutreports")["status"]["fence"].clone();
        if said["token"] == 5 { Ok(()) } else { Err(story(&fleet, &said)) }
    });
    stopped(&fleet, 5);
    hold(&fleet, "only-v4", false);
    // It went with the fourth version, and is made anew.
    until_there(&fleet, "pods/gate-v3");
    open(&fleet, "gate-v3");
    ends_as(&fleet, "v4", "RolledBack");
    assert_eq!(token(&fleet), 5);
    has_exactly(&fleet, &[("app", "v3"), ("only-v3", "v3")]);
    succeeds(&fleet, "v5", vec![map("app", "v5")]);
    has_exactly(&fleet, &[("app", "v5")]);

    fleet.thaw();
    for token in [1, 3, 5] {
        is_refused(&fleet, token, 6);
    }
    has_exactly(&fleet, &[("app", "v5")]);
    succeeds(&fleet, "v6", vec![map("app", "v6")]);
    has_exactly(&fleet, &[("app", "v6")]);
    fleet.end(&[]);
}
