//! A decision about a VolumeSnapshot as one step.

use super::decide::{Decision, Why};
use super::observe::{CONTENT_PROTECTION, PROTECTION, Scene};
use super::sentence::{of_failure, of_obstacle};
use crate::kinds::{CONTENT, SNAPSHOT_KIND};
use crate::objects::{
    change, change_status, conditions, name_of, namespace_of, put_finalizer_on, take_finalizer_off,
    tells, text, uid_of, warns,
};
use crate::outside::{Content, Disk, DiskAction, DiskQuestion};
use crate::storage::{REQUEUE_AFTER, back_off_for, handle_of, live_read, on, wait};
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, HOLD_PREFIX, LOCAL_DRIVER,
};
use interlock_kernel::{Object, Place, Read, Step, Write};
use interlock_quantity::readable;
use serde_json::json;

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Disk> {
    let snapshot = &scene.snapshot;
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::Say(obstacle) => report(scene, &of_obstacle(snapshot, obstacle)),
        Decision::Protect => Step::write(
            put_finalizer_on(&SNAPSHOT_KIND, snapshot, PROTECTION),
            "the VolumeSnapshot stays until its data is deleted",
        ),
        Decision::Record => record(scene),
        Decision::AskDisk => live_read(
            vec![Read::Ask(DiskQuestion::Snapshot(scene.handle()))],
            "asking the disk for the state of the snapshot",
        ),
        Decision::Take => on(scene.content.as_ref(), |content| {
            let volume = text(&content.data, &["spec", "source", "volumeHandle"]).to_owned();
            Step::outside(
                DiskAction::TakeSnapshot { handle: scene.handle(), volume },
                "a VolumeSnapshot exists",
            )
        }),
        Decision::ReportFailure => {
            on(scene.failure.as_ref(), |failure| report(scene, &of_failure(failure)))
        }
        Decision::Forget => Step::outside(
            DiskAction::Forget(DiskQuestion::Snapshot(scene.handle())),
            "the status reports why the snapshot could not be taken",
        ),
        Decision::Describe => on(scene.contents.as_ref(), |inside| describe(snapshot, inside)),
        Decision::ReportContent => on(scene.content.as_ref(), |content| {
            on(scene.contents.as_ref(), |inside| report_content(scene, content, inside))
        }),
        Decision::ReportReady => on(scene.contents.as_ref(), |inside| report_ready(scene, inside)),
        Decision::Delete => Step::outside(
            DiskAction::DeleteSnapshot(scene.handle()),
            "the snapshot is being deleted, and has no holder",
        ),
        Decision::ReadContent => live_read(
            vec![Read::Object(scene.content_address())],
            "the VolumeSnapshotContent is not in the cache; only a live read can show that it is \
             gone",
        ),
        Decision::DeleteContent => on(scene.content.as_ref(), |content| {
            let write = Write::delete(Place::CLUSTER, &CONTENT, content);
            Step::write(write, "the data of the snapshot is deleted")
        }),
        Decision::LetContentGo => on(scene.content.as_ref(), |content| {
            let write = take_finalizer_off(&CONTENT, content, CONTENT_PROTECTION);
            Step::write(write, "the data of the snapshot is deleted")
        }),
        Decision::LetGo => Step::write(
            take_finalizer_off(&SNAPSHOT_KIND, snapshot, PROTECTION),
            "the data of the snapshot is deleted or retained",
        ),
    }
}

fn nothing(scene: &Scene, why: Why) -> Step<Disk> {
    match why {
        Why::Taking => wait("the snapshot is being taken", REQUEUE_AFTER),
        Why::BackingOff => back_off_for(
            scene.pause,
            "the snapshot could not be taken; the storage tries again later",
        ),
        Why::NotOurs => Step::rest("another driver takes the snapshot, or its claim is unknown"),
        Why::Ready => Step::rest("it is ready"),
        Why::SourceNotBound => Step::rest("the claim has no volume yet"),
        Why::Held => {
            Step::rest(format!("the snapshot is deleted once it has no holder: {}", holders(scene)))
        }
        Why::CacheBehind => Step::rest("the live state differs from the cache"),
        Why::Leaving => Step::rest("the object is being deleted and has no finalizer of Interlock"),
        Why::Said(obstacle) => Step::rest(of_obstacle(&scene.snapshot, obstacle)),
    }
}

fn holders(scene: &Scene) -> String {
    let finalizers = scene.snapshot.metadata.finalizers.iter().flatten();
    let others = finalizers.filter(|finalizer| *finalizer != PROTECTION);
    let names = others.map(|finalizer| finalizer.strip_prefix(HOLD_PREFIX).unwrap_or(finalizer));
    names.collect::<Vec<_>>().join(", ")
}

fn report(scene: &Scene, sentence: &str) -> Step<Disk> {
    let time = conditions::second(scene.now).to_string();
    let status = json!({"readyToUse": false, "error": {"message": sentence, "time": time}});
    let event = warns(&SNAPSHOT_KIND, &scene.snapshot, "SnapshotFailed", sentence);
    let write = change_status(&SNAPSHOT_KIND, &scene.snapshot, status);
    Step::write(write, sentence).telling(event)
}

fn record(scene: &Scene) -> Step<Disk> {
    on(scene.volume.as_ref(), |volume| {
        let snapshot = &scene.snapshot;
        let mut spec = json!({
            "deletionPolicy": scene.deletion_policy(),
            "driver": LOCAL_DRIVER,
            "source": {"volumeHandle": handle_of(volume)},
            "volumeSnapshotRef": {
                "apiVersion": SNAPSHOT_KIND.api_version(),
                "kind": "VolumeSnapshot",
                "namespace": namespace_of(snapshot),
                "name": name_of(snapshot),
                "uid": uid_of(snapshot),
            },
        });
        if let Some(class) = &scene.class {
            spec["volumeSnapshotClassName"] = json!(name_of(class));
        }
        let object = json!({"metadata": {"finalizers": [CONTENT_PROTECTION]}, "spec": spec});
        let write = Write::Create { address: scene.content_address(), object };
        Step::write(write, "the source volume of the snapshot is recorded")
    })
}

fn describe(snapshot: &Object, inside: &Content) -> Step<Disk> {
    let notes = json!({
        ANNOTATION_DIGEST: inside.digest,
        ANNOTATION_FILES: inside.files.to_string(),
        ANNOTATION_BYTES: inside.bytes.to_string(),
    });
    let metadata = json!({"metadata": {"annotations": notes}});
    let write = change(&SNAPSHOT_KIND, snapshot, metadata);
    Step::write(write, "the content of the snapshot is recorded before it is ready")
}

fn report_content(scene: &Scene, content: &Object, inside: &Content) -> Step<Disk> {
    let nanoseconds = i64::try_from(scene.now.as_nanosecond()).unwrap_or(0);
    let status = json!({
        "snapshotHandle": scene.handle(),
        "readyToUse": true,
        "restoreSize": inside.bytes,
        "creationTime": nanoseconds,
    });
    Step::write(change_status(&CONTENT, content, status), "the snapshot is complete on the disk")
}

fn report_ready(scene: &Scene, inside: &Content) -> Step<Disk> {
    let status = json!({
        "boundVolumeSnapshotContentName": &*scene.content_address().name.name,
        "readyToUse": true,
        "restoreSize": inside.bytes.to_string(),
        "creationTime": conditions::second(scene.now).to_string(),
        "error": null,
    });
    let note = format!("{} files, {}", inside.files, readable(inside.bytes));
    let event = tells(&SNAPSHOT_KIND, &scene.snapshot, "SnapshotReady", note);
    let write = change_status(&SNAPSHOT_KIND, &scene.snapshot, status);
    Step::write(write, "the snapshot is complete, and its content is recorded").telling(event)
}
