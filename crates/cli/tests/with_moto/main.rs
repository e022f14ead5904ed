//! Identities on moto, with a proxy in front that fails, delays, repeats and loses calls, and under kills:
//! run by `cargo xtask test-real`.
//!
//! `INTERLOCK_IDENTITIES` says how many (12), `INTERLOCK_IDENTITIES_SEED` by which seed (1) calls fail, and in which
//! order identities are created, updated, moved and deleted.

#![allow(clippy::unwrap_used, reason = "this is a test")]
#![allow(clippy::print_stdout, reason = "a long test says how far it is")]

mod desired;
mod faults;
#[path = "../harness/mod.rs"]
mod harness;
mod moto;
mod order;
mod scene;

use desired::{Desired, cloud_name};
use order::Many;
use scene::{CLUSTERS, FLEET, Scene};
use serde_json::{Value, json};
use std::time::Duration;

const NAMESPACES: usize = 5;
/// As many of the namespaces are placed on a cluster, and move.
const PLACED: usize = 2;
/// As many identities find a role and a policy of their name that somebody else made. They are in namespaces that
/// are not placed: one that is does not start without its rights.
const FOREIGN: usize = 3;
/// After each of so many parts of all steps everything has to become as declared.
const PARTS: usize = 5;

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

fn placed() -> Vec<String> {
    (0..PLACED).map(|at| format!("ns-{at}")).collect()
}

fn make_namespaces(scene: &Scene) {
    for name in (0..NAMESPACES).map(|at| format!("ns-{at}")) {
        let mut object = json!({"metadata": {"name": name}});
        if placed().contains(&name) {
            object["metadata"]["labels"] = json!({"interlock.dev/placed": "true"});
            object["metadata"]["annotations"] = json!({"interlock.dev/cluster": CLUSTERS[0]});
        }
        scene.make("/api/v1/namespaces", &object);
    }
}

/// What the account has when it has nothing of ours.
fn without_ours(scene: &Scene) -> Value {
    let mut account = scene.moto.account();
    // The providers of the two clusters may be there already.
    account["providers"] = json!([]);
    account
}

#[test]
#[ignore = "needs moto: cargo xtask test-real"]
fn identities_become_as_declared_and_leave_nothing_in_any_order_and_under_faults_and_kills() {
    let (many, seed) = (number("INTERLOCK_IDENTITIES", 12), number("INTERLOCK_IDENTITIES_SEED", 1));
    let mut scene = Scene::start(many, seed as u64);
    let mut names: Vec<String> =
        (0..many).map(|at| format!("ns-{}/app-{at}", at % NAMESPACES)).collect();
    let foreign: Vec<String> =
        (0..FOREIGN).map(|at| format!("ns-{}/foreign-{at}", PLACED + at)).collect();
    let theirs: Vec<String> = foreign.iter().map(|name| cloud_name(name)).collect();
    let folder = format!("/interlock/{FLEET}/");
    scene.moto.run(&["foreign"], &[("NAMES", theirs.join(",")), ("FOLDER", folder)]);
    let before = without_ours(&scene);
    names.extend(foreign);
    make_namespaces(&scene);

    let of = Many { identities: names.len(), placed: PLACED, clusters: CLUSTERS.len() };
    let steps = order::drawn(seed as u64, of);
    let mut desired = Desired::at_the_start(before.clone(), &placed());
    for (part, steps) in steps.chunks(steps.len().div_ceil(PARTS)).enumerate() {
        for step in steps {
            desired.change(&mut scene, *step, &names);
        }
        desired.settle(&scene, &format!("part {} of {PARTS}", part + 1));
    }
    scene.delete_fleet(&placed());
    // A call that was still under way would land by now.
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(scene.moto.account(), before, "only what others made is left, as it was");
    let calls = scene.proxy.calls();
    let is_write = |call: &&String| !call.contains("Action=Get") && !call.contains("Action=List");
    let writes: Vec<&String> = calls.iter().filter(is_write).collect();
    for name in &theirs {
        let touched = writes.iter().find(|call| call.contains(name.as_str()));
        assert_eq!(touched, None, "no call changes what is not ours");
    }
    for call in &writes {
        assert!(call.matches("oidc-provider%2F").count() <= 1, "two issuers in one trust: {call}");
    }
    println!("{many} identities, {} calls, of which {} writes", calls.len(), writes.len());
}
