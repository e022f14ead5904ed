//! A PhysicalNode as a room at the hub reads it, and the ways in which it writes it back.

use crate::kinds::PHYSICAL_NODE;
use interlock_api::nodes::condition::{CONFIGURATION_CONSISTENT, NETWORK_READY};
use interlock_api::nodes::{
    Assignment, DPU_LABEL_PREFIX, DpuName, LABEL_RACK, NodePhase, PhysicalNodeSpec,
    PhysicalNodeStatus, Ref,
};
use interlock_kernel::conditions::{self, Condition, Finding, with_all};
use interlock_kernel::metadata::{is_deleting, name_of, uid_of};
use interlock_kernel::{Address, Event, Importance, Name, Object, Place, Write, read_part};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::DynamicObject;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The reason of NetworkReady from the moment of an assignment until all DPUs have the node programmed for the first
/// time: a tenant cannot have used it yet.
pub(crate) const NEVER_PROGRAMMED: &str = "Programming";
/// The reason of NetworkReady when a DPU has the node programmed no more.
pub(crate) const INTERRUPTED: &str = "Interrupted";

/// How the epoch of a node is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Revocation {
    /// The floor is raised to the epoch: the DPUs close their ports.
    AtOnce,
    /// A cluster is on the node: the floor is raised once the cluster is drained.
    AfterDrain,
}

impl Revocation {
    /// The way that is right for a node. The cluster is on the same object as the floor, so a write that ends the epoch
    /// cannot miss it (C4).
    pub fn of(has_cluster: bool) -> Revocation {
        if has_cluster { Revocation::AfterDrain } else { Revocation::AtOnce }
    }
}

/// A node, and the object that it was read from: the version that every write of it rests on.
#[derive(Debug, Clone)]
pub(crate) struct NodeRecord {
    pub(crate) object: Object,
    pub(crate) spec: PhysicalNodeSpec,
    pub(crate) status: PhysicalNodeStatus,
    /// Whether a controller has handled it before.
    pub(crate) has_status: bool,
}

impl NodeRecord {
    /// Reads a node; the error says in words what is wrong with it.
    pub(crate) fn read(object: &Object) -> Result<NodeRecord, String> {
        let spec: PhysicalNodeSpec =
            read_part(object, "spec")?.ok_or_else(|| "spec is missing".to_owned())?;
        let status: Option<PhysicalNodeStatus> = read_part(object, "status")?;
        let has_status = status.is_some();
        Ok(NodeRecord {
            object: object.clone(),
            spec,
            status: status.unwrap_or_default(),
            has_status,
        })
    }

    pub(crate) fn name(&self) -> &str {
        name_of(&self.object)
    }

    pub(crate) fn uid(&self) -> &str {
        uid_of(&self.object)
    }

    pub(crate) fn is_terminating(&self) -> bool {
        is_deleting(&self.object)
    }

    /// The DPUs that it is wired through.
    pub(crate) fn dpus(&self) -> Vec<DpuName> {
        self.spec.dpus.iter().map(|dpu| dpu.name()).collect()
    }

    /// Its assignment, if it holds: the epoch is above the floor.
    pub(crate) fn assigned(&self) -> Option<&Assignment> {
        let assignment = self.status.assignment.as_ref()?;
        let holds = self.status.phase.is_assigned() && assignment.epoch > self.status.floor;
        holds.then_some(assignment)
    }

    /// Whether all its DPUs had it programmed for its assignment at some time: the tenant may use it. A node that says
    /// nothing about it may be in use.
    pub(crate) fn was_programmed(&self) -> bool {
        let ready = conditions::find(&self.status.conditions, NETWORK_READY);
        ready.is_none_or(|ready| ready.status == "True" || ready.reason != NEVER_PROGRAMMED)
    }

    /// Whether the DPUs of its spec are in order, and its labels are those of its spec: a spec that was changed since
    /// has not been compared yet.
    pub(crate) fn is_consistent(&self) -> bool {
        let is_in_rack = self.spec.dpus.iter().all(|dpu| dpu.rack == self.spec.rack);
        let is_compared = conditions::is_true(&self.status.conditions, CONFIGURATION_CONSISTENT);
        is_in_rack
            && is_compared
            && !self.spec.dpus.is_empty()
            && self.labels_to_change().is_empty()
    }

    /// The labels that differ from the spec: None for one that is not to be there.
    pub(crate) fn labels_to_change(&self) -> BTreeMap<String, Option<String>> {
        let dpus = self.spec.dpus.iter().map(|dpu| (dpu.name().label_key(), dpu.port.clone()));
        let rack = (LABEL_RACK.to_owned(), self.spec.rack.clone());
        let wanted: BTreeMap<String, String> = dpus.chain([rack]).collect();
        let found = self.object.metadata.labels.iter().flatten();
        let ours = found.filter(|(key, _)| key.starts_with(DPU_LABEL_PREFIX) || *key == LABEL_RACK);
        let found: BTreeMap<&String, &String> = ours.collect();
        let surplus = found.keys().filter(|key| !wanted.contains_key(**key));
        let mut change: BTreeMap<String, Option<String>> =
            surplus.map(|key| ((*key).clone(), None)).collect();
        let missing = wanted.into_iter().filter(|(key, value)| found.get(key) != Some(&value));
        change.extend(missing.map(|(key, value)| (key, Some(value))));
        change
    }

    /// A change of its status, over the version that was read.
    pub(crate) fn write_status(&self, status: Value) -> Write {
        let change = json!({ "status": status });
        Write::patch_status(Place::HUB, &PHYSICAL_NODE, &self.object, change)
    }

    /// The step into another phase, and what else changes with it.
    pub(crate) fn write_phase(&self, phase: NodePhase, now: Timestamp, mut status: Value) -> Write {
        status["phase"] = json!(phase);
        status["phaseSince"] = json!(self.next_phase_since(now));
        self.write_status(status)
    }

    /// The write that ends its epoch, or begins to. It needs no clean hardware, and no tenant.
    pub(crate) fn revoke(&self, how: Revocation, now: Timestamp) -> Write {
        match how {
            Revocation::AfterDrain => self.write_phase(NodePhase::Draining, now, json!({})),
            Revocation::AtOnce => {
                let floor = json!({ "floor": self.status.epoch });
                self.write_phase(NodePhase::Releasing, now, floor)
            }
        }
    }

    /// When the next phase begins: later than this one, whatever the clock says. A NodeFence names it, and must not
    /// fit two phases.
    fn next_phase_since(&self, now: Timestamp) -> Time {
        let before = self.status.phase_since.as_ref().map(|since| since.0.as_second());
        let seconds =
            before.map_or(now.as_second(), |before| now.as_second().max(before.saturating_add(1)));
        // Whole seconds are what the wire has.
        Time(Timestamp::from_second(seconds).unwrap_or(now))
    }

    /// An event about it.
    pub(crate) fn tells(
        &self,
        importance: Importance,
        reason: &'static str,
        note: impl Into<String>,
    ) -> Event {
        let about = Address::new(Place::HUB, &PHYSICAL_NODE, Name::of(&self.object));
        Event { about, uid: self.uid().to_owned(), importance, reason, note: note.into() }
    }

    /// Its conditions with these findings.
    pub(crate) fn conditions_with(&self, findings: &[Finding], now: Timestamp) -> Vec<Condition> {
        with_all(&self.status.conditions, findings, now, self.object.metadata.generation)
    }
}

/// An object as a reference to it.
pub(crate) fn ref_to(object: &DynamicObject) -> Ref {
    Ref::new(name_of(object), uid_of(object))
}

/// A time as the wire has it: whole seconds.
pub(crate) fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
