//! How many pods of a PodDisruptionBudget may be evicted. First matching rule wins.

use crate::share::Share;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the budget is being deleted.
    pub is_terminating: bool,
    /// Its generation.
    pub generation: i64,
    /// What it asks for, or what is wrong with that.
    pub demand: Result<Demand, String>,
    /// The pods that it selects.
    pub pods: Vec<Pod>,
    /// What the controllers of these pods ask for, by the uid of the controller, or why that is not known.
    pub scales: BTreeMap<String, Result<Scale, String>>,
    /// The pods that its status notes as evicted, by name.
    pub disrupted: BTreeMap<String, Disrupted>,
    /// What its status says.
    pub reported: Status,
}

/// What a budget asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Demand {
    /// So many pods stay healthy.
    MinAvailable(Share),
    /// So many of those that are expected need not be healthy.
    MaxUnavailable(Share),
    /// Nothing: then nothing may be evicted, as upstream has it.
    Nothing,
}

/// A pod that a budget selects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Whether it is ready and not being deleted.
    pub is_ready: bool,
    /// The uid of its controller; None: it has none.
    pub controller: Option<String>,
}

/// How many pods a workload asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Scale {
    /// The uid of the workload: the Deployment, where a ReplicaSet belongs to one.
    pub uid: String,
    /// How many pods.
    pub replicas: u32,
}

/// A pod that a status notes as evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Disrupted {
    /// How much longer its deletion may take; None: its time is over.
    pub left: Option<Duration>,
    /// What happened to it.
    pub fate: Fate,
}

/// What happened to a pod that a status notes as evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Fate {
    /// Nothing yet: the cache shows it.
    There,
    /// It is being deleted, another pod has its name, or the budget does not select it.
    Over,
    /// The cache does not show it.
    Unseen {
        /// Whether a live list shows that it is being deleted or gone; None: there was none.
        is_over: Option<bool>,
    },
}

impl Disrupted {
    /// Whether it has to be read live whether the pod is gone.
    fn is_unread(&self) -> bool {
        self.left.is_some() && self.fate == Fate::Unseen { is_over: None }
    }

    /// Whether the pod is still about to be deleted.
    fn is_pending(&self) -> bool {
        let is_there = match self.fate {
            Fate::There => true,
            Fate::Over => false,
            Fate::Unseen { is_over } => is_over != Some(true),
        };
        is_there && self.left.is_some()
    }
}

/// What the status of a budget says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Status {
    /// How many pods there should be.
    pub expected: u32,
    /// How many are healthy.
    pub healthy: u32,
    /// How many have to be.
    pub desired: u32,
    /// How many may be evicted now.
    pub allowed: u32,
    /// The generation that all of this is of.
    pub generation: i64,
    /// The pods that are noted as evicted.
    pub disrupted: BTreeSet<String>,
    /// The condition, if there is one.
    pub condition: Option<Condition>,
}

/// The condition of a budget.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Condition {
    /// Whether a pod may be evicted, and why.
    pub reason: Reason,
    /// The sentence.
    pub message: String,
    /// The generation that it is of.
    pub generation: i64,
}

/// Why a pod may be evicted, or may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Reason {
    /// More pods are healthy than have to be.
    SufficientPods,
    /// No more pods are healthy than have to be.
    InsufficientPods,
    /// How many have to be healthy is not known.
    SyncFailed,
    /// Something that nobody here writes.
    Unknown,
}

impl Reason {
    /// As the condition has it.
    pub fn word(self) -> &'static str {
        match self {
            Reason::SufficientPods => "SufficientPods",
            Reason::InsufficientPods => "InsufficientPods",
            Reason::SyncFailed => "SyncFailed",
            Reason::Unknown => "Unknown",
        }
    }

    /// Whether a pod may be evicted.
    pub fn allows(self) -> bool {
        self == Reason::SufficientPods
    }

    /// What a condition says.
    pub fn read(word: &str, is_true: bool) -> Reason {
        let known = [Reason::SufficientPods, Reason::InsufficientPods, Reason::SyncFailed];
        let mut known = known.into_iter();
        known
            .find(|reason| reason.word() == word && reason.allows() == is_true)
            .unwrap_or(Reason::Unknown)
    }
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(Why),
    /// Nothing until a pod that was to be evicted is deleted, or its time is over.
    WaitForDeletion(Duration),
    /// List the pods live.
    ReadPods,
    /// Write the status.
    Report(Status),
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Why {
    /// The budget is being deleted.
    Terminating,
    /// The status says what is so.
    Reported,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_terminating {
        return Decision::Rest(Why::Terminating);
    }
    let due = match facts.needs() {
        Err(flaw) => facts.failed(flaw),
        // Absence from a cache is not deletion: the cache may be behind, and show the pod as ready later.
        Ok(_) if facts.disrupted.values().any(Disrupted::is_unread) => return Decision::ReadPods,
        Ok(needs) => facts.status(&needs),
    };
    if due != facts.reported {
        return Decision::Report(due);
    }
    let pending = facts.disrupted.values().filter(|it| it.is_pending());
    match pending.filter_map(|it| it.left).min() {
        Some(left) => Decision::WaitForDeletion(left),
        None => Decision::Rest(Why::Reported),
    }
}

/// How many pods there should be, and how many of them healthy.
#[derive(Debug, Clone, Copy)]
struct Needs {
    expected: u32,
    desired: u32,
    /// Pods that are in no scale.
    unmanaged: usize,
}

impl Facts {
    fn needs(&self) -> Result<Needs, String> {
        let number = count(self.pods.len());
        let scaled = |desired: &dyn Fn(u32) -> u32| -> Result<Needs, String> {
            let expected = self.scale()?;
            let unmanaged = self.pods.iter().filter(|pod| pod.controller.is_none()).count();
            Ok(Needs { expected, desired: desired(expected), unmanaged })
        };
        match self.demand.clone()? {
            Demand::Nothing => Ok(Needs { expected: 0, desired: 0, unmanaged: 0 }),
            Demand::MinAvailable(Share::Pods(desired)) => {
                Ok(Needs { expected: number, desired, unmanaged: 0 })
            }
            Demand::MinAvailable(share) => scaled(&|expected| share.up(expected)),
            Demand::MaxUnavailable(share) => {
                scaled(&|expected| expected.saturating_sub(share.up(expected)))
            }
        }
    }

    /// What the workloads of all pods together ask for.
    fn scale(&self) -> Result<u32, String> {
        let mut replicas: BTreeMap<&str, u32> = BTreeMap::new();
        for uid in self.pods.iter().filter_map(|pod| pod.controller.as_ref()) {
            let known = self.scales.get(uid);
            let scale = known.ok_or("the controller of a pod is not known")?.as_ref();
            let scale = scale.map_err(Clone::clone)?;
            replicas.insert(&scale.uid, scale.replicas);
        }
        Ok(replicas.into_values().fold(0, u32::saturating_add))
    }

    fn status(&self, needs: &Needs) -> Status {
        let pending = self.disrupted.iter().filter(|(_, disrupted)| disrupted.is_pending());
        let disrupted: BTreeSet<String> = pending.map(|(name, _)| name.clone()).collect();
        let is_healthy = |pod: &&Pod| pod.is_ready && !disrupted.contains(&pod.name);
        let healthy = count(self.pods.iter().filter(is_healthy).count());
        // Without a pod nothing is allowed, so that the first pods are not evicted before they are counted.
        let allowed = match needs.expected {
            0 => 0,
            _ => healthy.saturating_sub(needs.desired),
        };
        let reason = if allowed > 0 { Reason::SufficientPods } else { Reason::InsufficientPods };
        let condition =
            Condition { reason, message: message(needs, healthy), generation: self.generation };
        Status {
            expected: needs.expected,
            healthy,
            desired: needs.desired,
            allowed,
            generation: self.generation,
            disrupted,
            condition: Some(condition),
        }
    }

    /// As upstream: no pod may be evicted, and the rest stays what it was known to be.
    fn failed(&self, message: String) -> Status {
        let generation = self.reported.generation;
        let condition = Condition { reason: Reason::SyncFailed, message, generation };
        Status { allowed: 0, condition: Some(condition), ..self.reported.clone() }
    }
}

fn message(needs: &Needs, healthy: u32) -> String {
    let Needs { expected, desired, unmanaged } = needs;
    let counts = match expected {
        0 => "no pod is expected".to_owned(),
        _ => format!("{healthy} of {expected} pods are healthy, and {desired} must be"),
    };
    match unmanaged {
        0 => counts,
        _ => format!(
            "{counts}; {unmanaged} pods have no controller and are not expected: set \
             spec.minAvailable to a number of pods"
        ),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
