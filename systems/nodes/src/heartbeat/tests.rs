//! When the Lease of a DPU is renewed.

use super::*;
use interlock_kernel::Action;
use interlock_kernel::testing::{NoMachine, TestServers};

fn room() -> Heartbeat {
    Heartbeat { here: DpuName::new("r1", "d1") }
}

#[test]
fn a_lease_is_made_once_and_renewed_every_ten_seconds() {
    let room = room();
    let mut hub = TestServers::of(&room);
    let subjects = room.everything(&hub.view()).expect("subjects");
    assert_eq!(subjects, [Subject::from("dpu-r1.d1")], "the first step needs no Lease to wake it");
    let mut wrote = Vec::new();
    for seconds in [0, 9, 1, 4, 6, 10] {
        hub.pass(seconds);
        let run = hub.settle(&room, &mut NoMachine, &subjects[0]);
        wrote.push(run.writes.len());
        let ago = [0, 9, 0, 4, 0, 0][wrote.len() - 1];
        assert_eq!(run.waits_seconds, Some(10 - ago), "{wrote:?}");
    }
    assert_eq!(wrote, [1, 0, 1, 0, 1, 1]);
    let lease = hub.json(Place::HUB, &LEASE, &room.name());
    assert_eq!(lease["spec"]["holderIdentity"], "r1.d1");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 40);
}

#[test]
fn a_clock_that_was_set_back_stops_no_heartbeat() {
    let room = room();
    let mut hub = TestServers::of(&room);
    hub.settle(&room, &mut NoMachine, "dpu-r1.d1");
    hub.pass(-3600);
    let step = hub.step(&room, &NoMachine, "dpu-r1.d1");
    let Step::Act(effect) = step else { panic!("{step:?}") };
    assert!(matches!(effect.action, Action::Write(Write::Patch { .. })));
}

#[test]
fn a_lease_of_another_dpu_is_none_of_its_business() {
    let room = room();
    let other = json!({"kind": "Lease", "metadata": {"namespace": LEASE_NAMESPACE, "name": "dpu-r1.d2", "uid": "u"}});
    let hub = TestServers::of(&room).with([other]);
    assert!(hub.subjects(&room).is_empty());
}
