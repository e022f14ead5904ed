//! Raises the fence of a cluster to the token of its target, and proves it where the server cannot be exact.
//!
//! The fence is the ConfigMap that the policy of [`crate::fence`] has as its parameter. Whoever brings the agent to the
//! cluster brings both; this room makes neither, or a fence that somebody deleted could come back lower than it was.

#[cfg(test)]
mod tests;

use super::fenced::{self, Fence as Seen};
use super::outside::{Answer, Probe, Question, Reach};
use super::{CONFIG_MAP, Serves};
use interlock_api::rollouts::FenceMode;
use interlock_kernel::{
    LiveReads, Object, Observed, Place, Read, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher, Write,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// When a fence that is in force is read again: people may have changed it.
const IN_FORCE_SECONDS: u64 = 60;
/// How long a fence that is missing, or servers that cannot be asked, are left alone.
const MISSING_SECONDS: u64 = 10;
/// How long a server has to learn of the fence until it is asked again.
const PROBE_SECONDS: u64 = 1;

/// The controller.
#[derive(Debug, Clone)]
pub struct Fence {
    serves: Serves,
}

impl Fence {
    /// Of this cluster.
    pub fn new(serves: Serves) -> Fence {
        Fence { serves }
    }
}

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Facts {
    /// The token of the target, as the cache shows it.
    pub token: i64,
    /// The fence; None: it was not read in this step.
    pub fence: Option<Seen>,
    /// What the API servers said to a write under the token before; None: they were not asked.
    pub probe: Option<Probed>,
}

/// What the API servers said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Probed {
    /// Each of them refused it.
    Refused,
    /// One of them would have taken it.
    Taken,
    /// One of them could not be asked.
    Unreachable,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing for so many seconds, and why.
    Wait(&'static str, u64),
    /// Read the fence.
    Read,
    /// Ask every API server.
    Probe,
    /// Raise the fence to this token.
    Raise(i64),
    /// Write that this token is proven.
    Prove(i64),
}

/// The objects that a decision is about.
pub struct Scene {
    token: i64,
    now: String,
    map: Option<Object>,
}

impl Watcher for Fence {
    fn name(&self) -> &'static str {
        "rollouts/fence"
    }

    fn watches(&self) -> Vec<Watch> {
        self.serves.watches()
    }

    fn rights(&self) -> Vec<Right> {
        rights()
    }

    fn subjects(&self, _: &Watch, _: &Object, _: &dyn View) -> Vec<Subject> {
        vec![self.serves.subject()]
    }
}

/// What the rooms of the applier do: whatever a bundle asks for on the cluster, and its own report at the hub.
pub(super) fn rights() -> Vec<Right> {
    use crate::kinds::{BUNDLE_REVISION, ROLLOUT_REPORT};
    use interlock_kernel::Kind;
    let on_cluster = [Verb::Get, Verb::List, Verb::Watch, Verb::Create, Verb::Patch, Verb::Delete];
    let mut rights = Right::to(Place::CLUSTER, &Kind::EVERY, &on_cluster);
    rights.extend(Right::to(Place::HUB, &ROLLOUT_REPORT, &[Verb::PatchStatus]));
    // To get, and not to list: who knows a digest may read what has it.
    rights.extend(Right::to(Place::HUB, &BUNDLE_REVISION, &[Verb::Get]));
    rights
}

impl Room for Fence {
    type Outside = Reach;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        _: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Reach>,
    ) -> Observed<Facts, Scene> {
        let followed = match self.serves.read(view) {
            Ok(followed) => followed,
            Err(because) => return Observed::Nothing(because),
        };
        let token = followed.status.target.token;
        let probe = match live_reads.answers.get(&Question::Refuses(token - 1)) {
            Some(Answer::Refuses(probe)) => Some(match probe {
                Probe::Refused => Probed::Refused,
                Probe::Taken(_) => Probed::Taken,
                Probe::Unreachable(_) => Probed::Unreachable,
            }),
            Some(Answer::Bundle(_) | Answer::Served(_) | Answer::Lacks(_)) | None => None,
        };
        let fence = fenced::seen(live_reads, &self.serves.user);
        // Whole seconds are what the wire has.
        let scene =
            Scene { token, now: format!("{:.0}", view.now()), map: fenced::map(live_reads) };
        Observed::Seen { facts: Facts { token, fence, probe }, scene }
    }

    fn decide(facts: &Facts) -> Decision {
        let token = facts.token;
        if token == 0 {
            return Decision::Rest("the record has no target yet");
        }
        let Some(fence) = &facts.fence else { return Decision::Read };
        let Some(raised) = fence.token else {
            return Decision::Wait("the fence is missing; apply its manifest", MISSING_SECONDS);
        };
        if raised > token {
            return Decision::Rest("the fence is above the token: the record in the cache is old");
        }
        if raised < token {
            return Decision::Raise(token);
        }
        match (fence.mode, facts.probe) {
            (FenceMode::Exact, _) => Decision::Wait("the fence is in force", IN_FORCE_SECONDS),
            (FenceMode::None, _) => {
                Decision::Wait("the policy of the fence is missing; apply it", MISSING_SECONDS)
            }
            (FenceMode::Probed, _) if fence.proven == token => {
                Decision::Wait("the fence is in force", IN_FORCE_SECONDS)
            }
            (FenceMode::Probed, None) => Decision::Probe,
            (FenceMode::Probed, Some(Probed::Refused)) => Decision::Prove(token),
            (FenceMode::Probed, Some(Probed::Taken)) => {
                Decision::Wait("an API server does not know the fence yet", PROBE_SECONDS)
            }
            (FenceMode::Probed, Some(Probed::Unreachable)) => {
                Decision::Wait("an API server cannot be asked", MISSING_SECONDS)
            }
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Reach> {
        let wait = |because: &str, seconds| Step::Wait {
            because: because.to_owned(),
            at_most: Duration::from_secs(seconds),
        };
        let live = |reads, because: &str| Step::LiveRead { reads, because: because.to_owned() };
        let write = |data: serde_json::Value, because: &str| match &scene.map {
            Some(map) => {
                let change = json!({ "data": data });
                Step::write(Write::patch(Place::CLUSTER, &CONFIG_MAP, map, change), because)
            }
            None => Step::rest("there is no fence to write to"),
        };
        match decision {
            Decision::Rest(because) => Step::rest(because),
            Decision::Wait(because, seconds) => wait(because, seconds),
            Decision::Read => live(fenced::reads(), "the fence itself decides"),
            Decision::Probe => {
                let asked = Question::Refuses(scene.token - 1);
                live(vec![Read::Ask(asked)], "each API server must know the fence")
            }
            Decision::Raise(token) => {
                write(json!({"token": token.to_string()}), "the target has a newer token")
            }
            Decision::Prove(token) => write(
                json!({"provenToken": token.to_string(), "provenAt": scene.now}),
                "each API server refuses the token before",
            ),
        }
    }
}
