//! Times without trouble: the beginning, and the end, in which every machine that is given is open for its tenant, and
//! every other one is back in the pool.

use super::people::Machine;
use super::promises::is_for;
use super::{MACHINES, Nodes, PORTS, plane};
use crate::engine::line::Way;
use crate::engine::{Broken, Engine};
use interlock_api::nodes::{
    DpuAttachmentSpec, EntryState, NodeClaimSpec, NodeClaimStatus, NodePhase, TenantStatus,
};
use interlock_kernel::metadata::{is_deleting, name_of};
use interlock_kernel::{Object, read_part};
use interlock_nodes::kinds::{
    DPU_ATTACHMENT, DPU_REPORT, NODE_CLAIM, NODE_FENCE, PHYSICAL_NODE, TENANT,
};
use std::collections::BTreeSet;

/// How many rounds it may take until all is as it should be.
const ROUNDS: usize = 60;
/// After so many seconds a claim forgets a machine that was released, and a release that is blocked says so.
const ALL_IS_SAID_SECONDS: i64 = 700;

impl Engine<Nodes> {
    /// Whether all machines are in the pool, and each tenant has its network.
    pub(crate) fn is_ready_to_begin(&self) -> Result<(), Broken> {
        let machines = self.machines();
        let is_waiting = |it: &&Machine| it.status.phase != NodePhase::Available;
        if let Some(other) = machines.iter().find(is_waiting) {
            return Err(format!("{} never came into the pool: {:?}", other.node, other.status));
        }
        let tenants = self.truth.all(crate::HUB, &TENANT).iter();
        let status = |it: &Object| read_part::<TenantStatus>(it, "status").ok().flatten();
        let with_network =
            tenants.filter(|it| status(it).is_some_and(|status| status.vni.is_some())).count();
        if (machines.len(), with_network) != (MACHINES.len(), self.world.tenants.len()) {
            return Err(format!(
                "{} machines are in the pool, and {with_network} tenants have a network",
                machines.len()
            ));
        }
        Ok(())
    }

    /// The faults stop: all that is given is open, all that is revoked is back, and then nothing is written.
    pub(crate) async fn calm_end(&mut self) -> Result<(), Broken> {
        self.note("the faults stop".to_owned());
        self.mend_all();
        while !self.under_way.is_empty() {
            self.drive(0, Way::Through).await?;
            self.check().await?;
        }
        for _ in 0..100 {
            self.deliver().await?;
            self.check().await?;
        }
        let count = self.world.dpus().count();
        for dpu in 0..count {
            self.power_on(dpu);
        }
        self.end_second_instances();
        self.start_missing().await?;
        self.delete_forged().await?;
        let mut wanting = String::new();
        for round in 0..ROUNDS {
            self.declare_dead().await?;
            self.round(if round < 20 { 3 } else { 15 }).await?;
            match self.wanting() {
                None => return self.ends().await,
                Some(what) => wanting = what,
            }
        }
        Err(format!("after {ROUNDS} calm rounds: {wanting}"))
    }

    fn end_second_instances(&mut self) {
        let mut known = BTreeSet::new();
        let units = self.world.units.iter();
        let second: Vec<u64> =
            units.filter(|(_, unit)| !known.insert(**unit)).map(|(it, _)| *it).collect();
        for instance in second {
            let place = self.actors.iter().position(|actor| actor.instance == instance);
            if let Some(place) = place {
                self.crash(place);
            }
        }
    }

    /// What is as it should be is left alone, also later. Only heartbeats go on.
    async fn ends(&mut self) -> Result<(), Broken> {
        for _ in 0..2 {
            self.round(ALL_IS_SAID_SECONDS).await?;
        }
        self.rest().await?;
        let before = self.versions();
        self.round(61).await?;
        if self.versions() != before {
            return Err("something was written although all was as it should be".to_owned());
        }
        match self.wanting() {
            None => Ok(()),
            Some(what) => Err(format!("all was as it should be, and now: {what}")),
        }
    }

    /// The versions of everything but the Leases.
    fn versions(&self) -> Vec<Option<String>> {
        let at_hub = [TENANT, PHYSICAL_NODE, NODE_FENCE, DPU_REPORT];
        let mut all: Vec<&Object> =
            at_hub.iter().flat_map(|kind| self.truth.all(crate::HUB, kind)).collect();
        for tenant in 0..self.world.tenants.len() {
            for kind in [NODE_CLAIM, DPU_ATTACHMENT] {
                all.extend(self.truth.all(plane(tenant), &kind));
            }
        }
        all.into_iter().map(|object| object.metadata.resource_version.clone()).collect()
    }

    /// The first thing that is not as people want it, if there is one.
    fn wanting(&self) -> Option<String> {
        let machines = self.machines();
        if let Some(what) = machines.iter().find_map(|machine| self.wanting_of(machine)) {
            return Some(what);
        }
        let is_free = machines.iter().any(|it| it.status.phase == NodePhase::Available);
        let mut fences = self.truth.all(crate::HUB, &NODE_FENCE).iter();
        let is_answered = |fence: &&Object| {
            matches!(fence.data["status"]["outcome"].as_str(), Some("Applied" | "Refused"))
        };
        if let Some(fence) = fences.find(|fence| !is_answered(fence)) {
            return Some(format!("{} is not answered", name_of(fence)));
        }
        (0..self.world.tenants.len()).find_map(|tenant| self.wanting_on(tenant, is_free))
    }

    /// A machine is in the pool, or each of its DPUs that has power has it open for its tenant.
    fn wanting_of(&self, machine: &Machine) -> Option<String> {
        let Machine { place, node, status } = machine;
        match status.phase {
            NodePhase::Available => return None,
            NodePhase::Bound => {}
            NodePhase::Releasing | NodePhase::Draining | NodePhase::Quarantined => {
                return Some(format!("{node} is not back in the pool: {status:?}"));
            }
        }
        let dpus = self.world.dpus();
        let given = status.assignment.as_ref()?;
        let is_open = |dpu: usize| {
            let mut open = dpus.open();
            open.any(|(at, port, it)| at == dpu && port == PORTS[*place] && is_for(it, given))
        };
        let mut wired = self.world.wiring[*place].iter().filter(|dpu| dpus.is_on(**dpu));
        let closed = wired.find(|dpu| !is_open(**dpu))?;
        Some(format!("{node} is given, and {} does not have it open", super::DPUS[*closed]))
    }

    /// A claim that is being deleted is gone, another one has what it asks for while machines are free, and an attachment
    /// that is being deleted is gone, unless its DPU never comes back.
    fn wanting_on(&self, tenant: usize, is_free: bool) -> Option<String> {
        let at = plane(tenant);
        for claim in self.truth.all(at, &NODE_CLAIM) {
            let name = name_of(claim);
            if is_deleting(claim) {
                return Some(format!("claim {name} of {at} was deleted and is still there"));
            }
            let spec = read_part::<NodeClaimSpec>(claim, "spec").ok().flatten();
            let count = spec.map_or(1, |spec| spec.count as usize);
            let status = read_part::<NodeClaimStatus>(claim, "status").ok().flatten();
            let nodes = status.unwrap_or_default().nodes;
            let bound = nodes.iter().filter(|entry| entry.state == EntryState::Bound).count();
            if bound < count && is_free {
                return Some(format!("claim {name} of {at} has {bound} of {count}: {nodes:?}"));
            }
        }
        let dpus = self.world.dpus();
        let is_served = |attachment: &Object| {
            let spec = read_part::<DpuAttachmentSpec>(attachment, "spec").ok().flatten();
            let mut names = (0..dpus.count()).filter(|dpu| dpus.is_on(*dpu));
            spec.is_some_and(|spec| names.any(|dpu| super::DPUS[dpu] == spec.dpu))
        };
        let mut attachments = self.truth.all(at, &DPU_ATTACHMENT).iter();
        let left = attachments.find(|it| is_deleting(it) && is_served(it))?;
        Some(format!("attachment {} of {at} was deleted and is still there", name_of(left)))
    }
}
