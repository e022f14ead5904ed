//! What is true, read off the objects.

use super::people::{IS_CANCELLED, MOST_REQUESTS, name, sent};
use super::{HOME, Rollouts, agent};
use crate::kinds::CLUSTER_UPDATE;
use interlock_api::rollouts::{ClusterUpdateStatus, FINALIZER_ROLLOUT, Good, UpdatePhase, Verdict};
use interlock_kernel::metadata::has_finalizer;
use interlock_kernel::{Name, read_part};
use interlock_world::Scene;

/// What is true.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// The requests, by number; None: it was not sent yet.
    pub(super) requests: [Option<Request>; MOST_REQUESTS],
    /// The uid and the phase of the request in flight.
    pub(super) active: Option<(String, UpdatePhase)>,
    pub(super) token: i64,
    pub(super) target: Option<String>,
    pub(super) good: Option<(i64, String)>,
    pub(super) bad: Vec<String>,
    pub(super) is_degraded: bool,
    /// The last number that a request got.
    pub(super) last_version: i64,
    /// How often the rollback of the request in flight was tried again.
    pub(super) tries: u32,
    /// Whether the agent refuses the request that it is asked to check; None: it has not answered.
    pub(super) is_refused: Option<bool>,
    pub(super) said: Said,
    /// Whether somebody cancelled the first request.
    pub(super) is_cancelled: bool,
    pub(super) is_away: bool,
}

/// A request that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Request {
    pub(super) uid: String,
    /// What the record says of it; None: it has no number.
    pub(super) entry: Option<Entry>,
    /// What it says itself.
    pub(super) shown: UpdatePhase,
    pub(super) is_held: bool,
}

/// What the record says of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) version: i64,
    pub(super) digest: String,
    pub(super) phase: UpdatePhase,
}

/// What the report says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Said {
    pub(super) token: i64,
    pub(super) verdict: Verdict,
    pub(super) has_failed: bool,
}

impl Request {
    /// Whether it has an outcome, and says so.
    pub(super) fn is_over(&self) -> bool {
        self.shown.is_terminal() && self.entry.as_ref().is_none_or(|it| it.phase.is_terminal())
    }
}

impl Truth {
    pub(super) fn of(scene: &Scene<'_, Rollouts>) -> Truth {
        let (decided, said) = (agent::decided(scene), agent::said(scene));
        let hub = scene.hub();
        let request = |number: usize| {
            let at = Name::within(HOME, name(number));
            let found = hub.get(&CLUSTER_UPDATE, &at).filter(|_| number < sent(scene.chance))?;
            let uid = found.metadata.uid.clone().unwrap_or_default();
            let shown = read_part::<ClusterUpdateStatus>(&found, "status").ok().flatten();
            let entry = decided.request(&uid).map(|entry| Entry {
                version: entry.version,
                digest: entry.digest.clone().unwrap_or_default(),
                phase: entry.phase,
            });
            let is_held = has_finalizer(&found, FINALIZER_ROLLOUT);
            Some(Request { uid, entry, shown: shown.unwrap_or_default().phase, is_held })
        };
        let good = |good: &Good| (good.version, good.digest.clone());
        let asked = decided.preflight.as_ref().map(|it| (&it.uid, &it.digest));
        let answer = said.preflight.as_ref().filter(|it| asked == Some((&it.uid, &it.digest)));
        Truth {
            requests: [0, 1, 2].map(request),
            active: decided.active.as_ref().map(|active| (active.uid.clone(), active.phase)),
            token: decided.target.token,
            target: decided.target.digest.clone(),
            good: decided.last_good.as_ref().map(good),
            bad: decided.bad.iter().map(|bad| bad.digest.clone()).collect(),
            is_degraded: decided.is_degraded,
            last_version: decided.last_version,
            tries: decided.active.as_ref().map_or(0, |active| active.tries),
            is_refused: answer.map(|answer| !answer.failures.is_empty()),
            said: Said {
                token: said.token,
                verdict: said.verdict,
                has_failed: !said.failed.is_empty(),
            },
            is_cancelled: scene.chance & IS_CANCELLED != 0,
            is_away: agent::is_away(scene.chance),
        }
    }

    /// The requests that were sent.
    pub(super) fn sent(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().flatten()
    }

    /// What the record says of them.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.sent().filter_map(|request| request.entry.as_ref())
    }

    /// What it says of the request in flight.
    pub(super) fn in_flight(&self) -> Option<&Entry> {
        let (uid, _) = self.active.as_ref()?;
        self.sent().find(|request| request.uid == *uid)?.entry.as_ref()
    }

    /// Whether the report is about the target, and says this of it.
    pub(super) fn is_said(&self, verdict: Verdict) -> bool {
        self.said.token == self.token && self.said.verdict == verdict
    }

    pub(super) fn show(&self) -> Vec<(&'static str, String)> {
        let phase = |request: &Option<Request>| match request {
            None => "-".to_owned(),
            Some(request) => {
                let phase = request.entry.as_ref().map(|entry| entry.phase).unwrap_or_default();
                format!("{phase} (shows {})", request.shown)
            }
        };
        let short = |digest: &Option<String>| {
            digest.as_deref().map_or("-".to_owned(), |it| it.chars().skip(7).take(4).collect())
        };
        vec![
            ("requests", self.requests.each_ref().map(phase).join(", ")),
            ("target", format!("{} {}", self.token, short(&self.target))),
            ("good", short(&self.good.as_ref().map(|(_, digest)| digest.clone()))),
            ("bad", self.bad.len().to_string()),
            ("report", format!("{} {:?}", self.said.token, self.said.verdict)),
        ]
    }
}

/// Whether a phase is one of a request in flight.
pub(super) fn is_active(phase: UpdatePhase) -> bool {
    matches!(phase, UpdatePhase::Applying | UpdatePhase::Verifying | UpdatePhase::RollingBack)
}
