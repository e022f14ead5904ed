//! Which cluster is next. First matching rule wins.

use interlock_api::rollouts::{
    FleetChild, FleetPhase, FleetUpdateStatus, OnClusterUnreachable, OnFailure, UpdatePhase,
};
use serde::{Deserialize, Serialize};

/// The partition of the clusters that no other one selects.
pub const LAST_PARTITION: usize = usize::MAX;
/// The most failed clusters that are named.
const MOST_FAILED: usize = 100;
/// What the last partition is called.
const REST: &str = "rest";

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// How far the request is, as its status says.
    pub phase: FleetPhase,
    /// Whether the clusters were read live, after the request itself, and that is still as it was; None: nothing was read.
    pub is_live: Option<bool>,
    /// Whether somebody ended it.
    pub is_cancelled: bool,
    /// The most clusters that may be unavailable at once.
    pub max_unavailable: usize,
    /// What happens when a cluster fails.
    pub on_failure: OnFailure,
    /// What happens to a cluster that sends no heartbeat.
    pub on_unreachable: OnClusterUnreachable,
    /// The names of the canary and of the partitions, in order.
    pub partitions: Vec<String>,
    /// The clusters of the request, by partition and name.
    pub clusters: Vec<Cluster>,
    /// What the status says, without its times.
    pub said: FleetUpdateStatus,
}

/// A cluster of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its partition: 0 is the canary.
    pub partition: usize,
    /// Whether it is well.
    pub is_ready: bool,
    /// Whether its agent sent a heartbeat recently.
    pub is_reachable: bool,
    /// Whether it is to be drained for a ClusterUpdate of this request.
    pub has_drain: bool,
    /// How far it is.
    pub child: Child,
}

/// How far a cluster of the request is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Child {
    /// Its turn has not come.
    None,
    /// It was chosen, and has no ClusterUpdate yet.
    Chosen,
    /// Its ClusterUpdate has not ended.
    InFlight {
        /// The uid of the ClusterUpdate.
        uid: String,
        /// Its phase.
        phase: UpdatePhase,
        /// Whether it is to end.
        is_cancelled: bool,
    },
    /// Its ClusterUpdate has ended.
    Ended {
        /// How.
        phase: UpdatePhase,
        /// Why, in one word.
        reason: String,
    },
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing yet, and why: what it waits for may pass without an event.
    Wait(&'static str),
    /// Read the request, and then the clusters: a cache may hide a drain.
    ReadClusters,
    /// Make the ClusterUpdate of a cluster that was chosen.
    MakeChild(String),
    /// End the ClusterUpdate with this uid.
    CancelChild(String),
    /// Write this status: with one more cluster that is chosen, or with what else is known.
    Write(Box<FleetUpdateStatus>),
}

impl Cluster {
    fn is_done(&self, facts: &Facts) -> bool {
        matches!(self.child, Child::Ended { .. }) || self.is_left_out(facts)
    }

    /// A cluster whose turn has not come, and is not awaited.
    fn is_left_out(&self, facts: &Facts) -> bool {
        let is_gone = self.child == Child::None && !self.is_reachable;
        is_gone && facts.on_unreachable != OnClusterUnreachable::Wait
    }

    fn has_failed(&self, facts: &Facts) -> bool {
        match &self.child {
            Child::Ended { phase, .. } => *phase != UpdatePhase::Succeeded,
            Child::None => {
                self.is_left_out(facts) && facts.on_unreachable == OnClusterUnreachable::Fail
            }
            Child::Chosen | Child::InFlight { .. } => false,
        }
    }

    /// Whether it counts against the most that may be unavailable.
    fn is_out(&self, facts: &Facts) -> bool {
        match &self.child {
            Child::Chosen | Child::InFlight { .. } => true,
            Child::None | Child::Ended { .. } => {
                let is_unwell = !self.is_ready && !self.is_left_out(facts);
                self.has_drain || is_unwell || self.is_named(facts)
            }
        }
    }

    /// Whether the status names it as in flight. One that has ended meanwhile keeps its place until the status says so:
    /// the clusters are read after the status, and only then do they show its drain for sure. It may have been drained
    /// and have ended after that read.
    fn is_named(&self, facts: &Facts) -> bool {
        let mut named = facts.said.children.iter().filter(|child| !child.phase.is_terminal());
        named.any(|child| child.cluster == self.name)
    }
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    // Also once the request has ended: the cache may show only then what was made just before.
    if facts.is_cancelled
        && let Some(uid) = to_cancel(facts)
    {
        return Decision::CancelChild(uid);
    }
    if facts.phase.is_terminal() {
        return Decision::Rest("the request has ended");
    }
    if facts.is_cancelled {
        return cancelled(facts);
    }
    if let Some(chosen) = facts.clusters.iter().find(|cluster| cluster.child == Child::Chosen) {
        return Decision::MakeChild(chosen.name.clone());
    }
    let next = next(facts);
    if next.is_some() || facts.clusters.is_empty() {
        match facts.is_live {
            None => return Decision::ReadClusters,
            Some(false) => {
                return Decision::Rest("the cache does not show the request as it is yet");
            }
            Some(true) => {}
        }
    }
    let wanted = match next.map(|next| next.name.clone()) {
        Some(name) => status(&with_chosen(facts, &name)),
        None => status(facts),
    };
    match (wanted == facts.said, facts.is_live) {
        (false, _) => Decision::Write(Box::new(wanted)),
        // What is in the way may be over before the cache shows it: then no event says that it is.
        (true, Some(true)) => {
            Decision::Wait("a cluster is drained or not Ready, and the cache does not show it yet")
        }
        (true, _) => Decision::Rest("the clusters that were chosen are on their way"),
    }
}

/// A ClusterUpdate that is to end, and does not say so yet.
fn to_cancel(facts: &Facts) -> Option<String> {
    facts.clusters.iter().find_map(|cluster| match &cluster.child {
        Child::InFlight { uid, is_cancelled: false, .. } => Some(uid.clone()),
        Child::InFlight { .. } | Child::None | Child::Chosen | Child::Ended { .. } => None,
    })
}

/// The facts once a cluster is chosen.
fn with_chosen(facts: &Facts, name: &str) -> Facts {
    let mut facts = facts.clone();
    if let Some(cluster) = facts.clusters.iter_mut().find(|cluster| cluster.name == name) {
        cluster.child = Child::Chosen;
    }
    facts
}

fn cancelled(facts: &Facts) -> Decision {
    let wanted = status(facts);
    match wanted == facts.said {
        true => Decision::Rest("the request was cancelled, and clusters are still in flight"),
        false => Decision::Write(Box::new(wanted)),
    }
}

/// The cluster whose turn it is, if one may start.
fn next(facts: &Facts) -> Option<&Cluster> {
    let is_paused = facts.on_failure == OnFailure::Pause
        && facts.clusters.iter().any(|cluster| cluster.has_failed(facts));
    if is_paused {
        return None;
    }
    let partition = current(facts)?;
    let mut waiting = facts.clusters.iter().filter(|cluster| {
        let is_there = cluster.partition == partition && cluster.is_reachable;
        is_there && cluster.child == Child::None
    });
    // Its own place may be taken already: it is not Ready, and is to be updated all the same.
    let next = waiting.next()?;
    let others = facts.clusters.iter().filter(|cluster| cluster.name != next.name);
    let out = others.filter(|cluster| cluster.is_out(facts)).count();
    (out < facts.max_unavailable).then_some(next)
}

/// The partition that is being updated; None: all of them are done.
fn current(facts: &Facts) -> Option<usize> {
    let left = facts.clusters.iter().filter(|cluster| !cluster.is_done(facts));
    left.map(|cluster| cluster.partition).min()
}

/// What the status is to say.
fn status(facts: &Facts) -> FleetUpdateStatus {
    let count = |is_it: &dyn Fn(&Cluster) -> bool| -> u32 {
        let found = facts.clusters.iter().filter(|cluster| is_it(cluster)).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let failed = count(&|cluster| cluster.has_failed(facts));
    let is_well = |cluster: &Cluster| {
        matches!(&cluster.child, Child::Ended { phase: UpdatePhase::Succeeded, .. })
    };
    let is_skipped = |cluster: &Cluster| cluster.is_left_out(facts) && !cluster.has_failed(facts);
    let partition = current(facts)
        .map(|place| facts.partitions.get(place).cloned().unwrap_or_else(|| REST.to_owned()));
    let said = Said::of(facts, failed, partition.as_deref());
    FleetUpdateStatus {
        phase: said.phase,
        phase_since: None,
        reason: said.reason.to_owned(),
        message: said.message,
        partition: partition.filter(|_| !said.phase.is_terminal()),
        clusters: count(&|_| true),
        succeeded: count(&is_well),
        failed,
        skipped: count(&is_skipped),
        children: children(facts),
        conditions: Vec::new(),
    }
}

/// The clusters that are in flight, and the first that failed.
fn children(facts: &Facts) -> Vec<FleetChild> {
    let mut in_flight = Vec::new();
    let mut failed = Vec::new();
    for cluster in &facts.clusters {
        let name = cluster.name.clone();
        match &cluster.child {
            // One that was chosen and has no ClusterUpdate is given up with the request.
            Child::Chosen if facts.is_cancelled => {}
            Child::Chosen => {
                in_flight.push(FleetChild { cluster: name, ..FleetChild::default() });
            }
            Child::InFlight { .. } => {
                // Its phase is on its ClusterUpdate: each change of it here would be a write of the whole.
                in_flight.push(FleetChild { cluster: name, ..FleetChild::default() });
            }
            Child::Ended { phase, reason } if *phase != UpdatePhase::Succeeded => {
                failed.push(FleetChild { cluster: name, phase: *phase, reason: reason.clone() });
            }
            Child::None | Child::Ended { .. } => {}
        }
    }
    failed.truncate(MOST_FAILED);
    in_flight.into_iter().chain(failed).collect()
}

struct Said {
    phase: FleetPhase,
    reason: &'static str,
    message: String,
}

impl Said {
    fn of(facts: &Facts, failed: u32, partition: Option<&str>) -> Said {
        let is_in_flight = |cluster: &Cluster| matches!(cluster.child, Child::InFlight { .. });
        let in_flight = facts.clusters.iter().filter(|cluster| is_in_flight(cluster)).count();
        let total = facts.clusters.len();
        if facts.is_cancelled {
            let phase =
                if in_flight == 0 { FleetPhase::Cancelled } else { FleetPhase::Progressing };
            let message = "somebody cancelled the request".to_owned();
            return Said { phase, reason: "Cancelled", message };
        }
        if facts.clusters.is_empty() {
            let message = "spec.selector selects no WorkloadCluster".to_owned();
            return Said { phase: FleetPhase::Failed, reason: "NoClusters", message };
        }
        if partition.is_none() && failed == 0 {
            let message = format!("all of {total} clusters ended well, or were left out");
            return Said { phase: FleetPhase::Succeeded, reason: "AllSucceeded", message };
        }
        if partition.is_none() {
            let message = format!("{failed} of {total} clusters failed");
            return Said { phase: FleetPhase::Failed, reason: "ClustersFailed", message };
        }
        if failed > 0 && facts.on_failure == OnFailure::Pause {
            let message = format!(
                "{failed} of {total} clusters failed, and no further one starts; \
                 set spec.onFailure to Continue, or cancel the request"
            );
            return Said { phase: FleetPhase::Paused, reason: "ClusterFailed", message };
        }
        let message = format!("partition {} of {total} clusters", partition.unwrap_or(REST));
        Said { phase: FleetPhase::Progressing, reason: "Updating", message }
    }
}
