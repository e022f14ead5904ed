//! Deletion: marks, finalizers, grace periods, and who goes along.

use super::eviction;
use super::special;
use super::write::{Outcome, Written, may_go};
use crate::call::{Call, Live};
use crate::clusters::HUB_GROUP;
use crate::object;
use crate::request::DeleteOptions;
use crate::status::Status;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// The finalizer of an owner that waits for what it owns.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an owner whose dependents are to be let go.
pub(crate) const ORPHAN: &str = "orphan";

impl Call {
    /// Takes in the options of a deletion.
    pub(super) fn take_delete_options(&mut self, options: &DeleteOptions) {
        self.dry_run = options.dry_run;
        let is_job = (&*self.resource.group, &*self.resource.plural) == ("batch", "jobs");
        if is_job && options.propagation_policy.is_none() && options.orphan_dependents.is_none() {
            self.warn(
                "child pods are preserved by default when jobs are deleted; set \
                 propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
                 suppress this warning",
            );
        }
        let mut given = json!({});
        if let Some(seconds) = options.grace_period_seconds {
            given["gracePeriodSeconds"] = json!(seconds);
        }
        if let Some(policy) = &options.propagation_policy {
            given["propagationPolicy"] = json!(policy);
        }
        if let Some(uid) = &options.uid {
            given["preconditions"]["uid"] = json!(uid);
        }
        if let Some(version) = &options.resource_version {
            given["preconditions"]["resourceVersion"] = json!(version);
        }
        self.options = given;
    }

    /// Deletes the object that the call names.
    pub(crate) async fn delete_with(&self, options: &DeleteOptions) -> Result<Written, Status> {
        self.delete(|live| {
            self.check_preconditions(live, options)?;
            let (mut object, goes) = self.marked(live, options);
            if self.is_eviction() && !goes {
                eviction::say_why(&mut object, &self.now_text());
            }
            Ok((object, goes))
        })
        .await
    }

    fn check_preconditions(&self, live: &Live, options: &DeleteOptions) -> Result<(), Status> {
        let differs = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().filter(|wanted| *wanted != found).map(str::to_owned)
        };
        if let Some(wanted) = differs(&options.uid, object::uid(&live.object)) {
            return Err(self.precondition(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({}). The \
                 object might have been deleted and then recreated",
                object::uid(&live.object)
            )));
        }
        let version = object::meta_text(&live.object, "resourceVersion");
        if let Some(wanted) = differs(&options.resource_version, version) {
            return Err(self.precondition(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the \
                 ResourceVersion in record ({version}). The object might have been modified"
            )));
        }
        Ok(())
    }

    /// 409 that names the kind, as upstream does here.
    fn precondition(&self, why: String) -> Status {
        Status::conflict(&self.resource.group, &self.resource.kind, &self.name, why)
    }

    /// The object with its deletion mark, and whether nothing holds it.
    fn marked(&self, live: &Live, options: &DeleteOptions) -> (Value, bool) {
        let mut object = live.object.clone();
        let was_deleting = object::is_deleting(&object);
        set_propagation(&mut object, options, self.orphans_by_default());
        if !was_deleting {
            special::prepare_delete(self, &mut object);
        }
        let grace = self.grace_seconds(&object, options);
        let metadata = object::metadata_mut(&mut object);
        if was_deleting {
            // A second request may only shorten the wait.
            let held = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64);
            if grace < held.unwrap_or(0) {
                metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
                metadata.insert("deletionTimestamp".to_owned(), json!(self.after(grace)));
            }
        } else {
            metadata.insert("deletionTimestamp".to_owned(), json!(self.after(grace)));
            metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
            if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
                metadata.insert("generation".to_owned(), json!(generation + 1));
            }
        }
        let has_phase = matches!(
            (&*self.resource.group, &*self.resource.plural),
            ("", "namespaces") | (HUB_GROUP, "logicalclusters")
        );
        if has_phase {
            object["status"]["phase"] = json!("Terminating");
        }
        if may_go(&object) {
            // Gone at once: the mark was never seen by anybody.
            return (live.object.clone(), true);
        }
        (object, false)
    }

    /// Only a pod that runs somewhere is given time: somebody there has to stop it.
    fn grace_seconds(&self, object: &Value, options: &DeleteOptions) -> i64 {
        let is_pod = &*self.resource.plural == "pods" && self.resource.group.is_empty();
        let runs = object::at(object, &["spec", "nodeName"])
            .and_then(Value::as_str)
            .is_some_and(|node| !node.is_empty());
        let ended = matches!(
            object::at(object, &["status", "phase"]).and_then(Value::as_str),
            Some("Succeeded" | "Failed")
        );
        if !is_pod || !runs || ended {
            return 0;
        }
        let own = object::at(object, &["spec", "terminationGracePeriodSeconds"]);
        let own = own.and_then(Value::as_i64).unwrap_or(30);
        let seconds = options.grace_period_seconds.unwrap_or(own);
        // As upstream: whoever gives less than no time gives one second.
        if seconds < 0 { 1 } else { seconds }
    }

    /// Whether dependents are let go if nobody says what is to happen to them: these kinds are older than the garbage
    /// collector.
    fn orphans_by_default(&self) -> bool {
        matches!(
            (&*self.resource.group, &*self.resource.plural),
            ("batch", "jobs") | ("", "replicationcontrollers")
        )
    }

    fn after(&self, seconds: i64) -> String {
        let time = self.now.checked_add(SignedDuration::from_secs(seconds));
        crate::call::time_text(time.unwrap_or(Timestamp::MAX))
    }

    /// The answer to a deletion: the object while something holds it, else that it is gone.
    pub(crate) fn deletion_answer(&self, written: &Written) -> Option<Value> {
        if written.outcome != Outcome::Removed {
            return None;
        }
        let mut details = json!({
            "name": object::name(&written.object),
            "kind": &*self.resource.plural,
            "uid": object::uid(&written.object),
        });
        if !self.resource.group.is_empty() {
            details["group"] = json!(&*self.resource.group);
        }
        Some(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": details,
        }))
    }
}

/// Puts on and takes off the finalizers that the garbage collector works by.
fn set_propagation(object: &mut Value, options: &DeleteOptions, orphans_by_default: bool) {
    let wanted = match (options.propagation_policy.as_deref(), options.orphan_dependents) {
        (Some("Foreground"), _) => Some(FOREGROUND),
        (Some("Orphan"), _) | (None, Some(true)) => Some(ORPHAN),
        (Some(_), _) | (None, Some(false)) => None,
        // Nothing was said: what the object asks for itself stands.
        (None, None)
            if orphans_by_default
                && !object::finalizers(object).any(|name| matches!(name, FOREGROUND | ORPHAN)) =>
        {
            Some(ORPHAN)
        }
        (None, None) => return,
    };
    let mut finalizers: Vec<String> = object::finalizers(object)
        .filter(|name| *name != FOREGROUND && *name != ORPHAN)
        .map(str::to_owned)
        .collect();
    finalizers.extend(wanted.map(str::to_owned));
    let metadata = object::metadata_mut(object);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
}
