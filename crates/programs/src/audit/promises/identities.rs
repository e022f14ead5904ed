//! What is never done to a cloud account.

use super::{Keeper, Promise, may_be_done, text};
use interlock_kernel::Record;
use serde_json::Value;
use std::collections::BTreeMap;

/// No two objects work on one resource.
pub(super) const ONE_WORKER: Promise = Promise {
    name: "OneWorker",
    sentence: "a resource of the cloud is changed for one Kubernetes object until that one is done with it",
    keeper: || Box::<Workers>::default(),
};

/// The object that a resource is changed for, by the resource.
#[derive(Default)]
struct Workers(BTreeMap<String, String>);

impl Keeper for Workers {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        let is_its = record.controller.starts_with("identities/");
        let Some(uid) = text(&record.facts, "/owner/uid").filter(|_| is_its) else { return Ok(()) };
        if record.decision.get("RemoveFinalizer").is_some() && may_be_done(record) {
            self.0.retain(|_, worker| worker != uid);
            return Ok(());
        }
        let call = record.decision.get("Call").filter(|_| may_be_done(record));
        let Some([at, call]) = call.and_then(Value::as_array).map(Vec::as_slice) else {
            return Ok(());
        };
        let name = call.as_str().or_else(|| call.as_object()?.keys().next().map(String::as_str));
        let name = name.unwrap_or_default();
        // A policy and a role may have one name: each kind of resource has a controller of its own.
        let resource = format!("{} {at}", record.controller);
        // To make what is there already does nothing.
        let before = self.0.get(&resource).filter(|before| *before != uid).cloned();
        match (name.strip_prefix("Create"), before) {
            (Some(_), Some(_)) => Ok(()),
            (_, None) => {
                self.0.insert(resource, uid.to_owned());
                Ok(())
            }
            (None, Some(before)) => {
                self.0.insert(resource.clone(), uid.to_owned());
                Err(format!("{name} on {resource} for {uid}; it is changed for {before}"))
            }
        }
    }
}
