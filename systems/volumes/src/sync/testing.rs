//! A mover, a storage and objects for the tests of sources and destinations.

use crate::kinds::{CLAIM, SNAPSHOT_KIND};
use crate::outside::{
    Content, Failure, Job, Mover, MoverAction, Outcome, Progress, Reason, Sync, SyncId,
};
use interlock_kernel::testing::{Machine, TestServers, merge};
use interlock_kernel::{Kind, Name, Object, Place};
use serde_json::{Value, json};
use std::collections::HashMap;

/// A mover that does what the test says, and tells no lies about it.
#[derive(Debug)]
pub(crate) struct FakeMover {
    /// What happens to a sync that begins.
    pub(crate) next: Sync,
    pub(crate) syncs: HashMap<SyncId, Sync>,
    pub(crate) begun: Vec<(SyncId, Job)>,
}

impl FakeMover {
    /// A mover with which every sync becomes this.
    pub(crate) fn that(next: Sync) -> FakeMover {
        FakeMover { next, syncs: HashMap::new(), begun: Vec::new() }
    }

    /// It was killed: it knows nothing any more.
    pub(crate) fn dies(&mut self) {
        self.syncs.clear();
    }

    /// Whatever runs becomes this.
    pub(crate) fn all_become(&mut self, next: &Sync) {
        self.next = next.clone();
        self.syncs.values_mut().for_each(|sync| *sync = next.clone());
    }
}

impl Machine<Mover> for FakeMover {
    fn ask(&self, question: &SyncId) -> Sync {
        self.syncs.get(question).cloned().unwrap_or(Sync::Unknown)
    }

    fn perform(&mut self, action: &MoverAction) -> bool {
        match action {
            MoverAction::Begin { id, job } => {
                self.begun.push((id.clone(), (**job).clone()));
                self.syncs.entry(id.clone()).or_insert_with(|| self.next.clone());
            }
            MoverAction::Forget(id) => drop(self.syncs.remove(id)),
        }
        true
    }
}

pub(crate) fn content(files: u64) -> Content {
    let digest = if files == 0 { String::new() } else { format!("b3-{files}") };
    Content { files, bytes: files * 10, digest }
}

pub(crate) fn done(files: u64) -> Sync {
    Sync::Done(Box::new(Outcome {
        snapshot: Some("4f".to_owned()),
        content: content(files),
        log: "all of it".to_owned(),
        ..Outcome::default()
    }))
}

pub(crate) fn failed(reason: Reason) -> Sync {
    Sync::Failed(Failure { reason, message: format!("it says {}", reason.word()) })
}

pub(crate) fn runs(bytes: u64) -> Sync {
    Sync::Runs(Progress { bytes, of_bytes: Some(100), files: 1 })
}

/// The storage takes every snapshot that was asked for, with so many files in it.
pub(crate) fn take_snapshots(world: &mut TestServers, files: u64) {
    for snapshot in world.list(Place::CLUSTER, &SNAPSHOT_KIND, None) {
        if snapshot.data["status"]["readyToUse"] != true {
            let content = content(files);
            let change = json!({
                "metadata": {"annotations": {
                    "interlock.dev/files": content.files.to_string(),
                    "interlock.dev/bytes": content.bytes.to_string(),
                    "interlock.dev/digest": content.digest,
                }},
                "status": {"readyToUse": true},
            });
            world.change(Place::CLUSTER, &SNAPSHOT_KIND, &Name::of(&snapshot), &change);
        }
    }
}

/// The storage binds every claim.
pub(crate) fn bind_claims(world: &mut TestServers) {
    for claim in world.list(Place::CLUSTER, &CLAIM, None) {
        let name = Name::of(&claim);
        let change = json!({
            "spec": {"volumeName": format!("pvc-{}", name.name)}, "status": {"phase": "Bound"},
        });
        world.change(Place::CLUSTER, &CLAIM, &name, &change);
    }
}

pub(crate) fn only(world: &TestServers, kind: &Kind) -> Vec<Object> {
    world.list(Place::CLUSTER, kind, None)
}

fn made(base: Value, patch: &Value) -> Value {
    let mut object = base;
    merge(&mut object, patch);
    object
}

/// A claim of namespace `shop` with a volume.
pub(crate) fn claim(name: &str) -> Value {
    json!({
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}")},
        "spec": {"volumeName": format!("pvc-{name}")}, "status": {"phase": "Bound"},
    })
}

/// A Secret `repository`, whose address and password are given.
pub(crate) fn secret(address: &str, password: &str) -> Value {
    let encoded = |text: &str| json!(k8s_openapi::ByteString(text.as_bytes().to_vec()));
    json!({
        "kind": "Secret",
        "metadata": {"namespace": "shop", "name": "repository", "uid": "uid-repository"},
        "data": {
            "RESTIC_REPOSITORY": encoded(address), "RESTIC_PASSWORD": encoded(password),
        },
    })
}

/// A source `data` of claim `data`, with a tag.
pub(crate) fn source(patch: &Value) -> Value {
    let base = json!({
        "kind": "ReplicationSource",
        "metadata": {"namespace": "shop", "name": "data", "uid": "uid-s", "generation": 1},
        "spec": {
            "sourcePVC": "data", "trigger": {"manual": "one"},
            "restic": {"repository": "repository", "copyMethod": "Snapshot"},
        },
    });
    made(base, patch)
}

/// A source whose snapshot is the product.
pub(crate) fn copy_source(patch: &Value) -> Value {
    let copy = json!({"spec": {"restic": null, "external": {"provider": "interlock.dev/copy"}}});
    made(source(&copy), patch)
}

/// A destination `data` with a claim of its own, and a tag.
pub(crate) fn destination(patch: &Value) -> Value {
    let base = json!({
        "kind": "ReplicationDestination",
        "metadata": {"namespace": "shop", "name": "data", "uid": "uid-d", "generation": 1},
        "spec": {
            "trigger": {"manual": "one"},
            "restic": {"repository": "repository", "copyMethod": "Snapshot", "capacity": "1Gi",
                "accessModes": ["ReadWriteOnce"]},
        },
    });
    made(base, patch)
}
