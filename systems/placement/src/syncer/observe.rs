//! What one decision of the syncer rests on, out of what the caches and live reads show.

use super::claim::facts::At;
use super::claim::observe::{self as claims, ClaimSeen};
use super::facts::{Facts, Fresh, FreshGrant, Grant, Namespace, Rights, Runs, Unready};
use super::marks::is_ours;
use super::objects::observe::Mirror;
use super::tenancy::{Epoch, Here, Party};
use super::{Holding, Locks, LocksOf, Syncer, leftover, notes, objects};
use crate::kinds::{CLAIM, FORCE_RELEASE, GRANT, NAMESPACE, SECRET, VOLUME_ATTACHMENT};
use crate::record::GrantRecord;
use interlock_api::names::ANNOTATION_GRANT;
use interlock_api::placement::condition::RUNNING;
use interlock_api::placement::{
    CopyState, Fill, ForceOutcome, ForceReleaseSpec, ForceReleaseStatus, Phase, Ref,
    RevokedBecause, RightsState, RoleRights, Transport,
};
use interlock_kernel::metadata::{annotation, has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{
    Address, Kind, LiveReads, Name, Object, Observed, Place, View, conditions, read_part,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The objects that a decision is about. Each is taken from the view once, so that what was decided
/// on and what is written over are the same version.
#[derive(Debug)]
pub struct Scene {
    /// The name of the grant, and of the namespace on the cluster.
    pub(super) name: String,
    pub(super) now: Timestamp,
    pub(super) at: At,
    pub(super) grant: Option<GrantRecord>,
    pub(super) hub_namespace: Option<Object>,
    pub(super) here: Option<Object>,
    pub(super) notes: Here,
    /// The first thing here that runs and was not asked to stop.
    pub(super) to_stop: Option<(Kind, Object)>,
    /// An object at the hub, other than the namespace, that has our finalizer.
    pub(super) finalized: Option<(Kind, Object)>,
    /// A pod at the hub that is said to run.
    pub(super) pod: Option<Object>,
    pub(super) claims: Vec<ClaimSeen>,
    pub(super) secrets: BTreeMap<String, Mirror>,
    pub(super) objects: Vec<Mirror>,
    pub(super) strays: Vec<(Kind, Object)>,
    pub(super) parts: Vec<(Kind, Object)>,
}

/// What a step about one grant looks at.
pub(super) struct StepInputs<'a> {
    pub(super) syncer: &'a Syncer,
    pub(super) view: &'a dyn View,
    pub(super) live_reads: &'a LiveReads<Locks>,
    /// The name of the grant, and of the namespace on the cluster.
    pub(super) name: &'a str,
    pub(super) grant: Option<GrantRecord>,
    hub_namespace: Option<Object>,
    here: Option<Object>,
    notes: Here,
}

/// What is seen of a grant; or, in words, what cannot be read.
pub(super) fn observe(
    syncer: &Syncer,
    subject: &str,
    view: &dyn View,
    live_reads: &LiveReads<Locks>,
) -> Observed<Facts, Scene> {
    match StepInputs::of(syncer, subject, view, live_reads) {
        Ok(inputs) => inputs.observe(),
        Err(broken) => Observed::Nothing(broken),
    }
}

impl<'a> StepInputs<'a> {
    fn of(
        syncer: &'a Syncer,
        name: &'a str,
        view: &'a dyn View,
        live_reads: &'a LiveReads<Locks>,
    ) -> Result<StepInputs<'a>, String> {
        let by_name = Name::cluster_wide(name);
        let here = view.get(Place::CLUSTER, &NAMESPACE, &by_name);
        let grant = view.get(Place::HUB, &GRANT, &by_name);
        let grant = grant.as_ref().map(GrantRecord::read).transpose();
        let grant = grant.map_err(|flaw| format!("the grant cannot be read: {flaw}"))?;
        let (hub_namespace, notes) = match &grant {
            None => (None, Here::Missing),
            Some(grant) => {
                let namespace = &grant.spec.namespace;
                let hub = view.get(Place::HUB, &NAMESPACE, &Name::cluster_wide(&namespace.name));
                let notes = notes::read(here.as_deref(), grant.uid(), &syncer.boot_id);
                (hub.filter(|hub| uid_of(hub) == namespace.uid), notes)
            }
        };
        Ok(StepInputs { syncer, view, live_reads, name, grant, hub_namespace, here, notes })
    }

    fn observe(self) -> Observed<Facts, Scene> {
        let at = self.at();
        let is_mine = |phases: &[Phase]| {
            let grant = self.grant.as_ref().filter(|grant| phases.contains(&grant.status.phase));
            grant.is_some_and(|grant| self.party(grant.status.owner.as_ref()) == Party::Me)
        };
        let running = self.running();
        // What we put here goes first: of the rest, some makes snapshots for us after an epoch is closed.
        let mut to_stop = running.iter().filter(|(_, object)| !is_deleting(object));
        let first = to_stop.clone().next();
        let to_stop = to_stop.find(|(_, object)| is_ours(object, self.name)).or(first).cloned();
        let (claims, claims_seen) = claims::observe(&self, &at);
        let (secrets, secrets_seen) = self.secrets(&at, &claims);
        // Objects come down only to where the namespace may run.
        let is_running = matches!(self.notes, Here::Noted(notes)
            if notes.running == super::tenancy::Running::Permitted(at.epoch));
        let (objects, mirrors) = match is_mine(&[Phase::Granted]) && is_running {
            true => objects::observe::observe(&self),
            false => Default::default(),
        };
        let (strays, strays_seen) = match &self.hub_namespace {
            Some(namespace) if is_mine(&[Phase::Granted]) && is_running => {
                objects::observe::strays(&self, name_of(namespace))
            }
            _ => Default::default(),
        };
        let (parts, parts_seen) = leftover::observe::observe(&self);
        // While it is ours, our finalizer is on most objects, and rightly so.
        let is_over = !is_mine(&[Phase::Granted, Phase::Revoking]);
        let cached = if is_over { self.finalized_object() } else { None };
        let live = self.finalized_read();
        let (has_finalized_object, finalized_read) =
            (cached.is_some(), live.as_ref().map(Option::is_some));
        let finalized = cached.or(live.flatten());
        let is_leaving = is_mine(&[Phase::Revoking]);
        let pod = if is_leaving { objects::status::said_to_run(&self) } else { None };
        let facts = Facts {
            grant: self.grant.as_ref().map(|grant| self.grant_facts(grant)),
            conditions: match &self.grant {
                Some(grant) => grant.status.conditions.clone(),
                None => Vec::new(),
            },
            notes: self.notes,
            is_here_terminating: self.here.as_deref().is_some_and(is_deleting),
            namespace: self.hub_namespace.as_ref().map(|namespace| Namespace {
                is_terminating: is_deleting(namespace),
                has_finalizer: has_finalizer(namespace, &self.syncer.finalizer),
            }),
            has_finalizer_still: self.has_finalizer_still(),
            has_finalized_object,
            finalized_read,
            running: running
                .iter()
                .map(|(kind, object)| Runs {
                    what: format!("{kind} {}", name_of(object)),
                    is_ours: is_ours(object, self.name),
                    is_terminating: is_deleting(object),
                })
                .collect(),
            stop_read: to_stop.as_ref().and_then(|(kind, object)| self.stop_read(kind, object)),
            claims,
            secrets,
            objects,
            strays,
            parts,
            has_pod_said_to_run: pod.is_some(),
            stirring: self.stirring(),
            are_notes_current: self.are_notes_current(),
            is_still_here: self
                .live_reads
                .objects
                .get(&notes_address(self.name))
                .map(Option::is_some),
            fresh: self.fresh(),
            at: at.clone(),
        };
        let scene = Scene {
            name: self.name.to_owned(),
            now: self.view.now(),
            at,
            grant: self.grant,
            hub_namespace: self.hub_namespace,
            here: self.here,
            notes: self.notes,
            to_stop,
            finalized,
            pod,
            claims: claims_seen,
            secrets: secrets_seen,
            objects: mirrors,
            strays: strays_seen,
            parts: parts_seen,
        };
        Observed::Seen { facts, scene }
    }

    /// The objects of a kind in the namespace at the hub.
    pub(super) fn at_hub(&self, kind: &Kind) -> Vec<Object> {
        match &self.hub_namespace {
            Some(namespace) => self.view.list(Place::HUB, kind, Some(name_of(namespace))),
            None => Vec::new(),
        }
    }

    pub(super) fn grant_uid(&self) -> &str {
        self.grant.as_ref().map_or("", GrantRecord::uid)
    }

    /// Where claims are read.
    fn at(&self) -> At {
        let grant = self.grant.as_ref();
        let copies = grant.into_iter().flat_map(|grant| &grant.status.copies);
        let mine = copies.filter(|copy| copy.cluster.is_same(&self.syncer.cluster));
        let alone =
            mine.filter(|copy| matches!(copy.state, CopyState::Diverged | CopyState::Unclosed));
        let written_until = alone.map(|copy| copy.epoch).max().unwrap_or(0);
        let target = grant.and_then(|grant| grant.spec.target.as_ref());
        let policy = grant.map(|grant| &grant.spec.volumes);
        let policy = policy.filter(|policy| policy.transport == Transport::Restic);
        At {
            cluster: self.syncer.cluster.to_string(),
            namespace: grant.map(|grant| grant.spec.namespace.name.clone()).unwrap_or_default(),
            grant: self.name.to_owned(),
            epoch: grant.map_or(0, |grant| grant.status.epoch),
            written_until,
            is_copying: self.syncer.is_copying,
            stays: self.party(target) == Party::Me,
            repository: policy.and_then(|policy| policy.repository.clone()),
        }
    }

    fn party(&self, who: Option<&Ref>) -> Party {
        match who {
            None => Party::Nobody,
            Some(who) if who.is_same(&self.syncer.cluster) => Party::Me,
            Some(_) => Party::Other,
        }
    }

    fn grant_facts(&self, grant: &GrantRecord) -> Grant {
        let status = &grant.status;
        let copies = status.copies.iter();
        let mine = copies.filter(|copy| copy.cluster.is_same(&self.syncer.cluster));
        Grant {
            phase: status.phase,
            owner: self.party(status.owner.as_ref()),
            target: self.party(grant.spec.target.as_ref()),
            is_deletion: status.because == Some(RevokedBecause::Deletion),
            copies: mine.map(|copy| copy.state).collect(),
            settles_in: self.settles_in(grant),
            rights: rights(grant),
        }
    }

    /// How long what runs has to run on until old copies may go; None: it does not run yet.
    fn settles_in(&self, grant: &GrantRecord) -> Option<Duration> {
        let running = conditions::find(&grant.status.conditions, RUNNING);
        let is_granted = grant.status.phase == Phase::Granted;
        let running = running.filter(|running| is_granted && running.status == "True");
        let running = running.filter(|_| grant.is_filled())?;
        let ran = self.view.now().duration_since(running.last_transition_time.0);
        let keep = Duration::from(grant.spec.volumes.keep_superseded);
        Some(keep.saturating_sub(Duration::try_from(ran).unwrap_or_default()))
    }

    fn finalized_object(&self) -> Option<(Kind, Object)> {
        self.syncer.kinds.carried().find_map(|kind| {
            let mut objects = self.at_hub(kind).into_iter();
            let found = objects.find(|object| has_finalizer(object, &self.syncer.finalizer));
            found.map(|object| (kind.clone(), object))
        })
    }

    /// The same by a live read; None: not read.
    fn finalized_read(&self) -> Option<Option<(Kind, Object)>> {
        let namespace = name_of(self.hub_namespace.as_ref()?);
        let mut found = None;
        for kind in self.syncer.kinds.carried() {
            let list = (Place::HUB, kind.clone(), Some(namespace.to_owned()));
            let mut objects = self.live_reads.lists.get(&list)?.iter();
            let held = objects.find(|object| has_finalizer(object, &self.syncer.finalizer));
            found = found.or_else(|| held.map(|object| (kind.clone(), object.clone())));
        }
        Some(found)
    }

    /// Everything here that runs or makes something run, in the order in which it is stopped.
    fn running(&self) -> Vec<(Kind, Object)> {
        if !matches!(self.notes, Here::Noted(_)) {
            return Vec::new();
        }
        let kinds = self.syncer.kinds.running().into_iter();
        kinds
            .flat_map(|kind| {
                let objects = self.view.list(Place::CLUSTER, &kind, Some(self.name));
                objects.into_iter().map(move |object| (kind.clone(), object))
            })
            .collect()
    }

    fn stop_read(&self, kind: &Kind, object: &Object) -> Option<bool> {
        let address = Address::new(Place::CLUSTER, kind, Name::of(object));
        let there = self.live_reads.objects.get(&address)?;
        Some(there.as_ref().is_some_and(|there| uid_of(there) == uid_of(object)))
    }

    /// The Secrets of repositories that data may come from or leave through.
    fn secrets(
        &self,
        at: &At,
        claims: &[super::claim::facts::Facts],
    ) -> (BTreeMap<String, Option<objects::decide::Facts>>, BTreeMap<String, Mirror>) {
        let sources = claims.iter().filter_map(|claim| claim.source.as_ref()?.secret.as_deref());
        let origins = claims.iter().filter_map(|claim| claim.secret());
        let names: BTreeSet<&str> =
            at.repository.as_deref().into_iter().chain(origins).chain(sources).collect();
        let mut secrets = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for secret in names {
            let namespace = self.hub_namespace.as_deref().map(name_of);
            let found = namespace.and_then(|namespace| {
                self.view.get(Place::HUB, &SECRET, &Name::within(namespace, secret))
            });
            let found = found
                .filter(|found| !is_deleting(found))
                .map(|hub| objects::observe::observe_one(self, 0, &SECRET, hub));
            let (facts, mirror) = found.unzip();
            secrets.insert(secret.to_owned(), facts);
            seen.extend(mirror.map(|mirror| (secret.to_owned(), mirror)));
        }
        (secrets, seen)
    }

    /// What keeps this cluster from being still, as a live read showed; None: not read.
    fn stirring(&self) -> Option<Vec<String>> {
        let holding =
            self.live_reads.answers.get(&locks_question(self.name, self.here.as_ref()?))?;
        let mut found = Vec::new();
        for kind in self.syncer.kinds.running() {
            let within = Some(self.name.to_owned());
            let objects = self.live_reads.lists.get(&(Place::CLUSTER, kind.clone(), within))?;
            found.extend(objects.iter().map(|object| format!("{kind} {}", name_of(object))));
        }
        if self.syncer.sees_attachments {
            let list = (Place::CLUSTER, VOLUME_ATTACHMENT, None);
            let attachments = self.live_reads.lists.get(&list)?;
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

    /// Whether our finalizer is on this very namespace, as the hub itself shows it.
    fn has_finalizer_still(&self) -> Option<bool> {
        let cached = self.hub_namespace.as_ref()?;
        let live = self.live_reads.objects.get(&namespace_address(cached))?.as_ref();
        let live = live.filter(|live| uid_of(live) == uid_of(cached));
        Some(live.is_some_and(|live| has_finalizer(live, &self.syncer.finalizer)))
    }

    fn are_notes_current(&self) -> Option<bool> {
        let fresh = self.live_reads.objects.get(&notes_address(self.name))?;
        let version = |object: &Object| object.metadata.resource_version.clone();
        Some(fresh.as_ref().map(version) == self.here.as_ref().map(version))
    }

    fn fresh(&self) -> Option<Fresh> {
        let are_notes_current = self.are_notes_current()?;
        let grant = self.live_reads.objects.get(&grant_address(self.name))?;
        let forces = self.live_reads.lists.get(&(Place::HUB, FORCE_RELEASE, None))?;
        let known = self.grant.as_ref().map(GrantRecord::uid);
        let grant = grant.as_ref().and_then(|object| GrantRecord::read(object).ok());
        let grant = grant.filter(|grant| Some(grant.uid()) == known);
        let grant = grant.map(|grant| FreshGrant {
            phase: grant.status.phase,
            owner: self.party(grant.status.owner.as_ref()),
            epoch: grant.status.epoch,
            rights: rights(&grant),
            unfilled: grant
                .status
                .claims
                .into_iter()
                .filter(|claim| claim.fill != Fill::Filled)
                .map(|claim| claim.uid)
                .collect(),
        });
        let forces = forces.iter().filter_map(|force| self.force(force)).collect();
        Some(Fresh { are_notes_current, grant, forces })
    }

    /// The epoch that a ForceRelease takes from us, unless it was refused. One that cannot be read
    /// counts: it may name us.
    fn force(&self, force: &Object) -> Option<Option<Epoch>> {
        let grant = self.grant.as_ref().map(GrantRecord::uid);
        if force.data["spec"]["grant"]["uid"].as_str() != grant {
            return None;
        }
        let spec = read_part::<ForceReleaseSpec>(force, "spec");
        let status = read_part::<ForceReleaseStatus>(force, "status");
        let (Ok(Some(spec)), Ok(status)) = (spec, status) else { return Some(None) };
        let outcome = status.map(|status| status.outcome).unwrap_or_default();
        let is_ours = spec.owner.is_same(&self.syncer.cluster);
        (is_ours && outcome != ForceOutcome::Refused).then_some(Some(spec.epoch))
    }

    /// Whether the namespace here is for this very grant, however its notes read.
    pub(super) fn is_noted_for_us(&self) -> bool {
        let grant = self.grant.as_ref().map(GrantRecord::uid);
        let noted = self.here.as_deref().and_then(|here| annotation(here, ANNOTATION_GRANT));
        noted.is_some() && noted == grant
    }
}

/// The cloud roles of a namespace. What a role says of another epoch says nothing of this one.
fn rights(grant: &GrantRecord) -> Rights {
    let epoch = grant.status.epoch;
    let is_ready = |role: &&RoleRights| role.state == RightsState::Ready && role.epoch == epoch;
    let unready = grant.status.rights.iter().filter(|role| !is_ready(role));
    let unready = unready.map(|role| Unready {
        role: role.name.clone(),
        because: if role.epoch == epoch { role.because.clone() } else { String::new() },
    });
    Rights {
        has_roles: !grant.status.rights.is_empty(),
        are_awaited: grant.spec.awaits_rights(),
        unready: unready.collect(),
    }
}

/// Our notes: the namespace on the cluster.
pub(super) fn notes_address(name: &str) -> Address {
    Address::new(Place::CLUSTER, &NAMESPACE, Name::cluster_wide(name))
}

/// A namespace at the hub.
pub(super) fn namespace_address(namespace: &Object) -> Address {
    Address::new(Place::HUB, &NAMESPACE, Name::cluster_wide(name_of(namespace)))
}

/// The grant at the hub.
pub(super) fn grant_address(name: &str) -> Address {
    Address::new(Place::HUB, &GRANT, Name::cluster_wide(name))
}

/// The question about the locks, tied to the version of our notes that it is asked for: an answer
/// that was asked for before the permit was withdrawn is no answer.
pub(super) fn locks_question(name: &str, here: &Object) -> LocksOf {
    let seen = here.metadata.resource_version.clone().unwrap_or_default();
    LocksOf { namespace: name.to_owned(), seen }
}
