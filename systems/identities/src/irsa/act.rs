//! A decision about an IamRoleServiceAccount as one step.

use super::decide::{Decision, Report, Which};
use super::observe::Scene;
use crate::kinds::{ACCOUNT, POLICY, ROLE, SERVICE_ACCOUNT};
use interlock_api::identities::{
    ANNOTATION_ROLE_ARN, FINALIZER_IRSA, LABEL_MANAGED_BY, MANAGED_BY,
};
use interlock_kernel::metadata::{put_finalizer, take_finalizer_off};
use interlock_kernel::{Address, Kind, Name, Nothing, Object, Place, Read, Step, Write};
use serde_json::{Value, json};

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    let object = &scene.account;
    let patched = |change: Value, because: &str| {
        Step::write(Write::patch(Place::HUB, &ACCOUNT, object, change), because)
    };
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::AddFinalizer => {
            let change = put_finalizer(object, FINALIZER_IRSA);
            patched(change, "the finalizer is there before the first child")
        }
        Decision::RemoveFinalizer => {
            let change = take_finalizer_off(object, FINALIZER_IRSA);
            patched(change, "the children are gone")
        }
        Decision::LiveRead => live_read(scene),
        Decision::Apply(which) => apply(scene, which),
        Decision::Annotate(role) => annotate(scene, &role),
        Decision::TakeAnnotationOff => match &scene.service_account {
            None => Step::rest("there is no ServiceAccount"),
            Some(there) => {
                let change = json!({"metadata": {"annotations": {ANNOTATION_ROLE_ARN: null}}});
                let write = Write::patch(Place::HUB, &SERVICE_ACCOUNT, there, change);
                Step::write(write, "the role of the ServiceAccount is being deleted")
            }
        },
        Decision::Delete(which) => match child(scene, which) {
            (_, None) => Step::rest("there is no such child"),
            (kind, Some(there)) => {
                let write = Write::delete(Place::HUB, &kind, there);
                Step::write(write, format!("the identity is being deleted, and so is its {kind}"))
            }
        },
        Decision::Report(report) => report_step(scene, &report),
    }
}

fn child(scene: &Scene, which: Which) -> (Kind, Option<&Object>) {
    match which {
        Which::Policy => (POLICY, scene.policy.as_ref()),
        Which::Role => (ROLE, scene.role.as_ref()),
        Which::Account => (SERVICE_ACCOUNT, scene.service_account.as_ref()),
    }
}

/// The children first, then the object: a child that is absent was absent while the object was as it is.
fn live_read(scene: &Scene) -> Step<Nothing> {
    let name = Name::of(&scene.account);
    let kinds = [&SERVICE_ACCOUNT, &ROLE, &POLICY, &ACCOUNT];
    let reads = kinds.map(|kind| Read::Object(Address::new(Place::HUB, kind, name.clone())));
    Step::LiveRead { reads: reads.into(), because: "the cache does not show a child".to_owned() }
}

fn apply(scene: &Scene, which: Which) -> Step<Nothing> {
    let (kind, there) = child(scene, which);
    let spec = match which {
        Which::Policy => &scene.policy_spec,
        Which::Role | Which::Account => &scene.role_spec,
    };
    match there {
        Some(there) => {
            let write = Write::patch(Place::HUB, &kind, there, json!({"spec": spec}));
            Step::write(write, format!("the {kind} is not as declared"))
        }
        None => {
            let address = Address::new(Place::HUB, &kind, Name::of(&scene.account));
            let object = json!({
                "metadata": {"ownerReferences": [scene.owner]}, "spec": without_nothing(spec),
            });
            Step::write(Write::Create { address, object }, format!("there is no {kind}"))
        }
    }
}

/// What is created has no fields that are null.
fn without_nothing(spec: &Value) -> Value {
    let fields = spec.as_object().into_iter().flatten();
    let kept = fields.filter(|(_, value)| !value.is_null());
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn annotate(scene: &Scene, role: &str) -> Step<Nothing> {
    let annotations = json!({ANNOTATION_ROLE_ARN: role});
    match &scene.service_account {
        Some(there) => {
            let change = json!({"metadata": {"annotations": annotations}});
            let write = Write::patch(Place::HUB, &SERVICE_ACCOUNT, there, change);
            Step::write(write, "the ServiceAccount names another role, or none")
        }
        None => {
            let address = Address::new(Place::HUB, &SERVICE_ACCOUNT, Name::of(&scene.account));
            let object = json!({"metadata": {
                "annotations": annotations, "labels": {LABEL_MANAGED_BY: MANAGED_BY},
                "ownerReferences": [scene.owner],
            }});
            Step::write(Write::Create { address, object }, "there is no ServiceAccount")
        }
    }
}

fn report_step(scene: &Scene, report: &Report) -> Step<Nothing> {
    let object = &scene.account;
    let generation = object.metadata.generation;
    let conditions = report.standing.added_to(&scene.status.conditions, scene.now, generation);
    let mut change = json!({
        "condition": report.old, "reason": report.standing.sentence(),
        "observedGeneration": generation, "conditions": conditions,
    });
    if let Some(role) = &report.role_arn {
        change["roleARN"] = json!(role);
        change["policyARN"] = json!(report.policy_arn);
    }
    let write = Write::patch_status(Place::HUB, &ACCOUNT, object, json!({"status": change}));
    Step::write(write, format!("the identity is {:?}", report.old))
}
