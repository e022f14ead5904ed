//! What the fleet says of its volumes: `interlock status volumes`, and `/metrics`.

use super::contents::fill;
use super::up::Up;
use serde_json::{Value, json};

/// The value of a line of `/metrics`.
fn metric(up: &Up, name: &str, object: &str) -> Option<f64> {
    let text = up.client().call("GET", "/metrics", None).expect("the server answers").text;
    let of = format!("obj_name=\"{object}\"");
    let line = text.lines().find(|line| line.starts_with(name) && line.contains(&of))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn the_state_of_backups_can_be_seen_and_counted() {
    let up = Up::start();
    let space = up.namespace("shop");
    space.claim("data", "16Mi");
    fill(&space.bound("data"), 1);
    space.source("data", "first", &json!({}));
    space.fails("ReplicationSource", "data", "SecretIncomplete");
    let (code, said) = up.run(&["status", "volumes"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("1 of 1 clusters have problems"), "{said}");
    assert!(said.contains("SecretIncomplete: Secret repo"), "{said}");
    assert_eq!(metric(&up, "volsync_volume_out_of_sync", "data"), Some(1.0));

    space.repository();
    space.answers("ReplicationSource", "data", "first");
    space.claim_of("back", "copy", &json!({}));
    space.fails("PersistentVolumeClaim", "copy", "DestinationMissing");
    let (code, said) = up.run(&["status", "volumes"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("DestinationMissing: ReplicationDestination back does not exist"),
        "{said}"
    );
    space.destination("back", "restore", &json!({}));
    space.bound("copy");
    let (code, said) = up.run(&["status", "volumes", "-o", "json"]);
    assert_eq!(code, Some(0), "{said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said[0]["sources"][0]["last_tag"], "first", "{said:#}");
    assert_eq!(said[0]["snapshots"][0]["files"], 6, "{said:#}");

    for (name, object, wanted) in [
        ("volsync_missed_intervals_total", "data", 0.0),
        ("volsync_volume_out_of_sync", "data", 0.0),
        ("volsync_volume_out_of_sync", "back", 0.0),
        ("volsync_sync_duration_seconds_count", "data", 1.0),
        ("volsync_sync_duration_seconds_count", "back", 1.0),
    ] {
        assert_eq!(metric(&up, name, object), Some(wanted), "{name} of {object}");
    }
    let took = metric(&up, "volsync_sync_duration_seconds_sum", "data");
    assert!(took.is_some_and(|seconds| seconds > 0.0), "{took:?}");
}
