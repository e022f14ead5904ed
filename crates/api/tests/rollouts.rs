//! The kinds of rollouts: objects as the design writes them are read and written the same, and the rules that no
//! writer may break are in the schemas.

use interlock_api::rollouts::{
    BundleRevision, ClusterRollout, ClusterUpdate, DriftPolicy, FenceMode, FencePolicy,
    FirstInstallFailure, FleetPhase, FleetUpdate, OnClusterUnreachable, OnFailure, PreflightMode,
    RolloutReport, Source, UpdatePhase, Verdict, drain_requester, part_name, record_name,
};
use interlock_api::{GROUP, VERSION, definitions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const KINDS: [&str; 5] =
    ["ClusterUpdate", "ClusterRollout", "RolloutReport", "BundleRevision", "FleetUpdate"];

/// Reads an object, and sees that it is written as it was read.
fn round_trip<K: DeserializeOwned + Serialize>(object: &Value) -> K {
    let read: K = serde_json::from_value(object.clone()).expect("it can be read");
    assert_eq!(&serde_json::to_value(&read).expect("it can be written"), object);
    read
}

fn object(kind: &str, name: &str, spec: Value, status: Value) -> Value {
    json!({ "apiVersion": "interlock.dev/v1alpha1", "kind": kind, "metadata": { "name": name },
        "spec": spec, "status": status })
}

fn digest(letter: &str) -> String {
    format!("sha256-{}", letter.repeat(64))
}

#[test]
fn a_request_comes_back_as_it_was() {
    let spec = json!({ "cluster": "west",
        "source": { "inline": [{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": {} }] },
        "deadlineSeconds": 60, "soakSeconds": 0, "startDeadlineSeconds": 30, "preflight": "DryRun",
        "drainFirst": true, "preempt": true, "retryBad": true, "force": true, "pruneData": true, "cancel": true });
    let status = json!({ "phase": "RolledBack", "phaseSince": "2026-01-02T03:04:05Z", "version": 7,
        "digest": digest("a"), "reason": "Unhealthy", "message": "web is not ready", "next": "kubectl get pods",
        "objects": { "wanted": 3, "applied": 3, "current": 2, "toPrune": 0 },
        "notReady": [{ "id": "apps/Deployment/shop/web", "code": "InProgress", "message": "1 of 2" }],
        "kept": ["/Namespace//old"] });
    let update: ClusterUpdate = round_trip(&object("ClusterUpdate", "v7", spec, status));
    assert!(matches!(&update.spec.source, Source::Inline(objects) if objects.len() == 1));
    assert!(update.status_or_default().phase.is_terminal());
}

#[test]
fn what_a_request_leaves_out_has_a_default() {
    for source in [
        json!({ "configMap": { "name": "shop" } }),
        json!({ "packed": { "digest": digest("a"), "secrets": ["shop-0"] } }),
        json!({ "revision": digest("a") }),
    ] {
        let update: ClusterUpdate = serde_json::from_value(json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "ClusterUpdate", "metadata": { "name": "v1" },
            "spec": { "cluster": "west", "source": source } }))
        .expect("it can be read");
        let spec = &update.spec;
        let seconds = (spec.deadline_seconds, spec.soak_seconds, spec.start_deadline_seconds);
        assert_eq!((seconds, spec.preflight), ((600, 30, 3600), PreflightMode::Schema));
        assert!(!(spec.drain_first || spec.preempt || spec.retry_bad || spec.force));
        assert!(!spec.prune_data && !spec.cancel);
        assert_eq!(update.status_or_default().phase, UpdatePhase::Pending);
    }
}

#[test]
fn a_record_comes_back_as_it_was() {
    let spec = json!({ "cluster": { "name": "west", "uid": "w" }, "paused": true,
        "allowedNamespaces": { "matchLabels": { "team": "shop" } }, "drift": "Report", "keepHistory": 3,
        "rollback": { "tries": 2, "deadlineSeconds": 60 }, "firstInstallFailure": "Keep", "fence": "BestEffort",
        "settleSeconds": 10 });
    let status = json!({ "lastVersion": 7,
        "requests": [{ "uid": "u", "namespace": "shop", "name": "v7", "version": 7, "digest": digest("a"),
            "phase": "RollingBack", "phaseSince": "2026-01-02T03:04:05Z", "reason": "Unhealthy", "message": "m",
            "next": "n" }],
        "preflight": { "uid": "q", "digest": digest("b"), "mode": "DryRun", "force": true },
        "active": { "uid": "u", "version": 7, "digest": digest("a"), "phase": "RollingBack",
            "phaseSince": "2026-01-02T03:04:05Z", "startedAt": "2026-01-02T03:04:04Z", "deadlineSeconds": 60,
            "tries": 1 },
        "target": { "token": 4, "digest": digest("c"), "soakSeconds": 0, "force": false, "pruneData": false },
        "lastGood": { "version": 5, "digest": digest("c"), "force": false },
        "mayExist": [digest("c"), digest("a")],
        "bad": [{ "digest": digest("a"), "reason": "web is not ready", "at": "2026-01-02T03:04:05Z" }],
        "unnamed": [{ "digest": digest("d"), "since": "2026-01-02T03:04:05Z" }], "isDegraded": true });
    let record: ClusterRollout = round_trip(&object("ClusterRollout", "west-w", spec, status));
    let status = record.status_or_default();
    assert_eq!(status.request("u").map(|it| it.version), Some(7));
    for named in ["a", "b", "c", "d"] {
        assert_eq!(status.names_digest(&digest(named)), named == "a" || named == "c", "{named}");
    }
}

#[test]
fn what_a_record_leaves_out_has_a_default() {
    let record: ClusterRollout = serde_json::from_value(json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "ClusterRollout", "metadata": { "name": "west-w" },
        "spec": { "cluster": { "name": "west", "uid": "w" } } }))
    .expect("it can be read");
    let spec = &record.spec;
    assert_eq!(
        (spec.keep_history, spec.rollback.tries, spec.rollback.deadline_seconds),
        (10, 3, 600)
    );
    assert_eq!((spec.drift, spec.fence), (DriftPolicy::Repair, FencePolicy::Required));
    assert_eq!(
        (spec.first_install_failure, spec.settle_seconds),
        (FirstInstallFailure::Remove, 75)
    );
    assert_eq!(record.status_or_default().target.token, 0);
}

#[test]
fn a_report_comes_back_as_it_was() {
    let status = json!({ "token": 4, "fence": { "token": 4, "mode": "Probed", "provenAt": "2026-01-02T03:04:05Z" },
        "wave": 2, "verdict": "Applied", "healthySince": "2026-01-02T03:04:05Z",
        "objects": { "wanted": 3, "applied": 3, "current": 2, "toPrune": 1 },
        "notReady": [{ "id": "/Pod/shop/web", "code": "InProgress", "message": "pulls" }],
        "failed": [{ "id": "/Pod/shop/db", "code": "Forbidden", "message": "may not" }],
        "kept": ["/Namespace//old"], "drifted": ["/ConfigMap/shop/a"],
        "preflight": { "uid": "q", "digest": digest("b"),
            "failures": [{ "id": "/Pod/x/y", "code": "NamespaceIsPlaced", "message": "at the hub" }] } });
    let spec = json!({ "cluster": { "name": "west", "uid": "w" } });
    let report: RolloutReport = round_trip(&object("RolloutReport", "west-w", spec, status));
    let status = report.status_or_default();
    assert_eq!(status.verdict, Verdict::Applied);
    assert_eq!(status.fence.map(|fence| fence.mode), Some(FenceMode::Probed));
    assert!(Verdict::Applying < Verdict::Applied && Verdict::Applied < Verdict::Soaked);
}

#[test]
fn a_revision_comes_back_as_it_was_and_is_named_for_its_digest() {
    let object = json!({ "apiVersion": "interlock.dev/v1alpha1", "kind": "BundleRevision",
        "metadata": { "name": part_name(&digest("a"), 1) },
        "spec": { "digest": digest("a"), "part": 1, "parts": 2, "ids": ["/ConfigMap/shop/a"], "data": "KLUv/Q==" } });
    let revision: BundleRevision = round_trip(&object);
    assert_eq!(Some(revision.spec.object_name()), revision.metadata.name);
}

#[test]
fn a_fleet_request_comes_back_as_it_was_and_asks_for_each_cluster() {
    let spec = json!({ "source": { "configMap": { "name": "shop" } }, "deadlineSeconds": 60, "soakSeconds": 1,
        "startDeadlineSeconds": 30, "preflight": "Schema", "drainFirst": true, "preempt": false, "retryBad": false,
        "force": false, "pruneData": true, "cancel": false, "selector": { "matchLabels": { "region": "eu" } },
        "canary": { "matchLabels": { "canary": "true" } },
        "partitions": [{ "name": "small", "selector": { "matchLabels": { "size": "s" } } }],
        "maxUnavailable": 3, "onFailure": "Continue", "onUnreachable": "Skip" });
    let status = json!({ "phase": "Paused", "phaseSince": "2026-01-02T03:04:05Z", "reason": "ClusterFailed",
        "message": "west failed", "partition": "small", "clusters": 9, "succeeded": 4, "failed": 1, "skipped": 1,
        "children": [{ "cluster": "west", "phase": "RolledBack", "reason": "Unhealthy" }] });
    let fleet: FleetUpdate = round_trip(&object("FleetUpdate", "v7", spec, status));
    assert_eq!(fleet.status_or_default().phase, FleetPhase::Paused);
    let one = fleet.spec.update_of("west");
    assert_eq!((one.cluster.as_str(), one.deadline_seconds, one.drain_first), ("west", 60, true));
    assert!(one.prune_data && !one.cancel);
    let plain: FleetUpdate = serde_json::from_value(json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "FleetUpdate", "metadata": { "name": "v1" },
        "spec": { "source": { "configMap": { "name": "shop" } } } }))
    .expect("it can be read");
    let policies = (plain.spec.on_failure, plain.spec.on_unreachable);
    assert_eq!(policies, (OnFailure::Pause, OnClusterUnreachable::Wait));
    assert_eq!(plain.spec.max_unavailable, 1);
}

#[test]
fn every_phase_waits_is_in_flight_or_is_final() {
    for phase in UpdatePhase::ALL {
        assert_eq!(json!(phase), json!(phase.to_string()));
        let waits = matches!(phase, UpdatePhase::Pending | UpdatePhase::Queued);
        let each = [waits, phase.is_active(), phase.is_terminal()];
        assert_eq!(each.iter().filter(|it| **it).count(), 1, "{phase}");
    }
}

#[test]
fn names_are_made_of_names() {
    assert_eq!(record_name("west", "0f3a9c1e-5b77-4c52"), "west-0f3a9c1e");
    assert_eq!(drain_requester("u"), "rollouts/u");
    assert_eq!(part_name(&digest("a"), 3), format!("{}-3", digest("a")));
}

fn own() -> impl Iterator<Item = CustomResourceDefinition> {
    definitions().into_iter().filter(|one| KINDS.contains(&one.spec.names.kind.as_str()))
}

#[test]
fn all_kinds_are_defined_and_people_ask_in_namespaces() {
    assert_eq!(own().count(), KINDS.len());
    for definition in own() {
        let kind = definition.spec.names.kind.as_str();
        assert_eq!(definition.spec.group, GROUP);
        assert_eq!(definition.spec.versions[0].name, VERSION);
        let is_namespaced = matches!(kind, "ClusterUpdate" | "FleetUpdate");
        assert_eq!(definition.spec.scope == "Namespaced", is_namespaced, "{kind}");
        let subresources = definition.spec.versions[0].subresources.as_ref();
        let has_status = subresources.is_some_and(|all| all.status.is_some());
        assert_eq!(has_status, kind != "BundleRevision", "{kind}");
        assert_eq!(definition.spec.names.categories, Some(vec!["interlock".to_owned()]));
    }
}

fn schema(kind: &str) -> Value {
    let found = own().find(|one| one.spec.names.kind == kind).expect("the kind is defined");
    let schema = serde_json::to_value(&found.spec.versions[0].schema).expect("a schema is JSON");
    schema["openAPIV3Schema"].clone()
}

#[test]
fn what_no_writer_may_do_is_in_the_schemas() {
    for (kind, part, rule) in [
        ("ClusterUpdate", "/properties/spec", "self.cluster == oldSelf.cluster"),
        ("ClusterUpdate", "/properties/spec", "self.pruneData == oldSelf.pruneData"),
        ("ClusterUpdate", "/properties/spec/properties/source", "self.packed == oldSelf.packed"),
        ("ClusterUpdate", "/properties/spec/properties/cancel", "self || !oldSelf"),
        ("ClusterUpdate", "/properties/status", "self.phase == oldSelf.phase"),
        ("ClusterRollout", "/properties/spec/properties/cluster", "self == oldSelf"),
        ("ClusterRollout", "", "(has(self.status) && self.status != null)"),
        ("ClusterRollout", "/properties/status", "self.lastVersion >= oldSelf.lastVersion"),
        ("ClusterRollout", "/properties/status", "self.target.token >= oldSelf.target.token"),
        ("ClusterRollout", "/properties/status", "self.target.digest == oldSelf.target.digest"),
        ("RolloutReport", "/properties/spec", "self == oldSelf"),
        ("BundleRevision", "/properties/spec", "self == oldSelf"),
        ("BundleRevision", "", "self.spec.digest + '-' + string(self.spec.part)"),
        ("FleetUpdate", "/properties/spec/properties/source", "!has(self.revision)"),
        ("FleetUpdate", "/properties/spec/properties/cancel", "self || !oldSelf"),
    ] {
        let schema = schema(kind);
        let part_of = schema.pointer(part).unwrap_or(&Value::Null);
        let found = part_of["x-kubernetes-validations"].to_string();
        assert!(found.contains(rule), "{kind}{part} does not say {rule}: {found}");
    }
}

/// One of several, and no two: the API server refuses it otherwise.
#[test]
fn a_source_is_one_of_four() {
    for kind in ["ClusterUpdate", "FleetUpdate"] {
        let source = schema(kind)["properties"]["spec"]["properties"]["source"].clone();
        let one_of = source["oneOf"].as_array().cloned().unwrap_or_default();
        let required: Vec<&Value> = one_of.iter().map(|one| &one["required"][0]).collect();
        assert_eq!(required, ["inline", "configMap", "packed", "revision"]);
    }
}

/// A rule over a list costs as much as the list is long, and over a text as much as the text: a server that works out
/// the cost refuses a definition whose rules have no bound.
#[test]
fn every_list_text_and_number_of_a_spec_has_a_bound() {
    for kind in KINDS {
        bounded(&schema(kind)["properties"]["spec"], kind);
    }
}

fn bounded(schema: &Value, path: &str) {
    if schema["type"] == "array" {
        assert!(schema["maxItems"].is_number(), "{path} has no longest length");
        bounded(&schema["items"], &format!("{path}[]"));
    }
    let is_bounded_text = schema["enum"].is_array()
        || schema["maxLength"].is_number()
        || schema["format"].is_string();
    assert!(schema["type"] != "string" || is_bounded_text, "{path} has no longest length");
    assert!(schema["type"] != "integer" || schema["maximum"].is_number(), "{path} has no maximum");
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        // Label selectors are Kubernetes' own, and have no bounds there either.
        let is_selector = field["properties"]["matchExpressions"].is_object();
        if !is_selector {
            bounded(field, &format!("{path}.{name}"));
        }
    }
}
