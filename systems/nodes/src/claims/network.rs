//! The network of a tenant: a number that no other tenant ever had or gets, and the DPUs that hold its nodes.
//!
//! Whoever creates the Lease of a number has it, for ever: nobody deletes these Leases. A number that could be given
//! again would let a late call join two tenants (NetworkExclusive).

use super::{Facts as AllFacts, Scene as AnyScene};
use crate::choice::vni;
use crate::filed::{NODES_BY_TENANT, NODES_HELD_BY};
use crate::in_use::{Keeping, Kept, Words, keep, step};
use crate::kinds::{LEASE, LEASE_NAMESPACE, RACK, TENANT};
use crate::record::NodeRecord;
use interlock_api::nodes::{RackSpec, Ref, TenantStatus, vni_lease};
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{
    Address, LiveReads, Name, Nothing, Object, Observed, Place, Read, Step, View, Write, read_part,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// How many numbers are read at once.
const AT_ONCE: u32 = 8;
/// How many are tried: each read is one of the few that a step may ask for.
const MOST_TRIES: u32 = 40;
/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// The tenant, as far as nodes keep it.
    pub kept: Kept,
    /// Its network.
    pub vni: Option<u32>,
    /// The Leases that were read live, in the order in which their numbers are tried.
    pub tried: Vec<Tried>,
    /// The number after those.
    pub next: u32,
    /// The addresses that its status has.
    pub says: Vec<IpAddr>,
    /// The addresses of the DPUs that hold its nodes; None: the cache does not show each of their racks.
    pub vteps: Option<Vec<IpAddr>>,
}

/// A number that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Tried {
    /// The number.
    pub vni: u32,
    /// Whose it is.
    pub whose: Whose,
}

/// Whose a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Whose {
    /// Nobody ever had it.
    Free,
    /// This tenant has won it.
    Ours,
    /// Another tenant has it.
    Others,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// The finalizer of the tenant.
    Keep(Keeping),
    /// Read the Leases of the next numbers live.
    ReadLeases,
    /// Create the Lease of this number.
    Win(u32),
    /// Write the number that was won.
    SetVni(u32),
    /// Write the addresses of the DPUs.
    SetVteps(Vec<IpAddr>),
}

/// The tenant, and what was read of it.
#[derive(Debug)]
pub struct Scene {
    now: Timestamp,
    tenant: Object,
    uid: String,
    tries: u32,
}

fn lease(vni: u32) -> Address {
    Address::new(Place::HUB, &LEASE, Name::within(LEASE_NAMESPACE, &vni_lease(vni)))
}

/// Reads what a step is about.
pub(super) fn observe(
    of: &Ref,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<AllFacts, AnyScene> {
    let found = view.get(Place::HUB, &TENANT, &Name::cluster_wide(&of.name));
    let Some(tenant) = found.filter(|tenant| uid_of(tenant) == of.uid) else {
        return Observed::nothing("the cache shows no such Tenant");
    };
    let status = match read_part::<TenantStatus>(&tenant, "status") {
        Ok(status) => status.unwrap_or_default(),
        // A number that cannot be read may be in use: no other is given.
        Err(because) => return Observed::nothing(format!("the Tenant cannot be read: {because}")),
    };
    let tried: Vec<Tried> =
        (0..MOST_TRIES).map_while(|tries| tried(of, tries, live_reads)).collect();
    let tries = u32::try_from(tried.len()).unwrap_or(MOST_TRIES);
    let words = Words {
        what: format!("Tenant {}", of.name),
        how: "delete its NodeClaim, or: interlock node reclaim NODE",
    };
    let names_it = |node: &Object| (NODES_BY_TENANT.values)(node).contains(&of.uid);
    let facts = Facts {
        kept: Kept::read(&tenant, words, live_reads, names_it),
        vni: status.vni,
        tried,
        next: vni(&of.uid, tries),
        says: status.vteps,
        vteps: vteps(of, view),
    };
    let (now, uid) = (view.now(), of.uid.clone());
    let scene = Scene { now, tenant, uid, tries };
    Observed::Seen { facts: AllFacts::Network(facts), scene: AnyScene::Network(Box::new(scene)) }
}

fn tried(of: &Ref, tries: u32, live_reads: &LiveReads<Nothing>) -> Option<Tried> {
    let vni = vni(&of.uid, tries);
    let whose = match live_reads.objects.get(&lease(vni))? {
        None => Whose::Free,
        Some(lease) if lease.data["spec"]["holderIdentity"] == *of.uid => Whose::Ours,
        Some(_) => Whose::Others,
    };
    Some(Tried { vni, whose })
}

fn vteps(of: &Ref, view: &dyn View) -> Option<Vec<IpAddr>> {
    let nodes = view.find(Place::HUB, &NODES_HELD_BY, &of.uid);
    let records = nodes.iter().filter_map(|node| NodeRecord::read(node).ok());
    let dpus: BTreeSet<_> = records.flat_map(|record| record.dpus()).collect();
    let racks: BTreeSet<&str> = dpus.iter().map(|dpu| dpu.rack.as_str()).collect();
    let mut addresses = BTreeSet::new();
    for rack in racks {
        let object = view.get(Place::HUB, &RACK, &Name::cluster_wide(rack))?;
        let spec = read_part::<RackSpec>(&object, "spec").ok().flatten()?;
        let used = dpus.iter().filter(|dpu| dpu.rack == rack).filter_map(|dpu| spec.dpu(&dpu.dpu));
        addresses.extend(used.map(|dpu| dpu.vtep));
    }
    Some(addresses.into_iter().collect())
}

/// The one next thing to do. First matching rule wins.
pub fn decide(facts: &Facts) -> Decision {
    let keeping = keep(&facts.kept);
    if facts.kept.is_terminating || !facts.kept.has_finalizer {
        return Decision::Keep(keeping);
    }
    if facts.vni.is_none() {
        return win(facts);
    }
    match &facts.vteps {
        Some(vteps) if *vteps != facts.says => Decision::SetVteps(vteps.clone()),
        Some(_) => Decision::Rest("the tenant has its network"),
        None => Decision::Rest("the cache does not show each rack of the tenant's nodes"),
    }
}

/// The Lease first, then the status: a crash between the two leaves a Lease that is ours, and is found.
fn win(facts: &Facts) -> Decision {
    if let Some(ours) = facts.tried.iter().find(|tried| tried.whose == Whose::Ours) {
        return Decision::SetVni(ours.vni);
    }
    if let Some(free) = facts.tried.iter().find(|tried| tried.whose == Whose::Free) {
        return Decision::Win(free.vni);
    }
    if facts.tried.len() >= MOST_TRIES as usize {
        return Decision::Rest(
            "the numbers that are tried first are other tenants'; a person has to set status.vni",
        );
    }
    Decision::ReadLeases
}

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    let tenant = &scene.tenant;
    let status = |change, because: &str| {
        let change = json!({ "status": change });
        Step::write(Write::patch_status(Place::HUB, &TENANT, tenant, change), because)
    };
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Keep(keeping) => step(&TENANT, tenant, scene.now, keeping),
        Decision::ReadLeases => Step::LiveRead {
            reads: (scene.tries..(scene.tries + AT_ONCE).min(MOST_TRIES))
                .map(|tries| Read::Object(lease(vni(&scene.uid, tries))))
                .collect(),
            because: "only a live read can show whose a number is".to_owned(),
        },
        Decision::Win(vni) => {
            let object = json!({ "spec": { "holderIdentity": scene.uid } });
            let write = Write::Create { address: lease(vni), object };
            Step::write(write, format!("tenant {} tries to win network {vni}", name_of(tenant)))
        }
        Decision::SetVni(vni) => status(json!({ "vni": vni }), "the tenant has won the network"),
        Decision::SetVteps(vteps) => status(
            json!({ "vteps": vteps }),
            "the DPUs that hold nodes of the tenant are others now",
        ),
    }
}
