//! A claim is backed up into a repository, and another claim is filled from it.

use super::contents::{contents, fill, same};
use super::harness::until;
use super::up::{Up, WEST, claim, condition};
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn what_a_pod_wrote_is_backed_up_and_fills_another_claim_byte_for_byte() {
    let up = Up::start();
    let script = "mkdir -p data/folder && head -c 300000 /dev/urandom > data/folder/random && \
                  ln -s folder/random data/link && echo ready > data/ready && sleep 600";
    let shop = up.place("shop", script);
    let volume = shop.bound("data");
    until("the pod has written", || {
        let pods = || up.get("/api/v1/namespaces/shop/pods").to_string();
        if volume.join("ready").is_file() { Ok(()) } else { Err(pods()) }
    });

    let repository = shop.repository();
    shop.source("data", "first", &json!({}));
    let source = shop.answers("ReplicationSource", "data", "first");
    assert_eq!(source["status"]["latestMoverStatus"]["result"], "Successful", "{source:#}");
    assert_eq!(condition(&source, "interlock.dev/Healthy")["status"], "True", "{source:#}");
    assert!(source["status"]["lastSyncDuration"].is_string(), "{source:#}");
    assert!(repository.join("config").is_file());

    shop.destination("back", "restore", &json!({}));
    let destination = shop.answers("ReplicationDestination", "back", "restore");
    assert_eq!(destination["status"]["latestImage"]["kind"], "VolumeSnapshot", "{destination:#}");
    shop.claim_of("back", "copy", &json!({}));
    let (wanted, found) = (contents(&volume), shop.contents("copy"));
    same(&wanted, &found);
    assert_eq!(found.len(), 4, "{:?}", found.keys());

    // A claim at the hub that names it is filled on the cluster, too.
    let mut again = claim("again", "16Mi");
    again["spec"]["dataSourceRef"] = json!({
        "apiGroup": "volsync.backube", "kind": "ReplicationDestination", "name": "back",
    });
    let claims = "/api/v1/namespaces/shop/persistentvolumeclaims";
    up.client().must("POST", claims, Some(&again));
    until("the hub says so", || {
        let found = up.get(&format!("{claims}/again"));
        if found["status"]["phase"] == "Bound" { Ok(()) } else { Err(format!("{found:#}")) }
    });
    same(&wanted, &shop.contents("again"));

    // Of the backup nothing is left on the cluster, and of the restore only what fills claims.
    until("nothing is left that nobody needs", || {
        let snapshots = shop.all("VolumeSnapshot");
        let leases = up
            .get(&format!("{WEST}/apis/coordination.k8s.io/v1/namespaces/interlock-system/leases"));
        let claims: Vec<Value> = shop.all("PersistentVolumeClaim");
        let is_clean = snapshots.len() == 1 && leases["items"] == json!([]) && claims.len() == 4;
        if is_clean { Ok(()) } else { Err(format!("{snapshots:#?} {leases:#} {claims:#?}")) }
    });
}

#[test]
fn a_source_that_is_written_without_pause_is_saved_as_it_was_at_one_moment() {
    let up = Up::start();
    // Every number goes into the first file and then into the last one. Whoever copies them one
    // after the other, with the large one in between, has more in the last than in the first.
    let script = "head -c 8000000 /dev/urandom > data/m; n=0; while :; do n=$((n+1)); \
                  echo $n >> data/a; echo $n >> data/z; sleep 0.001; done";
    let shop = up.place("shop", script);
    let volume = shop.bound("data");
    shop.repository();
    let lines = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().lines().count();
    until("the pod writes", || {
        let written = lines(&volume.join("z"));
        if written > 0 { Ok(()) } else { Err(up.get("/api/v1/namespaces/shop/pods").to_string()) }
    });
    shop.source("data", "tag-0", &json!({}));
    for round in 0..3 {
        let tag = format!("tag-{round}");
        shop.trigger("ReplicationSource", "data", &tag);
        let before = lines(&volume.join("a"));
        shop.answers("ReplicationSource", "data", &tag);
        let (name, after) = (format!("back-{round}"), lines(&volume.join("a")));
        assert!(after > before || round == 0, "it goes on writing");
        shop.destination(&name, "restore", &json!({}));
        shop.claim_of(&name, &name, &json!({}));
        let copy = shop.bound(&name);
        let (first, last) = (lines(&copy.join("a")), lines(&copy.join("z")));
        assert!(first == last || first == last + 1, "{first} and {last} are of two moments");
        assert!(last > 0 && first <= after, "{first} of {after}");
    }
}

#[test]
fn each_sync_is_a_snapshot_and_older_ones_come_back() {
    let up = Up::start();
    let space = up.namespace("shop");
    space.claim("data", "16Mi");
    let volume = space.bound("data");
    space.repository();
    let retain = json!({"retain": {"last": "3"}});
    let mut seen = Vec::new();
    for (number, tag) in ["one", "two", "three"].into_iter().enumerate() {
        fill(&volume, number as u64);
        seen.push(contents(&volume));
        match number {
            0 => space.source("data", tag, &retain),
            _ => space.trigger("ReplicationSource", "data", tag),
        }
        space.answers("ReplicationSource", "data", tag);
    }
    for (previous, wanted) in seen.iter().rev().enumerate() {
        let name = format!("back-{previous}");
        space.destination(&name, "restore", &json!({"previous": previous}));
        space.claim_of(&name, &name, &json!({}));
        let found = space.contents(&name);
        same(wanted, &found);
    }
}
