//! Each row of what a DPU does about the attachments of a tenant.

mod ended;
mod open;
mod refused;

use super::*;
use crate::fake_dpu::{
    Behind, FakeDpu, MAC, VNI, action, bound, entry, failure, idle, node, report, revoked,
};
use crate::outside::{Action, Entry, Gate, Network, Term};
use interlock_api::nodes::FINALIZER_DPU_CLEAN;
use interlock_kernel::testing::{Run, TestServers, condition, patched, survives};
use interlock_kernel::{Importance, Kind, Name, Seen};
use serde_json::{Value, json};

const A7: &str = "n1.d1.7";

fn room() -> Attachments {
    let tenant = Ref { name: "t1".to_owned(), uid: "uid-t1".to_owned() };
    let vtep = "192.168.0.1".parse().expect("an address");
    Attachments::new(DpuName::new("r1", "d1"), vtep, tenant)
}

/// The attachment of n1 for the claim c1 of the tenant t1, with our finalizer.
fn attachment(epoch: i64, patch: &Value) -> Value {
    let name = format!("n1.d1.{epoch}");
    let object = json!({
        "kind": "DpuAttachment",
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "generation": 1,
            "labels": {"interlock.dev/dpu": "r1.d1"}, "finalizers": [FINALIZER_DPU_CLEAN],
        },
        "spec": {
            "node": {"name": "n1", "uid": "uid-n1"}, "rack": "r1", "dpu": "d1",
            "claim": {"name": "c1", "uid": "uid-c1"}, "epoch": epoch, "addresses": ["10.0.0.1"],
        },
    });
    patched(object, patch)
}

fn a7() -> Value {
    attachment(7, &json!({}))
}

fn tenant() -> Value {
    json!({"kind": "Tenant", "metadata": {"name": "t1", "uid": "uid-t1"},
        "spec": {"plane": {"logicalCluster": "t1"}},
        "status": {"vni": VNI, "vteps": ["192.168.0.2", "192.168.0.1", "192.168.0.3"]}})
}

fn vteps() -> Vec<IpAddr> {
    ["192.168.0.2", "192.168.0.3"].map(|it| it.parse().expect("an address")).to_vec()
}

fn terminating() -> Value {
    attachment(7, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
}

fn behind(dpu: FakeDpu, cached: Vec<Value>, live: Vec<Value>) -> Behind<Attachments> {
    Behind::of(&room(), dpu, cached, live)
}

/// Servers whose caches are never behind, and a DPU.
struct World {
    servers: TestServers,
    dpu: FakeDpu,
}

impl World {
    fn with(dpu: FakeDpu, objects: Vec<Value>) -> World {
        World { servers: TestServers::of(&room()).with(objects).with([tenant()]), dpu }
    }

    fn settle(&mut self, subject: &str) -> Run<Dpu> {
        self.servers.settle(&room(), &mut self.dpu, subject)
    }

    fn put(&mut self, place: Place, object: Value) {
        self.servers.put(place, object);
    }

    fn attachment(&self) -> Value {
        self.servers.json(TENANT_PLANE, &DPU_ATTACHMENT, &Name::cluster_wide(A7))
    }

    /// `True Programmed: ...`
    fn says(&self, kind: &str) -> String {
        let attachment = self.attachment();
        let said = condition(&attachment, kind);
        format!("{} {}: {}", said["status"], said["reason"], said["message"]).replace('"', "")
    }

    fn is_open(&mut self) -> bool {
        self.dpu.p1().gate == Gate::Open(entry(7))
    }
}

// Attach: the hub and the tenant agree.

#[test]
fn a_port_is_opened_where_the_hub_and_the_tenant_agree() {
    let mut world = World::with(FakeDpu::of_n1(6), vec![bound("n1", 7), a7()]);
    let run = world.settle(A7);
    assert!(world.is_open(), "{:?}", run.actions);
    assert_eq!(world.dpu.answer.networks[0].vteps, vteps(), "all DPUs but this one");
    assert_eq!(
        world.says("Programmed"),
        "True Programmed: the DPU has the node programmed at epoch 7"
    );
    assert_eq!((run.actions.len(), run.writes.len()), (1, 1));
    assert_eq!(run.events[0].reason, "DpuProgrammed");
    assert_eq!(run.events[0].about.place, TENANT_PLANE);
    // A draining node is its tenant's.
    let draining = patched(bound("n1", 7), &json!({"status": {"phase": "Draining"}}));
    let mut world = World::with(FakeDpu::of_n1(6), vec![draining, a7()]);
    world.settle(A7);
    assert!(world.is_open());
}

#[test]
fn the_port_is_read_before_the_hub_and_the_hub_before_the_attachment() {
    let objects = vec![bound("n1", 7), a7(), tenant()];
    let mut world = behind(FakeDpu::of_n1(6), objects.clone(), objects);
    // The record is replaced after the port was read: the action names the term that was read before.
    let before = world.dpu.p1().record.term.clone();
    let step = world.step_while(A7, |dpu, read| {
        if read == 2 {
            dpu.p1().record.term = Term("adopted since".to_owned());
        }
    });
    let Action::Attach { term, port, entry: open, .. } = action(step) else { panic!() };
    assert_eq!((term, port.as_str(), open), (before, "p1", entry(7)));
    let reads = world.read();
    assert_eq!(reads, ["ask p1", "ask p1", "PhysicalNode n1", "DpuAttachment n1.d1.7"]);
}

#[test]
fn nothing_is_opened_by_what_a_cache_shows() {
    let other = |patch: Value| patched(bound("n1", 7), &patch);
    let to = |part: &str, value: Value| json!({"status": {"assignment": {part: value}}});
    let live_nodes = [
        vec![revoked("n1", 7)],
        vec![],
        vec![bound("n1", 8)],
        vec![other(json!({"metadata": {"uid": "uid-again"}}))],
        vec![other(to("tenant", json!({"name": "t2", "uid": "uid-t2"})))],
        vec![other(to("claim", json!({"name": "c2", "uid": "uid-c2"})))],
        vec![other(to("vni", json!(VNI + 1)))],
        vec![other(json!({"spec": {"rack": "r2"}}))],
        vec![other(json!({"spec": {"dpus": [
            {"rack": "r1", "dpu": "d1", "port": "p2", "mac": MAC}]}}))],
        vec![other(json!({"spec": {"dpus": "x"}}))],
    ];
    for mut live in live_nodes {
        live.push(a7());
        let cached = vec![bound("n1", 7), a7(), tenant()];
        let mut world = behind(FakeDpu::of_n1(6), cached, live.clone());
        let because = idle(world.step(A7));
        assert_eq!(because, "the cache does not show yet what a live read showed", "{live:?}");
    }
}

/// Historic race 2: programmed from a record that was being deleted.
#[test]
fn an_attachment_that_is_being_deleted_by_a_live_read_opens_nothing() {
    let again = json!({"metadata": {"uid": "uid-again"}});
    let stripped = json!({"metadata": {"finalizers": []}});
    let addresses = json!({"spec": {"addresses": ["10.0.0.9"]}});
    let lives = [
        Some(terminating()),
        None,
        Some(attachment(7, &again)),
        Some(attachment(7, &stripped)),
        Some(attachment(7, &addresses)),
    ];
    for live in lives {
        let cached = vec![bound("n1", 7), a7(), tenant()];
        let live = live.into_iter().chain([bound("n1", 7)]).collect();
        let mut world = behind(FakeDpu::of_n1(6), cached, live);
        let because = idle(world.step(A7));
        assert_eq!(because, "the cache does not show yet what a live read showed");
    }
}

#[test]
fn the_finalizer_is_there_before_the_port_is_opened() {
    let bare = attachment(7, &json!({"metadata": {"finalizers": []}}));
    let mut world = World::with(FakeDpu::of_n1(6), vec![bound("n1", 7), bare]);
    let step = world.servers.step(&room(), &world.dpu, A7);
    let Step::Act(effect) = step else { panic!("{step:?}") };
    assert!(matches!(effect.action, interlock_kernel::Action::Write(_)), "{effect:?}");
    world.settle(A7);
    assert!(world.is_open());
    assert_eq!(world.attachment()["metadata"]["finalizers"], json!([FINALIZER_DPU_CLEAN]));
}

#[test]
fn a_port_whose_record_does_not_name_the_node_waits_for_its_adoption() {
    for uid in [None, Some("uid-n2")] {
        let mut dpu = FakeDpu::of_n1(0);
        dpu.p1().record.node = uid.map(str::to_owned);
        let mut world = World::with(dpu, vec![bound("n1", 7), a7()]);
        let run = world.settle(A7);
        assert!(run.actions.is_empty(), "{:?}", run.actions);
        assert_eq!(run.waits_seconds, Some(1));
    }
}

#[test]
fn a_record_that_refuses_the_epoch_is_reported() {
    // The hub was restored from a backup: it gives an epoch that the DPU has seen revoked.
    let mut world = World::with(FakeDpu::of_n1(7), vec![bound("n1", 7), a7()]);
    let run = world.settle(A7);
    assert!(run.actions.is_empty(), "{:?}", run.actions);
    assert_eq!(
        world.says("Programmed"),
        "False AtOrUnderTheFloor: the DPU refuses the epoch: it has seen a later one revoked"
    );
}

#[test]
fn a_port_that_is_open_for_something_else_is_not_opened() {
    for gate in [Gate::Open(entry(6)), Gate::Foreign("br0".to_owned())] {
        let mut dpu = FakeDpu::of_n1(5);
        dpu.p1().gate = gate;
        let mut world = World::with(dpu, vec![bound("n1", 7), a7()]);
        let run = world.settle(A7);
        assert!(run.actions.is_empty(), "nodes/dpu closes it: {:?}", run.actions);
        assert_eq!(run.waits_seconds, Some(1));
    }
}

#[test]
fn without_a_packet_filter_nothing_is_opened_and_the_tenant_reads_no_words_of_the_driver() {
    let mut dpu = FakeDpu::of_n1(6);
    dpu.answer.filter = Some(failure("NoPacketFilter", "nft: 02:00:00:00:00:09"));
    let mut world = World::with(dpu, vec![bound("n1", 7), a7()]);
    let run = world.settle(A7);
    assert!(run.actions.is_empty(), "{:?}", run.actions);
    assert_eq!(
        world.says("Programmed"),
        "False NoPacketFilter: the DPU cannot open the port; the DpuReport at the hub has the words of its driver"
    );
    world.dpu.answer.filter = None;
    world.dpu.p1().failure = Some(failure("KernelRefused", "Device or resource busy"));
    // What failed is tried again.
    world.settle(A7);
    assert!(world.is_open());
}

#[test]
fn a_port_that_the_dpu_does_not_have_is_reported() {
    let mut world = World::with(FakeDpu::with(&["p2"]), vec![bound("n1", 7), a7()]);
    assert!(world.settle(A7).actions.is_empty());
    assert_eq!(
        world.says("Programmed"),
        "False PortNotFound: the DPU does not have the port of the node; the DpuReport at the hub says more"
    );
}

// Who is woken.

#[test]
fn attachments_are_woken_by_their_node_and_by_reports_that_they_wait_for() {
    let open = json!({"bootID": "b", "ports": [{"port": "p1", "node": {"name": "n1", "uid": "uid-n1"},
        "floor": 6, "clean": false, "applied": {"tenant": "uid-t1", "claimUID": "uid-c1", "epoch": 7}}]});
    let other = attachment(9, &json!({"metadata": {"labels": {"interlock.dev/dpu": "r1.d2"}}}));
    let objects = vec![bound("n1", 7), a7(), other, report(&json!({}))];
    let mut world = World::with(FakeDpu::of_n1(6), objects);
    let woken = |world: &World, kind: &Kind, name: &str| {
        let name = Name::cluster_wide(name);
        let object = world.servers.get(Place::HUB, kind, &name).expect("an object");
        room().subjects(&Watch::all(Place::HUB, kind), &object, &world.servers.view())
    };
    let its = [Subject::from(A7)];
    assert_eq!(woken(&world, &PHYSICAL_NODE, "n1"), its);
    assert_eq!(woken(&world, &TENANT, "t1"), [Subject::from(NETWORK)]);
    assert_eq!(woken(&world, &DPU_REPORT, "r1.d1"), its, "it waits for its port");
    world.settle(A7);
    assert_eq!(woken(&world, &DPU_REPORT, "r1.d1"), its, "the report does not show it yet");
    world.put(Place::HUB, report(&open));
    assert!(woken(&world, &DPU_REPORT, "r1.d1").is_empty(), "it is programmed");
    world.servers.delete(TENANT_PLANE, &DPU_ATTACHMENT, &Name::cluster_wide(A7));
    assert_eq!(woken(&world, &DPU_REPORT, "r1.d1"), its, "it waits for its end");
    let all = room().everything(&world.servers.view()).expect("subjects");
    assert_eq!(all, [A7, NETWORK].map(Subject::from));
}

#[test]
fn only_attachments_of_this_dpu_are_watched() {
    let selector = room().watches()[0].selector.clone();
    assert_eq!(selector.labels().as_deref(), Some("interlock.dev/dpu=r1.d1"));
    let writes = room().rights();
    assert!(writes.iter().all(|right| right.place == TENANT_PLANE), "it writes nothing at the hub");
}

#[test]
fn a_write_names_the_version_that_was_seen() {
    let world = World::with(FakeDpu::of_n1(7), vec![revoked("n1", 7), a7()]);
    let name = Name::cluster_wide(A7);
    let object = world.servers.get(TENANT_PLANE, &DPU_ATTACHMENT, &name).expect("it is there");
    let Step::Act(effect) = world.servers.step(&room(), &world.dpu, A7) else { panic!() };
    let interlock_kernel::Action::Write(interlock_kernel::Write::Patch { seen, .. }) =
        effect.action
    else {
        panic!()
    };
    assert_eq!(seen, Seen::of(&object));
}

#[test]
fn broken_objects_do_not_break_it() {
    let dpu = FakeDpu::of_n1(6).open(entry(6));
    survives(&room(), &dpu, &[bound("n1", 7), a7(), tenant(), report(&json!({}))]);
    survives(&room(), &dpu, &[bound("n1", 6), terminating(), tenant(), report(&json!({}))]);
}
