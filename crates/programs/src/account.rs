//! Who a controller is on API servers.

use std::fmt;

/// An account: the controllers that share it share its rights. Each workload cluster has its own of
/// every account but the hub's.
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
}

impl Account {
    /// Whether it belongs to one workload cluster.
    pub const fn is_of_cluster(self) -> bool {
        match self {
            Account::Controllers | Account::Identities => false,
            Account::Syncer | Account::Runtime | Account::Volumes => true,
        }
    }

    /// The user that it is on a server of ours, for a cluster or for the hub.
    pub fn user(self, cluster: Option<&str>) -> String {
        match cluster {
            Some(cluster) => format!("system:interlock:{self}:{cluster}"),
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
        })
    }
}
