//! How the kinds of small groups are shown: leases, budgets, priorities, certificates, admission.

use super::text_column;
use super::{AGE, Cells, Heading, NAME, Printer, age, boolean_column, integer_column, name, or};
use crate::age as ages;
use crate::behaviour::read::{at, integer, is_set, is_true, list, number, text};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) fn printer(group: &str, kind: &str) -> Option<Printer> {
    let (headings, cells): (&'static [Heading], Cells) = match (group, kind) {
        ("coordination.k8s.io", "Lease") => (&LEASE, lease),
        ("coordination.k8s.io", "LeaseCandidate") => (&CANDIDATE, candidate),
        ("policy", "PodDisruptionBudget") => (&BUDGET, budget),
        ("scheduling.k8s.io", "PriorityClass") => (&PRIORITY, priority),
        ("node.k8s.io", "RuntimeClass") => (&RUNTIME, runtime),
        ("certificates.k8s.io", "CertificateSigningRequest") => (&REQUEST, request),
        ("admissionregistration.k8s.io", kind) => return admission(kind),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => (&FLOW, flow),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => (&LEVEL, level),
        _ => return None,
    };
    Some(Printer { headings, cells })
}

fn admission(kind: &str) -> Option<Printer> {
    let (headings, cells): (&'static [Heading], Cells) = match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => (&WEBHOOKS, webhooks),
        "ValidatingAdmissionPolicy" => (&VALIDATING, validating),
        "MutatingAdmissionPolicy" => (&MUTATING, mutating),
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            (&BINDING, binding)
        }
        _ => return None,
    };
    Some(Printer { headings, cells })
}

static LEASE: [Heading; 3] = [NAME, text_column("Holder", ".spec.holderIdentity"), AGE];

fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "spec.holderIdentity")), age(object, now)]
}

static CANDIDATE: [Heading; 5] = [
    NAME,
    text_column("LeaseName", ".spec.leaseName"),
    text_column("BinaryVersion", ""),
    text_column("EmulationVersion", ""),
    AGE,
];

fn candidate(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        json!(text(object, "spec.leaseName")),
        json!(text(object, "spec.binaryVersion")),
        json!(text(object, "spec.emulationVersion")),
        age(object, now),
    ]
}

static BUDGET: [Heading; 5] = [
    NAME,
    text_column("Min Available", ".spec.minAvailable"),
    text_column("Max Unavailable", ".spec.maxUnavailable"),
    integer_column("Allowed Disruptions", ".status.disruptionsAllowed"),
    AGE,
];

fn budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = |path: &str| match at(object, path) {
        Value::Null => json!("N/A"),
        Value::String(percent) => json!(percent),
        other => json!(other.to_string()),
    };
    vec![
        name(object),
        bound("spec.minAvailable"),
        bound("spec.maxUnavailable"),
        json!(number(object, "status.disruptionsAllowed")),
        age(object, now),
    ]
}

static PRIORITY: [Heading; 5] = [
    NAME,
    integer_column("Value", ".value"),
    boolean_column("Global-Default", ".globalDefault"),
    AGE,
    text_column("PreemptionPolicy", ".preemptionPolicy"),
];

fn priority(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        json!(number(object, "value")),
        json!(is_true(object, "globalDefault")),
        age(object, now),
        json!(text(object, "preemptionPolicy")),
    ]
}

static RUNTIME: [Heading; 3] = [NAME, text_column("Handler", ".handler"), AGE];

fn runtime(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(text(object, "handler")), age(object, now)]
}

static REQUEST: [Heading; 6] = [
    NAME,
    AGE,
    text_column("SignerName", ".spec.signerName"),
    text_column("Requestor", ".spec.request"),
    text_column("RequestedDuration", ".spec.expirationSeconds"),
    text_column("Condition", ".status.conditions"),
];

fn request(object: &Value, now: Timestamp) -> Vec<Value> {
    let has = |condition: &str| {
        list(object, "status.conditions").iter().any(|one| text(one, "type") == condition)
    };
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied".to_owned(),
        (false, true) => "Approved".to_owned(),
        (false, false) => "Pending".to_owned(),
    };
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !text(object, "status.certificate").is_empty() {
        state.push_str(",Issued");
    }
    let duration = integer(object, "spec.expirationSeconds")
        .map_or_else(|| "<none>".to_owned(), ages::human_seconds);
    vec![
        name(object),
        age(object, now),
        json!(or(text(object, "spec.signerName"), "<none>")),
        json!(text(object, "spec.username")),
        json!(duration),
        json!(state),
    ]
}

static WEBHOOKS: [Heading; 3] =
    [NAME, integer_column("Webhooks", "How many webhooks are registered here."), AGE];

fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(list(object, "webhooks").len()), age(object, now)]
}

static VALIDATING: [Heading; 4] = [
    NAME,
    integer_column("Validations", "How many rules the policy has."),
    text_column("ParamKind", ".spec.paramKind"),
    AGE,
];

fn validating(object: &Value, now: Timestamp) -> Vec<Value> {
    policy(object, list(object, "spec.validations").len(), now)
}

static MUTATING: [Heading; 4] = [
    NAME,
    integer_column("Mutations", "How many mutations the policy makes."),
    text_column("ParamKind", ".spec.paramKind"),
    AGE,
];

fn mutating(object: &Value, now: Timestamp) -> Vec<Value> {
    policy(object, list(object, "spec.mutations").len(), now)
}

fn policy(object: &Value, rules: usize, now: Timestamp) -> Vec<Value> {
    let kind = at(object, "spec.paramKind");
    let shown = if kind.is_null() {
        "<unset>".to_owned()
    } else {
        format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind"))
    };
    vec![name(object), json!(rules), json!(shown), age(object, now)]
}

static BINDING: [Heading; 4] = [
    NAME,
    text_column("PolicyName", ".spec.policyName"),
    text_column("ParamRef", ".spec.paramRef"),
    AGE,
];

fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let namespace = or(text(object, "spec.paramRef.namespace"), "*");
    let shown = match text(object, "spec.paramRef.name") {
        "" if is_set(object, "spec.paramRef.selector") => {
            at(object, "spec.paramRef.selector").to_string()
        }
        "" => "<unset>".to_owned(),
        parameter => format!("{namespace}/{parameter}"),
    };
    vec![name(object), json!(text(object, "spec.policyName")), json!(shown), age(object, now)]
}

static FLOW: [Heading; 6] = [
    NAME,
    text_column("PriorityLevel", ".spec.priorityLevelConfiguration.name"),
    text_column("MatchingPrecedence", ".spec.matchingPrecedence"),
    text_column("DistinguisherMethod", ".spec.distinguisherMethod"),
    AGE,
    text_column("MissingPL", "Whether the priority level that it names is missing."),
];

fn flow(object: &Value, now: Timestamp) -> Vec<Value> {
    let dangling =
        list(object, "status.conditions").iter().find(|one| text(one, "type") == "Dangling");
    let method = at(object, "spec.distinguisherMethod");
    vec![
        name(object),
        json!(text(object, "spec.priorityLevelConfiguration.name")),
        json!(number(object, "spec.matchingPrecedence")),
        json!(if method.is_null() { "<none>" } else { text(method, "type") }),
        age(object, now),
        json!(dangling.map_or("?", |condition| text(condition, "status"))),
    ]
}

static LEVEL: [Heading; 7] = [
    NAME,
    text_column("Type", ".spec.type"),
    text_column("NominalConcurrencyShares", ".spec.limited.nominalConcurrencyShares"),
    text_column("Queues", ".spec.limited.limitResponse.queuing.queues"),
    text_column("HandSize", ".spec.limited.limitResponse.queuing.handSize"),
    text_column("QueueLengthLimit", ".spec.limited.limitResponse.queuing.queueLengthLimit"),
    AGE,
];

fn level(object: &Value, now: Timestamp) -> Vec<Value> {
    let limited = at(object, "spec.limited");
    let queuing = at(limited, "limitResponse.queuing");
    let or_none = |part: &Value, field: &str| {
        if part.is_null() { json!("<none>") } else { json!(number(part, field)) }
    };
    vec![
        name(object),
        json!(text(object, "spec.type")),
        or_none(limited, "nominalConcurrencyShares"),
        or_none(queuing, "queues"),
        or_none(queuing, "handSize"),
        or_none(queuing, "queueLengthLimit"),
        age(object, now),
    ]
}
