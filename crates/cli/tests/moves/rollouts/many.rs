//! Fifty requests for one cluster at once.

use super::super::fleet::{Fleet, until};
use super::{
    Asked, OUTCOMES, UPDATES, about_west, asked, ends_as, gate, has_exactly, map, open, story,
    token, until_there,
};
use serde_json::{Value, json};
use std::thread;

/// How many are asked for while another one is in flight; the last of them is not valid.
const REQUESTS: usize = 50;
/// How many people ask at once.
const PEOPLE: usize = 5;

fn is_valid(number: usize) -> bool {
    !number.is_multiple_of(7) && number != REQUESTS - 1
}

fn name(number: usize) -> String {
    // In the order of the numbers, also for who sorts by names.
    format!("many-{number:02}")
}

/// A request that says its own name on the cluster, or has an object without a name.
fn request(number: usize) -> Value {
    let name = name(number);
    let mut object = map("which", &name);
    if !is_valid(number) {
        object["metadata"] = json!({"namespace": "default"});
    }
    Asked { name: &name, cluster: "west", objects: vec![object], how: Value::Null }.object()
}

/// Asks for all of them: the last alone, when all others have been asked for.
fn submit_all(fleet: &Fleet) {
    thread::scope(|scope| {
        for person in 0..PEOPLE {
            let mut client = fleet.client();
            scope.spawn(move || {
                for number in (person..REQUESTS - 1).step_by(PEOPLE) {
                    client.must("POST", UPDATES, Some(&request(number)));
                }
            });
        }
    });
    fleet.client().must("POST", UPDATES, Some(&request(REQUESTS - 1)));
}

/// What each of the fifty says, by its number.
fn said(fleet: &Fleet) -> Vec<Value> {
    let found = fleet.get(UPDATES);
    let items = found["items"].as_array().cloned().unwrap_or_default();
    let of = |number: usize| {
        let found = items.iter().find(|it| it["metadata"]["name"] == name(number).as_str());
        found.map(|it| it["status"].clone()).unwrap_or_default()
    };
    (0..REQUESTS).map(of).collect()
}

fn phase(status: &Value) -> &str {
    status["phase"].as_str().unwrap_or_default()
}

fn has_ended(status: &&Value) -> bool {
    OUTCOMES.contains(&phase(status))
}

/// Waits until this many of the fifty have ended, and the others wait for their turn.
fn until_ended(fleet: &Fleet, count: usize) -> Vec<Value> {
    until(&format!("{count} of {REQUESTS} requests have ended"), || {
        let all = said(fleet);
        let ended = all.iter().filter(has_ended).count();
        let waiting = all.iter().filter(|status| phase(status) == "Queued").count();
        match ended == count && ended + waiting == REQUESTS {
            true => Ok(all),
            false => Err(story(fleet, &Value::Array(all))),
        }
    })
}

/// The number of the valid request with the highest version.
fn newest_valid(all: &[Value]) -> usize {
    let valid = (0..REQUESTS).filter(|number| is_valid(*number));
    valid.max_by_key(|number| all[*number]["version"].as_i64()).expect("some are valid")
}

#[test]
fn of_fifty_requests_at_once_the_newest_valid_one_follows_the_one_in_flight() {
    let fleet = Fleet::of(&["west"]);
    asked("first", vec![map("which", "first"), gate("gate")]).submit(&fleet);
    until_there(&fleet, "pods/gate");
    assert_eq!(token(&fleet), 1);
    submit_all(&fleet);

    // All but one have ended before anything of them was on the cluster.
    let before = until_ended(&fleet, REQUESTS - 1);
    let newest = newest_valid(&before);
    assert_eq!(phase(&before[newest]), "Queued", "{newest}: {before:#?}");
    assert_eq!(before[REQUESTS - 1]["version"], REQUESTS + 1, "{:#}", before[REQUESTS - 1]);
    has_exactly(&fleet, &[("which", "first")]);
    assert_eq!(token(&fleet), 1, "the one in flight is still that");

    open(&fleet, "gate");
    ends_as(&fleet, "first", "Succeeded");
    let all = until_ended(&fleet, REQUESTS);
    for (number, status) in all.iter().enumerate() {
        let wanted = match is_valid(number) {
            _ if number == newest => ("Succeeded", "Healthy"),
            true => ("Superseded", "Superseded"),
            false => ("Rejected", "InvalidBundle"),
        };
        let reason = status["reason"].as_str().unwrap_or_default();
        assert_eq!((phase(status), reason), wanted, "{number}: {status:#}");
        assert!(status["message"].as_str().is_some_and(|it| !it.is_empty()), "{status:#}");
        let complete = &status["conditions"][0];
        assert_eq!((&complete["type"], &complete["status"]), (&json!("Complete"), &json!("True")));
    }
    // Two targets, and so two requests, were ever brought to the cluster.
    has_exactly(&fleet, &[("which", name(newest).as_str())]);
    let record = about_west(&fleet, "clusterrollouts")["status"].clone();
    assert_eq!(record["target"]["token"], 2, "{record:#}");
    assert_eq!(record["lastVersion"], REQUESTS + 1, "{record:#}");
    assert_eq!(record["lastGood"]["version"], all[newest]["version"], "{record:#}");
    let runs = format!("runs version {}", all[newest]["version"]);
    until("the cluster is shown at its version", || {
        let shown = fleet.run(&["rollout", "status", "west"]);
        if shown.out.contains(&runs) { Ok(()) } else { Err(story(&fleet, &json!(shown.out))) }
    });
    fleet.end(&[]);
}
