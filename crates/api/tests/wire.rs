//! Objects as the design writes them are read, and written the same.

use interlock_api::placement::{
    Attestation, Connection, CopyState, Fill, ForceOutcome, ForceRelease, Grant, OnUnreachable,
    Phase, Placement, Ref, RevokedBecause, Snapshot, Transport, VolumePolicy, WorkloadCluster,
};
use interlock_api::{GROUP, Period, VERSION};
use kube_core::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads an object, and sees that it is written as it was read.
fn round_trip<K: DeserializeOwned + Serialize>(object: &Value) -> K {
    let read: K = serde_json::from_value(object.clone()).expect("it can be read");
    assert_eq!(&serde_json::to_value(&read).expect("it can be written"), object);
    read
}

#[test]
fn a_workload_cluster_comes_back_as_it_was() {
    let cluster: WorkloadCluster = round_trip(&json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
        "metadata": { "name": "a", "labels": { "region": "eu" } },
        "spec": {
            "connection": { "kubeconfigSecret":
                { "namespace": "interlock", "name": "a", "key": "kubeconfig" } },
            "unschedulable": false, "drain": true,
            "resources": [{ "group": "networking.k8s.io", "version": "v1",
                "kind": "NetworkPolicy", "plural": "networkpolicies" }],
            "machines": [{ "node": { "name": "n1", "uid": "n" }, "epoch": 7 }],
            "drains": [{ "requester": "nodes/n/7", "reason": "node n1 is reclaimed" }],
        },
        "status": {
            "syncer": { "instance": "s-1", "version": "0.1.0", "bootID": "b-1" },
            "heartbeat": { "sequence": 7, "receivedSequence": 7,
                "receivedAt": "2026-01-02T03:04:05Z" },
            "storageClasses": [{ "name": "local", "provisioner": "interlock.dev/directories",
                "isDefault": true, "canSnapshot": true, "freeBytes": 1024 }],
            "grants": 3,
            "drained": ["nodes/n/7"],
            "conditions": [{ "type": "Ready", "status": "True", "reason": "Heard", "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z" }],
        },
    }));
    assert!(matches!(cluster.spec.connection, Connection::KubeconfigSecret(_)));
    assert!(cluster.spec.drain);
}

#[test]
fn a_placement_comes_back_as_it_was() {
    let placement: Placement = round_trip(&json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Placement",
        "metadata": { "name": "europe" },
        "spec": {
            "namespaceSelector": { "matchLabels": { "team": "shop" } },
            "clusterSelector": { "matchLabels": { "region": "eu" } },
            "onUnreachable": "Hold",
            "volumes": { "transport": "Restic", "repository": "backup",
                "storageClasses": { "fast": "ssd" }, "keepSuperseded": "48h",
                "verifyOnArrival": false, "syncSchedule": "*/10 * * * *" },
        },
    }));
    assert_eq!(placement.spec.volumes.transport, Transport::Restic);
    assert_eq!(placement.spec.volumes.keep_superseded, Period::hours(48));
}

fn pin(snapshot: &Value) -> Value {
    json!({ "claim": "data", "claimUID": "c-1", "epoch": 4, "taken": "2026-01-02T03:04:05Z",
        "files": 2, "bytes": 10, "digest": "sha256:0", "snapshot": snapshot })
}

#[test]
fn a_grant_comes_back_as_it_was() {
    let a = json!({ "name": "a", "uid": "u-a" });
    let snapshots = [
        json!({ "volumeSnapshot": { "cluster": a, "namespace": "n", "name": "s", "uid": "u" } }),
        json!({ "restic": { "secret": "backup", "snapshotID": "4f" } }),
        json!({ "inPlace": { "cluster": a, "volume": "pv-1" } }),
        json!({ "fresh": {} }),
    ];
    let grant: Grant = round_trip(&json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Grant",
        "metadata": { "name": "shop-0f3a9c1e" },
        "spec": {
            "namespace": { "name": "shop", "uid": "0f3a9c1e-5b77" },
            "target": { "name": "b", "uid": "u-b" },
            "onUnreachable": "Hold",
            "volumes": { "transport": "Copy", "keepSuperseded": "168h", "verifyOnArrival": true },
        },
        "status": {
            "phase": "Revoking", "owner": a, "epoch": 4, "because": "Drain",
            "fencedBy": { "name": "f", "uid": "u-f" },
            "claims": [{ "name": "data", "uid": "c-1", "fill": "Filled",
                "lastSnapshot": pin(&snapshots[0]) }],
            "pins": snapshots.iter().map(pin).collect::<Vec<_>>(),
            "copies": [{ "cluster": a, "epoch": 4, "state": "Live" }],
        },
    }));
    assert_eq!(grant.spec.volumes, VolumePolicy::default());
    let status = grant.status_or_default();
    assert_eq!(status.phase, Phase::Revoking);
    assert_eq!(status.because, Some(RevokedBecause::Drain));
    assert_eq!(status.claims[0].fill, Fill::Filled);
    assert_eq!(status.copies[0].state, CopyState::Live);
    assert_eq!(status.pins[3].snapshot, Snapshot::Fresh {});
}

#[test]
fn a_force_release_comes_back_as_it_was() {
    let force: ForceRelease = round_trip(&json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "ForceRelease",
        "metadata": { "name": "shop-4" },
        "spec": {
            "grant": { "name": "shop-0f3a9c1e", "uid": "u-g" },
            "owner": { "name": "a", "uid": "u-a" },
            "epoch": 4, "attestation": "PoweredOff",
            "reason": "the rack burnt down", "requester": "mia",
        },
        "status": { "outcome": "Refused", "because": "the epoch is 7; the ForceRelease names 4" },
    }));
    assert_eq!(force.spec.attestation, Attestation::PoweredOff);
    assert_eq!(force.status_or_default().outcome, ForceOutcome::Refused);
}

#[test]
fn a_grant_without_a_status_is_unassigned_at_epoch_0() {
    let mut grant: Grant = serde_json::from_value(json!({
        "metadata": { "name": "shop-0f3a9c1e" },
        "spec": { "namespace": { "name": "shop", "uid": "u" }, "target": null },
    }))
    .expect("it can be read");
    assert_eq!(grant.spec.target, None);
    assert_eq!(grant.spec.on_unreachable, OnUnreachable::Hold);
    assert_eq!(grant.spec.volumes, VolumePolicy::default());
    let untouched = grant.status_or_default();
    assert_eq!((untouched.phase, untouched.epoch), (Phase::Unassigned, 0));
    assert_eq!(untouched.owner, None);
    grant.status = Some(serde_json::from_value(json!({})).expect("an empty status can be read"));
    assert_eq!(grant.status_or_default(), untouched);
}

#[test]
fn unknown_words_are_refused() {
    assert!(serde_json::from_value::<Phase>(json!("Lost")).is_err());
    assert!(serde_json::from_value::<OnUnreachable>(json!("hold")).is_err());
    let both = json!({ "logicalCluster": "a",
        "kubeconfigSecret": { "namespace": "n", "name": "a", "key": "k" } });
    assert!(serde_json::from_value::<Connection>(both).is_err());
}

#[test]
fn words_are_shown_as_they_are_written() {
    for phase in [
        Phase::Unassigned,
        Phase::Granted,
        Phase::Revoking,
        Phase::Released,
        Phase::Fenced,
        Phase::Deleting,
    ] {
        assert_eq!(json!(phase), json!(phase.to_string()));
    }
}

#[test]
fn a_reference_means_its_uid() {
    assert!(Ref::new("a", "1").is_same(&Ref::new("renamed", "1")));
    assert!(!Ref::new("a", "1").is_same(&Ref::new("a", "2")));
}

#[test]
fn all_kinds_are_in_our_group_and_cluster_wide() {
    // Those of rollouts have a test of their own: people ask in namespaces.
    let of_rollouts = |kind: &str| kind.contains("Update") || kind.contains("Rollout");
    for definition in interlock_api::definitions() {
        let kind = definition.spec.names.kind.as_str();
        if of_rollouts(kind) || kind == "BundleRevision" {
            continue;
        }
        assert_eq!(definition.spec.group, GROUP);
        assert_eq!(definition.spec.versions[0].name, VERSION);
        assert_eq!(definition.spec.scope, "Cluster");
        let subresources = definition.spec.versions[0].subresources.as_ref();
        assert!(subresources.is_some_and(|all| all.status.is_some()));
        assert_eq!(definition.spec.names.categories, Some(vec!["interlock".to_owned()]));
    }
    assert_eq!(Grant::api_version(&()), format!("{GROUP}/{VERSION}"));
}
