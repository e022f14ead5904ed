//! Which programs of machines a process runs: for each tenant, for each DPU, and for each pair of them that has a machine.
//! Pure.
//!
//! What it depends on is a few words of each object, which caches file the objects under as these change. So nobody reads
//! all machines to see what has to run.

use interlock_api::nodes::{DpuName, Plane, RackSpec, Ref, TenantSpec};
use interlock_api::placement::SecretKey;
use interlock_kernel::Index;
use interlock_kernel::metadata::{label, name_of, uid_of};
use interlock_kernel::read_part;
use interlock_nodes::kinds::{PHYSICAL_NODE, RACK, TENANT};
use kube_core::DynamicObject;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A Rack with this label has DPUs that the process itself runs the agents of.
pub const LABEL_EMBEDDED: &str = "interlock.dev/embedded";

/// Where the control plane of a tenant is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

    fn has_dpu(&self, dpu: &RackedDpu) -> bool {
        match self {
            Serves::Fleet => dpu.is_embedded,
            Serves::Tenants => false,
            Serves::Dpu(here) => *here == dpu.here,
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

impl Unit {
    /// The tenant that it is for.
    pub fn tenant(&self) -> Option<&Ref> {
        match self {
            Unit::Tenant { tenant, .. } | Unit::DpuTenant { tenant, .. } => Some(tenant),
            Unit::Dpu { .. } => None,
        }
    }

    /// The DPU that it is for.
    pub fn dpu(&self) -> Option<&DpuName> {
        match self {
            Unit::Dpu { here } | Unit::DpuTenant { here, .. } => Some(here),
            Unit::Tenant { .. } => None,
        }
    }

    /// The control plane of a tenant that it works on.
    pub fn plane(&self) -> Option<(&str, &PlaneName)> {
        match self {
            Unit::Tenant { tenant, plane } | Unit::DpuTenant { tenant, plane, .. } => {
                Some((&tenant.name, plane))
            }
            Unit::Dpu { .. } => None,
        }
    }
}

/// What a Tenant says of where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantPlace {
    /// The Tenant.
    pub tenant: Ref,
    /// Its control plane.
    pub plane: PlaneName,
}

/// What a Rack says of one of its DPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RackedDpu {
    /// The DPU.
    pub here: DpuName,
    /// Its address in the network between DPUs.
    pub vtep: IpAddr,
    /// Whether the process of the hub runs its agent.
    pub is_embedded: bool,
}

/// What a PhysicalNode says of a DPU that it is wired to, while it has an assignment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TenantAtDpu {
    /// The DPU.
    pub here: DpuName,
    /// The Tenant of the assignment.
    pub tenant: Ref,
}

/// Tenants, by a [`TenantPlace`].
pub const TENANTS_SERVED: Index = Index {
    name: "served",
    kind: TENANT,
    values: |object| {
        let spec = read_part::<TenantSpec>(object, "spec").ok().flatten();
        let tenant = Ref::new(name_of(object), uid_of(object));
        filed(spec.map(|spec| TenantPlace { tenant, plane: PlaneName::of(&spec.plane) }))
    },
};

/// Racks, by a [`RackedDpu`] for each of their DPUs.
pub const RACKS_SERVED: Index = Index {
    name: "served",
    kind: RACK,
    values: |object| {
        let spec = read_part::<RackSpec>(object, "spec").ok().flatten();
        let is_embedded = label(object, LABEL_EMBEDDED) == Some("true");
        let dpus = spec.map(|spec| spec.dpus).unwrap_or_default();
        filed(dpus.into_iter().map(|dpu| {
            let here = DpuName::new(name_of(object), dpu.name);
            RackedDpu { here, vtep: dpu.vtep, is_embedded }
        }))
    },
};

/// PhysicalNodes that have an assignment, by a [`TenantAtDpu`] for each of their DPUs.
pub const NODES_SERVED: Index = Index {
    name: "served",
    kind: PHYSICAL_NODE,
    values: |object| {
        let tenant = &object.data["status"]["assignment"]["tenant"];
        let Ok(tenant) = Ref::deserialize(tenant) else { return Vec::new() };
        filed(dpus_of(object).map(|here| TenantAtDpu { here, tenant: tenant.clone() }))
    },
};

/// PhysicalNodes by the name of each DPU that they are wired to.
pub const NODES_AT_DPU: Index = Index {
    name: "at-dpu",
    kind: PHYSICAL_NODE,
    values: |object| {
        let names: BTreeSet<String> = dpus_of(object).map(|here| here.to_string()).collect();
        names.into_iter().collect()
    },
};

/// The DPUs that a PhysicalNode is wired to, as far as its spec can be read.
fn dpus_of(node: &DynamicObject) -> impl Iterator<Item = DpuName> + '_ {
    let dpus = node.data["spec"]["dpus"].as_array().into_iter().flatten();
    dpus.filter_map(|dpu: &Value| DpuName::deserialize(dpu).ok())
}

/// What an object is filed under.
fn filed<T: Serialize>(seen: impl IntoIterator<Item = T>) -> Vec<String> {
    let values = seen.into_iter().filter_map(|it| serde_json::to_string(&it).ok());
    values.collect::<BTreeSet<String>>().into_iter().collect()
}

/// What is seen of the hub's objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The Tenants.
    pub tenants: Vec<TenantPlace>,
    /// The DPUs of all Racks.
    pub dpus: Vec<RackedDpu>,
    /// Who has a machine where.
    pub at_dpus: Vec<TenantAtDpu>,
}

/// What objects are filed under by one of the indexes named `served`.
pub fn read_all<T: DeserializeOwned>(values: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<T> {
    let read = values.into_iter().map(|value| serde_json::from_str(value.as_ref()));
    read.filter_map(Result::ok).collect()
}

/// What has to run. A DPU serves a tenant while a machine that is wired to it has an assignment of that tenant, also
/// while the machine is being released.
pub fn wanted(serves: &Serves, seen: &Seen) -> BTreeSet<Unit> {
    let mut units = BTreeSet::new();
    if serves.has_tenants() {
        let unit = |TenantPlace { tenant, plane }| Unit::Tenant { tenant, plane };
        units.extend(seen.tenants.iter().cloned().map(unit));
    }
    let places: BTreeMap<&str, &TenantPlace> =
        seen.tenants.iter().map(|place| (&*place.tenant.uid, place)).collect();
    let mut at: BTreeMap<&DpuName, Vec<&TenantPlace>> = BTreeMap::new();
    for TenantAtDpu { here, tenant } in &seen.at_dpus {
        at.entry(here).or_default().extend(places.get(&*tenant.uid).copied());
    }
    for dpu in seen.dpus.iter().filter(|dpu| serves.has_dpu(dpu)) {
        let RackedDpu { here, vtep, .. } = dpu;
        units.extend(at.get(here).into_iter().flatten().map(|place| Unit::DpuTenant {
            here: here.clone(),
            vtep: *vtep,
            tenant: place.tenant.clone(),
            plane: place.plane.clone(),
        }));
        units.insert(Unit::Dpu { here: here.clone() });
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(text: Value) -> DynamicObject {
        serde_json::from_value(text).expect("an object")
    }

    fn tenant(name: &str) -> DynamicObject {
        object(json!({"metadata": {"name": name, "uid": format!("uid-{name}")},
            "spec": {"plane": {"logicalCluster": name}}}))
    }

    fn rack(labels: Value) -> DynamicObject {
        object(json!({"metadata": {"name": "r1", "labels": labels},
            "spec": {"dpus": [{"name": "d1", "vtep": "10.0.0.1"}, {"name": "d2", "vtep": "10.0.0.2"}]}}))
    }

    fn node(status: Value) -> DynamicObject {
        object(json!({"metadata": {"name": "n1", "uid": "uid-n1"},
            "spec": {"rack": "r1", "dpus": [
                {"rack": "r1", "dpu": "d1", "port": "p1", "mac": "02:00:00:00:00:01"},
                {"rack": "r1", "dpu": "d1", "port": "p2", "mac": "02:00:00:00:00:02"}]},
            "status": status}))
    }

    /// What caches with these objects would say.
    fn seen(tenants: &[DynamicObject], racks: &[DynamicObject], nodes: &[DynamicObject]) -> Seen {
        fn of<T: DeserializeOwned>(index: &Index, objects: &[DynamicObject]) -> Vec<T> {
            read_all(objects.iter().flat_map(index.values))
        }
        Seen {
            tenants: of(&TENANTS_SERVED, tenants),
            dpus: of(&RACKS_SERVED, racks),
            at_dpus: of(&NODES_SERVED, nodes),
        }
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
            let units = wanted(&Serves::Fleet, &seen(&tenants, &racks, &nodes));
            assert_eq!(pairs(&units), ["r1.d1 blue"]);
            assert_eq!(units.len(), 2 + 2 + 1, "two tenants, two DPUs, one pair");
        }
        let returned = json!({"phase": "Available", "epoch": 1, "floor": 1});
        let seen = seen(&tenants, &racks, &[node(returned)]);
        assert!(seen.at_dpus.is_empty());
        assert!(pairs(&wanted(&Serves::Fleet, &seen)).is_empty());
    }

    #[test]
    fn a_process_of_its_own_serves_one_dpu_or_the_tenants() {
        let (tenants, racks) = ([tenant("blue")], [rack(json!({}))]);
        let assignment = json!({"tenant": {"name": "blue", "uid": "uid-blue"},
            "claim": {"name": "web", "uid": "c"}, "epoch": 1, "vni": 4096});
        let nodes =
            [node(json!({"phase": "Bound", "epoch": 1, "floor": 0, "assignment": assignment}))];
        let of = |serves| wanted(&serves, &seen(&tenants, &racks, &nodes));
        assert_eq!(pairs(&of(Serves::Dpu(DpuName::new("r1", "d1")))), ["r1.d1 blue"]);
        assert_eq!(of(Serves::Dpu(DpuName::new("r1", "d2"))).len(), 1);
        assert!(of(Serves::Dpu(DpuName::new("r1", "d9"))).is_empty());
        let tenants_alone = of(Serves::Tenants);
        assert!(tenants_alone.iter().all(|unit| matches!(unit, Unit::Tenant { .. })));
        assert_eq!(tenants_alone.len(), 1);
    }

    #[test]
    fn the_agents_of_racks_that_are_not_embedded_run_elsewhere() {
        assert!(wanted(&Serves::Fleet, &seen(&[], &[rack(json!({}))], &[])).is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_filed_under_nothing() {
        let broken = object(json!({"metadata": {"name": "x"},
            "spec": {"dpus": "none", "plane": {"elsewhere": 1}},
            "status": {"assignment": {"tenant": 7}}}));
        for index in [TENANTS_SERVED, RACKS_SERVED, NODES_SERVED, NODES_AT_DPU] {
            assert!((index.values)(&broken).is_empty(), "{}", index.name);
        }
        let assignment = json!({"tenant": {"name": "blue", "uid": "uid-blue"}});
        let two_ports = node(json!({"assignment": assignment}));
        assert_eq!((NODES_AT_DPU.values)(&two_ports), ["r1.d1"]);
        assert_eq!((NODES_SERVED.values)(&two_ports).len(), 1, "two ports of one DPU");
    }

    #[test]
    fn a_namesake_of_the_tenant_of_an_assignment_is_not_served() {
        let racks = [rack(json!({"interlock.dev/embedded": "true"}))];
        let assignment = json!({"tenant": {"name": "blue", "uid": "the-one-before"}});
        let nodes = [node(json!({"assignment": assignment}))];
        let units = wanted(&Serves::Fleet, &seen(&[tenant("blue")], &racks, &nodes));
        assert!(pairs(&units).is_empty());
    }
}
