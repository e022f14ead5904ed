//! A decision about the OIDC provider of a cluster as one step.

use super::decide::Decision;
use super::observe::Scene;
use super::record::Record;
use crate::kinds::CLUSTER;
use crate::outside::{Cloud, Request};
use crate::speak;
use interlock_api::names::{ANNOTATION_PROVIDER, FINALIZER_PROVIDER};
use interlock_kernel::conditions::with;
use interlock_kernel::metadata::{put_finalizer, take_finalizer_off, uid_of};
use interlock_kernel::{Address, Importance, Name, Place, Read, Step, Write};
use serde_json::{Value, json};
use std::time::Duration;

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Cloud> {
    let cluster = &scene.cluster;
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Wait(because, seconds) => Step::Wait {
            because: because.to_owned(),
            at_most: Duration::from_secs(u64::try_from(seconds).unwrap_or(1).max(1)),
        },
        Decision::LiveRead => live_read(scene),
        Decision::Keep(record) => {
            let mut change = put_finalizer(cluster, FINALIZER_PROVIDER);
            change["metadata"]["annotations"] = annotations(&record);
            main(scene, change, "what is made in the cloud is written down before the call")
        }
        Decision::Note(record) => {
            let change = json!({"metadata": {"annotations": annotations(&record)}});
            main(scene, change, "the cloud was compared")
        }
        Decision::Call(at, call) => {
            let because = format!("the cloud is not as declared: {}", call.name());
            let note = format!("{} for the issuer of the cluster", call.name());
            let event = speak::event(&CLUSTER, cluster, Importance::Normal, "Changing");
            let about = uid_of(cluster).to_owned();
            let request = Request { about, decided: scene.process.clone(), at, call };
            Step::outside(request, because).telling(speak::saying(event, note))
        }
        Decision::Report(finding) => {
            let generation = cluster.metadata.generation;
            let conditions = with(&scene.status.conditions, &finding, scene.now, generation);
            let change = json!({"status": {"conditions": conditions}});
            let write = Write::patch_status(Place::HUB, &CLUSTER, cluster, change);
            Step::write(write, finding.message)
        }
        Decision::RemoveFinalizer => {
            let mut change = take_finalizer_off(cluster, FINALIZER_PROVIDER);
            change["metadata"]["annotations"] = json!({ANNOTATION_PROVIDER: null});
            main(scene, change, "nothing of the cluster is in the cloud")
        }
    }
}

/// The cloud first, then the WorkloadCluster with its mark, then the issuers of all.
fn live_read(scene: &Scene) -> Step<Cloud> {
    let address = Address::new(Place::HUB, &CLUSTER, Name::of(&scene.cluster));
    let ask = scene.question.clone().map(Read::Ask);
    let list = Read::List { place: Place::HUB, kind: CLUSTER, namespace: None };
    let reads = ask.into_iter().chain([Read::Object(address), list]).collect();
    Step::LiveRead { reads, because: "the cloud is compared with the cluster".to_owned() }
}

fn annotations(record: &Record) -> Value {
    json!({ANNOTATION_PROVIDER: record.text()})
}

fn main(scene: &Scene, change: Value, because: &str) -> Step<Cloud> {
    Step::write(Write::patch(Place::HUB, &CLUSTER, &scene.cluster, change), because)
}
