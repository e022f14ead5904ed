//! A room whose rules were changed is caught by the audit: while it runs, and from its log afterwards.
//!
//! The rooms run under the shipped shell with the shipped recorder, on an API server in this process. The audit has the
//! rules of the program as it ships.

mod stage;

use interlock_identities::policy;
use interlock_identities::settings::Settings;
use interlock_kernel::{Bent, Place};
use interlock_nodes::claims;
use interlock_nodes::kinds::TENANT_PLANE;
use interlock_placement::fencing;
use interlock_rollouts::conductor;
use interlock_volumes::keeper;
use serde_json::{Value, json};
use stage::{Caught, NoAnswer, Stage};
use std::sync::Arc;

/// A ForceRelease of a grant that there is not.
fn force_release() -> Value {
    json!({
        "metadata": {"name": "lost"},
        "spec": {
            "grant": {"name": "shop", "uid": "u-1"}, "owner": {"name": "west", "uid": "u-2"},
            "epoch": 3, "attestation": "PoweredOff", "reason": "the rack burnt down",
            "requester": "ann",
        },
    })
}

#[tokio::test]
async fn placement_a_refusal_that_rests_on_a_cache_is_caught() {
    let stage = Stage::new("placement").await;
    stage.make("interlock.dev/v1alpha1", "ForceRelease", force_release()).await;
    let flawed = Bent::new(fencing::Fencing).deciding(|facts| {
        fencing::decide::decide(&fencing::decide::Facts { is_fresh: true, ..facts.clone() })
    });
    let caught = stage.run(flawed, &[Place::HUB], NoAnswer).await;
    assert_eq!(caught, Caught::new("placement/fencing", "lost", "/is_fresh"));
}

#[tokio::test]
async fn volumes_a_place_that_is_given_back_without_a_live_read_is_caught() {
    let stage = Stage::new("volumes").await;
    stage
        .make(
            "coordination.k8s.io/v1",
            "Lease",
            json!({
                "metadata": {
                    "name": "slot-a-0", "namespace": "interlock-system",
                    "labels": {"interlock.dev/slot": "a"},
                    "annotations": {"interlock.dev/slot-of": "ReplicationSource shop/data"},
                },
                "spec": {"holderIdentity": "s-1"},
            }),
        )
        .await;
    let flawed = Bent::new(keeper::Keeper).deciding(|facts| {
        keeper::decide::decide(&keeper::decide::Facts { is_named: Some(false), ..*facts })
    });
    let caught = stage.run(flawed, &[Place::CLUSTER], NoAnswer).await;
    assert_eq!(caught, Caught::new("volumes/keeper", "slot-a-0", "/is_named"));
}

#[tokio::test]
async fn identities_a_cloud_that_is_read_before_the_finalizer_is_there_is_caught() {
    let stage = Stage::new("identities").await;
    let statement = json!([{"action": ["s3:GetObject"], "resource": "arn:aws:s3:::books/*"}]);
    stage.make("irsa.voodoo.io/v1alpha1", "Policy", json!({
        "metadata": {"name": "books", "namespace": "default"}, "spec": {"statement": statement},
    })).await;
    let settings = Arc::new(Settings::of_fleet("test"));
    let flawed = Bent::new(policy::Policies { settings }).deciding(|facts| {
        policy::decide::decide(&policy::decide::Facts { has_finalizer: true, ..facts.clone() })
    });
    let caught = stage.run(flawed, &[Place::HUB], NoAnswer).await;
    assert_eq!(caught, Caught::new("identities/policy", "default/books", "/has_finalizer"));
}

#[tokio::test]
async fn nodes_a_claim_that_is_served_without_its_finalizer_is_caught() {
    let stage = Stage::new("nodes").await;
    stage
        .make(
            "interlock.dev/v1alpha1",
            "NodeClaim",
            json!({
                "metadata": {"name": "three"}, "spec": {"count": 3},
            }),
        )
        .await;
    let room = claims::Claims::new(interlock_api::nodes::Ref::default());
    let flawed = Bent::new(room).deciding(|facts| {
        let mut facts = facts.clone();
        if let claims::Facts::Claim(facts) = &mut facts
            && let Some(claim) = &mut facts.claim
        {
            claim.has_finalizer = true;
        }
        <claims::Claims as interlock_kernel::Room>::decide(&facts)
    });
    let caught = stage.run(flawed, &[Place::HUB, TENANT_PLANE], NoAnswer).await;
    assert_eq!(caught, Caught::new("nodes/claims", "three", "/Claim/claim/has_finalizer"));
}

#[tokio::test]
async fn rollouts_a_record_for_a_request_that_is_being_deleted_is_caught() {
    let stage = Stage::new("rollouts").await;
    let spec = json!({"connection": {"logicalCluster": "west"}});
    let west = json!({"metadata": {"name": "west"}, "spec": spec});
    let west = stage.make("interlock.dev/v1alpha1", "WorkloadCluster", west).await;
    let request = json!({
        "metadata": {"name": "v1", "namespace": "default", "finalizers": ["example.dev/kept"]},
        "spec": {"cluster": "west", "source": {"configMap": {"name": "v1"}}},
    });
    stage.make("interlock.dev/v1alpha1", "ClusterUpdate", request).await;
    stage.delete_update("v1").await;
    let flawed = Bent::new(conductor::Conductor).deciding(|facts| {
        let mut facts = facts.clone();
        facts.unnumbered.iter_mut().for_each(|request| request.is_deleting = false);
        <conductor::Conductor as interlock_kernel::Room>::decide(&facts)
    });
    let caught = stage.run(flawed, &[Place::HUB], NoAnswer).await;
    let uid = west.metadata.uid.expect("it has a uid");
    let record = interlock_api::rollouts::record_name("west", &uid);
    assert_eq!(caught, Caught::new("rollouts/conductor", &record, "/unnumbered/0/is_deleting"));
}

#[tokio::test]
async fn rooms_as_they_ship_are_explained() {
    let stage = Stage::new("shipped").await;
    stage.make("interlock.dev/v1alpha1", "ForceRelease", force_release()).await;
    let report = stage.settle(fencing::Fencing, &[Place::HUB]).await;
    assert!(report.is_good(), "{:?}", report.first);
    assert!(report.steps >= 2, "it reads live, and refuses: {report:?}");
}

#[tokio::test]
async fn nothing_of_a_secret_is_recorded() {
    let stage = Stage::new("secret").await;
    stage.carry_a_secret("c2VjcmV0LW9mLWEtdGVuYW50").await;
    let log = stage.log();
    assert!(log.contains("placement/syncer"), "the syncer took no step: {log}");
    for secret in ["c2VjcmV0LW9mLWEtdGVuYW50", "secret-of-a-tenant"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
#[ignore = "a measurement: --ignored --nocapture shows what a step costs with a record and without"]
async fn what_a_record_costs() {
    let stage = Stage::new("cost").await;
    stage.make("interlock.dev/v1alpha1", "ForceRelease", force_release()).await;
    stage.settle(fencing::Fencing, &[Place::HUB]).await;
    stage.measure().await;
}
