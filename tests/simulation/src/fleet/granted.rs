//! What a grant says, as far as promises need it.

use crate::engine::truth::Truth;
use interlock_api::placement::Phase;
use interlock_placement::kinds::GRANT;
use kube::api::DynamicObject;

/// What a grant says, as far as promises need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    /// What is true of the owner.
    pub(crate) phase: String,
    /// The uid of the owner.
    pub(crate) owner: String,
    /// How often it was granted.
    pub(crate) epoch: i64,
}

impl Granted {
    /// Reads a grant.
    pub(crate) fn of(grant: &DynamicObject) -> Granted {
        let status = &grant.data["status"];
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let phase = Some(text(&status["phase"])).filter(|phase| !phase.is_empty());
        Granted {
            phase: phase.unwrap_or_else(|| Phase::Unassigned.to_string()),
            owner: text(&status["owner"]["uid"]),
            epoch: status["epoch"].as_i64().unwrap_or(0),
        }
    }

    /// Whether a cluster has it now.
    pub(crate) fn is_held_by(&self, uid: &str) -> bool {
        self.owner == uid && matches!(self.phase.as_str(), "Granted" | "Revoking")
    }

    /// The grant of this name, as the server has it.
    pub(crate) fn named(truth: &Truth, name: &str) -> Option<Granted> {
        truth.get(crate::HUB, &GRANT, None, name).map(|grant| Granted::of(grant))
    }
}
