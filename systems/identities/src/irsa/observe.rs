//! What is seen of an IamRoleServiceAccount and of its children.

use super::decide::{Account, Because, Child, Facts};
use crate::kinds::{ACCOUNT, POLICY, ROLE, SERVICE_ACCOUNT};
use crate::settings::Settings;
use crate::subject::name_in;
use crate::valid::{invalid_boundary, invalid_statements, is_arn};
use interlock_api::identities::{
    ANNOTATION_ROLE_ARN, FINALIZER_IRSA, IamRoleServiceAccountSpec as Spec,
    IamRoleServiceAccountStatus as Status, LABEL_MANAGED_BY, MANAGED_BY, condition as words,
};
use interlock_kernel::conditions::{Condition, find, is_true};
use interlock_kernel::metadata::{
    annotation, has_finalizer, is_deleting, is_owned_by, label, owner_reference, uid_of,
};
use interlock_kernel::{
    Address, Kind, LiveReads, Name, Nothing, Object, Observed, Place, Subject, View, read_part,
};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// What one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) account: Object,
    pub(super) status: Status,
    /// The children, as far as they are there.
    pub(super) policy: Option<Object>,
    pub(super) role: Option<Object>,
    pub(super) service_account: Option<Object>,
    /// The specs that the children must have.
    pub(super) policy_spec: Value,
    pub(super) role_spec: Value,
    pub(super) owner: Value,
    pub(super) now: Timestamp,
}

/// Reads what a step is about.
pub(super) fn observe(
    settings: &Settings,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let Some(name) = name_in(subject) else { return Observed::nothing("no such subject") };
    let read = |kind: &Kind| {
        let address = Address::new(Place::HUB, kind, name.clone());
        let live = live_reads.objects.get(&address).cloned();
        live.unwrap_or_else(|| view.get(Place::HUB, kind, &name))
    };
    let Some(object) = read(&ACCOUNT) else {
        return Observed::nothing("there is no such IamRoleServiceAccount");
    };
    let spec = read_part::<Spec>(&object, "spec");
    let status = read_part::<Status>(&object, "status").ok().flatten().unwrap_or_default();
    let invalid = match &spec {
        Ok(Some(spec)) => invalid(spec, settings),
        Ok(None) => Some("there is no spec".to_owned()),
        Err(error) => Some(error.clone()),
    };
    let spec = spec.ok().flatten().unwrap_or_default();
    let scene = Scene {
        policy: read(&POLICY),
        role: read(&ROLE),
        service_account: read(&SERVICE_ACCOUNT),
        policy_spec: policy_spec(&spec),
        role_spec: role_spec(&spec, &name),
        owner: owner_reference(&ACCOUNT, &object),
        status: status.clone(),
        now: view.now(),
        account: object,
    };
    let uid = uid_of(&scene.account);
    let facts = Facts {
        has_finalizer: has_finalizer(&scene.account, FINALIZER_IRSA),
        is_deleting: is_deleting(&scene.account),
        generation: scene.account.metadata.generation,
        status,
        invalid,
        policy: child(scene.policy.as_ref(), &scene.policy_spec, uid),
        role: child(scene.role.as_ref(), &scene.role_spec, uid),
        account: service_account(scene.service_account.as_ref(), uid, spec.adopt_service_account),
        is_live: !live_reads.is_empty(),
    };
    Observed::Seen { facts, scene }
}

fn invalid(spec: &Spec, settings: &Settings) -> Option<String> {
    let wrong = spec.policy_arns.iter().find(|arn| !is_arn(arn));
    let wrong = wrong.map(|arn| format!("spec.policyARNs: {arn:?} is not an ARN"));
    let many = (spec.policy_arns.len() > 9)
        .then(|| "spec.policyARNs: a role has at most 10 policies, its own included".to_owned());
    let policy = invalid_statements(&spec.policy.statement).map(|it| format!("spec.policy.{it}"));
    let boundary = invalid_boundary(spec.permissions_boundary_arn.as_deref(), settings);
    policy.or(wrong).or(many).or(boundary)
}

/// Null where a field is absent: a merge removes it from a child.
fn policy_spec(spec: &Spec) -> Value {
    json!({
        "statement": spec.policy.statement, "arn": spec.policy.arn, "adopt": spec.adopt,
        "deletionPolicy": spec.deletion_policy,
    })
}

fn role_spec(spec: &Spec, name: &Name) -> Value {
    json!({
        "serviceAccountName": &*name.name, "policyARNs": spec.policy_arns, "adopt": spec.adopt,
        "deletionPolicy": spec.deletion_policy,
        "permissionsBoundariesPolicyARN": spec.permissions_boundary_arn,
    })
}

/// What every status of a child has.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ChildStatus {
    arn: Option<String>,
    observed_generation: Option<i64>,
    conditions: Vec<Condition>,
}

fn child(object: Option<&Object>, spec: &Value, uid: &str) -> Child {
    let Some(object) = object else { return Child::Absent };
    if !is_owned_by(object, uid) {
        let owners = object.metadata.owner_references.iter().flatten();
        let names: Vec<String> = owners.map(|it| format!("{} {}", it.kind, it.name)).collect();
        return Child::Foreign(match names.is_empty() {
            true => "it has no owner".to_owned(),
            false => format!("its owner is {}", names.join(", ")),
        });
    }
    let status = read_part::<ChildStatus>(object, "status").ok().flatten().unwrap_or_default();
    let is_current = status.observed_generation == object.metadata.generation;
    let is_ready = is_current && is_true(&status.conditions, words::READY);
    let ready = find(&status.conditions, words::READY);
    Child::Ours {
        is_as_declared: has_all(&object.data["spec"], spec),
        is_deleting: is_deleting(object),
        arn: status.arn.filter(|arn| is_ready && !arn.is_empty()),
        because: Because {
            stalled: stalled(&status.conditions).filter(|_| is_current),
            message: ready.map_or_else(|| "it is new".to_owned(), |it| it.message.clone()),
        },
    }
}

/// Why a person has to act about a child.
fn stalled(conditions: &[Condition]) -> Option<&'static str> {
    let found = find(conditions, words::STALLED).filter(|found| found.status == "True")?;
    let known = [words::INVALID, words::FORBIDDEN, words::LIMIT_EXCEEDED];
    Some(known.into_iter().find(|word| *word == found.reason).unwrap_or(words::CONFLICT))
}

/// Whether all that is asked for is there; other fields of a child are its own.
fn has_all(there: &Value, asked: &Value) -> bool {
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let mut fields = asked.as_object().into_iter().flatten();
    fields.all(|(key, value)| there[key] == *value || is_empty(value) && is_empty(&there[key]))
}

fn service_account(object: Option<&Object>, uid: &str, may_adopt: bool) -> Account {
    let Some(object) = object else { return Account::Absent };
    let is_managed = label(object, LABEL_MANAGED_BY) == Some(MANAGED_BY);
    let is_made = is_owned_by(object, uid) && is_managed;
    if !is_made && !may_adopt {
        return Account::Foreign("Interlock did not make it".to_owned());
    }
    let role = annotation(object, ANNOTATION_ROLE_ARN).map(str::to_owned);
    Account::There { is_made, is_deleting: is_deleting(object), role }
}
