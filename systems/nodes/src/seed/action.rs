//! The actions of the seed: their families, arguments, and who does what to whom.

use interlock_checker::{Action, ActionId};

/// The actions as the seed names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    MgmtAssign,
    MgmtReclaim,
    TenantWatch,
    TenantFlush,
    DPUReconcile,
    TenantCleanup,
    ProcessCRDeletion,
    TenantCrash,
    TenantRecover,
    PowerOff,
    PowerOn,
    DPUCrash,
    DPURecover,
    MgmtCrash,
    MgmtRecover,
    MgmtTenantPartition,
    MgmtTenantHeal,
    ApiServerDown,
    ApiServerUp,
    EtcdDown,
    EtcdUp,
    EtcdLoseQuorum,
    EtcdRegainQuorum,
    TenantDPUPartition,
    TenantDPUHeal,
}

/// What an action is taken for.
#[derive(Debug, Clone, Copy)]
enum Of {
    Nothing,
    NodeTenant,
    Tenant,
    RackTenant,
    RackDpuTenant,
    Rack,
    RackDpu,
}

/// A lane of the sequence diagram.
#[derive(Debug, Clone, Copy)]
enum Lane {
    Management,
    Failures,
    Tenant,
    Records,
    Dpu,
    Rack,
}

/// Every family in the order of [`Family`]: what it is taken for, who acts, upon whom.
const FAMILIES: [(Family, Of, Lane, Lane); 25] = [
    (Family::MgmtAssign, Of::NodeTenant, Lane::Management, Lane::Tenant),
    (Family::MgmtReclaim, Of::NodeTenant, Lane::Management, Lane::Tenant),
    (Family::TenantWatch, Of::NodeTenant, Lane::Tenant, Lane::Tenant),
    (Family::TenantFlush, Of::Tenant, Lane::Tenant, Lane::Records),
    (Family::DPUReconcile, Of::RackDpuTenant, Lane::Dpu, Lane::Records),
    (Family::TenantCleanup, Of::Tenant, Lane::Tenant, Lane::Records),
    (Family::ProcessCRDeletion, Of::RackTenant, Lane::Records, Lane::Records),
    (Family::TenantCrash, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::TenantRecover, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::PowerOff, Of::Rack, Lane::Failures, Lane::Rack),
    (Family::PowerOn, Of::Rack, Lane::Failures, Lane::Rack),
    (Family::DPUCrash, Of::RackDpu, Lane::Failures, Lane::Dpu),
    (Family::DPURecover, Of::RackDpu, Lane::Failures, Lane::Dpu),
    (Family::MgmtCrash, Of::Nothing, Lane::Failures, Lane::Management),
    (Family::MgmtRecover, Of::Nothing, Lane::Failures, Lane::Management),
    (Family::MgmtTenantPartition, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::MgmtTenantHeal, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::ApiServerDown, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::ApiServerUp, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::EtcdDown, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::EtcdUp, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::EtcdLoseQuorum, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::EtcdRegainQuorum, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::TenantDPUPartition, Of::Tenant, Lane::Failures, Lane::Tenant),
    (Family::TenantDPUHeal, Of::Tenant, Lane::Failures, Lane::Tenant),
];

/// What one instance is taken for, counted from 1; 0 where it does not apply.
#[derive(Debug, Clone, Copy, Default)]
struct Instance {
    node: usize,
    rack: usize,
    dpu: usize,
    tenant: usize,
}

/// The instances of a family, in the order in which the steps number them.
fn instances(of: Of, [nodes, racks, dpus, tenants]: [usize; 4]) -> Vec<Instance> {
    let counts = match of {
        Of::Nothing => [0, 0, 0, 0],
        Of::NodeTenant => [nodes, 0, 0, tenants],
        Of::Tenant => [0, 0, 0, tenants],
        Of::RackTenant => [0, racks, 0, tenants],
        Of::RackDpuTenant => [0, racks, dpus, tenants],
        Of::Rack => [0, racks, 0, 0],
        Of::RackDpu => [0, racks, dpus, 0],
    };
    let range = |count: usize| if count == 0 { 0..=0 } else { 1..=count };
    let mut instances = Vec::new();
    for node in range(counts[0]) {
        for rack in range(counts[1]) {
            for dpu in range(counts[2]) {
                let tenants = range(counts[3]);
                instances.extend(tenants.map(|tenant| Instance { node, rack, dpu, tenant }));
            }
        }
    }
    instances
}

fn lane(lane: Lane, instance: Instance) -> String {
    match lane {
        Lane::Management => "management".to_owned(),
        Lane::Failures => "failures".to_owned(),
        Lane::Tenant => format!("tenant t{}", instance.tenant),
        Lane::Records => format!("records of t{}", instance.tenant),
        Lane::Dpu => format!("DPU r{}/d{}", instance.rack, instance.dpu),
        Lane::Rack => format!("rack r{}", instance.rack),
    }
}

fn named(family: Family, instance: Instance) -> String {
    let parts =
        [('n', instance.node), ('r', instance.rack), ('d', instance.dpu), ('t', instance.tenant)];
    let given: Vec<_> =
        parts.iter().filter(|(_, n)| *n > 0).map(|(letter, n)| format!("{letter}{n}")).collect();
    if given.is_empty() {
        format!("{family:?}")
    } else {
        format!("{family:?}({})", given.join(", "))
    }
}

/// The first id of each family.
pub(super) fn bases(nodes: usize, racks: usize, dpus: usize, tenants: usize) -> Vec<ActionId> {
    let counts = [nodes, racks, dpus, tenants];
    let mut next = 0;
    let base = |(_, of, _, _): &(Family, Of, Lane, Lane)| {
        let base = next;
        next += instances(*of, counts).len() as ActionId;
        base
    };
    FAMILIES.iter().map(base).collect()
}

/// All actions, by id.
pub(super) fn actions(nodes: usize, racks: usize, dpus: usize, tenants: usize) -> Vec<Action> {
    let counts = [nodes, racks, dpus, tenants];
    let mut actions = Vec::new();
    for (family, of, actor, target) in FAMILIES {
        for instance in instances(of, counts) {
            let (actor, target) = (lane(actor, instance), lane(target, instance));
            let action = Action::new(named(family, instance), &actor);
            actions.push(if actor == target { action } else { action.to(target) });
        }
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_families_are_listed_in_the_order_of_their_numbers() {
        for (place, (family, ..)) in FAMILIES.iter().enumerate() {
            assert_eq!(*family as usize, place);
        }
    }
}
