//! A decision about a VolumeSnapshot as one step.

use super::decide::{Decision, Why};
use super::observe::{CONTENT_PROTECTION, PROTECTION, Scene};
use super::sentence::{of_failure, of_obstacle};
use crate::kinds::{CONTENT, SNAPSHOT_KIND};
use crate::objects::{
    change, change_status, conditions, name_of, namespace_of, put_finalizer_on, take_finalizer_off,
    tells, text, uid_of,
};
use crate::outside::{Content, Disk, DiskDeed, DiskQuestion};
use crate::storage::{LOOK_AGAIN, back_off_for, handle_of, look, on, perform, wait};
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, HOLD_PREFIX, LOCAL_DRIVER,
};
use interlock_kernel::{Importance, Object, Place, Read, Step, Write};
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
            "it stays until its image is gone",
        ),
        Decision::Record => record(scene),
        Decision::AskDisk => look(
            vec![Read::Ask(DiskQuestion::Image(scene.handle()))],
            "only the disk knows how far its image is",
        ),
        Decision::Take => on(scene.content.as_ref(), |content| {
            let volume = text(&content.data, &["spec", "source", "volumeHandle"]).to_owned();
            perform(DiskDeed::TakeImage { handle: scene.handle(), volume }, "it is asked for")
        }),
        Decision::ReportFailure => {
            on(scene.failure.as_ref(), |failure| report(scene, &of_failure(failure)))
        }
        Decision::Forget => perform(
            DiskDeed::Forget(DiskQuestion::Image(scene.handle())),
            "its status says why it could not be taken",
        ),
        Decision::Describe => on(scene.contents.as_ref(), |inside| describe(snapshot, inside)),
        Decision::ReportContent => on(scene.content.as_ref(), |content| {
            on(scene.contents.as_ref(), |inside| report_content(scene, content, inside))
        }),
        Decision::ReportReady => on(scene.contents.as_ref(), |inside| report_ready(scene, inside)),
        Decision::Delete => {
            perform(DiskDeed::DeleteImage(scene.handle()), "it is deleted, and nobody holds it")
        }
        Decision::LookForContent => look(
            vec![Read::Object(scene.content_address())],
            "that its content is not in the cache proves nothing",
        ),
        Decision::DeleteContent => on(scene.content.as_ref(), |content| {
            let write = Write::delete(Place::CLUSTER, &CONTENT, content);
            Step::write(write, "its image is gone from the disk")
        }),
        Decision::LetContentGo => on(scene.content.as_ref(), |content| {
            let write = take_finalizer_off(&CONTENT, content, CONTENT_PROTECTION);
            Step::write(write, "its image is gone from the disk")
        }),
        Decision::LetGo => Step::write(
            take_finalizer_off(&SNAPSHOT_KIND, snapshot, PROTECTION),
            "nothing of it is left, or all of it is to stay",
        ),
    }
}

fn nothing(scene: &Scene, why: Why) -> Step<Disk> {
    match why {
        Why::Taking => wait("its image is being taken", LOOK_AGAIN),
        Why::BackingOff => {
            back_off_for(scene.pause, "it could not be taken, and is tried again later")
        }
        Why::NotOurs => Step::rest("another storage takes it, or its claim is not known"),
        Why::Ready => Step::rest("it is ready"),
        Why::SourceNotBound => Step::rest("its claim has no volume yet"),
        Why::Held => Step::rest(format!("it goes when nobody holds it: {}", holders(scene))),
        Why::CacheBehind => Step::rest("the server says something else than the cache"),
        Why::Leaving => Step::rest("it goes, and nothing of ours is on it"),
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
    let importance = (Importance::Warning, "SnapshotFailed");
    let event = tells(&SNAPSHOT_KIND, &scene.snapshot, importance, sentence);
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
        Step::write(write, "which volume it is taken of is decided once")
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
    Step::write(write, "what is in it is known before it is ready")
}

fn report_content(scene: &Scene, content: &Object, inside: &Content) -> Step<Disk> {
    let nanoseconds = i64::try_from(scene.now.as_nanosecond()).unwrap_or(0);
    let status = json!({
        "snapshotHandle": scene.handle(),
        "readyToUse": true,
        "restoreSize": inside.bytes,
        "creationTime": nanoseconds,
    });
    Step::write(change_status(&CONTENT, content, status), "its image is whole on the disk")
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
    let importance = (Importance::Normal, "SnapshotReady");
    let event = tells(&SNAPSHOT_KIND, &scene.snapshot, importance, note);
    let write = change_status(&SNAPSHOT_KIND, &scene.snapshot, status);
    Step::write(write, "its image is whole, and it says what is in it").telling(event)
}
