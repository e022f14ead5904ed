//! What is read, and what is reported. First matching rule wins.

use super::next::{is_settling, next};
use crate::applier::fenced::Fence;
use crate::health::Health;
use interlock_api::rollouts::{FencePolicy, RolloutReportStatus, Verdict};
use serde::{Deserialize, Serialize};

/// How often objects that nothing wakes for are read while the cluster is on its way.
const WORKING_SECONDS: i64 = 2;
/// How often they are read once the target was verified.
const VERIFIED_SECONDS: i64 = 60;

/// All that one decision rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The time, in seconds since 1970.
    pub now: i64,
    /// The token of the target, as the cache shows it.
    pub token: i64,
    /// How long all objects have to be healthy.
    pub soak_seconds: i64,
    /// After how long a write that was taken before the fence is done, or never will be.
    pub settle_seconds: i64,
    /// How much time there is between two reports.
    pub every_seconds: i64,
    /// Whether the record can do without a fence.
    pub needed: FencePolicy,
    /// Whether nothing is in flight, and what others changed is only reported.
    pub is_quiet: bool,
    /// What the report says.
    pub said: RolloutReportStatus,
    /// The fence; None: it was not read in this step.
    pub fence: Option<Fence>,
    /// The bundles of the record.
    pub bundles: Bundles,
    /// Whether the cluster was asked which of the kinds it serves.
    pub are_kinds_known: bool,
    /// What is on the cluster; None: it was not read after the fence.
    pub listed: Option<Listed>,
}

/// The bundles of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bundles {
    /// They were not asked for yet.
    #[default]
    Unasked,
    /// One that is needed cannot be read, and why.
    Unreadable(String),
    /// They were read.
    Read,
}

/// What is on the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The objects of the target.
    pub wanted: Vec<Wanted>,
    /// Objects that are ours and in another bundle of the record.
    pub extra: Vec<Extra>,
    /// Whether it takes dry runs to say which objects are as the target has them.
    pub is_unsettled: bool,
    /// Whether each change of any of them wakes the room.
    pub is_watched: bool,
}

/// An object of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Which.
    pub id: String,
    /// The wave that it belongs to.
    pub wave: i32,
    /// Whether it is on the cluster as the target has it.
    pub is_applied: bool,
    /// Whether the cluster serves its kind.
    pub is_served: bool,
    /// How it is.
    pub health: Health,
}

/// An object that is not in the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    /// Which.
    pub id: String,
    /// The wave that it belonged to.
    pub wave: i32,
    /// Whether it is kept for its data.
    pub is_kept: bool,
}

impl Wanted {
    /// Whether later waves need not wait for it.
    pub(super) fn is_done(&self) -> bool {
        self.is_applied && self.health.is_current()
    }
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing for so many seconds, and why.
    Wait(&'static str, i64),
    /// Read the fence.
    ReadFence,
    /// Ask for the bundles.
    AskBundles,
    /// Ask which of the kinds are served.
    AskKinds,
    /// List all that is the rollouts'.
    List,
    /// Ask what the server would make of the objects whose text differs.
    Try,
    /// Write the report.
    Write(Box<RolloutReportStatus>),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    let said_at = facts.said.observed_at.as_ref().map(|at| at.0.as_second());
    let age = said_at.map(|at| facts.now.saturating_sub(at));
    let is_of_token = facts.said.token == facts.token;
    if is_of_token && age.is_some_and(|age| (0..facts.every_seconds).contains(&age)) {
        return Decision::Wait("the report was written just now", facts.every_seconds);
    }
    let Some(fence) = &facts.fence else { return Decision::ReadFence };
    // Whoever raised it, or reported of a newer token, knows a newer target. The hub must learn of the fence: its record
    // may be the one that is old. A report never goes back to an older token.
    let is_old = fence.token.is_some_and(|token| token > facts.token);
    if facts.token == 0 || is_old || facts.said.token > facts.token {
        let fence = Some(fence.reported());
        return written(facts, RolloutReportStatus { fence, ..facts.said.clone() }, Rests::FENCE);
    }
    match &facts.bundles {
        Bundles::Unasked => return Decision::AskBundles,
        Bundles::Unreadable(why) => {
            let next = super::next::unreadable(facts, fence, why);
            return written(facts, next, Rests::FENCE);
        }
        Bundles::Read => {}
    }
    if !facts.are_kinds_known {
        return Decision::AskKinds;
    }
    let Some(listed) = &facts.listed else { return Decision::List };
    if listed.is_unsettled {
        return Decision::Try;
    }
    let next = next(facts, fence, listed);
    let rests = rests(facts, listed, &next);
    written(facts, next, rests)
}

/// How the room rests when there is nothing to write.
struct Rests {
    because: &'static str,
    seconds: Option<i64>,
}

impl Rests {
    const FENCE: Rests =
        Rests { because: "there is nothing else to report", seconds: Some(VERIFIED_SECONDS) };
}

fn rests(facts: &Facts, listed: &Listed, next: &RolloutReportStatus) -> Rests {
    if next.verdict != Verdict::Soaked || !next.pending.is_empty() {
        let because = "the cluster is on its way, and the report says how far";
        let left = next.healthy_since.as_ref().map(|since| {
            let over = since.0.as_second().saturating_add(facts.soak_seconds);
            over.saturating_sub(facts.now).clamp(1, WORKING_SECONDS)
        });
        return Rests { because, seconds: Some(left.unwrap_or(WORKING_SECONDS)) };
    }
    let because = "the target was verified, and the report says so";
    Rests { because, seconds: (!listed.is_watched).then_some(VERIFIED_SECONDS) }
}

/// The report, if it says anything new.
fn written(facts: &Facts, next: RolloutReportStatus, rests: Rests) -> Decision {
    let observed_at = facts.said.observed_at.clone();
    let is_new = RolloutReportStatus { observed_at, ..next.clone() } != facts.said;
    if is_new || is_settling(facts, &next) {
        return Decision::Write(Box::new(next));
    }
    match rests.seconds {
        Some(seconds) => Decision::Wait(rests.because, seconds),
        None => Decision::Rest(rests.because),
    }
}
