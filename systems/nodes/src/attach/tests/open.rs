//! What is done about a port that is open.

use super::*;

// Row 3: where broadcasts go.

#[test]
fn broadcasts_go_to_the_other_dpus_of_the_tenant() {
    let old = Network { vni: VNI, vteps: Vec::new(), is_used: true };
    let foreign = Network { vni: VNI + 1, vteps: Vec::new(), is_used: true };
    for subject in [NETWORK, A7] {
        let mut dpu = FakeDpu::of_n1(6).open(entry(7));
        dpu.answer.networks = vec![old.clone(), foreign.clone()];
        let mut world = World::with(dpu, vec![bound("n1", 7), a7()]);
        let run = world.settle(subject);
        let flood = Action::Flood { vni: VNI, vteps: vteps() };
        assert_eq!(run.actions, [flood], "{subject}");
    }
    // A Tenant that was made again under its name has another network.
    let again = patched(tenant(), &json!({"metadata": {"uid": "uid-again"}}));
    let mut dpu = FakeDpu::of_n1(6).open(entry(7));
    dpu.answer.networks = vec![old];
    let mut world = World::with(dpu, vec![]);
    world.put(Place::HUB, again);
    let run = world.settle(NETWORK);
    assert_eq!((run.actions.len(), run.rests.as_str()), (0, "the tenant has no network yet"));
}

// The last row: a server is unreachable, or something is missing.

#[test]
fn what_is_open_for_a_missing_attachment_stays_open() {
    let dpu = FakeDpu::of_n1(6).open(entry(7));
    let mut world = World::with(dpu, vec![bound("n1", 7)]);
    let run = world.settle(A7);
    assert!(run.actions.is_empty(), "{:?}", run.actions);
    assert_eq!(
        run.rests,
        "the DpuAttachment is not in the cache; a port that is open for it stays open"
    );
}

#[test]
fn what_is_open_stays_open_without_a_read_of_the_hub() {
    let objects = vec![bound("n1", 7), a7(), tenant()];
    let mut dpu = FakeDpu::of_n1(6).open(entry(7));
    dpu.answer.networks[0].vteps = vteps();
    let mut world = behind(dpu, objects, vec![]);
    let Step::Act(effect) = world.step(A7) else { panic!() };
    assert!(matches!(effect.action, interlock_kernel::Action::Write(_)), "{effect:?}");
    assert_eq!(world.read(), ["ask p1"]);
}

#[test]
fn a_port_that_is_programmed_is_read_again_later() {
    // Its record may be lost, and made anew with the port closed, between two reports: no object changes then.
    let mut world = World::with(FakeDpu::of_n1(6), vec![bound("n1", 7), a7()]);
    let run = world.settle(A7);
    assert!(world.is_open());
    assert_eq!(run.waits_seconds, Some(60));
    world.dpu.p1().record.term = Term("made anew".to_owned());
    world.dpu.p1().gate = Gate::Closed;
    world.settle(A7);
    assert!(world.is_open());
}
