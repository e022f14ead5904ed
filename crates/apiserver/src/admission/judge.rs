//! Judges a write by the policies of its cluster.

use super::evaluate::{self, Values, Verdict};
use super::is_exempt;
use super::params::{self, NoParams, Params};
use super::request::{Change, Request};
use crate::admission_registration::policy::{Binding, Bound, Policy, Reason};
use crate::call::{Admitted, Call};
use crate::object;
use crate::resource::Resource;
use crate::schema::cel::{Val, Who};
use crate::status::{Cause, Status};
use crate::storage;
use interlock_store::Guard;
use serde_json::{Value, json};
use std::sync::Arc;

/// Whether a write is admitted, and what must still be so when it is committed.
pub(crate) async fn judge(call: &Call, change: &Change<'_>) -> Result<Vec<Guard>, Status> {
    if is_exempt(call) {
        return Ok(Vec::new());
    }
    let set = call.cluster.policies.get(&call.cluster.id, call.server.storage()).await?;
    if set.policies.is_empty() {
        return Ok(Vec::new());
    }
    let request = Request::new(call, change);
    let mut judging = Judging::new(&request).await?;
    for bound in &set.policies {
        judging.by_policy(bound).await?;
    }
    judging.end()
}

/// A write while it is judged.
struct Judging<'r> {
    request: &'r Request<'r>,
    namespace: Option<Value>,
    namespace_guard: Option<Guard>,
    guards: Vec<Guard>,
    said: Admitted,
    denials: Vec<Denial>,
}

/// A policy that refuses the write.
struct Denial {
    policy: String,
    binding: Option<String>,
    message: String,
    reason: Reason,
}

/// A policy as it applies to the write.
struct Applied<'p> {
    policy: &'p Policy,
    /// The resource as which the write matches.
    matched: Arc<Resource>,
    params: Option<Arc<Resource>>,
}

impl<'r> Judging<'r> {
    async fn new(request: &'r Request<'r>) -> Result<Self, Status> {
        let mut judging = Judging {
            request,
            namespace: None,
            namespace_guard: None,
            guards: Vec::new(),
            said: Admitted::default(),
            denials: Vec::new(),
        };
        if !request.namespace.is_empty() {
            let key = request.namespace_key();
            let found = request.call.server.storage().get(&key).await?;
            let modified = found.as_ref().map(|versioned| versioned.modified);
            judging.namespace_guard = Some(storage::guard(&key, modified));
            judging.namespace = found.as_ref().map(object::decode);
        }
        Ok(judging)
    }

    async fn by_policy(&mut self, bound: &Bound) -> Result<(), Status> {
        let policy = &*bound.policy;
        let matched = match policy.matching.matched(self.request, self.namespace.as_ref()) {
            Ok(None) => return Ok(()),
            Ok(Some(matched)) => matched,
            Err(why) => {
                self.misconfigured(policy, None, &why);
                return Ok(());
            }
        };
        let params = match &policy.param_kind {
            None => None,
            Some(kind) => match params::resource(self.request, kind) {
                Ok(resource) => Some(resource),
                Err(why) => {
                    self.misconfigured(policy, None, &why);
                    return Ok(());
                }
            },
        };
        self.guards.extend(self.namespace_guard.clone());
        let applied = Applied { policy, matched, params };
        let mut annotations: Vec<(String, Vec<String>)> = Vec::new();
        for binding in &bound.bindings {
            for (key, text) in self.by_binding(&applied, binding).await? {
                match annotations.iter_mut().find(|(known, _)| *known == key) {
                    None => annotations.push((key, vec![text])),
                    Some((_, texts)) if !texts.contains(&text) => texts.push(text),
                    Some(_) => {}
                }
            }
        }
        for (key, texts) in annotations {
            self.annotate(format!("{}/{key}", policy.name), texts.join(", "));
        }
        Ok(())
    }

    /// Evaluates a policy for one of its bindings. Gives what the policy wants to be in the audit log.
    async fn by_binding(
        &mut self,
        applied: &Applied<'_>,
        binding: &Binding,
    ) -> Result<Vec<(String, String)>, Status> {
        if let Some(matching) = &binding.matching {
            match matching.matched(self.request, self.namespace.as_ref()) {
                Ok(None) => return Ok(Vec::new()),
                Ok(Some(_)) => {}
                Err(why) => {
                    self.misconfigured(applied.policy, Some(binding), &why);
                    return Ok(Vec::new());
                }
            }
        }
        let params = match (&applied.params, &binding.param_ref) {
            (Some(resource), Some(wanted)) => {
                match params::read(self.request, resource, wanted).await {
                    Ok(params) => params,
                    Err(NoParams::Refused(status)) => return Err(status),
                    Err(NoParams::Misconfigured(why)) => {
                        self.misconfigured(applied.policy, Some(binding), &why);
                        return Ok(Vec::new());
                    }
                }
            }
            _ => Params { objects: vec![Value::Null], guards: Vec::new() },
        };
        self.guards.extend(params.guards);
        let authority = self.authority(applied.policy).await?;
        let mut annotations = Vec::new();
        for param in &params.objects {
            let verdict = self.evaluate(applied, param, authority.as_ref());
            annotations.extend(self.take(verdict, applied.policy, binding));
        }
        Ok(annotations)
    }

    /// What `authorizer` stands for, if a policy asks it.
    async fn authority(&self, policy: &Policy) -> Result<Option<Arc<Who>>, Status> {
        if !policy.uses("authorizer") && !policy.uses("authorizer.requestResource") {
            return Ok(None);
        }
        self.request.who().await.map(Some)
    }

    fn evaluate(
        &self,
        applied: &Applied<'_>,
        param: &Value,
        authority: Option<&Arc<Who>>,
    ) -> Verdict {
        let request = self.request.value(&applied.matched);
        let (object, old) = self.request.as_version(&applied.matched);
        let namespace = match request.get("kind").map(|kind| &kind["kind"]) {
            Some(kind) if kind == "Namespace" => None,
            _ => self.namespace.as_ref(),
        };
        let json = |value| Val::from_json(value, None);
        let mut values: Values<'_> = vec![
            ("object", json(&object)),
            ("oldObject", json(&old)),
            ("params", json(param)),
            ("request", json(&request)),
            ("namespaceObject", namespace.map_or(Val::Null, json)),
        ];
        if let Some(who) = authority {
            values.extend(self.request.authorities(who));
        }
        evaluate::evaluate(applied.policy, &values)
    }

    /// Does with a verdict what the binding says.
    fn take(
        &mut self,
        verdict: Verdict,
        policy: &Policy,
        binding: &Binding,
    ) -> Vec<(String, String)> {
        for failure in verdict.failures {
            for action in &binding.actions {
                match action.as_str() {
                    "Deny" => self.denials.push(Denial {
                        policy: policy.name.clone(),
                        binding: Some(binding.name.clone()),
                        message: failure.message.clone(),
                        reason: failure.reason,
                    }),
                    "Warn" => self.said.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, failure.message
                    )),
                    "Audit" => {
                        let value = json!([{
                            "message": failure.message, "policy": policy.name,
                            "binding": binding.name, "expressionIndex": failure.index,
                            "validationActions": binding.actions,
                        }]);
                        let key = "validation.policy.admission.k8s.io/validation_failure";
                        self.annotate(key.to_owned(), value.to_string());
                    }
                    _ => {}
                }
            }
        }
        for message in verdict.broken_annotations {
            self.deny(policy, Some(binding), message);
        }
        verdict.annotations
    }

    fn annotate(&mut self, key: String, text: String) {
        self.said.annotations.entry(key).or_insert(super::cut(text));
    }

    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        if policy.ignores_failures {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.deny(policy, binding, format!("failed to configure {what}: {why}"));
    }

    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, message: String) {
        self.denials.push(Denial {
            policy: policy.name.clone(),
            binding: binding.map(|binding| binding.name.clone()),
            message,
            reason: Reason::INVALID,
        });
    }

    /// The first refusal, or what must still be so when the write is committed.
    fn end(mut self) -> Result<Vec<Guard>, Status> {
        let call = self.request.call;
        let place = format!("{}/{}", self.request.namespace, self.request.name);
        call.notes.admitted(&place, std::mem::take(&mut self.said));
        if let Some(denial) = self.denials.first() {
            return Err(denial.status(self.request));
        }
        let mut guards: Vec<Guard> = Vec::new();
        for guard in self.guards {
            if !guards.contains(&guard) {
                guards.push(guard);
            }
        }
        Ok(guards)
    }
}

impl Denial {
    fn status(&self, request: &Request<'_>) -> Status {
        let by = match &self.binding {
            Some(binding) => format!("'{}' with binding '{binding}'", self.policy),
            None => format!("'{}'", self.policy),
        };
        let message = format!("ValidatingAdmissionPolicy {by} denied request: {}", self.message);
        let resource = &request.call.resource;
        let name = if request.name.is_empty() {
            let base = object::meta_text(&request.object, "generateName");
            if base.is_empty() { "Unknown" } else { base }
        } else {
            &request.name
        };
        let mut status = Status::forbidden(&resource.group, &resource.plural, name, &message);
        status.reason = self.reason.word;
        status.code = self.reason.code;
        status.details.causes.push(Cause { reason: "", message, field: String::new() });
        status
    }
}
