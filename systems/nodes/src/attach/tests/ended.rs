//! What is closed, and when the finalizer is taken off.

use super::*;

// Row 2: deletion, and another attachment of the epoch.

#[test]
fn the_finalizer_stays_until_the_driver_reads_back_that_the_port_is_closed() {
    let dpu = FakeDpu::of_n1(6).open(entry(7));
    let world = World::with(dpu, vec![bound("n1", 7), terminating()]);
    let first = action(world.servers.step(&room(), &world.dpu, A7));
    assert!(
        matches!(&first, Action::Detach { tag: Some(tag), .. } if *tag == entry(7).tag),
        "{first:?}"
    );
    // The action is lost: the next step closes it again, and takes no finalizer off.
    let second = action(world.servers.step(&room(), &world.dpu, A7));
    assert_eq!(first, second);
    let mut world = world;
    let run = world.settle(A7);
    assert_eq!((run.actions.len(), run.writes.len()), (1, 1));
    assert_eq!(world.dpu.p1().gate, Gate::Closed);
    assert!(world.attachment().is_null(), "nothing holds it any more");
}

#[test]
fn an_attachment_whose_node_is_not_in_the_cache_is_looked_for_at_all_ports() {
    let mut dpu = FakeDpu::with(&["p0"]);
    dpu.answer.ports.extend(FakeDpu::of_n1(6).open(entry(7)).answer.ports);
    let mut world = behind(dpu, vec![terminating()], vec![]);
    let Action::Detach { port, .. } = action(world.step(A7)) else { panic!() };
    assert_eq!((port.as_str(), world.read()), ("p1", vec!["ask all".to_owned()]));
}

#[test]
fn a_late_deletion_of_an_old_epoch_does_not_close_the_new_one() {
    let dpu = FakeDpu::of_n1(7).open(entry(8));
    let mut world = World::with(dpu, vec![bound("n1", 8), terminating()]);
    let run = world.settle(A7);
    assert!(run.actions.is_empty(), "race 4: {:?}", run.actions);
    assert!(world.attachment().is_null());
}

#[test]
fn the_control_plane_of_a_tenant_closes_no_port_of_another_by_its_uid() {
    let mut theirs = entry(7);
    theirs.tag.tenant = "uid-t2".to_owned();
    let dpu = FakeDpu::of_n1(6).open(theirs);
    let mut world = World::with(dpu, vec![bound("n1", 7), terminating()]);
    let run = world.settle(A7);
    assert!(run.actions.is_empty(), "{:?}", run.actions);
}

#[test]
fn a_port_that_cannot_be_read_keeps_the_finalizer() {
    let mut world = World::with(FakeDpu::with(&["p2"]), vec![bound("n1", 7), terminating()]);
    let run = world.settle(A7);
    assert!(run.writes.is_empty(), "{:?}", run.writes);
    assert_eq!(run.waits_seconds, Some(1));
}

#[test]
fn an_attachment_that_was_made_again_opens_the_port_again() {
    let again = json!({"metadata": {"uid": "uid-again"}});
    let addresses = json!({"spec": {"addresses": ["10.0.0.1", "10.0.0.2"]}});
    for patch in [again, addresses] {
        let dpu = FakeDpu::of_n1(6).open(entry(7));
        let mut world = World::with(dpu, vec![bound("n1", 7), attachment(7, &patch)]);
        let run = world.settle(A7);
        let [Action::Detach { tag, .. }, Action::Attach { entry: open, .. }] =
            run.actions.as_slice()
        else {
            panic!("{:?}", run.actions)
        };
        assert_eq!(tag.as_ref(), Some(&entry(7).tag));
        assert_ne!(*open, entry(7));
        assert_eq!(world.dpu.p1().gate, Gate::Open(open.clone()));
    }
}

/// A node that was made again under its name begins its epochs again: the same epoch is another assignment.
#[test]
fn what_is_open_for_another_uid_of_the_node_is_not_taken_for_the_attachment() {
    let mut before = entry(7);
    before.tag.node = "uid-before".to_owned();
    let dpu = FakeDpu::of_n1(6).open(Entry { tag: before.tag, ..entry(7) });
    let mut world = World::with(dpu, vec![bound("n1", 7), a7()]);
    let run = world.settle(A7);
    assert!(run.actions.is_empty() && run.writes.is_empty(), "{run:?}");
}

#[test]
fn addresses_in_another_order_are_the_same() {
    let two = json!({"spec": {"addresses": ["10.0.0.2", "10.0.0.1"]}});
    let addresses = ["10.0.0.2", "10.0.0.1", "10.0.0.2"].map(|it| it.parse().expect("an address"));
    let open = Entry { addresses: addresses.to_vec(), ..entry(7) };
    let mut dpu = FakeDpu::of_n1(6).open(open);
    dpu.answer.networks[0].vteps = vteps();
    let mut world = World::with(dpu, vec![bound("n1", 7), attachment(7, &two)]);
    assert!(world.settle(A7).actions.is_empty());
}
