//! How far a move is: the phases of a grant on its way to a cluster, as they are shown.

use super::health::{is_under_way, leaving};
use super::picture::{condition, condition_if, conditions_of};
use crate::words::{clause, size, span};
use interlock_api::placement::{self, Claim, Fill, Grant, GrantStatus, Phase, condition as kinds};
use interlock_kernel::conditions::Condition;
use std::time::Duration;

/// How wide the bar is.
const BAR_CELLS: usize = 24;

/// Where a move is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Goal {
    /// On this cluster.
    On(String),
    /// On any other cluster than this.
    AwayFrom(String),
}

impl Goal {
    fn is_met_by(&self, owner: &str) -> bool {
        match self {
            Goal::On(name) => name == owner,
            Goal::AwayFrom(name) => name != owner,
        }
    }

    fn place(&self) -> &str {
        match self {
            Goal::On(name) => name,
            Goal::AwayFrom(_) => "another cluster",
        }
    }
}

/// How far a move is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The phase, as in `Revoking`.
    pub(crate) phase: String,
    /// What happens in it, as in `stopping on west`.
    pub(crate) detail: String,
    /// What it waits for, as a sentence.
    pub(crate) waits_for: String,
    /// How much of its data has arrived, while it does.
    pub(crate) data: Option<Data>,
    /// Whether it has ended.
    pub(crate) outcome: Outcome,
}

/// How much data has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Data {
    /// Bytes so far.
    pub(crate) bytes: u64,
    /// Bytes in all, if they are counted.
    pub(crate) of_bytes: Option<u64>,
}

impl Data {
    /// What has arrived of the claims that fill; None: nobody has told yet.
    pub(crate) fn of(claims: &[Claim]) -> Option<Data> {
        let told: Vec<&placement::Progress> =
            claims.iter().filter_map(|claim| claim.progress.as_ref()).collect();
        let positive = |bytes: i64| bytes.max(0).unsigned_abs();
        let bytes = told.iter().map(|progress| positive(progress.bytes)).sum();
        let all: Option<u64> = told.iter().map(|progress| progress.of_bytes.map(positive)).sum();
        (!told.is_empty()).then_some(Data { bytes, of_bytes: all })
    }

    /// How much, in words.
    fn words(self) -> String {
        match self.of_bytes {
            Some(all) => format!("{} of {}", size(self.bytes), size(all)),
            None => size(self.bytes),
        }
    }

    /// How much, drawn, with how fast it comes and how long it takes at that.
    pub(crate) fn bar(self, bytes_per_second: Option<f64>) -> String {
        let mut text = self.words();
        if let Some(all) = self.of_bytes.filter(|all| *all > 0) {
            let share = (self.bytes as f64 / all as f64).clamp(0.0, 1.0);
            let full = (share * BAR_CELLS as f64).floor() as usize;
            let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR_CELLS - full));
            text = format!("[{bar}] {:.0} %, {text}", (share * 100.0).floor());
        }
        let Some(rate) = bytes_per_second.filter(|rate| *rate >= 1.0) else { return text };
        text += &format!(", {}/s", size(rate as u64));
        match self.of_bytes {
            Some(all) => {
                let left = all.saturating_sub(self.bytes) as f64 / rate;
                text + &format!(", {} left", span(left.ceil() as u64))
            }
            None => text,
        }
    }
}

/// Whether a move has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The move is in progress.
    UnderWay,
    /// It runs where it was to run.
    Runs {
        /// The cluster.
        on: String,
        /// The epoch there.
        epoch: i64,
    },
    /// It is blocked, and why.
    Blocked(String),
    /// The namespace is being deleted: nothing will ever run.
    Deleting,
}

impl Progress {
    fn under_way(phase: impl Into<String>, detail: impl Into<String>, waits_for: String) -> Self {
        let (phase, detail) = (phase.into(), detail.into());
        Self { phase, detail, waits_for, data: None, outcome: Outcome::UnderWay }
    }

    /// The line that is shown, with the time in the phase, and how fast data comes.
    pub(crate) fn line(&self, in_phase: Duration, bytes_per_second: Option<f64>) -> String {
        let seconds = in_phase.as_secs();
        let data = self.data.map(|data| format!(" {}", data.bar(bytes_per_second)));
        let data = data.unwrap_or_default();
        match self.detail.as_str() {
            "" => format!("{} ({seconds} s){data}", self.phase),
            detail => format!("{} ({detail}, {seconds} s){data}", self.phase),
        }
    }

    /// The line without the time: it is shown once.
    pub(crate) fn plain(&self) -> String {
        let data = self.data.map(|data| format!(": {}", data.words())).unwrap_or_default();
        match self.detail.as_str() {
            "" => format!("{}{data}", self.phase),
            detail => format!("{} ({detail}){data}", self.phase),
        }
    }
}

/// Follows one grant. It remembers what was said before another cluster was asked for, so that old news do not count.
#[derive(Debug, Clone)]
pub(crate) struct Follower {
    goal: Goal,
    /// What was said of the place before that: the scheduler may not have looked again yet.
    old_placed: Option<Condition>,
    /// The last word of another owner that it runs.
    old_running: Option<Condition>,
}

impl Follower {
    /// Follows towards the goal, from how the grant was before.
    pub(crate) fn new(goal: Goal, before: Option<&Grant>) -> Self {
        let placed = before.and_then(|grant| condition(conditions_of(grant), kinds::PLACED));
        let mut follower = Self { goal, old_placed: placed.cloned(), old_running: None };
        if let Some(grant) = before {
            follower.remember(grant, &grant.status_or_default());
        }
        follower
    }

    /// The scheduler has had its time: what it says now is about this move.
    pub(crate) fn believe_all(&mut self) {
        self.old_placed = None;
    }

    fn remember(&mut self, grant: &Grant, status: &GrantStatus) {
        let owner = status.owner.as_ref().map_or("", |owner| owner.name.as_str());
        if !self.goal.is_met_by(owner) || status.phase != Phase::Granted {
            self.old_running = condition(conditions_of(grant), kinds::RUNNING).cloned();
        }
    }

    /// How far it is now.
    pub(crate) fn look(&mut self, grant: Option<&Grant>) -> Progress {
        let Some(grant) = grant else {
            let words = "the scheduler to create the grant".to_owned();
            return Progress::under_way("No grant", "waiting for the scheduler", words);
        };
        let status = grant.status_or_default();
        self.remember(grant, &status);
        let progress = self.phase(grant, &status);
        match (self.why_it_stands(grant, &status), &progress.outcome) {
            (Some(why), Outcome::UnderWay) => {
                Progress { outcome: Outcome::Blocked(why), ..progress }
            }
            _ => progress,
        }
    }

    fn phase(&self, grant: &Grant, status: &GrantStatus) -> Progress {
        let owner = status.owner.as_ref().map_or("nobody", |owner| owner.name.as_str());
        let place = self.goal.place();
        match status.phase {
            Phase::Unassigned => Progress::under_way(
                "Unassigned",
                format!("waiting for the grant to {place}"),
                format!("the scheduler to grant the namespace to {place}"),
            ),
            Phase::Granted if self.goal.is_met_by(owner) => self.arriving(grant, status, owner),
            Phase::Granted => Progress::under_way(
                format!("Granted to {owner}"),
                "waiting to be revoked",
                format!("the scheduler to revoke the grant of {owner}"),
            ),
            Phase::Revoking => {
                let waits_for = leaving(grant, status);
                let has_stopped =
                    condition_if(conditions_of(grant), kinds::STOPPED, true).is_some();
                let copying = condition_if(conditions_of(grant), kinds::DATA_SYNCED, false);
                let detail = match (has_stopped, copying) {
                    (_, Some(said)) if said.reason == "Copying" => {
                        format!("taking the last snapshots on {owner}")
                    }
                    (false, _) => format!("stopping on {owner}"),
                    (true, _) => format!("handing over from {owner}"),
                };
                Progress::under_way("Revoking", detail, waits_for)
            }
            Phase::Released => Progress::under_way(
                "Released",
                format!("waiting for the grant to {place}"),
                format!("the scheduler to grant the namespace to {place}"),
            ),
            Phase::Fenced => Progress::under_way(
                "Fenced",
                format!("waiting for the grant to {place}"),
                format!("the scheduler to grant the namespace to {place}"),
            ),
            Phase::Deleting => Progress {
                outcome: Outcome::Deleting,
                ..Progress::under_way(
                    "Deleting",
                    "",
                    "nothing: the namespace is being deleted".to_owned(),
                )
            },
        }
    }

    fn arriving(&self, grant: &Grant, status: &GrantStatus, owner: &str) -> Progress {
        let all = status.claims.len();
        let filled = status.claims.iter().filter(|claim| claim.fill == Fill::Filled).count();
        let phase = format!("Granted to {owner}");
        if filled < all {
            let waits_for = format!("{owner} to fill the claims ({filled}/{all})");
            let under_way =
                Progress::under_way(phase, format!("filling {filled}/{all}"), waits_for);
            return Progress { data: Data::of(&status.claims), ..under_way };
        }
        let running = condition(conditions_of(grant), kinds::RUNNING);
        let is_news = running != self.old_running.as_ref();
        if running.is_some_and(|running| running.status == "True") && is_news {
            let outcome = Outcome::Runs { on: owner.to_owned(), epoch: status.epoch };
            let words = "nothing".to_owned();
            return Progress {
                outcome,
                ..Progress::under_way("Running", format!("on {owner}"), words)
            };
        }
        let said = running.filter(|_| is_news).map_or("", |running| clause(&running.message));
        let waits_for = match said {
            "" => format!("{owner} to start the namespace"),
            said => format!("{owner} to start the namespace: {said}"),
        };
        Progress::under_way(phase, "starting", waits_for)
    }

    /// Why nothing will happen before a person acts.
    fn why_it_stands(&self, grant: &Grant, status: &GrantStatus) -> Option<String> {
        let conditions = conditions_of(grant);
        let is_held = status.phase.is_held();
        let lost = condition_if(conditions, kinds::OWNER_UNREACHABLE, true);
        if let Some(lost) = lost.filter(|_| is_held) {
            return Some(clause(&lost.message).to_owned());
        }
        let placed = condition_if(conditions, kinds::PLACED, false)?;
        let is_news = self.old_placed.as_ref() != Some(placed);
        let is_blocked = is_news && !is_under_way(&placed.reason);
        is_blocked.then(|| format!("{}: {}", placed.reason, clause(&placed.message)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_how_much_how_fast_and_how_long() {
        let data = Data { bytes: 1 << 30, of_bytes: Some(4 << 30) };
        assert_eq!(
            data.bar(Some(f64::from(100 << 20))),
            "[######..................] 25 %, 1.0 GiB of 4.0 GiB, 100 MiB/s, 31s left"
        );
        assert_eq!(data.bar(None), "[######..................] 25 %, 1.0 GiB of 4.0 GiB");
        let unknown = Data { bytes: 2048, of_bytes: None };
        assert_eq!(unknown.bar(Some(1024.0)), "2.0 KiB, 1.0 KiB/s");
        let empty = Data { bytes: 0, of_bytes: Some(0) };
        assert_eq!(empty.bar(Some(0.0)), "0 B of 0 B");
    }
}
