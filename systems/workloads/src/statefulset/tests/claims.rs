//! The claims of the pods of a StatefulSet.

use super::*;

#[test]
fn each_ordinal_has_its_claim_before_its_pod_and_keeps_it() {
    let mut cluster = Cluster::running(with_claims(&json!({})));
    let claim = cluster.json(&CLAIM, "data-web-1");
    assert_eq!(claim["metadata"]["labels"], json!({"app": "web"}));
    assert!(claim["metadata"]["ownerReferences"].is_null(), "it stays when the set goes");
    let volumes = cluster.json(&POD, "web-1")["spec"]["volumes"].clone();
    let wanted = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]);
    assert_eq!(volumes, wanted);
    cluster.change(&json!({"spec": {"replicas": 1}}));
    cluster.settle();
    cluster.let_go();
    let claim = cluster.json(&CLAIM, "data-web-1");
    assert!(!claim.is_null() && claim["metadata"]["ownerReferences"].is_null());
}

#[test]
fn a_pod_waits_until_the_claim_of_its_predecessor_is_gone() {
    let mut cluster = Cluster::with(with_claims(&json!({})));
    let claim = json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "data-web-0",
        "namespace": "shop", "uid": "c", "finalizers": ["x"],
        "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    cluster.servers.put(Place::CLUSTER, claim);
    cluster.settle();
    assert!(cluster.pods().is_empty());
}

#[test]
fn claims_are_deleted_with_the_set_or_with_the_pod_if_the_set_says_so() {
    let policy = json!({"spec": {"persistentVolumeClaimRetentionPolicy":
        {"whenDeleted": "Delete", "whenScaled": "Delete"}}});
    let mut cluster = Cluster::running(with_claims(&policy));
    let owners = |cluster: &Cluster| {
        cluster.json(&CLAIM, "data-web-1")["metadata"]["ownerReferences"].clone()
    };
    assert_eq!(
        (&owners(&cluster)[0]["uid"], owners(&cluster)[0]["controller"].is_null()),
        (&json!("uid-web"), true)
    );
    cluster.change(&json!({"spec": {"replicas": 1}}));
    cluster.settle();
    let pod = owners(&cluster)[0].clone();
    assert_eq!((&pod["kind"], &pod["uid"]), (&json!("Pod"), &json!("uid-web-1")));
    assert_eq!(cluster.pods(), ["web-0 one", "-web-1 one"], "the claim was handed over before");
    let keeps = json!({"spec": {"persistentVolumeClaimRetentionPolicy": null}});
    cluster.change(&keeps);
    cluster.settle();
    let kept = cluster.json(&CLAIM, "data-web-0")["metadata"]["ownerReferences"].clone();
    assert_eq!(kept, json!([]), "whoever asks for retention again gets it");
}

#[test]
fn claims_and_namespaces_wake_the_sets_that_need_them() {
    let cluster = Cluster::running(with_claims(&json!({})));
    let view = cluster.servers.view();
    let claim = cluster.servers.get(Place::CLUSTER, &CLAIM, &Name::within("shop", "data-web-1"));
    let claim = claim.expect("the claim");
    let woken = room().subjects(&Watch::all(Place::CLUSTER, &CLAIM), &claim, &view);
    assert_eq!(woken, [Subject::from(SUBJECT)]);
    let shop = cluster.servers.get(Place::CLUSTER, &NAMESPACE, &Name::cluster_wide("shop"));
    let shop = shop.expect("the namespace");
    let woken = room().subjects(&Watch::all(Place::CLUSTER, &NAMESPACE), &shop, &view);
    assert_eq!(woken, [Subject::from(SUBJECT)]);
}
