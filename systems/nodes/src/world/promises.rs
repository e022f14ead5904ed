//! What is promised.

use super::Nodes;
use super::size::Size;
use super::start::{DPUS, RACK};
use super::truth::{Claim, Node, Truth};
use interlock_api::nodes::{Assignment, DpuName, NodePhase};
use interlock_world::{Goal, Promise, Rule};
use std::collections::BTreeSet;

/// What must hold in every state.
pub(super) fn promises() -> Vec<Promise<Nodes>> {
    vec![
        Promise {
            name: "TenantIsolation",
            sentence: "the node is programmed for at most one tenant, over all DPUs together",
            holds: |_, truth| {
                let tenants: BTreeSet<&str> =
                    truth.open.iter().map(|open| &*open.tag.tenant).collect();
                tenants.len() <= 1
            },
        },
        Promise {
            name: "HardwareIsOwned",
            sentence: "what is programmed is the present assignment; an entry of a node that was replaced by \
                       force is only there while its successor is Releasing",
            holds: |system, truth| {
                let Some(node) = truth.node.as_ref().filter(|_| !truth.is_forgotten()) else {
                    return true;
                };
                let is_releasing = node.phase == NodePhase::Releasing;
                truth.open.iter().all(|open| match open.tag.node == node.uid {
                    // Whose it was is not in the backup.
                    true if system.size.restores == 1 && is_releasing => true,
                    true => node.assignment.as_ref().is_some_and(|given| open.is_for(node, given)),
                    false => is_releasing,
                })
            },
        },
        Promise {
            name: "PoolIsClean",
            sentence: "a node in the pool is programmed in no DPU",
            holds: |_, truth| {
                let is_clean = truth.node.as_ref().is_some_and(|node| node.phase.is_clean());
                !is_clean || truth.open.is_empty() || truth.is_forgotten()
            },
        },
        Promise {
            name: "NodeSingleAssignment",
            sentence: "the node is in the pool or has one owner, and at most one claim has it at an epoch above \
                       its floor",
            holds: |system, truth| single_assignment(system, truth),
        },
        Promise {
            name: "ReportsStayTrue",
            sentence: "of a node that a DPU has reported as clean up to a floor, that DPU never has anything open \
                       at or under that floor",
            holds: |_, truth| {
                truth.open.iter().all(|open| {
                    let reported = truth.reported(open.dpu, &open.tag.node);
                    reported.is_none_or(|floor| open.tag.epoch > floor)
                })
            },
        },
        Promise {
            name: "ConfigurationConsistency",
            sentence: "a node that names a DPU of another rack is never assigned",
            holds: |system, truth| {
                let mut node = truth.node.iter();
                // The stand-in of the hub gives nodes whatever their wiring: there it is for the DPUs to refuse them.
                system.size.hub == 1
                    || node.all(|node| node.given().is_none() || node.is_consistent)
            },
        },
        Promise {
            name: "RackAffinity",
            sentence: "a node is programmed only in DPUs of its rack",
            holds: |_, truth| truth.on_node().all(|(node, _)| node.rack == RACK),
        },
        Promise {
            name: "DPUAffinity",
            sentence: "a node is programmed only in DPUs that its spec names",
            holds: |_, truth| {
                truth
                    .on_node()
                    .all(|(node, open)| node.dpus.contains(&DpuName::new(RACK, DPUS[open.dpu])))
            },
        },
        Promise {
            name: "NetworkExclusive",
            sentence: "no two tenants have one network",
            holds: |_, truth| truth.vnis[0].is_none() || truth.vnis[0] != truth.vnis[1],
        },
    ]
}

/// The entries of claims that people cannot have written are believed.
fn single_assignment(system: &Nodes, truth: &Truth) -> bool {
    let Some(node) = &truth.node else { return true };
    let is_unowned = !node.phase.is_clean() || node.assignment.is_none();
    let has_it = |claim: &&Claim| {
        let mut entries = claim.entries.iter();
        entries.any(|entry| entry.uid == node.uid && entry.epoch > node.floor)
    };
    let holders = truth.claims.iter().flatten().filter(has_it).count();
    // What no DPU has seen is lost with the hub, and a claim may still say it.
    is_unowned && (system.size.forged + system.size.restores > 0 || holders <= 1)
}

/// What must hold of every step.
pub(super) fn rules() -> Vec<Rule<Nodes>> {
    vec![
        Rule {
            name: "EpochsGrow",
            sentence: "epoch and floor of a node never fall, and an epoch is given once",
            allows: |system, before, after| {
                let Some((old, new)) = same(before, after) else { return true };
                let is_given_anew = new.assignment.is_some() && new.assignment != old.assignment;
                // A backup is of the time before the first epoch.
                if system.size.restores == 1 && (new.epoch, old.epoch > 0) == (0, true) {
                    return true;
                }
                let grows = new.epoch >= old.epoch && new.floor >= old.floor;
                grows && new.floor <= new.epoch && (!is_given_anew || new.epoch > old.epoch)
            },
        },
        Rule {
            name: "ChoiceFirst",
            sentence: "a node is given only to a claim that lists it",
            allows: |system, before, after| {
                let Some((old, new)) = same(before, after) else { return true };
                let given = new.given().filter(|_| old.given().is_none());
                let is_tampered_with =
                    [system.size.forged, system.size.vanishes, system.size.hub] != [0; 3];
                let is_listed = |given: &Assignment| {
                    let claim = before.claim_of(given);
                    claim.is_some_and(|claim| claim.lists(&new.uid))
                };
                is_tampered_with || given.is_none_or(is_listed)
            },
        },
        Rule {
            name: "RevokedForAReason",
            sentence: "an epoch ends only if its claim is gone or being deleted, or the platform ends that epoch; a \
                       claim that vanished is no reason, once the network was ready",
            allows: |system, before, after| revoked_for_a_reason(system, before, after),
        },
        Rule {
            name: "MachineIsTenants",
            sentence: "while a cluster is on the node, its epoch ends only once the cluster is drained for it, or a \
                       person has fenced the machine",
            allows: |_, before, after| {
                let Some((old, new)) = same(before, after) else { return true };
                !old.has_cluster || new.floor <= old.floor || old.may_end
            },
        },
    ]
}

/// The node before and after a step, if it is the same one.
fn same<'a>(before: &'a Truth, after: &'a Truth) -> Option<(&'a Node, &'a Node)> {
    let (old, new) = (before.node.as_ref()?, after.node.as_ref()?);
    (old.uid == new.uid).then_some((old, new))
}

fn revoked_for_a_reason(system: &Nodes, before: &Truth, after: &Truth) -> bool {
    let Some((old, new)) = same(before, after) else { return true };
    let Some(given) = old.given() else { return true };
    let is_revoked = new.floor >= given.epoch && old.floor < given.epoch;
    // What a tenant writes to its claim may end its own epochs.
    if !is_revoked || old.is_ended || system.size.forged > 0 || system.size.hub == 1 {
        return true;
    }
    match before.claim_of(given) {
        Some(claim) => claim.is_terminating || !claim.lists(&new.uid),
        None => system.size.deletes > 0 || !old.was_ready,
    }
}

/// What must be possible.
pub(super) fn reachable(system: &Nodes) -> Vec<Promise<Nodes>> {
    let mut all = vec![Promise {
        name: "IsProgrammed",
        sentence: "the node is bound, and all its DPUs have it programmed",
        holds: |system: &Nodes, truth: &Truth| truth.is_programmed(system),
    }];
    let Size { hub, epochs, deletes, reclaims, tenants, .. } = system.size;
    let is_given_again = if hub == 1 { epochs > 1 } else { deletes + reclaims > 0 && tenants == 2 };
    if is_given_again {
        all.push(Promise {
            name: "IsProgrammedAgain",
            sentence: "the node is programmed for a second epoch",
            holds: |system, truth| {
                let epoch = truth.node.as_ref().map_or(0, |node| node.epoch);
                epoch > 1 && truth.is_programmed(system)
            },
        });
    }
    if system.size.cluster == 1 && reclaims > 0 {
        all.push(Promise {
            name: "IsReturnedAfterADrain",
            sentence: "a node that had a cluster is in the pool again",
            holds: |_, truth| {
                let node = truth.node.as_ref();
                node.is_some_and(|node| node.epoch == 1 && node.phase == NodePhase::Available)
            },
        });
    }
    all
}

/// What must happen in the end.
pub(super) fn goals(system: &Nodes) -> Vec<Goal<Nodes>> {
    let mut goals: Vec<Goal<Nodes>> = vec![
        Goal {
            name: "EventualConsistency",
            sentence: "a node that stays assigned is programmed in all its DPUs in the end",
            while_true: |_, truth: &Truth| {
                truth.node.as_ref().is_some_and(|node| node.given().is_some())
            },
            then: |system, truth| truth.is_programmed(system),
        },
        Goal {
            name: "ReclaimCompletes",
            sentence: "a node that was revoked returns to the pool in the end",
            while_true: |_, truth| {
                truth.node.as_ref().is_some_and(|node| node.phase == NodePhase::Releasing)
            },
            then: |_, _| false,
        },
        Goal {
            name: "AttachmentsEnd",
            sentence: "an attachment that is being deleted is gone in the end",
            while_true: |_, truth| truth.held > 0,
            then: |_, _| false,
        },
    ];
    // The stand-in of the hub knows no claims.
    if system.size.hub == 0 {
        goals.push(claims_are_served());
    }
    if system.size.hub == 0 && system.size.deletes > 0 {
        goals.push(claims_end());
    }
    goals
}

fn claims_are_served() -> Goal<Nodes> {
    Goal {
        name: "ClaimsAreServed",
        sentence: "a claim that stays, while a node that fits is in the pool, gets it in the end",
        while_true: |_, truth| {
            let is_wanted = |claim: &Claim| !claim.is_terminating;
            truth.is_available() && truth.claims.iter().flatten().any(is_wanted)
        },
        then: |_, _| false,
    }
}

fn claims_end() -> Goal<Nodes> {
    Goal {
        name: "ClaimsEnd",
        sentence: "a claim that is being deleted is gone in the end",
        while_true: |_, truth| truth.claims.iter().flatten().any(|claim| claim.is_terminating),
        then: |_, _| false,
    }
}
