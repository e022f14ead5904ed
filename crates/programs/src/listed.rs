//! What a program's list says without running anything: who does what, and where.

use crate::{Account, Program, Visitor};
use interlock_kernel::{Controller, Outside, Place, Right};
use std::collections::{BTreeMap, BTreeSet};

/// A controller, as far as its role is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name of the controller, as logs and metrics have it.
    pub controller: &'static str,
    /// Who it is on API servers.
    pub account: Account,
    /// All that it does there, watches included.
    pub rights: Vec<Right>,
}

/// The visitor that writes a list down.
#[derive(Debug, Default)]
pub struct List(Vec<Listed>);

impl<O: Outside> Visitor<O> for List {
    fn room<C: Controller<Outside = O>>(&mut self, account: Account, controller: C) {
        let watches = controller.watches().into_iter();
        let watched = watches.flat_map(|watch| Right::to_watch(&watch));
        let rights = watched.chain(controller.rights()).collect();
        self.0.push(Listed { controller: controller.name(), account, rights });
    }
}

/// The controllers of a program.
pub fn list(program: &impl Program<List>) -> Vec<Listed> {
    let mut list = List::default();
    program.visit(&mut list);
    list.0
}

/// The accounts of a program, each with the places that it works at.
pub fn accounts(rooms: &[Listed]) -> BTreeMap<Account, BTreeSet<Place>> {
    let mut accounts: BTreeMap<Account, BTreeSet<Place>> = BTreeMap::new();
    for room in rooms {
        let places = room.rights.iter().map(|right| right.place);
        accounts.entry(room.account).or_default().extend(places);
    }
    accounts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Agent, Applier, DpuAgent, DpuTenant, Hub, Identities, Machine, Machines, Rollouts,
        TenantPlane, Workloads,
    };
    use interlock_api::placement::Ref;
    use interlock_placement::runtime::Scope;

    fn names(rooms: &[Listed]) -> Vec<&'static str> {
        rooms.iter().map(|room| room.controller).collect()
    }

    #[test]
    fn no_controller_is_in_a_list_twice() {
        let machine = Some(Machine { is_root: false, has_volumes: true, scope: Scope::All });
        let mut all = names(&list(&Hub::default()));
        all.extend(names(&list(&Identities::of_any())));
        all.extend(names(&list(&Agent::of_any(machine, &[]))));
        all.extend(names(&list(&Workloads::of_any())));
        all.extend(names(&list(&Rollouts)));
        all.extend(names(&list(&Applier::of(Ref::default()))));
        all.extend(names(&list(&Machines)));
        all.extend(names(&list(&TenantPlane::default())));
        all.extend(names(&list(&DpuAgent::default())));
        all.extend(names(&list(&DpuTenant::of_any())));
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
    }

    #[test]
    fn a_cluster_with_nodes_of_its_own_needs_no_more_than_a_syncer() {
        let rooms = list(&Agent::of_any(None, &[]));
        let both = BTreeSet::from([Place::CLUSTER, Place::HUB]);
        assert_eq!(accounts(&rooms), BTreeMap::from([(Account::Syncer, both)]));
    }

    #[test]
    fn only_the_syncer_of_a_cluster_knows_the_hub() {
        let machine = Some(Machine { is_root: false, has_volumes: true, scope: Scope::All });
        for (account, places) in accounts(&list(&Agent::of_any(machine, &[]))) {
            assert_eq!(places.contains(&Place::HUB), account == Account::Syncer, "{account}");
        }
        let hub = accounts(&list(&Hub::default()));
        assert_eq!(hub, BTreeMap::from([(Account::Controllers, BTreeSet::from([Place::HUB]))]));
        let identities = accounts(&list(&Identities::of_any()));
        let only_hub = BTreeSet::from([Place::HUB]);
        assert_eq!(identities, BTreeMap::from([(Account::Identities, only_hub)]));
    }
}
