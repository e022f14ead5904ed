//! The program of the hub.

use crate::{Account, Program, Visitor};
use interlock_kernel::Nothing;
use interlock_placement::clusters::decide::SILENCE_SECONDS;
use interlock_placement::{claims, clusters, departed, fencing, scheduler};

/// The hub's controllers.
#[derive(Debug, Clone, Copy)]
pub struct Hub {
    /// How long a cluster may be without a heartbeat before it counts as unreachable.
    pub silence_seconds: i64,
}

impl Default for Hub {
    fn default() -> Self {
        Hub { silence_seconds: SILENCE_SECONDS }
    }
}

impl<V: Visitor<Nothing>> Program<V> for Hub {
    fn visit(&self, visitor: &mut V) {
        let account = Account::Controllers;
        visitor.room(account, scheduler::Scheduler::default());
        visitor.room(account, claims::Claims);
        visitor.room(account, fencing::Fencing);
        visitor.room(account, clusters::Clusters::unreachable_after(self.silence_seconds));
        visitor.room(account, departed::Departed);
        visitor.room(account, interlock_turns::turn::Turns);
    }
}
