//! The conditions of a cluster, in words: what a person reads, and the next command.

use super::decide::{Conditions, Drained, Grants, Left, Reachable, Ready, Said, is_forgettable};
use super::observe::{Scene, is_here};
use crate::record::GrantRecord;
use interlock_api::names::ANNOTATION_FORGET_COPIES;
use interlock_api::placement::condition::{DRAINED, EMPTIED, REACHABLE, READY};
use interlock_kernel::Object;
use interlock_kernel::conditions::{self, Condition, Finding};
use interlock_kernel::metadata::name_of;
use kube_core::DynamicObject;
use std::slice;

/// How many grants one message names.
const NAMED: usize = 5;

/// What conditions say, if it is one of the things that we say.
pub(crate) fn said(known: &[Condition]) -> Said {
    let says = |found: Finding| {
        let first = conditions::find(known, found.kind);
        first.is_some_and(|first| found.is_in(slice::from_ref(first)))
    };
    let heard = [Reachable::NeverHeard, Reachable::Heard, Reachable::Silent];
    let readiness = [Ready::Ready, Ready::RuntimeNotReady, Ready::NotReachable];
    let emptied = conditions::find(known, EMPTIED);
    Said {
        reachable: heard.into_iter().find(|heard| says(reachable(*heard))),
        ready: readiness.into_iter().find(|readiness| says(ready(*readiness))),
        is_left: emptied.is_some_and(|emptied| emptied.status == "False"),
        is_drained: conditions::find(known, DRAINED).map(|drained| drained.status == "True"),
    }
}

/// What conditions are to say, in words.
pub(crate) fn findings(scene: &Scene, conditions: &Conditions) -> Vec<Finding> {
    let mut findings = vec![reachable(conditions.reachable), ready(conditions.ready)];
    findings.extend(conditions.left.map(|left| emptied(scene, left)));
    findings.extend(conditions.drained.map(|state| drained(scene, state)));
    findings
}

fn reachable(heard: Reachable) -> Finding {
    match heard {
        Reachable::NeverHeard => {
            Finding::fails(REACHABLE, "NeverHeard", "the syncer has never sent a heartbeat")
                .next("start the syncer with interlock syncer".to_owned())
        }
        Reachable::Heard => Finding::holds(REACHABLE, "Heard", "the syncer sends heartbeats"),
        Reachable::Silent => {
            let message = "the syncer sends no heartbeat. The cluster still owns what it runs";
            let next = "make sure that the syncer runs and reaches the hub".to_owned();
            Finding::fails(REACHABLE, "Silent", message).next(next)
        }
    }
}

fn ready(readiness: Ready) -> Finding {
    match readiness {
        Ready::Ready => Finding::holds(READY, "Ready", "the cluster accepts namespaces"),
        Ready::RuntimeNotReady => {
            let message = "the syncer reports that the runtime of the workloads does not answer";
            Finding::fails(READY, "RuntimeNotReady", message)
        }
        Ready::NotReachable => {
            Finding::fails(READY, "NotReachable", "the syncer sends no heartbeat")
        }
    }
}

/// Says for whom a cluster is empty, or names what is left on it.
fn drained(scene: &Scene, state: Drained) -> Finding {
    let requesters: Vec<&str> = scene.drains.iter().map(String::as_str).collect();
    let requesters = requesters.join(", ");
    let Grants { owned, to_come, in_place, .. } = match state {
        Drained::Empty => {
            let message = format!("the cluster is empty, and stays so for {requesters}");
            return Finding::holds(DRAINED, "Empty", message);
        }
        Drained::NotYet(grants) => grants,
    };
    let mut reasons = Vec::new();
    if owned > 0 {
        let shown = names(&scene.owned_grants);
        reasons.push(format!("the cluster owns {} ({shown})", grants(owned)));
    }
    if to_come + in_place > 0 {
        let (shown, number) = (names(&scene.other_grants), grants(to_come + in_place));
        reasons.push(format!("the cluster is the target of {number}, or has their data ({shown})"));
    }
    match reasons.is_empty() {
        true => Finding::fails(DRAINED, "NotRead", "whether the cluster is empty is not read yet"),
        false => {
            let message = format!("{}; drained for {requesters}", reasons.join("; "));
            let next = "interlock status shows why a namespace does not leave".to_owned();
            Finding::fails(DRAINED, "GrantsLeft", message).next(next)
        }
    }
}

/// Names what keeps a cluster that is being deleted, and how to end it.
fn emptied(scene: &Scene, left: Left) -> Finding {
    let mut reasons = Vec::new();
    let mut next = None;
    if left.owned > 0 {
        let shown = names(&scene.owned_grants);
        reasons.push(format!("the cluster owns {} ({shown})", grants(left.owned)));
        next = Some(format!("interlock move --all-from {}", name_of(&scene.cluster)));
    }
    if left.copies > 0 {
        let shown = names(&scene.copy_grants);
        reasons.push(format!("the cluster has data of {} ({shown})", grants(left.copies)));
        let gives_up = scene.copy_grants.iter().find_map(|grant| gives_up(grant, &scene.cluster));
        if let Some((what, command)) = gives_up {
            reasons.push(what);
            next.get_or_insert(command);
        }
    }
    Finding::fails(EMPTIED, "GrantsLeft", reasons.join("; ")).next(next)
}

fn names(found: &[Object]) -> String {
    let shown: Vec<&str> = found.iter().take(NAMED).map(|grant| name_of(grant)).collect();
    let more = if found.len() > NAMED { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn grants(number: usize) -> String {
    format!("{number} grant{}", if number == 1 { "" } else { "s" })
}

/// What would be given up with the copy of a grant, if it can be, and the command that does it.
fn gives_up(grant: &Object, cluster: &DynamicObject) -> Option<(String, String)> {
    let grant = GrantRecord::read(grant).ok()?;
    let mut copies = grant.status.copies.iter().filter(|copy| is_here(copy, cluster));
    let copy = copies.find(|copy| is_forgettable(copy.state))?;
    let (state, epoch, namespace) = (copy.state, copy.epoch, &grant.spec.namespace);
    let what = format!(
        "the {state} copy of namespace {namespace} of epoch {epoch} can be deleted for good"
    );
    let (cluster, grant) = (name_of(cluster), grant.uid());
    let desired = format!("{ANNOTATION_FORGET_COPIES}={grant}");
    Some((what, format!("kubectl annotate workloadcluster {cluster} {desired}")))
}
