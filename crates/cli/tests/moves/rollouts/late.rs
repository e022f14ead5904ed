//! An agent that is stopped in the middle of an update, and wakes up after another one has rolled it back.
//!
//! What the agent itself writes when it wakes is a matter of chance: mostly it knows that it does not lead any more. So
//! the write that it may have been about to make is made here too, as the very user that it writes as.

use super::super::fleet::{Fleet, GROUP, until};
use super::super::harness::Answer;
use super::{
    UPDATES, asked, ends_as, gate, has_exactly, in_wave, map, maps, on_west, story, succeeds, token,
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
    let path = format!("{UPDATES}/v2");
    fleet.client().must("PATCH", &path, Some(&json!({"spec": {"cancel": true}})));
    ends_as(&fleet, "v2", "RolledBack");
    assert_eq!(token(&fleet), 3);
    has_exactly(&fleet, &[("app", "v1")]);

    fleet.thaw();
    let refused = create(&fleet, 2, "");
    assert_eq!(refused.status, 422, "{refused:?}");
    let words = "Fenced: the write has token 2, and the fence is at 3";
    assert!(refused.text.contains(words), "{refused:?}");
    // It was refused for its token, and for nothing else.
    let now = create(&fleet, 3, "?dryRun=All");
    assert_eq!(now.status, 201, "{now:?}");
    has_exactly(&fleet, &[("app", "v1")]);

    // Whatever the agent that woke up does beside the other one, the cluster gets to the next version, and to no other.
    succeeds(&fleet, "v3", vec![map("app", "v3")]);
    has_exactly(&fleet, &[("app", "v3")]);
    fleet.end(&[]);
}
