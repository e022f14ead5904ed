//! The policy of the fence, as [`crate::fence::policy`] says it, on the objects of a server.

use super::{CONFIG_MAP, FENCE_NAME, SYSTEM_NAMESPACE, lag};
use crate::applier::{ANNOTATION_FORCE, ANNOTATION_PRUNE};
use interlock_api::rollouts::{ANNOTATION_ID, ANNOTATION_TOKEN, LABEL_ROLLOUT};
use interlock_kernel::metadata::{annotation, label};
use interlock_kernel::{Name, Write};
use interlock_world::Objects;
use serde_json::Value;

/// What the policy checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checks {
    /// That a write is not older than the fence.
    pub(super) tokens: bool,
    /// That what is deleted was marked.
    pub(super) marks: bool,
    /// That what is changed is ours.
    pub(super) owners: bool,
}

fn number(value: &Value) -> i64 {
    value.as_str().and_then(|it| it.parse().ok()).unwrap_or(-1)
}

impl Checks {
    pub(super) const ALL: Checks = Checks { tokens: true, marks: true, owners: true };

    /// Whether a write of the applier is admitted, or was when the API server took it.
    pub(super) fn admits(self, server: Objects<'_>, write: &Write) -> bool {
        let fence = Name::within(SYSTEM_NAMESPACE, FENCE_NAME);
        match lag::judged_by(server) {
            Some(mut tokens) => tokens.any(|raised| self.admits_under(raised, server, write)),
            None => {
                let raised = number(&server.part(&CONFIG_MAP, &fence, "data")["token"]);
                self.admits_under(raised, server, write)
            }
        }
    }

    /// Whether it is admitted by a policy whose parameter has this token.
    fn admits_under(self, raised: i64, server: Objects<'_>, write: &Write) -> bool {
        let fence = Name::within(SYSTEM_NAMESPACE, FENCE_NAME);
        let address = write.address();
        if address.kind == CONFIG_MAP && address.name == fence {
            let Write::Patch { change, .. } = write else { return false };
            let token = &change["data"]["token"];
            return token.is_null() || number(token) >= raised;
        }
        let there = server.get(&address.kind, &address.name);
        let noted = |key: &str| {
            let noted = there.as_ref().and_then(|there| annotation(there, key));
            noted.and_then(|it| it.parse::<i64>().ok()).unwrap_or(-1)
        };
        match write {
            Write::Delete { .. } => !self.marks || noted(ANNOTATION_PRUNE) == raised,
            // The rooms patch nothing but the mark.
            Write::Patch { change, .. } => {
                let annotations = &change["metadata"]["annotations"];
                let mark = number(&annotations[ANNOTATION_PRUNE]);
                !self.tokens || mark == raised
            }
            Write::Create { object, .. } | Write::Apply { object, .. } => {
                let annotations = &object["metadata"]["annotations"];
                let is_new = !self.tokens || number(&annotations[ANNOTATION_TOKEN]) >= raised;
                let is_ours = there.as_ref().is_none_or(|there| {
                    label(there, LABEL_ROLLOUT).is_some()
                        && annotation(there, ANNOTATION_ID) == annotations[ANNOTATION_ID].as_str()
                });
                let is_forced = annotations[ANNOTATION_FORCE].is_string();
                is_new && (!self.owners || is_ours || is_forced)
            }
        }
    }
}
