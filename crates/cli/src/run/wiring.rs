//! A program, run by a shell: the visitor of its list that starts each controller.

use interlock_kernel::{Controller, Outside};
use interlock_programs::{Account, Program, Visitor};
use interlock_shell::{Driver, Places, Runner, Shell, WiringError};
use std::collections::BTreeMap;

/// Which servers each account of a program works on.
pub(crate) type Seats = BTreeMap<Account, Places>;

/// Runs a program until the shell stops. To drop the runners stops them.
pub(crate) fn run<'a, P, H>(
    shell: &'a Shell,
    program: &P,
    seats: &'a Seats,
    driver: H,
) -> Result<Vec<Runner>, WiringError>
where
    P: Program<Wire<'a, H>>,
{
    let mut wire = Wire { shell, seats, driver, runners: Ok(Vec::new()) };
    program.visit(&mut wire);
    wire.runners
}

/// Starts each controller that it is shown.
pub(crate) struct Wire<'a, H> {
    shell: &'a Shell,
    seats: &'a Seats,
    /// The drivers of the program.
    driver: H,
    /// Those that run, or why one of them cannot.
    runners: Result<Vec<Runner>, WiringError>,
}

impl<O: Outside, H: Driver<O> + Clone> Visitor<O> for Wire<'_, H> {
    fn room<C: Controller<Outside = O>>(&mut self, account: Account, controller: C) {
        let Ok(runners) = &mut self.runners else { return };
        // The shell says which place is missing.
        let places = self.seats.get(&account).cloned().unwrap_or_default();
        match self.shell.run(controller, places, self.driver.clone()) {
            Ok(runner) => runners.push(runner),
            Err(error) => self.runners = Err(error),
        }
    }
}
