//! The changes of a record.

use super::{MOST_BAD, MOST_UNNAMED, Why};
use interlock_api::rollouts::{
    Active, BadDigest, ClusterRolloutStatus, Good, PreflightTarget, Requested, Target, Unnamed,
    UpdatePhase,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::time::Duration;

/// A request that gets its number.
#[derive(Debug, Clone)]
pub(crate) struct Numbered<'a> {
    pub(crate) uid: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) digest: Option<String>,
    pub(crate) phase: UpdatePhase,
    pub(crate) why: &'a Why,
}

/// What a request that starts brings with it.
#[derive(Debug, Clone)]
pub(crate) struct Started {
    pub(crate) digest: String,
    pub(crate) soak_seconds: u32,
    pub(crate) deadline_seconds: u32,
    pub(crate) force: bool,
    pub(crate) prune_data: bool,
}

/// The time as it is written: whole seconds.
pub(crate) fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

fn say(entry: &mut Requested, phase: UpdatePhase, why: &Why, now: Timestamp) {
    entry.phase = phase;
    entry.phase_since = Some(whole_seconds(now));
    explain(entry, why);
}

fn explain(entry: &mut Requested, why: &Why) {
    entry.reason = why.reason().to_owned();
    entry.message = cut(why.message());
    entry.next = why.next().map(cut);
}

/// As much of a sentence as the schema has room for.
pub(crate) fn cut(text: String) -> String {
    const MOST: usize = 512;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// The changes of a record, each as the record after it.
pub(crate) struct Change {
    pub(crate) status: ClusterRolloutStatus,
    pub(crate) now: Timestamp,
}

impl Change {
    fn entry(&mut self, uid: &str) -> Option<&mut Requested> {
        self.status.requests.iter_mut().find(|entry| entry.uid == uid)
    }

    fn set(&mut self, uid: &str, phase: UpdatePhase, why: &Why) {
        let now = self.now;
        if let Some(entry) = self.entry(uid) {
            say(entry, phase, why, now);
        }
    }

    /// A request gets the next number. A valid one supersedes what waits, in the same write.
    pub(crate) fn number(mut self, new: &Numbered<'_>) -> ClusterRolloutStatus {
        let version = self.status.last_version.saturating_add(1);
        if new.phase == UpdatePhase::Queued {
            let now = self.now;
            let waiting = self.status.requests.iter_mut();
            for older in waiting.filter(|it| it.phase == UpdatePhase::Queued) {
                say(older, UpdatePhase::Superseded, &Why::Superseded { by: version }, now);
            }
            self.status.preflight = None;
        }
        let mut entry = Requested {
            uid: new.uid.to_owned(),
            namespace: new.namespace.to_owned(),
            name: new.name.to_owned(),
            version,
            digest: new.digest.clone(),
            ..Requested::default()
        };
        say(&mut entry, new.phase, new.why, self.now);
        if new.phase == UpdatePhase::Queued {
            self.status.unnamed.retain(|it| Some(&it.digest) != new.digest.as_ref());
        }
        self.status.last_version = version;
        self.status.requests.push(entry);
        self.status
    }

    /// A request that waits ends. Nothing was changed for it.
    pub(crate) fn end_queued(
        mut self,
        uid: &str,
        phase: UpdatePhase,
        why: &Why,
    ) -> ClusterRolloutStatus {
        self.set(uid, phase, why);
        self.status.preflight = None;
        self.status
    }

    /// A request ends because the cluster is at it already: it is the last good one from now on.
    pub(crate) fn found_there(mut self, uid: &str, why: &Why) -> ClusterRolloutStatus {
        self.set(uid, UpdatePhase::Succeeded, why);
        let version = self.entry(uid).map(|entry| entry.version);
        if let (Some(good), Some(version)) = (&mut self.status.last_good, version) {
            good.version = version;
        }
        self.status.preflight = None;
        self.status
    }

    /// The agent is to check the request that waits.
    pub(crate) fn name(mut self, preflight: PreflightTarget) -> ClusterRolloutStatus {
        self.status.preflight = Some(preflight);
        self.status
    }

    /// What a request that waits is waiting for.
    pub(crate) fn explain(mut self, uid: &str, why: &Why) -> ClusterRolloutStatus {
        if let Some(entry) = self.entry(uid) {
            explain(entry, why);
        }
        self.status
    }

    /// The request that waits starts. Its digest is in the inventory before the first object is on the cluster.
    pub(crate) fn start(mut self, uid: &str, started: Started) -> ClusterRolloutStatus {
        let Some(version) = self.entry(uid).map(|entry| entry.version) else { return self.status };
        self.set(uid, UpdatePhase::Applying, &Why::Started);
        let now = Some(whole_seconds(self.now));
        let Started { digest, soak_seconds, deadline_seconds, force, prune_data } = started;
        if !self.status.may_exist.contains(&digest) {
            self.status.may_exist.push(digest.clone());
        }
        let token = self.status.target.token.saturating_add(1);
        let digest_of_target = Some(digest.clone());
        self.status.target =
            Target { token, digest: digest_of_target, soak_seconds, force, prune_data };
        self.status.active = Some(Active {
            uid: uid.to_owned(),
            version,
            digest,
            phase: UpdatePhase::Applying,
            phase_since: now.clone(),
            started_at: now,
            deadline_seconds,
            tries: 0,
        });
        self.status.preflight = None;
        self.status
    }

    fn move_active(&mut self, phase: UpdatePhase, why: &Why) {
        let now = whole_seconds(self.now);
        let Some(active) = &mut self.status.active else { return };
        active.phase = phase;
        active.phase_since = Some(now);
        let uid = active.uid.clone();
        self.set(&uid, phase, why);
    }

    fn end_active(&mut self, phase: UpdatePhase, why: &Why) -> Option<Active> {
        let active = self.status.active.take()?;
        self.set(&active.uid, phase, why);
        Some(active)
    }

    /// All objects of the request are on the cluster.
    pub(crate) fn verify(mut self) -> ClusterRolloutStatus {
        self.move_active(UpdatePhase::Verifying, &Why::Applied);
        self.status
    }

    /// The request is the last good one from now on.
    pub(crate) fn succeed(mut self) -> ClusterRolloutStatus {
        let Some(active) = self.end_active(UpdatePhase::Succeeded, &Why::Healthy) else {
            return self.status;
        };
        let Active { version, digest, .. } = active;
        self.status.may_exist = vec![digest.clone()];
        let force = self.status.target.force;
        self.status.last_good = Some(Good { version, digest, force });
        self.status.is_degraded = false;
        self.status
    }

    /// The cluster is to equal the last good version again, under a new token. With a cause that proves it, the digest
    /// is remembered as bad.
    pub(crate) fn roll_back(mut self, why: &Why, is_proof: bool) -> ClusterRolloutStatus {
        self.move_active(UpdatePhase::RollingBack, why);
        if is_proof {
            self.remember_bad(why);
        }
        let good = self.status.last_good.as_ref();
        self.status.target = Target {
            token: self.status.target.token.saturating_add(1),
            digest: good.map(|good| good.digest.clone()),
            soak_seconds: 0,
            force: good.is_some_and(|good| good.force),
            prune_data: false,
        };
        self.status
    }

    fn remember_bad(&mut self, why: &Why) {
        let Some(digest) = self.status.active.as_ref().map(|active| active.digest.clone()) else {
            return;
        };
        self.status.bad.retain(|bad| bad.digest != digest);
        let (reason, at) = (cut(why.message()), Some(whole_seconds(self.now)));
        self.status.bad.push(BadDigest { digest, reason, at });
        let surplus = self.status.bad.len().saturating_sub(MOST_BAD);
        self.status.bad.drain(..surplus);
    }

    /// The cluster is at the last good version again.
    pub(crate) fn rolled_back(mut self) -> ClusterRolloutStatus {
        let to = self.status.last_good.as_ref().map(|good| good.version);
        let cause = self.cause();
        self.end_active(UpdatePhase::RolledBack, &Why::RolledBack { to, cause });
        let good = self.status.last_good.as_ref();
        self.status.may_exist = good.map(|good| good.digest.clone()).into_iter().collect();
        self.status.is_degraded = false;
        self.status
    }

    /// Why the request in flight is rolled back: it is kept in the reason of its outcome.
    fn cause(&self) -> String {
        let active = self.status.active.as_ref();
        let entry = active.and_then(|active| self.status.request(&active.uid));
        entry.map(|entry| entry.message.clone()).unwrap_or_default()
    }

    /// The rollback is tried once more, under the same token.
    pub(crate) fn try_again(mut self) -> ClusterRolloutStatus {
        let now = whole_seconds(self.now);
        if let Some(active) = &mut self.status.active {
            active.tries = active.tries.saturating_add(1);
            active.phase_since = Some(now);
        }
        self.status
    }

    /// The request in flight ends, and the cluster is at no known version. The target stays, so that an agent that
    /// returns still repairs.
    pub(crate) fn give_up(mut self, why: &Why, is_proof: bool) -> ClusterRolloutStatus {
        if is_proof {
            self.remember_bad(why);
        }
        self.end_active(UpdatePhase::RollbackFailed, why);
        self.status.is_degraded = true;
        self.status
    }

    /// All that has not ended ends, since the cluster is gone.
    pub(crate) fn end_all(mut self, why: &Why) -> ClusterRolloutStatus {
        if let Some(uid) = super::queued(&self.status).map(|queued| queued.uid.clone()) {
            self.set(&uid, UpdatePhase::Failed, why);
            self.status.preflight = None;
        }
        if self.status.active.is_some() {
            return self.give_up(why, false);
        }
        self.status
    }

    /// The token follows the fence on the cluster: the record, or the hub, was restored from an older state.
    pub(crate) fn raise(mut self, token: i64) -> ClusterRolloutStatus {
        self.status.target.token = token;
        self.status
    }

    /// These entries leave the history. What only they named is deleted later.
    pub(crate) fn forget(mut self, uids: &[String]) -> ClusterRolloutStatus {
        let (gone, kept): (Vec<Requested>, Vec<Requested>) =
            self.status.requests.into_iter().partition(|entry| uids.contains(&entry.uid));
        self.status.requests = kept;
        let since = Some(whole_seconds(self.now));
        for digest in gone.into_iter().filter_map(|entry| entry.digest) {
            let is_known = self.status.unnamed.iter().any(|it| it.digest == digest);
            let has_room = self.status.unnamed.len() < MOST_UNNAMED;
            if !is_known && has_room && !self.status.names_digest(&digest) {
                self.status.unnamed.push(Unnamed { digest, since: since.clone() });
            }
        }
        self.status
    }

    /// The revisions of a digest are gone, or are named again.
    pub(crate) fn swept(mut self, digest: &str) -> ClusterRolloutStatus {
        self.status.unnamed.retain(|it| it.digest != digest);
        self.status
    }
}

/// How long ago something was written; a time to come counts as now.
pub(crate) fn age(since: Option<&Time>, now: Timestamp) -> i64 {
    let seconds = since.map_or(0, |since| now.as_second().saturating_sub(since.0.as_second()));
    seconds.max(0)
}

/// Seconds as a duration; at least one.
pub(crate) fn wait(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(1).max(1))
}
