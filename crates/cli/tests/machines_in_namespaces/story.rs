//! What happens to the first machine, from its first tenant on.

use crate::fleet::Tenant::{Blue, Green};
use crate::fleet::{Fleet, Tenant};
use crate::harness::until;
use crate::rack::Cable;
use crate::traffic::{Traffic, sniff};

/// Whose each machine is at first.
const AT_FIRST: [Tenant; 4] = [Blue, Blue, Green, Green];

pub(crate) fn all() {
    let mut fleet = Fleet::start();
    reach_their_own_tenant_only(&fleet);
    a_machine_changes_its_tenant(&fleet);
    a_dpu_that_is_cut_off_is_waited_for(&fleet);
    a_dpu_that_was_fenced_isolates_before_anything_passes(&fleet);
    a_dpu_that_was_without_power_opens_nothing_of_before(&mut fleet);
}

fn reach_their_own_tenant_only(fleet: &Fleet) {
    let machines = &fleet.rack.machines;
    for number in 0..machines.len() {
        fleet.is_in_the_pool(number);
    }
    for [from, to] in [[0, 1], [2, 3]] {
        let address = &machines[to].addresses[1];
        assert!(!machines[from].space.reaches(address), "nothing passes before a claim");
    }
    for (number, tenant) in AT_FIRST.into_iter().enumerate() {
        fleet.claim(number, tenant, 1);
    }
    for (number, tenant) in AT_FIRST.into_iter().enumerate() {
        fleet.is_programmed(number, tenant, 1);
    }
    // Each DPU sends broadcasts to the other one as soon as the tenant has a machine there.
    for [from, to] in [[0, 1], [1, 0], [2, 3], [3, 2]] {
        until("a machine reaches the other one of its tenant", || {
            let address = &machines[to].addresses[1];
            if machines[from].space.reaches(address) { Ok(()) } else { Err(address.clone()) }
        });
    }
    assert_eq!(fleet.rack.pairs(), [(1, 2), (2, 1), (3, 4), (4, 3)]);
    // The address in common: each request arrives at the machine of its own tenant.
    let sniffers = [0, 1, 2, 3].map(|number| sniff(fleet, number));
    for (number, machine) in machines.iter().enumerate() {
        assert!(machine.space.reaches(&machines[number ^ 1].addresses[0]), "{}", machine.name);
    }
    for (number, sniffer) in sniffers.iter().enumerate() {
        let lines = sniffer.lines();
        let hex = |other: usize| machines[other].mac.replace(':', "");
        for other in (0..machines.len()).filter(|other| *other != number) {
            let is_received = lines.iter().any(|line| line.contains(&hex(other)));
            let is_its_own = AT_FIRST[other] == AT_FIRST[number];
            assert_eq!(is_received, is_its_own, "n{} at n{}", other + 1, number + 1);
        }
    }
}

/// From blue, epoch 1, to green, epoch 2; in the pool between.
fn a_machine_changes_its_tenant(fleet: &Fleet) {
    let traffic = Traffic::start(fleet);
    traffic.arrives(Blue);
    fleet.give_back(0, Blue, 1);
    fleet.is_in_the_pool(0);
    traffic.is_silent();
    fleet.claim(0, Green, 2);
    fleet.is_programmed(0, Green, 2);
    traffic.arrives(Green);
    traffic.went_over(Blue, Green);
}

/// From green, epoch 2, to blue, epoch 3: the agent does not learn that it was revoked.
fn a_dpu_that_is_cut_off_is_waited_for(fleet: &Fleet) {
    let traffic = Traffic::start(fleet);
    traffic.arrives(Green);
    fleet.rack.unplug(Cable::ToHub);
    fleet.give_back(0, Green, 2);
    fleet.claim(0, Blue, 3);
    fleet.is_blocked(2);
    // The port is as it was, so nobody else may have the machine.
    traffic.arrives(Green);
    assert_eq!(traffic.count(Blue), 0);
    fleet.is_blocked(2);
    fleet.rack.plug(Cable::ToHub);
    fleet.is_programmed(0, Blue, 3);
    traffic.arrives(Blue);
    traffic.went_over(Green, Blue);
}

/// From blue, epoch 3, to green, epoch 4. Whoever fences a DPU has seen that nothing of it passes: here both its cables are
/// out. Its agent lives on, with a port that is open for blue.
fn a_dpu_that_was_fenced_isolates_before_anything_passes(fleet: &Fleet) {
    let traffic = Traffic::start(fleet);
    traffic.arrives(Blue);
    fleet.rack.unplug(Cable::ToHub);
    fleet.rack.unplug(Cable::ToOtherDpu);
    fleet.give_back(0, Blue, 3);
    fleet.is_blocked(3);
    fleet.fence(3);
    fleet.claim(0, Green, 4);
    fleet.is_of(0, Green, 4);
    assert!(fleet.rack.is_open_for(3), "the agent knows nothing of it");
    let [blue, _] = traffic.is_silent();
    fleet.rack.plug(Cable::ToHub);
    fleet.is_programmed(0, Green, 4);
    assert!(fleet.rack.is_open_for(4));
    fleet.rack.plug(Cable::ToOtherDpu);
    traffic.arrives(Green);
    assert_eq!(traffic.count(Blue), blue);
    traffic.went_over(Blue, Green);
}

/// From green, epoch 4, to blue, epoch 5. The disk of the DPU says that the port is green's.
fn a_dpu_that_was_without_power_opens_nothing_of_before(fleet: &mut Fleet) {
    let traffic = Traffic::start(fleet);
    traffic.arrives(Green);
    fleet.power_off();
    fleet.give_back(0, Green, 4);
    fleet.is_blocked(4);
    fleet.fence(4);
    fleet.claim(0, Blue, 5);
    fleet.is_of(0, Blue, 5);
    let [_, green] = traffic.is_silent();
    // Without the hub nothing is read, and nothing is opened: the agent cannot even start.
    fleet.rack.unplug(Cable::ToHub);
    fleet.start_agent(1);
    traffic.is_silent();
    fleet.rack.plug(Cable::ToHub);
    fleet.start_agent(1);
    fleet.is_programmed(0, Blue, 5);
    traffic.arrives(Blue);
    assert_eq!(traffic.count(Green), green);
    traffic.went_over(Green, Blue);
    // Nobody took the other machine at this DPU back: it has its network again.
    fleet.is_programmed(2, Green, 1);
    let machines = &fleet.rack.machines;
    until("the other machine is in the network of its tenant again", || {
        let address = &machines[3].addresses[1];
        if machines[2].space.reaches(address) { Ok(()) } else { Err(address.clone()) }
    });
}
