//! What happens to the requests of a cluster. First matching rule wins.

mod admit;
mod flight;
mod queue;
mod upkeep;

use super::facts::{Active, Candidate, Cluster, Facts, Here, Queued, Record, Report};
use crate::record::Why;
use interlock_api::rollouts::{FirstInstallFailure, UpdatePhase};
use serde::Serialize;

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing for so many seconds, and why.
    Wait(&'static str, i64),
    /// Read the cluster itself: a cache proves no absence, and no drain.
    ReadCluster,
    /// Read the record itself: what is to be undone rests on it, and its write does not.
    ReadRecord,
    /// Read the request with this uid: a cache proves no absence.
    ReadRequest(String),
    /// Read these requests: entries that are dropped must not come back.
    ReadRequests(Vec<String>),
    /// Read the request that is to be numbered, its namespace and its bundle.
    ReadCandidate,
    /// Read these parts of its bundle.
    ReadParts(Vec<u32>),
    /// Read what is left of a bundle that left the history, and who names it.
    ReadUnnamed(String),
    /// Put our finalizer on a request.
    AddFinalizer(String),
    /// Make the record of the cluster.
    CreateRecord,
    /// Make the report of the cluster, for its agent to fill.
    CreateReport,
    /// Make this part of the bundle that is to be numbered.
    CreatePart(u32),
    /// Give the request its number.
    Number(UpdatePhase, Why),
    /// Raise the token to this one.
    RaiseToken(i64),
    /// Bring the cluster back to the last good version; the flag: the bundle is proven bad.
    RollBack(Why, bool),
    /// End the request that waits.
    EndQueued(UpdatePhase, Why),
    /// End it well: the cluster is at its bundle already.
    FoundThere,
    /// Ask the agent to check it.
    NamePreflight,
    /// Ask placement to drain the cluster for it.
    AddDrain,
    /// Take away the drains that nobody waits for.
    RemoveDrains,
    /// Start it.
    Start,
    /// All objects of the request in flight are on the cluster.
    Verify,
    /// It ended well.
    Succeed,
    /// The cluster is at the last good version again.
    EndRolledBack,
    /// Try the rollback once more.
    TryAgain,
    /// End it, and leave the cluster Degraded; the flag: the bundle is proven bad.
    GiveUp(Why, bool),
    /// End all that has not ended: the cluster is gone.
    EndAll(Why),
    /// Drop these entries of the history.
    Forget(Vec<String>),
    /// Delete the part of a bundle that nothing names.
    DeletePart(String),
    /// A digest needs no more care.
    Swept(String),
    /// Say what the request waits for.
    Explain(Why),
    /// Write the conditions of the record.
    Say,
    /// Let the record go.
    TakeFinalizerOff,
}

/// What the rules are about: a record, its cluster, and its report.
pub(super) struct At<'a> {
    facts: &'a Facts,
    record: &'a Record,
    here: &'a Here,
    report: &'a Report,
}

impl At<'_> {
    /// Whether the report is about the target.
    fn is_about_target(&self) -> bool {
        self.report.token == self.record.token
    }

    fn active(&self) -> Option<&Active> {
        self.record.active.as_ref()
    }

    fn queued(&self) -> Option<&Queued> {
        self.record.queued.as_ref()
    }

    /// Back to the last good version; a first version that is kept has nowhere to go.
    fn roll_back(&self, why: Why, is_proof: bool) -> Decision {
        let policy = self.record.first_install_failure;
        match (&self.record.good, policy) {
            (None, FirstInstallFailure::Keep) => {
                Decision::GiveUp(Why::KeptAsIs(why.message()), is_proof)
            }
            (Some(_), _) | (None, FirstInstallFailure::Remove) => Decision::RollBack(why, is_proof),
        }
    }
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    let Some(record) = &facts.record else { return without_record(facts) };
    let here = match &facts.cluster {
        Cluster::Unread => return Decision::ReadCluster,
        Cluster::Behind => {
            return Decision::Rest("the cache does not show the cluster as it is yet");
        }
        Cluster::Gone { is_replaced } => return gone(facts, record, *is_replaced),
        Cluster::Here(here) => here,
    };
    let Some(report) = &facts.report else { return Decision::CreateReport };
    let at = At { facts, record, here, report };
    let rules: [fn(&At<'_>) -> Option<Decision>; 15] = [
        upkeep::ends_with_record,
        admit::finalizer,
        admit::number,
        upkeep::raised_fence,
        flight::interrupted,
        queue::ended,
        queue::nothing_to_change,
        queue::prepare,
        upkeep::drains_in_vain,
        queue::start,
        flight::verdict,
        flight::failed,
        flight::rollback,
        upkeep::history,
        upkeep::said,
    ];
    rules.iter().find_map(|rule| rule(&at)).unwrap_or_else(|| upkeep::rest(&at))
}

fn without_record(facts: &Facts) -> Decision {
    match facts.unnumbered.iter().any(|request| !request.is_deleting) {
        true => Decision::CreateRecord,
        false => Decision::Rest("nobody asks for the cluster"),
    }
}

/// A cluster that is gone takes all its requests with it. Another one of its name has a record of its own.
fn gone(facts: &Facts, record: &Record, is_replaced: bool) -> Decision {
    let name = facts.cluster_name.clone();
    if record.active.is_some() || record.queued.is_some() {
        return Decision::EndAll(match is_replaced {
            true => Why::ClusterReplaced(name),
            false => Why::ClusterGone(name),
        });
    }
    match &facts.candidate {
        Candidate::Unread(_) if !is_replaced => return Decision::ReadCandidate,
        Candidate::Here(_) if !is_replaced => {
            return Decision::Number(UpdatePhase::Rejected, Why::UnknownCluster(name));
        }
        Candidate::None | Candidate::Unread(_) | Candidate::Behind | Candidate::Here(_) => {}
    }
    if record.is_terminating && record.has_finalizer && record.unmirrored == 0 {
        return Decision::TakeFinalizerOff;
    }
    match facts.is_said {
        true => Decision::Rest("the cluster of the record is gone"),
        false => Decision::Say,
    }
}
