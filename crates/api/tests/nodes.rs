//! The kinds of nodes: objects as the design writes them are read and written the same, and the rules that no writer
//! may break are in the schemas.

use interlock_api::nodes::{
    DpuAttachment, DpuName, DpuReport, EntryState, FINALIZER_NODE_IN_USE, NodeAttestation,
    NodeClaim, NodeFence, NodeFenceOutcome, NodePhase, OrphanPolicy, PhysicalNode, Plane,
    PowerControl, Rack, Tenant, attachment_name, vni_lease,
};
use interlock_api::{GROUP, VERSION, node_definitions, tenant_definitions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

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

#[test]
fn a_tenant_comes_back_as_it_was() {
    let spec =
        json!({ "plane": { "logicalCluster": "red" }, "nodeQuota": 8, "orphanPolicy": "Release" });
    let status = json!({ "vni": 4097, "vteps": ["10.0.0.1", "fd00::2"] });
    let tenant: Tenant = round_trip(&object("Tenant", "red", spec, status));
    assert_eq!(tenant.spec.plane, Plane::LogicalCluster("red".into()));
    assert_eq!(tenant.status_or_default().vni, Some(4097));
}

#[test]
fn what_a_tenant_leaves_out_has_a_default() {
    let tenant: Tenant =
        serde_json::from_value(json!({ "apiVersion": "interlock.dev/v1alpha1", "kind": "Tenant",
        "metadata": { "name": "red" }, "spec": { "plane": { "logicalCluster": "red" } } }))
        .expect("it can be read");
    assert_eq!(tenant.spec.orphan_policy, OrphanPolicy::Hold);
    assert_eq!((tenant.spec.node_quota, tenant.status_or_default().vni), (None, None));
}

#[test]
fn a_rack_comes_back_as_it_was_and_has_defaults() {
    let spec = json!({ "dpus": [{ "name": "d1", "vtep": "10.0.0.1" }],
        "fencing": { "afterSeconds": 60, "drainSeconds": 120, "power": "Command" } });
    let rack: Rack = round_trip(&object("Rack", "r1", spec, json!({})));
    assert!(rack.spec.dpu("d1").is_some() && rack.spec.dpu("d2").is_none());
    let plain: Rack =
        serde_json::from_value(json!({ "apiVersion": "interlock.dev/v1alpha1", "kind": "Rack",
        "metadata": { "name": "r1" }, "spec": {} }))
        .expect("it can be read");
    let fencing = plain.spec.fencing;
    assert_eq!(
        (fencing.after_seconds, fencing.drain_seconds, fencing.power),
        (600, 3600, PowerControl::Manual)
    );
}

#[test]
fn a_physical_node_comes_back_as_it_was() {
    let spec = json!({ "rack": "r1", "reclaimEpoch": 6, "quarantine": { "reason": "the fan is loud" },
        "dpus": [{ "rack": "r1", "dpu": "d1", "port": "p1", "mac": "02:00:00:00:00:01" }] });
    let status = json!({ "phase": "Draining", "phaseSince": "2026-01-02T03:04:05Z", "epoch": 7, "floor": 6,
        "assignment": { "tenant": { "name": "red", "uid": "t" }, "claim": { "name": "web", "uid": "c" },
            "epoch": 7, "vni": 4097 },
        "cluster": { "name": "a", "uid": "a" },
        "fenced": [{ "dpu": { "rack": "r1", "dpu": "d1" }, "epoch": 7, "by": { "name": "f", "uid": "f" } }],
        "undrainedBy": { "name": "g", "uid": "g" } });
    let node: PhysicalNode = round_trip(&object("PhysicalNode", "n1", spec, status));
    let status = node.status_or_default();
    assert!(status.phase.is_assigned() && !status.phase.is_clean());
    let d1 = DpuName::new("r1", "d1");
    assert_eq!(node.spec.at(&d1).map(|one| one.port.as_str()), Some("p1"));
    assert_eq!(node.spec.at(&DpuName::new("r1", "d2")), None);
}

#[test]
fn a_node_that_nobody_has_handled_is_not_known_clean() {
    let status = PhysicalNode::new("n1", interlock_api::nodes::PhysicalNodeSpec::default())
        .status_or_default();
    assert_eq!((status.phase, status.epoch, status.floor), (NodePhase::Releasing, 0, 0));
    assert!(!status.phase.is_clean());
}

#[test]
fn a_node_fence_comes_back_as_it_was() {
    let spec = json!({ "node": { "name": "n1", "uid": "n" }, "epoch": 7, "phaseSince": "2026-01-02T03:04:05Z",
        "dpu": { "rack": "r1", "dpu": "d1" }, "attestation": "DpuPoweredOff",
        "reason": "the rack burnt down", "requester": "mia" });
    let status = json!({ "outcome": "Refused", "because": "epoch is 7, you named 6" });
    let fence: NodeFence = round_trip(&object("NodeFence", "f", spec, status));
    assert_eq!(fence.spec.attestation, NodeAttestation::DpuPoweredOff);
    assert_eq!(fence.status_or_default().outcome, NodeFenceOutcome::Refused);
}

#[test]
fn a_node_claim_comes_back_as_it_was() {
    let spec = json!({ "count": 3, "selector": { "labels": { "gpu": "true" }, "rack": "r1", "dpu": "d1" },
        "nodeNames": ["n1", "n2", "n3"] });
    let status = json!({ "nodes": [
        { "name": "n1", "uid": "n", "epoch": 7, "state": "Bound", "since": "2026-01-02T03:04:05Z",
            "dpus": [{ "rack": "r1", "dpu": "d1" }], "vni": 4097 },
        { "name": "n2", "uid": "m", "epoch": 0, "state": "Chosen" }] });
    let claim: NodeClaim = round_trip(&object("NodeClaim", "web", spec, status));
    let states: Vec<EntryState> =
        claim.status_or_default().nodes.iter().map(|entry| entry.state).collect();
    assert_eq!(states, [EntryState::Bound, EntryState::Chosen]);
    let plain: NodeClaim = serde_json::from_value(json!({ "apiVersion": "interlock.dev/v1alpha1",
        "kind": "NodeClaim", "metadata": { "name": "web" }, "spec": {} }))
    .expect("it can be read");
    assert_eq!(plain.spec.count, 1);
}

#[test]
fn an_attachment_comes_back_as_it_was_and_is_named_for_its_epoch() {
    let spec = json!({ "node": { "name": "n1", "uid": "n" }, "rack": "r1", "dpu": "d1",
        "claim": { "name": "web", "uid": "c" }, "epoch": 7, "addresses": ["192.168.0.1", "fd00::1"] });
    let attachment: DpuAttachment =
        round_trip(&object("DpuAttachment", "n1.d1.7", spec, json!({})));
    assert_eq!(attachment.spec.object_name(), "n1.d1.7");
    let labels = serde_json::to_value(attachment.spec.labels()).expect("labels are text");
    let expected = json!({ "interlock.dev/dpu": "r1.d1", "interlock.dev/node": "n1", "interlock.dev/claim-uid": "c" });
    assert_eq!(labels, expected);
}

#[test]
fn a_report_comes_back_as_it_was() {
    let spec = json!({ "rack": "r1", "dpu": "d1" });
    let status = json!({ "bootID": "b", "vnis": [4097], "ports": [
        { "port": "p1", "node": { "name": "n1", "uid": "n" }, "floor": 6, "clean": false,
            "applied": { "tenant": "t", "claimUID": "c", "epoch": 7 } },
        { "port": "p2", "floor": 0, "clean": true }] });
    let report: DpuReport = round_trip(&object("DpuReport", "r1.d1", spec, status));
    let status = report.status.expect("it has a status");
    assert_eq!(
        status.port("p1").and_then(|port| port.applied.as_ref()).map(|it| it.epoch),
        Some(7)
    );
}

#[test]
fn a_port_is_clean_only_of_the_node_in_its_record_and_up_to_its_floor() {
    let port = |object: Value| {
        serde_json::from_value::<interlock_api::nodes::PortReport>(object).expect("a port")
    };
    let clean = port(
        json!({ "port": "p1", "node": { "name": "n1", "uid": "n" }, "floor": 6, "clean": true }),
    );
    assert!(clean.is_clean_of("n", 6) && clean.is_clean_of("n", 5));
    assert!(!clean.is_clean_of("n", 7), "the floor is lower");
    assert!(!clean.is_clean_of("m", 6), "another node");
    let open = port(
        json!({ "port": "p1", "node": { "name": "n1", "uid": "n" }, "floor": 6, "clean": false }),
    );
    assert!(!open.is_clean_of("n", 6), "it is open");
    let lost = port(json!({ "port": "p1", "floor": 6, "clean": true }));
    assert!(!lost.is_clean_of("n", 6), "the record names no node");
}

#[test]
fn names_are_made_of_names() {
    let dpu = DpuName::new("r1", "d1");
    assert_eq!(dpu.to_string(), "r1.d1");
    assert_eq!(dpu.label_key(), "dpu.interlock.dev/r1.d1");
    assert_eq!(dpu.lease(), "dpu-r1.d1");
    assert_ne!(DpuName::new("a-b", "c").lease(), DpuName::new("a", "b-c").lease());
    assert_eq!(attachment_name("n1", "d1", 7), "n1.d1.7");
    assert_eq!(vni_lease(4096), "vni-4096");
    assert_eq!(FINALIZER_NODE_IN_USE, "interlock.dev/node-in-use");
    // The part of a label's name after the slash has at most 63 characters.
    let longest = DpuName::new("r".repeat(31), "d".repeat(31));
    assert_eq!(longest.to_string().len(), 63);
}

#[test]
fn words_are_shown_as_they_are_written() {
    use NodePhase::{Available, Bound, Draining, Quarantined, Releasing};
    for phase in [Releasing, Available, Bound, Draining, Quarantined] {
        assert_eq!(json!(phase), json!(phase.to_string()));
    }
    for state in
        [EntryState::Chosen, EntryState::Bound, EntryState::Releasing, EntryState::Released]
    {
        assert_eq!(json!(state), json!(state.to_string()));
        assert_eq!(state.is_over(), matches!(state, EntryState::Releasing | EntryState::Released));
    }
}

#[test]
fn all_kinds_are_in_our_group_and_cluster_wide() {
    let hub = node_definitions();
    let kinds: Vec<&str> = hub.iter().map(|one| one.spec.names.kind.as_str()).collect();
    assert_eq!(kinds, ["Tenant", "Rack", "PhysicalNode", "NodeFence", "DpuReport"]);
    let tenant = tenant_definitions();
    let kinds: Vec<&str> = tenant.iter().map(|one| one.spec.names.kind.as_str()).collect();
    assert_eq!(kinds, ["NodeClaim", "DpuAttachment"]);
    for definition in hub.into_iter().chain(tenant) {
        assert_eq!(definition.spec.group, GROUP);
        assert_eq!(definition.spec.versions[0].name, VERSION);
        assert_eq!(definition.spec.scope, "Cluster");
        let subresources = definition.spec.versions[0].subresources.as_ref();
        assert!(subresources.is_some_and(|all| all.status.is_some()));
        assert_eq!(definition.spec.names.categories, Some(vec!["interlock".to_owned()]));
    }
}

/// The rules of a part of a kind, as text.
fn rules(kind: &str, part: &str) -> String {
    let all = node_definitions().into_iter().chain(tenant_definitions());
    let found =
        all.into_iter().find(|one| one.spec.names.kind == kind).expect("the kind is defined");
    let schema = serde_json::to_value(&found.spec.versions[0].schema).expect("a schema is JSON");
    let schema = &schema["openAPIV3Schema"];
    schema.pointer(part).unwrap_or(&Value::Null)["x-kubernetes-validations"].to_string()
}

#[test]
fn what_no_writer_may_do_is_in_the_schemas() {
    for (kind, part, rule) in [
        ("PhysicalNode", "/properties/spec", "self.dpus.all(d, d.rack == self.rack)"),
        ("PhysicalNode", "/properties/spec/properties/reclaimEpoch", "self >= oldSelf"),
        ("PhysicalNode", "", "self.spec.dpus == oldSelf.spec.dpus"),
        ("PhysicalNode", "", "(has(self.status) && self.status != null)"),
        ("PhysicalNode", "/properties/status", "self.floor >= oldSelf.floor"),
        ("PhysicalNode", "/properties/status", "self.floor <= self.epoch"),
        (
            "PhysicalNode",
            "/properties/status",
            "self.epoch > oldSelf.epoch || !has(self.assignment)",
        ),
        ("NodeFence", "/properties/spec", "self == oldSelf"),
        ("NodeFence", "/properties/spec", "has(self.dpu)"),
        ("NodeFence", "/properties/status", "oldSelf.outcome == 'Pending'"),
        ("DpuAttachment", "/properties/spec", "self == oldSelf"),
        ("DpuAttachment", "", "string(self.spec.epoch)"),
        ("DpuReport", "", "self.spec.rack + '.' + self.spec.dpu"),
        ("Tenant", "/properties/status", "self.vni == oldSelf.vni"),
        ("Tenant", "/properties/spec/properties/plane", "self == oldSelf"),
        ("Rack", "", "self.metadata.name.matches"),
    ] {
        let found = rules(kind, part);
        assert!(found.contains(rule), "{kind}{part} does not say {rule}: {found}");
    }
}

/// A rule over a list costs as much as the list is long, and over a text as much as the text: a server that works out
/// the cost refuses a definition whose rules have no bound.
#[test]
fn every_list_and_text_of_a_spec_has_a_longest_length() {
    for definition in node_definitions().into_iter().chain(tenant_definitions()) {
        let value = serde_json::to_value(&definition).expect("a definition is JSON");
        let schema =
            &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        bounded(schema, &definition.spec.names.kind);
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
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        bounded(field, &format!("{path}.{name}"));
    }
}
