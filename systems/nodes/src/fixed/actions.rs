//! The actions of the corrected model: their names, their numbers, and who takes them.

use interlock_checker::{Action, ActionId};

/// The actions of the specification, without their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    MgmtCrash,
    MgmtRecover,
    PowerOff,
    PowerOn,
    MgmtAssign,
    MgmtReclaim,
    TenantFlush,
    TenantCleanup,
    TenantCrash,
    TenantRecover,
    EtcdDown,
    EtcdUp,
    EtcdLoseQuorum,
    EtcdRegainQuorum,
    ApiServerDown,
    ApiServerUp,
    MgmtTenantPartition,
    MgmtTenantHeal,
    TenantDpuPartition,
    TenantDpuHeal,
    MgmtReturn,
    TenantWatch,
    DpuCrash,
    DpuRecover,
    DpuReconcile,
    DpuFinalize,
}

/// What an action is an action of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Whole,
    Tenant,
    TenantNode,
    Dpu,
    DpuTenantNode,
}

const KINDS: [(Kind, &str, Of); 26] = [
    (Kind::MgmtCrash, "MgmtCrash", Of::Whole),
    (Kind::MgmtRecover, "MgmtRecover", Of::Whole),
    (Kind::PowerOff, "PowerOff", Of::Whole),
    (Kind::PowerOn, "PowerOn", Of::Whole),
    (Kind::MgmtAssign, "MgmtAssign", Of::Tenant),
    (Kind::MgmtReclaim, "MgmtReclaim", Of::Tenant),
    (Kind::TenantFlush, "TenantFlush", Of::Tenant),
    (Kind::TenantCleanup, "TenantCleanup", Of::Tenant),
    (Kind::TenantCrash, "TenantCrash", Of::Tenant),
    (Kind::TenantRecover, "TenantRecover", Of::Tenant),
    (Kind::EtcdDown, "EtcdDown", Of::Tenant),
    (Kind::EtcdUp, "EtcdUp", Of::Tenant),
    (Kind::EtcdLoseQuorum, "EtcdLoseQuorum", Of::Tenant),
    (Kind::EtcdRegainQuorum, "EtcdRegainQuorum", Of::Tenant),
    (Kind::ApiServerDown, "ApiServerDown", Of::Tenant),
    (Kind::ApiServerUp, "ApiServerUp", Of::Tenant),
    (Kind::MgmtTenantPartition, "MgmtTenantPartition", Of::Tenant),
    (Kind::MgmtTenantHeal, "MgmtTenantHeal", Of::Tenant),
    (Kind::TenantDpuPartition, "TenantDPUPartition", Of::Tenant),
    (Kind::TenantDpuHeal, "TenantDPUHeal", Of::Tenant),
    (Kind::MgmtReturn, "MgmtReturn", Of::TenantNode),
    (Kind::TenantWatch, "TenantWatch", Of::TenantNode),
    (Kind::DpuCrash, "DPUCrash", Of::Dpu),
    (Kind::DpuRecover, "DPURecover", Of::Dpu),
    (Kind::DpuReconcile, "DPUReconcile", Of::DpuTenantNode),
    (Kind::DpuFinalize, "DPUFinalize", Of::DpuTenantNode),
];

/// Whom an action is about; what does not apply is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct About {
    pub(super) dpu: usize,
    pub(super) tenant: usize,
    pub(super) node: usize,
}

/// The numbers of all action instances in one size.
#[derive(Debug, Clone)]
pub(super) struct Numbering {
    nodes: usize,
    dpus: usize,
    tenants: usize,
    first: [ActionId; KINDS.len()],
}

impl Numbering {
    pub(super) fn new(nodes: usize, dpus: usize, tenants: usize) -> Self {
        let mut numbering = Numbering { nodes, dpus, tenants, first: [0; KINDS.len()] };
        let mut next = 0;
        for (kind, _, of) in KINDS {
            numbering.first[kind as usize] = next;
            next += numbering.instances(of).count() as ActionId;
        }
        numbering
    }

    /// In the order of their numbers.
    fn instances(&self, of: Of) -> impl Iterator<Item = About> + use<> {
        let count = |applies: bool, count: usize| if applies { count } else { 1 };
        let dpus = count(matches!(of, Of::Dpu | Of::DpuTenantNode), self.dpus);
        let tenants = count(!matches!(of, Of::Whole | Of::Dpu), self.tenants);
        let nodes = count(matches!(of, Of::TenantNode | Of::DpuTenantNode), self.nodes);
        (0..dpus).flat_map(move |dpu| {
            (0..tenants)
                .flat_map(move |tenant| (0..nodes).map(move |node| About { dpu, tenant, node }))
        })
    }

    pub(super) fn id(&self, kind: Kind, about: About) -> ActionId {
        let About { dpu, tenant, node } = about;
        let place = match KINDS[kind as usize].2 {
            Of::Whole => 0,
            Of::Tenant => tenant,
            Of::TenantNode => tenant * self.nodes + node,
            Of::Dpu => dpu,
            Of::DpuTenantNode => (dpu * self.tenants + tenant) * self.nodes + node,
        };
        self.first[kind as usize] + place as ActionId
    }

    pub(super) fn of_tenant(&self, kind: Kind, tenant: usize) -> ActionId {
        self.id(kind, About { tenant, ..About::default() })
    }

    /// All instances of one kind.
    pub(super) fn all_of(&self, kind: Kind) -> impl Iterator<Item = ActionId> + '_ {
        self.instances(KINDS[kind as usize].2).map(move |about| self.id(kind, about))
    }

    pub(super) fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (kind, name, of) in KINDS {
            actions.extend(self.instances(of).map(|about| action(kind, name, of, about)));
        }
        actions
    }
}

fn action(kind: Kind, name: &str, of: Of, about: About) -> Action {
    let (d, t, n) = (about.dpu + 1, about.tenant + 1, about.node + 1);
    let (dpu, tenant) = (format!("DPU d{d}"), format!("tenant t{t}"));
    let name = match (kind, of) {
        (Kind::PowerOff | Kind::PowerOn, _) => format!("{name}(r1)"),
        (Kind::TenantCleanup, _) => format!("{name}(r1, t{t})"),
        (_, Of::Whole) => name.to_owned(),
        (_, Of::Tenant) => format!("{name}(t{t})"),
        (_, Of::TenantNode) => format!("{name}(t{t}, n{n})"),
        (_, Of::Dpu) => format!("{name}(r1, d{d})"),
        (_, Of::DpuTenantNode) => format!("{name}(r1, d{d}, t{t}, n{n})"),
    };
    match kind {
        Kind::MgmtAssign | Kind::MgmtReclaim | Kind::MgmtReturn => {
            Action::new(name, "management").to(tenant)
        }
        Kind::TenantFlush | Kind::TenantCleanup | Kind::TenantWatch | Kind::TenantRecover => {
            Action::new(name, tenant)
        }
        Kind::DpuReconcile | Kind::DpuFinalize => Action::new(name, dpu).to(tenant),
        Kind::DpuRecover => Action::new(name, dpu),
        Kind::DpuCrash => Action::new(name, "world").to(dpu),
        Kind::MgmtCrash | Kind::MgmtRecover => Action::new(name, "world").to("management"),
        Kind::PowerOff | Kind::PowerOn => Action::new(name, "world").to("rack r1"),
        Kind::TenantCrash
        | Kind::EtcdDown
        | Kind::EtcdUp
        | Kind::EtcdLoseQuorum
        | Kind::EtcdRegainQuorum
        | Kind::ApiServerDown
        | Kind::ApiServerUp
        | Kind::MgmtTenantPartition
        | Kind::MgmtTenantHeal
        | Kind::TenantDpuPartition
        | Kind::TenantDpuHeal => Action::new(name, "world").to(tenant),
    }
}
