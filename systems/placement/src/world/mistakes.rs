//! The mistakes that a controller could make, each in the least world in which it shows.
//!
//! Every one is an alternative to a function that ships: to `observe`, `decide` or `act` of a room, or to
//! what wakes it.

mod data;
mod drains;
mod ends;
mod makers;
mod moves;
mod pods;
mod races;
mod rights;
mod seeing;
mod volumes;

use super::machine::Machine;
use super::{Namespaces, boot_id};
use crate::claims::Claims;
use crate::clusters::Clusters;
use crate::fencing::Fencing;
use crate::kinds::GRANT;
use crate::runtime::{Runtime, Scope};
use crate::scheduler::decide as schedule;
use crate::scheduler::{self, Scheduler};
use crate::syncer::Syncer;
use crate::syncer::decide::Decision as Syncs;
use crate::syncer::facts::Facts as SyncerFacts;
use crate::syncer::tenancy::{Here, Notes};
use interlock_checker::Size;
use interlock_kernel::{Act, Altered, Bent, Decide, Observe, Room, Watch, Watcher};
use interlock_world::{Actor, Mistake, shipped};

/// What is done otherwise.
#[derive(Clone, Copy)]
pub(super) enum Bend {
    SchedulerDecides(Decide<Scheduler>),
    SchedulerActs(Act<Scheduler>),
    FencingDecides(Decide<Fencing>),
    SyncerObserves(Observe<Syncer>),
    SyncerDecides(Decide<Syncer>),
    SyncerActs(Act<Syncer>),
    /// Of the syncers of cluster a, the first one.
    FirstSyncerActs(Act<Syncer>),
    /// Of the syncers of cluster a, the second one.
    SecondSyncerActs(Act<Syncer>),
    ClaimsDecide(Decide<Claims>),
    ClaimsAct(Act<Claims>),
    ClustersObserve(Observe<Clusters>),
    ClustersDecide(Decide<Clusters>),
    RuntimeObserves(Observe<Runtime>),
    RuntimeDecides(Decide<Runtime>),
    /// A change of a grant wakes no syncer.
    GrantWakesNobody,
    /// What a syncer carries has a queue of its own: its steps run beside those that decide whether
    /// the namespace may be there.
    SyncerInTwo,
    /// A permit of an earlier boot of the machine still counts.
    BootIgnored,
    /// A syncer goes on after a power loss with what it had read before it, and names the boot of then.
    BootReadLate,
    /// People declare an owner gone that runs.
    ForceWhileRunning,
    /// Every controller knows namespaces by their names: two of one name have one uid.
    NamespacesByName,
    /// Every controller knows clusters by their names: two of one name have one uid.
    ClustersByName,
}

/// The name, the sentence, what must break, what is done otherwise, and the least size in which it
/// shows.
struct Row(&'static str, &'static str, &'static [&'static str], &'static [Bend], &'static str);

/// Every mistake, as a system that makes it.
pub(super) fn mistakes() -> Vec<Mistake<Namespaces>> {
    let made = |Row(name, sentence, breaks, bends, size): &Row| {
        let size = Size::parse(size).expect("the sizes here can be read");
        let system = Namespaces::from_size(&size).expect("the sizes here are in range");
        // A mistake must break a promise: a comparison with the protocol would find it, too.
        let system = Namespaces { bends, is_refined: false, ..system };
        Mistake { name, sentence, breaks, system }
    };
    let rows = moves::ROWS.iter().chain(races::ROWS).chain(ends::ROWS).chain(volumes::ROWS);
    let rows = rows.chain(data::ROWS).chain(rights::ROWS).chain(pods::ROWS).chain(drains::ROWS);
    let rows = rows.chain(makers::ROWS);
    rows.map(made).collect()
}

/// The scheduler, with what it does otherwise.
pub(super) fn scheduler(bends: &'static [Bend]) -> Box<dyn Actor<Machine>> {
    shipped(move |_| {
        bends.iter().fold(Bent::new(Scheduler::default()), |room, bend| match bend {
            Bend::SchedulerDecides(decide) => room.deciding(*decide),
            Bend::SchedulerActs(act) => room.acting(*act),
            _ => room,
        })
    })
}

/// The controller that answers forced releases.
pub(super) fn fencing(bends: &'static [Bend]) -> Box<dyn Actor<Machine>> {
    shipped(move |_| {
        bends.iter().fold(Bent::new(Fencing), |room, bend| match bend {
            Bend::FencingDecides(decide) => room.deciding(*decide),
            _ => room,
        })
    })
}

/// The controller that mirrors a grant in labels.
pub(super) fn claims(bends: &'static [Bend]) -> Box<dyn Actor<Machine>> {
    shipped(move |_| {
        bends.iter().fold(Bent::new(Claims), |room, bend| match bend {
            Bend::ClaimsDecide(decide) => room.deciding(*decide),
            Bend::ClaimsAct(act) => room.acting(*act),
            _ => room,
        })
    })
}

/// The controller that lets clusters go.
pub(super) fn clusters(bends: &'static [Bend]) -> Box<dyn Actor<Machine>> {
    shipped(move |_| {
        bends.iter().fold(Bent::new(Clusters::default()), |room, bend| match bend {
            Bend::ClustersObserve(observe) => room.observing(*observe),
            Bend::ClustersDecide(decide) => room.deciding(*decide),
            _ => room,
        })
    })
}

/// The boot of its machine that a program takes to be the present one.
fn boot(bends: &[Bend], boot: u8) -> u8 {
    let is_ignored = bends.iter().any(|bend| matches!(bend, Bend::BootIgnored));
    if is_ignored { 0 } else { boot }
}

/// The runtime of a cluster.
pub(super) fn runtime(
    bends: &'static [Bend],
    cluster: usize,
    has_storage: bool,
) -> Box<dyn Actor<Machine>> {
    shipped(move |now| {
        let room = Runtime::new(boot_id(cluster, boot(bends, now))).serving(Scope::All);
        let room = if has_storage { room.with_storage() } else { room };
        bends.iter().fold(Bent::new(room), |room, bend| match bend {
            Bend::RuntimeObserves(observe) => room.observing(*observe),
            Bend::RuntimeDecides(decide) => room.deciding(*decide),
            _ => room,
        })
    })
}

/// The syncer of a cluster.
pub(super) fn syncer(
    bends: &'static [Bend],
    is_second: bool,
    make: impl Fn(u8) -> Syncer + Clone + 'static,
) -> Box<dyn Actor<Machine>> {
    let make = move |now: u8| {
        let room = Bent::new(make(boot(bends, now)));
        bends.iter().fold(room, |room, bend| match bend {
            Bend::SyncerObserves(observe) => room.observing(*observe),
            Bend::SyncerDecides(decide) => room.deciding(*decide),
            Bend::SyncerActs(act) => room.acting(*act),
            Bend::FirstSyncerActs(act) if !is_second => room.acting(*act),
            Bend::SecondSyncerActs(act) if is_second => room.acting(*act),
            _ => room,
        })
    };
    if bends.iter().any(|bend| matches!(bend, Bend::GrantWakesNobody)) {
        return shipped(move |now| {
            Altered::new(make(now)).waking(|syncer, watch: &Watch, object, view| {
                let is_grant = watch.kind == GRANT;
                if is_grant { Vec::new() } else { syncer.subjects(watch, object, view) }
            })
        });
    }
    shipped(make)
}

/// The two controllers that a syncer would be if what it carries had a queue of its own.
pub(super) fn syncer_in_two(
    make: impl Fn(u8) -> Syncer + Clone + 'static,
) -> [Box<dyn Actor<Machine>>; 2] {
    fn only(facts: &SyncerFacts, carries: bool) -> Syncs {
        let decision = Syncer::decide(facts);
        let is_its = matches!(decision, Syncs::Mirror { .. }) == carries;
        if is_its { decision } else { Syncs::rest("it is for the other queue") }
    }
    let whether = make.clone();
    [
        shipped(move |now| Bent::new(whether(now)).deciding(|facts| only(facts, false))),
        shipped(move |now| Bent::new(make(now)).deciding(|facts| only(facts, true))),
    ]
}

/// Whether a syncer has two queues.
pub(super) fn is_in_two(bends: &[Bend]) -> bool {
    bends.iter().any(|bend| matches!(bend, Bend::SyncerInTwo))
}

/// Whether a syncer goes on after a power loss with what it had read before it.
pub(super) fn outlives_its_machine(bends: &[Bend]) -> bool {
    bends.iter().any(|bend| matches!(bend, Bend::BootReadLate))
}

/// Whether people declare an owner gone that runs.
pub(super) fn is_forced_while_running(bends: &[Bend]) -> bool {
    bends.iter().any(|bend| matches!(bend, Bend::ForceWhileRunning))
}

/// Whether two namespaces of one name are taken for the same.
pub(super) fn goes_by_namespace_names(bends: &[Bend]) -> bool {
    bends.iter().any(|bend| matches!(bend, Bend::NamespacesByName))
}

/// Whether two clusters of one name are taken for the same.
pub(super) fn goes_by_cluster_names(bends: &[Bend]) -> bool {
    bends.iter().any(|bend| matches!(bend, Bend::ClustersByName))
}

/// What the scheduler decides about a grant of which it knows something else.
fn scheduled(
    facts: &scheduler::Facts,
    bend: fn(&mut schedule::Facts),
) -> <Scheduler as Room>::Decision {
    let mut facts = facts.clone();
    if let scheduler::Facts::Grant(facts) = &mut facts {
        bend(facts);
    }
    Scheduler::decide(&facts)
}

/// What a syncer decides that knows something else.
fn synced(facts: &SyncerFacts, bend: fn(&mut SyncerFacts)) -> Syncs {
    let mut facts = facts.clone();
    bend(&mut facts);
    Syncer::decide(&facts)
}

/// Other notes, if there are any; the number is the epoch of the grant.
fn noted(facts: &mut SyncerFacts, bend: fn(i64, &mut Notes)) {
    if let Here::Noted(notes) = &mut facts.notes {
        bend(facts.at.epoch, notes);
    }
}
