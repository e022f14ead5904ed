//! The last images of claims: asked for once an epoch is closed here, held, and then pinned.
//!
//! The tag of the trigger says which epoch an image is of. The source confirms a tag only for an image
//! that it began after it saw the tag, so an image that is confirmed for `final-<epoch>` was taken
//! after that epoch was closed, and has all that was written in it.

use super::Locks;
use super::claims::{At, ClaimSeen, Obstacle};
use super::copying::{
    ask_again, asked, confirmed, final_tag, has_given_up, is_final, is_syncing, source_name, told,
    told_number, trouble,
};
use super::decide::LastImage;
use super::filling::image_class;
use super::marks::{
    ANNOTATION_FROM, LABEL_GRANT, from_uid, has_finalizer, is_going, is_ours, name, put_finalizer,
    take_finalizer_off, uid,
};
use super::observe::Scene;
use super::{leftover, report, repository};
use crate::kinds::{SNAPSHOT, SOURCE};
use interlock_api::names::{
    ANNOTATION_ALLOW_EMPTY, ANNOTATION_BYTES, ANNOTATION_DIGEST, ANNOTATION_EPOCH,
    ANNOTATION_FILES, PROVIDER_COPY, PROVIDER_RESTIC, hold_finalizer,
};
use interlock_api::placement::condition::DATA_SYNCED;
use interlock_api::placement::{Image, Pin};
use interlock_kernel::conditions::Finding;
use interlock_kernel::{Address, Name, Object, Part, Place, Read, Step, View, Write};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How soon a step is tried again that waits for a source, should nobody tell.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often something is looked at again that time alone may change.
const ONCE_A_WHILE: Duration = Duration::from_secs(600);

impl ClaimSeen {
    /// The source of this very claim.
    fn own_source(&self, at: At<'_>) -> Option<&Object> {
        let source = self.source.as_ref()?;
        let is_own = is_ours(source, at.grant) && from_uid(source) == Some(&self.listed.uid);
        is_own.then_some(source)
    }

    /// The source, if it has confirmed the last image of this epoch.
    fn confirmed_source(&self, at: At<'_>) -> Option<&Object> {
        let source = self.own_source(at).filter(|source| is_asked(source, at))?;
        (asked(source) == confirmed(source)).then_some(source)
    }

    /// How far the last image of this epoch is.
    pub(super) fn last_image(&self, at: At<'_>) -> LastImage {
        if self.last(at).is_some() {
            return LastImage::Held;
        }
        let Some(source) = self.own_source(at) else { return LastImage::None };
        if is_going(source) || !is_asked(source, at) {
            return LastImage::None;
        }
        if repository::is_through(source) {
            // In a repository nobody forgets it while this epoch is not over.
            return if self.saved(at).is_some() { LastImage::Held } else { LastImage::Asked };
        }
        match self.made_image(at) {
            Some(image) if is_held(image, at) => LastImage::Held,
            Some(image) if !is_going(image) => LastImage::Made,
            // It is being made, or gone again: only a fresh look can tell.
            Some(_) | None => LastImage::Asked,
        }
    }

    /// The last image of this epoch, once its source has confirmed it.
    fn made_image(&self, at: At<'_>) -> Option<&Object> {
        let image = self.image.as_ref().filter(|_| self.confirmed_source(at).is_some())?;
        (image.data["status"]["readyToUse"] == true).then_some(image)
    }

    /// The last image of this epoch in a repository: the source that saved it, the Secret that opens
    /// the repository, the snapshot.
    fn saved(&self, at: At<'_>) -> Option<(&Object, &str, &str)> {
        let source = self.confirmed_source(at).filter(|source| repository::is_through(source))?;
        Some((source, repository::secret_of(source)?, told(source, "snapshotID")?))
    }

    /// Whether this is the image that was made for the end of this epoch.
    pub(super) fn is_last_image(&self, at: At<'_>, image: &Object) -> bool {
        let made = self.image.as_ref().filter(|_| self.confirmed_source(at).is_some());
        made.is_some_and(|made| uid(made) == uid(image))
    }

    /// The pin for the last image of this epoch, if it is held.
    pub(super) fn image_pin(&self, at: At<'_>, now: Timestamp) -> Option<Pin> {
        let (source, image, taken) = match self.saved(at) {
            Some((source, secret, snapshot)) => {
                let (secret, snapshot_id) = (secret.to_owned(), snapshot.to_owned());
                let taken = &source.data["status"]["lastSyncTime"];
                (source, Image::Restic { secret, snapshot_id }, taken)
            }
            None => {
                let image = self.made_image(at).filter(|image| is_held(image, at))?;
                let taken = &image.data["status"]["creationTime"];
                (self.confirmed_source(at)?, on_cluster(image, at), taken)
            }
        };
        let marked = |mark: &str| super::marks::annotation(self.image.as_ref()?, mark);
        let number = |key: &str, mark: &str| {
            let marked = || marked(mark)?.parse().ok();
            told_number(source, key).or_else(marked).unwrap_or(0).max(0)
        };
        let digest = told(source, "digest").or_else(|| marked(ANNOTATION_DIGEST));
        let taken = taken.as_str().and_then(|taken| taken.parse::<Timestamp>().ok());
        Some(Pin {
            claim: self.listed.name.clone(),
            claim_uid: self.listed.uid.clone(),
            epoch: at.epoch,
            taken: Time(taken.unwrap_or(now)),
            files: number("files", ANNOTATION_FILES),
            bytes: number("bytes", ANNOTATION_BYTES),
            digest: digest.unwrap_or_default().to_owned(),
            image,
        })
    }
}

/// An image on this cluster, as a pin names it.
fn on_cluster(image: &Object, at: At<'_>) -> Image {
    Image::VolumeSnapshot {
        cluster: at.cluster.clone(),
        namespace: at.grant.to_owned(),
        name: name(image).to_owned(),
        uid: uid(image).to_owned(),
    }
}

/// The image that a source says it made last, if that very one is in the cache.
pub(super) fn image_of(source: &Object, grant: &str, view: &dyn View) -> Option<Object> {
    let image = Name::within(grant, told(source, "image")?);
    let image = view.get(Place::CLUSTER, &SNAPSHOT, &image)?;
    (Some(uid(&image)) == told(source, "imageUID")).then_some(image)
}

fn is_asked(source: &Object, at: At<'_>) -> bool {
    asked(source).is_some_and(|tag| is_final(tag, at.epoch))
}

fn is_held(image: &Object, at: At<'_>) -> bool {
    has_finalizer(image, &hold_finalizer(at.grant_uid))
}

/// Asks for the last image of a claim: one write, or what has to be waited for before.
pub(super) fn ask(scene: &Scene<'_>, place: usize) -> Step<Locks> {
    let Some(claim) = scene.claims.get(place) else {
        return Step::rest("the claim is not in the cache");
    };
    if !scene.syncer.is_copying {
        return not_supported(scene, claim);
    }
    let at = scene.at();
    let Some(here) = claim.volume_here(at) else {
        let message = format!("the volume of claim {} is not here", claim.listed.name);
        return stands(scene, Obstacle { reason: "VolumeMissing", message });
    };
    let because = format!("epoch {} is closed, and its data goes elsewhere", at.epoch);
    let external = match repository::leaves_through(scene) {
        None => copied(image_class(&here.data["spec"], scene.view)),
        Some(secret) => match repository::bring_secret(scene, secret) {
            Ok(None) => json!({
                "provider": PROVIDER_RESTIC,
                "parameters": repository::parameters(claim, secret, at),
            }),
            Ok(Some(step)) => return step,
            Err(obstacle) => return stands(scene, obstacle),
        },
    };
    let Some(source) = &claim.source else {
        let name = Name::within(scene.name, &source_name(&claim.listed.name));
        let address = Address::new(Place::CLUSTER, &SOURCE, name);
        let object = new_source(claim, at, external);
        return Step::write(Write::Create { address, object }, because);
    };
    if !is_ours(source, at.grant) {
        let message =
            format!("a ReplicationSource {} of somebody else is in its place", name(source));
        return stands(scene, Obstacle { reason: "NameTaken", message });
    }
    if is_going(source) {
        // It stays while an image of it is held. One that no pin refers to is let go for that.
        return match leftover::unpinned_image(scene) {
            Some(image) => {
                let change = take_finalizer_off(&image, &hold_finalizer(at.grant_uid));
                let write = Write::patch(Place::CLUSTER, &SNAPSHOT, &image, (Part::Main, change));
                Step::write(write, "somebody deletes its source, and no pin refers to this image")
            }
            None => wait("its source is going, and is made anew"),
        };
    }
    if is_syncing(source) {
        let message = format!(
            "an earlier image of claim {} is being made; the last one follows",
            claim.listed.name
        );
        let found = Finding::fails(DATA_SYNCED, "Copying", message);
        return report::saying(scene, found, wait("the tag before is not confirmed yet"));
    }
    // One that was for an earlier claim of that name is for this one now.
    let change = json!({
        "metadata": {"annotations": {
            ANNOTATION_EPOCH: at.epoch.to_string(),
            ANNOTATION_FROM: format!("{}/source", claim.listed.uid),
        }},
        "spec": {
            "trigger": {"manual": final_tag(at.epoch)},
            "paused": false,
            "external": in_place_of(&source.data["spec"]["external"], external),
        },
    });
    let write = Write::patch(Place::CLUSTER, &SOURCE, source, (Part::Main, change));
    Step::write(write, because)
}

/// An image on this cluster is asked for.
fn copied(image_class: &str) -> Value {
    let mut parameters = json!({"copyMethod": "Snapshot"});
    if !image_class.is_empty() {
        parameters["volumeSnapshotClassName"] = json!(image_class);
    }
    json!({"provider": PROVIDER_COPY, "parameters": parameters})
}

/// The patch that leaves nothing of what was asked for before.
fn in_place_of(before: &Value, mut external: Value) -> Value {
    for key in before["parameters"].as_object().into_iter().flat_map(Map::keys) {
        if external["parameters"][key].is_null() {
            external["parameters"][key] = Value::Null;
        }
    }
    external
}

fn new_source(claim: &ClaimSeen, at: At<'_>, external: Value) -> Value {
    json!({
        "metadata": {
            "labels": {LABEL_GRANT: at.grant},
            "annotations": {
                ANNOTATION_FROM: format!("{}/source", claim.listed.uid),
                ANNOTATION_EPOCH: at.epoch.to_string(),
                // The volume is closed: if there is nothing in it, that is how it was left.
                ANNOTATION_ALLOW_EMPTY: "true",
            },
        },
        "spec": {
            "sourcePVC": claim.listed.name,
            "trigger": {"manual": final_tag(at.epoch)},
            "external": external,
        },
    })
}

/// Holds the last image of a claim: from here on only we can let it go.
pub(super) fn hold(scene: &Scene<'_>, place: usize) -> Step<Locks> {
    let at = scene.at();
    let claim = scene.claims.get(place);
    let Some((claim, image)) = claim.and_then(|claim| Some((claim, claim.made_image(at)?))) else {
        return Step::rest("the image is not in the cache");
    };
    let change = put_finalizer(image, &hold_finalizer(at.grant_uid));
    let write = Write::patch(Place::CLUSTER, &SNAPSHOT, image, (Part::Main, change));
    let said = format!(
        "the last image of claim {} at epoch {} is made on {}",
        claim.listed.name, at.epoch, at.cluster
    );
    let step = Step::write(write, "the next owner starts from it, so it must stay");
    report::telling(step, report::event(scene, "FinalSyncDone", said))
}

/// Last images are being made: says what stands in the way, and heals an image that is gone again.
pub(super) fn wait_for(scene: &Scene<'_>) -> Step<Locks> {
    let at = scene.at();
    let waiting = scene.claims.iter().filter(|claim| claim.last_image(at) == LastImage::Asked);
    let mut found = None;
    for claim in waiting {
        // Whoever mends the Secret at the hub mends it here.
        if let Some(secret) = claim.own_source(at).and_then(|source| repository::secret_of(source))
            && let Ok(Some(step)) = repository::bring_secret(scene, secret)
        {
            return step;
        }
        if let Some(source) = claim.confirmed_source(at)
            && claim.made_image(at).is_none_or(|image| is_going(image))
        {
            return look_for_image(scene, claim, source);
        }
        let Some(source) = claim.own_source(at) else { continue };
        // Somebody deleted it while it was taken.
        if has_given_up(source, "ImageGone") {
            return begin_anew(claim, source);
        }
        let name = &claim.listed.name;
        let said = match trouble(source) {
            Some(Obstacle { reason, message }) => {
                let message = format!(
                    "the last image of claim {name} cannot be taken: {message}. It stays on {}, \
                     and nothing is lost; wish for {} again, and it goes on there",
                    at.cluster, at.cluster
                );
                Finding::fails(DATA_SYNCED, reason, message)
            }
            None => {
                let message = format!("the last image of claim {name} is being made");
                Finding::fails(DATA_SYNCED, "Copying", message)
            }
        };
        // What stands in the way is told before what goes its way.
        let is_worse = said.reason != "Copying";
        if found.is_none() || is_worse {
            found = Some(said);
        }
    }
    let waits = wait("last images are being made");
    match found {
        Some(found) => report::saying(scene, found, waits),
        None => waits,
    }
}

/// The source says that it is done, and the cache has no such image: either it lags, or somebody has
/// deleted the image. Then the source begins anew; the volume is closed and has all of the data.
fn look_for_image(scene: &Scene<'_>, claim: &ClaimSeen, source: &Object) -> Step<Locks> {
    let (Some(image), Some(image_uid)) = (told(source, "image"), told(source, "imageUID")) else {
        // Who confirms without an image has made none.
        return begin_anew(claim, source);
    };
    let address = Address::new(Place::CLUSTER, &SNAPSHOT, Name::within(scene.name, image));
    match scene.looks.objects.get(&address) {
        None => Step::Look {
            reads: vec![Read::Object(address)],
            because: "its source made an image that the cache does not show".to_owned(),
        },
        Some(Some(found)) if uid(found) == image_uid && !is_going(found) => {
            wait("the cache will show the image")
        }
        Some(_) => begin_anew(claim, source),
    }
}

fn begin_anew(claim: &ClaimSeen, source: &Object) -> Step<Locks> {
    let because = format!(
        "the last image of claim {} was deleted before it was held; it is taken again",
        claim.listed.name
    );
    ask_again(&SOURCE, source, because)
}

/// Nothing on this cluster takes images. The scheduler knows, and takes nothing back that would need
/// it; but it may have looked before the cluster changed.
fn not_supported(scene: &Scene<'_>, claim: &ClaimSeen) -> Step<Locks> {
    let message = format!(
        "the data of claim {} would have to be copied, which nothing here does; wish for {} again, \
         and it goes on there",
        claim.listed.name, scene.syncer.cluster
    );
    stands(scene, Obstacle { reason: "CopyNotSupported", message })
}

fn stands(scene: &Scene<'_>, obstacle: Obstacle) -> Step<Locks> {
    let found = Finding::fails(DATA_SYNCED, obstacle.reason, obstacle.message.clone());
    let waits = Step::Wait { because: obstacle.message, at_most: ONCE_A_WHILE };
    report::saying(scene, found, waits)
}

fn wait(because: &str) -> Step<Locks> {
    Step::Wait { because: because.to_owned(), at_most: LOOK_AGAIN }
}
