//! Identities on moto, with a proxy in front that fails, delays, repeats and loses calls, and under kills:
//! run by `cargo xtask test-real`.
//!
//! `INTERLOCK_IDENTITIES` says how many (12), `INTERLOCK_IDENTITIES_SEED` by which seed calls fail (1).

#![allow(clippy::unwrap_used, reason = "this is a test")]
#![allow(clippy::print_stdout, reason = "a long test says how far it is")]

mod faults;
#[path = "../harness/mod.rs"]
mod harness;
mod moto;
mod scene;

use interlock_api::identities::{TAG_FLEET, TAG_OWNER};
use interlock_identities::outside::At;
use interlock_identities::owner::Owner;
use scene::{CLUSTERS, FLEET, IDENTITIES, Scene};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const NAMESPACES: usize = 5;
/// As many of the namespaces are placed on a cluster, and move.
const PLACED: usize = 2;
/// As many identities find a role and a policy of their name that somebody else made. They are in namespaces that
/// are not placed: one that is does not start without its rights.
const FOREIGN: usize = 3;

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Waits until each identity is as declared, or has the conflict that somebody else has its name.
fn settle(scene: &Scene, what: &str) {
    scene.until(what, || {
        let not_yet = |(name, item): (&String, &Value)| {
            let ready = condition(item, "Ready");
            let is_current = item["status"]["observedGeneration"] == item["metadata"]["generation"];
            let wanted = if is_foreign(name) { "Conflict" } else { "AsDeclared" };
            let is_right = is_current && ready["reason"] == wanted;
            (!is_right).then(|| format!("{name}: {} {}", ready["reason"], ready["message"]))
        };
        let all = scene.all(IDENTITIES);
        let waiting: Vec<String> = all.iter().filter_map(not_yet).collect();
        let shown: Vec<&String> = waiting.iter().take(5).collect();
        if waiting.is_empty() { Ok(()) } else { Err(format!("{}: {shown:#?}", waiting.len())) }
    });
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.and_then(|all| all.iter().find(|one| one["type"] == kind)).unwrap_or(&Value::Null)
}

fn is_foreign(name: &str) -> bool {
    name.contains("/foreign-")
}

fn placed() -> Vec<String> {
    (0..PLACED).map(|at| format!("ns-{at}")).collect()
}

/// An identity as irsa-operator's users write it.
fn identity(namespace: &str, name: &str, action: &str) -> Value {
    json!({"apiVersion": "irsa.voodoo.io/v1alpha1", "kind": "IamRoleServiceAccount",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"policy": {"statement": [{"resource": format!("arn:aws:s3:::{namespace}-{name}"), "action": [action]}]}}})
}

fn place_of(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap()
}

/// Where the identities of a namespace are.
fn within(namespace: &str) -> String {
    IDENTITIES.replace("iamrole", &format!("namespaces/{namespace}/iamrole"))
}

/// What the cloud object of an identity is called.
fn cloud_name(name: &str) -> String {
    let (namespace, name) = place_of(name);
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let owner =
        Owner { uid: String::new(), kind: "role", fleet: FLEET.to_owned(), namespace, name };
    let At::Name { name, .. } = owner.at() else { panic!("it has a name") };
    name
}

fn desire(scene: &Scene, cluster: &str) {
    let change = json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}});
    for namespace in placed() {
        scene.change(&format!("/api/v1/namespaces/{namespace}"), &change);
    }
}

/// Waits until the placed namespaces run on a cluster, with all their rights.
fn settle_on(scene: &Scene, cluster: &str, rights: usize) {
    scene.until(&format!("moved to {cluster}"), || {
        let grants = scene.grants();
        let is_there = |grant: &&Value| {
            let status = &grant["status"];
            status["owner"]["name"] == cluster
                && status["phase"] == "Granted"
                && condition(grant, "Running")["status"] == "True"
        };
        let ready = grants.iter().filter(is_there).flat_map(|grant| {
            let epoch = grant["status"]["epoch"].clone();
            let all = grant["status"]["rights"].as_array().cloned().unwrap_or_default();
            all.into_iter().filter(move |one| one["state"] == "Ready" && one["epoch"] == epoch)
        });
        let (ready, there) = (ready.count(), grants.iter().filter(is_there).count());
        let is_so = there == PLACED && ready == rights;
        if is_so { Ok(()) } else { Err(format!("{there} namespaces with {ready} of {rights}")) }
    });
}

#[test]
#[ignore = "needs moto: cargo xtask test-real"]
fn identities_become_as_declared_and_leave_nothing_under_faults_and_kills() {
    let (many, seed) = (number("INTERLOCK_IDENTITIES", 12), number("INTERLOCK_IDENTITIES_SEED", 1));
    let mut scene = Scene::start(many, seed as u64);
    let mut names: Vec<String> =
        (0..many).map(|at| format!("ns-{}/app-{at}", at % NAMESPACES)).collect();
    let rights =
        names.iter().filter(|name| placed().contains(&place_of(name).0.to_owned())).count();
    let foreign: Vec<String> =
        (0..FOREIGN).map(|at| format!("ns-{}/foreign-{at}", PLACED + at)).collect();
    let theirs: Vec<String> = foreign.iter().map(|name| cloud_name(name)).collect();
    let folder = format!("/interlock/{FLEET}/");
    scene.moto.run(&["foreign"], &[("NAMES", theirs.join(",")), ("FOLDER", folder)]);
    let mut before = scene.moto.account();
    // The providers of the two clusters may be there already.
    before["providers"] = json!([]);
    names.extend(foreign);

    for namespace in (0..NAMESPACES).map(|at| format!("ns-{at}")) {
        let mut object = json!({"metadata": {"name": namespace}});
        if placed().contains(&namespace) {
            object["metadata"]["labels"] = json!({"interlock.dev/placed": "true"});
            object["metadata"]["annotations"] = json!({"interlock.dev/cluster": CLUSTERS[0]});
        }
        scene.make("/api/v1/namespaces", &object);
    }
    for (at, name) in names.iter().enumerate() {
        let (namespace, short) = place_of(name);
        scene.make(&within(namespace), &identity(namespace, short, "s3:Get0"));
        if at == many / 2 {
            scene.kill_controllers();
        }
    }
    settle(&scene, "created");
    settle_on(&scene, CLUSTERS[0], rights);

    // Past the limit of five versions.
    for round in 1..=7 {
        for name in &names {
            let (namespace, short) = place_of(name);
            let whole = identity(namespace, short, &format!("s3:Get{round}"));
            let change = json!({"spec": whole["spec"]});
            scene.change(&format!("{}/{short}", within(namespace)), &change);
        }
        match round {
            2 | 5 => scene.kill_controllers(),
            3 | 7 => settle(&scene, &format!("updated {round} times")),
            _ => {}
        }
    }
    let was = by_name(&scene.moto.account()["roles"]);

    scene.moto.run(&["drift"], &[("SEED", seed.to_string())]);
    scene.kill_controllers();
    let repaired = |scene: &Scene, cluster: &str| {
        let issuer = scene.issuer(cluster);
        scene.until("the cloud is as declared", || {
            is_as_declared(&scene.moto.account(), &was, &issuer, many)
        });
    };
    repaired(&scene, CLUSTERS[0]);
    settle(&scene, "and each object says so");

    // There and back, and somebody changes roles meanwhile.
    desire(&scene, CLUSTERS[1]);
    scene.kill_syncer(CLUSTERS[0]);
    scene.kill_controllers();
    settle_on(&scene, CLUSTERS[1], rights);
    repaired(&scene, CLUSTERS[1]);
    desire(&scene, CLUSTERS[0]);
    scene.moto.run(&["drift"], &[("SEED", (seed + 1).to_string())]);
    scene.kill_controllers();
    scene.kill_syncer(CLUSTERS[1]);
    settle_on(&scene, CLUSTERS[0], rights);
    repaired(&scene, CLUSTERS[0]);

    for (at, name) in names.iter().enumerate() {
        let (namespace, short) = place_of(name);
        scene.delete(&format!("{}/{short}", within(namespace)));
        if at == many / 3 {
            scene.kill_controllers();
        }
    }
    scene.until("every identity is gone", || {
        let left = scene.all(IDENTITIES);
        let Some(name) = left.keys().next() else { return Ok(()) };
        Err(format!("{} left; {name} is {:#}", left.len(), scene.parts(name)))
    });
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

fn by_name(things: &Value) -> BTreeMap<String, Value> {
    let things = things.as_array().cloned().unwrap_or_default();
    things.into_iter().map(|thing| (thing["name"].as_str().unwrap().to_owned(), thing)).collect()
}

/// Whether each role is as it was, but for the issuer that those of placed namespaces trust, and each policy says
/// what was declared last.
fn is_as_declared(
    account: &Value,
    was: &BTreeMap<String, Value>,
    issuer: &str,
    many: usize,
) -> Result<(), String> {
    for (name, mut role) in by_name(&account["roles"]) {
        let mut expected = was.get(&name).cloned().unwrap_or_default();
        if is_placed(&expected) {
            let trust = std::mem::take(&mut role["trust"]);
            expected["trust"] = Value::Null;
            let provider = trust["Statement"][0]["Principal"]["Federated"].as_str();
            let is_owners = provider.is_some_and(|arn| arn.ends_with(issuer));
            if !is_owners || trust["Statement"].as_array().is_none_or(|all| all.len() != 1) {
                return Err(format!("role {name} trusts {trust}, and not {issuer} alone"));
            }
        }
        if role != expected {
            return Err(format!("role {name} is {role}, was {expected}"));
        }
    }
    let mut ours = 0;
    for policy in account["policies"].as_array().into_iter().flatten() {
        // Those of others have no tags at all.
        if policy["tags"].as_object().is_none_or(serde_json::Map::is_empty) {
            continue;
        }
        ours += 1;
        let default = policy["default"].as_str().unwrap_or_default();
        let statement = &policy["versions"][default]["Statement"][0];
        let tags = &policy["tags"];
        if statement["Action"] != json!(["s3:Get7"])
            || tags[TAG_FLEET] != FLEET
            || tags[TAG_OWNER].is_null()
        {
            return Err(format!("{policy}"));
        }
    }
    if ours == many { Ok(()) } else { Err(format!("{ours} policies of {many}")) }
}

/// Whether a role, as boto3 read it, is of a namespace that moves.
fn is_placed(role: &Value) -> bool {
    let owner = role["tags"][TAG_OWNER].as_str().unwrap_or_default();
    owner.split('/').nth(1).is_some_and(|namespace| placed().contains(&namespace.to_owned()))
}
