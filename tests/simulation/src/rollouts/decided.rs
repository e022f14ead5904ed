//! What a record decides, and how it may change: the promises and the rules of the checker's world of rollouts.

use super::bundles;
use crate::engine::Broken;
use crate::engine::truth::Truth;
use interlock_api::placement::Ref;
use interlock_api::rollouts::{
    Active, ClusterRolloutStatus, Requested, RolloutReportStatus, UpdatePhase, Verdict, record_name,
};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Kind, read_part};
use interlock_rollouts::kinds::{CLUSTER_ROLLOUT, ROLLOUT_REPORT};
use std::collections::{BTreeMap, BTreeSet};

/// A record, and the report of its cluster.
#[derive(Default, Clone)]
pub(super) struct Decided {
    /// The uid of the record; empty: there is none.
    pub(super) uid: String,
    pub(super) status: ClusterRolloutStatus,
    pub(super) said: RolloutReportStatus,
}

impl Decided {
    pub(super) fn of(truth: &Truth, cluster: &Ref) -> Decided {
        let name = record_name(&cluster.name, &cluster.uid);
        let get = |kind: &Kind| truth.get(crate::HUB, kind, None, &name);
        let record = get(&CLUSTER_ROLLOUT);
        let status = record.and_then(|it| read_part(it, "status").ok().flatten());
        let said = get(&ROLLOUT_REPORT).and_then(|it| read_part(it, "status").ok().flatten());
        Decided {
            uid: record.map(|it| uid_of(it).to_owned()).unwrap_or_default(),
            status: status.unwrap_or_default(),
            said: said.unwrap_or_default(),
        }
    }

    /// Whether the report says that the target of this token is verified.
    pub(super) fn is_verified(&self, token: i64) -> bool {
        self.said.token == token && self.said.verdict == Verdict::Soaked
    }

    fn phase(&self, uid: &str) -> UpdatePhase {
        self.status.request(uid).map(|entry| entry.phase).unwrap_or_default()
    }

    /// All of it that matters, in words.
    pub(super) fn words(&self) -> String {
        let ClusterRolloutStatus { requests, active, target, last_good, .. } = &self.status;
        let each = |it: &Requested| format!("{} {} {}", it.version, it.phase, it.reason);
        let requests: Vec<String> = requests.iter().map(each).collect();
        let RolloutReportStatus { token, verdict, .. } = &self.said;
        format!(
            "target {target:?}, active {active:?}, good {last_good:?}, requests {requests:?}, report {token} {verdict}"
        )
    }

    /// What must be true of a record at any time.
    pub(super) fn check(&self) -> Result<(), Broken> {
        let ClusterRolloutStatus { requests, active, target, last_good, is_degraded, .. } =
            &self.status;
        let in_flight: Vec<&Requested> =
            requests.iter().filter(|it| it.phase.is_active()).collect();
        let queued = requests.iter().filter(|it| it.phase == UpdatePhase::Queued).count();
        let has_owner = match (active, in_flight.as_slice()) {
            (Some(active), [entry]) => entry.uid == active.uid && entry.phase == active.phase,
            (None, []) => true,
            (Some(_) | None, _) => false,
        };
        let is_good = target.digest.as_ref() == last_good.as_ref().map(|good| &good.digest);
        let turns_back = active.as_ref().is_some_and(|it| it.phase == UpdatePhase::RollingBack);
        let mut over = requests.iter().filter(|it| it.phase.is_terminal());
        let all = [
            ("NoConcurrentUpdate", in_flight.len() <= 1),
            ("LockHasOwner", has_owner),
            ("OneQueued", queued <= 1),
            ("RollbackAimsAtGood", !turns_back || is_good),
            ("IdleIsGood", active.is_some() || *is_degraded || is_good),
            ("EveryOutcomeHasAReason", over.all(|it| !it.reason.is_empty())),
        ];
        match all.into_iter().find(|(_, holds)| !holds) {
            Some((promise, _)) => Err(format!("{promise}: {}", self.words())),
            None => Ok(()),
        }
    }
}

/// What the rules need to know beside the record.
pub(super) struct Around<'a> {
    /// The contents that failed on the cluster, by digest.
    pub(super) bad: &'a BTreeSet<String>,
    /// The version of each digest.
    pub(super) numbers: &'a BTreeMap<String, u64>,
    /// Whether a request, by its uid, asks for what failed once more.
    pub(super) retries: &'a dyn Fn(&str) -> bool,
}

/// A change of one record.
pub(super) struct Change<'a> {
    pub(super) before: &'a Decided,
    pub(super) after: &'a Decided,
}

impl Change<'_> {
    /// The requests that got to a phase.
    pub(super) fn newly(&self, phase: UpdatePhase) -> impl Iterator<Item = &Requested> {
        let now = self.after.status.requests.iter().filter(move |it| it.phase == phase);
        now.filter(move |it| self.before.phase(&it.uid) != phase)
    }

    /// The requests that were cancelled, started or not.
    pub(super) fn newly_cancelled(&self) -> impl Iterator<Item = &Requested> {
        const REASON: &str = "Cancelled";
        let now = self.after.status.requests.iter().filter(|it| it.reason == REASON);
        now.filter(move |it| {
            let before = self.before.status.request(&it.uid);
            before.is_none_or(|before| before.reason != REASON)
        })
    }

    /// The request that started.
    fn started(&self) -> Option<&Active> {
        let uid = |decided: &Decided| decided.status.active.as_ref().map(|it| it.uid.clone());
        let active = self.after.status.active.as_ref();
        active.filter(|_| uid(self.before) != uid(self.after))
    }

    /// No request starts that is older than one that waits or has succeeded.
    fn starts_the_newest(&self) -> bool {
        let counts = [UpdatePhase::Queued, UpdatePhase::Succeeded];
        let mut others = self.after.status.requests.iter().filter(|it| counts.contains(&it.phase));
        self.started().is_none_or(|it| others.all(|other| other.version <= it.version))
    }

    /// An outcome never changes.
    fn keeps_outcomes(&self) -> bool {
        let mut over = self.before.status.requests.iter().filter(|it| it.phase.is_terminal());
        over.all(|old| {
            let new = self.after.status.request(&old.uid);
            new.is_none_or(|new| new.phase == old.phase)
        })
    }

    /// A request is superseded by a newer one that waits, in the same write.
    fn supersedes_by_newer(&self) -> bool {
        let entries = &self.after.status.requests;
        self.newly(UpdatePhase::Superseded).all(|old| {
            let mut waiting = entries.iter().filter(|it| it.phase == UpdatePhase::Queued);
            waiting.any(|new| new.version > old.version)
        })
    }

    /// A request that was rejected, superseded or failed had never started.
    fn applied_nothing_of_refused(&self) -> bool {
        let refused = [UpdatePhase::Rejected, UpdatePhase::Superseded, UpdatePhase::Failed];
        let mut newly = refused.into_iter().flat_map(|phase| self.newly(phase));
        newly.all(|it| !self.before.phase(&it.uid).is_active())
    }

    /// Holds the change against the rules.
    pub(super) fn check(&self, around: &Around<'_>) -> Result<(), Broken> {
        let Change { before, after } = self;
        let token = before.status.target.token;
        let is_verified = before.is_verified(token) || after.is_verified(token);
        let is_same_good = before.status.last_good == after.status.last_good;
        let good = after.status.last_good.as_ref();
        let number = good.and_then(|good| around.numbers.get(&good.digest));
        let retries = |it: &Active| (around.retries)(&it.uid);
        let all = [
            ("TokenGrows", after.status.target.token >= token),
            ("NoApplicationOfOutdatedReq", self.starts_the_newest()),
            (
                "BadNotRetried",
                self.started().is_none_or(|it| !around.bad.contains(&it.digest) || retries(it)),
            ),
            ("GoodIsVerified", is_same_good || is_verified),
            ("BadIsNeverGood", number.is_none_or(|number| !bundles::is_bad(*number))),
            (
                "RollbackIsVerified",
                is_verified || self.newly(UpdatePhase::RolledBack).next().is_none(),
            ),
            ("TerminalIsFinal", self.keeps_outcomes()),
            ("SupersededByValid", self.supersedes_by_newer()),
            ("RefusedNeverApplied", self.applied_nothing_of_refused()),
        ];
        match all.into_iter().find(|(_, holds)| !holds) {
            Some((rule, _)) => {
                Err(format!("{rule}:\n  before: {}\n  after: {}", before.words(), after.words()))
            }
            None => Ok(()),
        }
    }
}
