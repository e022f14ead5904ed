//! The walk of VolSync's guide through its restic mover: manifests with the fields of its examples,
//! in its order. Where it runs a database, there is a folder with files here.

use super::contents::{fill, same};
use super::harness::until;
use super::up::{Up, VOLSYNC, condition};
use serde_json::{Value, json};

fn secret(repository: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "restic-config"},
        "type": "Opaque",
        "stringData": {
            "RESTIC_REPOSITORY": repository, "RESTIC_PASSWORD": "a-password-for-restic",
            "AWS_ACCESS_KEY_ID": "not-needed", "AWS_SECRET_ACCESS_KEY": "not-needed",
        },
    })
}

fn claim() -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "mysql-pv-claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    })
}

#[test]
fn what_volsyncs_guide_writes_does_what_the_guide_says() {
    let up = Up::start();
    let repository = up.path("restic-repo");
    let repository = repository.to_string_lossy();

    let source = up.namespace("source");
    source.create("PersistentVolumeClaim", &claim());
    fill(&source.bound("mysql-pv-claim"), 3);
    source.create("Secret", &secret(&repository));
    source.create(
        "ReplicationSource",
        &json!({
            "apiVersion": VOLSYNC, "kind": "ReplicationSource",
            "metadata": {"name": "database-source", "namespace": "source"},
            "spec": {
                "sourcePVC": "mysql-pv-claim",
                "trigger": {"schedule": "*/30 * * * *"},
                "restic": {
                    "pruneIntervalDays": 15,
                    "repository": "restic-config",
                    "retain": {"hourly": 1, "daily": 1, "weekly": 1, "monthly": 1, "yearly": 1},
                    "copyMethod": "Clone",
                },
            },
        }),
    );
    // The first sync of a schedule is at once; then the next one is known.
    let done = until("it is synced", || {
        let found = source.get("ReplicationSource", "database-source");
        if found["status"]["lastSyncTime"].is_string() {
            Ok(found)
        } else {
            Err(format!("{found:#}"))
        }
    });
    let status = &done["status"];
    assert!(status["nextSyncTime"].is_string(), "{status:#}");
    assert_eq!(status["latestMoverStatus"]["result"], "Successful", "{status:#}");
    let synchronizing = condition(&done, "Synchronizing");
    assert_eq!(synchronizing["reason"], "WaitingForSchedule", "{synchronizing:#}");

    // Into a claim that is there, and straight: the claim itself is what is brought.
    let dest = up.namespace("dest");
    dest.create("Secret", &secret(&repository));
    dest.create("PersistentVolumeClaim", &claim());
    dest.create(
        "ReplicationDestination",
        &json!({
            "apiVersion": VOLSYNC, "kind": "ReplicationDestination",
            "metadata": {"name": "database-destination"},
            "spec": {
                "trigger": {"manual": "restore"},
                "restic": {
                    "destinationPVC": "mysql-pv-claim",
                    "repository": "restic-config",
                    "copyMethod": "Direct",
                },
            },
        }),
    );
    let done = dest.answers("ReplicationDestination", "database-destination", "restore");
    let product =
        json!({"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "mysql-pv-claim"});
    assert_eq!(done["status"]["latestImage"], product);
    same(&source.contents("mysql-pv-claim"), &dest.contents("mysql-pv-claim"));

    // The guide to the populator: a destination on a schedule, and a claim that waits for its snapshot.
    dest.create(
        "PersistentVolumeClaim",
        &json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "restored-pvc", "namespace": "dest"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "dataSourceRef": {
                    "kind": "ReplicationDestination", "apiGroup": "volsync.backube",
                    "name": "restic-replicationdestination",
                },
                "resources": {"requests": {"storage": "10Gi"}},
                "storageClassName": "interlock-local",
            },
        }),
    );
    dest.event("restored-pvc", "VolSyncPopulatorReplicationDestinationMissing");
    dest.create(
        "ReplicationDestination",
        &json!({
            "apiVersion": VOLSYNC, "kind": "ReplicationDestination",
            "metadata": {"name": "restic-replicationdestination", "namespace": "dest"},
            "spec": {
                "trigger": {"schedule": "3,9,15,21,27,33,39,45,51,57 * * * *"},
                "restic": {
                    "repository": "restic-config",
                    "copyMethod": "Snapshot",
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": "10Gi",
                    "storageClassName": "interlock-local",
                    "volumeSnapshotClassName": "interlock-local",
                    "cacheCapacity": "1Gi",
                    "moverSecurityContext": {"runAsUser": 1000, "fsGroup": 1000},
                },
            },
        }),
    );
    same(&source.contents("mysql-pv-claim"), &dest.contents("restored-pvc"));
    let note = dest.event("restic-replicationdestination", "FieldWithoutEffect");
    assert!(note.contains("cacheCapacity") && note.contains("moverSecurityContext"), "{note}");
    dest.event("restored-pvc", "VolSyncPopulatorFinished");
}
