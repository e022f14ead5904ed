//! What runs for long: the hub's controllers, and the agents of workload clusters.

pub(crate) mod cluster;
mod hands;
pub(crate) mod hub;
pub(crate) mod install;

use crate::fleet::time;
use interlock_placement::clusters::decide::SILENCE_SECONDS;
use interlock_placement::heartbeat::decide::PERIOD;
use interlock_shell::leader::{Campaign, LeaseSettings};
use interlock_shell::{Server, Settings, Shell};
use jiff::Timestamp;
use std::time::Duration;

/// How fast the parts of a fleet notice that another one is gone. Nothing that is promised rests on
/// any of these: they are options so that a test need not wait as long as a person would.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Pace {
    /// How long a cluster may be silent before the hub calls it unreachable
    #[arg(long, hide = true, value_name = "TIME", default_value = "40s", value_parser = time)]
    pub(crate) unreachable_after: Duration,
    /// How often a syncer gives a sign of life
    #[arg(long, hide = true, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) heartbeat_every: Duration,
    /// How long the work of a process that is gone waits for another one
    #[arg(long, hide = true, value_name = "TIME", default_value = "15s", value_parser = time)]
    pub(crate) lease: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            unreachable_after: Duration::from_secs(SILENCE_SECONDS.unsigned_abs()),
            heartbeat_every: PERIOD,
            lease: Duration::from_secs(15),
        }
    }
}

/// How controllers are run: many subjects wait for the disk and for other servers at once.
pub(crate) fn settings() -> Settings {
    Settings { workers: 8, ..Settings::default() }
}

/// A shell whose controllers act only while this process leads. Writes are guarded whoever leads;
/// the lease only spares two processes each other's work.
pub(crate) fn shell_that_leads(hub: &Server, lease: &str, pace: &Pace) -> Shell {
    let holds_for = pace.lease;
    let lease = LeaseSettings {
        holds_for,
        acts_for: holds_for * 2 / 3,
        tries_every: holds_for * 2 / 15,
        ..LeaseSettings::new(lease, &instance())
    };
    let campaign = Campaign::begin(hub.client().clone(), lease);
    Shell::new(settings()).with_campaign(campaign)
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
