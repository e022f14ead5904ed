//! The machine of a cluster, on which nothing runs but the syncer; one of them has the cloud account.

use interlock_identities::world::clients::{self, ByProcess};
use interlock_kernel::Outside;
use interlock_placement::runtime::outside::Run;
use interlock_placement::world::processes::{Processes, Runs};
use interlock_world::Driver;

/// A machine. It has power from the start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Machine {
    pub(super) is_off: bool,
    processes: Processes,
    /// The cloud account, and the calls on their way there.
    pub(super) cloud: clients::Machine,
}

impl Machine {
    pub(super) fn with_cloud(&self, cloud: clients::Machine) -> Machine {
        Machine { cloud, ..self.clone() }
    }

    pub(super) fn without_power(&self) -> Machine {
        Machine { is_off: true, ..self.clone() }
    }
}

impl Runs for Machine {
    fn processes(&self) -> &Processes {
        &self.processes
    }

    fn with_processes(&self, processes: Processes) -> Machine {
        Machine { processes, ..self.clone() }
    }

    fn written(&self, _: &Run) -> Machine {
        self.clone()
    }
}

impl Driver<Machine> for ByProcess {
    fn ask(
        machines: &[&Machine],
        here: usize,
        question: &<ByProcess as Outside>::Question,
    ) -> <ByProcess as Outside>::Answer {
        machines[here].cloud.ask(question.0, &question.1)
    }

    fn perform(
        machines: &[&Machine],
        here: usize,
        action: &<ByProcess as Outside>::Action,
    ) -> Machine {
        machines[here].with_cloud(machines[here].cloud.sent(action.0, &action.1))
    }
}
