//! Each row of what a DPU does about its ports.

mod reported;
mod strangers;

use super::decide::Decision;
use super::*;
use crate::fake_dpu::{
    Behind, FakeDpu, MAC, VNI, action, bound, entry, failure, idle, node, report, revoked,
};
use crate::outside::{Action, Entry, Gate, Network, Tag, Term};
use interlock_kernel::testing::{Run, TestServers, condition, patched, survives};
use interlock_kernel::{Name, Write};
use serde_json::{Value, json};

fn room() -> Ports {
    Ports { here: DpuName::new("r1", "d1") }
}

fn empty() -> Value {
    report(&json!({}))
}

fn behind(dpu: FakeDpu, cached: Vec<Value>, live: Vec<Value>) -> Behind<Ports> {
    Behind::of(&room(), dpu, cached, live)
}

/// A hub whose caches are never behind, and a DPU.
struct World {
    hub: TestServers,
    dpu: FakeDpu,
}

impl World {
    fn with(dpu: FakeDpu, objects: Vec<Value>) -> World {
        World { hub: TestServers::of(&room()).with(objects), dpu }
    }

    fn settle(&mut self, subject: &str) -> Run<Dpu> {
        self.hub.settle(&room(), &mut self.dpu, subject)
    }

    fn put(&mut self, object: Value) {
        self.hub.put(Place::HUB, object);
    }

    fn report(&self) -> Value {
        self.hub.json(Place::HUB, &DPU_REPORT, &Name::cluster_wide("r1.d1"))
    }

    fn ready(&self) -> String {
        let report = self.report();
        let ready = condition(&report, "Ready");
        format!("{} {}: {}", ready["status"], ready["reason"], ready["message"]).replace('"', "")
    }

    fn gate(&mut self) -> Gate {
        self.dpu.p1().gate.clone()
    }
}

/// A step that leaves the hardware as it is: it may report what is there.
fn changes_nothing(step: Step<Dpu>) -> bool {
    match step {
        Step::Act(effect) => matches!(effect.action, interlock_kernel::Action::Write(_)),
        Step::Rest { .. } | Step::Wait { .. } => true,
        Step::LiveRead { .. } => false,
    }
}

fn with_uid(node: Value, uid: &str) -> Value {
    patched(node, &json!({"metadata": {"uid": uid}}))
}

// Row 1: unreadable, or of two nodes.

#[test]
fn a_port_that_the_dpu_does_not_have_is_reported_with_who_named_it() {
    let mut world = World::with(FakeDpu::with(&["p2"]), vec![node("n1", &json!({})), empty()]);
    let run = world.settle("p1");
    assert!(run.actions.is_empty(), "{:?}", run.actions);
    assert_eq!(
        world.ready(),
        "False PortNotFound: port p1: the DPU has no such port; spec.dpus of PhysicalNode n1 names it"
    );
}

#[test]
fn a_port_of_two_nodes_is_given_to_neither() {
    let nodes = vec![node("n1", &json!({})), node("n2", &json!({})), empty()];
    let mut world = World::with(FakeDpu::with(&["p1"]), nodes.clone());
    let run = world.settle("p1");
    assert!(run.actions.is_empty(), "{:?}", run.actions);
    let words = "port p1: it is in spec.dpus of the PhysicalNodes n1 and n2";
    assert_eq!(world.ready(), format!("False PortOfTwoNodes: {words}"));
    // The one that is in the record keeps it.
    let mut world = World::with(FakeDpu::of_n1(0).open(entry(7)), nodes);
    world.put(revoked("n1", 7));
    let run = world.settle("p1");
    assert_eq!(world.gate(), Gate::Closed, "{:?}", run.actions);
    assert_eq!(world.dpu.p1().record.node.as_deref(), Some("uid-n1"));
}

#[test]
fn the_words_of_the_driver_are_reported() {
    let mut dpu = FakeDpu::of_n1(0);
    dpu.answer.filter = Some(failure("NoPacketFilter", "nft: command not found; install nftables"));
    dpu.p1().failure = Some(failure("KernelRefused", "p1: Operation not permitted"));
    let mut world = World::with(dpu, vec![node("n1", &json!({})), empty()]);
    world.settle("p1");
    assert_eq!(
        world.ready(),
        "False NoPacketFilter: nft: command not found; install nftables; \
         port p1: p1: Operation not permitted"
    );
    world.dpu.answer.filter = None;
    world.dpu.p1().failure = None;
    let run = world.settle("p1");
    assert_eq!(run.writes.len(), 1, "what is put right is reported");
    assert_eq!(world.ready(), "True PortsRead: the driver reads and opens all ports");
}

// Row 2: the record was lost, or is of another node.

#[test]
fn a_port_is_adopted_with_the_floor_that_a_live_read_shows() {
    // The cache shows the node before it was revoked: floor 6. The record may have been at 7.
    let mut dpu = FakeDpu::of_n1(7);
    dpu.lose_record();
    let term = dpu.p1().record.term.clone();
    let mut world = behind(dpu, vec![bound("n1", 7), empty()], vec![revoked("n1", 7)]);
    let done = action(world.step("p1"));
    let node = "uid-n1".to_owned();
    assert_eq!(done, Action::Adopt { port: "p1".to_owned(), term, node, floor: 7 });
    // The term is read before the hub: an adoption that lands after another one is refused.
    assert_eq!(world.read(), ["ask p1", "ask p1", "PhysicalNode n1"]);
}

#[test]
fn the_term_of_an_adoption_is_the_one_that_was_read_before_the_hub() {
    let dpu = FakeDpu::with(&["p1"]);
    let mut world =
        behind(dpu, vec![node("n1", &json!({})), empty()], vec![node("n1", &json!({}))]);
    // The record is replaced between the two reads of the port, and again after the second.
    let step = world.step_while("p1", |dpu, read| match read {
        1 => dpu.p1().record.term = Term("second".to_owned()),
        2 => dpu.p1().record.term = Term("third".to_owned()),
        _ => {}
    });
    let Action::Adopt { term, .. } = action(step) else { panic!("no adoption") };
    assert_eq!(term, Term("second".to_owned()));
}

#[test]
fn a_record_of_a_node_that_was_made_again_is_adopted_with_the_new_uid() {
    let again = with_uid(node("n1", &json!({"status": {"floor": 3, "epoch": 3}})), "uid-again");
    let dpu = FakeDpu::of_n1(9).open(entry(10));
    let mut world = behind(dpu, vec![again.clone(), empty()], vec![again]);
    let Action::Adopt { node, floor, .. } = action(world.step("p1")) else { panic!() };
    assert_eq!((node.as_str(), floor), ("uid-again", 3));
}

#[test]
fn a_node_that_the_hub_does_not_have_there_is_not_adopted() {
    let elsewhere =
        json!({"spec": {"dpus": [{"rack": "r1", "dpu": "d1", "port": "p2", "mac": MAC}]}});
    let other_rack = json!({"spec": {"rack": "r2"}});
    for live in [vec![], vec![node("n1", &elsewhere)], vec![node("n1", &other_rack)]] {
        let dpu = FakeDpu::with(&["p1"]);
        let mut world = behind(dpu, vec![node("n1", &json!({}))], live);
        assert_eq!(idle(world.step("p1")), "the cache does not show yet what the hub says");
    }
    // And one that the record names after all: the cache shows an older node of that name.
    let cached = with_uid(node("n1", &json!({})), "uid-before");
    let mut world = behind(FakeDpu::of_n1(3), vec![cached], vec![node("n1", &json!({}))]);
    assert_eq!(idle(world.step("p1")), "the cache does not show yet what the hub says");
}

#[test]
fn a_lost_record_has_an_event_and_a_first_one_has_none() {
    let mut world = World::with(FakeDpu::with(&["p1"]), vec![bound("n1", 7), empty()]);
    let run = world.settle("p1");
    assert_eq!(run.actions.len(), 1);
    assert!(run.events.iter().all(|event| event.reason != "RecordLost"), "{:?}", run.events);
    world.dpu.lose_record();
    let run = world.settle("p1");
    let told: Vec<_> = run.events.iter().filter(|event| event.reason == "RecordLost").collect();
    assert_eq!(told.len(), 1, "{:?}", run.events);
    assert_eq!(
        told[0].note,
        "DPU r1/d1 lost the record of port p1; the port is closed, and is opened for node n1 again if the node is \
         still assigned"
    );
    assert_eq!((told[0].uid.as_str(), &*told[0].about.name.name), ("uid-n1", "n1"));
}

// Row 3: what is revoked is closed.

#[test]
fn a_revoked_epoch_is_closed_at_the_floor_of_the_cache_without_the_hub() {
    let dpu = FakeDpu::of_n1(6).open(entry(7));
    let term = dpu.answer.ports[0].record.term.clone();
    // No live read: the hub may be unreachable, and no revocation can complete without this DPU.
    let mut world = behind(dpu, vec![revoked("n1", 7), empty()], vec![]);
    let done = action(world.step("p1"));
    let node = "uid-n1".to_owned();
    assert_eq!(done, Action::Isolate { port: "p1".to_owned(), term, node, floor: 7 });
    assert_eq!(world.read(), ["ask p1"]);
}

#[test]
fn the_floor_is_raised_although_nothing_is_open() {
    let mut world = World::with(FakeDpu::of_n1(6), vec![revoked("n1", 7), empty()]);
    let run = world.settle("p1");
    assert!(
        matches!(run.actions.as_slice(), [Action::Isolate { floor: 7, .. }]),
        "{:?}",
        run.actions
    );
    assert_eq!(world.dpu.p1().record.floor, 7);
}

#[test]
fn what_is_open_at_the_floor_is_closed_although_the_floor_is_on_record() {
    // No driver leaves this behind; if one did, the port would be open under a floor that was reported.
    let dpu = FakeDpu::of_n1(7).open(entry(7));
    let mut world = World::with(dpu, vec![revoked("n1", 7), empty()]);
    let run = world.settle("p1");
    assert!(matches!(run.actions.as_slice(), [Action::Isolate { floor: 7, .. }]), "{run:?}");
    assert_eq!(world.gate(), Gate::Closed);
}

#[test]
fn a_cache_that_is_behind_lowers_no_floor() {
    // The cache shows an assignment whose floor is lower than the record's.
    let mut world = World::with(FakeDpu::of_n1(9), vec![bound("n1", 7), empty()]);
    assert!(world.settle("p1").actions.is_empty());
    // And what is at or under the record's floor is closed at that floor.
    let mut world = World::with(FakeDpu::of_n1(9).open(entry(8)), vec![bound("n1", 7), empty()]);
    let run = world.settle("p1");
    assert!(
        matches!(run.actions.as_slice(), [Action::Isolate { floor: 9, .. }]),
        "{:?}",
        run.actions
    );
}

#[test]
fn the_floor_is_reported_only_after_it_was_raised_in_the_device() {
    let dpu = FakeDpu::of_n1(6).open(entry(7));
    let mut world = World::with(dpu, vec![revoked("n1", 7), empty()]);
    let first = world.hub.step(&room(), &world.dpu, "p1");
    assert!(matches!(action(first), Action::Isolate { .. }));
    // The action is lost: what is reported is what is still there.
    let mut reporting =
        Behind::of(&room(), world.dpu.clone(), vec![empty()], vec![revoked("n1", 7)]);
    let Step::Act(effect) = reporting.step(DEVICE) else { panic!("no report") };
    let interlock_kernel::Action::Write(Write::Patch { change, .. }) = effect.action else {
        panic!()
    };
    let port = &change["status"]["ports"][0];
    assert_eq!((&port["floor"], &port["clean"]), (&json!(6), &json!(false)));
    world.settle("p1");
    let port = world.report()["status"]["ports"][0].clone();
    assert_eq!((&port["floor"], &port["clean"]), (&json!(7), &json!(true)));
}

// Who is woken.

#[test]
fn the_dpu_is_read_until_the_ports_of_tenants_are_open() {
    let mut world = World::with(FakeDpu::of_n1(6), vec![bound("n1", 7), empty()]);
    assert_eq!(world.settle(DEVICE).waits_seconds, Some(1));
    assert_eq!(world.settle("p1").waits_seconds, None, "one reader for all ports");
    world.dpu = FakeDpu::of_n1(6).open(entry(7));
    assert_eq!(world.settle(DEVICE).waits_seconds, Some(60));
    let applied = world.report()["status"]["ports"][0]["applied"]["epoch"].clone();
    assert_eq!(applied, 7);
}

#[test]
fn a_node_wakes_its_port_and_a_report_wakes_what_is_not_settled() {
    let at_p2 = json!({"metadata": {"labels": {"dpu.interlock.dev/r1.d1": "p2"}},
        "spec": {"dpus": [{"rack": "r1", "dpu": "d1", "port": "p2", "mac": MAC}]}});
    let mut dpu = FakeDpu::of_n1(6).open(entry(7));
    let second = FakeDpu::with(&["p2"]).answer.ports;
    dpu.answer.ports.extend(second);
    let nodes = vec![bound("n1", 7), node("n2", &at_p2), empty()];
    let mut world = World::with(dpu, nodes);
    let all = room().everything(&world.hub.view()).expect("subjects");
    assert_eq!(all, [DEVICE, "p1", "p2"].map(Subject::from));
    for subject in ["p1", "p2", DEVICE] {
        world.settle(subject);
    }
    let woken = |world: &World| {
        let name = Name::cluster_wide("r1.d1");
        let report = world.hub.get(Place::HUB, &DPU_REPORT, &name).expect("a report");
        room().subjects(&Watch::all(Place::HUB, &DPU_REPORT), &report, &world.hub.view())
    };
    assert!(woken(&world).is_empty(), "all is settled");
    world.put(revoked("n1", 7));
    // The port, and the network that nobody needs any more.
    assert_eq!(woken(&world), ["p1", DEVICE].map(Subject::from));
    let watch = Watch::all(Place::HUB, &PHYSICAL_NODE);
    let node = world.hub.get(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide("n2")).expect("n2");
    let about = |node: &Object| room().subjects(&watch, node, &world.hub.view());
    assert_eq!(about(&node), ["p2"].map(Subject::from));
    let world = World::with(FakeDpu::of_n1(6), vec![bound("n1", 7)]);
    let node = world.hub.get(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide("n1")).expect("n1");
    assert_eq!(about(&node), ["p1", DEVICE].map(Subject::from), "its port is to be opened");
}

#[test]
fn nodes_that_are_not_wired_to_the_dpu_are_not_watched() {
    let elsewhere = json!({"metadata": {"labels": null}});
    let world = World::with(FakeDpu::with(&["p1"]), vec![node("n1", &elsewhere), empty()]);
    let all = room().everything(&world.hub.view()).expect("subjects");
    // What is not selected is not shown, as the shell narrows each view.
    let shown = world.hub.view().subjects(&room());
    assert!(!shown.contains(&Subject::from("p1")), "{shown:?} {all:?}");
    assert_eq!(room().watches()[0].selector.labels().as_deref(), Some("dpu.interlock.dev/r1.d1"));
}

#[test]
fn the_driver_is_asked_first() {
    let facts = facts::Facts {
        about: facts::About::Port("p1".to_owned()),
        nodes: Vec::new(),
        reported: None,
        asked: None,
        device: None,
        live: Default::default(),
        listed: None,
    };
    assert_eq!(decide::decide(&facts), Decision::Ask);
}

#[test]
fn broken_objects_do_not_break_it() {
    let dpu = FakeDpu::of_n1(6).open(entry(7));
    let known = json!({"bootID": "boot-1", "vnis": [VNI], "ports": [
        {"port": "p1", "node": {"name": "n1", "uid": "uid-n1"}, "floor": 6, "clean": false}]});
    survives(&room(), &dpu, &[bound("n1", 7), report(&known)]);
}
