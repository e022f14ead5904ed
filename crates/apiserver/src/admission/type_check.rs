//! The status of a policy: what the schemas of the kinds that it is about say about its expressions.

use crate::admission_registration::expressions::{Environment, Gives};
use crate::behaviour::read::{at, is_set, list, text};
use crate::call::{Call, Endpoint};
use crate::object;
use crate::resource::Resource;
use crate::schema::cel::Ty;
use serde_json::{Value, json};
use std::sync::Arc;

/// Expressions are checked for so many kinds at most.
const MOST_KINDS: usize = 10;
/// The condition that says how exactly this server enforces the policy.
const EXACT: &str = "interlock.dev/Exact";

/// Fills in the status of a policy whose spec is new.
pub(crate) fn fill_status(call: &Call, policy: &mut Value) {
    if &*call.resource.kind != "ValidatingAdmissionPolicy" || call.endpoint != Endpoint::Main {
        return;
    }
    let generation = object::metadata(policy).get("generation").cloned().unwrap_or(json!(1));
    if at(policy, "status.observedGeneration") == &generation || !at(policy, "spec").is_object() {
        return;
    }
    let warnings = warnings(call, at(policy, "spec"));
    let checked =
        if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
    let mut conditions = list(policy, "status.conditions").to_vec();
    let held = conditions.iter().position(|condition| condition["type"] == EXACT);
    let since = match held.map(|place| conditions.remove(place)) {
        Some(condition) if condition["status"] == "True" => condition["lastTransitionTime"].clone(),
        _ => json!(call.now_text()),
    };
    conditions.push(json!({
        "type": EXACT, "status": "True", "reason": "CommittedUnderGuard",
        "message": "a write is committed only if the policy, its bindings and its parameters are \
                    still those by which it was judged",
        "lastTransitionTime": since, "observedGeneration": generation,
    }));
    if !at(policy, "status").is_object() {
        policy["status"] = json!({});
    }
    policy["status"]["observedGeneration"] = generation;
    policy["status"]["typeChecking"] = checked;
    policy["status"]["conditions"] = json!(conditions);
}

fn warnings(call: &Call, spec: &Value) -> Vec<Value> {
    let params = is_set(spec, "paramKind").then(|| {
        let (version, kind) = (text(spec, "paramKind.apiVersion"), text(spec, "paramKind.kind"));
        call.server.clusters().find_kind(&call.cluster, version, kind)
    });
    let kinds = kinds_of(call, spec);
    let mut environments = Vec::new();
    for kind in &kinds {
        let params = params.as_ref().map(|params| {
            params.as_ref().map_or(Ty::Dyn, |params| Ty::of_whole(params.schema.shape()))
        });
        let mut environment = Environment::typed(Ty::of_whole(kind.schema.shape()), params);
        if !list(spec, "variables").is_empty() {
            environment = environment.with_variables();
        }
        for variable in list(spec, "variables") {
            // What is wrong with a variable shows where it is used.
            let _ = environment.variable(text(variable, "name"), text(variable, "expression"));
        }
        environments.push((kind, environment));
    }
    let mut warnings = Vec::new();
    for (index, validation) in list(spec, "validations").iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let source = text(validation, field);
            if source.is_empty() {
                continue;
            }
            let problems = environments.iter().filter_map(|(kind, environment)| {
                let why = environment.compile(source, Gives::Anything).err()?;
                let why = why.strip_prefix("compilation failed: ").unwrap_or(&why).to_owned();
                Some(format!("{}, Kind={}: {why}\n", kind.api_version(), kind.kind))
            });
            let problems: Vec<String> = problems.collect();
            if !problems.is_empty() {
                warnings.push(json!({
                    "fieldRef": format!("spec.validations[{index}].{field}"),
                    "warning": problems.join("\n"),
                }));
            }
        }
    }
    warnings
}

/// The kinds that a policy names in its rules, if it names any.
fn kinds_of(call: &Call, spec: &Value) -> Vec<Arc<Resource>> {
    let mut kinds: Vec<Arc<Resource>> = Vec::new();
    for rule in list(spec, "matchConstraints.resourceRules") {
        let words = |field: &str| {
            let mut words: Vec<&str> = list(rule, field).iter().filter_map(Value::as_str).collect();
            words.sort_unstable();
            words
        };
        let (groups, versions) = (words("apiGroups"), words("apiVersions"));
        if groups.iter().chain(&versions).any(|word| word.contains('*')) {
            continue;
        }
        for group in &groups {
            for version in &versions {
                for plural in words("resources").iter().filter(|word| !word.contains(['*', '/'])) {
                    let found = call.server.clusters().find(&call.cluster, group, version, plural);
                    let is_new =
                        |found: &Arc<Resource>| !kinds.iter().any(|kind| Arc::ptr_eq(kind, found));
                    kinds.extend(found.filter(is_new));
                    if kinds.len() == MOST_KINDS {
                        return kinds;
                    }
                }
            }
        }
    }
    kinds.sort_by_key(|kind| (kind.group.clone(), kind.version.clone(), kind.kind.clone()));
    kinds
}
