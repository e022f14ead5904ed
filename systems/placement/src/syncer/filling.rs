//! How a claim is filled from an image that another cluster left, there or in a repository: a
//! destination brings the image here, and the claim names the destination as the source of its data.
//!
//! Each epoch fills a volume of its own. The volume that an earlier epoch left here is not written
//! over: its claim makes room, and the volume itself stays until the copy that it belongs to may go.

use super::claims::{At, ClaimSeen, Obstacle, new_claim, noted_epoch};
use super::copying::{
    arrival_tag, ask_again, asked, confirmed, destination_name, has_given_up, is_arrival, told,
    told_number, trouble,
};
use super::decide::Epoch;
use super::marks::{
    ANNOTATION_FROM, LABEL_GRANT, from_uid, has_finalizer, is_going, is_ours, label, name,
    put_finalizer, take_finalizer_off, uid,
};
use super::observe::Scene;
use super::{Locks, report, repository};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT, VOLUME, VOLUMES_BY_GRANT};
use interlock_api::names::{
    ANNOTATION_ALLOW_EMPTY, ANNOTATION_EPOCH, ANNOTATION_RECLAIM, FINALIZER_KEEP,
    FINALIZER_POPULATE, LABEL_SUPERSEDED_BY, LOCAL_CLASS, LOCAL_DRIVER, PROVIDER_COPY,
    PROVIDER_RESTIC,
};
use interlock_api::placement::condition::FILLED;
use interlock_api::placement::{Fill, Image, Pin, Progress, Ref};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Address, Name, Object, Part, Place, Read, Step, View, Write};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::DynamicObject;
use serde_json::{Map, Value, json};
use std::fmt;
use std::time::Duration;

/// The name of an image on the disk of its cluster: what storage calls the image of a VolumeSnapshot.
const IMAGE_PREFIX: &str = "snapshot-";
/// How often it is told, at most, how far the data has come.
const TOLD_EVERY_SECONDS: i64 = 1;
/// How soon a step is tried again that waits for something to go.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// Whether a claim on this cluster has its volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// It has.
    Bound,
    /// It had, and the volume is gone.
    Lost,
    /// Not yet.
    Unbound,
    /// It gets one when the first pod that uses it has found its place, and not before.
    AwaitsConsumer,
    /// Whoever makes its volumes is not waited for: nothing has to arrive.
    NotAsked,
}

/// Whether a claim on this cluster has its volume.
pub(super) fn binding(here: Option<&DynamicObject>, view: Option<&dyn View>) -> Binding {
    let (Some(here), Some(view)) = (here, view) else { return Binding::NotAsked };
    match here.data["status"]["phase"].as_str() {
        Some("Bound") => return Binding::Bound,
        Some("Lost") => return Binding::Lost,
        _ => {}
    }
    let class = class_of(&here.data["spec"], view);
    let is_ours = class.as_ref().is_some_and(|class| class.data["provisioner"] == LOCAL_DRIVER);
    if !is_ours && here.data["spec"]["dataSourceRef"].is_null() {
        return Binding::NotAsked;
    }
    match class.is_some_and(|class| class.data["volumeBindingMode"] == "WaitForFirstConsumer") {
        true => Binding::AwaitsConsumer,
        false => Binding::Unbound,
    }
}

/// The class of a claim on this cluster.
fn class_of(spec: &Value, view: &dyn View) -> Option<Object> {
    let wanted = spec["storageClassName"].as_str();
    let classes = view.list(Place::CLUSTER, &crate::kinds::STORAGE_CLASS, None);
    classes.into_iter().find(|class| match wanted {
        Some(wanted) => name(class) == wanted,
        None => super::marks::annotation(class, IS_DEFAULT) == Some("true"),
    })
}

/// The class of the images of a claim: that of local volumes for those, and else whatever the cluster
/// takes by itself.
pub(super) fn image_class(spec: &Value, view: &dyn View) -> &'static str {
    let is_local =
        class_of(spec, view).is_some_and(|class| class.data["provisioner"] == LOCAL_DRIVER);
    if is_local { LOCAL_CLASS } else { "" }
}

/// An image that is not here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    whence: Whence<'a>,
    pin: &'a Pin,
}

/// Where it is.
#[derive(Debug, Clone, Copy)]
enum Whence<'a> {
    /// On a cluster.
    Cluster { cluster: &'a Ref, uid: &'a str },
    /// In the repository that a Secret opens.
    Repository { secret: &'a str, snapshot: &'a str },
}

impl fmt::Display for Whence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whence::Cluster { cluster, .. } => write!(f, "on cluster {cluster}"),
            Whence::Repository { secret, snapshot } => {
                let short: String = snapshot.chars().take(8).collect();
                write!(f, "in the repository of Secret {secret}, snapshot {short}")
            }
        }
    }
}

impl<'a> Origin<'a> {
    /// The Secret that it is opened with.
    pub(super) fn secret(&self) -> Option<&'a str> {
        match self.whence {
            Whence::Repository { secret, .. } => Some(secret),
            Whence::Cluster { .. } => None,
        }
    }
}

impl ClaimSeen {
    /// The image that it is filled from, if it is one that has to be brought here.
    pub(super) fn origin(&self) -> Option<Origin<'_>> {
        let pin = self.pin.as_ref()?;
        let whence = match &pin.image {
            Image::VolumeSnapshot { cluster, uid, .. } => Whence::Cluster { cluster, uid },
            Image::Restic { secret, snapshot_id: snapshot } => {
                Whence::Repository { secret, snapshot }
            }
            Image::InPlace { .. } | Image::Fresh {} => return None,
        };
        Some(Origin { whence, pin })
    }

    /// The destination of this very claim at this epoch.
    pub(super) fn own_destination(&self, at: At<'_>) -> Option<&Object> {
        let found = self.destination.as_ref()?;
        let is_own = is_ours(found, at.grant) && from_uid(found) == Some(&self.listed.uid);
        is_own.then_some(found)
    }

    /// Whether the image has been brought here.
    pub(super) fn has_arrived(&self, at: At<'_>) -> bool {
        self.own_destination(at).is_some_and(|found| {
            asked(found).is_some_and(|tag| is_arrival(tag, at.epoch))
                && confirmed(found) == asked(found)
        })
    }

    /// What keeps the data from arriving, in words; None: it is on its way.
    pub(super) fn delay(&self, at: At<'_>) -> Option<Obstacle> {
        let origin = self.origin()?;
        let Obstacle { reason, message } = trouble(self.own_destination(at)?)?;
        let message = format!(
            "claim {} is not filled: {message}. Nothing is lost: its image of epoch {} is {}, and \
             the volume that it was taken of is where it was",
            self.listed.name, origin.pin.epoch, origin.whence
        );
        Some(Obstacle { reason, message })
    }

    /// How far its data has come, if that is news.
    pub(super) fn progress(&self, at: At<'_>, now: Timestamp) -> Option<Progress> {
        let destination = self.own_destination(at)?;
        let origin = self.origin()?;
        let bytes = match self.has_arrived(at) {
            true => origin.pin.bytes,
            false => told_number(destination, "progressBytes")?,
        };
        let of_bytes = told_number(destination, "progressOfBytes");
        let of_bytes = of_bytes.or(Some(origin.pin.bytes).filter(|bytes| *bytes > 0));
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let before = self.listed.progress.as_ref();
        if before.is_some_and(|before| {
            let ago = now.as_second().saturating_sub(before.at.0.as_second());
            (before.bytes == bytes && before.of_bytes == of_bytes)
                || (0..TOLD_EVERY_SECONDS).contains(&ago)
        }) {
            return None;
        }
        Some(Progress { bytes, of_bytes, at: Time(now) })
    }
}

/// The next write that fills a claim from its image.
pub(super) fn fill(scene: &Scene<'_>, claim: &ClaimSeen, origin: Origin<'_>) -> Step<Locks> {
    let at = scene.at();
    if let Some(here) = claim.volume_here(at).filter(|here| noted_epoch(here) < at.epoch) {
        return make_room(scene, here, at.epoch);
    }
    let (Some(at_hub), Some(grant)) = (&claim.at_hub, &scene.grant) else {
        return Step::rest("the claim at the hub is not in the cache");
    };
    if !has_finalizer(at_hub, &scene.syncer.finalizer) {
        let change = put_finalizer(at_hub, &scene.syncer.finalizer);
        let write = Write::patch(Place::HUB, &CLAIM, at_hub, (Part::Main, change));
        return Step::write(write, "its volume comes down here, and it must not vanish first");
    }
    match origin.secret().map(|secret| repository::bring_secret(scene, secret)) {
        None | Some(Ok(None)) => {}
        Some(Ok(Some(step))) => return step,
        Some(Err(Obstacle { reason, message })) => {
            let message = format!("claim {} is not filled: {message}", claim.listed.name);
            let found = Finding::fails(FILLED, reason, message.clone());
            let waits = Step::Wait { because: message, at_most: LOOK_AGAIN };
            return report::saying(scene, found, waits);
        }
    }
    let wanted = new_claim(at_hub, &grant.spec.volumes, at);
    let destination = destination_name(&claim.listed.name, at.epoch);
    if claim.own_destination(at).is_none() {
        let name = Name::within(scene.name, &destination);
        let address = Address::new(Place::CLUSTER, &DESTINATION, name);
        let images = image_class(&wanted["spec"], scene.view);
        let object = new_destination(claim, (origin, at), (&wanted["spec"], images));
        let because = format!("its data is in an image {}", origin.whence);
        return Step::write(Write::Create { address, object }, because);
    }
    let mut wanted = wanted;
    // Whatever it was filled from at first, its data is in the image now.
    if let Some(spec) = wanted["spec"].as_object_mut() {
        spec.remove("dataSource");
    }
    wanted["spec"]["dataSourceRef"] = json!({
        "apiGroup": DESTINATION.group, "kind": DESTINATION.kind, "name": destination,
    });
    // What the closed volume had is what the claim gets, and be it nothing.
    wanted["metadata"]["annotations"][ANNOTATION_ALLOW_EMPTY] = json!("true");
    let name = Name::within(scene.name, &claim.listed.name);
    let write =
        Write::Create { address: Address::new(Place::CLUSTER, &CLAIM, name), object: wanted };
    Step::write(write, format!("it is filled by {destination}"))
}

/// Asks once more for an image that was brought here and then deleted, before the claim had its data:
/// where it came from, it is held until then. None: it is on its way, or here.
pub(super) fn bring_again(scene: &Scene<'_>, claim: &ClaimSeen) -> Option<Step<Locks>> {
    let at = scene.at();
    let destination = claim.own_destination(at)?;
    if claim.has_arrived(at) {
        let (image, image_uid) = (told(destination, "image")?, told(destination, "imageUID")?);
        // One that is deleted and held is still what the claim is filled from.
        let is_it = |found: &Object| uid(found) == image_uid;
        let address = Address::new(Place::CLUSTER, &SNAPSHOT, Name::within(scene.name, image));
        if scene.view.get(Place::CLUSTER, &SNAPSHOT, &address.name).is_some_and(|it| is_it(&it)) {
            return None;
        }
        match scene.looks.objects.get(&address) {
            None => {
                let because = "an image was brought that the cache does not show".to_owned();
                return Some(Step::Look { reads: vec![Read::Object(address)], because });
            }
            Some(Some(found)) if is_it(found) => return None,
            Some(_) => {}
        }
    } else if !has_given_up(destination, "ImageLost") {
        return None;
    }
    let because = format!(
        "the image that claim {} is filled from was deleted here; it is brought again",
        claim.listed.name
    );
    Some(ask_again(&DESTINATION, destination, because))
}

fn new_destination(
    claim: &ClaimSeen,
    (origin, at): (Origin<'_>, At<'_>),
    (spec, image_class): (&Value, &str),
) -> Value {
    let mut parameters = Map::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            parameters.insert(key.to_owned(), json!(value));
        }
    };
    put("copyMethod", "Snapshot");
    put("volumeSnapshotClassName", image_class);
    let provider = match origin.whence {
        Whence::Cluster { cluster, uid } => {
            put("cluster", &cluster.uid);
            put("image", &format!("{IMAGE_PREFIX}{uid}"));
            PROVIDER_COPY
        }
        Whence::Repository { secret, snapshot } => {
            put("repository", secret);
            put("snapshotID", snapshot);
            // Whatever an attempt that died has left is not part of it.
            put("enableFileDeletion", "true");
            PROVIDER_RESTIC
        }
    };
    put("digest", &origin.pin.digest);
    put("capacity", spec["resources"]["requests"]["storage"].as_str().unwrap_or_default());
    put("storageClassName", spec["storageClassName"].as_str().unwrap_or_default());
    let modes = spec["accessModes"].as_array().into_iter().flatten();
    put("accessModes", &modes.filter_map(Value::as_str).collect::<Vec<_>>().join(","));
    json!({
        "metadata": {
            "labels": {LABEL_GRANT: at.grant},
            "annotations": {
                ANNOTATION_FROM: format!("{}/destination", claim.listed.uid),
                ANNOTATION_EPOCH: at.epoch.to_string(),
                ANNOTATION_ALLOW_EMPTY: "true",
            },
        },
        "spec": {
            "trigger": {"manual": arrival_tag(at.epoch)},
            "external": {"provider": provider, "parameters": parameters},
        },
    })
}

/// The claim of an earlier epoch goes, so that its name is free; its volume stays. In this order: the
/// volume is kept whatever happens to its claim, the claim may go, it goes.
fn make_room(scene: &Scene<'_>, here: &Object, epoch: Epoch) -> Step<Locks> {
    let wait = |because: &str| Step::Wait { because: because.to_owned(), at_most: LOOK_AGAIN };
    if is_going(here) && !has_finalizer(here, FINALIZER_KEEP) {
        return wait("the claim of an earlier epoch is going; its volume stays");
    }
    if here.data["status"]["phase"] != "Bound" && !is_going(here) {
        // Nothing was ever written to it: whoever fills it undoes what was begun.
        return match has_finalizer(here, FINALIZER_KEEP) {
            true => unkeep(here),
            false => go(here),
        };
    }
    if has_finalizer(here, FINALIZER_POPULATE) {
        return wait("whoever filled the claim of an earlier epoch has a hand on its volume");
    }
    let volume = here.data["spec"]["volumeName"].as_str().filter(|volume| !volume.is_empty());
    if let Some(volume) = volume {
        let found = scene.view.get(Place::CLUSTER, &VOLUME, &Name::cluster_wide(volume));
        let Some(found) = found else {
            return wait("the volume of an earlier epoch is not in the cache");
        };
        if !is_kept(&found, scene.name) {
            return keep(scene, &found, (here, epoch));
        }
    }
    if has_finalizer(here, FINALIZER_KEEP) {
        return unkeep(here);
    }
    go(here)
}

fn unkeep(here: &Object) -> Step<Locks> {
    let change = take_finalizer_off(here, FINALIZER_KEEP);
    let write = Write::patch(Place::CLUSTER, &CLAIM, here, (Part::Main, change));
    Step::write(write, "its name is needed for a new volume")
}

fn go(here: &Object) -> Step<Locks> {
    let write = Write::delete(Place::CLUSTER, &CLAIM, here);
    Step::write(write, format!("the {} makes room and stays by itself", report::describe(here)))
}

/// Whether a volume stays when its claim goes, and is known to be of this grant.
fn is_kept(volume: &DynamicObject, grant: &str) -> bool {
    is_ours(volume, grant) && volume.data["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
}

fn keep(scene: &Scene<'_>, volume: &Object, (here, epoch): (&Object, Epoch)) -> Step<Locks> {
    let policy = volume.data["spec"]["persistentVolumeReclaimPolicy"].as_str().unwrap_or("Retain");
    // One that is kept for another reason already has its own policy noted.
    let noted = super::marks::annotation(volume, ANNOTATION_RECLAIM).unwrap_or(policy);
    let from = super::marks::annotation(here, ANNOTATION_FROM).unwrap_or_default();
    let change = json!({
        "metadata": {
            "labels": {LABEL_GRANT: scene.name, LABEL_SUPERSEDED_BY: epoch.to_string()},
            "annotations": {
                ANNOTATION_RECLAIM: noted,
                ANNOTATION_EPOCH: noted_epoch(here).to_string(),
                ANNOTATION_FROM: from,
            },
        },
        "spec": {"persistentVolumeReclaimPolicy": "Retain"},
    });
    let write = Write::patch(Place::CLUSTER, &VOLUME, volume, (Part::Main, change));
    Step::write(write, "a move never deletes a volume")
}

/// The volumes of earlier epochs that were kept here without their claims.
pub(super) fn kept_volumes(scene: &Scene<'_>) -> Vec<Object> {
    if !scene.syncer.is_copying {
        return Vec::new();
    }
    let ours = scene.view.find(Place::CLUSTER, &VOLUMES_BY_GRANT, scene.name);
    ours.into_iter().filter(|volume| label(volume, LABEL_SUPERSEDED_BY).is_some()).collect()
}

/// Gives a volume back to whoever made it, with the policy that it had.
pub(super) fn give_back(volume: &Object) -> Write {
    let policy = super::marks::annotation(volume, ANNOTATION_RECLAIM).unwrap_or("Delete");
    let change = json!({
        "metadata": {
            "labels": {LABEL_GRANT: null, LABEL_SUPERSEDED_BY: null},
            "annotations": {ANNOTATION_RECLAIM: null},
        },
        "spec": {"persistentVolumeReclaimPolicy": policy},
    });
    Write::patch(Place::CLUSTER, &VOLUME, volume, (Part::Main, change))
}

/// A destination that has done its work: the hub knows that its claim is filled, and the claim has its
/// volume.
pub(super) fn done_destination(scene: &Scene<'_>) -> Option<Object> {
    let at = scene.at();
    let is_done =
        |claim: &&ClaimSeen| claim.listed.fill == Fill::Filled && claim.binding == Binding::Bound;
    let done: Vec<&str> =
        scene.claims.iter().filter(is_done).map(|claim| claim.listed.uid.as_str()).collect();
    destinations(scene).into_iter().find(|found| {
        let is_of_done = from_uid(found).is_some_and(|from| done.contains(&from));
        is_of_done && !is_going(found) && is_ours(found, at.grant) && asked(found).is_some()
    })
}

/// The destinations that we made here.
pub(super) fn destinations(scene: &Scene<'_>) -> Vec<Object> {
    if !scene.syncer.is_copying {
        return Vec::new();
    }
    let all = scene.view.list(Place::CLUSTER, &DESTINATION, Some(scene.name));
    all.into_iter().filter(|found| is_ours(found, scene.name)).collect()
}
