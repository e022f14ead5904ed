//! What it takes to hand machines to tenants: at the hub, at the hub for each DPU, and on the control plane of each tenant.
//!
//! A process that is somewhere else has one account on each server, which fills the caches of its controllers too.

use super::hub::CONTROLLERS;
use super::objects::{account, bound, lease, namespace, role, service_account, token};
use interlock_api::nodes::DpuName;
use interlock_kernel::Place;
use interlock_programs::roles::machines::{
    OfAllTenants, of_all_tenants_at_hub, of_dpu_apart, of_dpu_on_plane, on_plane,
};
use interlock_programs::roles::{CACHES, Grant, Rules, cluster_role, cluster_role_binding};
use interlock_programs::{Account, Machines, list};
use serde_json::Value;

/// The account of the controllers of machines on the control plane of a tenant.
const MACHINES: &str = "interlock-machines";

/// What the hub needs once: the pods of its controllers have these rights, too, and are started with `--machines`.
pub(super) fn machines() -> Vec<Value> {
    let account = account(CONTROLLERS);
    let (machines, claims) = (Account::Machines.role(), Account::Claims.role());
    let OfAllTenants { in_cluster, in_namespace } = of_all_tenants_at_hub();
    let [within, binding] = bound(MACHINES, &in_namespace.written(), &account);
    vec![
        role(&list(&Machines), Account::Machines, Place::HUB),
        cluster_role_binding(machines, machines, &account),
        cluster_role(claims, &in_cluster),
        cluster_role_binding(claims, claims, &account),
        within,
        binding,
    ]
}

/// What the hub needs for the agent of one DPU. Its Lease is there before it, so it makes none, and of all Secrets it may
/// read the one with its kubeconfigs for tenants.
pub(super) fn dpu(here: &DpuName) -> Vec<Value> {
    let name = agent(here);
    let account = account(&name);
    let own = format!("{}:{here}", Account::Dpu.role());
    let kubeconfigs = Rules::to_read_secret(&format!("{name}-tenants"));
    let [within, binding] = bound(&name, &kubeconfigs.written(), &account);
    vec![
        service_account(&name),
        token(&name),
        cluster_role(&own, &of_dpu_apart(here)),
        cluster_role_binding(&own, &own, &account),
        lease(&here.lease()),
        within,
        binding,
    ]
}

/// What the control plane of a tenant needs: the accounts of the controllers, and of the agents of DPUs that machines of
/// the tenant may be wired to. The kinds are not in it: a logical cluster of our own server has them, and refuses others.
pub(super) fn tenant(name: &str, dpus: &[DpuName]) -> Vec<Value> {
    let mut objects = vec![namespace(), service_account(MACHINES), token(MACHINES)];
    for grant in on_plane(name, name).on_plane.iter().filter(|grant| grant.role != CACHES) {
        objects.extend(to_account(grant, MACHINES));
    }
    for dpu in dpus {
        let agent = agent(dpu);
        objects.extend([service_account(&agent), token(&agent)]);
        for grant in &of_dpu_on_plane(dpu, name, name).on_plane {
            objects.extend(to_account(grant, &agent));
        }
    }
    objects
}

/// The account of the agent of a DPU, at the hub and on the control planes of tenants.
fn agent(dpu: &DpuName) -> String {
    format!("interlock-dpu-{dpu}")
}

/// A role, for a ServiceAccount where `interlock up` has users.
fn to_account(grant: &Grant, name: &str) -> [Value; 2] {
    let role = cluster_role(&grant.role, &grant.rules);
    [role, cluster_role_binding(&grant.role, &grant.role, &account(name))]
}
