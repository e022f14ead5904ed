//! Mistakes of the hub: of what gives a node, ends its epoch, and returns it.

use super::Row;
use crate::claims::{Claims, Decision as OfClaims, Facts as ClaimsFacts, network};
use crate::kinds::{DPU_REPORT, NODE_CLAIM, PHYSICAL_NODE};
use crate::pool::decide::Decision as Of;
use crate::pool::facts as pool;
use crate::pool::{Decision as OfPool, Facts as PoolFacts, Pool, Scene};
use crate::record::Revocation;
use crate::world::programs::Bend;
use crate::world::size::Size;
use crate::world::start::{NODE, PORT, RACK, node, wired};
use interlock_api::nodes::{
    DPU_LABEL_PREFIX, DpuName, DpuReportStatus, FIRST_VNI, OrphanPolicy, PortReport,
};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Index, Kind, Name, Object, Observed, Place, Room, View, read_part};
use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;

/// One tenant, one DPU, and all rooms.
const ONE: Size = Size { tenants: 1, ..Size::SMALL };

pub(super) fn rows() -> Vec<Row> {
    let mut rows = of_the_pool();
    rows.extend(of_people());
    rows.extend(of_claims());
    rows
}

fn of_the_pool() -> Vec<Row> {
    vec![
        Row {
            name: "returned-without-reports",
            sentence: "a node that is revoked returns before its DPUs have reported",
            breaks: &["PoolIsClean"],
            size: Size { deletes: 1, ..ONE },
            bend: |system| {
                system.bends.pool = Some(Bend::Decide(|facts| {
                    clean(facts, |node| {
                        for dpu in &mut node.dpus {
                            dpu.is_clean = true;
                        }
                        node.state.open.clear();
                    })
                }));
            },
        },
        Row {
            name: "report-for-another-epoch-counts",
            sentence: "a DPU that reported the floor of the epoch before counts as clean",
            breaks: &["PoolIsClean"],
            size: Size { deletes: 1, ..ONE },
            bend: |system| {
                system.bends.pool = Some(Bend::Observe(|room, subject, view, live_reads| {
                    counting(room.observe(subject, view, live_reads), view, |node, port| {
                        port.is_clean_of(&node.state.uid, node.state.epoch - 1)
                    })
                }));
            },
        },
        Row {
            name: "report-of-another-node-counts",
            sentence: "what a DPU reported of the node that had the name before counts for its successor",
            breaks: &["PoolIsClean"],
            size: Size { replaced: 1, flights: 1, late: 3, ..ONE },
            bend: |system| {
                system.bends.pool = Some(Bend::Observe(|room, subject, view, live_reads| {
                    counting(room.observe(subject, view, live_reads), view, |node, port| {
                        port.clean && port.node.is_some() && port.floor >= node.state.epoch
                    })
                }));
            },
        },
        Row {
            name: "reclaim-as-a-flag",
            sentence: "a node that was reclaimed once is reclaimed again, whoever has it then",
            breaks: &["RevokedForAReason"],
            size: Size { reclaims: 1, ..ONE },
            bend: |system| {
                system.bends.pool = Some(Bend::Decide(|facts| {
                    clean(facts, |node| {
                        if node.reclaim_epoch > 0 {
                            node.reclaim_epoch = i64::MAX;
                        }
                    })
                }));
            },
        },
    ]
}

/// What people declare is believed too easily, or forgotten.
fn of_people() -> Vec<Row> {
    vec![
        Row {
            name: "fence-without-phase-since",
            sentence: "a NodeFence counts whenever its power was seen off, also before the epoch was revoked",
            breaks: &["PoolIsClean"],
            size: Size { deletes: 1, gone: 1, back: 1, fences: 1, ..ONE },
            bend: |system| system.bends.pool = Some(Bend::Decide(whenever)),
        },
        Row {
            name: "revoke-blind-to-cluster",
            sentence: "the epoch of a node ends at once, whatever runs on the node",
            breaks: &["MachineIsTenants"],
            size: Size { reclaims: 1, cluster: 1, ..ONE },
            bend: |system| {
                system.bends.pool = Some(Bend::Decide(|facts| match Pool::decide(facts) {
                    OfPool::Node(Of::Revoke(_, why)) => {
                        OfPool::Node(Of::Revoke(Revocation::AtOnce, why))
                    }
                    decision => decision,
                }));
            },
        },
        Row {
            name: "drained-by-the-request",
            sentence: "a cluster that is asked to drain counts as drained",
            breaks: &["MachineIsTenants"],
            size: Size { reclaims: 1, cluster: 1, ..ONE },
            bend: |system| system.bends.pool = Some(Bend::Decide(drained_at_once)),
        },
    ]
}

fn of_claims() -> Vec<Row> {
    vec![
        Row {
            name: "wiring-not-compared",
            sentence: "a node is given by the wiring that it was labelled with, whatever its spec says now",
            breaks: &["ConfigurationConsistency"],
            size: Size { rewired: 1, ..ONE },
            bend: |system| {
                system.bends.claims = Some(Bend::Observe(|room, subject, view, live_reads| {
                    room.observe(subject, &AsLabelled(view), live_reads)
                }));
            },
        },
        Row {
            name: "given-before-the-record-is-raised",
            sentence: "after a restore a node is given although a DPU reports an epoch that the hub does not know",
            breaks: &["HardwareIsOwned"],
            size: Size { restores: 1, ..Size::SMALL },
            bend: |system| {
                system.bends.claims = Some(Bend::Observe(|room, subject, view, live_reads| {
                    room.observe(subject, &WithoutReports(view), live_reads)
                }));
            },
        },
        Row {
            name: "bound-before-it-is-chosen",
            sentence: "a node is bound at once, before the claim lists it",
            breaks: &["ChoiceFirst"],
            size: ONE,
            bend: |system| {
                system.bends.claims = Some(Bend::Observe(|room, subject, view, live_reads| {
                    room.observe(subject, &Chosen(view), live_reads)
                }));
            },
        },
        Row {
            name: "missing-is-deleted",
            sentence: "a claim that a live read does not show counts as deleted by its tenant",
            breaks: &["RevokedForAReason"],
            size: Size { vanishes: 1, ..ONE },
            bend: |system| {
                system.bends.claims = Some(Bend::Decide(|facts: &ClaimsFacts| {
                    let mut facts = facts.clone();
                    if let ClaimsFacts::Claim(facts) = &mut facts
                        && let Some(tenant) = &mut facts.tenant
                    {
                        tenant.orphans = OrphanPolicy::Release;
                    }
                    Claims::decide(&facts)
                }));
            },
        },
        Row {
            name: "network-without-a-lease",
            sentence: "a tenant takes the first network, whoever has its Lease",
            breaks: &["NetworkExclusive"],
            size: Size { fresh: 1, ..Size::SMALL },
            bend: |system| system.bends.claims = Some(Bend::Decide(first_network)),
        },
    ]
}

/// The decision by other facts about a node.
fn clean(facts: &PoolFacts, change: impl FnOnce(&mut pool::Node)) -> OfPool {
    let mut facts = facts.clone();
    if let PoolFacts::Node(facts) = &mut facts
        && let Some(node) = &mut facts.node
    {
        change(node);
    }
    Pool::decide(&facts)
}

/// The decision as if each NodeFence named the present phase.
fn whenever(facts: &PoolFacts) -> OfPool {
    let mut facts = facts.clone();
    if let PoolFacts::Node(facts) = &mut facts {
        let since = facts.node.as_ref().and_then(|node| node.state.phase_since.clone());
        for fence in &mut facts.fences {
            fence.phase_since = since.clone().unwrap_or_else(|| fence.phase_since.clone());
        }
    }
    Pool::decide(&facts)
}

/// The decision as if a cluster that was asked to drain had done so.
fn drained_at_once(facts: &PoolFacts) -> OfPool {
    clean(facts, |node| {
        let Some(cluster) = &mut node.cluster else { return };
        for seen in [Some(&mut cluster.cached), cluster.live.as_mut()].into_iter().flatten() {
            if *seen == pool::OnCluster::Draining {
                *seen = pool::OnCluster::Drained;
            }
        }
    })
}

/// What was observed, with other reports counted as clean.
fn counting(
    observed: Observed<PoolFacts, Scene>,
    view: &dyn View,
    is_clean: fn(&pool::Node, &PortReport) -> bool,
) -> Observed<PoolFacts, Scene> {
    let Observed::Seen { mut facts, scene } = observed else { return observed };
    if let PoolFacts::Node(facts) = &mut facts
        && let Some(node) = &mut facts.node
    {
        let reported = |name: &DpuName| {
            let name = Name::cluster_wide(&name.to_string());
            let report = view.get(Place::HUB, &DPU_REPORT, &name)?;
            let status = read_part::<DpuReportStatus>(&report, "status").ok().flatten()?;
            status.port(PORT).cloned()
        };
        let is_counted = |name: &DpuName| reported(name).is_some_and(|port| is_clean(node, &port));
        let counted: Vec<bool> = node.dpus.iter().map(|dpu| is_counted(&dpu.name)).collect();
        let open = node.state.open.iter().filter(|name| !is_counted(name)).cloned().collect();
        for (dpu, is_clean) in node.dpus.iter_mut().zip(counted) {
            dpu.is_clean |= is_clean;
        }
        node.state.open = open;
    }
    Observed::Seen { facts, scene }
}

/// A view in which a claim that waits has chosen a node that is in the pool.
struct Chosen<'a>(&'a dyn View);

impl View for Chosen<'_> {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        let object = self.0.get(place, kind, name)?;
        let is_waiting = *kind == NODE_CLAIM
            && object.metadata.deletion_timestamp.is_none()
            && object.data["status"]["nodes"].as_array().is_none_or(Vec::is_empty);
        let node = self.0.get(Place::HUB, &PHYSICAL_NODE, &node())?;
        if !is_waiting || node.data["status"]["phase"] != "Available" {
            return Some(object);
        }
        let mut chosen = (*object).clone();
        chosen.data["status"]["nodes"] =
            json!([{"name": NODE, "uid": uid_of(&node), "state": "Chosen"}]);
        Some(Arc::new(chosen))
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.0.list(place, kind, namespace)
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.0.find(place, index, value)
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.0.count(place, index, value)
    }
}

fn first_network(facts: &ClaimsFacts) -> OfClaims {
    match Claims::decide(facts) {
        OfClaims::Network(network::Decision::ReadLeases | network::Decision::Win(_)) => {
            OfClaims::Network(network::Decision::SetVni(FIRST_VNI))
        }
        decision => decision,
    }
}

/// A view in which nodes are wired as they were when the world began.
pub(super) struct AsLabelled<'a>(pub(super) &'a dyn View);

fn as_labelled(object: Object) -> Object {
    if object.metadata.name.as_deref() != Some(NODE) {
        return object;
    }
    let mut changed = (*object).clone();
    let dpus = object.metadata.labels.iter().flatten();
    let dpus = dpus.filter(|(key, _)| key.starts_with(DPU_LABEL_PREFIX)).count();
    changed.data["spec"]["rack"] = json!(RACK);
    changed.data["spec"]["dpus"] = wired(dpus as u64)["spec"]["dpus"].clone();
    Arc::new(changed)
}

impl View for AsLabelled<'_> {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.0.get(place, kind, name).map(as_labelled)
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.0.list(place, kind, namespace).into_iter().map(as_labelled).collect()
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.0.find(place, index, value).into_iter().map(as_labelled).collect()
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.0.count(place, index, value)
    }
}

/// A view in which no DPU has reported anything.
struct WithoutReports<'a>(&'a dyn View);

impl View for WithoutReports<'_> {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.0.get(place, kind, name).filter(|_| *kind != DPU_REPORT)
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        let mut found = self.0.list(place, kind, namespace);
        found.retain(|_| *kind != DPU_REPORT);
        found
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        let mut found = self.0.find(place, index, value);
        found.retain(|_| index.kind != DPU_REPORT);
        found
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.find(place, index, value).len()
    }
}
