//! What one decision of the syncer rests on, out of what the caches and fresh looks show.

use super::claims::{At, ClaimSeen};
use super::copying::{destination_name, source_name};
use super::decide::{Facts, Grant, Here, Notes, Party, Running, Stillness, Truth, Workload};
use super::filling::binding;
use super::images::image_of;
use super::marks::{annotation, has_finalizer, is_going, name, uid};
use super::notes;
use super::objects::next::{Survey, survey};
use super::{Holding, Locks, LocksOf, Syncer, leftover};
use crate::kinds::{
    CLAIM, DESTINATION, FORCE_RELEASE, GRANT, NAMESPACE, SOURCE, VOLUME_ATTACHMENT,
};
use crate::record::GrantRecord;
use interlock_api::names::ANNOTATION_GRANT;
use interlock_api::placement::condition::RUNNING;
use interlock_api::placement::{
    CopyState, Fill, ForceOutcome, ForceReleaseSpec, ForceReleaseStatus, GrantStatus, Phase, Ref,
    RevokedBecause,
};
use interlock_kernel::{Address, Kind, Looks, Name, Object, Place, View, conditions, read_part};
use std::cell::OnceCell;
use std::time::Duration;

/// How often something is looked at again that time alone may change.
const ONCE_A_WHILE: Duration = Duration::from_secs(600);

/// Everything that a step about one grant sees. Each object is taken from the view once, so that
/// what was decided on and what is written over are the same version.
pub(super) struct Scene<'a> {
    pub(super) syncer: &'a Syncer,
    pub(super) view: &'a dyn View,
    pub(super) looks: &'a Looks<Locks>,
    /// The name of the grant, and of the namespace on the cluster.
    pub(super) name: &'a str,
    pub(super) grant: Option<GrantRecord>,
    pub(super) hub_namespace: Option<Object>,
    pub(super) here: Option<Object>,
    pub(super) notes: Here,
    /// The claims that the grant lists and that anybody needs.
    pub(super) claims: Vec<ClaimSeen>,
    /// Those that nobody needs any more.
    pub(super) gone_claims: Vec<ClaimSeen>,
    survey: OnceCell<Survey>,
}

impl<'a> Scene<'a> {
    /// What is seen; or, in words, what cannot be read.
    pub(super) fn of(
        syncer: &'a Syncer,
        name: &'a str,
        (view, looks): (&'a dyn View, &'a Looks<Locks>),
    ) -> Result<Scene<'a>, String> {
        let by_name = Name::cluster_wide(name);
        let here = view.get(Place::CLUSTER, &NAMESPACE, &by_name);
        let grant = view.get(Place::HUB, &GRANT, &by_name);
        let grant = grant.as_ref().map(GrantRecord::read).transpose();
        let grant = grant.map_err(|flaw| format!("the grant cannot be read: {flaw}"))?;
        let mut scene = Scene {
            syncer,
            view,
            looks,
            name,
            grant: None,
            hub_namespace: None,
            here,
            notes: Here::Missing,
            claims: Vec::new(),
            gone_claims: Vec::new(),
            survey: OnceCell::new(),
        };
        let Some(grant) = grant else { return Ok(scene) };
        let namespace = &grant.spec.namespace;
        let hub = view.get(Place::HUB, &NAMESPACE, &Name::cluster_wide(&namespace.name));
        scene.hub_namespace = hub.filter(|hub| uid(hub) == namespace.uid);
        scene.notes = notes::read(scene.here.as_deref(), uid(&grant.object), &syncer.boot_id);
        let at = place(syncer, name, Some(&grant));
        let claims = grant.status.claims.iter().map(|listed| {
            let at_hub = view.get(Place::HUB, &CLAIM, &Name::within(&namespace.name, &listed.name));
            let here = view.get(Place::CLUSTER, &CLAIM, &Name::within(name, &listed.name));
            let copying = at.is_copying.then_some(view);
            let by_name = |kind: &Kind, other: &str| {
                copying?.get(Place::CLUSTER, kind, &Name::within(name, other))
            };
            let source = by_name(&SOURCE, &source_name(&listed.name));
            ClaimSeen {
                listed: listed.clone(),
                pin: grant.status.pins.iter().find(|pin| pin.claim_uid == listed.uid).cloned(),
                at_hub: at_hub.filter(|claim| uid(claim) == listed.uid),
                binding: binding(here.as_deref(), copying),
                here,
                image: source.as_ref().and_then(|source| image_of(source, name, view)),
                source,
                destination: by_name(&DESTINATION, &destination_name(&listed.name, at.epoch)),
            }
        });
        (scene.gone_claims, scene.claims) = claims.partition(|claim| claim.is_gone(at));
        scene.grant = Some(grant);
        Ok(scene)
    }

    /// The objects of a kind in the namespace at the hub.
    pub(super) fn at_hub(&self, kind: &Kind) -> Vec<Object> {
        match &self.hub_namespace {
            Some(namespace) => self.view.list(Place::HUB, kind, Some(name(namespace))),
            None => Vec::new(),
        }
    }

    /// Where claims are looked at.
    pub(super) fn at(&self) -> At<'_> {
        place(self.syncer, self.name, self.grant.as_ref())
    }

    /// What there is to do about the objects of the namespace.
    pub(super) fn survey(&self) -> &Survey {
        self.survey.get_or_init(|| survey(self))
    }

    /// Whether this cluster has the grant now.
    pub(super) fn is_mine(&self, phases: &[Phase]) -> bool {
        self.grant.as_ref().is_some_and(|grant| {
            self.party(grant.status.owner.as_ref()) == Party::Me
                && phases.contains(&grant.status.phase)
        })
    }

    fn party(&self, who: Option<&Ref>) -> Party {
        match who {
            None => Party::Nobody,
            Some(who) if who.is_same(&self.syncer.cluster) => Party::Me,
            Some(_) => Party::Other,
        }
    }

    pub(super) fn facts(&self) -> Facts {
        let noted = match self.notes {
            Here::Noted(notes) => Some(notes),
            Here::Missing | Here::Foreign => None,
        };
        let at = self.at();
        Facts {
            grant: self.grant.as_ref().map(|grant| self.grant_facts(grant)),
            here: self.notes,
            has_finalizer: self.has_finalizer(),
            workload: self.workload(noted),
            claims: self.claims.iter().map(|claim| claim.facts(at)).collect(),
            is_marked_superseded: leftover::to_mark(self).is_none(),
            leftover: leftover::leftover(self),
            has_objects_to_apply: self.has_objects_to_apply(noted),
            stillness: self.stillness(),
            truth: self.truth(),
        }
    }

    fn grant_facts(&self, grant: &GrantRecord) -> Grant {
        let status = &grant.status;
        Grant {
            phase: status.phase,
            owner: self.party(status.owner.as_ref()),
            epoch: status.epoch,
            target: self.party(grant.spec.target.as_ref()),
            is_deletion: status.because == Some(RevokedBecause::Deletion),
            is_filled: self.is_filled(status),
            copy: self.copy(status),
            is_settled: self.is_settled(grant),
        }
    }

    /// What the hub says of the data here. Of several copies, the one that wants most care speaks.
    fn copy(&self, status: &GrantStatus) -> Option<CopyState> {
        let copies = status.copies.iter();
        let mine = copies.filter(|copy| copy.cluster.is_same(&self.syncer.cluster));
        mine.map(|copy| copy.state).max_by_key(|state| match state {
            CopyState::Unclosed => 3,
            CopyState::Diverged => 2,
            CopyState::Live => 1,
            CopyState::Superseded => 0,
        })
    }

    /// Whether the hub knows that every claim that anybody needs is filled.
    fn is_filled(&self, status: &GrantStatus) -> bool {
        let is_gone = |uid: &str| self.gone_claims.iter().any(|gone| gone.listed.uid == uid);
        status.claims.iter().all(|claim| claim.fill == Fill::Filled || is_gone(&claim.uid))
    }

    /// Whether another owner has all data and has run for as long as old copies are kept.
    fn is_settled(&self, grant: &GrantRecord) -> bool {
        self.party(grant.status.owner.as_ref()) == Party::Other && self.has_settled(grant)
    }

    /// Whether we have all data and have run for as long as old copies are kept.
    pub(super) fn is_settled_here(&self) -> bool {
        let mine = self.grant.as_ref().filter(|_| self.is_mine(&[Phase::Granted]));
        mine.is_some_and(|grant| self.has_settled(grant))
    }

    fn has_settled(&self, grant: &GrantRecord) -> bool {
        self.settles_in(grant) == Some(Duration::ZERO)
    }

    /// How long what runs has to run on until old copies may go; None: it does not run yet.
    fn settles_in(&self, grant: &GrantRecord) -> Option<Duration> {
        let running = conditions::find(&grant.status.conditions, RUNNING);
        let is_granted = grant.status.phase == Phase::Granted;
        let running = running.filter(|running| is_granted && running.status == "True");
        let is_filled = grant.status.claims.iter().all(|claim| claim.fill == Fill::Filled);
        let running = running.filter(|_| is_filled)?;
        let ran = self.view.now().duration_since(running.last_transition_time.0);
        let keep = Duration::from(grant.spec.volumes.keep_superseded);
        Some(keep.saturating_sub(Duration::try_from(ran).unwrap_or_default()))
    }

    /// How soon it is looked at again whether old copies may go.
    pub(super) fn until_settled(&self) -> Duration {
        let left = self.grant.as_ref().and_then(|grant| self.settles_in(grant));
        left.filter(|left| !left.is_zero()).unwrap_or(ONCE_A_WHILE).min(ONCE_A_WHILE)
    }

    /// While we own it: our finalizer on the namespace. After that: on anything in it too.
    fn has_finalizer(&self) -> bool {
        let Some(namespace) = &self.hub_namespace else { return false };
        if has_finalizer(namespace, &self.syncer.finalizer) {
            return true;
        }
        !self.is_mine(&[Phase::Granted, Phase::Revoking]) && self.finalized_object().is_some()
    }

    /// An object at the hub, other than the namespace, that has our finalizer.
    pub(super) fn finalized_object(&self) -> Option<(Kind, Object)> {
        self.syncer.kinds.carried().find_map(|kind| {
            let mut objects = self.at_hub(kind).into_iter();
            let found = objects.find(|object| has_finalizer(object, &self.syncer.finalizer));
            found.map(|object| (kind.clone(), object))
        })
    }

    fn has_objects_to_apply(&self, noted: Option<Notes>) -> bool {
        let epoch = self.at().epoch;
        let is_permitted = noted.is_some_and(|n| n.running == Running::Permitted(epoch));
        let is_staying = self.here.as_deref().is_some_and(|here| !is_going(here));
        self.is_mine(&[Phase::Granted])
            && is_permitted
            && is_staying
            && self.survey().chore.is_some()
    }

    /// Everything here that runs or makes something run, in the order in which it is stopped.
    pub(super) fn running(&self) -> impl Iterator<Item = (Kind, Object)> {
        self.syncer.kinds.running().into_iter().flat_map(|kind| {
            let objects = self.view.list(Place::CLUSTER, &kind, Some(self.name));
            objects.into_iter().map(move |object| (kind.clone(), object))
        })
    }

    fn workload(&self, noted: Option<Notes>) -> Workload {
        if noted.is_none() {
            return Workload::None;
        }
        let mut workload = Workload::None;
        for (_, object) in self.running() {
            if !is_going(&object) {
                return Workload::Some;
            }
            workload = Workload::Stopping;
        }
        workload
    }

    /// The question about the locks, tied to the version of our notes that it is asked for: an
    /// answer that was asked for before the permit was withdrawn is no answer.
    pub(super) fn locks_question(&self) -> Option<LocksOf> {
        let here = self.here.as_deref()?;
        let seen = here.metadata.resource_version.clone().unwrap_or_default();
        Some(LocksOf { namespace: self.name.to_owned(), seen })
    }

    /// What keeps this cluster from being still, as a fresh look showed; None: nobody looked.
    pub(super) fn stirring(&self) -> Option<Vec<String>> {
        let holding = self.looks.answers.get(&self.locks_question()?)?;
        let mut found = Vec::new();
        for kind in self.syncer.kinds.running() {
            let within = Some(self.name.to_owned());
            let objects = self.looks.lists.get(&(Place::CLUSTER, kind.clone(), within))?;
            found.extend(objects.iter().map(|object| format!("{kind} {}", name(object))));
        }
        if self.syncer.sees_attachments {
            let list = (Place::CLUSTER, VOLUME_ATTACHMENT, None);
            let attachments = self.looks.lists.get(&list)?;
            let volumes = self.volumes_here();
            let source = |attachment: &Object| {
                let volume = &attachment.data["spec"]["source"]["persistentVolumeName"];
                volume
                    .as_str()
                    .filter(|volume| volumes.iter().any(|v| v == volume))
                    .map(str::to_owned)
            };
            let attached = attachments.iter().filter_map(source);
            found.extend(attached.map(|volume| format!("attached volume {volume}")));
        }
        match holding {
            Holding::Free => {}
            Holding::Held(pids) if pids.is_empty() => found.push("a process".to_owned()),
            Holding::Held(pids) => found.extend(pids.iter().map(|pid| format!("process {pid}"))),
        }
        Some(found)
    }

    fn volumes_here(&self) -> Vec<String> {
        let claims = self.view.list(Place::CLUSTER, &CLAIM, Some(self.name));
        let volumes = claims.iter().filter_map(|claim| claim.data["spec"]["volumeName"].as_str());
        volumes.map(str::to_owned).collect()
    }

    fn stillness(&self) -> Option<Stillness> {
        match self.stirring()?.is_empty() {
            true => Some(Stillness::Still),
            false => Some(Stillness::Astir),
        }
    }

    /// The addresses of a fresh look at whether we may run: our notes, then the grant.
    pub(super) fn truth_addresses(&self) -> (Address, Address) {
        let name = Name::cluster_wide(self.name);
        let notes = Address::new(Place::CLUSTER, &NAMESPACE, name.clone());
        (notes, Address::new(Place::HUB, &GRANT, name))
    }

    /// Whether our notes are, as a fresh look showed them, what the cache shows; None: nobody looked.
    pub(super) fn are_notes_current(&self) -> Option<bool> {
        let fresh = self.looks.objects.get(&self.truth_addresses().0)?;
        let version = |object: &Object| object.metadata.resource_version.clone();
        Some(fresh.as_ref().map(version) == self.here.as_ref().map(version))
    }

    fn truth(&self) -> Option<Truth> {
        let (_, grant) = self.truth_addresses();
        let are_notes_current = self.are_notes_current()?;
        let fresh = self.looks.objects.get(&grant)?;
        let forces = self.looks.lists.get(&(Place::HUB, FORCE_RELEASE, None))?;
        // The permit is written over the notes that the cache shows; if those are not the ones that
        // were there before the hub was asked, the answer is about something else.
        if !are_notes_current {
            return Some(Truth { granted: None, is_forced: false });
        }
        let known = self.grant.as_ref().map(|grant| uid(&grant.object).to_owned());
        let fresh = fresh.clone().and_then(|object| GrantRecord::read(&object).ok());
        let fresh = fresh.filter(|fresh| Some(uid(&fresh.object)) == known.as_deref());
        let granted = fresh.filter(|fresh| {
            fresh.status.phase == Phase::Granted
                && self.party(fresh.status.owner.as_ref()) == Party::Me
                && self.is_filled(&fresh.status)
        });
        let granted = granted.map(|fresh| fresh.status.epoch);
        let is_forced = forces.iter().any(|force| self.is_force(force, granted));
        Some(Truth { granted, is_forced })
    }

    /// Whether a ForceRelease names this cluster and this epoch, and was not refused. One that
    /// cannot be read counts: it may name us.
    fn is_force(&self, force: &Object, epoch: Option<i64>) -> bool {
        let grant = self.grant.as_ref().map(|grant| uid(&grant.object).to_owned());
        if force.data["spec"]["grant"]["uid"].as_str() != grant.as_deref() {
            return false;
        }
        let spec = read_part::<ForceReleaseSpec>(force, "spec");
        let status = read_part::<ForceReleaseStatus>(force, "status");
        let (Ok(Some(spec)), Ok(status)) = (spec, status) else { return true };
        let outcome = status.map(|status| status.outcome).unwrap_or_default();
        spec.owner.is_same(&self.syncer.cluster)
            && Some(spec.epoch) == epoch
            && outcome != ForceOutcome::Refused
    }

    /// Whether the namespace here is for this very grant, however its notes read.
    pub(super) fn is_noted_for_us(&self) -> bool {
        let grant = self.grant.as_ref().map(|grant| uid(&grant.object));
        let noted = self.here.as_deref().and_then(|here| annotation(here, ANNOTATION_GRANT));
        noted.is_some() && noted == grant
    }
}

/// Where claims of a grant are looked at.
fn place<'a>(syncer: &'a Syncer, name: &'a str, grant: Option<&'a GrantRecord>) -> At<'a> {
    let copies = grant.into_iter().flat_map(|grant| &grant.status.copies);
    let mine = copies.filter(|copy| copy.cluster.is_same(&syncer.cluster));
    let alone = mine.filter(|copy| matches!(copy.state, CopyState::Diverged | CopyState::Unclosed));
    let written_until = alone.map(|copy| copy.epoch).max().unwrap_or(0);
    At {
        cluster: &syncer.cluster,
        grant: name,
        grant_uid: grant.map_or("", |grant| uid(&grant.object)),
        epoch: grant.map_or(0, |grant| grant.status.epoch),
        written_until,
        is_copying: syncer.is_copying,
    }
}
