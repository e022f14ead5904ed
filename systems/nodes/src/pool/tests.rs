//! The rows of the pool, one by one, and the races between them.

use super::*;
use crate::hub_testing::*;
use crate::power::{IsOff, PowerOff, PowerState};
use interlock_kernel::testing::{Machine, Run, TestServers, condition, patched, survives};
use interlock_kernel::{Action, Importance, Name};
use serde_json::{Value, json};

/// What the platform's command answers, for every DPU.
struct Command(PowerState);

impl Machine<Power> for Command {
    fn ask(&self, _: &IsOff) -> PowerState {
        self.0.clone()
    }

    fn perform(&mut self, _: &PowerOff) -> bool {
        self.0 = PowerState::Off;
        true
    }
}

fn nobody() -> Command {
    Command(PowerState::Unknown("nobody was to ask".to_owned()))
}

fn servers(objects: Vec<Value>) -> TestServers {
    TestServers::of(&Pool).with(objects)
}

fn settled(objects: Vec<Value>) -> (TestServers, Run<Power>) {
    let mut servers = servers(objects);
    let run = servers.settle(&Pool, &mut nobody(), "n1");
    (servers, run)
}

/// The fleet of most tests: a rack, whose DPUs have reported nothing of the node.
fn fleet(node: Value) -> Vec<Value> {
    vec![rack(json!({})), report("d1", json!([])), report("d2", json!([])), node]
}

/// The same, with the same report of both DPUs.
fn reported(node: Value, port: &Value) -> Vec<Value> {
    vec![rack(json!({})), report("d1", json!([port])), report("d2", json!([port])), node]
}

fn node_in(servers: &TestServers) -> Value {
    servers.json(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide("n1"))
}

fn phase(servers: &TestServers) -> Value {
    node_in(servers)["status"]["phase"].clone()
}

fn outcome(servers: &TestServers) -> (Value, String) {
    let fence = servers.json(Place::HUB, &NODE_FENCE, &Name::cluster_wide("fence"));
    let because = fence["status"]["because"].as_str().unwrap_or_default().to_owned();
    (fence["status"]["outcome"].clone(), because)
}

fn cluster_in(servers: &TestServers) -> Value {
    servers.json(Place::HUB, &WORKLOAD_CLUSTER, &Name::cluster_wide("a"))
}

fn draining(patch: Value) -> Value {
    let status = json!({"status": {"phase": "Draining", "cluster": reference("a")}});
    patched(in_use("n1", status), &patch)
}

/// Asks cluster a to drain for node n1 at epoch 7, and says that it is drained.
fn drained() -> Value {
    let mut done = said("Drained", "True", "Drained");
    done["observedGeneration"] = json!(1);
    json!({"spec": {"drains": [{"requester": "nodes/uid-n1/7", "reason": "it is to end"}]},
        "status": {"drained": ["nodes/uid-n1/7"], "conditions": [done]}})
}

#[test]
fn a_new_node_gets_finalizer_labels_and_reports_and_last_its_status() {
    let new = json!({"metadata": {"labels": null, "finalizers": null}, "status": null});
    let (servers, run) = settled(vec![rack(json!({})), node("n1", new)]);
    let kinds: Vec<&str> = run.writes.iter().map(|write| &*write.address().kind.kind).collect();
    assert_eq!(kinds, ["PhysicalNode", "DpuReport", "DpuReport", "PhysicalNode", "PhysicalNode"]);
    let found = node_in(&servers);
    assert_eq!(found["metadata"]["finalizers"], json!(["interlock.dev/node-in-use"]));
    assert_eq!(found["metadata"]["labels"]["dpu.interlock.dev/r1.d2"], "p-n1");
    assert_eq!(found["metadata"]["labels"]["interlock.dev/rack"], "r1");
    let status = &found["status"];
    assert_eq!((&status["phase"], &status["epoch"]), (&json!("Releasing"), &json!(0)));
    let d2 = servers.json(Place::HUB, &DPU_REPORT, &Name::cluster_wide("r1.d2"));
    assert_eq!(d2["spec"], json!({"rack": "r1", "dpu": "d2"}));
    assert_eq!(condition(&found, "ConfigurationConsistent")["status"], "True");
}

#[test]
fn a_new_node_is_in_the_pool_once_its_dpus_have_adopted_it() {
    let new = node("n1", json!({"status": {"phase": "Releasing", "epoch": 0, "floor": 0}}));
    let (servers, _) = settled(fleet(new.clone()));
    assert_eq!(phase(&servers), "Releasing");
    let (servers, _) = settled(reported(new, &clean("n1", 0)));
    assert_eq!(phase(&servers), "Available");
}

#[test]
fn a_node_whose_dpus_were_changed_leaves_the_pool_before_its_labels_say_so() {
    let moved = json!({"metadata": {"labels": {"dpu.interlock.dev/r1.d2": "p-old", "dpu.interlock.dev/r1.d9": "p"}}});
    let (servers, run) = settled(fleet(node("n1", moved)));
    assert_eq!(phase(&servers), "Releasing");
    assert_eq!(run.writes.len(), 2);
    let labels = &node_in(&servers)["metadata"]["labels"];
    assert_eq!(labels["dpu.interlock.dev/r1.d2"], "p-n1");
    assert!(labels["dpu.interlock.dev/r1.d9"].is_null());
    let (servers, _) =
        settled(fleet(bound("n1", json!({"metadata": {"labels": {"interlock.dev/rack": "r9"}}}))));
    assert_eq!(phase(&servers), "Bound", "its spec is frozen, so only the labels were changed");
    assert_eq!(node_in(&servers)["metadata"]["labels"]["interlock.dev/rack"], "r1");
}

#[test]
fn a_node_that_is_wired_wrongly_says_what_would_be_right() {
    let at = |rack: &str, dpu: &str| {
        json!({"spec": {"dpus": [{"rack": rack, "dpu": dpu, "port": "p-n1", "mac": "02:00:00:00:00:01"}]},
            "metadata": {"labels": {"dpu.interlock.dev/r1.d1": null, "dpu.interlock.dev/r1.d2": null}}})
    };
    let older = node(
        "n0",
        json!({"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"},
        "spec": {"dpus": [{"rack": "r1", "dpu": "d1", "port": "p-n1", "mac": "02:00:00:00:00:02"}]}}),
    );
    let cases = [
        (at("r2", "d1"), "OtherRack", "dpu r2/d1 is not in rack r1; rack r1 has d1, d2"),
        (at("r1", "d3"), "UnknownDpu", "dpu r1/d3 is not in rack r1; rack r1 has d1, d2"),
        (at("r1", "d1"), "PortTaken", "port p-n1 of dpu r1/d1 is node n0's, which is older"),
        (json!({"spec": {"rack": "r9"}}), "UnknownRack", "there is no Rack r9 that can be read"),
        (json!({"spec": {"dpus": []}}), "NoDpu", "node n1 names no DPU"),
    ];
    for (patch, reason, message) in cases {
        let mut objects = fleet(node("n1", patch));
        objects.push(older.clone());
        let (servers, run) = settled(objects);
        let found = node_in(&servers);
        let said = condition(&found, "ConfigurationConsistent");
        assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!(reason)));
        assert!(said["message"].as_str().unwrap().contains(message), "{said}");
        assert!(said["next"].is_string(), "{said}");
        let event = run.events.last().unwrap();
        assert_eq!(
            (event.reason, event.importance),
            ("ConfigurationInconsistent", Importance::Warning)
        );
    }
}

#[test]
fn the_older_of_two_nodes_at_a_port_is_consistent() {
    let younger = node(
        "n2",
        json!({"metadata": {"creationTimestamp": "1970-01-12T13:40:00Z"},
        "spec": {"dpus": [{"rack": "r1", "dpu": "d1", "port": "p-n1", "mac": "02:00:00:00:00:02"}]}}),
    );
    let mut objects = fleet(node("n1", json!({})));
    objects.push(younger);
    let (servers, _) = settled(objects);
    assert_eq!(condition(&node_in(&servers), "ConfigurationConsistent")["status"], "True");
    let n1 = servers.get(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide("n1")).unwrap();
    let woken = Pool.subjects(&Watch::all(Place::HUB, &PHYSICAL_NODE), &n1, &servers.view());
    assert_eq!(woken, ["n1", "n2"].map(Subject::from));
}

#[test]
fn a_hub_that_was_restored_raises_epoch_and_floor_before_it_gives_anything() {
    let (servers, run) = settled(reported(node("n1", json!({})), &clean("n1", 9)));
    let status = &node_in(&servers)["status"];
    assert_eq!((&status["epoch"], &status["floor"]), (&json!(9), &json!(9)));
    assert_eq!(phase(&servers), "Available", "both DPUs are clean at that floor");
    assert_eq!(run.writes.len(), 2);
    let (servers, _) = settled(reported(node("n1", json!({})), &open("n1", 9)));
    let status = &node_in(&servers)["status"];
    assert_eq!(
        (&status["epoch"], &status["floor"], phase(&servers)),
        (&json!(9), &json!(9), json!("Releasing"))
    );
    // Its assignment is at an epoch that a DPU has closed since.
    let (servers, _) = settled(vec![
        rack(json!({})),
        report("d1", json!([clean("n1", 7)])),
        report("d2", json!([open("n1", 7)])),
        in_use("n1", json!({})),
    ]);
    let status = &node_in(&servers)["status"];
    assert_eq!(
        (&status["epoch"], &status["floor"], phase(&servers)),
        (&json!(7), &json!(7), json!("Releasing"))
    );
}

#[test]
fn what_a_dpu_reports_of_another_node_raises_nothing() {
    let mut other = clean("n1", 9);
    other["node"]["uid"] = json!("another");
    let (_, run) = settled(reported(node("n1", json!({})), &other));
    assert!(run.writes.is_empty(), "{:?}", run.writes);
}

#[test]
fn people_end_an_epoch() {
    for patch in [
        json!({"spec": {"reclaimEpoch": 7}}),
        json!({"spec": {"quarantine": {"reason": "the fan is loud"}}}),
        json!({"metadata": {"deletionTimestamp": SINCE}}),
    ] {
        let (servers, run) = settled(reported(in_use("n1", patch), &open("n1", 7)));
        assert_eq!(
            (phase(&servers), &node_in(&servers)["status"]["floor"]),
            (json!("Releasing"), &json!(7))
        );
        assert_eq!(run.events[0].reason, "NodeRevoked");
    }
}

#[test]
fn to_reclaim_an_epoch_does_not_hit_the_next_owner() {
    let (servers, _) =
        settled(reported(in_use("n1", json!({"spec": {"reclaimEpoch": 6}})), &open("n1", 7)));
    assert_eq!(phase(&servers), "Bound");
}

#[test]
fn an_epoch_with_a_cluster_on_the_node_is_not_ended_before_it_is_drained() {
    let reclaimed = json!({"spec": {"reclaimEpoch": 7}, "status": {"cluster": reference("a")}});
    let mut objects = reported(in_use("n1", reclaimed), &open("n1", 7));
    objects.push(cluster("n1", json!({})));
    let (servers, run) = settled(objects);
    let status = &node_in(&servers)["status"];
    assert_eq!((&status["phase"], &status["floor"]), (&json!("Draining"), &json!(6)));
    assert_eq!(cluster_in(&servers)["spec"]["drains"][0]["requester"], "nodes/uid-n1/7");
    assert_eq!(run.waits_seconds, Some(3600));
}

#[test]
fn the_first_cluster_that_names_a_bound_node_is_on_it() {
    let mut objects = reported(in_use("n1", json!({})), &open("n1", 7));
    objects.push(cluster("n1", json!({"metadata": {"name": "b", "uid": "uid-b"}})));
    objects.push(cluster("n1", json!({})));
    let (servers, _) = settled(objects);
    assert_eq!(node_in(&servers)["status"]["cluster"], reference("a"));
}

#[test]
fn a_cluster_that_names_another_epoch_or_a_machine_of_another_tenant_is_not_on_the_node() {
    let other_epoch = json!({"spec": {"machines": [{"node": reference("n1"), "epoch": 6}]}});
    let mixed = json!({"spec": {"machines": [{"node": reference("n1"), "epoch": 7},
        {"node": reference("n2"), "epoch": 7}]}});
    for patch in [other_epoch, mixed] {
        let mut objects = reported(in_use("n1", json!({})), &open("n1", 7));
        objects
            .push(in_use("n2", json!({"status": {"assignment": {"tenant": reference("blue")}}})));
        objects.push(cluster("n1", patch));
        let (servers, _) = settled(objects);
        assert!(node_in(&servers)["status"]["cluster"].is_null());
    }
}

#[test]
fn a_cluster_that_left_a_node_is_taken_off_it_by_a_live_read() {
    let with_cluster = json!({"status": {"cluster": reference("a")}});
    let objects = || reported(in_use("n1", with_cluster.clone()), &open("n1", 7));
    let (servers_left, _) = settled(objects());
    assert!(node_in(&servers_left)["status"]["cluster"].is_null());
    let hub = servers(objects());
    let step = hub.view().step_with(&Pool, "n1", &LiveReads::default());
    let Step::LiveRead { reads, .. } = step else { panic!("{step:?}") };
    let live = servers(vec![cluster("n1", json!({}))]);
    let mut live_reads = LiveReads::default();
    for read in reads {
        live.view().read_live(read, |_| PowerState::On, &mut live_reads);
    }
    let step = hub.view().step_with(&Pool, "n1", &live_reads);
    assert!(matches!(step, Step::Rest { .. }), "it is still on the node: {step:?}");
}

#[test]
fn a_drain_that_nobody_needs_is_taken_back() {
    for node in
        [in_use("n1", json!({"status": {"cluster": reference("a")}})), node("n1", json!({}))]
    {
        let others = json!([{"requester": "rollouts/a", "reason": "an upgrade"},
            {"requester": "nodes/uid-n1/7", "reason": "it is to end"}, {"requester": "nodes/uid-n2/7", "reason": "too"}]);
        let mut objects = reported(node, &open("n1", 6));
        objects.push(cluster("n1", json!({"spec": {"drains": others}})));
        let (servers, _) = settled(objects);
        let left = cluster_in(&servers)["spec"]["drains"].clone();
        let left: Vec<&str> =
            left.as_array().unwrap().iter().map(|it| it["requester"].as_str().unwrap()).collect();
        assert_eq!(left, ["rollouts/a", "nodes/uid-n2/7"]);
    }
}

#[test]
fn a_drain_is_not_taken_back_where_the_cache_does_not_show_that_it_is_needed() {
    let bound = in_use("n1", json!({"status": {"cluster": reference("a")}}));
    let with_cluster = |node: Value| {
        let mut objects = reported(node, &open("n1", 7));
        objects.push(cluster("n1", drained()));
        servers(objects)
    };
    let (hub, live) = (with_cluster(bound), with_cluster(draining(json!({}))));
    let step = hub.view().step_with(&Pool, "n1", &LiveReads::default());
    let Step::LiveRead { reads, .. } = step else { panic!("the node is read live: {step:?}") };
    let mut live_reads = LiveReads::default();
    for read in reads {
        live.view().read_live(read, |_| PowerState::On, &mut live_reads);
    }
    let step = hub.view().step_with(&Pool, "n1", &live_reads);
    assert!(!matches!(step, Step::Act(_)), "the drain stays: {step:?}");
}

#[test]
fn a_drain_ends_once_the_cluster_is_drained_gone_or_not_on_the_node() {
    let left = json!({"spec": {"machines": []}});
    let another = json!({"metadata": {"uid": "another"}});
    for cluster in [
        Some(cluster("n1", drained())),
        Some(cluster("n1", left)),
        Some(cluster("n1", another)),
        None,
    ] {
        let mut objects = reported(draining(json!({})), &open("n1", 7));
        objects.extend(cluster);
        let (servers, run) = settled(objects);
        let status = &node_in(&servers)["status"];
        assert_eq!((&status["phase"], &status["floor"]), (&json!("Releasing"), &json!(7)));
        assert!(status["undrainedBy"].is_null());
        assert_eq!(run.events[0].reason, "NodeRevoked");
    }
}

#[test]
fn a_cluster_that_was_drained_at_an_older_generation_or_for_another_is_not_drained() {
    let older = patched(drained(), &json!({"metadata": {"generation": 2}}));
    let for_another = patched(drained(), &json!({"status": {"drained": ["rollouts/a"]}}));
    for patch in [older, for_another] {
        let mut objects = reported(draining(json!({})), &open("n1", 7));
        objects.push(cluster("n1", patch));
        let (servers, run) = settled(objects);
        assert_eq!((phase(&servers), run.writes.len()), (json!("Draining"), 0));
        let blocked = node_in(&servers);
        assert!(condition(&blocked, "ReleaseBlocked").is_null(), "the rack allows an hour");
    }
}

#[test]
fn that_a_cluster_is_drained_is_read_live() {
    let mut objects = reported(draining(json!({})), &open("n1", 7));
    objects.push(cluster("n1", drained()));
    let hub = servers(objects);
    let step = hub.view().step_with(&Pool, "n1", &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
}

#[test]
fn a_person_ends_a_drain() {
    for attestation in ["MachinePoweredOff", "AcceptUndrained"] {
        let mut objects = reported(draining(json!({})), &open("n1", 7));
        objects.push(cluster("n1", json!({})));
        objects.push(fence("n1", json!({"spec": {"dpu": null, "attestation": attestation}})));
        let (servers, run) = settled(objects);
        let status = &node_in(&servers)["status"];
        assert_eq!((&status["phase"], &status["floor"]), (&json!("Releasing"), &json!(7)));
        assert_eq!(status["undrainedBy"], reference("fence"));
        assert_eq!(outcome(&servers).0, "Applied");
        assert!(run.events.iter().any(|event| event.reason == "NodeFenced"), "{:?}", run.events);
    }
}

#[test]
fn the_network_is_ready_once_all_dpus_have_the_node_programmed_for_its_assignment() {
    let (servers, _) = settled(reported(bound("n1", json!({})), &open("n1", 7)));
    assert_eq!(condition(&node_in(&servers), "NetworkReady")["status"], "True");
    let mut other_claim = open("n1", 7);
    other_claim["applied"]["claimUID"] = json!("another");
    for port in [other_claim, open("n1", 6), clean("n1", 6)] {
        let (servers, run) = settled(reported(bound("n1", json!({})), &port));
        assert_eq!(
            condition(&node_in(&servers), "NetworkReady")["reason"],
            "Programming",
            "{:?}",
            run.writes
        );
    }
    let (servers, _) = settled(reported(in_use("n1", json!({})), &clean("n1", 6)));
    let ready = condition(&node_in(&servers), "NetworkReady").clone();
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("Interrupted")));
    assert!(ready["message"].as_str().unwrap().contains("in DPU r1/d1, r1/d2"), "{ready}");
}

#[test]
fn a_node_returns_once_each_dpu_is_clean_of_this_very_node_at_its_floor() {
    let (servers, run) = settled(reported(releasing("n1", json!({})), &clean("n1", 7)));
    let status = &node_in(&servers)["status"];
    assert_eq!(phase(&servers), "Available");
    assert!(
        status["assignment"].is_null() && status["cluster"].is_null() && status["fenced"].is_null()
    );
    assert_eq!(run.events[0].reason, "NodeReturned");
    let mut another = clean("n1", 7);
    another["node"]["uid"] = json!("another");
    for port in [clean("n1", 6), open("n1", 7), another] {
        let one = vec![
            rack(json!({})),
            report("d1", json!([clean("n1", 7)])),
            report("d2", json!([port])),
        ];
        let mut hub = servers_with(
            one,
            releasing("n1", json!({"status": {"phaseSince": "1970-01-12T13:46:40Z"}})),
        );
        let run = hub.settle(&Pool, &mut nobody(), "n1");
        assert_eq!((phase(&hub), run.waits_seconds), (json!("Releasing"), Some(600)), "{port}");
    }
}

fn servers_with(mut objects: Vec<Value>, node: Value) -> TestServers {
    objects.push(node);
    servers(objects)
}

#[test]
fn a_node_that_is_quarantined_returns_outside_of_the_pool_and_from_there_into_it() {
    let ill = json!({"spec": {"quarantine": {"reason": "the fan is loud"}}});
    let (mut servers, _) = settled(reported(releasing("n1", ill), &clean("n1", 7)));
    assert_eq!(phase(&servers), "Quarantined");
    let name = Name::cluster_wide("n1");
    servers.change(Place::HUB, &PHYSICAL_NODE, &name, &json!({"spec": {"quarantine": null}}));
    servers.settle(&Pool, &mut nobody(), "n1");
    assert_eq!(phase(&servers), "Available");
    servers.change(
        Place::HUB,
        &PHYSICAL_NODE,
        &name,
        &json!({"spec": {"quarantine": {"reason": "again"}}}),
    );
    servers.settle(&Pool, &mut nobody(), "n1");
    assert_eq!(phase(&servers), "Quarantined");
}

#[test]
fn a_node_that_is_deleted_stays_until_it_is_clean() {
    let deleted = json!({"metadata": {"deletionTimestamp": SINCE}});
    let (servers, _) = settled(fleet(releasing("n1", deleted.clone())));
    assert_eq!(phase(&servers), "Releasing");
    let (servers, _) = settled(reported(releasing("n1", deleted), &clean("n1", 7)));
    assert_eq!(node_in(&servers), Value::Null);
}

fn silent(fences: Vec<Value>) -> Vec<Value> {
    let mut objects =
        vec![rack(json!({})), report("d1", json!([])), report("d2", json!([clean("n1", 7)]))];
    objects.push(releasing("n1", json!({})));
    objects.extend(fences);
    objects
}

#[test]
fn a_dpu_that_a_person_saw_off_is_waited_for_no_more() {
    let (servers, run) = settled(silent(vec![fence("n1", json!({}))]));
    assert_eq!((phase(&servers), outcome(&servers).0), (json!("Available"), json!("Applied")));
    let reasons: Vec<&str> = run.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["NodeFenced", "NodeReturned"]);
}

#[test]
fn a_fence_that_names_another_state_is_refused_with_both_values() {
    let draining = draining(json!({}));
    let cases = [
        (releasing("n1", json!({})), json!({"epoch": 6}), "epoch is 7, you named 6"),
        (
            releasing("n1", json!({})),
            json!({"node": {"uid": "another"}}),
            "is uid-n1, you named another",
        ),
        (
            releasing("n1", json!({})),
            json!({"phaseSince": "1970-01-12T13:29:59Z"}),
            "phaseSince is 1970-01-12T13:30:00Z (Releasing), you named 1970-01-12T13:29:59Z",
        ),
        (
            releasing("n1", json!({})),
            json!({"dpu": {"dpu": "d3"}}),
            "wired through DPU r1/d1, r1/d2, you named r1/d3",
        ),
        (releasing("n1", json!({})), json!({"dpu": {"dpu": "d2"}}), "DPU r1/d2 has reported"),
        (
            releasing("n1", json!({})),
            json!({"dpu": null, "attestation": "MachinePoweredOff"}),
            "waits for DPU r1/d1: MachinePoweredOff says nothing of a DPU",
        ),
        (draining, json!({}), "power counts only once the floor is raised"),
        (in_use("n1", json!({})), json!({}), "revoke it first with interlock node reclaim n1"),
        (
            node("n1", json!({"status": {"epoch": 7, "floor": 7}})),
            json!({}),
            "there is nothing to release",
        ),
    ];
    for (node, spec, because) in cases {
        let mut objects =
            vec![rack(json!({})), report("d1", json!([])), report("d2", json!([clean("n1", 7)]))];
        if node["status"]["phase"] == "Draining" || node["status"]["phase"] == "Bound" {
            objects[2] = report("d2", json!([open("n1", 7)]));
        }
        let before = node["status"]["phase"].clone();
        objects.extend([node, cluster("n1", json!({})), fence("n1", json!({ "spec": spec }))]);
        let (servers, run) = settled(objects);
        let (outcome, why) = outcome(&servers);
        assert_eq!(outcome, "Refused", "{because}");
        assert!(why.contains(because), "{why}");
        assert_eq!(phase(&servers), before);
        assert!(run.events.iter().any(|event| event.reason == "FenceRefused"), "{:?}", run.events);
    }
}

#[test]
fn a_fence_of_a_node_that_is_gone_is_refused() {
    let (servers, _) = settled(vec![fence("n1", json!({}))]);
    assert_eq!(outcome(&servers), (json!("Refused"), "there is no PhysicalNode n1".to_owned()));
}

#[test]
fn a_refusal_rests_on_a_live_read() {
    let hub = servers(silent(vec![fence("n1", json!({"spec": {"epoch": 8}}))]));
    let step = hub.view().step_with(&Pool, "n1", &LiveReads::default());
    let Step::LiveRead { reads, .. } = step else { panic!("{step:?}") };
    let later = json!({"status": {"epoch": 8, "floor": 8, "assignment": {"epoch": 8}}});
    let live = servers(vec![releasing("n1", later)]);
    let mut live_reads = LiveReads::default();
    for read in reads {
        live.view().read_live(read, |_| PowerState::On, &mut live_reads);
    }
    let Step::Act(effect) = hub.view().step_with(&Pool, "n1", &live_reads) else { return };
    let Action::Write(write) = effect.action else { panic!() };
    assert_ne!(write.address().kind, NODE_FENCE, "it fits the node as it is now");
}

#[test]
fn an_answered_fence_is_left_alone() {
    let (_, run) = settled(silent(vec![fence("n1", json!({"status": {"outcome": "Refused"}}))]));
    assert!(
        run.writes.iter().all(|write| write.address().kind == PHYSICAL_NODE),
        "{:?}",
        run.writes
    );
}

#[test]
fn a_release_that_takes_too_long_says_who_has_not_reported_and_what_to_do() {
    let (mut servers, run) = settled(silent(Vec::new()));
    assert_eq!(phase(&servers), "Releasing", "a timer does not return");
    let blocked = condition(&node_in(&servers), "ReleaseBlocked").clone();
    assert_eq!(
        blocked["message"],
        "DPU r1/d1 has not reported node n1 clean at epoch 7. The node is Releasing since 1970-01-12T13:30:00Z"
    );
    assert_eq!(
        blocked["next"],
        "if the DPU is off: interlock node fence n1 --dpu r1/d1 --epoch 7 --attest dpu-powered-off --reason \"...\""
    );
    assert_eq!(
        (run.events[0].reason, run.events[0].importance),
        ("ReleaseBlocked", Importance::Warning)
    );
    servers.put(Place::HUB, report("d1", json!([clean("n1", 7)])));
    servers.settle(&Pool, &mut nobody(), "n1");
    assert_eq!(phase(&servers), "Available");
    assert_eq!(condition(&node_in(&servers), "ReleaseBlocked")["status"], "False");
}

#[test]
fn a_drain_that_takes_too_long_names_the_cluster_and_its_grants() {
    let mut objects = reported(
        draining(json!({"status": {"phaseSince": "1970-01-12T12:00:00Z"}})),
        &open("n1", 7),
    );
    objects.push(cluster("n1", json!({})));
    let (servers, _) = settled(objects);
    assert_eq!(phase(&servers), "Draining", "a timer does not revoke");
    let blocked = condition(&node_in(&servers), "ReleaseBlocked").clone();
    assert_eq!(blocked["reason"], "NotDrained");
    assert!(
        blocked["message"]
            .as_str()
            .unwrap()
            .contains("WorkloadCluster a on node n1 is not drained: it holds 3 grants")
    );
    assert_eq!(
        blocked["next"],
        "if the machine is off: interlock node fence n1 --epoch 7 --attest machine-powered-off --reason \"...\""
    );
}

fn commanded(power: PowerState, since: &str) -> (TestServers, Run<Power>) {
    let mut objects = silent(Vec::new());
    objects[0] = rack(json!({"spec": {"fencing": {"power": "Command"}}}));
    objects[3]["status"]["phaseSince"] = json!(since);
    let mut servers = servers(objects);
    let run = servers.settle(&Pool, &mut Command(power), "n1");
    (servers, run)
}

#[test]
fn a_dpu_that_the_command_sees_off_after_the_floor_was_raised_is_waited_for_no_more() {
    let (servers, run) = commanded(PowerState::Off, SINCE);
    assert_eq!((phase(&servers), run.actions.len()), (json!("Available"), 0));
    assert!(run.events[0].note.contains("off by the power command"), "{:?}", run.events);
}

#[test]
fn a_dpu_that_is_silent_for_too_long_is_turned_off_where_the_rack_says_command() {
    let (servers, run) = commanded(PowerState::On, SINCE);
    assert_eq!(run.actions, [PowerOff(interlock_api::nodes::DpuName::new("r1", "d1"))]);
    assert_eq!(phase(&servers), "Available");
    let reasons: Vec<&str> = run.events.iter().map(|event| event.reason).collect();
    assert_eq!(reasons, ["ReleaseBlocked", "NodeFenced", "NodeReturned"], "it is said first");
    let (servers, run) = commanded(PowerState::On, "1970-01-12T13:46:00Z");
    assert_eq!(
        (phase(&servers), run.actions.len()),
        (json!("Releasing"), 0),
        "its time is not over"
    );
}

#[test]
fn a_command_that_knows_nothing_proves_nothing() {
    let (servers, run) = commanded(PowerState::Unknown("no route".to_owned()), SINCE);
    assert_eq!((phase(&servers), run.waits_seconds), (json!("Releasing"), Some(60)));
    let blocked = condition(&node_in(&servers), "ReleaseBlocked").clone();
    assert!(
        blocked["message"].as_str().unwrap().contains("The power command says: no route"),
        "{blocked}"
    );
}

#[test]
fn reports_clusters_racks_and_fences_wake_their_nodes() {
    let mut objects = reported(bound("n1", json!({})), &open("n1", 7));
    objects.extend([
        cluster("n1", json!({})),
        fence("n1", json!({})),
        node("n2", json!({"spec": {"rack": "r2", "dpus": []}})),
    ]);
    let hub = servers(objects);
    for (kind, name) in
        [(RACK, "r1"), (DPU_REPORT, "r1.d1"), (WORKLOAD_CLUSTER, "a"), (NODE_FENCE, "fence")]
    {
        let object = hub.get(Place::HUB, &kind, &Name::cluster_wide(name)).unwrap();
        let woken = Pool.subjects(&Watch::all(Place::HUB, &kind), &object, &hub.view());
        let rack = (kind == RACK).then(|| Subject::from("/rack/r1"));
        assert_eq!(
            woken,
            [Subject::from("n1")].into_iter().chain(rack).collect::<Vec<_>>(),
            "{kind}"
        );
    }
}

#[test]
fn a_heartbeat_of_a_cluster_wakes_nobody() {
    let of = |patch: Value| -> kube_core::DynamicObject {
        serde_json::from_value(cluster("n1", patch)).unwrap()
    };
    let before = of(json!({}));
    let heartbeat = json!({"status": {"heartbeat": {"sequence": 8}}});
    assert!(is_same_to_nodes(&before, &of(heartbeat)));
    for patch in [drained(), json!({"spec": {"machines": []}}), json!({"status": {"grants": 2}})] {
        assert!(!is_same_to_nodes(&before, &of(patch)));
    }
}

#[test]
fn a_rack_that_is_deleted_stays_while_a_node_names_it() {
    let fresh = rack(json!({"metadata": {"finalizers": null}}));
    let mut hub = servers(vec![fresh, node("n1", json!({}))]);
    let rack_in = |hub: &TestServers| hub.json(Place::HUB, &RACK, &Name::cluster_wide("r1"));
    hub.settle(&Pool, &mut nobody(), "/rack/r1");
    assert_eq!(rack_in(&hub)["metadata"]["finalizers"], json!(["interlock.dev/node-in-use"]));
    hub.delete(Place::HUB, &RACK, &Name::cluster_wide("r1"));
    hub.settle(&Pool, &mut nobody(), "/rack/r1");
    let said = condition(&rack_in(&hub), "InUse").clone();
    assert_eq!(said["message"], "Rack r1 is being deleted, and has nodes: n1");
    let n1 = hub.get(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide("n1")).unwrap();
    let woken = Pool.subjects(&Watch::all(Place::HUB, &PHYSICAL_NODE), &n1, &hub.view());
    assert_eq!(woken, ["/rack/r1", "n1"].map(Subject::from));
    hub.change(
        Place::HUB,
        &PHYSICAL_NODE,
        &Name::cluster_wide("n1"),
        &json!({"spec": {"rack": "r2"}}),
    );
    hub.settle(&Pool, &mut nobody(), "/rack/r1");
    assert_eq!(rack_in(&hub), Value::Null);
}

#[test]
fn broken_objects_do_not_break_it() {
    let mut objects = silent(vec![fence("n1", json!({}))]);
    objects.push(cluster("n1", drained()));
    survives(&Pool, &nobody(), &objects);
    objects[3] = draining(json!({}));
    survives(&Pool, &nobody(), &objects);
}
