//! Objects to facts.

use super::facts::{
    Active, Asked, Candidate, Cluster, Facts, Here, Options, Preflight, Queued, Record as Facted,
    Report, Surplus, Sweep, Unnamed, Unnumbered,
};
use super::findings::{Around, findings};
use super::{candidate, sweep};
use crate::filed::{CLUSTERS_BY_RECORD, UPDATES_BY_CLUSTER, drained_for, is_drained_for};
use crate::kinds::{CLUSTER_ROLLOUT, CLUSTER_UPDATE, ROLLOUT_REPORT, WORKLOAD_CLUSTER};
use crate::record::{Record, age};
use interlock_api::placement::WorkloadClusterStatus;
use interlock_api::placement::condition::{DRAINED, REACHABLE};
use interlock_api::rollouts::{
    ClusterUpdateSpec, FINALIZER_ROLLOUT, Ref, Requested, RolloutReportSpec, RolloutReportStatus,
    record_name,
};
use interlock_kernel::metadata::{has_finalizer, is_deleting, name_of, namespace_of, uid_of};
use interlock_kernel::{
    Address, LiveReads, Name, Nothing, Object, Place, Seen, View, conditions, read_part,
};
use jiff::Timestamp;
use kube_core::DynamicObject;

/// The objects that a decision is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) name: String,
    /// The cluster of the record: the uid is that of the record, if there is one.
    pub(super) of: Ref,
    pub(super) cluster: Cluster,
    pub(super) cluster_object: Option<Object>,
    pub(super) record: Option<Record>,
    pub(super) report: RolloutReportStatus,
    /// The requests for the cluster, the oldest first.
    pub(super) updates: Vec<Object>,
    pub(super) candidate: Option<Object>,
    pub(super) seen: candidate::Seen,
    /// The part of a revision that is to be deleted.
    pub(super) part: Option<Object>,
}

/// Reads what a step is about; the error says why there is nothing to decide.
pub(super) fn observe(
    subject: &str,
    view: &dyn View,
    live: &LiveReads<Nothing>,
) -> Result<(Facts, Scene), String> {
    let name = Name::cluster_wide(subject);
    let record = view.get(Place::HUB, &CLUSTER_ROLLOUT, &name);
    let record = record.map(|object| Record::read(&object)).transpose()?;
    let (of, cluster_object, cluster) = match &record {
        Some(record) => of_record(subject, record, view, live)?,
        None => of_name(subject, view)?,
    };
    let mut updates = view.find(Place::HUB, &UPDATES_BY_CLUSTER, &of.name);
    updates.sort_by_key(|update| {
        let created = update.metadata.creation_timestamp.clone();
        (created, namespace_of(update).to_owned(), name_of(update).to_owned())
    });
    let now = view.now();
    let report = view.get(Place::HUB, &ROLLOUT_REPORT, &name);
    let said = report.as_ref().and_then(|report| said(report, &of)).unwrap_or_default();
    let without: Vec<&Object> =
        updates.iter().filter(|update| is_unnumbered(update, record.as_ref())).collect();
    let next = without.iter().find(|update| has_finalizer(update, FINALIZER_ROLLOUT)).copied();
    let (candidate, seen) = match (&record, next) {
        (Some(record), Some(next)) => candidate::observe(next, record, live),
        (None, _) | (_, None) => (Candidate::None, candidate::Seen::default()),
    };
    let facted = record.as_ref().map(|record| facted(record, &updates, now, live));
    let around = record.as_ref().map(|record| Around::of(record, &record.status, &said, &cluster));
    let is_said = around.is_none_or(|around| {
        let known = &around.status.conditions;
        findings(&around).iter().all(|finding| finding.is_in(known))
    });
    let there = facted.as_ref().and_then(|record| record.unnamed.as_ref());
    let part = there.and_then(|unnamed| match unnamed.found {
        Sweep::There(part) => sweep::part(&unnamed.digest, part, live),
        Sweep::Unread | Sweep::Named | Sweep::Gone => None,
    });
    let facts = Facts {
        name: subject.to_owned(),
        cluster_name: of.name.clone(),
        cluster: cluster.clone(),
        report: report.as_ref().map(|_| reported(&said, record.as_ref())),
        unnumbered: without.iter().map(|update| unnumbered(update)).collect(),
        candidate,
        record: facted,
        is_said,
    };
    let candidate = next.cloned();
    let report = said;
    let name = subject.to_owned();
    let scene = Scene {
        now,
        name,
        of,
        cluster,
        cluster_object,
        record,
        report,
        updates,
        candidate,
        seen,
        part,
    };
    Ok((facts, scene))
}

type Of = (Ref, Option<Object>, Cluster);

/// The cluster of a record. That the cache does not show it proves nothing.
fn of_record(
    subject: &str,
    record: &Record,
    view: &dyn View,
    live: &LiveReads<Nothing>,
) -> Result<Of, String> {
    let of = record.spec.cluster.clone();
    if record_name(&of.name, &of.uid) != subject {
        return Err("the record is not named for its cluster: nothing follows it".to_owned());
    }
    let name = Name::cluster_wide(&of.name);
    let read = live.objects.get(&Address::new(Place::HUB, &WORKLOAD_CLUSTER, name.clone()));
    let is_it = |cluster: &Object| uid_of(cluster) == of.uid;
    let cached = view.get(Place::HUB, &WORKLOAD_CLUSTER, &name).filter(is_it);
    let cluster = match (&cached, read) {
        (Some(cluster), None) => Cluster::Here(here(cluster, false)),
        (_, Some(Some(found))) if is_it(found) => match &cached {
            Some(known) if Seen::of(known) == Seen::of(found) => Cluster::Here(here(found, true)),
            Some(_) | None => Cluster::Behind,
        },
        (None, None) => Cluster::Unread,
        (_, Some(found)) => Cluster::Gone { is_replaced: found.is_some() },
    };
    Ok((of, cached, cluster))
}

/// The cluster whose record would have this name.
fn of_name(subject: &str, view: &dyn View) -> Result<Of, String> {
    let found = view.find_some(Place::HUB, &CLUSTERS_BY_RECORD, subject, 1);
    let found = found.into_iter().next();
    let cluster = found.ok_or("the cache shows neither the record nor its cluster")?;
    let of = Ref::new(name_of(&cluster), uid_of(&cluster));
    let facts = Cluster::Here(here(&cluster, false));
    Ok((of, Some(cluster), facts))
}

fn here(cluster: &DynamicObject, is_live: bool) -> Here {
    let status: WorkloadClusterStatus =
        read_part(cluster, "status").ok().flatten().unwrap_or_default();
    let drained = conditions::find(&status.conditions, DRAINED);
    Here {
        is_reachable: conditions::is_true(&status.conditions, REACHABLE),
        drains: drained_for(cluster),
        drained: is_drained_for(cluster),
        is_live,
        drain_words: drained.map(|it| it.message.clone()).unwrap_or_default(),
    }
}

/// What a report says, if it is of this cluster.
fn said(report: &DynamicObject, of: &Ref) -> Option<RolloutReportStatus> {
    let spec: Option<RolloutReportSpec> = read_part(report, "spec").ok().flatten();
    let is_of = spec.is_some_and(|spec| spec.cluster.is_same(of));
    read_part(report, "status").ok().flatten().filter(|_| is_of)
}

fn reported(said: &RolloutReportStatus, record: Option<&Record>) -> Report {
    let first = said.failed.first().or_else(|| said.not_ready.first());
    let asked = record.and_then(|record| record.status.preflight.as_ref());
    let answer = said.preflight.as_ref().filter(|answer| {
        asked.is_some_and(|asked| (&asked.uid, &asked.digest) == (&answer.uid, &answer.digest))
    });
    Report {
        token: said.token,
        fence: said.fence.as_ref().map(|fence| (fence.token, fence.mode)),
        verdict: said.verdict,
        failed: said.failed.len(),
        first: first.map(words).unwrap_or_default(),
        is_revision_missing: said.failed.iter().any(|failed| failed.code == "RevisionMissing"),
        drifted: said.drifted.len(),
        preflight: answer.map(|answer| Preflight {
            failures: answer.failures.len(),
            first: answer.failures.first().map(words).unwrap_or_default(),
        }),
    }
}

fn words(failed: &interlock_api::rollouts::FailedObject) -> String {
    format!("{}: {}: {}", failed.id, failed.code, failed.message)
}

fn is_unnumbered(update: &DynamicObject, record: Option<&Record>) -> bool {
    let has_entry = record.is_some_and(|record| record.status.request(uid_of(update)).is_some());
    !has_entry && !candidate::is_over(update)
}

fn unnumbered(update: &DynamicObject) -> Unnumbered {
    Unnumbered {
        uid: uid_of(update).to_owned(),
        has_finalizer: has_finalizer(update, FINALIZER_ROLLOUT),
        is_deleting: is_deleting(update),
    }
}

/// What is known of the requests of a record.
struct Known<'a> {
    updates: &'a [Object],
    live: &'a LiveReads<Nothing>,
}

impl Known<'_> {
    /// The request of an entry; None: it is gone as a live read says; the error: nobody knows.
    fn find(&self, entry: &Requested) -> Result<Option<Object>, ()> {
        if let Some(known) = self.updates.iter().find(|update| uid_of(update) == entry.uid) {
            return Ok(Some(known.clone()));
        }
        let found = self.live.objects.get(&request_address(entry)).ok_or(())?;
        Ok(found.clone().filter(|found| uid_of(found) == entry.uid))
    }

    fn asked(&self, entry: &Requested) -> Asked {
        let Ok(found) = self.find(entry) else { return Asked::Unread };
        let Some(found) = found else { return Asked::Gone };
        // One that cannot be read cannot be followed either.
        let spec: Option<ClusterUpdateSpec> = read_part(&found, "spec").ok().flatten();
        spec.map_or(Asked::Gone, |spec| Asked::Here(options(&spec, is_deleting(&found))))
    }
}

/// Where the request of an entry is.
pub(super) fn request_address(entry: &Requested) -> Address {
    Address::new(Place::HUB, &CLUSTER_UPDATE, Name::within(&entry.namespace, &entry.name))
}

fn options(spec: &ClusterUpdateSpec, is_deleting: bool) -> Options {
    Options {
        is_cancelled: spec.cancel || is_deleting,
        preempt: spec.preempt,
        retry_bad: spec.retry_bad,
        drain_first: spec.drain_first,
        preflight: spec.preflight,
        force: spec.force,
        prune_data: spec.prune_data,
        deadline_seconds: spec.deadline_seconds,
        soak_seconds: spec.soak_seconds,
        start_deadline_seconds: spec.start_deadline_seconds,
    }
}

fn facted(
    record: &Record,
    updates: &[Object],
    now: Timestamp,
    live: &LiveReads<Nothing>,
) -> Facted {
    let (spec, status) = (&record.spec, &record.status);
    let known = Known { updates, live };
    let (unnamed, unnamed_in): (Option<Unnamed>, Option<i64>) = sweep::observe(record, now, live);
    let address = Address::new(Place::HUB, &CLUSTER_ROLLOUT, Name::of(&record.object));
    let is_same = |read: &Object| Seen::of(read) == Seen::of(&record.object);
    Facted {
        is_live: live.objects.get(&address).map(|read| read.as_ref().is_some_and(is_same)),
        is_terminating: is_deleting(&record.object),
        has_finalizer: has_finalizer(&record.object, FINALIZER_ROLLOUT),
        is_paused: spec.paused,
        fence: spec.fence,
        first_install_failure: spec.first_install_failure,
        tries: spec.rollback.tries,
        rollback_seconds: spec.rollback.deadline_seconds.into(),
        token: status.target.token,
        target: status.target.digest.clone(),
        good: status.last_good.clone(),
        is_degraded: status.is_degraded,
        active: active(record, &known, now),
        queued: record.queued().map(|entry| queued(entry, record, &known, now)),
        entries: status.requests.len(),
        unmirrored: unmirrored(record, updates),
        surplus: surplus(record, &known),
        unnamed,
        unnamed_in,
    }
}

fn active(record: &Record, known: &Known<'_>, now: Timestamp) -> Option<Active> {
    let active = record.status.active.as_ref()?;
    let entry = record.status.request(&active.uid);
    Some(Active {
        uid: active.uid.clone(),
        version: active.version,
        phase: active.phase,
        phase_seconds: age(active.phase_since.as_ref(), now),
        started_seconds: age(active.started_at.as_ref(), now),
        deadline_seconds: active.deadline_seconds.into(),
        tries: active.tries,
        cause: entry.map(|entry| entry.message.clone()).unwrap_or_default(),
        asked: entry.map_or(Asked::Gone, |entry| known.asked(entry)),
    })
}

fn queued(entry: &Requested, record: &Record, known: &Known<'_>, now: Timestamp) -> Queued {
    let digest = entry.digest.clone().unwrap_or_default();
    let bad = record.status.bad.iter().find(|bad| bad.digest == digest);
    let named = record.status.preflight.as_ref();
    Queued {
        uid: entry.uid.clone(),
        version: entry.version,
        seconds: age(entry.phase_since.as_ref(), now),
        reason: entry.reason.clone(),
        bad: bad.map(|bad| bad.reason.clone()),
        is_named: named.is_some_and(|it| it.uid == entry.uid && it.digest == digest),
        asked: known.asked(entry),
        digest,
    }
}

/// How many requests do not say yet how they ended.
fn unmirrored(record: &Record, updates: &[Object]) -> usize {
    let is_behind = |entry: &&Requested| {
        let update = updates.iter().find(|update| uid_of(update) == entry.uid);
        entry.phase.is_terminal() && update.is_some_and(|update| !candidate::is_over(update))
    };
    record.status.requests.iter().filter(is_behind).count()
}

/// The entries beyond the history, the oldest first. The last good one is never among them.
fn surplus(record: &Record, known: &Known<'_>) -> Vec<Surplus> {
    let good = record.status.last_good.as_ref().map(|good| good.version);
    let is_history = |entry: &&Requested| entry.phase.is_terminal() && Some(entry.version) != good;
    let mut history: Vec<&Requested> = record.status.requests.iter().filter(is_history).collect();
    history.sort_by_key(|entry| entry.version);
    let beyond = history.len().saturating_sub(record.spec.keep_history as usize);
    let surplus = history.into_iter().take(beyond).map(|entry| Surplus {
        uid: entry.uid.clone(),
        is_mirrored: known
            .find(entry)
            .ok()
            .map(|found| found.is_none_or(|it| candidate::is_over(&it))),
    });
    surplus.collect()
}
