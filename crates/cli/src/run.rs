//! What runs for long: the hub's controllers, and the agents of workload clusters.

pub(crate) mod access;
pub(crate) mod applier;
pub(crate) mod audit;
pub(crate) mod cluster;
mod driver;
pub(crate) mod fleet_id;
pub(crate) mod iam;
pub(crate) mod identities;
pub(crate) mod install;
mod issuers;
pub(crate) mod machines;
pub(crate) mod metrics;
mod node;
pub(crate) mod page;
mod repositories;
mod storage;
mod streams;
pub(crate) mod supervisor;
pub(crate) mod tokens;
pub(crate) mod wiring;

use crate::words::time;
use anyhow::Context;
use interlock_outside::processes::Processes;
use interlock_outside::volumes::{LocalVolumes, Writers};
use interlock_placement::clusters::decide::SILENCE_SECONDS;
use interlock_placement::heartbeat::decide::PERIOD;
use interlock_programs::Hub;
use interlock_shell::leader::{Campaign, LeaseSettings};
use interlock_shell::{Server, Settings, Shell};
use jiff::Timestamp;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How fast the parts of a fleet notice that another one is gone. Nothing that is promised rests on
/// any of these: they are options so that a test need not wait as long as a person would.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Intervals {
    /// How long a cluster may send no heartbeat before it is unreachable
    #[arg(long, hide = true, value_name = "TIME", default_value = "40s", value_parser = time)]
    pub(crate) unreachable_after: Duration,
    /// How often a syncer sends a heartbeat
    #[arg(long, hide = true, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) heartbeat_every: Duration,
    /// How long the work of a process that is gone waits for another one
    #[arg(long, hide = true, value_name = "TIME", default_value = "15s", value_parser = time)]
    pub(crate) lease: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Intervals {
            unreachable_after: Duration::from_secs(SILENCE_SECONDS.unsigned_abs()),
            heartbeat_every: PERIOD,
            lease: Duration::from_secs(15),
        }
    }
}

/// The lease that the hub's controllers lead by.
pub(crate) const CONTROLLERS_LEASE: &str = "interlock-controllers";

/// The lease that the syncer of a cluster leads by. It goes by the name of the cluster, so that a
/// role can be written for it before there is a cluster.
pub(crate) fn syncer_lease(cluster: &str) -> String {
    format!("interlock-syncer-{cluster}")
}

/// The hub's program, with these intervals.
pub(crate) fn hub_program(intervals: &Intervals) -> Hub {
    let silence_seconds = i64::try_from(intervals.unreachable_after.as_secs()).unwrap_or(i64::MAX);
    Hub { silence_seconds }
}

/// How controllers are run: many subjects wait for the disk and for other servers at once.
pub(crate) fn settings() -> Settings {
    Settings { workers: 8, ..Settings::default() }
}

/// A shell whose controllers act only while this process leads. Writes are guarded whoever leads;
/// the lease only spares two processes each other's work.
pub(crate) fn shell_that_leads(hub: &Server, lease: Lease<'_>, intervals: &Intervals) -> Shell {
    let holds_for = intervals.lease;
    let lease = LeaseSettings {
        holds_for,
        acts_for: holds_for * 2 / 3,
        tries_every: holds_for * 2 / 15,
        ..LeaseSettings::new(lease.name, lease.instance)
    };
    let campaign = Campaign::begin(hub.client().clone(), lease);
    Shell::new(settings()).with_campaign(campaign)
}

/// The lease that a process leads by, and the identity that it leads under.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease<'a> {
    pub(crate) name: &'a str,
    pub(crate) instance: &'a str,
}

/// What is said first when processes cannot be run here.
pub(crate) const NO_PROCESSES: &str = "cannot run pods as processes";

/// Opens the processes of a cluster on this machine. Those of root have to be allowed.
pub(crate) fn open_processes(folder: &Path, may_be_root: bool) -> anyhow::Result<Arc<Processes>> {
    let opened = match may_be_root {
        true => Processes::open_allowing_root(folder),
        false => Processes::open(folder),
    };
    Ok(Arc::new(opened.context(NO_PROCESSES)?))
}

/// Opens the volumes of a cluster on this machine: folders below the data directory, which all
/// clusters of the machine share, so that snapshots go from one to the other. Whoever writes to them is
/// one of these processes, and holds still while a snapshot is taken.
pub(crate) fn open_volumes(
    data: &Path,
    cluster: &str,
    processes: &Arc<Processes>,
) -> anyhow::Result<Arc<LocalVolumes>> {
    let writers: Arc<dyn Writers> = Arc::clone(processes) as Arc<dyn Writers>;
    let opened = LocalVolumes::open_with_writers(data, cluster, writers);
    Ok(Arc::new(opened.context("cannot open the volumes of a cluster")?))
}

/// The name of this process: another one after each start.
pub(crate) fn instance() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "interlock" } else { host };
    format!("{host}-{}-{}", std::process::id(), Timestamp::now().as_millisecond())
}

/// How long something that must be there soon is waited for.
pub(crate) const SOON: Duration = Duration::from_secs(30);
