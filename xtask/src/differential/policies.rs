//! The same ValidatingAdmissionPolicies, bindings, parameters and requests to both servers: do they give the same verdicts?
//!
//! Each case has a namespace of its own, and its binding is about that namespace alone, so that all cases are
//! brought at once. On kube-apiserver policies, bindings and parameters take effect with a delay. What is written of one
//! kind arrives there in order; so a last parameter, a last policy and a last binding are written, and when these refuse
//! a request, all that was written before is in effect.

mod corpus;
mod deeper;

use super::answer::{self, Answer, Difference};
use super::requests::Request;
use super::{Peer, TIMEOUT, is_meant};
use crate::program::eventually;
use crate::say;
use serde_json::{Value, json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const MARKER: &str = "policy-marker";

/// A policy in a namespace of its own, and requests there.
pub(super) struct Case {
    name: &'static str,
    /// The spec; what it does not say is that it is about all writes of config maps.
    policy: Value,
    /// Further fields of the binding's spec; it denies if it says nothing else.
    binding: Value,
    /// Objects that are there before the policy, by the path of their collection. `{namespace}` is filled in.
    objects: Vec<(&'static str, Value)>,
    asks: Vec<Asked>,
}

/// One request of a case. `{namespace}` is filled in.
pub(super) struct Asked {
    method: &'static str,
    path: &'static str,
    content: &'static str,
    body: Value,
    user: Option<&'static str>,
}

const MAPS: &str = "/api/v1/namespaces/{namespace}/configmaps";

impl Case {
    fn new(name: &'static str, policy: Value) -> Case {
        let (objects, asks) = (Vec::new(), Vec::new());
        Case { name, policy, binding: json!({}), objects, asks }
    }

    fn bound(mut self, binding: Value) -> Case {
        self.binding = binding;
        self
    }

    fn with(mut self, path: &'static str, object: Value) -> Case {
        self.objects.push((path, object));
        self
    }

    /// With a config map that is there before the policy.
    fn with_map(self, name: &str, data: Value) -> Case {
        self.with(MAPS, map(name, data))
    }

    fn ask(mut self, asked: Asked) -> Case {
        self.asks.push(asked);
        self
    }

    /// Asks for a new config map.
    fn ask_map(self, name: &str, data: Value) -> Case {
        self.ask(Asked::post(MAPS, map(name, data)))
    }

    fn namespace(&self) -> String {
        format!("policy-{}", self.name)
    }

    /// The policy as it is sent.
    fn policy(&self) -> Value {
        let mut spec =
            json!({"matchConstraints": {"resourceRules": [rule("", "v1", "configmaps")]}});
        for (field, value) in self.policy.as_object().into_iter().flatten() {
            spec[field.as_str()] = value.clone();
        }
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": self.name}, "spec": spec,
        })
    }

    /// The binding as it is sent: about the namespace of the case, whatever else it says.
    fn binding(&self) -> Value {
        let mut spec = json!({"policyName": self.name, "validationActions": ["Deny"]});
        for (field, value) in self.binding.as_object().into_iter().flatten() {
            spec[field.as_str()] = value.clone();
        }
        spec["matchResources"]["namespaceSelector"] = json!({"matchLabels": {"case": self.name}});
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": self.name},
            "spec": filled(&spec, &self.namespace()),
        })
    }
}

impl Asked {
    fn new(method: &'static str, path: &'static str, body: Value) -> Asked {
        Asked { method, path, content: "application/json", body, user: None }
    }

    fn post(path: &'static str, body: Value) -> Asked {
        Asked::new("POST", path, body)
    }

    fn merge(path: &'static str, body: Value) -> Asked {
        Asked { content: "application/merge-patch+json", ..Asked::new("PATCH", path, body) }
    }

    /// Asks as somebody else.
    fn by(mut self, user: &'static str) -> Asked {
        self.user = Some(user);
        self
    }

    /// As it is sent: dry, so that no request changes what the next one meets.
    fn request(&self, namespace: &str) -> Request {
        let path = self.path.replace("{namespace}", namespace);
        let body = filled(&self.body, namespace);
        let mut request = Request::new(self.method, &format!("{path}?dryRun=All"), body);
        request.content = self.content;
        request.user = self.user;
        request
    }
}

fn rule(group: &str, version: &str, resource: &str) -> Value {
    json!({
        "apiGroups": [group], "apiVersions": [version], "resources": [resource],
        "operations": ["CREATE", "UPDATE", "DELETE"],
    })
}

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// With the name of the namespace in all texts.
fn filled(value: &Value, namespace: &str) -> Value {
    match value {
        Value::String(text) => Value::from(text.replace("{namespace}", namespace)),
        Value::Array(items) => items.iter().map(|item| filled(item, namespace)).collect(),
        Value::Object(fields) => {
            let filled =
                fields.iter().map(|(name, field)| (name.clone(), filled(field, namespace)));
            Value::Object(filled.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// All cases.
fn cases() -> Vec<Case> {
    corpus::cases().into_iter().chain(deeper::cases()).collect()
}

/// Runs them all; false if a verdict differs and nothing explains it.
pub(super) fn run(peers: &mut [Peer; 2], explained: &[(String, String)]) -> anyhow::Result<bool> {
    let cases = cases();
    let [theirs, ours] = peers.each_mut().map(|peer| bring(peer, &cases));
    let written = theirs?.into_iter().zip(ours?);
    let (mut sent, mut refused, mut unexplained) = (0, 0, 0);
    for (case, (theirs, ours)) in cases.iter().zip(written) {
        if theirs.status >= 300 || ours.status >= 300 {
            unexplained += 1;
            say(&format!(
                "policy {}: not written\n    theirs: {theirs}\n    ours:   {ours}",
                case.name
            ));
            continue;
        }
        for asked in &case.asks {
            let request = asked.request(&case.namespace());
            let [theirs, ours] = peers.each_mut().map(|peer| peer.send(&request));
            let (theirs, ours) = (theirs?, ours?);
            sent += 1;
            refused += usize::from(theirs.status >= 400);
            let Some(difference) = answer::difference(&theirs, &ours) else { continue };
            let class = class(case.name, &difference);
            say(&class);
            match explained.iter().find(|(meant, _)| is_meant(meant, &class)) {
                Some((_, because)) => say(&format!("       explained: {because}")),
                None => {
                    unexplained += 1;
                    say(&format!("    {request}\n    theirs: {theirs}\n    ours:   {ours}"));
                }
            }
        }
    }
    say(&format!(
        "{} policies, {sent} requests, {refused} of them refused by kube-apiserver; {unexplained} verdicts differ \
         without an explanation",
        cases.len()
    ));
    // A corpus of which everything is let through would compare nothing.
    Ok(unexplained == 0 && refused > 0 && refused < sent)
}

/// How a difference is named in the list of those that are meant.
fn class(case: &str, difference: &Difference) -> String {
    format!("policy {case}: {difference}")
}

/// Brings all cases to a server, and waits until they are in effect. Gives what was answered to each policy.
fn bring(peer: &mut Peer, cases: &[Case]) -> anyhow::Result<Vec<Answer>> {
    for case in cases {
        let namespace = case.namespace();
        peer.begin(&namespace, json!({"case": case.name, "tier": "gold"}))?;
        for (path, object) in &case.objects {
            let path = path.replace("{namespace}", &namespace);
            peer.must(&Request::post(&path, filled(object, &namespace)))?;
        }
    }
    peer.begin(MARKER, json!({"case": "marker"}))?;
    let maps = MAPS.replace("{namespace}", MARKER);
    peer.must(&Request::post(&maps, map("last", json!({"say": "all is in effect"}))))?;
    let marker = marker();
    let mut written = Vec::new();
    for case in cases {
        written.push(peer.send(&Request::post(POLICIES, case.policy()))?);
    }
    peer.must(&Request::post(POLICIES, marker.policy()))?;
    for case in cases.iter().chain([&marker]) {
        peer.must(&Request::post(BINDINGS, case.binding()))?;
    }
    let probe = Request::post(&format!("{maps}?dryRun=All"), map("probe", json!({})));
    eventually("the policies are in effect", TIMEOUT, || {
        Ok(peer.send(&probe)?.to_string().contains("all is in effect"))
    })?;
    Ok(written)
}

/// The last policy: with its parameter it refuses everything in a namespace of its own.
fn marker() -> Case {
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "false", "messageExpression": "'' + params.data.say"}],
    });
    let reference = json!({"name": "last", "namespace": MARKER, "parameterNotFoundAction": "Deny"});
    Case::new("marker", spec).bound(json!({"paramRef": reference}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_a_name_of_its_own_and_is_asked() {
        let cases = cases();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases.len());
        assert!(cases.len() >= 20, "{}", cases.len());
        for case in &cases {
            assert!(!case.asks.is_empty(), "{}", case.name);
        }
    }

    #[test]
    fn a_case_is_bound_to_its_own_namespace() {
        for case in cases() {
            let labels =
                &case.binding()["spec"]["matchResources"]["namespaceSelector"]["matchLabels"];
            assert_eq!(labels["case"], case.name);
            assert!(!case.binding().to_string().contains("{namespace}"), "{}", case.name);
        }
    }
}
