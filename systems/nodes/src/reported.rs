//! What DPUs report of a machine.

use crate::filed::REPORTS_BY_NODE;
use crate::record::NodeRecord;
use interlock_api::nodes::{DpuReportStatus, PortReport};
use interlock_kernel::{Place, View, read_part};

/// What any DPU reports of this very machine, at whichever port.
pub(crate) fn of(node: &NodeRecord, view: &dyn View) -> Vec<PortReport> {
    let reports = view.find(Place::HUB, &REPORTS_BY_NODE, node.uid());
    let statuses = reports
        .iter()
        .filter_map(|report| read_part::<DpuReportStatus>(report, "status").ok().flatten());
    let ports = statuses.flat_map(|status| status.ports);
    ports.filter(|port| port.node.as_ref().is_some_and(|it| it.uid == node.uid())).collect()
}

/// Whether a DPU knows of an epoch that the machine does not: the hub was restored from an old backup, and what the
/// machine says of itself is out of date. It is given to nobody before `nodes/pool` has caught up.
pub(crate) fn is_ahead(node: &NodeRecord, view: &dyn View) -> bool {
    of(node, view).iter().any(|port| {
        let applied = port.applied.as_ref().map_or(0, |applied| applied.epoch);
        port.floor > node.status.floor || applied > node.status.epoch
    })
}
