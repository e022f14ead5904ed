//! Which programs of machines a process runs: for each tenant, for each DPU, and for each pair of them that has a machine.
//! Pure.

use interlock_api::nodes::{DpuName, PhysicalNode, Plane, Rack, Ref, Tenant};
use interlock_api::placement::SecretKey;
use kube_core::ResourceExt;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A Rack with this label has DPUs that the process itself runs the agents of.
pub const LABEL_EMBEDDED: &str = "interlock.dev/embedded";

/// Where the control plane of a tenant is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaneName {
    /// A logical cluster of the server of the hub.
    LogicalCluster(String),
    /// Another API server, by a Secret of the hub.
    Elsewhere {
        /// The namespace of the Secret.
        namespace: String,
        /// The name of the Secret.
        name: String,
        /// The key of the kubeconfig in it.
        key: String,
    },
}

impl PlaneName {
    fn of(plane: &Plane) -> PlaneName {
        match plane {
            Plane::LogicalCluster(name) => PlaneName::LogicalCluster(name.clone()),
            Plane::KubeconfigSecret(SecretKey { namespace, name, key }) => {
                let (namespace, name, key) = (namespace.clone(), name.clone(), key.clone());
                PlaneName::Elsewhere { namespace, name, key }
            }
        }
    }
}

/// What a process serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// All tenants, and the DPUs of embedded racks.
    Fleet,
    /// All tenants.
    Tenants,
    /// One DPU.
    Dpu(DpuName),
}

impl Serves {
    fn has_tenants(&self) -> bool {
        matches!(self, Serves::Fleet | Serves::Tenants)
    }

    fn has_dpu(&self, rack: &Rack, dpu: &DpuName) -> bool {
        match self {
            Serves::Fleet => is_embedded(rack),
            Serves::Tenants => false,
            Serves::Dpu(here) => here == dpu,
        }
    }
}

/// One program that runs by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// The controllers of a tenant.
    Tenant {
        /// The Tenant.
        tenant: Ref,
        /// Its control plane.
        plane: PlaneName,
    },
    /// The agent of a DPU.
    Dpu {
        /// The DPU.
        here: DpuName,
    },
    /// What the agent of a DPU does for a tenant.
    DpuTenant {
        /// The DPU.
        here: DpuName,
        /// Its address in the network between DPUs.
        vtep: IpAddr,
        /// The Tenant.
        tenant: Ref,
        /// Its control plane.
        plane: PlaneName,
    },
}

/// What has to run. A DPU serves a tenant while a machine that is wired to it has an assignment of that tenant, also
/// while the machine is being released.
pub fn wanted(
    serves: &Serves,
    tenants: &[Tenant],
    racks: &[Rack],
    nodes: &[PhysicalNode],
) -> BTreeSet<Unit> {
    let mut units = BTreeSet::new();
    let reference = |tenant: &Tenant| Ref::new(tenant.name_any(), tenant.uid().unwrap_or_default());
    for tenant in tenants.iter().filter(|_| serves.has_tenants()) {
        let plane = PlaneName::of(&tenant.spec.plane);
        units.insert(Unit::Tenant { tenant: reference(tenant), plane });
    }
    for rack in racks {
        for dpu in &rack.spec.dpus {
            let here = DpuName::new(rack.name_any(), dpu.name.clone());
            if !serves.has_dpu(rack, &here) {
                continue;
            }
            for tenant in tenants.iter().filter(|tenant| is_served(tenant, &here, nodes)) {
                units.insert(Unit::DpuTenant {
                    here: here.clone(),
                    vtep: dpu.vtep,
                    tenant: reference(tenant),
                    plane: PlaneName::of(&tenant.spec.plane),
                });
            }
            units.insert(Unit::Dpu { here });
        }
    }
    units
}

fn is_embedded(rack: &Rack) -> bool {
    rack.labels().get(LABEL_EMBEDDED).is_some_and(|value| value == "true")
}

fn is_served(tenant: &Tenant, dpu: &DpuName, nodes: &[PhysicalNode]) -> bool {
    let uid = tenant.uid().unwrap_or_default();
    nodes.iter().any(|node| {
        let assignment = node.status.as_ref().and_then(|status| status.assignment.as_ref());
        assignment.is_some_and(|it| it.tenant.uid == uid) && node.spec.at(dpu).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn tenant(name: &str) -> Tenant {
        let tenant = json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "Tenant",
            "metadata": {"name": name, "uid": format!("uid-{name}")},
            "spec": {"plane": {"logicalCluster": name}}});
        serde_json::from_value(tenant).expect("a Tenant")
    }

    fn rack(labels: Value) -> Rack {
        let rack = json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "Rack",
            "metadata": {"name": "r1", "labels": labels},
            "spec": {"dpus": [{"name": "d1", "vtep": "10.0.0.1"}, {"name": "d2", "vtep": "10.0.0.2"}]}});
        serde_json::from_value(rack).expect("a Rack")
    }

    fn node(status: Value) -> PhysicalNode {
        let node = json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "PhysicalNode",
            "metadata": {"name": "n1", "uid": "uid-n1"},
            "spec": {"rack": "r1", "dpus": [
                {"rack": "r1", "dpu": "d1", "port": "p1", "mac": "02:00:00:00:00:01"}]},
            "status": status});
        serde_json::from_value(node).expect("a PhysicalNode")
    }

    fn pairs(units: &BTreeSet<Unit>) -> Vec<String> {
        let pair = |unit: &Unit| match unit {
            Unit::DpuTenant { here, tenant, .. } => Some(format!("{here} {}", tenant.name)),
            Unit::Tenant { .. } | Unit::Dpu { .. } => None,
        };
        units.iter().filter_map(pair).collect()
    }

    #[test]
    fn a_dpu_serves_a_tenant_from_the_assignment_of_a_machine_until_it_is_returned() {
        let tenants = [tenant("blue"), tenant("green")];
        let racks = [rack(json!({"interlock.dev/embedded": "true"}))];
        let assignment = json!({"tenant": {"name": "blue", "uid": "uid-blue"},
            "claim": {"name": "web", "uid": "c"}, "epoch": 1, "vni": 4096});
        for (phase, floor) in [("Bound", 0), ("Releasing", 1)] {
            let status =
                json!({"phase": phase, "epoch": 1, "floor": floor, "assignment": assignment});
            let nodes = [node(status)];
            let units = wanted(&Serves::Fleet, &tenants, &racks, &nodes);
            assert_eq!(pairs(&units), ["r1.d1 blue"]);
            assert_eq!(units.len(), 2 + 2 + 1, "two tenants, two DPUs, one pair");
        }
        let returned = json!({"phase": "Available", "epoch": 1, "floor": 1});
        assert!(pairs(&wanted(&Serves::Fleet, &tenants, &racks, &[node(returned)])).is_empty());
    }

    #[test]
    fn a_process_of_its_own_serves_one_dpu_or_the_tenants() {
        let (tenants, racks) = ([tenant("blue")], [rack(json!({}))]);
        let assignment = json!({"tenant": {"name": "blue", "uid": "uid-blue"},
            "claim": {"name": "web", "uid": "c"}, "epoch": 1, "vni": 4096});
        let nodes =
            [node(json!({"phase": "Bound", "epoch": 1, "floor": 0, "assignment": assignment}))];
        let of = |serves| wanted(&serves, &tenants, &racks, &nodes);
        assert_eq!(pairs(&of(Serves::Dpu(DpuName::new("r1", "d1")))), ["r1.d1 blue"]);
        assert_eq!(of(Serves::Dpu(DpuName::new("r1", "d2"))).len(), 1);
        assert!(of(Serves::Dpu(DpuName::new("r1", "d9"))).is_empty());
        let tenants_alone = of(Serves::Tenants);
        assert!(tenants_alone.iter().all(|unit| matches!(unit, Unit::Tenant { .. })));
        assert_eq!(tenants_alone.len(), 1);
    }

    #[test]
    fn the_agents_of_racks_that_are_not_embedded_run_elsewhere() {
        assert!(wanted(&Serves::Fleet, &[], &[rack(json!({}))], &[]).is_empty());
    }
}
