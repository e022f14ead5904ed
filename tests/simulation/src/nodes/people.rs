//! What people do: tenants claim machines, give them back, and forge what they may write; the platform team takes
//! machines back, and declares DPUs off.

use super::promises::status;
use super::{DPUS, MACHINES, Nodes, RACK, dpu_name, plane};
use crate::Flaw;
use crate::engine::{Broken, Engine, api_of, create, said};
use interlock_api::nodes::{DpuAttachmentSpec, NodePhase, PhysicalNodeStatus, Ref};
use interlock_kernel::metadata::{is_deleting, name_of, uid_of};
use interlock_kernel::{Kind, Object};
use interlock_nodes::kinds::{DPU_ATTACHMENT, NODE_CLAIM, NODE_FENCE, PHYSICAL_NODE};
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

/// What the claims of each tenant are called.
const CLAIMS: [&str; 2] = ["web", "db"];

/// A machine at the hub.
pub(crate) struct Machine {
    /// Its place among all of them.
    pub(crate) place: usize,
    pub(crate) node: Ref,
    pub(crate) status: PhysicalNodeStatus,
}

impl Engine<Nodes> {
    /// Somebody does something.
    pub(crate) async fn people_act(&mut self) -> Result<(), Broken> {
        let tenant = self.chance.below(self.world.tenants.len());
        match self.chance.below(9) {
            0..=2 => self.claim(tenant).await,
            3 => self.give_back(tenant).await,
            4 => {
                let dpu = self.chance.below(self.world.dpus().count());
                self.take_back_at(dpu).await
            }
            5..=6 => self.forge(tenant).await,
            7 => self.delete_attachment(tenant).await,
            _ => self.declare_off().await,
        }
    }

    /// The machines, as the hub has them.
    pub(crate) fn machines(&self) -> Vec<Machine> {
        let nodes = self.truth.all(crate::HUB, &PHYSICAL_NODE).iter();
        let machine = |node: &Object| {
            let place = MACHINES.iter().position(|name| *name == name_of(node))?;
            let status = status(node);
            Some(Machine { place, node: Ref::new(name_of(node), uid_of(node)), status })
        };
        nodes.filter_map(machine).collect()
    }

    fn on_plane(&self, tenant: usize) -> Client {
        self.lines.admin("user", plane(tenant))
    }

    async fn delete_on_plane(
        &mut self,
        tenant: usize,
        kind: &Kind,
        name: &str,
    ) -> Result<(), Broken> {
        self.note(format!("tenant {}: deletes {} {name}", plane(tenant), kind.kind));
        let api = api_of(&self.on_plane(tenant), kind, None);
        api.delete(name, &DeleteParams::default()).await.map(|_| ()).map_err(said)
    }

    /// A tenant claims machines, unless it has that claim.
    pub(crate) async fn claim(&mut self, tenant: usize) -> Result<(), Broken> {
        let name = CLAIMS[self.chance.below(CLAIMS.len())];
        if self.truth.get(plane(tenant), &NODE_CLAIM, None, name).is_some() {
            return Ok(());
        }
        let count = 1 + self.chance.below(2);
        self.note(format!("tenant {}: claims {count} for {name}", plane(tenant)));
        let claim = json!({"metadata": {"name": name}, "spec": {"count": count}});
        let api = api_of(&self.on_plane(tenant), &NODE_CLAIM, None);
        create(&api, &NODE_CLAIM, claim).await.map(|_| ())
    }

    async fn give_back(&mut self, tenant: usize) -> Result<(), Broken> {
        let claims = self.truth.all(plane(tenant), &NODE_CLAIM);
        let claims: Vec<Object> = claims.iter().filter(|it| !is_deleting(it)).cloned().collect();
        let Some(claim) = self.chance.one_of(&claims) else { return Ok(()) };
        self.delete_on_plane(tenant, &NODE_CLAIM, name_of(claim)).await
    }

    /// The platform team ends the epoch of a machine that is wired through this DPU.
    pub(crate) async fn take_back_at(&mut self, dpu: usize) -> Result<(), Broken> {
        let mut bound = self.machines();
        bound.retain(|it| it.status.phase == NodePhase::Bound);
        bound.retain(|it| self.world.wiring[it.place].contains(&dpu));
        let Some(Machine { node, status, .. }) = self.chance.one_of(&bound) else { return Ok(()) };
        let epoch = status.epoch;
        self.note(format!("the platform takes {node} back at epoch {epoch}"));
        let change = Patch::Merge(json!({"spec": {"reclaimEpoch": epoch}}));
        let api = self.api(&PHYSICAL_NODE, None);
        let changed = api.patch(&node.name, &PatchParams::default(), &change).await;
        changed.map(|_| ()).map_err(said)
    }

    /// A tenant writes an attachment of its own: for the epoch that is given or the next one, in the name of whoever has
    /// the machine, or in that of its own claim.
    async fn forge(&mut self, tenant: usize) -> Result<(), Broken> {
        let machines = self.machines();
        let Some(machine) = self.chance.one_of(&machines) else { return Ok(()) };
        let Some(dpu) = self.chance.one_of(&self.world.wiring[machine.place]) else {
            return Ok(());
        };
        let claims = self.truth.all(plane(tenant), &NODE_CLAIM);
        let own = self.chance.one_of(claims).map(|it| Ref::new(name_of(it), uid_of(it)));
        let given = machine.status.assignment.as_ref().map(|given| given.claim.clone());
        let claim = if self.chance.once_in(2) { own.or(given) } else { given.or(own) };
        let Some(claim) = claim else { return Ok(()) };
        let next = i64::from(self.chance.once_in(3));
        let forged = DpuAttachmentSpec {
            node: machine.node.clone(),
            rack: RACK.to_owned(),
            dpu: DPUS[*dpu].to_owned(),
            claim,
            epoch: (machine.status.epoch + next).max(1),
            addresses: Vec::new(),
        };
        let name = forged.object_name();
        if self.truth.get(plane(tenant), &DPU_ATTACHMENT, None, &name).is_some() {
            return Ok(());
        }
        self.counts.by_hand += 1;
        self.note(format!("tenant {}: forges {name}", plane(tenant)));
        self.world.forged.insert((tenant, name.clone()));
        let metadata = json!({"name": name, "labels": forged.labels()});
        let api = api_of(&self.on_plane(tenant), &DPU_ATTACHMENT, None);
        let object = json!({"metadata": metadata, "spec": forged});
        create(&api, &DPU_ATTACHMENT, object).await.map(|_| ())
    }

    async fn delete_attachment(&mut self, tenant: usize) -> Result<(), Broken> {
        let all = self.truth.all(plane(tenant), &DPU_ATTACHMENT);
        let all: Vec<Object> = all.iter().filter(|it| !is_deleting(it)).cloned().collect();
        let Some(attachment) = self.chance.one_of(&all) else { return Ok(()) };
        self.counts.by_hand += 1;
        self.delete_on_plane(tenant, &DPU_ATTACHMENT, name_of(attachment)).await
    }

    /// The tenants delete what they forged: a name that is taken is taken.
    pub(crate) async fn delete_forged(&mut self) -> Result<(), Broken> {
        for (tenant, name) in std::mem::take(&mut self.world.forged) {
            let found = self.truth.get(plane(tenant), &DPU_ATTACHMENT, None, &name);
            if found.is_some_and(|found| !is_deleting(found)) {
                self.delete_on_plane(tenant, &DPU_ATTACHMENT, &name).await?;
                self.check().await?;
            }
        }
        Ok(())
    }

    /// Somebody looks at the DPUs that a release waits for, and declares one that is off. With the flaw it is one that is
    /// on.
    async fn declare_off(&mut self) -> Result<(), Broken> {
        let is_lie = self.world.flaw == Flaw::DpuIsSaidToBeOff;
        let seen = self.releasing(|world, dpu| world.dpus().is_on(dpu) == is_lie);
        let Some((machine, dpu)) = self.chance.one_of(&seen) else { return Ok(()) };
        self.fence(machine, *dpu).await
    }

    /// Whoever waits for a DPU that never comes back hears so.
    pub(crate) async fn declare_dead(&mut self) -> Result<(), Broken> {
        for (machine, dpu) in self.releasing(|world, dpu| world.dpus().is_dead(dpu)) {
            self.fence(&machine, dpu).await?;
        }
        self.check().await
    }

    /// The machines that are being released, each with the DPUs of it that are so.
    fn releasing(&self, is_meant: impl Fn(&Nodes, usize) -> bool) -> Vec<(Machine, usize)> {
        let mut found = Vec::new();
        for machine in self.machines() {
            let is_waiting = machine.status.phase == NodePhase::Releasing
                && machine.status.phase_since.is_some();
            let wired = self.world.wiring[machine.place].iter().copied();
            for dpu in wired.filter(|dpu| is_waiting && is_meant(&self.world, *dpu)) {
                let Machine { place, node, status } = &machine;
                let (node, status) = (node.clone(), status.clone());
                found.push((Machine { place: *place, node, status }, dpu));
            }
        }
        found
    }

    async fn fence(&mut self, machine: &Machine, dpu: usize) -> Result<(), Broken> {
        let Machine { node, status, .. } = machine;
        self.numbered += 1;
        let name = format!("fence-{}", self.numbered);
        self.note(format!("somebody declares {} off, for {node}: {name}", DPUS[dpu]));
        let fence = json!({"metadata": {"name": name}, "spec": {
            "node": node,
            "epoch": status.epoch,
            "phaseSince": status.phase_since,
            "dpu": dpu_name(dpu),
            "attestation": "DpuPoweredOff",
            "reason": "the rack is without power",
            "requester": "operator",
        }});
        self.create(&NODE_FENCE, None, fence).await.map(|_| ())
    }
}
