//! What a DPU reports.

use super::*;

// Row 6: the report.

#[test]
fn a_report_says_what_was_read_back_and_nothing_else() {
    let mut dpu = FakeDpu::of_n1(6).open(entry(7));
    let further = FakeDpu::with(&["a0"]).answer.ports;
    dpu.answer.ports.extend(further);
    // The cache shows another epoch than the hardware: the hardware is reported.
    let node = patched(bound("n1", 8), &json!({"status": {"floor": 6}}));
    let mut world = World::with(dpu, vec![node, empty()]);
    let run = world.settle("p1");
    let status = world.report()["status"].clone();
    assert_eq!(status["bootID"], "boot-1");
    assert_eq!(status["vnis"], json!([VNI]));
    assert_eq!(
        status["ports"],
        json!([
            {"port": "a0", "floor": 0, "clean": true},
            {"port": "p1", "node": {"name": "n1", "uid": "uid-n1"}, "floor": 6, "clean": false,
                "applied": {"tenant": "uid-t1", "claimUID": "uid-c1", "epoch": 7}},
        ])
    );
    assert_eq!(run.writes.len(), 1);
    assert!(world.settle("p1").writes.is_empty());
    assert!(world.settle(DEVICE).writes.is_empty(), "one report is enough");
    assert_eq!(run.events[0].reason, "DpuProgrammed");
    assert_eq!(run.events[0].note, "DPU r1/d1 has node n1 programmed for epoch 7");
}

#[test]
fn the_node_of_a_report_is_that_of_the_record_and_not_that_of_the_cache() {
    let mut dpu = FakeDpu::of_n1(7);
    dpu.p1().record.node = Some("uid-before".to_owned());
    // A report of this node's floor would be false: it is the floor of another one.
    let Step::Act(effect) = behind(dpu, vec![empty()], vec![]).step(DEVICE) else { panic!() };
    let interlock_kernel::Action::Write(Write::Patch { change, .. }) = effect.action else {
        panic!()
    };
    assert_eq!(change["status"]["ports"][0]["node"]["uid"], "uid-before");
}

#[test]
fn an_open_port_is_not_clean_whatever_it_is_open_for() {
    let mut dpu = FakeDpu::of_n1(9).open(entry(8));
    for gate in [Gate::Open(entry(8)), Gate::Open(entry(10)), Gate::Foreign("br0".to_owned())] {
        dpu.p1().gate = gate;
        let asked = dpu.answer.clone();
        let facts = facts::Facts {
            about: facts::About::Device,
            nodes: Vec::new(),
            reported: None,
            asked: None,
            device: None,
            live: Default::default(),
            listed: None,
        };
        assert!(!report::report(&facts, &asked).ports[0].clean);
    }
}

#[test]
fn a_clean_port_has_one_event() {
    let mut world = World::with(FakeDpu::of_n1(6).open(entry(7)), vec![bound("n1", 7), empty()]);
    world.settle("p1");
    world.put(revoked("n1", 7));
    let run = world.settle("p1");
    assert_eq!((run.actions.len(), run.writes.len()), (1, 1));
    let told: Vec<&str> = run.events.iter().map(|event| event.note.as_str()).collect();
    assert_eq!(
        told,
        ["DPU r1/d1 has nothing of node n1 programmed, and refuses all its epochs up to 7"]
    );
}

#[test]
fn an_action_that_came_late_makes_no_dpu_unready() {
    let mut dpu = FakeDpu::of_n1(6);
    for reason in ["TermDiffers", "NodeDiffers", "AtOrUnderTheFloor", "PortNotClosed"] {
        dpu.p1().failure = Some(failure(reason, "decided under another term"));
        let mut world = World::with(dpu.clone(), vec![node("n1", &json!({})), empty()]);
        world.settle("p1");
        assert!(world.ready().starts_with("True"), "{}", world.ready());
    }
}

#[test]
fn another_boot_is_reported() {
    let mut world = World::with(FakeDpu::of_n1(6), vec![node("n1", &json!({})), empty()]);
    world.settle("p1");
    world.dpu.answer.boot = "boot-2".to_owned();
    world.settle("p1");
    assert_eq!(world.report()["status"]["bootID"], "boot-2");
}

#[test]
fn without_a_report_at_the_hub_ports_are_closed_all_the_same() {
    let dpu = FakeDpu::of_n1(6).open(entry(7));
    let mut world = World::with(dpu, vec![revoked("n1", 7)]);
    let run = world.settle("p1");
    assert_eq!(world.gate(), Gate::Closed);
    assert!(run.writes.is_empty(), "nodes/pool makes it");
}
