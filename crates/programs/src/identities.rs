//! The program of cloud identities.

use crate::{Account, Program, Visitor};
use interlock_identities::outside::Cloud;
use interlock_identities::settings::Settings;
use interlock_identities::{entries, irsa, policy, providers, role};
use interlock_kernel::Nothing;
use std::sync::Arc;

/// The controllers of cloud identities. They work at the hub and on one cloud account.
#[derive(Debug, Clone)]
pub struct Identities {
    /// What the operator of the fleet says about identities.
    pub settings: Arc<Settings>,
}

impl Identities {
    /// Those of no fleet in particular: what the controllers may do does not depend on which.
    pub fn of_any() -> Identities {
        Identities { settings: Arc::new(Settings::of_fleet("any")) }
    }
}

impl<V: Visitor<Nothing> + Visitor<Cloud>> Program<V> for Identities {
    fn visit(&self, visitor: &mut V) {
        let (account, settings) = (Account::Identities, || Arc::clone(&self.settings));
        visitor.room(account, irsa::Accounts { settings: settings() });
        visitor.room(account, policy::Policies { settings: settings() });
        visitor.room(account, role::Roles { settings: settings() });
        visitor.room(account, providers::Providers { settings: settings() });
        visitor.room(account, entries::Entries);
    }
}
