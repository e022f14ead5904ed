//! A grant as a room at the hub reads it, and the ways in which it writes it back.

pub(crate) use crate::kinds::syncers;
use crate::kinds::{GRANT, NAMESPACE};
use interlock_api::placement::{Fill, GrantSpec, GrantStatus, Phase, Ref};
use interlock_kernel::conditions::{Condition, Finding, with_all};
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{Address, Event, Importance, Name, Object, Place, Write, read_part};
use jiff::Timestamp;
use kube_core::DynamicObject;
use serde_json::{Value, json};

/// A grant, and the object that it was read from: the version that every write of it rests on.
#[derive(Debug, Clone)]
pub(crate) struct GrantRecord {
    pub(crate) object: Object,
    pub(crate) spec: GrantSpec,
    pub(crate) status: GrantStatus,
}

impl GrantRecord {
    /// Reads a grant; the error says in words what is wrong with it.
    pub(crate) fn read(object: &Object) -> Result<GrantRecord, String> {
        let spec: GrantSpec =
            read_part(object, "spec")?.ok_or_else(|| "spec is missing".to_owned())?;
        // Where there is no status, nobody has touched it yet.
        let status = read_part(object, "status")?.unwrap_or_default();
        Ok(GrantRecord { object: object.clone(), spec, status })
    }

    pub(crate) fn uid(&self) -> &str {
        uid_of(&self.object)
    }

    /// Whether a cluster has it now.
    pub(crate) fn is_held(&self) -> bool {
        self.status.phase.is_held()
    }

    /// Whether every claim has its data at the owner.
    pub(crate) fn is_filled(&self) -> bool {
        self.status.claims.iter().all(|claim| claim.fill == Fill::Filled)
    }

    pub(crate) fn lists(&self, claim_uid: &str) -> bool {
        self.status.claims.iter().any(|claim| claim.uid == claim_uid)
    }

    /// A change of its status, over the version that was read.
    pub(crate) fn write_status(&self, status: Value) -> Write {
        let change = json!({ "status": status });
        Write::patch_status(Place::HUB, &GRANT, &self.object, change)
    }

    /// The step into another phase, and what else changes with it: since when it is in it is part of
    /// the same write.
    pub(crate) fn write_phase(&self, phase: Phase, now: Timestamp, mut status: Value) -> Write {
        status["phase"] = json!(phase);
        // Whole seconds are what the wire has.
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        status["phaseSince"] = json!(now.to_string());
        self.write_status(status)
    }

    /// A change of its spec, over the version that was read.
    pub(crate) fn write_spec(&self, spec: Value) -> Write {
        let change = json!({ "spec": spec });
        Write::patch(Place::HUB, &GRANT, &self.object, change)
    }

    /// An event on its namespace at the hub.
    pub(crate) fn tells(
        &self,
        importance: Importance,
        reason: &'static str,
        note: impl Into<String>,
    ) -> Event {
        let Ref { name, uid } = &self.spec.namespace;
        let about = Address::new(Place::HUB, &NAMESPACE, Name::cluster_wide(name));
        Event { about, uid: uid.clone(), importance, reason, note: note.into() }
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

/// The status of a condition of an object, read as it is: `True`, `False`, `Unknown`.
pub(crate) fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<&'a Value> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

pub(crate) fn is_condition_true(object: &DynamicObject, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}
