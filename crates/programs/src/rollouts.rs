//! The programs of updates: at the hub, and on each cluster.

use crate::{Account, Program, Visitor};
use interlock_api::placement::Ref;
use interlock_kernel::Nothing;
use interlock_rollouts::applier::outside::Reach;
use interlock_rollouts::applier::{Serves, fence, object, preflight, report};
use interlock_rollouts::{conductor, fleet, mirror};

/// The controllers of updates at the hub.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rollouts;

impl<V: Visitor<Nothing>> Program<V> for Rollouts {
    fn visit(&self, visitor: &mut V) {
        visitor.room(Account::Rollouts, conductor::Conductor);
        visitor.room(Account::Rollouts, mirror::Mirror);
        visitor.room(Account::Rollouts, fleet::Fleet);
    }
}

/// What brings one cluster to its target.
#[derive(Debug, Clone)]
pub struct Applier {
    /// The cluster, and as whom it writes there.
    pub serves: Serves,
}

impl Applier {
    /// That of a cluster.
    pub fn of(cluster: Ref) -> Applier {
        let user = Account::Applier.user(Some(&cluster.name));
        Applier { serves: Serves::new(cluster, &user) }
    }
}

impl<V: Visitor<Reach>> Program<V> for Applier {
    fn visit(&self, visitor: &mut V) {
        let serves = || self.serves.clone();
        visitor.room(Account::Applier, fence::Fence::new(serves()));
        visitor.room(Account::Applier, report::Reports::new(serves()));
        visitor.room(Account::Applier, object::Objects::new(serves()));
        visitor.room(Account::Applier, preflight::Preflight::new(serves()));
    }
}
