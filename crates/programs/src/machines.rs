//! The programs that hand machines to tenants: at the hub, for each tenant, and on each DPU.

use crate::{Account, Program, Visitor};
use interlock_api::nodes::{DpuName, Ref};
use interlock_kernel::Nothing;
use interlock_nodes::outside::Dpu;
use interlock_nodes::power::Power;
use interlock_nodes::{attach, claims, dpu, heartbeat, pool, tenant};
use std::net::{IpAddr, Ipv4Addr};

/// The controllers of machines at the hub.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machines;

impl<V: Visitor<Power>> Program<V> for Machines {
    fn visit(&self, visitor: &mut V) {
        visitor.room(Account::Machines, pool::Pool);
    }
}

/// The controllers of one tenant's machines: what it claims, and what it asks of DPUs.
#[derive(Debug, Clone, Default)]
pub struct TenantPlane {
    /// The Tenant.
    pub tenant: Ref,
}

impl<V: Visitor<Nothing>> Program<V> for TenantPlane {
    fn visit(&self, visitor: &mut V) {
        visitor.room(Account::Claims, claims::Claims::new(self.tenant.clone()));
        visitor.room(Account::Attachments, tenant::Requests);
    }
}

/// The agent of one DPU, but for what it does for a tenant.
#[derive(Debug, Clone, Default)]
pub struct DpuAgent {
    /// The DPU that it runs on.
    pub here: DpuName,
}

impl<V: Visitor<Nothing> + Visitor<Dpu>> Program<V> for DpuAgent {
    fn visit(&self, visitor: &mut V) {
        visitor.room(Account::Dpu, heartbeat::Heartbeat { here: self.here.clone() });
        visitor.room(Account::Dpu, dpu::Ports { here: self.here.clone() });
    }
}

/// What the agent of a DPU does for one tenant, while a machine of the tenant is wired to it.
#[derive(Debug, Clone)]
pub struct DpuTenant {
    /// The DPU that it runs on.
    pub here: DpuName,
    /// The address of the DPU in the network between DPUs.
    pub vtep: IpAddr,
    /// The Tenant.
    pub tenant: Ref,
}

impl DpuTenant {
    /// That of no DPU in particular: what its controllers may do does not depend on which.
    pub fn of_any() -> DpuTenant {
        let vtep = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        DpuTenant { here: DpuName::default(), vtep, tenant: Ref::default() }
    }
}

impl<V: Visitor<Dpu>> Program<V> for DpuTenant {
    fn visit(&self, visitor: &mut V) {
        let (here, tenant) = (self.here.clone(), self.tenant.clone());
        visitor.room(Account::Dpu, attach::Attachments::new(here, self.vtep, tenant));
    }
}
