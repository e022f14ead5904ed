//! The hub's controllers of placement.

use super::Pace;
use interlock_kernel::Place;
use interlock_placement::{claims, clusters, departed, fencing, scheduler};
use interlock_shell::{NoHands, Runner, Server, Shell, WiringError};

/// Runs the hub's controllers until the shell stops. To drop the runners stops them.
pub(crate) fn run(shell: &Shell, hub: &Server, pace: &Pace) -> Result<Vec<Runner>, WiringError> {
    let silence_seconds = i64::try_from(pace.unreachable_after.as_secs()).unwrap_or(i64::MAX);
    let places = || [(Place::HUB, hub.clone())];
    Ok(vec![
        shell.run(scheduler::Scheduler::default(), places(), NoHands)?,
        shell.run(claims::Claims, places(), NoHands)?,
        shell.run(fencing::Fencing, places(), NoHands)?,
        shell.run(clusters::Clusters::patient_for(silence_seconds), places(), NoHands)?,
        shell.run(departed::Departed, places(), NoHands)?,
    ])
}
