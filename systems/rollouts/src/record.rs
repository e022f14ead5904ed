//! The record of a cluster as it is read, and the ways in which it changes. Each way is one write over the version that
//! was seen; what is decided elsewhere is done here, and nothing is decided.

mod change;
mod why;

pub(crate) use change::{Change, Numbered, Started, age, wait, whole_seconds};
pub use why::{Waits, Why};

use crate::kinds::CLUSTER_ROLLOUT;
use interlock_api::rollouts::{ClusterRolloutSpec, ClusterRolloutStatus, Requested, UpdatePhase};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::{Object, Place, Write, read_part};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The most entries of a record: the schema has no room for more.
pub const MOST_ENTRIES: usize = 128;
/// The most entries that may wait for their mirror before requests are refused.
pub const MOST_WAITING: usize = 100;
/// The most digests that are remembered as bad.
pub const MOST_BAD: usize = 20;
/// The most digests that wait for their revisions to be deleted.
pub const MOST_UNNAMED: usize = 256;

/// A record, and the object that it was read from: the version that every write of it rests on.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) object: Object,
    pub(crate) spec: ClusterRolloutSpec,
    pub(crate) status: ClusterRolloutStatus,
}

impl Record {
    /// Reads a record; the error says in words what is wrong with it. A status that cannot be read is not taken for an
    /// empty one: its tokens would be used again.
    pub(crate) fn read(object: &Object) -> Result<Record, String> {
        let spec: ClusterRolloutSpec =
            read_part(object, "spec")?.ok_or_else(|| "spec is missing".to_owned())?;
        let status: Option<ClusterRolloutStatus> = read_part(object, "status")?;
        Ok(Record { object: object.clone(), spec, status: status.unwrap_or_default() })
    }

    /// The request that waits, if one does.
    pub(crate) fn queued(&self) -> Option<&Requested> {
        queued(&self.status)
    }

    /// A write of its whole status, with what is found of it.
    pub(crate) fn write(
        &self,
        mut next: ClusterRolloutStatus,
        found: &[Finding],
        now: Timestamp,
    ) -> Write {
        for finding in found.iter().filter(|finding| !finding.is_in(&self.status.conditions)) {
            let generation = self.object.metadata.generation;
            next.conditions = conditions::with(&next.conditions, finding, now, generation);
        }
        let change = json!({ "status": whole(&next) });
        Write::patch_status(Place::HUB, &CLUSTER_ROLLOUT, &self.object, change)
    }
}

/// The request of a record that waits, if one does.
pub(crate) fn queued(status: &ClusterRolloutStatus) -> Option<&Requested> {
    let mut waiting = status.requests.iter().filter(|it| it.phase == UpdatePhase::Queued);
    waiting.next_back()
}

/// A status as a merge patch that says of every field what it is: what is not there is taken out.
fn whole(status: &ClusterRolloutStatus) -> Value {
    let mut patch = json!({
        "requests": null, "preflight": null, "active": null, "lastGood": null, "mayExist": null, "bad": null,
        "unnamed": null, "isDegraded": null, "conditions": null,
    });
    // A status is a struct of plain fields, which always has a form in JSON.
    let Ok(Value::Object(fields)) = serde_json::to_value(status) else { return Value::Null };
    for (key, value) in fields {
        patch[key] = value;
    }
    if status.target.digest.is_none() {
        patch["target"]["digest"] = Value::Null;
    }
    if let Some(active) = &status.active {
        // Of another request before it, nothing may stay.
        patch["active"]["phaseSince"] = json!(active.phase_since);
        patch["active"]["startedAt"] = json!(active.started_at);
    }
    patch
}
