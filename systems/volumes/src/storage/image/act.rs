//! A decision about a VolumeSnapshot as one step.

use super::decide::{Decision, Obstacle, Why};
use super::observe::{CONTENT_PROTECTION, PROTECTION, Scene};
use crate::kinds::{CONTENT, SNAPSHOT_KIND};
use crate::objects::{
    change, change_status, conditions, name_of, namespace_of, put_finalizer_on, take_finalizer_off,
    tells, text, uid_of,
};
use crate::outside::{Disk, DiskDeed, DiskQuestion};
use crate::storage::{LOOK_AGAIN, MOST_BACK_OFF_SECONDS, perform, wait};
use crate::sync::images::CLASS_MISSING;
use interlock_api::names::{
    ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_FILES, HOLD_PREFIX, LOCAL_DRIVER,
};
use interlock_kernel::{Importance, Object, Place, Read, Step, Write};
use serde_json::json;
use std::time::Duration;

pub(super) fn act(scene: &Scene<'_>, decision: Decision) -> Step<Disk> {
    let snapshot = &scene.snapshot;
    match decision {
        Decision::Nothing(why) => nothing(scene, why),
        Decision::Say(obstacle) => say(scene, &obstacle_of(scene, obstacle)),
        Decision::Protect => Step::write(
            put_finalizer_on(&SNAPSHOT_KIND, snapshot, PROTECTION),
            "it stays until its image is gone",
        ),
        Decision::Record => record(scene),
        Decision::AskDisk => look(
            vec![Read::Ask(DiskQuestion::Image(scene.handle()))],
            "only the disk knows how far its image is",
        ),
        Decision::Take => {
            let (handle, volume) = (scene.handle(), scene.source_handle().to_owned());
            perform(DiskDeed::TakeImage { handle, volume }, "it is asked for")
        }
        Decision::ReportFailure => match scene.failure() {
            Some(failure) => report(scene, &Scene::sentence(failure)),
            None => Step::rest("it did not fail"),
        },
        Decision::Forget => perform(
            DiskDeed::Forget(DiskQuestion::Image(scene.handle())),
            "its status says why it could not be taken",
        ),
        Decision::Describe => describe(scene),
        Decision::ReportContent => report_content(scene),
        Decision::ReportReady => report_ready(scene),
        Decision::Delete => {
            perform(DiskDeed::DeleteImage(scene.handle()), "it is deleted, and nobody holds it")
        }
        Decision::LookForContent => look(
            vec![Read::Object(scene.content_address())],
            "that its content is not in the cache proves nothing",
        ),
        Decision::DeleteContent => on_content(scene, |content| {
            let write = Write::delete(Place::CLUSTER, &CONTENT, content);
            Step::write(write, "its image is gone from the disk")
        }),
        Decision::LetContentGo => on_content(scene, |content| {
            let write = take_finalizer_off(&CONTENT, content, CONTENT_PROTECTION);
            Step::write(write, "its image is gone from the disk")
        }),
        Decision::LetGo => Step::write(
            take_finalizer_off(&SNAPSHOT_KIND, snapshot, PROTECTION),
            "nothing of it is left, or all of it is to stay",
        ),
    }
}

fn look(reads: Vec<Read<Disk>>, because: &str) -> Step<Disk> {
    Step::Look { reads, because: because.to_owned() }
}

fn on_content(scene: &Scene<'_>, act: impl FnOnce(&Object) -> Step<Disk>) -> Step<Disk> {
    match &scene.content {
        Some(content) => act(content),
        None => Step::rest("its content is not here"),
    }
}

fn nothing(scene: &Scene<'_>, why: Why) -> Step<Disk> {
    match why {
        Why::Taking => wait("its image is being taken", LOOK_AGAIN),
        Why::BackingOff => {
            let pause = scene.pause().unwrap_or(Duration::from_secs(MOST_BACK_OFF_SECONDS as u64));
            wait("it could not be taken, and is tried again later", pause)
        }
        Why::NotOurs => Step::rest("another storage takes it, or its claim is not known"),
        Why::Ready => Step::rest("it is ready"),
        Why::SourceNotBound => Step::rest("its claim has no volume yet"),
        Why::Held => Step::rest(format!("it goes when nobody holds it: {}", holders(scene))),
        Why::CacheBehind => Step::rest("the server says something else than the cache"),
        Why::Leaving => Step::rest("it goes, and nothing of ours is on it"),
    }
}

fn holders(scene: &Scene<'_>) -> String {
    let finalizers = scene.snapshot.metadata.finalizers.iter().flatten();
    let others = finalizers.filter(|finalizer| *finalizer != PROTECTION);
    let names = others.map(|finalizer| finalizer.strip_prefix(HOLD_PREFIX).unwrap_or(finalizer));
    names.collect::<Vec<_>>().join(", ")
}

fn obstacle_of(scene: &Scene<'_>, obstacle: Obstacle) -> String {
    let spec = &scene.snapshot.data["spec"];
    match obstacle {
        Obstacle::ClassMissing => {
            let class = text(spec, &["volumeSnapshotClassName"]);
            format!(
                "{CLASS_MISSING}: there is no VolumeSnapshotClass {class}; create it, or name one \
                 that is there"
            )
        }
        Obstacle::SourceMissing => {
            let claim = text(spec, &["source", "persistentVolumeClaimName"]);
            format!("SourceMissing: claim {claim} is not here; create it, and this goes on")
        }
        Obstacle::NotSupported => "NotSupported: local storage takes images of claims only; set \
                                   spec.source.persistentVolumeClaimName"
            .to_owned(),
    }
}

/// Says it once; what it waits for is an object, whose change brings the next step.
fn say(scene: &Scene<'_>, sentence: &str) -> Step<Disk> {
    if text(&scene.snapshot.data, &["status", "error", "message"]) == sentence {
        return Step::rest(sentence);
    }
    report(scene, sentence)
}

fn report(scene: &Scene<'_>, sentence: &str) -> Step<Disk> {
    let time = conditions::second(scene.view.now()).to_string();
    let status = json!({"readyToUse": false, "error": {"message": sentence, "time": time}});
    let importance = (Importance::Warning, "SnapshotFailed");
    let event = tells(&SNAPSHOT_KIND, &scene.snapshot, importance, sentence);
    let write = change_status(&SNAPSHOT_KIND, &scene.snapshot, status);
    Step::write(write, sentence).telling(event)
}

fn record(scene: &Scene<'_>) -> Step<Disk> {
    let snapshot = &scene.snapshot;
    let class = scene.class.as_deref();
    let policy = class.map(|class| text(&class.data, &["deletionPolicy"])).unwrap_or_default();
    let mut spec = json!({
        "deletionPolicy": if policy.is_empty() { "Delete" } else { policy },
        "driver": LOCAL_DRIVER,
        "source": {"volumeHandle": scene.source_handle()},
        "volumeSnapshotRef": {
            "apiVersion": SNAPSHOT_KIND.api_version(),
            "kind": "VolumeSnapshot",
            "namespace": namespace_of(snapshot),
            "name": name_of(snapshot),
            "uid": uid_of(snapshot),
        },
    });
    if let Some(class) = class {
        spec["volumeSnapshotClassName"] = json!(name_of(class));
    }
    let object = json!({"metadata": {"finalizers": [CONTENT_PROTECTION]}, "spec": spec});
    let write = Write::Create { address: scene.content_address(), object };
    Step::write(write, "which volume it is taken of is decided once")
}

fn describe(scene: &Scene<'_>) -> Step<Disk> {
    let Some(contents) = scene.contents() else { return Step::rest("it is not whole") };
    let notes = json!({
        ANNOTATION_DIGEST: contents.digest,
        ANNOTATION_FILES: contents.files.to_string(),
        ANNOTATION_BYTES: contents.bytes.to_string(),
    });
    let metadata = json!({"metadata": {"annotations": notes}});
    let write = change(&SNAPSHOT_KIND, &scene.snapshot, metadata);
    Step::write(write, "what is in it is known before it is ready")
}

fn report_content(scene: &Scene<'_>) -> Step<Disk> {
    let Some(contents) = scene.contents() else { return Step::rest("it is not whole") };
    let nanoseconds = i64::try_from(scene.view.now().as_nanosecond()).unwrap_or(0);
    let status = json!({
        "snapshotHandle": scene.handle(),
        "readyToUse": true,
        "restoreSize": contents.bytes,
        "creationTime": nanoseconds,
    });
    on_content(scene, |content| {
        Step::write(change_status(&CONTENT, content, status), "its image is whole on the disk")
    })
}

fn report_ready(scene: &Scene<'_>) -> Step<Disk> {
    let Some(contents) = scene.contents() else { return Step::rest("it is not whole") };
    let status = json!({
        "boundVolumeSnapshotContentName": &*scene.content_address().name.name,
        "readyToUse": true,
        "restoreSize": contents.bytes.to_string(),
        "creationTime": conditions::second(scene.view.now()).to_string(),
        "error": null,
    });
    let note = format!("{} files, {}", contents.files, crate::quantity::readable(contents.bytes));
    let importance = (Importance::Normal, "SnapshotReady");
    let event = tells(&SNAPSHOT_KIND, &scene.snapshot, importance, note);
    let write = change_status(&SNAPSHOT_KIND, &scene.snapshot, status);
    Step::write(write, "its image is whole, and it says what is in it").telling(event)
}
