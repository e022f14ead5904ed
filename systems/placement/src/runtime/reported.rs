//! What the status of a pod says already.

use super::decide::{Health, Process, Report, back_off};
use super::outside::Known;
use super::parts::Part;
use super::status::{At, PodSeen, container_id};
use crate::syncer::objects::compare::contains;
use interlock_kernel::Object;

/// What the status of a pod says of its process; None: something else, or nothing.
pub(super) fn reported(seen: PodSeen<'_>, process: Process, at: &At) -> Option<Report> {
    let stage = seen.containers.stage();
    let reports: Vec<Report> = match process {
        Process::None if stage.has_begun => vec![Report::Initializing],
        Process::None => Vec::new(),
        Process::Lives | Process::Stopping | Process::Killed if stage.is_init => {
            vec![Report::Initializing]
        }
        Process::Lives | Process::Stopping | Process::Killed => {
            vec![Report::Running(was(seen.pod, seen.containers.main))]
        }
        Process::Gone(exit) => {
            let again = Report::StartsAgain(back_off(&exit).as_secs());
            vec![again, Report::Succeeded, Report::Failed]
        }
    };
    let is_said = |report: &Report| {
        let status = seen.reporting(*report, at);
        status.is_some_and(|status| contains(&seen.pod.data["status"], &status))
    };
    reports.into_iter().find(is_said)
}

/// What the status of a pod says of this very process of its container.
pub(super) fn was(pod: &Object, known: Known) -> Health {
    let run = match known {
        Known::Lives(run) | Known::Stopping { run, .. } | Known::Killed(run) => Some(run),
        Known::Nothing | Known::Gone { .. } => None,
    };
    let said = Part::Main.said(pod);
    let is_of = |run| said["containerID"].as_str() == Some(&container_id(pod, run));
    let is_its = run.is_some_and(is_of);
    let says = |field: &str| is_its && said[field] == true;
    Health { is_started: says("started"), is_ready: says("ready") }
}
