//! What is seen of a claim, of the nodes that it names, and of the nodes that name it.

use super::facts::{Assigned, Claim, Entry, Facts, Live, Node, Seen, Tenant, Wanted};
use super::fit::{candidate, fits, shortage};
use crate::filed::{NODES_BY_CLAIM, NODES_HELD_BY, claim_key};
use crate::kinds::{NODE_CLAIM, PHYSICAL_NODE, TENANT, TENANT_PLANE};
use crate::record::{NodeRecord, whole_seconds};
use crate::reported::is_ahead;
use interlock_api::nodes::condition::{CLAIM_PRESENT, NETWORK_READY};
use interlock_api::nodes::{
    EntryState, FINALIZER_NODE_RELEASE, NodeClaimSpec, NodeClaimStatus, NodeEntry, Ref, TenantSpec,
    TenantStatus,
};
use interlock_kernel::conditions::{find, is_true};
use interlock_kernel::metadata::{has_finalizer, is_deleting, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, Place, View, read_part};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    /// Where the claim is.
    pub(super) address: Address,
    /// The claim, as the cache shows it.
    pub(super) claim: Option<Object>,
    /// The claim, as a live read showed it.
    pub(super) live: Option<Object>,
    /// The nodes that it names, and that name it.
    pub(super) nodes: Vec<NodeRecord>,
}

/// A claim, as far as it can be read.
struct Read {
    object: Object,
    spec: Result<NodeClaimSpec, String>,
    status: NodeClaimStatus,
}

impl Read {
    /// What a tenant wrote may be anything. A status that cannot be read lists nothing: the nodes themselves say who
    /// has them.
    fn of(object: &Object) -> Read {
        let spec = read_part::<NodeClaimSpec>(object, "spec");
        let spec = spec.map(Option::unwrap_or_default);
        let status = read_part::<NodeClaimStatus>(object, "status").ok().flatten();
        Read { object: object.clone(), spec, status: status.unwrap_or_default() }
    }
}

/// Where a node is.
pub(super) fn node_at(name: &str) -> Address {
    Address::new(Place::HUB, &PHYSICAL_NODE, Name::cluster_wide(name))
}

/// Reads what a step is about.
pub(super) fn observe(
    tenant: &Ref,
    subject: &str,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> (Facts, Scene) {
    let address = Address::new(TENANT_PLANE, &NODE_CLAIM, Name::cluster_wide(subject));
    let claim = view.get(TENANT_PLANE, &NODE_CLAIM, &address.name).map(|it| Read::of(&it));
    let live = live_reads.objects.get(&address);
    let now = view.now();
    let records = records(tenant, subject, claim.as_ref(), view);
    let spec = claim.as_ref().and_then(|claim| claim.spec.as_ref().ok());
    let node = |record: &NodeRecord| node(record, tenant, spec, view);
    let key = claim_key(&tenant.uid, subject);
    let names_it = |record: &&NodeRecord| (NODES_BY_CLAIM.values)(&record.object).contains(&key);
    let entry = |says: &NodeEntry| {
        let record = records.iter().find(|it| it.name() == says.name && it.uid() == says.uid);
        Entry {
            says: says.clone(),
            age_seconds: age_seconds(says, now),
            node: match record {
                Some(record) => Seen::There(Box::new(node(record))),
                None => unseen(says, live_reads),
            },
        }
    };
    let claim_facts = claim.as_ref().map(|claim| Claim {
        name: subject.to_owned(),
        uid: uid_of(&claim.object).to_owned(),
        is_terminating: is_deleting(&claim.object),
        has_finalizer: has_finalizer(&claim.object, FINALIZER_NODE_RELEASE),
        wanted: claim.spec.as_ref().map(wanted).map_err(Clone::clone),
        entries: claim.status.nodes.iter().map(entry).collect(),
        said: claim.status.conditions.clone(),
    });
    let listed = claim_facts.iter().flat_map(|claim| &claim.entries);
    let listed: Vec<&str> = listed
        .filter(|entry| entry.says.state != EntryState::Released)
        .map(|entry| entry.says.uid.as_str())
        .collect();
    let is_listed = |uid: &str| listed.contains(&uid);
    // Only a claim that wants more nodes looks for one.
    let is_short = |claim: &&Claim| claim.wanted.as_ref().is_ok_and(|it| listed.len() < it.count);
    let short = claim_facts.as_ref().filter(|claim| !claim.is_terminating).filter(is_short);
    let searched = short.zip(spec);
    let candidate = searched.and_then(|(claim, spec)| candidate(&claim.uid, spec, view, is_listed));
    let shortage = searched.map(|(_, spec)| shortage(spec, view)).unwrap_or_default();
    let facts = Facts {
        now: Time(whole_seconds(now)),
        tenant_name: tenant.name.clone(),
        tenant: tenant_facts(tenant, view),
        live: live_facts(live),
        held: records.iter().filter(names_it).map(node).collect(),
        candidate,
        shortage,
        claim: claim_facts,
    };
    let claim = claim.map(|claim| claim.object);
    (facts, Scene { now, address, claim, live: live.cloned().flatten(), nodes: records })
}

/// The nodes that name a claim of this name, and those that the claim names. One that cannot be read is not among them:
/// nothing is done about it, and a live read of it shows the same.
fn records(tenant: &Ref, subject: &str, claim: Option<&Read>, view: &dyn View) -> Vec<NodeRecord> {
    let key = claim_key(&tenant.uid, subject);
    let mut objects = view.find(Place::HUB, &NODES_BY_CLAIM, &key);
    let listed = claim.iter().flat_map(|claim| &claim.status.nodes);
    let get =
        |entry: &NodeEntry| view.get(Place::HUB, &PHYSICAL_NODE, &Name::cluster_wide(&entry.name));
    objects.extend(listed.filter_map(get));
    objects.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    objects.dedup_by(|a, b| a.metadata.name == b.metadata.name);
    objects.iter().filter_map(|object| NodeRecord::read(object).ok()).collect()
}

fn unseen(says: &NodeEntry, live_reads: &LiveReads<Nothing>) -> Seen {
    match live_reads.objects.get(&node_at(&says.name)) {
        None => Seen::Unseen,
        Some(Some(node)) if uid_of(node) == says.uid => Seen::Behind,
        Some(_) => Seen::Gone,
    }
}

fn age_seconds(entry: &NodeEntry, now: Timestamp) -> i64 {
    let since = entry.since.as_ref().map_or(now, |since| since.0);
    now.as_second().saturating_sub(since.as_second()).max(0)
}

fn wanted(spec: &NodeClaimSpec) -> Wanted {
    let count = usize::try_from(spec.count).unwrap_or(usize::MAX);
    Wanted { count, names: spec.node_names.len() }
}

fn tenant_facts(tenant: &Ref, view: &dyn View) -> Option<Tenant> {
    let object = view.get(Place::HUB, &TENANT, &Name::cluster_wide(&tenant.name))?;
    if uid_of(&object) != tenant.uid {
        return None;
    }
    let spec = read_part::<TenantSpec>(&object, "spec").ok().flatten()?;
    let status = read_part::<TenantStatus>(&object, "status").ok()?.unwrap_or_default();
    let held = view.count(Place::HUB, &NODES_HELD_BY, &tenant.uid);
    Some(Tenant {
        is_terminating: is_deleting(&object),
        vni: status.vni,
        quota: spec.node_quota,
        held: u32::try_from(held).unwrap_or(u32::MAX),
        orphans: spec.orphan_policy,
    })
}

fn live_facts(live: Option<&Option<Object>>) -> Live {
    match live {
        None => Live::NotRead,
        Some(None) => Live::Gone,
        Some(Some(object)) => Live::There {
            uid: uid_of(object).to_owned(),
            is_terminating: is_deleting(object),
            entries: Read::of(object).status.nodes,
        },
    }
}

fn node(record: &NodeRecord, tenant: &Ref, spec: Option<&NodeClaimSpec>, view: &dyn View) -> Node {
    let status = &record.status;
    let assignment = status.assignment.as_ref().filter(|it| it.tenant.uid == tenant.uid);
    let present = find(&status.conditions, CLAIM_PRESENT);
    Node {
        name: record.name().to_owned(),
        uid: record.uid().to_owned(),
        phase: status.phase,
        epoch: status.epoch,
        floor: status.floor,
        assignment: assignment.map(|it| Assigned {
            claim_uid: it.claim.uid.clone(),
            epoch: it.epoch,
            vni: it.vni,
        }),
        has_cluster: status.cluster.is_some(),
        was_programmed: record.was_programmed(),
        is_ready: is_true(&status.conditions, NETWORK_READY),
        is_fit: spec.is_some_and(|spec| fits(record, spec) && !is_ahead(record, view)),
        says_missing: present.is_some_and(|present| present.status == "False"),
        dpus: record.dpus(),
    }
}
