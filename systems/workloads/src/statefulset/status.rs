//! The status of a StatefulSet: read, and written.

use crate::status::{self, NOT_SUPPORTED};
use interlock_kernel::Object;
use interlock_kernel::conditions::Finding;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a status says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Status {
    /// The generation that was served.
    pub observed_generation: i64,
    /// How many pods there are.
    pub replicas: u32,
    /// How many of them are ready.
    pub ready: u32,
    /// How many of them have been ready for long enough.
    pub available: u32,
    /// How many are of the revision that the set had before.
    pub current: u32,
    /// How many are of the newest revision.
    pub updated: u32,
    /// The revision that the set had before; once all pods have the newest one, that.
    pub current_revision: String,
    /// The newest revision.
    pub update_revision: String,
    /// Why no pod is made of the set.
    pub refusal: Option<String>,
}

fn finding(refusal: &str) -> Finding {
    Finding::holds(NOT_SUPPORTED, "NotSupported", refusal)
}

impl Status {
    /// As the set has it.
    pub(super) fn read(set: &Object) -> Status {
        let status = &set.data["status"];
        let count = |field: &str| status[field].as_u64().and_then(|it| u32::try_from(it).ok());
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let conditions = status::conditions_of(set);
        let refused = conditions.iter().find(|it| it["type"] == NOT_SUPPORTED);
        Status {
            observed_generation: status["observedGeneration"].as_i64().unwrap_or(-1),
            replicas: count("replicas").unwrap_or(0),
            ready: count("readyReplicas").unwrap_or(0),
            available: count("availableReplicas").unwrap_or(0),
            current: count("currentReplicas").unwrap_or(0),
            updated: count("updatedReplicas").unwrap_or(0),
            current_revision: text("currentRevision"),
            update_revision: text("updateRevision"),
            refusal: refused.map(|it| it["message"].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// As a patch of the set.
    pub(super) fn patch(&self, set: &Object, now: Timestamp) -> Value {
        let known = status::conditions_of(set);
        let conditions = match &self.refusal {
            Some(refusal) => status::with(&known, &finding(refusal), now),
            None => status::without(&known, NOT_SUPPORTED),
        };
        let mut change = json!({
            "observedGeneration": self.observed_generation,
            "replicas": self.replicas,
            "readyReplicas": self.ready, "availableReplicas": self.available,
            "currentReplicas": self.current, "updatedReplicas": self.updated,
            "currentRevision": self.current_revision, "updateRevision": self.update_revision,
        });
        if conditions != known {
            change["conditions"] = json!(conditions);
        }
        json!({"status": change})
    }
}
