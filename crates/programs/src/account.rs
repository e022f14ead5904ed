//! Who a controller is on API servers.

use std::fmt;

/// An account: the controllers that share it share its rights. Each workload cluster, each tenant and each DPU has
/// its own of every account but the hub's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// The controllers of the hub.
    Controllers,
    /// What makes and keeps the cloud identities of service accounts.
    Identities,
    /// The syncer of a cluster, and its heartbeat.
    Syncer,
    /// What runs the pods of a cluster as processes.
    Runtime,
    /// What makes, snapshots and fills the volumes of a cluster.
    Volumes,
    /// What makes the pods of Deployments and the like.
    Workloads,
    /// What decides on the updates of clusters.
    Rollouts,
    /// What brings a cluster to what it is to run.
    Applier,
    /// What keeps the record of machines.
    Machines,
    /// What gives machines to the claims of a tenant.
    Claims,
    /// What asks the DPUs of a tenant's machines, on the control plane of the tenant alone.
    Attachments,
    /// The agent of a DPU.
    Dpu,
}

impl Account {
    /// Whether it belongs to one workload cluster.
    pub const fn is_of_cluster(self) -> bool {
        match self {
            Account::Syncer
            | Account::Runtime
            | Account::Volumes
            | Account::Workloads
            | Account::Applier => true,
            Account::Controllers
            | Account::Identities
            | Account::Rollouts
            | Account::Machines
            | Account::Claims
            | Account::Attachments
            | Account::Dpu => false,
        }
    }

    /// The user that it is on a server of ours, for a cluster, a tenant or a DPU, or for the hub.
    pub fn user(self, of: Option<&str>) -> String {
        match of {
            Some(name) => format!("system:interlock:{self}:{name}"),
            None => format!("system:interlock:{self}"),
        }
    }

    /// The role that has its rights.
    pub const fn role(self) -> &'static str {
        match self {
            Account::Controllers => "interlock:controllers",
            Account::Identities => "interlock:identities",
            Account::Syncer => "interlock:syncer",
            Account::Runtime => "interlock:runtime",
            Account::Volumes => "interlock:volumes",
            Account::Workloads => "interlock:workloads",
            Account::Rollouts => "interlock:rollouts",
            Account::Applier => "interlock:applier",
            Account::Machines => "interlock:machines",
            Account::Claims => "interlock:claims",
            Account::Attachments => "interlock:attachments",
            Account::Dpu => "interlock:dpu",
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Account::Controllers => "controllers",
            Account::Identities => "identities",
            Account::Syncer => "syncer",
            Account::Runtime => "runtime",
            Account::Volumes => "volumes",
            Account::Workloads => "workloads",
            Account::Rollouts => "rollouts",
            Account::Applier => "applier",
            Account::Machines => "machines",
            Account::Claims => "claims",
            Account::Attachments => "attachments",
            Account::Dpu => "dpu",
        })
    }
}
