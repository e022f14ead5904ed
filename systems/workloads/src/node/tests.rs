//! The Node of a machine.

use super::*;
use crate::recorded::judged_again;
use interlock_kernel::testing::{NoMachine, Run, TestServers, condition, survives};

fn machine() -> Machine {
    Machine {
        name: "local".to_owned(),
        processors: 4,
        memory_bytes: 8 << 30,
        disk_bytes: 100 << 30,
        pods: 110,
        boot_id: "b-1".to_owned(),
        version: "v1.35.0+interlock".to_owned(),
        architecture: "amd64".to_owned(),
        operating_system: "linux".to_owned(),
        kernel_version: String::new(),
    }
}

fn room() -> LocalNode {
    LocalNode::new(machine())
}

fn name() -> Name {
    Name::cluster_wide("local")
}

fn settled(cluster: &mut TestServers, room: &LocalNode) -> Run<Nothing> {
    cluster.settle(room, &mut NoMachine, "local")
}

fn node(cluster: &TestServers) -> Value {
    cluster.json(Place::CLUSTER, &NODE, &name())
}

/// A Node as this controller makes it.
fn made() -> (TestServers, Run<Nothing>) {
    let mut cluster = TestServers::of(&room());
    let run = settled(&mut cluster, &room());
    (cluster, run)
}

#[test]
fn a_machine_gets_a_node_that_is_ready() {
    let (cluster, run) = made();
    let node = node(&cluster);
    assert_eq!(run.writes.len(), 1);
    assert_eq!(node["metadata"]["labels"][NODE_LABEL], "true");
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "local");
    assert_eq!(condition(&node, "Ready")["status"], "True");
    assert_eq!(condition(&node, "DiskPressure")["status"], "False");
    assert_eq!(node["status"]["addresses"][0]["address"], "127.0.0.1");
    let resources = json!({"cpu": "4", "memory": "8388608Ki", "ephemeral-storage": "104857600Ki",
        "pods": "110"});
    assert_eq!(node["status"]["capacity"], resources);
    assert_eq!(node["status"]["allocatable"], resources);
    assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.35.0+interlock");
}

#[test]
fn it_is_made_only_after_a_live_read_shows_none() {
    let cluster = TestServers::of(&room());
    let step = cluster.view().step_with(&room(), "local", &LiveReads::default());
    assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
    let (other, _) = made();
    let mut reads = LiveReads::default();
    let found = other.get(Place::CLUSTER, &NODE, &name());
    reads.objects.insert(room().address(), found);
    let step = cluster.view().step_with(&room(), "local", &reads);
    assert!(matches!(step, Step::Wait { .. }), "{step:?}");
}

#[test]
fn at_rest_nothing_is_written_however_long_it_takes() {
    let (mut cluster, _) = made();
    cluster.pass(1_000_000);
    assert!(settled(&mut cluster, &room()).writes.is_empty());
}

#[test]
fn another_boot_is_reported_and_a_condition_that_holds_keeps_its_time() {
    let (mut cluster, _) = made();
    let before = condition(&node(&cluster), "Ready").clone();
    cluster.pass(100);
    let room = LocalNode::new(Machine { boot_id: "b-2".to_owned(), ..machine() });
    assert_eq!(settled(&mut cluster, &room).writes.len(), 1);
    let node = node(&cluster);
    assert_eq!(node["status"]["nodeInfo"]["bootID"], "b-2");
    assert_eq!(*condition(&node, "Ready"), before);
}

#[test]
fn what_somebody_else_wrote_is_put_right_or_left_alone() {
    for (change, writes) in [
        (json!({"metadata": {"labels": {NODE_LABEL: null}}}), 1),
        (json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}), 1),
        (json!({"status": {"addresses": null}}), 1),
        (json!({"metadata": {"labels": {"rack": "r1"}}, "spec": {"unschedulable": true}}), 0),
        (json!({"status": {"images": [], "nodeInfo": {"swap": {"capacity": 1}}}}), 0),
        (json!({"status": {"nodeInfo": {"kubeProxyVersion": null, "kernelVersion": null}}}), 0),
    ] {
        let (mut cluster, _) = made();
        cluster.change(Place::CLUSTER, &NODE, &name(), &change);
        assert_eq!(settled(&mut cluster, &room()).writes.len(), writes, "{change}");
        let node = node(&cluster);
        assert_eq!(condition(&node, "Ready")["status"], "True", "{change}");
        assert_eq!(node["metadata"]["labels"][NODE_LABEL], "true");
        let rack = &change["metadata"]["labels"]["rack"];
        assert_eq!(node["metadata"]["labels"]["rack"], *rack, "labels of others stay");
    }
}

#[test]
fn a_node_that_is_being_deleted_is_left_alone_and_made_again() {
    let (mut cluster, _) = made();
    let held = json!({"metadata": {"finalizers": ["x"], "labels": {NODE_LABEL: null}}});
    cluster.change(Place::CLUSTER, &NODE, &name(), &held);
    cluster.delete(Place::CLUSTER, &NODE, &name());
    assert!(settled(&mut cluster, &room()).writes.is_empty());
    cluster.change(Place::CLUSTER, &NODE, &name(), &json!({"metadata": {"finalizers": null}}));
    cluster.delete(Place::CLUSTER, &NODE, &name());
    assert_eq!(settled(&mut cluster, &room()).writes.len(), 1);
}

#[test]
fn broken_objects_do_not_break_it() {
    let (cluster, _) = made();
    survives(&room(), &NoMachine, &[node(&cluster)]);
    judged_again(&room(), &[node(&cluster)]);
}
