//! What is seen of an object that syncs: its claim, its repository, its snapshots, and its mover.

use super::decide::{
    Facts, Mover, Picture, Said, Side, Slot, Snapshot, Sync, Trouble, Verdict, Why,
};
use super::intent::Intent;
use super::repository::{self, Opened, Unhealthy};
use super::task::Task;
use super::trigger::{Due, When};
use super::work::{self, Asked, Target, Way, Work};
use super::{Direction, Replication, destination, slots, snapshots, source, words};
use crate::kinds::CLAIM;
use crate::objects::{annotation, has_finalizer, is_deleting, is_owned_by, name_of, uid_of};
use crate::outside::{self, Keep};
use interlock_api::names::{
    ANNOTATION_LATEST_IMAGE_UID, ANNOTATION_USE_COPY_TRIGGER, FINALIZER_SNAPSHOTS,
};
use interlock_kernel::{Address, LiveReads, Name, Object, Observed, Place, Read, View};
use jiff::SignedDuration;
use std::time::Duration;

/// How long nobody may begin with a snapshot before that is said.
const BEGUN_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The objects that a step about one object is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) direction: Direction,
    pub(super) task: Task,
    /// What it asks for; the error says what is not supported.
    pub(super) work: Result<Work, String>,
    /// Fields, and keys of the Secret, that have no effect.
    pub(super) ignored: Vec<String>,
    /// What is in the way of a sync.
    pub(super) hindrance: Option<Unhealthy>,
    /// The repository, for those that have one.
    pub(super) opened: Option<Opened>,
    /// The latest snapshot of the source that is copied, and the cluster that it is on.
    pub(super) copied: Option<Object>,
    pub(super) cluster_uid: String,
    /// What stays in the repository after a backup, if anything is forgotten.
    pub(super) keep: Option<Keep>,
    /// The namespace of a source does not run here, and no move asks for it.
    pub(super) is_elsewhere: bool,
    /// What a failure would rest on now.
    pub(super) basis: String,
    pub(super) due: Due,
    pub(super) claim_name: String,
    pub(super) claim: Option<Object>,
    pub(super) snapshots: Vec<Object>,
    /// The snapshot that the intent names.
    pub(super) snapshot: Option<Object>,
    pub(super) slot: slots::Slot,
    /// What the mover says of this attempt; None: nobody asked.
    pub(super) mover: Option<outside::Sync>,
    /// Who holds snapshots of an object that is being deleted, in words.
    pub(super) holders: String,
    /// What has to be read live.
    pub(super) truth: Vec<Read<outside::Mover>>,
}

/// Reads what a step is about.
pub(super) fn observe(
    room: &Replication,
    subject: &str,
    view: &dyn View,
    live_reads: &LiveReads<outside::Mover>,
) -> Observed<Facts, Scene> {
    let Some((namespace, name)) = subject.split_once('/') else {
        return Observed::nothing("the name of the object is invalid");
    };
    let reading = Reading { room, view, live_reads };
    let kind = room.direction.kind();
    let address = Address::new(Place::CLUSTER, &kind, Name::within(namespace, name));
    let found = reading.seen(&address).map(|object| {
        let asked = work::read(room.direction, &object, room.serves);
        asked.map(|asked| asked.map(|asked| reading.scene(object, asked)))
    });
    match found.transpose().map(Option::flatten) {
        Ok(Some(scene)) => Observed::Seen { facts: reading.facts(&scene), scene },
        Ok(None) => Observed::nothing("the object is not in the cache, or has another provider"),
        Err(flaw) => {
            let word = room.direction.word();
            Observed::nothing(format!("{word} {subject} cannot be read: {flaw}"))
        }
    }
}

impl Scene {
    /// The word that asks for the removal of dead locks.
    pub(super) fn unlock(&self) -> Option<String> {
        let Way::Backup { tidy, .. } = &self.work.as_ref().ok()?.way else { return None };
        Some(&tidy.as_ref()?.unlock).filter(|word| !word.is_empty()).cloned()
    }

    /// How long somebody may still begin with the snapshot of the sync.
    pub(super) fn left_to_begin(&self) -> Option<Duration> {
        let began = self.task.current().map_or(self.task.now, |intent| intent.began.0);
        let left = Duration::try_from(BEGUN_WITHIN - self.task.now.duration_since(began));
        left.ok().filter(|left| !left.is_zero())
    }

    /// What a failure would rest on now.
    fn basis(&self) -> String {
        let version = self.opened.as_ref().map(|opened| opened.version.as_str());
        let copied = self.copied.as_ref().map(|snapshot| uid_of(snapshot));
        let basis = self.task.basis(version.or(copied).unwrap_or_default());
        // What ended because the namespace left begins anew when it is back.
        if self.is_elsewhere { format!("{basis}/elsewhere") } else { basis }
    }

    /// What has no effect: fields, and keys of the Secret.
    fn ignored(&self) -> Vec<String> {
        let Ok(work) = &self.work else { return Vec::new() };
        let secret = work.repository.as_ref().map(|named| named.secret.as_str());
        let keys = self.opened.iter().flat_map(|opened| &opened.ignored);
        let keys = keys.map(|key| format!("key {key} of Secret {}", secret.unwrap_or_default()));
        work.ignored.iter().cloned().chain(keys).collect()
    }

    /// Whether a claim is missing or is no use, which somebody else is to mend.
    fn unusable_claim(&self) -> Option<Unhealthy> {
        let (work, name) = (self.work.as_ref().ok()?, &self.claim_name);
        let (reason, what) = match (&work.target, &self.claim, self.direction) {
            (_, None, Direction::Source) => {
                ("SourceMissing", format!("claim {name} does not exist"))
            }
            (_, Some(claim), Direction::Source) if snapshots::volume_of(claim).is_none() => {
                ("SourceMissing", format!("claim {name} has no volume yet"))
            }
            (Target::Given(_), None, Direction::Destination) => {
                ("TargetMissing", format!("claim {name} does not exist"))
            }
            (Target::Own { .. }, Some(claim), Direction::Destination)
                if !is_owned_by(claim, self.task.uid()) =>
            {
                (
                    "TargetMissing",
                    format!("claim {name} exists and does not belong to this destination"),
                )
            }
            (_, _, Direction::Source | Direction::Destination) => return None,
        };
        Some(Unhealthy::new(reason, what))
    }

    /// The uid of the snapshot that a destination published last.
    pub(super) fn latest_uid(&self) -> Option<&str> {
        annotation(&self.task.object, ANNOTATION_LATEST_IMAGE_UID)
    }

    fn picture(&self, snapshot: &Object) -> Picture {
        let known = &self.task.known;
        Picture {
            is_terminating: is_deleting(snapshot),
            is_held: snapshots::is_held(snapshot),
            is_kept: snapshots::is_kept(snapshot),
            is_latest: match self.direction {
                Direction::Source => {
                    known.external.get("snapshotUID").is_some_and(|uid| uid == uid_of(snapshot))
                }
                // Between the two writes that publish a snapshot, two are the latest.
                Direction::Destination => {
                    self.latest_uid() == Some(uid_of(snapshot))
                        || known.latest_image.as_deref() == Some(name_of(snapshot))
                }
            },
            is_own: self.task.current().is_some_and(|intent| intent.snapshot == name_of(snapshot)),
        }
    }

    fn snapshot_fact(&self, intent: &Intent) -> Snapshot {
        let work = self.work.as_ref().ok();
        // What is not supported any more may have left a snapshot behind, which then has to go.
        let takes_snapshot =
            work.map_or(self.direction == Direction::Destination, |work| work.takes_snapshot);
        if !takes_snapshot {
            return Snapshot::NotNeeded;
        }
        let Some(snapshot) = &self.snapshot else { return Snapshot::Missing };
        let is_ours = snapshots::is_of(snapshot, self.task.uid(), &intent.id);
        if !is_ours || is_deleting(snapshot) || snapshots::claim_of(snapshot) != self.claim_name {
            return Snapshot::Useless;
        }
        let class = work.map(|work| work.snapshot_class.as_deref());
        if class.is_some_and(|class| snapshots::waits_for_another_class(snapshot, class)) {
            return Snapshot::Useless;
        }
        if !snapshots::is_ready(snapshot) {
            return Snapshot::NotReady(self.trouble(snapshot));
        }
        // The mover of a backup reads what is there, and says so itself if that is nothing. A
        // storage that does not say what is in a snapshot leaves it to the mover of a restore.
        let is_read = work.is_some_and(|work| matches!(work.way, Way::Backup { .. }));
        let is_empty = snapshots::content_of(snapshot).is_some_and(|content| content.is_empty());
        Snapshot::Ready { is_usable: is_read || !is_empty || self.task.allows_empty() }
    }

    fn trouble(&self, snapshot: &Object) -> Trouble {
        if snapshots::flaw_of(snapshot).is_some() {
            return Trouble::Failing;
        }
        match self.left_to_begin().is_none() && snapshots::neglected(snapshot).is_some() {
            true => Trouble::NotBegun,
            false => Trouble::None,
        }
    }
}

/// What a scene and its facts are read from.
struct Reading<'a> {
    room: &'a Replication,
    view: &'a dyn View,
    live_reads: &'a LiveReads<outside::Mover>,
}

impl Reading<'_> {
    /// An object: as a live read showed it, else as the cache does.
    fn seen(&self, address: &Address) -> Option<Object> {
        match self.live_reads.objects.get(address) {
            Some(found) => found.clone(),
            None => self.view.get(address.place, &address.kind, &address.name),
        }
    }

    fn scene(&self, object: Object, asked: Asked) -> Scene {
        let view = self.view;
        let task = Task {
            kind: self.room.direction.kind(),
            now: view.now(),
            when: When::read(asked.trigger.as_ref()),
            is_paused: asked.is_paused,
            known: asked.known,
            intent: Intent::read(&object),
            object,
        };
        let claim = Name::within(task.namespace(), &asked.claim);
        let permit = self.permit_address(&task).and_then(|address| self.seen(&address));
        let mut scene = Scene {
            direction: self.room.direction,
            claim: view.get(Place::CLUSTER, &CLAIM, &claim),
            claim_name: asked.claim,
            snapshots: snapshots::seen(&task, view, self.live_reads),
            is_elsewhere: permit.is_some_and(|namespace| source::permits_nothing(&namespace)),
            cluster_uid: self.room.here.uid.to_string(),
            truth: self.truth(&task),
            work: asked.work,
            ignored: Vec::new(),
            hindrance: None,
            opened: None,
            copied: None,
            keep: None,
            basis: String::new(),
            due: Due::Never,
            snapshot: None,
            slot: slots::Slot::NotNeeded,
            mover: None,
            holders: String::new(),
            task,
        };
        self.look_at_data(&mut scene);
        self.look_at_sync(&mut scene);
        scene
    }

    /// Where the data comes from and goes to, and what is wrong with that.
    fn look_at_data(&self, scene: &mut Scene) {
        let work = scene.work.as_ref().ok();
        let namespace = scene.task.namespace();
        let opened = work.and_then(|work| work.repository.as_ref()).map(|named| {
            repository::open(namespace, &named.secret, named.authority.as_ref(), self.view)
        });
        let copied = work.and_then(|work| match &work.way {
            Way::CopyOf(origin) => Some(origin.latest_image(self.view)),
            _ => None,
        });
        let (opened, not_opened) = apart(opened);
        let (copied, not_copied) = apart(copied);
        (scene.opened, scene.copied) = (opened, copied);
        if let Some(flaw) = self.flaw(scene) {
            scene.work = Err(flaw);
        }
        scene.hindrance = not_opened.or(not_copied).or_else(|| scene.unusable_claim());
        scene.ignored = scene.ignored();
        scene.basis = scene.basis();
        scene.due = scene.task.due(&scene.basis);
    }

    fn look_at_sync(&self, scene: &mut Scene) {
        let (task, live_reads) = (&scene.task, self.live_reads);
        if is_deleting(&task.object)
            && scene.snapshots.iter().any(|snapshot| snapshots::is_held(snapshot))
        {
            scene.holders = self.holders(scene);
        }
        let Some(intent) = task.current() else { return };
        scene.snapshot = self.seen(&snapshots::address_of(task.namespace(), &intent.snapshot));
        scene.slot = slots::slot_of(&intent.places, &intent.id, self.view);
        scene.mover = live_reads.answers.get(&intent.sync_id()).cloned();
        if let Ok(Work { way: Way::Backup { tidy: Some(tidy), .. }, .. }) = &scene.work {
            scene.keep = Some(source::keep(task, intent, tidy, self.view));
        }
    }

    /// The mover first, then the object and its snapshots: what is still there after a mover was asked
    /// was there when it answered.
    fn truth(&self, task: &Task) -> Vec<Read<outside::Mover>> {
        let mut reads: Vec<Read<outside::Mover>> =
            task.questions().into_iter().map(Read::Ask).collect();
        reads.push(Read::Object(task.address()));
        if let Some(intent) = task.current() {
            reads.push(Read::Object(snapshots::address_of(task.namespace(), &intent.snapshot)));
        }
        reads.extend(self.permit_address(task).map(Read::Object));
        if is_deleting(&task.object) {
            let (place, kind, namespace) = snapshots::list_of(task);
            reads.push(Read::List { place, kind, namespace });
        }
        reads
    }

    fn permit_address(&self, task: &Task) -> Option<Address> {
        match self.room.direction {
            Direction::Source => source::permit_address(task),
            Direction::Destination => None,
        }
    }

    /// What is wrong with the object, as far as others have a part in it.
    fn flaw(&self, scene: &Scene) -> Option<String> {
        let waits = |claim: &&Object| {
            annotation(claim, ANNOTATION_USE_COPY_TRIGGER).is_some_and(|value| !value.is_empty())
        };
        let is_source = scene.direction == Direction::Source;
        if is_source && scene.claim.as_ref().filter(waits).is_some() {
            let claim = &scene.claim_name;
            return Some(format!(
                "annotation {ANNOTATION_USE_COPY_TRIGGER} of claim {claim} is not supported"
            ));
        }
        if let Err(flaw) = &scene.task.when {
            return Some(format!("spec.trigger.schedule: {flaw}"));
        }
        let work = scene.work.as_ref().ok()?;
        let authority = work.repository.as_ref().and_then(|named| named.authority.as_ref());
        if authority.is_some_and(|authority| !authority.is_empty())
            && scene.opened.as_ref().is_some_and(|opened| !repository::takes_authority(opened))
        {
            return Some("spec.restic.customCA is supported with rest: repositories only".into());
        }
        match scene.direction {
            Direction::Source => None,
            Direction::Destination => destination::flaw(scene, &self.room.here, self.view),
        }
    }

    /// Who holds snapshots of it, in words.
    fn holders(&self, scene: &Scene) -> String {
        let claims = self.view.list(Place::CLUSTER, &CLAIM, Some(scene.task.namespace()));
        let mut words = Vec::new();
        for snapshot in &scene.snapshots {
            for uid in snapshots::holders(snapshot) {
                let claim = claims.iter().find(|claim| uid_of(claim) == uid);
                let who = match claim {
                    Some(claim) => format!("claim {}", name_of(claim)),
                    None => format!("the object with uid {uid}"),
                };
                words.push(format!("{} is held by {who}", name_of(snapshot)));
            }
        }
        words.join(", ")
    }

    fn facts(&self, scene: &Scene) -> Facts {
        let (task, live_reads) = (&scene.task, self.live_reads);
        let verdict = match (&task.intent, &scene.work) {
            (Err(_), _) => Verdict::BrokenIntent,
            (Ok(_), Err(_)) => Verdict::Refused,
            (Ok(_), Ok(_)) if scene.hindrance.is_some() => Verdict::Hindered,
            (Ok(_), Ok(_)) => Verdict::Served,
        };
        let sync = task.current().map(|intent| self.sync(scene, intent));
        Facts {
            is_terminating: is_deleting(&task.object),
            is_kept: has_finalizer(&task.object, FINALIZER_SNAPSHOTS),
            has_held_snapshot: scene.snapshots.iter().any(|snapshot| snapshots::is_held(snapshot)),
            snapshots: scene.snapshots.iter().map(|snapshot| scene.picture(snapshot)).collect(),
            is_fresh: live_reads.objects.contains_key(&task.address()),
            are_snapshots_fresh: live_reads.lists.contains_key(&snapshots::list_of(task)),
            verdict,
            next: task.next(scene.due),
            said: said(scene, sync.as_ref()),
            side: match scene.direction {
                Direction::Source => Side::Source(source::side(scene, self.view)),
                Direction::Destination => Side::Destination(destination::side(scene)),
            },
            sync,
        }
    }

    fn sync(&self, scene: &Scene, intent: &Intent) -> Sync {
        let answers = &self.live_reads.answers;
        let earlier = intent.earlier_sync_id().and_then(|earlier| answers.get(&earlier));
        let is_news = match scene.mover {
            Some(outside::Sync::Runs(progress)) => scene.task.is_progress_news(intent, progress),
            Some(_) | None => false,
        };
        Sync {
            is_over: scene.task.is_over(intent),
            backs_off: intent.backs_off(scene.task.now).is_some(),
            is_changed: intent.basis != scene.basis,
            is_last_attempt: intent.is_last_attempt(),
            snapshot: scene.snapshot_fact(intent),
            slot: Slot::of(&scene.slot),
            mover: Mover::of(scene.mover.as_ref(), is_news),
            is_earlier_known: earlier.is_some_and(|sync| *sync != outside::Sync::Unknown),
        }
    }
}

/// What the status says: of each reason for which nothing may be done whether it is given, word for
/// word.
fn said(scene: &Scene, sync: Option<&Sync>) -> Said {
    let trouble = sync.and_then(|sync| match sync.snapshot {
        Snapshot::NotReady(trouble) => Some(Why::SnapshotNotReady(trouble)),
        Snapshot::NotNeeded | Snapshot::Missing | Snapshot::Ready { .. } | Snapshot::Useless => {
            None
        }
    });
    let reasons = [
        Why::NotDue(scene.task.next(scene.due)),
        Why::Refused,
        Why::Hindered,
        Why::NotHere,
        Why::BrokenIntent,
        Why::Held,
        Why::BacksOff,
        Why::TargetNotBound,
        Why::SlotsFull,
        Why::Runs { is_news: false },
    ];
    let is_said =
        |why: &Why| words::saying(scene, *why).is_some_and(|saying| scene.task.says(&saying));
    Said {
        reasons: reasons.into_iter().chain(trouble).filter(is_said).collect(),
        is_something_wrong: scene.task.is_something_wrong(),
        is_ignored_news: !scene.ignored.is_empty()
            && !words::accept(scene).is_in(&scene.task.known.conditions),
    }
}

/// What went well, and what did not.
fn apart<T, E>(result: Option<Result<T, E>>) -> (Option<T>, Option<E>) {
    match result {
        Some(Ok(found)) => (Some(found), None),
        Some(Err(flaw)) => (None, Some(flaw)),
        None => (None, None),
    }
}
