//! One request for eight clusters of `interlock up`, of which one refuses it.

use super::super::fleet::{GROUP, condition, until};
use super::super::registering::Up;
use super::{OUTCOMES, UPDATES, map};
use serde_json::{Value, json};

const CLUSTERS: [&str; 8] = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
/// Somebody has an object of the bundle there already.
const REFUSES: &str = "c3";
const AT_ONCE: usize = 2;
const FLEET: &str = "/apis/interlock.dev/v1alpha1/namespaces/default/fleetupdates/all";

/// The partitions: a canary, three clusters, and all others.
fn ring(cluster: &str) -> &'static str {
    match cluster {
        "c1" => "canary",
        "c2" | "c3" | "c4" => "first",
        _ => "rest",
    }
}

fn maps_of(cluster: &str) -> String {
    format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps")
}

/// Eight clusters that take requests, each with its ring as a label.
fn eight() -> Up {
    let up = Up::with(&CLUSTERS.join(","));
    for name in CLUSTERS {
        let path = format!("{GROUP}/workloadclusters/{name}");
        let labels = json!({"metadata": {"labels": {"ring": ring(name)}}});
        up.process.client().must("PATCH", &path, Some(&labels));
        until(&format!("{name} is ready"), || {
            let found = up.get(&path);
            let is_ready = condition(&found, "Ready")["status"] == "True";
            if is_ready { Ok(()) } else { Err(format!("{found:#}\n{}", up.process.says())) }
        });
    }
    up.process.client().must("POST", &maps_of(REFUSES), Some(&map("app", "theirs")));
    up
}

fn request() -> Value {
    let of = |ring: &str| json!({"matchLabels": {"ring": ring}});
    json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "FleetUpdate",
    "metadata": {"name": "all", "namespace": "default"},
    "spec": {
        "source": {"inline": [map("app", "v1")]}, "soakSeconds": 0, "deadlineSeconds": 120,
        "canary": of("canary"), "partitions": [{"name": "first", "selector": of("first")}],
        "maxUnavailable": AT_ONCE, "onFailure": "Pause",
    }})
}

/// A cluster that the request was made for, and how far it is there.
struct Child {
    cluster: String,
    phase: String,
}

impl Child {
    fn has_ended(&self) -> bool {
        OUTCOMES.contains(&self.phase.as_str())
    }
}

/// The ClusterUpdates as one list shows them, which at no moment may break the order or the bound.
fn children(up: &Up) -> Vec<Child> {
    let found = up.get(UPDATES);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = found["items"].as_array().into_iter().flatten();
    let child = |it: &Value| Child {
        cluster: word(&it["spec"]["cluster"]),
        phase: word(&it["status"]["phase"]),
    };
    let all: Vec<Child> = items.map(child).collect();
    let in_flight = all.iter().filter(|it| !it.has_ended()).count();
    assert!(in_flight <= AT_ONCE, "{in_flight} at once: {found:#}");
    for child in &all {
        let before: &[&str] = match ring(&child.cluster) {
            "canary" => &[],
            "first" => &["c1"],
            _ => &["c1", "c2", "c3", "c4"],
        };
        let is_over = |name: &&str| all.iter().any(|it| it.cluster == **name && it.has_ended());
        assert!(before.iter().all(is_over), "{} is too early: {found:#}", child.cluster);
    }
    all
}

/// Waits until the request for all clusters has this phase, and none of them is in flight; its status.
fn until_fleet_is(up: &Up, phase: &str) -> Value {
    until(&format!("the request for eight clusters is {phase}"), || {
        let is_quiet = children(up).iter().all(Child::has_ended);
        let found = up.get(FLEET);
        match is_quiet && found["status"]["phase"] == phase {
            true => Ok(found["status"].clone()),
            false => {
                let updates = up.get(UPDATES);
                Err(format!("{found:#}\n{updates:#}\n{}", up.process.says()))
            }
        }
    })
}

/// The version of the object of the bundle on a cluster, or null.
fn version(up: &Up, cluster: &str) -> Value {
    up.get(&format!("{}/app", maps_of(cluster)))["data"]["version"].clone()
}

#[test]
fn a_request_for_eight_clusters_begins_with_the_canary_and_pauses_when_one_of_them_fails() {
    let up = eight();
    let (all, _) = FLEET.rsplit_once('/').expect("it is a path");
    up.process.client().must("POST", all, Some(&request()));
    let status = until_fleet_is(&up, "Paused");
    assert_eq!(status["reason"], "ClusterFailed", "{status:#}");
    assert_eq!((&status["clusters"], &status["failed"]), (&json!(8), &json!(1)), "{status:#}");
    let failed = status["children"].as_array().into_iter().flatten();
    let failed: Vec<&Value> = failed.filter(|it| it["cluster"] == REFUSES).collect();
    assert!(matches!(&failed[..], [one] if one["phase"] == "RolledBack"), "{status:#}");
    // No partition begins after the one in which a cluster failed.
    assert!(children(&up).iter().all(|child| ring(&child.cluster) != "rest"));
    assert_eq!(version(&up, "c1"), "v1");
    assert_eq!(version(&up, REFUSES), "theirs");
    for name in CLUSTERS.iter().filter(|name| ring(name) == "rest") {
        assert!(version(&up, name).is_null(), "{name}");
    }

    // A person lets the others go on.
    let go_on = json!({"spec": {"onFailure": "Continue"}});
    up.process.client().must("PATCH", FLEET, Some(&go_on));
    let status = until_fleet_is(&up, "Failed");
    assert_eq!(status["reason"], "ClustersFailed", "{status:#}");
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(7), &json!(1)), "{status:#}");
    for name in CLUSTERS {
        let wanted = if name == REFUSES { "theirs" } else { "v1" };
        assert_eq!(version(&up, name), wanted, "{name}");
    }
    up.end();
}
