//! The status of a DaemonSet: read, and written.

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
    /// How many nodes are to have a pod.
    pub desired: u32,
    /// How many of them have one.
    pub current: u32,
    /// How many nodes have one and are not to.
    pub misscheduled: u32,
    /// How many have one that is ready.
    pub ready: u32,
    /// How many have one that has been ready for long enough.
    pub available: u32,
    /// How many have one of the present template.
    pub updated: u32,
    /// Why no pod is made of the set.
    pub refusal: Option<String>,
}

impl Status {
    /// As the set has it.
    pub(super) fn read(set: &Object) -> Status {
        let status = &set.data["status"];
        let count = |field: &str| {
            let count = status[field].as_u64().and_then(|it| u32::try_from(it).ok());
            count.unwrap_or(0)
        };
        let conditions = status::conditions_of(set);
        let refused = conditions.iter().find(|it| it["type"] == NOT_SUPPORTED);
        Status {
            observed_generation: status["observedGeneration"].as_i64().unwrap_or(-1),
            desired: count("desiredNumberScheduled"),
            current: count("currentNumberScheduled"),
            misscheduled: count("numberMisscheduled"),
            ready: count("numberReady"),
            available: count("numberAvailable"),
            updated: count("updatedNumberScheduled"),
            refusal: refused.map(|it| it["message"].as_str().unwrap_or_default().to_owned()),
        }
    }

    /// As a patch of the set.
    pub(super) fn patch(&self, set: &Object, now: Timestamp) -> Value {
        let known = status::conditions_of(set);
        let conditions = match &self.refusal {
            Some(refusal) => {
                let finding = Finding::holds(NOT_SUPPORTED, "NotSupported", refusal);
                status::with(&known, &finding, now)
            }
            None => status::without(&known, NOT_SUPPORTED),
        };
        let mut change = json!({
            "observedGeneration": self.observed_generation,
            "desiredNumberScheduled": self.desired, "currentNumberScheduled": self.current,
            "numberMisscheduled": self.misscheduled, "numberReady": self.ready,
            "numberAvailable": self.available, "updatedNumberScheduled": self.updated,
            "numberUnavailable": self.desired.saturating_sub(self.available),
        });
        if conditions != known {
            change["conditions"] = json!(conditions);
        }
        json!({"status": change})
    }
}
