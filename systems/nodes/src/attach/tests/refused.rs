//! What is superseded, and what is refused, with what would be right.

use super::*;

// Row 1: superseded and refused.

#[test]
fn an_attachment_at_or_under_the_floor_is_superseded() {
    let mut world = World::with(FakeDpu::of_n1(7), vec![revoked("n1", 7), a7()]);
    let run = world.settle(A7);
    assert!(run.actions.is_empty(), "{:?}", run.actions);
    assert_eq!(run.writes.len(), 1);
    assert_eq!(
        world.says("Superseded"),
        "True EpochRevoked: all epochs of node n1 up to 7 are over"
    );
    assert_eq!(
        world.says("Programmed"),
        "False Superseded: all epochs of node n1 up to 7 are over"
    );
    world.put(Place::HUB, bound("n1", 12));
    assert!(world.settle(A7).writes.is_empty(), "it is over once");
}

#[test]
fn an_old_attachment_of_a_node_that_was_assigned_again_is_superseded_and_not_opened() {
    // The same tenant and claim, at a later epoch: race 3.
    let mut world = World::with(FakeDpu::of_n1(7), vec![bound("n1", 8), a7()]);
    let run = world.settle(A7);
    assert!(run.actions.is_empty(), "{:?}", run.actions);
    assert_eq!(
        world.says("Superseded"),
        "True EpochRevoked: all epochs of node n1 up to 7 are over"
    );
}

fn refused(node: Value, attachment: Value) -> (World, Run<Dpu>) {
    let mut world = World::with(FakeDpu::of_n1(0), vec![node, attachment]);
    let run = world.settle(A7);
    assert!(run.actions.is_empty(), "{:?}", run.actions);
    (world, run)
}

#[test]
fn the_event_of_a_forged_attachment_is_at_the_hub_first() {
    let theirs = json!({"status": {"assignment": {"tenant": {"name": "t2", "uid": "uid-t2"}}}});
    let (world, run) = refused(patched(bound("n1", 7), &theirs), a7());
    let right = "node n1 with uid uid-n1 is not assigned to this tenant at epoch 7: only what a NodeClaim lists as \
                 Bound in status.nodes is programmed; delete DpuAttachment n1.d1.7";
    assert_eq!(world.says("Programmed"), format!("False NotAssigned: {right}"));
    let told: Vec<_> = run.events.iter().map(|it| (it.about.place, it.reason)).collect();
    assert_eq!(told, [(Place::HUB, "AttachmentRefused"), (TENANT_PLANE, "AttachmentRefused")]);
    assert_eq!(
        run.events[0].note,
        "at DPU r1/d1: tenant t1 asks for node n1 with uid uid-n1 at epoch 7 in DpuAttachment n1.d1.7, and the node \
         is not assigned to it: it is assigned to tenant t2 at epoch 7"
    );
    assert_eq!((&*run.events[0].about.name.name, run.events[0].uid.as_str()), ("t1", "uid-t1"));
    assert_eq!(run.events[1].note, right);
    assert!(run.events.iter().all(|event| event.importance == Importance::Warning));
}

#[test]
fn a_tenant_learns_nothing_of_other_tenants() {
    let theirs = json!({"status": {"assignment": {"tenant": {"name": "t2", "uid": "uid-t2"}}}});
    let again = json!({"metadata": {"uid": "uid-again"}});
    let said: Vec<String> = [
        patched(bound("n1", 7), &theirs),
        node("n1", &json!({})),
        patched(bound("n1", 7), &again),
        node("n2", &json!({})),
        node("n1", &json!({"status": {"phase": "Quarantined", "epoch": 3, "floor": 3}})),
    ]
    .into_iter()
    .map(|node| refused(node, a7()).0.says("Programmed"))
    .collect();
    assert!(said.iter().all(|it| *it == said[0]), "{said:#?}");
}

#[test]
fn a_refusal_says_what_would_be_right() {
    let far = attachment(
        7,
        &json!({"metadata": {"labels": {"interlock.dev/dpu": "r1.d1"}},
        "spec": {"rack": "r2"}}),
    );
    let named = attachment(7, &json!({"spec": {"epoch": 8}}));
    let loopback = attachment(7, &json!({"spec": {"addresses": ["127.0.0.1"]}}));
    let elsewhere =
        json!({"spec": {"dpus": [{"rack": "r1", "dpu": "d2", "port": "p1", "mac": MAC}]}});
    let torn = json!({"spec": {"dpus": [
        {"rack": "r1", "dpu": "d1", "port": "p1", "mac": MAC},
        {"rack": "r2", "dpu": "d1", "port": "p1", "mac": MAC}]}});
    let other_claim = json!({"status": {"assignment": {"claim": {"name": "c2", "uid": "uid-c2"}}}});
    let early = patched(bound("n1", 6), &json!({}));
    for (node, attachment, right) in [
        (
            bound("n1", 7),
            far,
            "Misplaced: DpuAttachment n1.d1.7 is for DPU r2/d1, and its label interlock.dev/dpu \
            says r1.d1: the label must be r2.d1",
        ),
        (
            bound("n1", 7),
            named,
            "Misnamed: DpuAttachment n1.d1.7 must be named n1.d1.8, as its spec says",
        ),
        (
            bound("n1", 7),
            loopback,
            "AddressNotUsable: DpuAttachment n1.d1.7: no machine sends from 127.0.0.1; \
            addresses are those of one machine each",
        ),
        (
            patched(bound("n1", 7), &elsewhere),
            a7(),
            "Misplaced: node n1 is not wired through DPU r1/d1, but through \
            r1/d2: delete DpuAttachment n1.d1.7",
        ),
        (
            patched(bound("n1", 7), &torn),
            a7(),
            "ConfigurationInconsistent: node n1 is in rack r1, and its spec names \
            r2/d1: the platform team must correct spec.dpus",
        ),
        (
            patched(bound("n1", 7), &other_claim),
            a7(),
            "WrongClaim: node n1 is assigned to NodeClaim c2 with uid \
            uid-c2, and DpuAttachment n1.d1.7 names c1 with uid uid-c1: delete it",
        ),
        (
            early,
            a7(),
            "WrongEpoch: node n1 is assigned at epoch 6, and DpuAttachment n1.d1.7 names epoch 7: \
            delete it",
        ),
    ] {
        let (world, run) = refused(node, attachment);
        assert_eq!(world.says("Programmed"), format!("False {right}"));
        assert_eq!(run.events.len(), 2, "{right}");
    }
}

#[test]
fn an_attachment_that_is_ahead_of_the_cache_is_not_refused() {
    // The tenant was faster than the watch of the hub.
    let live = vec![bound("n1", 7), a7()];
    let mut world = behind(FakeDpu::of_n1(0), vec![node("n1", &json!({})), a7()], live);
    assert_eq!(idle(world.step(A7)), "the cache does not show yet what a live read showed");
    assert_eq!(world.read(), ["PhysicalNode n1"]);
    let live = vec![node("n1", &json!({"spec": {"dpus": 1}})), a7()];
    let mut world = behind(FakeDpu::of_n1(0), vec![a7()], live);
    assert_eq!(idle(world.step(A7)), "the PhysicalNode cannot be read");
    // And one that is revoked meanwhile is superseded, and not forged.
    let mut world = behind(FakeDpu::of_n1(0), vec![a7()], vec![revoked("n1", 7), a7()]);
    let Step::Act(effect) = world.step(A7) else { panic!() };
    assert!(effect.event.is_none(), "{effect:?}");
}

#[test]
fn a_refused_attachment_costs_no_further_reads() {
    let (world, _) = refused(node("n1", &json!({})), a7());
    let cached = vec![world.attachment(), node("n1", &json!({}))];
    let mut again = behind(FakeDpu::of_n1(0), cached, vec![]);
    assert_eq!(idle(again.step(A7)), "the attachment is refused");
    assert!(again.read().is_empty());
}
