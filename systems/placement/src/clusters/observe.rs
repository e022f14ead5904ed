//! What a cluster says of itself, and which grants have to do with it.

use super::decide::{Facts, Forget, Heartbeat};
use crate::kinds::{GRANT, GRANTS_BY_COPY, GRANTS_HELD_BY, GRANTS_TO_COME, WORKLOAD_CLUSTER};
use crate::record::{GrantRecord, has_finalizer, is_deleting, name_of, uid_of};
use interlock_api::names::{ANNOTATION_FORGET_COPIES, FINALIZER_LIVE_GRANTS};
use interlock_api::placement::condition::EMPTIED;
use interlock_api::placement::condition::{REACHABLE, READY, RUNTIME_READY};
use interlock_api::placement::{CopyState, WorkloadClusterStatus};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::{Looks, Name, Nothing, Object, Place, View, read_part};
use jiff::Timestamp;
use kube_core::DynamicObject;

/// How many grants one message names.
const NAMED: usize = 5;

/// The objects that one step is about, and the facts in them.
pub(crate) struct Scene {
    pub(crate) now: Timestamp,
    pub(crate) cluster: Object,
    pub(crate) status: WorkloadClusterStatus,
    /// How many grants it owns.
    pub(crate) owned: usize,
    /// The grant of which a person wants the copy forgotten, if it has one here.
    pub(crate) forgotten: Option<GrantRecord>,
    /// What its conditions are to say.
    pub(crate) findings: Vec<Finding>,
    pub(crate) facts: Facts,
}

/// The uid of the grant whose copy here a person gives up.
pub(crate) fn forgotten(cluster: &DynamicObject) -> Option<&str> {
    let annotations = cluster.metadata.annotations.as_ref()?;
    annotations.get(ANNOTATION_FORGET_COPIES).map(String::as_str)
}

/// Reads what a step is about; None: there is no such cluster.
pub(crate) fn observe(
    (name, silence_seconds): (&str, i64),
    view: &dyn View,
    looks: &Looks<Nothing>,
) -> Option<Scene> {
    let cluster = view.get(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide(name))?;
    // A status that cannot be read says nothing, and the next stamp makes it right.
    let status: WorkloadClusterStatus =
        read_part(&cluster, "status").ok().flatten().unwrap_or_default();
    let uid = uid_of(&cluster);
    let owned = view.count(Place::HUB, &GRANTS_HELD_BY, uid);
    let copies = view.count(Place::HUB, &GRANTS_BY_COPY, uid);
    let to_come = view.count(Place::HUB, &GRANTS_TO_COME, uid);
    let heartbeat = heartbeat(&status, view.now());
    let forgotten = forgotten(&cluster).and_then(|grant| with_copy(grant, uid, view));
    let mut findings = life(&status, heartbeat, silence_seconds);
    if is_deleting(&cluster) && owned + copies > 0 {
        findings.push(what_is_left(&cluster, (owned, copies), view));
    }
    let facts = Facts {
        is_deleting: is_deleting(&cluster),
        has_finalizer: has_finalizer(&cluster, FINALIZER_LIVE_GRANTS),
        heartbeat,
        silence_seconds,
        is_told: findings.iter().all(|found| is_said(found, &status)),
        forget: forget(&cluster, forgotten.as_ref()),
        is_empty: owned + copies + to_come == 0,
        is_surely_empty: is_surely_empty(uid, looks),
    };
    Some(Scene { now: view.now(), cluster, status, owned, forgotten, findings, facts })
}

/// What is left changes with every grant that leaves. It is told anew with the next sign of life.
fn is_said(found: &Finding, status: &WorkloadClusterStatus) -> bool {
    if found.kind == EMPTIED {
        let said = conditions::find(&status.conditions, EMPTIED);
        return said.is_some_and(|said| said.status == "False");
    }
    found.is_in(&status.conditions)
}

fn heartbeat(status: &WorkloadClusterStatus, now: Timestamp) -> Heartbeat {
    let Some(heartbeat) = &status.heartbeat else { return Heartbeat::Never };
    let noted = heartbeat
        .received_at
        .as_ref()
        .filter(|_| heartbeat.received_sequence == Some(heartbeat.sequence));
    match noted.map(|at| now.as_second().saturating_sub(at.0.as_second())) {
        // A time to come was noted before the clock was set back; it is counted from now on.
        None => Heartbeat::New,
        Some(seconds_ago) if seconds_ago < 0 => Heartbeat::New,
        Some(seconds_ago) => Heartbeat::Noted { seconds_ago },
    }
}

fn life(
    status: &WorkloadClusterStatus,
    heartbeat: Heartbeat,
    silence_seconds: i64,
) -> Vec<Finding> {
    let runtime = conditions::find(&status.conditions, RUNTIME_READY);
    let is_runtime_down = runtime.is_some_and(|runtime| runtime.status == "False");
    let reachable = match heartbeat {
        Heartbeat::Never => Finding::fails(
            REACHABLE,
            "NeverHeard",
            "its syncer was never heard of. next: start it, with interlock syncer",
        ),
        _ if heartbeat.is_reachable(silence_seconds) => {
            Finding::holds(REACHABLE, "Heard", "its syncer gives signs of life")
        }
        Heartbeat::New | Heartbeat::Noted { .. } => Finding::fails(
            REACHABLE,
            "Silent",
            "its syncer gives no sign of life. What it runs stays its own. next: see that its \
             syncer runs and reaches the hub",
        ),
    };
    let ready = match (reachable.holds, is_runtime_down) {
        (Some(true), false) => Finding::holds(READY, "Ready", "it takes namespaces"),
        (Some(true), true) => {
            let message = "its syncer says that what runs the workloads does not answer";
            Finding::fails(READY, "RuntimeNotReady", message)
        }
        _ => Finding::fails(READY, "NotReachable", "its syncer is not heard of"),
    };
    vec![reachable, ready]
}

/// Names what keeps a cluster that is being deleted, and how to end it.
fn what_is_left(
    cluster: &DynamicObject,
    (owned, copies): (usize, usize),
    view: &dyn View,
) -> Finding {
    let (name, uid) = (name_of(cluster), uid_of(cluster));
    let names = |found: Vec<Object>| {
        let shown: Vec<String> = found.iter().take(NAMED).map(|g| name_of(g).to_owned()).collect();
        let more = if found.len() > NAMED { ", ..." } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    let mut message = String::from("it stays: ");
    if owned > 0 {
        let shown = names(view.find(Place::HUB, &GRANTS_HELD_BY, uid));
        let next = format!("next: interlock move --all-from {name}");
        message += &format!("it owns {} ({shown}). {next}. ", grants(owned));
    }
    if copies > 0 {
        let found = view.find(Place::HUB, &GRANTS_BY_COPY, uid);
        let gives_up = found.iter().find_map(|grant| gives_up(grant, cluster));
        let shown = names(found);
        message += &format!("Data of {} is on it ({shown}). ", grants(copies));
        message += &gives_up.unwrap_or_default();
    }
    Finding::fails(EMPTIED, "GrantsLeft", message.trim_end())
}

fn grants(number: usize) -> String {
    format!("{number} grant{}", if number == 1 { "" } else { "s" })
}

/// What would be given up with the copy of a grant, if it can be.
fn gives_up(grant: &Object, cluster: &DynamicObject) -> Option<String> {
    let grant = GrantRecord::read(grant).ok()?;
    let copies = &grant.status.copies;
    let copy =
        copies.iter().find(|c| c.cluster.uid == uid_of(cluster) && is_forgettable(c.state))?;
    Some(format!(
        "kubectl annotate workloadcluster {} {ANNOTATION_FORGET_COPIES}={} gives up the {} copy of \
         namespace {} of epoch {}, for good",
        name_of(cluster),
        grant.uid(),
        copy.state,
        grant.spec.namespace,
        copy.epoch
    ))
}

/// The copy of an owner is never given up.
pub(crate) fn is_forgettable(state: CopyState) -> bool {
    match state {
        CopyState::Live => false,
        CopyState::Superseded | CopyState::Unclosed | CopyState::Diverged => true,
    }
}

fn with_copy(grant_uid: &str, cluster_uid: &str, view: &dyn View) -> Option<GrantRecord> {
    let found = view.find(Place::HUB, &GRANTS_BY_COPY, cluster_uid);
    let grant = found.iter().find(|grant| uid_of(grant) == grant_uid)?;
    GrantRecord::read(grant).ok()
}

fn forget(cluster: &DynamicObject, grant: Option<&GrantRecord>) -> Option<Forget> {
    forgotten(cluster)?;
    let Some(grant) = grant else { return Some(Forget::Nothing) };
    let here = |copy: &&_| is_here(copy, cluster);
    let mut copies = grant.status.copies.iter().filter(here);
    Some(if copies.any(|copy| is_forgettable(copy.state)) { Forget::Copy } else { Forget::Owners })
}

pub(crate) fn is_here(copy: &interlock_api::placement::DataCopy, cluster: &DynamicObject) -> bool {
    copy.cluster.uid == uid_of(cluster)
}

/// Whether no grant at the hub itself has to do with a cluster; None: nobody looked.
fn is_surely_empty(uid: &str, looks: &Looks<Nothing>) -> Option<bool> {
    let grants = looks.lists.get(&(Place::HUB, GRANT, None))?;
    let has_to_do = |grant: &Object| {
        let values = [GRANTS_HELD_BY.values, GRANTS_BY_COPY.values, GRANTS_TO_COME.values];
        values.iter().any(|of| of(grant).iter().any(|value| value == uid))
    };
    Some(!grants.iter().any(has_to_do))
}
