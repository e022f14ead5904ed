//! What one decision about a source rests on.

use super::Serves;
use super::decide::{Facts, Image, Mover, Slot, Sync, Verdict};
use super::work::{self, Way, Work};
use crate::kinds::{CLAIM, NAMESPACE, SOURCE};
use crate::objects::{annotation, has_finalizer, is_deleting, uid_of};
use crate::outside;
use crate::sync::facts::{Album, Picture, spare};
use crate::sync::images;
use crate::sync::intent::Intent;
use crate::sync::repository::{self, Flaw, Opened};
use crate::sync::slots;
use crate::sync::task::{Known, NOT_HERE, Task};
use crate::sync::trigger::Due;
use interlock_api::names::{
    ANNOTATION_EPOCH, ANNOTATION_GRANT, ANNOTATION_RUNNING, ANNOTATION_USE_COPY_TRIGGER,
    FINALIZER_IMAGES, Permit,
};
use interlock_api::volumes::{ReplicationSourceSpec, ReplicationSourceStatus};
use interlock_kernel::{Address, Looks, Name, Object, Place, View, read_part};

/// Everything that a step about one source sees.
pub(super) struct Scene<'a> {
    pub(super) view: &'a dyn View,
    pub(super) task: Task,
    pub(super) status: ReplicationSourceStatus,
    /// What it asks for; the error says what is not supported.
    pub(super) work: Result<Work, String>,
    /// The repository, for those that have one; the error says what is in the way.
    pub(super) opened: Result<Option<Opened>, Flaw>,
    pub(super) due: Due,
    pub(super) claim: Option<Object>,
    /// Its namespace does not run here, and no move asks for it.
    pub(super) is_elsewhere: bool,
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
        serves: Serves,
        name: &Name,
        (view, looks): (&'a dyn View, &'a Looks<outside::Mover>),
    ) -> Result<Option<Scene<'a>>, String> {
        let address = Address::new(Place::CLUSTER, &SOURCE, name.clone());
        let fresh = looks.objects.get(&address);
        let found = match fresh {
            Some(found) => found.clone(),
            None => view.get(Place::CLUSTER, &SOURCE, name),
        };
        let Some(object) = found else { return Ok(None) };
        let spec: ReplicationSourceSpec = read_part(&object, "spec")?.unwrap_or_default();
        let status: ReplicationSourceStatus = read_part(&object, "status")?.unwrap_or_default();
        let Some(mut work) = work::read(&spec, serves) else { return Ok(None) };
        let known = Known {
            synced: status.last_sync_time.as_ref().map(|time| time.0),
            tag: status.last_manual_sync.clone(),
            external: status.external.clone(),
            conditions: status.conditions.clone(),
        };
        let trigger = (spec.trigger.as_ref(), spec.paused);
        let task = Task::new((&SOURCE, &object), trigger, (known, view.now()));
        if let Err(flaw) = &task.when {
            work = Err(format!("spec.trigger.schedule: {flaw}"));
        }
        let claim =
            view.get(Place::CLUSTER, &CLAIM, &Name::within(task.namespace(), &spec.source_pvc));
        if claim.as_ref().is_some_and(waits_for_a_copy_trigger) {
            let on =
                format!("annotation {ANNOTATION_USE_COPY_TRIGGER} of claim {}", spec.source_pvc);
            work = Err(format!("{on} is not supported"));
        }
        let opened = open(&task, &work, view);
        let mut scene = Scene {
            view,
            due: Due::Never,
            claim,
            is_elsewhere: is_elsewhere(&task, view, looks),
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
        if let Err(flaw) = check_authority(&scene) {
            scene.work = Err(flaw);
        }
        scene.due = scene.task.due(&scene.basis());
        scene.look_at_sync(looks);
        scene.facts = scene.facts(looks);
        Ok(Some(scene))
    }

    /// What a failure would rest on now.
    pub(super) fn basis(&self) -> String {
        let opened = self.opened.as_ref().ok().and_then(Option::as_ref);
        let basis = self.task.basis(opened.map_or("", |opened| &opened.version));
        // What ended because the namespace left begins anew when it is back.
        if self.is_elsewhere { format!("{basis}/elsewhere") } else { basis }
    }

    fn look_at_sync(&mut self, looks: &Looks<outside::Mover>) {
        let Some(intent) = self.task.current().cloned() else { return };
        self.image = images::of_intent((&self.task, &intent), self.view, looks);
        self.slot = slots::look(&intent.places, &intent.id, self.view);
        self.mover = looks.answers.get(&intent.sync_id()).cloned();
    }

    /// What is in the way of a sync.
    pub(super) fn hindrance(&self) -> Option<Flaw> {
        if let Err(flaw) = &self.opened {
            return Some(flaw.clone());
        }
        let Ok(work) = &self.work else { return None };
        let missing = |what: String| Some(Flaw::new("SourceMissing", what));
        match &self.claim {
            None => missing(format!("there is no claim {}", work.claim)),
            Some(claim) if images::volume_of(claim).is_none() => {
                missing(format!("claim {} has no volume yet", work.claim))
            }
            Some(_) => None,
        }
    }

    /// Why nothing is saved from here.
    pub(super) fn not_here(&self) -> Flaw {
        let namespace = self.task.namespace();
        let what = format!(
            "namespace {namespace} does not run on this cluster, so nothing is saved from here: \
             the cluster that runs it does that, and `kubectl get grant {namespace}` at the hub \
             says which one it is"
        );
        Flaw::new(NOT_HERE, what)
    }

    pub(super) fn is_image_only(&self) -> bool {
        self.work.as_ref().is_ok_and(|work| matches!(work.way, Way::Image))
    }

    /// The image that goes next: of those that nobody needs, the oldest.
    pub(super) fn spare(&self) -> Option<&Object> {
        let intent = self.task.current();
        let album = Album {
            is_going: is_deleting(&self.task.object),
            is_over: intent.is_none_or(|intent| self.task.is_over(intent)),
            // As long as it is not known what the images are for, they are not thrown away.
            is_lasting: self.is_image_only() || self.work.is_err(),
        };
        let product = self.task.known.external.get("imageUID").map(String::as_str);
        let picture = |image: &Object| {
            let is_product = product == Some(uid_of(image));
            images::picture(image, is_product, intent.map(|intent| intent.image.as_str()))
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
            is_elsewhere: self.is_elsewhere,
            is_due: self.due == Due::Now && !self.task.is_paused,
            sync: self.task.current().map(|intent| self.sync(intent, looks)),
        }
    }

    fn sync(&self, intent: &Intent, looks: &Looks<outside::Mover>) -> Sync {
        let earlier = intent.earlier_sync_id().and_then(|earlier| looks.answers.get(&earlier));
        Sync {
            is_over: self.task.is_over(intent),
            backs_off: intent.backs_off(self.task.now).is_some(),
            is_changed: intent.basis != self.basis(),
            is_last_attempt: intent.is_last_attempt(),
            is_image_only: self.is_image_only(),
            image: self.image_fact(intent),
            slot: Slot::of(&self.slot),
            mover: Mover::of(self.mover.as_ref()),
            is_earlier_known: earlier.is_some_and(|sync| *sync != outside::Sync::Unknown),
        }
    }

    fn image_fact(&self, intent: &Intent) -> Image {
        let Ok(work) = &self.work else { return Image::NotNeeded };
        if !work.takes_image {
            return Image::NotNeeded;
        }
        let Some(image) = &self.image else { return Image::Missing };
        let is_ours = images::is_of(image, self.task.uid(), &intent.id);
        if !is_ours || is_deleting(image) || images::claim_of(image) != work.claim {
            return Image::Useless;
        }
        if images::waits_for_another_class(image, work.snapshot_class.as_deref()) {
            return Image::Useless;
        }
        if !images::is_ready(image) {
            return Image::NotReady;
        }
        // The mover of a backup reads what is there, and says so itself if that is nothing.
        let is_empty = images::content_of(image).is_some_and(|content| content.is_empty());
        let is_usable = !self.is_image_only() || !is_empty || self.task.allows_empty();
        Image::Ready { is_usable }
    }
}

/// Where it stands whether the namespace of a source runs here; None: a move made the source, which
/// runs exactly when the namespace does not.
pub(super) fn permit_address(task: &Task) -> Option<Address> {
    let is_of_a_move = annotation(&task.object, ANNOTATION_EPOCH).is_some();
    let name = Name::cluster_wide(task.namespace());
    (!is_of_a_move).then(|| Address::new(Place::CLUSTER, &NAMESPACE, name))
}

/// Whether a syncer has the namespace and permits nothing to run in it: it left, or is on its way.
fn is_elsewhere(task: &Task, view: &dyn View, looks: &Looks<outside::Mover>) -> bool {
    let Some(address) = permit_address(task) else { return false };
    let namespace = match looks.objects.get(&address) {
        Some(found) => found.clone(),
        None => view.get(Place::CLUSTER, &NAMESPACE, &address.name),
    };
    namespace.is_some_and(|namespace| {
        let permit = annotation(&namespace, ANNOTATION_RUNNING).and_then(Permit::read);
        annotation(&namespace, ANNOTATION_GRANT).is_some() && permit.is_none()
    })
}

fn waits_for_a_copy_trigger(claim: &Object) -> bool {
    annotation(claim, ANNOTATION_USE_COPY_TRIGGER).is_some_and(|value| !value.is_empty())
}

fn open(task: &Task, work: &Result<Work, String>, view: &dyn View) -> Result<Option<Opened>, Flaw> {
    match work {
        Ok(Work { way: Way::Backup(backup), .. }) => {
            let authority = backup.authority.as_ref();
            repository::open(task.namespace(), &backup.secret, authority, view).map(Some)
        }
        Ok(Work { way: Way::Tidy { secret, .. }, .. }) => {
            repository::open(task.namespace(), secret, None, view).map(Some)
        }
        Ok(Work { way: Way::Image, .. }) | Err(_) => Ok(None),
    }
}

fn check_authority(scene: &Scene<'_>) -> Result<(), String> {
    let Ok(Work { way: Way::Backup(backup), .. }) = &scene.work else { return Ok(()) };
    let has_authority = backup.authority.as_ref().is_some_and(|named| !named.is_empty());
    let Ok(Some(opened)) = &scene.opened else { return Ok(()) };
    match has_authority && !repository::takes_authority(opened) {
        true => Err("spec.restic.customCA is supported with rest: repositories only".to_owned()),
        false => Ok(()),
    }
}
