//! What is promised of pods that controllers make, and the rules whose loss each promise must notice.

use super::state::{Held, MOST_NAMES};
use super::{Rules, State, Workloads};
use interlock_checker::{Formula, Invariant, Mutant, Property, Reachable};

impl State {
    /// The epochs under which processes of a pod run.
    fn processes(&self) -> impl Iterator<Item = (Held, u8)> + '_ {
        let epochs =
            |held: Held| (1..=u8::BITS as u8).filter(move |e| held.runs >> (e - 1) & 1 == 1);
        self.held.iter().flat_map(move |held| epochs(*held).map(|epoch| (*held, epoch)))
    }
}

impl Workloads {
    pub(super) fn all_invariants(&self) -> Vec<Invariant<State>> {
        let wanted = self.wanted as u32;
        vec![
            Invariant::new(
                "PodsBounded",
                "there are never more pods than wanted",
                move |s: &State| s.taken_names().count_ones() <= wanted,
            ),
            Invariant::new(
                "OnePerName",
                "at most one process runs for each name of a pod",
                |s: &State| {
                    let of = |name: usize| {
                        s.processes().filter(move |(held, _)| usize::from(held.name) == name)
                    };
                    (0..MOST_NAMES).all(|name| of(name).count() <= 1)
                },
            ),
            Invariant::new(
                "ReleasedIsStill",
                "no process of an epoch runs once the epoch is released",
                |s: &State| s.processes().all(|(_, epoch)| epoch > s.released),
            ),
            Invariant::new(
                "OnlyTheOwnerRuns",
                "what runs, runs under the present epoch",
                |s: &State| s.processes().all(|(_, epoch)| epoch == s.epoch),
            ),
            Invariant::new(
                "OwnEpoch",
                "a process runs under the epoch in which its pod was made",
                |s: &State| s.processes().all(|(held, epoch)| epoch == held.of),
            ),
        ]
    }

    /// A process whose pod a person stripped of its finalizer is not stopped by anyone, so nothing ends with faults.
    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        if self.faults > 0 {
            return Vec::new();
        }
        vec![Property::new(
            "RevocationEnds",
            "a revocation ends with the release",
            Formula::leads_to(|s: &State| s.is_revoked, |s: &State| !s.is_revoked),
        )]
    }

    pub(super) fn all_reachable(&self) -> Vec<Reachable<State>> {
        let mut reachable =
            vec![Reachable::new("LatePod", "a pod is made after the close", |s: &State| {
                s.released == s.epoch && s.taken_names() != 0
            })];
        if self.epochs > 1 && self.pods > 1 {
            reachable.push(Reachable::new(
                "RunsAgain",
                "a process runs in the second epoch",
                |s: &State| s.epoch == 2 && s.processes().next().is_some(),
            ));
        }
        reachable
    }

    pub(super) fn all_mutants(&self) -> Vec<Mutant<Self>> {
        let least = Workloads {
            epochs: self.epochs.max(2),
            pods: self.pods.max(3),
            faults: self.faults.max(1),
            ..self.clone()
        };
        let mutant = |name, sentence, broken, change: fn(&mut Rules)| {
            Mutant::new(name, sentence, &[broken], least.without(change))
        };
        let mut any_name =
            mutant("any-name", "the name of a pod is any that is free", "PodsBounded", |rules| {
                rules.slots = false;
            });
        any_name.model.makers = 2;
        let mut by_uid =
            mutant("lock-by-uid", "the lock of a pod is by its uid", "OnePerName", |rules| {
                rules.lock_by_name = false
            });
        by_uid.model.faults = self.faults.max(2);
        vec![
            any_name,
            mutant(
                "cached-permit",
                "the runtime reads the permit from its cache",
                STILL,
                |rules| rules.permit_read = false,
            ),
            mutant(
                "look-before-withdrawing",
                "the syncer looks what is left before it withdraws the permit",
                STILL,
                |rules| rules.withdraw_first = false,
            ),
            mutant("locks-unread", "the syncer does not ask for the locks", STILL, |rules| {
                rules.locks_seen = false
            }),
            mutant(
                "pod-of-any-epoch",
                "a pod starts under a permit of another epoch",
                "OwnEpoch",
                |rules| rules.epoch_stamp = false,
            ),
            by_uid,
        ]
    }
}

const STILL: &str = "ReleasedIsStill";
