//! What one decision about a destination rests on.

use super::decide::{Facts, Image, Mover, Slot, Sync, Target as TargetFact, Verdict};
use super::origin;
use super::work::{self, Target, Way, Work};
use super::{Destination, Here};
use crate::kinds::{CLAIM, DESTINATION};
use crate::objects::{
    annotation, has_finalizer, is_deleting, is_owned_by, name_of, namespace_of, uid_of,
};
use crate::outside;
use crate::sync::facts::{Album, Picture, spare};
use crate::sync::filed::DESTINATIONS_BY_CLAIM;
use crate::sync::images;
use crate::sync::intent::Intent;
use crate::sync::repository::{self, Flaw, Opened};
use crate::sync::slots;
use crate::sync::task::{Known, Task};
use crate::sync::trigger::Due;
use interlock_api::names::{ANNOTATION_LATEST_IMAGE_UID, FINALIZER_IMAGES};
use interlock_api::volumes::{ReplicationDestinationSpec, ReplicationDestinationStatus};
use interlock_kernel::{Address, Looks, Name, Object, Place, View, read_part};

/// Everything that a step about one destination sees.
pub(super) struct Scene<'a> {
    pub(super) view: &'a dyn View,
    pub(super) task: Task,
    pub(super) status: ReplicationDestinationStatus,
    /// What it asks for; the error says what is not supported.
    pub(super) work: Result<Work, String>,
    /// The repository, for those that have one; the error says what is in the way.
    pub(super) opened: Result<Option<Opened>, Flaw>,
    /// The latest image of the source that is copied, for those that copy one; the error says what
    /// is in the way.
    pub(super) copied: Result<Option<Object>, Flaw>,
    pub(super) here: &'a Here,
    pub(super) due: Due,
    pub(super) claim: Option<Object>,
    pub(super) images: Vec<Object>,
    pub(super) image: Option<Object>,
    pub(super) slot: slots::Slot,
    /// What the mover says of this attempt; None: nobody asked.
    pub(super) mover: Option<outside::Sync>,
    pub(super) facts: Facts,
}

impl<'a> Scene<'a> {
    /// What is seen; None: it is not in the cache, or not ours.
    pub(super) fn of(
        controller: &'a Destination,
        name: &Name,
        (view, looks): (&'a dyn View, &'a Looks<outside::Mover>),
    ) -> Result<Option<Scene<'a>>, String> {
        let address = Address::new(Place::CLUSTER, &DESTINATION, name.clone());
        let fresh = looks.objects.get(&address);
        let found = match fresh {
            Some(found) => found.clone(),
            None => view.get(Place::CLUSTER, &DESTINATION, name),
        };
        let Some(object) = found else { return Ok(None) };
        let spec: ReplicationDestinationSpec = read_part(&object, "spec")?.unwrap_or_default();
        let status: ReplicationDestinationStatus =
            read_part(&object, "status")?.unwrap_or_default();
        let Some(work) = work::read(&spec, controller.serves) else { return Ok(None) };
        let known = Known {
            synced: status.last_sync_time.as_ref().map(|time| time.0),
            tag: status.last_manual_sync.clone(),
            external: status.external.clone(),
            conditions: status.conditions.clone(),
        };
        let trigger = (spec.trigger.as_ref(), spec.paused);
        let task = Task::new((&DESTINATION, &object), trigger, (known, view.now()));
        let opened = open(&task, &work, view);
        let copied = match &work {
            Ok(Work { way: Way::CopyOf(origin), .. }) => origin.latest_image(view).map(Some),
            Ok(_) | Err(_) => Ok(None),
        };
        let mut scene = Scene {
            view,
            copied,
            here: &controller.here,
            due: Due::Never,
            claim: None,
            images: images::seen(&task, view, looks),
            image: None,
            slot: slots::Slot::NotNeeded,
            mover: None,
            facts: Facts { is_fresh: fresh.is_some(), ..Facts::default() },
            task,
            status,
            work,
            opened,
        };
        if let Some(flaw) = scene.flaw() {
            scene.work = Err(flaw);
        }
        let claim = Name::within(scene.task.namespace(), &scene.claim_name());
        scene.claim = view.get(Place::CLUSTER, &CLAIM, &claim);
        scene.due = scene.task.due(&scene.basis());
        scene.look_at_sync(looks);
        scene.facts = scene.facts(looks);
        Ok(Some(scene))
    }

    /// The claim that is written; our own has the name that VolSync gives it.
    pub(super) fn claim_name(&self) -> String {
        match &self.work {
            Ok(Work { target: Target::Given(name), .. }) => name.clone(),
            Ok(_) | Err(_) => format!("volsync-{}-dest", self.task.name()),
        }
    }

    /// What is wrong with the object, as far as others have a part in it.
    fn flaw(&self) -> Option<String> {
        if let Err(flaw) = &self.task.when {
            return Some(format!("spec.trigger.schedule: {flaw}"));
        }
        let Ok(work) = &self.work else { return None };
        if let Way::Restore { authority: Some(authority), .. } = &work.way
            && !authority.is_empty()
            && let Ok(Some(opened)) = &self.opened
            && !repository::takes_authority(opened)
        {
            return Some("spec.restic.customCA is supported with rest: repositories only".into());
        }
        if let Some(flaw) = self.foreign(&work.way) {
            return Some(flaw);
        }
        let claim = format!("{}/{}", self.task.namespace(), self.claim_name());
        let writers = self.view.find(Place::CLUSTER, &DESTINATIONS_BY_CLAIM, &claim);
        let age = |object: &Object| {
            let created = object.metadata.creation_timestamp.as_ref().map(|created| created.0);
            (created, uid_of(object).to_owned())
        };
        let mine = age(&self.task.object);
        let earlier = writers.iter().find(|other| {
            uid_of(other) != self.task.uid()
                && !is_deleting(other)
                && writes(other, &claim)
                && age(other) < mine
        })?;
        let (name, other) = (self.claim_name(), name_of(earlier));
        Some(format!("destinationPVC: claim {name} is written by ReplicationDestination {other}"))
    }

    /// Why what it names is not its own to have.
    fn foreign(&self, way: &Way) -> Option<String> {
        let own = self.task.namespace();
        match way {
            Way::Restore { .. } => None,
            Way::CopyOf(origin) => origin.refused(own, self.here),
            Way::Copy { image, .. } => origin::is_foreign(image, own, self.view).then(|| {
                format!(
                    "spec.external.parameters: image {image} is of another namespace than {own}"
                )
            }),
        }
    }

    /// What a failure would rest on now.
    pub(super) fn basis(&self) -> String {
        let opened = self.opened.as_ref().ok().and_then(Option::as_ref);
        let copied = self.copied.as_ref().ok().and_then(Option::as_ref);
        let version = opened.map(|opened| opened.version.as_str());
        self.task.basis(version.or(copied.map(|image| uid_of(image))).unwrap_or_default())
    }

    fn look_at_sync(&mut self, looks: &Looks<outside::Mover>) {
        let Some(intent) = self.task.current().cloned() else { return };
        self.image = images::of_intent((&self.task, &intent), self.view, looks);
        self.slot = slots::look(&intent.places, &intent.id, self.view);
        self.mover = looks.answers.get(&intent.sync_id()).cloned();
    }

    /// What is in the way of a sync.
    pub(super) fn hindrance(&self) -> Option<Flaw> {
        if let Some(flaw) = self.opened.as_ref().err().or(self.copied.as_ref().err()) {
            return Some(flaw.clone());
        }
        let Ok(work) = &self.work else { return None };
        let name = self.claim_name();
        match (&work.target, &self.claim) {
            (Target::Given(_), None) => {
                Some(Flaw::new("TargetMissing", format!("there is no claim {name}")))
            }
            (Target::Own { .. }, Some(claim)) if !is_owned_by(claim, self.task.uid()) => {
                let what = format!("claim {name} is there, and is not of this destination");
                Some(Flaw::new("TargetMissing", what))
            }
            (Target::Own { .. } | Target::Given(_), Some(_) | None) => None,
        }
    }

    /// The uid that is published once this sync is done; None: its product is no image.
    pub(super) fn product_uid(&self) -> Option<&str> {
        let takes_image = self.work.as_ref().is_ok_and(|work| work.takes_image);
        self.image.as_ref().filter(|_| takes_image).map(|image| uid_of(image))
    }

    pub(super) fn latest_uid(&self) -> Option<&str> {
        annotation(&self.task.object, ANNOTATION_LATEST_IMAGE_UID)
    }

    /// The image that goes next: of those that nobody needs, the oldest.
    pub(super) fn spare(&self) -> Option<&Object> {
        let intent = self.task.current();
        let album = Album {
            is_going: is_deleting(&self.task.object),
            is_over: intent.is_none_or(|intent| self.task.is_over(intent)),
            is_lasting: true,
        };
        let latest = self.status.latest_image.as_ref().map(|image| image.name.as_str());
        let picture = |image: &Object| {
            // Between the two writes that publish an image, two are the latest.
            let is_latest =
                self.latest_uid() == Some(uid_of(image)) || latest == Some(name_of(image));
            images::picture(image, is_latest, intent.map(|intent| intent.image.as_str()))
        };
        let pictures: Vec<Picture> = self.images.iter().map(picture).collect();
        spare(album, &pictures).and_then(|place| self.images.get(place))
    }

    fn facts(&self, looks: &Looks<outside::Mover>) -> Facts {
        let object = &self.task.object;
        let verdict = match (&self.task.intent, &self.work) {
            (Err(_), _) => Verdict::BrokenIntent,
            (Ok(_), Err(_)) => Verdict::Refused,
            (Ok(_), Ok(_)) if self.hindrance().is_some() => Verdict::Hindered,
            (Ok(_), Ok(_)) => Verdict::Served,
        };
        Facts {
            is_going: is_deleting(object),
            is_kept: has_finalizer(object, FINALIZER_IMAGES),
            has_held_image: self.images.iter().any(|image| images::is_held(image)),
            has_spare_image: self.spare().is_some(),
            is_fresh: self.facts.is_fresh,
            are_images_fresh: looks.lists.contains_key(&images::list_of(&self.task)),
            verdict,
            is_due: self.due == Due::Now && !self.task.is_paused,
            sync: self.task.current().map(|intent| self.sync(intent, looks)),
        }
    }

    fn sync(&self, intent: &Intent, looks: &Looks<outside::Mover>) -> Sync {
        let earlier = intent.earlier_sync_id().and_then(|earlier| looks.answers.get(&earlier));
        let is_own = |claim: &Object| is_owned_by(claim, self.task.uid()) && !is_deleting(claim);
        Sync {
            is_over: self.task.is_over(intent),
            backs_off: intent.backs_off(self.task.now).is_some(),
            is_changed: intent.basis != self.basis(),
            is_last_attempt: intent.is_last_attempt(),
            image: self.image_fact(intent),
            target: match &self.claim {
                None => TargetFact::Missing,
                Some(claim) if is_deleting(claim) || images::volume_of(claim).is_none() => {
                    TargetFact::NotBound
                }
                Some(_) => TargetFact::Bound,
            },
            has_temporary_claim: self.work.as_ref().is_ok_and(|work| work.is_temporary)
                && self.claim.as_ref().is_some_and(is_own),
            slot: Slot::of(&self.slot),
            mover: Mover::of(self.mover.as_ref()),
            is_outcome_usable: match &self.mover {
                Some(outside::Sync::Done(outcome)) => {
                    !outcome.content.is_empty() || self.task.allows_empty()
                }
                Some(_) | None => false,
            },
            is_earlier_known: earlier.is_some_and(|sync| *sync != outside::Sync::Unknown),
            is_published: self.latest_uid() == self.product_uid(),
        }
    }

    fn image_fact(&self, intent: &Intent) -> Image {
        let work = self.work.as_ref().ok();
        let takes_image = work.is_none_or(|work| work.takes_image);
        if !takes_image {
            return Image::NotNeeded;
        }
        let Some(image) = &self.image else { return Image::Missing };
        let is_ours = images::is_of(image, self.task.uid(), &intent.id);
        if !is_ours || is_deleting(image) || images::claim_of(image) != self.claim_name() {
            return Image::Useless;
        }
        let waits_in_vain =
            |work: &Work| images::waits_for_another_class(image, work.snapshot_class.as_deref());
        if work.is_some_and(waits_in_vain) {
            return Image::Useless;
        }
        if !images::is_ready(image) {
            return Image::NotReady;
        }
        // A storage that does not say what is in an image leaves it to what the mover said, before
        // the image was taken.
        let is_empty = images::content_of(image).is_some_and(|content| content.is_empty());
        Image::Ready { is_usable: !is_empty || self.task.allows_empty() }
    }

    /// Who holds images of it, in words.
    pub(super) fn holders(&self) -> String {
        let claims = self.view.list(Place::CLUSTER, &CLAIM, Some(self.task.namespace()));
        let mut words = Vec::new();
        for image in &self.images {
            for uid in images::holders(image) {
                let claim = claims.iter().find(|claim| uid_of(claim) == uid);
                let who = match claim {
                    Some(claim) => format!("claim {}", name_of(claim)),
                    None => format!("the object with uid {uid}"),
                };
                words.push(format!("{} is held by {who}", name_of(image)));
            }
        }
        words.join(", ")
    }
}

/// Whether a destination writes a claim, as opposed to one that only has a name for it.
fn writes(destination: &Object, claim: &str) -> bool {
    let spec = &destination.data["spec"];
    let given =
        [&spec["restic"]["destinationPVC"], &spec["external"]["parameters"]["destinationPVC"]];
    let namespace = namespace_of(destination);
    let mut named = given.iter().filter_map(|name| name.as_str()).peekable();
    if named.peek().is_none() {
        return format!("{namespace}/volsync-{}-dest", name_of(destination)) == claim;
    }
    named.any(|name| format!("{namespace}/{name}") == claim)
}

fn open(task: &Task, work: &Result<Work, String>, view: &dyn View) -> Result<Option<Opened>, Flaw> {
    match work {
        Ok(Work { way: Way::Restore { secret, authority, .. }, .. }) => {
            repository::open(task.namespace(), secret, authority.as_ref(), view).map(Some)
        }
        Ok(Work { way: Way::Copy { .. } | Way::CopyOf(_), .. }) | Err(_) => Ok(None),
    }
}
