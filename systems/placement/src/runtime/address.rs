//! The address of a pod: a loopback address of its own, so that pods that listen on one port do not collide.
//!
//! It follows from the uid of the pod. Where another pod of the cluster has it already, the next one is taken; what
//! the status says once stays. Nothing is allocated, so nothing can leak.

use crate::kinds::POD;
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Index, Object, Place, View};
use kube_core::DynamicObject;
use std::net::Ipv4Addr;

/// The address of the machine, as pods and servers see it.
pub(super) const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// The first address of 127.64.0.0/10, and how many there are.
const FIRST: u32 = 0x7f40_0000;
const COUNT: u32 = 1 << 22;
/// How many are tried.
const TRIES: u32 = 16;

/// Pods by their address: the one in their status, or the one that they would take first.
pub(super) const PODS_BY_ADDRESS: Index = Index {
    name: "by-address",
    kind: POD,
    values: |pod| vec![said(pod).unwrap_or_else(|| candidate(uid_of(pod), 0)).to_string()],
};

/// The address of a pod.
pub(super) fn address_of(pod: &Object, view: &dyn View) -> Ipv4Addr {
    let first = candidate(uid_of(pod), 0);
    let is_free = |address: &Ipv4Addr| {
        let others = view.find(Place::CLUSTER, &PODS_BY_ADDRESS, &address.to_string());
        // Of two that would take it first, the one whose uid is lower does.
        let has_it = |other: &Object| said(other).is_some() || uid_of(other) < uid_of(pod);
        !others.iter().any(|other| uid_of(other) != uid_of(pod) && has_it(other))
    };
    let found = said(pod).or_else(|| {
        let mut candidates = (0..TRIES).map(|place| candidate(uid_of(pod), place));
        candidates.find(is_free)
    });
    found.unwrap_or(first)
}

/// The address in the status of a pod, if it is one of ours.
fn said(pod: &DynamicObject) -> Option<Ipv4Addr> {
    let said: Ipv4Addr = pod.data["status"]["podIP"].as_str()?.parse().ok()?;
    (FIRST..FIRST + COUNT).contains(&said.to_bits()).then_some(said)
}

/// FNV-1a, spread once more since only some of its bits are used: it must give the same in every version, and
/// guards against nobody.
fn candidate(uid: &str, place: u32) -> Ipv4Addr {
    let bytes = uid.bytes().chain(place.to_be_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let spread = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let number = u32::try_from(spread % u64::from(COUNT)).unwrap_or_default();
    Ipv4Addr::from_bits(FIRST + number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::POD;
    use crate::syncer::tests::world::TestFleet;
    use interlock_kernel::Name;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn address(world: &TestFleet, name: &str) -> Ipv4Addr {
        let view = world.view("a");
        let pod = view.get(Place::CLUSTER, &POD, &Name::within("g", name)).unwrap();
        address_of(&pod, &view)
    }

    #[test]
    fn addresses_are_spread_over_the_whole_range() {
        let uids = (0..2_000).map(|number| format!("0f3a9c1e-7d55-4a6c-9a51-{number:012}"));
        let addresses: BTreeSet<Ipv4Addr> = uids.map(|uid| candidate(&uid, 0)).collect();
        assert!(addresses.len() > 1_990, "{}", addresses.len());
        let (first, last) = (addresses.first().unwrap(), addresses.last().unwrap());
        assert!(
            *first >= Ipv4Addr::new(127, 64, 0, 0) && *last <= Ipv4Addr::new(127, 127, 255, 255)
        );
        assert!(last.to_bits() - first.to_bits() > COUNT / 2);
    }

    #[test]
    fn a_pod_takes_the_next_address_if_another_has_its_first_and_keeps_what_it_said() {
        let mut world = TestFleet::new(&["a"]);
        let own = Name::within("g", "own");
        world.put(&POD, own.clone(), "a", json!({"metadata": {"uid": "u"}}));
        let first = address(&world, "own");
        assert_eq!(first, candidate("u", 0));
        let taken = json!({"metadata": {"uid": "v"}, "status": {"podIP": first.to_string()}});
        world.put(&POD, Name::within("h", "other"), "a", taken);
        assert_eq!(address(&world, "own"), candidate("u", 1));
        world.change("a", &POD, &own, &json!({"status": {"podIP": first.to_string()}}));
        assert_eq!(address(&world, "own"), first);
        // Whatever somebody writes there, it is one of ours.
        world.change("a", &POD, &own, &json!({"status": {"podIP": "10.0.0.1"}}));
        assert_eq!(address(&world, "own"), candidate("u", 1));
    }
}
