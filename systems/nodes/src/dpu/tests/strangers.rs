//! What is closed since it is not what the hub has.

use super::*;

// Row 4: a stranger.

#[test]
fn what_is_open_for_a_node_that_is_gone_is_closed_after_a_live_read() {
    let known = report(&json!({"bootID": "boot-1", "ports": [
        {"port": "p1", "node": {"name": "n1", "uid": "uid-n1"}, "floor": 6, "clean": false,
            "applied": {"tenant": "uid-t1", "claimUID": "uid-c1", "epoch": 7}}]}));
    let elsewhere =
        json!({"spec": {"dpus": [{"rack": "r1", "dpu": "d1", "port": "p2", "mac": MAC}]}});
    let again = with_uid(bound("n1", 7), "uid-again");
    for subject in ["p1", DEVICE] {
        let asks = if subject == DEVICE { "ask all" } else { "ask p1" };
        for live in [vec![], vec![again.clone()], vec![patched(bound("n1", 7), &elsewhere)]] {
            let dpu = FakeDpu::of_n1(6).open(entry(7));
            let mut world = behind(dpu, vec![known.clone()], live);
            let Action::Detach { tag, .. } = action(world.step(subject)) else { panic!() };
            assert_eq!(tag, Some(entry(7).tag));
            assert_eq!(world.read(), [asks, asks, "PhysicalNode n1"]);
        }
        // Absence from the cache is not deletion: its label may have changed.
        let dpu = FakeDpu::of_n1(6).open(entry(7));
        let mut world = behind(dpu, vec![known.clone()], vec![bound("n1", 7)]);
        assert!(changes_nothing(world.step(subject)));
        let dpu = FakeDpu::of_n1(6).open(entry(7));
        let broken = node("n1", &json!({"spec": {"dpus": "x"}}));
        let mut world = behind(dpu, vec![known.clone()], vec![broken]);
        assert!(changes_nothing(world.step(subject)));
    }
}

#[test]
fn a_node_whose_name_nobody_knows_is_looked_for_among_all() {
    let dpu = FakeDpu::of_n1(6).open(entry(7));
    let mut world = behind(dpu.clone(), vec![empty()], vec![]);
    assert!(matches!(action(world.step("p1")), Action::Detach { .. }));
    assert_eq!(world.read(), ["ask p1", "ask p1", "all of PhysicalNode"]);
    let mut world = behind(dpu, vec![], vec![bound("n1", 7)]);
    assert_eq!(idle(world.step("p1")), "the cache does not show yet what the hub says");
}

#[test]
fn what_is_open_for_another_node_than_the_records_is_closed_at_once() {
    let mut dpu = FakeDpu::of_n1(2).open(entry(7));
    dpu.p1().record.node = Some("uid-n2".to_owned());
    let mut world = behind(dpu, vec![bound("n2", 3), empty()], vec![]);
    let Action::Detach { tag, .. } = action(world.step("p1")) else { panic!() };
    assert_eq!(tag.map(|tag| tag.node), Some("uid-n1".to_owned()));
    assert_eq!(world.read(), ["ask p1"]);
}

// Row 5: not what the tag says.

#[test]
fn what_is_open_and_is_not_what_its_epoch_stands_for_is_closed() {
    let tag = |change: fn(&mut Tag)| {
        let mut entry = entry(7);
        change(&mut entry.tag);
        entry
    };
    let wrong = [
        Entry { mac: "02:00:00:00:00:02".to_owned(), ..entry(7) },
        Entry { vni: VNI + 1, ..entry(7) },
        tag(|tag| tag.tenant = "uid-t2".to_owned()),
        tag(|tag| tag.claim = "uid-c2".to_owned()),
    ];
    for wrong in wrong {
        let dpu = FakeDpu::of_n1(6).open(wrong.clone());
        let mut world = World::with(dpu, vec![bound("n1", 7), empty()]);
        let run = world.settle("p1");
        let [Action::Detach { tag, .. }] = run.actions.as_slice() else {
            panic!("{:?}", run.actions)
        };
        assert_eq!(*tag, Some(wrong.tag));
    }
    let mut world = World::with(FakeDpu::of_n1(6).open(entry(7)), vec![bound("n1", 7), empty()]);
    assert!(world.settle("p1").actions.is_empty(), "what is right stays");
}

#[test]
fn what_interlock_did_not_open_is_closed_at_a_port_of_a_node_and_nowhere_else() {
    let mut dpu = FakeDpu::of_n1(6);
    dpu.p1().gate = Gate::Foreign("in bridge br0".to_owned());
    let mut world = World::with(dpu.clone(), vec![node("n1", &json!({})), empty()]);
    let run = world.settle("p1");
    assert!(
        matches!(run.actions.as_slice(), [Action::Detach { tag: None, .. }]),
        "{:?}",
        run.actions
    );
    dpu.p1().record.node = None;
    let mut world = World::with(dpu, vec![empty()]);
    let run = world.settle(DEVICE);
    assert!(run.actions.is_empty(), "it may be the way to the DPU itself: {:?}", run.actions);
    assert_eq!(world.report()["status"]["ports"][0]["clean"], false);
}

#[test]
fn a_network_without_a_port_is_forgotten() {
    let mut dpu = FakeDpu::of_n1(6).open(entry(7));
    dpu.answer.networks.push(Network { vni: 6000, vteps: Vec::new(), is_used: false });
    let mut world = World::with(dpu, vec![bound("n1", 7), empty()]);
    let run = world.settle(DEVICE);
    assert!(matches!(run.actions.as_slice(), [Action::Forget { vni: 6000 }]), "{:?}", run.actions);
    assert_eq!(world.report()["status"]["vnis"], json!([VNI]));
    assert_eq!(run.waits_seconds, Some(60));
}
