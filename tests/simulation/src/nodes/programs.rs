//! The programs of machines, as their lists say: at the hub, for each tenant, on each DPU, and on each DPU for each
//! tenant.

use super::dpus::OnDpu;
use super::{Nodes, dpu_name, flaws, plane};
use crate::Flaw;
use crate::engine::actor::Actor;
use crate::engine::line::Lines;
use crate::engine::{Broken, Engine};
use interlock_api::nodes::Ref;
use interlock_kernel::{Controller, Outside, Place};
use interlock_nodes::kinds::TENANT_PLANE;
use interlock_programs::{Account, DpuAgent, DpuTenant, Machines, Program, TenantPlane, Visitor};
use interlock_shell::{Driver, Places, Server};
use std::net::IpAddr;
use std::sync::Arc;

/// A program. What the agent of a DPU does for a tenant is a program of its own here: what it shows of the hub may be of
/// another time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    /// The controllers of machines at the hub.
    Hub,
    /// Those of a tenant.
    Tenant(usize),
    /// The agent of a DPU.
    Dpu(usize),
    /// What the agent of a DPU does for a tenant.
    DpuTenant {
        /// The DPU.
        dpu: usize,
        /// The tenant.
        tenant: usize,
    },
}

impl Unit {
    fn name(self) -> String {
        match self {
            Unit::Hub => "machines".to_owned(),
            Unit::Tenant(tenant) => format!("tenant-{}", plane(tenant)),
            Unit::Dpu(dpu) => format!("dpu-{}", dpu_name(dpu).dpu),
            Unit::DpuTenant { dpu, tenant } => {
                format!("dpu-{}-{}", dpu_name(dpu).dpu, plane(tenant))
            }
        }
    }

    /// The DPU that it runs on.
    pub(crate) fn dpu(self) -> Option<usize> {
        match self {
            Unit::Hub | Unit::Tenant(_) => None,
            Unit::Dpu(dpu) | Unit::DpuTenant { dpu, .. } => Some(dpu),
        }
    }

    /// The tenant whose control plane it works on.
    fn tenant(self) -> Option<usize> {
        match self {
            Unit::Hub | Unit::Dpu(_) => None,
            Unit::Tenant(tenant) | Unit::DpuTenant { tenant, .. } => Some(tenant),
        }
    }

    /// Whom its account is of.
    fn of(self) -> Option<String> {
        match self {
            Unit::Hub => None,
            Unit::Tenant(tenant) => Some(plane(tenant).to_owned()),
            Unit::Dpu(dpu) | Unit::DpuTenant { dpu, .. } => Some(dpu_name(dpu).to_string()),
        }
    }
}

/// The address of a DPU in the network between DPUs.
pub(crate) fn vtep(dpu: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, 1 + dpu as u8])
}

impl Engine<Nodes> {
    /// Starts every program that is to run and does not.
    pub(crate) async fn start_missing(&mut self) -> Result<(), Broken> {
        for unit in self.world.wanted() {
            if !self.world.units.values().any(|known| *known == unit) {
                self.start(unit).await?;
            }
        }
        Ok(())
    }

    /// Starts a program, or another instance of it.
    pub(crate) async fn start(&mut self, unit: Unit) -> Result<(), Broken> {
        let is_second = self.world.units.values().any(|known| *known == unit);
        self.counts.twins += u64::from(is_second);
        self.numbered += 1;
        let instance = self.numbered;
        let name = if is_second { format!("{}-again", unit.name()) } else { unit.name() };
        let mut actor = self.actor(unit, &name, instance);
        let driver = OnDpu {
            dpus: Arc::clone(&self.world.dpus),
            dpu: unit.dpu().unwrap_or_default(),
            gate: Arc::clone(&self.lines.gate),
        };
        let tenant = unit.tenant().map(|tenant| self.world.tenants[tenant].clone());
        let tenant = tenant.unwrap_or_default();
        let flaw = self.world.flaw;
        Rehearsal { actor: &mut actor, lines: &self.lines, unit, tenant, driver, flaw }.run();
        self.world.units.insert(instance, unit);
        self.begins(actor).await
    }

    /// A program without controllers, on its servers.
    fn actor(&self, unit: Unit, name: &str, instance: u64) -> Actor {
        let server = |at: &str| Server::new(at, self.lines.admin(name, at));
        let mut places = vec![(Place::HUB, server(crate::HUB))];
        places.extend(unit.tenant().map(|tenant| (TENANT_PLANE, server(plane(tenant)))));
        let is_cut = places.iter().map(|(place, _)| (*place, Arc::default())).collect();
        let clock = Arc::clone(&self.clock);
        let places: Places = places.into_iter().collect();
        let mut actor = Actor::empty(name, places, Arc::new(move || clock.now()), instance);
        actor.is_cut = is_cut;
        actor.cluster = unit.tenant();
        actor
    }
}

/// Wires each controller that it is shown, or the one in its place that a flaw has bent.
struct Rehearsal<'a> {
    actor: &'a mut Actor,
    lines: &'a Lines,
    unit: Unit,
    /// The tenant that it works for, if it does.
    tenant: Ref,
    driver: OnDpu,
    flaw: Flaw,
}

impl Rehearsal<'_> {
    /// Shows it the list of its program.
    fn run(mut self) {
        let tenant = self.tenant.clone();
        match self.unit {
            Unit::Hub => Machines.visit(&mut self),
            Unit::Tenant(_) => TenantPlane { tenant }.visit(&mut self),
            Unit::Dpu(dpu) => DpuAgent { here: dpu_name(dpu) }.visit(&mut self),
            Unit::DpuTenant { dpu, .. } => {
                DpuTenant { here: dpu_name(dpu), vtep: vtep(dpu), tenant }.visit(&mut self);
            }
        }
    }

    fn wire_bent(&mut self, places: Places) {
        let (driver, tenant) = (self.driver.clone(), self.tenant.clone());
        match self.unit {
            Unit::Hub => self.actor.wire(flaws::pool(), places, driver),
            Unit::Tenant(_) => self.actor.wire(flaws::claims(tenant), places, driver),
            Unit::Dpu(dpu) => {
                self.actor.wire(flaws::ports(self.flaw, dpu_name(dpu)), places, driver);
            }
            Unit::DpuTenant { dpu, .. } => {
                let bent = flaws::attachments(dpu_name(dpu), vtep(dpu), tenant);
                self.actor.wire(bent, places, driver);
            }
        }
    }
}

impl<O: Outside> Visitor<O> for Rehearsal<'_>
where
    OnDpu: Driver<O>,
{
    fn room<C: Controller<Outside = O>>(&mut self, account: Account, controller: C) {
        let user = account.user(self.unit.of().as_deref());
        let places = self.actor.places_as(&user, self.lines);
        if flaws::bent_room(self.flaw) == Some(controller.name()) {
            return self.wire_bent(places);
        }
        self.actor.wire(controller, places, self.driver.clone());
    }
}
