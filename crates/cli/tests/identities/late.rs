//! A process that is stopped or killed between a call and its record, another one that takes over, and the call that
//! lands late.

use super::apart::Apart;
use super::cloud::{token, trusted};
use super::fleet::CONTROLLERS;
use super::harness::proxy::{Fault, Hold};
use super::up::{PATH, cloud_name, example, identities, until};
use interlock_api::names::downstream_namespace;
use interlock_iam::Outcome;
use serde_json::{Value, json};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "s3put";
/// How long after it was sent a call may take effect.
const WINDOW_SECONDS: u32 = 10;

/// Halfway through the time in which a call may take effect.
fn halfway_since(sent: Instant) {
    let at = Duration::from_secs(u64::from(WINDOW_SECONDS / 2));
    // Not a wait for something: this is how late the call is.
    thread::sleep(at.saturating_sub(sent.elapsed()));
}

/// Waits until the roles trust this epoch.
fn epoch_is_ready(apart: &Apart, uid: &str, epoch: i64) {
    until(&format!("epoch {epoch} may run"), || {
        let grant = apart.fleet.grant("shop", uid);
        let ready = super::watching::ready(&grant).map(|(epoch, _)| epoch);
        if ready == Some(epoch) { Ok(()) } else { Err(apart.fleet.story(&grant)) }
    });
}

fn token_on(apart: &Apart, cluster: &str, uid: &str) -> String {
    let below = downstream_namespace("shop", uid);
    let path = format!("/clusters/{cluster}/api/v1/namespaces/{below}/serviceaccounts/{NAME}");
    until("the account is carried down", || match apart.fleet.get(&path) {
        Value::Null => Err(apart.fleet.story(&Value::Null)),
        _ => Ok(()),
    });
    token(&mut apart.fleet.client(), cluster, &below, NAME)
}

/// A token of an account of the same name on a cluster that does not have the namespace.
fn token_of_another(apart: &Apart, cluster: &str, uid: &str) -> String {
    let (there, below) = (format!("/clusters/{cluster}"), downstream_namespace("shop", uid));
    let (namespaces, mut hub) = (format!("{there}/api/v1/namespaces"), apart.fleet.client());
    hub.must("POST", &namespaces, Some(&json!({"metadata": {"name": below}})));
    let accounts = format!("{namespaces}/{below}/serviceaccounts");
    hub.must("POST", &accounts, Some(&json!({"metadata": {"name": NAME}})));
    let token = token(&mut hub, cluster, &below, NAME);
    hub.must("DELETE", &format!("{namespaces}/{below}"), None);
    apart.gone(&format!("{namespaces}/{below}"));
    token
}

/// Whom the role trusts.
fn trust(apart: &Apart) -> Vec<String> {
    match apart.caller.role(&cloud_name("shop", NAME)) {
        Outcome::Done(role) => trusted(&role.trust),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_that_lands_after_a_fail_over_lets_nobody_in_who_lost_the_namespace() {
    let apart = Apart::start(WINDOW_SECONDS);
    let fleet = &apart.fleet;
    let uid = fleet.place_empty("shop", "west");
    apart.declare("shop", &example(NAME));
    apart.created("shop", NAME);
    epoch_is_ready(&apart, &uid, 1);
    let watcher = apart.watcher("shop", &uid, cloud_name("shop", NAME));
    watcher.knows("west", token_on(&apart, "west", &uid));
    watcher.knows("east", token_of_another(&apart, "east", &uid));
    watcher.sees(1);
    let of_west = trust(&apart);

    // The call that lets east in is on its way when its process stops.
    let hold = Arc::new(Hold::default());
    apart.next("UpdateAssumeRolePolicy", Fault::Held(Arc::clone(&hold)));
    fleet.place_on("shop", "east");
    hold.reached();
    let sent = Instant::now();
    fleet.freeze(CONTROLLERS);
    fleet.start(CONTROLLERS);
    // Meanwhile the namespace goes back to west.
    fleet.place_on("shop", "west");
    until("west has the namespace again", || {
        let grant = fleet.grant("shop", &uid);
        let status = &grant["status"];
        let is_there = status["epoch"] == 3 && status["owner"]["name"] == "west";
        if is_there { Ok(()) } else { Err(fleet.story(&grant)) }
    });
    assert_eq!(trust(&apart), of_west, "the call has not landed");
    halfway_since(sent);
    hold.let_go();
    assert_ne!(trust(&apart), of_west, "the call has landed, and west is not to run yet");
    watcher.sees(3);
    assert_eq!(trust(&apart), of_west);

    // The process that was stopped goes on with all that it believed. The other one dies between a call and its
    // record.
    fleet.thaw();
    let hold = Arc::new(Hold::default());
    apart.next("UpdateAssumeRolePolicy", Fault::AnswerHeld(Arc::clone(&hold)));
    fleet.place_on("shop", "east");
    hold.reached();
    fleet.kill(CONTROLLERS);
    hold.let_go();
    watcher.sees(4);
    let seen = watcher.saw();
    eprintln!("{seen:?}");
    assert_eq!(seen.wrong, Vec::<String>::new());
    assert_eq!((seen.epochs.len(), seen.roles.len()), (3, 1), "epochs 1, 3 and 4: {seen:?}");
    assert!(seen.refused > 0, "{seen:?}");

    apart.delete("shop", NAME);
    apart.prove_that_nothing_is_left();
    apart.fleet.end(&["shop"]);
}

#[test]
fn a_role_that_a_dead_process_creates_late_goes_with_its_identity() {
    let apart = Apart::start(WINDOW_SECONDS);
    let fleet = &apart.fleet;
    fleet.place_empty("shop", "west");
    let hold = Arc::new(Hold::default());
    apart.next("CreateRole", Fault::Held(Arc::clone(&hold)));
    apart.declare("shop", &example(NAME));
    hold.reached();
    let sent = Instant::now();
    fleet.kill(CONTROLLERS);
    let path = format!("{}/{NAME}", identities("shop"));
    fleet.client().must("DELETE", &path, None);
    fleet.start(CONTROLLERS);
    let policies = || match apart.caller.call(apart.caller.client().list_policies(PATH)) {
        Outcome::Done(policies) => policies.len(),
        other => panic!("{other:?}"),
    };
    let role = || apart.caller.role(&cloud_name("shop", NAME));
    halfway_since(sent);
    let before = fleet.get(&path);
    assert_ne!(before, Value::Null, "nobody knows yet that no role will come");
    assert!(!matches!(role(), Outcome::Done(_)) && policies() == 1, "{before:#}");
    hold.let_go();
    assert!(matches!(role(), Outcome::Done(_)), "{:?}", role());
    apart.gone(&path);
    apart.prove_that_nothing_is_left();
    apart.fleet.end(&["shop"]);
}
