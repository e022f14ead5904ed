//! What happens to a claim and its machines. First matching rule wins.

use super::facts::{Assigned, Candidate, Claim, Entry, Facts, Live, Node, Seen, Tenant};
use super::words::{findings, refusal};
use crate::record::Revocation;
use interlock_api::nodes::condition::ACCEPTED;
use interlock_api::nodes::{EntryState, NodeEntry, NodePhase, OrphanPolicy};
use interlock_kernel::conditions::Finding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

/// How long a machine that was released is listed.
pub const RELEASED_SECONDS: i64 = 600;
/// How often a claim that is missing is read again.
const MISSING_SECONDS: i64 = 60;
/// More entries than this are not kept: the oldest that were released give way.
pub const MOST_ENTRIES: usize = 1024;

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing for so many seconds, and why.
    Wait(&'static str, i64),
    /// Ask the hub itself for these nodes: a cache proves no absence.
    ReadNodes(Vec<String>),
    /// Ask the control plane of the tenant itself for the claim.
    ReadClaim,
    /// Put the finalizer on the claim.
    PutFinalizer,
    /// Take the finalizer off the claim.
    TakeFinalizerOff,
    /// Write the entries and conditions of the claim.
    Report(Report),
    /// End the epoch of a node.
    Revoke(String, Revocation, &'static str),
    /// Say on a node that its claim is missing.
    SayMissing(String),
    /// Say on a node that its claim is there.
    SayPresent(String),
    /// Give a node to the claim, in this network.
    Bind(String, u32),
}

/// What the status of a claim is to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Its nodes.
    pub entries: Vec<NodeEntry>,
    /// Its conditions.
    pub findings: Vec<Finding>,
    /// Whether it is written over the claim that was read live, and not over that of the cache.
    pub is_over_live: bool,
    /// Why.
    pub because: &'static str,
}

/// Whether an entry is about a node at an epoch, or is the choice that the epoch was given for.
fn lists(entry: &NodeEntry, node: &Node, epoch: i64) -> bool {
    entry.uid == node.uid && (entry.epoch == epoch || entry.state == EntryState::Chosen)
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    let rows = [hold, refuse, correct, give_back, seek, bind, drop_choice, choose, let_go, say];
    rows.iter().find_map(|row| row(facts)).unwrap_or_else(|| rest(facts))
}

fn live_claim(facts: &Facts) -> Option<&Claim> {
    facts.claim.as_ref().filter(|claim| !claim.is_terminating)
}

/// A live claim without our finalizer gets it: a claim that has a node is not gone before the node is taken back.
fn hold(facts: &Facts) -> Option<Decision> {
    let claim = live_claim(facts)?;
    (!claim.has_finalizer).then_some(Decision::PutFinalizer)
}

/// An invalid spec, an unknown tenant, or one over its quota: the claim says so, and gets no further node.
fn refuse(facts: &Facts) -> Option<Decision> {
    let claim = live_claim(facts)?;
    refusal(facts)?;
    let entries = said_entries(claim);
    let findings = findings(facts, &entries);
    let is_said = findings.iter().filter(|it| it.kind == ACCEPTED).all(|it| it.is_in(&claim.said));
    (!is_said).then(|| report(facts, entries, "the claim is not accepted"))
}

/// An entry says what its node says.
fn correct(facts: &Facts) -> Option<Decision> {
    let claim = facts.claim.as_ref()?;
    let mut surplus = claim.entries.len().saturating_sub(MOST_ENTRIES);
    let mut entries = Vec::new();
    let (mut is_changed, mut unseen) = (false, Vec::new());
    for entry in &claim.entries {
        let right = corrected(claim, entry, &facts.now);
        if right.state == EntryState::Released && entry.says.state == EntryState::Released {
            let is_old = entry.age_seconds >= RELEASED_SECONDS;
            if is_old || surplus > 0 {
                surplus = surplus.saturating_sub(1);
                is_changed = true;
                continue;
            }
        }
        if entry.node == Seen::Unseen && right.state != EntryState::Released {
            unseen.push(right.name.clone());
        }
        is_changed |= right != entry.says;
        entries.push(right);
    }
    if is_changed {
        return Some(report(facts, entries, "the entries of the claim say what their nodes say"));
    }
    (!unseen.is_empty()).then_some(Decision::ReadNodes(unseen))
}

/// What an entry is to say. The end of an epoch is for ever, so an entry never comes back from it: a cache may be older
/// than the entry.
fn corrected(claim: &Claim, entry: &Entry, now: &Time) -> NodeEntry {
    let says = &entry.says;
    let into = |state: EntryState| NodeEntry { state, since: Some(now.clone()), ..says.clone() };
    let node = match &entry.node {
        Seen::Unseen | Seen::Behind => return says.clone(),
        Seen::Gone if matches!(says.state, EntryState::Bound | EntryState::Releasing) => {
            return into(EntryState::Released);
        }
        Seen::Gone => return says.clone(),
        Seen::There(node) => node,
    };
    let is_known = |epoch: i64| {
        claim.entries.iter().any(|other| other.says.uid == node.uid && other.says.epoch == epoch)
    };
    if says.state == EntryState::Chosen {
        let held = node.held_by(&claim.uid).filter(|held| !is_known(held.epoch));
        // The tenant learns here that the node is its own, and in which epoch.
        return held.map_or_else(|| says.clone(), |held| bound(entry, node, held, now));
    }
    if says.state == EntryState::Released || node.epoch < says.epoch {
        return says.clone();
    }
    if !node.names(&claim.uid, says.epoch) {
        return into(EntryState::Released);
    }
    match node.held_by(&claim.uid) {
        None if says.state == EntryState::Releasing => says.clone(),
        None => into(EntryState::Releasing),
        Some(_) if says.state == EntryState::Releasing => says.clone(),
        Some(held) => bound(entry, node, held, now),
    }
}

fn bound(entry: &Entry, node: &Node, held: &Assigned, now: &Time) -> NodeEntry {
    let is_bound = entry.says.state == EntryState::Bound;
    let since = if is_bound { entry.says.since.clone() } else { Some(now.clone()) };
    NodeEntry {
        name: node.name.clone(),
        uid: node.uid.clone(),
        epoch: held.epoch,
        state: EntryState::Bound,
        since,
        dpus: node.dpus.clone(),
        vni: Some(held.vni),
    }
}

/// A claim that is seen terminating, or has more nodes than it asks for, gives back: the last first. It needs no clean
/// hardware.
fn give_back(facts: &Facts) -> Option<Decision> {
    let claim = facts.claim.as_ref()?;
    if claim.is_terminating {
        let held = facts.held.iter().filter(|node| node.held_by(&claim.uid).is_some());
        return held
            .filter(|node| node.phase == NodePhase::Bound)
            .map(|node| revoke(node, "the claim is being deleted"))
            .next();
    }
    // An entry whose node is Draining is being given back already.
    let is_draining =
        |entry: &Entry| entry.node().is_some_and(|node| node.phase == NodePhase::Draining);
    let stays = |entry: &&Entry| match entry.says.state {
        EntryState::Chosen => true,
        EntryState::Bound => !is_draining(entry),
        EntryState::Releasing | EntryState::Released => false,
    };
    let count = claim.wanted.as_ref().ok()?.count;
    let last = claim
        .entries
        .iter()
        .filter(stays)
        .nth(count)
        .and(claim.entries.iter().rev().find(|it| stays(it)))?;
    if last.says.state == EntryState::Chosen {
        let mut entries = said_entries(claim);
        entries.retain(|entry| *entry != last.says);
        return Some(report(facts, entries, "the claim asks for fewer nodes"));
    }
    let node = last.node().filter(|node| node.held_by(&claim.uid).is_some())?;
    Some(revoke(node, "the claim asks for fewer nodes"))
}

fn revoke(node: &Node, because: &'static str) -> Decision {
    Decision::Revoke(node.name.clone(), Revocation::of(node.has_cluster), because)
}

/// A node that is bound, and that the claim does not list, by a live read of the claim: absence from a cache is not
/// deletion, and absence from the plane of a tenant may be a mistake (Hold).
fn seek(facts: &Facts) -> Option<Decision> {
    let bound = facts.held.iter().filter(|node| node.phase == NodePhase::Bound);
    bound.filter_map(|node| Some((node, node.assignment.as_ref()?))).find_map(|(node, assigned)| {
        if assigned.epoch <= node.floor {
            return None;
        }
        let claim = facts.claim.as_ref().filter(|claim| claim.uid == assigned.claim_uid);
        if claim.is_some_and(|claim| {
            claim.entries.iter().any(|it| lists(&it.says, node, assigned.epoch))
        }) {
            return node.says_missing.then(|| Decision::SayPresent(node.name.clone()));
        }
        match &facts.live {
            Live::NotRead => Some(Decision::ReadClaim),
            Live::There { uid, entries, is_terminating } if *uid == assigned.claim_uid => {
                if entries.iter().any(|entry| lists(entry, node, assigned.epoch)) {
                    return None;
                }
                if !node.was_programmed {
                    return Some(revoke(
                        node,
                        "the claim does not list the node, and the node was never programmed",
                    ));
                }
                if *is_terminating {
                    return Some(revoke(node, "the claim is being deleted"));
                }
                Some(append(facts, entries, node, assigned))
            }
            Live::Gone | Live::There { .. } => {
                if !node.was_programmed {
                    return Some(revoke(
                        node,
                        "the claim is gone, and the node was never programmed",
                    ));
                }
                match facts.tenant.as_ref().map_or(OrphanPolicy::Hold, |tenant| tenant.orphans) {
                    OrphanPolicy::Release => {
                        Some(revoke(node, "the claim is gone, and its tenant says Release"))
                    }
                    OrphanPolicy::Hold if node.says_missing => None,
                    OrphanPolicy::Hold => Some(Decision::SayMissing(node.name.clone())),
                }
            }
        }
    })
}

/// The claim lists a node that it has: the tenant may be using it.
fn append(facts: &Facts, listed: &[NodeEntry], node: &Node, assigned: &Assigned) -> Decision {
    let mut entries = listed.to_vec();
    entries.push(NodeEntry {
        name: node.name.clone(),
        uid: node.uid.clone(),
        epoch: assigned.epoch,
        state: EntryState::Bound,
        since: Some(facts.now.clone()),
        dpus: node.dpus.clone(),
        vni: Some(assigned.vni),
    });
    Decision::Report(Report {
        entries,
        findings: Vec::new(),
        is_over_live: true,
        because: "the node is bound to the claim, and in use",
    })
}

/// A node that the claim has chosen becomes its own, if it is free at that very version: of two claims one wins.
/// All that made it the choice is compared again, since a tenant can write to its claim.
fn bind(facts: &Facts) -> Option<Decision> {
    let claim = live_claim(facts)?;
    let vni = served(facts)?.vni?;
    let chosen = claim.entries.iter().filter(|entry| entry.says.state == EntryState::Chosen);
    let mut free = chosen.filter_map(Entry::node).filter(|node| is_free(node));
    free.next().map(|node| Decision::Bind(node.name.clone(), vni))
}

/// Whether a node can be given: an epoch after the last one exists.
fn is_free(node: &Node) -> bool {
    node.phase == NodePhase::Available && node.is_fit && node.epoch < i64::MAX
}

/// The tenant, if its claim is accepted.
fn served(facts: &Facts) -> Option<&Tenant> {
    facts.tenant.as_ref().filter(|_| refusal(facts).is_none())
}

/// A choice that came to nothing is dropped.
fn drop_choice(facts: &Facts) -> Option<Decision> {
    let claim = facts.claim.as_ref()?;
    let is_served = !claim.is_terminating && served(facts).is_some();
    let stays = |entry: &&Entry| {
        let is_open = entry.node().is_none_or(is_free);
        entry.says.state != EntryState::Chosen || (is_served && is_open && entry.node != Seen::Gone)
    };
    let kept: Vec<NodeEntry> =
        claim.entries.iter().filter(stays).map(|it| it.says.clone()).collect();
    (kept.len() < claim.entries.len())
        .then(|| report(facts, kept, "a node that was chosen is not free"))
}

/// The choice is on the claim before the node is touched.
fn choose(facts: &Facts) -> Option<Decision> {
    let claim = live_claim(facts)?;
    served(facts)?.vni?;
    let listed = claim.entries.iter().filter(|entry| entry.says.state != EntryState::Released);
    if listed.count() >= claim.wanted.as_ref().ok()?.count || claim.entries.len() >= MOST_ENTRIES {
        return None;
    }
    let Candidate { name, uid } = facts.candidate.clone()?;
    let chosen = NodeEntry { name, uid, since: Some(facts.now.clone()), ..NodeEntry::default() };
    let entries = said_entries(claim).into_iter().chain([chosen]).collect();
    Some(report(facts, entries, "the node is free and fits"))
}

/// The finalizer of a claim comes off once no node names the claim, and no choice or bond is open.
fn let_go(facts: &Facts) -> Option<Decision> {
    let claim = facts.claim.as_ref().filter(|claim| claim.is_terminating && claim.has_finalizer)?;
    let is_open =
        |entry: &Entry| matches!(entry.says.state, EntryState::Chosen | EntryState::Bound);
    let is_named =
        |node: &Node| node.assignment.as_ref().is_some_and(|it| it.claim_uid == claim.uid);
    let is_done = !facts.held.iter().any(is_named) && !claim.entries.iter().any(is_open);
    is_done.then_some(Decision::TakeFinalizerOff)
}

/// The conditions say what is true.
fn say(facts: &Facts) -> Option<Decision> {
    let claim = facts.claim.as_ref()?;
    let entries = said_entries(claim);
    let is_said = findings(facts, &entries).iter().all(|finding| finding.is_in(&claim.said));
    (!is_said).then(|| report(facts, entries, "the conditions of the claim say what is true"))
}

fn said_entries(claim: &Claim) -> Vec<NodeEntry> {
    claim.entries.iter().map(|entry| entry.says.clone()).collect()
}

fn report(facts: &Facts, entries: Vec<NodeEntry>, because: &'static str) -> Decision {
    let findings = findings(facts, &entries);
    Decision::Report(Report { entries, findings, is_over_live: false, because })
}

fn rest(facts: &Facts) -> Decision {
    if facts.held.iter().any(|node| node.says_missing) {
        return Decision::Wait("the claim of a bound node is missing", MISSING_SECONDS);
    }
    let Some(claim) = &facts.claim else {
        return Decision::Rest("there is no claim, and no node names it");
    };
    let released = claim.entries.iter().filter(|entry| entry.says.state == EntryState::Released);
    let left =
        released.map(|entry| (RELEASED_SECONDS - entry.age_seconds).clamp(1, RELEASED_SECONDS));
    match left.min() {
        Some(seconds) => {
            Decision::Wait("a node that was released is listed for ten minutes", seconds)
        }
        None => Decision::Rest("the claim is served as far as nodes are free"),
    }
}
