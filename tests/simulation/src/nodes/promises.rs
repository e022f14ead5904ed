//! What must hold after every event: the promises of the checker's world of nodes, for several machines at once.

use super::dpus::Dpus;
use super::{DPUS, dpu_name};
use crate::engine::Broken;
use crate::engine::truth::Truth;
use interlock_api::nodes::{Assignment, DpuReportStatus, PhysicalNodeStatus, TenantStatus};
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{Object, read_part};
use interlock_nodes::kinds::{DPU_REPORT, PHYSICAL_NODE, TENANT};
use interlock_nodes::outside::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// What must be remembered to see that a promise is broken.
#[derive(Default)]
pub(crate) struct Promises {
    /// The highest floor that each DPU ever reported as clean, by the uid of the node.
    reported: BTreeMap<(usize, String), i64>,
    /// Every epoch of every machine that some DPU had open.
    opened: BTreeSet<(String, i64)>,
    /// The versions that were checked last, of the server and of the DPUs.
    checked: Option<(u64, u64)>,
}

impl Promises {
    /// How often a machine was opened for another epoch.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.len() as u64
    }

    /// Holds what is true against what must be.
    pub(crate) fn check(&mut self, truth: &Truth, dpus: &Dpus) -> Result<(), Broken> {
        let now = Some((truth.newest, dpus.changes()));
        if self.checked == now {
            return Ok(());
        }
        self.checked = now;
        networks_are_exclusive(truth)?;
        one_tenant(dpus)?;
        self.remember_reports(truth);
        let nodes: BTreeMap<&str, PhysicalNodeStatus> = truth
            .all(crate::HUB, &PHYSICAL_NODE)
            .iter()
            .map(|it| (uid_of(it), status(it)))
            .collect();
        for (dpu, port, entry) in dpus.open() {
            let place = format!("port {port} of {}", DPUS[dpu]);
            let node = nodes.get(entry.tag.node.as_str());
            let given = node.and_then(|node| node.assignment.as_ref());
            if !given.is_some_and(|given| is_for(entry, given)) {
                return Err(format!(
                    "HardwareIsOwned: {place} is open for {:?}, and the hub says {node:?}",
                    entry.tag
                ));
            }
            let reported = self.reported.get(&(dpu, entry.tag.node.clone())).copied();
            if let Some(floor) = reported.filter(|floor| entry.tag.epoch <= *floor) {
                return Err(format!(
                    "ReportsStayTrue: {place} is open for {:?}, and was reported clean up to {floor}",
                    entry.tag
                ));
            }
            self.opened.insert((entry.tag.node.clone(), entry.tag.epoch));
        }
        Ok(())
    }

    fn remember_reports(&mut self, truth: &Truth) {
        for report in truth.all(crate::HUB, &DPU_REPORT) {
            let name = name_of(report);
            let dpu = (0..DPUS.len()).find(|dpu| dpu_name(*dpu).to_string() == name);
            let Some(dpu) = dpu else { continue };
            let status = read_part::<DpuReportStatus>(report, "status").ok().flatten();
            for port in status.unwrap_or_default().ports.into_iter().filter(|port| port.clean) {
                let Some(node) = port.node else { continue };
                let known = self.reported.entry((dpu, node.uid)).or_insert(port.floor);
                *known = (*known).max(port.floor);
            }
        }
    }
}

/// The status of a node, or that of one that no controller has handled yet.
pub(crate) fn status(node: &Object) -> PhysicalNodeStatus {
    read_part(node, "status").ok().flatten().unwrap_or_default()
}

/// Whether an entry is for this assignment.
pub(crate) fn is_for(entry: &Entry, given: &Assignment) -> bool {
    let tag = &entry.tag;
    tag.epoch == given.epoch
        && tag.tenant == given.tenant.uid
        && tag.claim == given.claim.uid
        && entry.vni == given.vni
}

/// All DPUs together have a machine programmed for at most one tenant. The cable counts, not what an entry says of it.
fn one_tenant(dpus: &Dpus) -> Result<(), Broken> {
    let mut tenants: BTreeMap<&str, &str> = BTreeMap::new();
    for (_, port, entry) in dpus.open() {
        let tenant = entry.tag.tenant.as_str();
        let known = tenants.entry(port).or_insert(tenant);
        if *known != tenant {
            return Err(format!(
                "TenantIsolation: port {port} is open for {known} and for {tenant}"
            ));
        }
    }
    Ok(())
}

/// No two tenants have one network.
fn networks_are_exclusive(truth: &Truth) -> Result<(), Broken> {
    let mut seen = BTreeSet::new();
    for tenant in truth.all(crate::HUB, &TENANT) {
        let status = read_part::<TenantStatus>(tenant, "status").ok().flatten();
        let vni = status.and_then(|status| status.vni);
        if let Some(vni) = vni.filter(|vni| !seen.insert(*vni)) {
            return Err(format!("NetworkExclusive: two tenants have network {vni}"));
        }
    }
    Ok(())
}
