//! The program of the workloads of one embedded cluster.

use crate::{Account, Program, Visitor};
use interlock_kernel::Nothing;
use interlock_workloads::node::{LocalNode, Machine as Node};
use interlock_workloads::{
    cronjob, daemonset, deployment, disruption, endpoints, job, replicaset, statefulset,
};
use std::sync::Arc;

/// The controllers of Deployments and the like. They run where the pods of a logical cluster are processes of a
/// machine: a cluster with nodes has controllers of its own.
#[derive(Debug, Clone)]
pub struct Workloads {
    /// The machine, which is the one node of the cluster.
    pub node: Node,
}

impl Workloads {
    /// Those of no machine in particular: what the controllers may do does not depend on which.
    pub fn of_any() -> Workloads {
        let node = Node {
            name: "any".to_owned(),
            processors: 1,
            memory_bytes: 0,
            disk_bytes: 0,
            pods: 0,
            boot_id: String::new(),
            version: String::new(),
            architecture: String::new(),
            operating_system: String::new(),
            kernel_version: String::new(),
        };
        Workloads { node }
    }
}

impl<V: Visitor<Nothing>> Program<V> for Workloads {
    fn visit(&self, visitor: &mut V) {
        let (account, node) = (Account::Workloads, self.node.name.as_str());
        visitor.room(account, LocalNode::new(self.node.clone()));
        visitor.room(account, deployment::Deployments);
        visitor.room(account, replicaset::ReplicaSets { node: Arc::from(node) });
        visitor.room(account, statefulset::StatefulSets::new(node));
        visitor.room(account, daemonset::DaemonSets);
        visitor.room(account, job::Jobs::new(node));
        visitor.room(account, cronjob::CronJobs::new(cronjob::only_utc));
        visitor.room(account, endpoints::Endpoints);
        visitor.room(account, disruption::Disruptions);
    }
}
