//! The variables of pods that controllers make, how they are packed and how they are shown.

use super::Workloads;
use interlock_checker::{Coder, Rng};

/// Two are wanted, and one name more.
pub(super) const MOST_NAMES: usize = 3;
pub(super) const MOST_MAKERS: usize = 2;
pub(super) const MOST_PODS: usize = 4;

/// A pod of one name; none where the uid is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pod {
    pub(super) uid: u8,
    pub(super) epoch: u8,
    /// It is being deleted: `go`.
    pub(super) is_leaving: bool,
}

impl Pod {
    pub(super) fn exists(&self) -> bool {
        self.uid != 0
    }
}

/// What a maker has in its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct View {
    /// The epoch of the object that asks for the pods; 0 is none.
    pub(super) maker: u8,
    /// The names that are taken, a bit for each.
    pub(super) names: u8,
}

/// What the runtime has of one uid, which outlives the pod: its lock, and processes by the epoch of their permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    /// The place of its name, while anything below is there.
    pub(super) name: u8,
    /// The epoch of the pod, while a permit was seen or a process is there.
    pub(super) of: u8,
    pub(super) is_locked: bool,
    /// Permits that were seen, a bit for each epoch: `may`.
    pub(super) may: u8,
    /// Processes: `proc`.
    pub(super) runs: u8,
}

impl Held {
    pub(super) fn is_taken(&self) -> bool {
        self.is_locked || self.runs != 0
    }

    /// What nothing refers to any more is forgotten.
    pub(super) fn tidied(self) -> Self {
        let is_permitted = self.may != 0 || self.runs != 0;
        let name = if self.is_locked || is_permitted { self.name } else { 0 };
        Held { name, of: if is_permitted { self.of } else { 0 }, ..self }
    }
}

/// How far the syncer has seen that nothing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Still {
    #[default]
    No,
    Lists,
    Locks,
}

const STILLS: [Still; 3] = [Still::No, Still::Lists, Still::Locks];

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) epoch: u8,
    /// The epoch that is permitted here: `run`.
    pub(super) permit: u8,
    pub(super) released: u8,
    /// The epoch is revoked: `leaving`.
    pub(super) is_revoked: bool,
    /// The epoch of the object that asks for pods: `mkr`.
    pub(super) maker: u8,
    pub(super) pods: [Pod; MOST_NAMES],
    pub(super) next_uid: u8,
    pub(super) views: [View; MOST_MAKERS],
    pub(super) held: [Held; MOST_PODS],
    pub(super) still: Still,
    pub(super) faults: u8,
    /// The permit as the cache of the runtime shows it.
    pub(super) cached_permit: u8,
}

pub(super) fn bit(epoch: u8) -> u8 {
    (1 << epoch) >> 1
}

impl State {
    /// The names that are taken, a bit for each.
    pub(super) fn taken_names(&self) -> u8 {
        let there = (0..MOST_NAMES).filter(|s| self.pods[*s].exists());
        there.fold(0, |names, s| names | 1 << s)
    }

    pub(super) fn code(&mut self, model: &Workloads, coder: &mut Coder) {
        coder.u8(&mut self.epoch, 2);
        coder.u8(&mut self.permit, 2);
        coder.u8(&mut self.released, 2);
        coder.bool(&mut self.is_revoked);
        coder.u8(&mut self.maker, 2);
        for pod in &mut self.pods[model.names()] {
            coder.u8(&mut pod.uid, 3);
            coder.u8(&mut pod.epoch, 2);
            coder.bool(&mut pod.is_leaving);
        }
        coder.u8(&mut self.next_uid, 3);
        for view in &mut self.views[..model.makers] {
            coder.u8(&mut view.maker, 2);
            coder.u8(&mut view.names, MOST_NAMES as u32);
        }
        for held in &mut self.held[..usize::from(model.pods)] {
            coder.u8(&mut held.name, 2);
            coder.u8(&mut held.of, 2);
            coder.bool(&mut held.is_locked);
            coder.u8(&mut held.may, 3);
            coder.u8(&mut held.runs, 3);
        }
        coder.of(&mut self.still, &STILLS);
        coder.u8(&mut self.faults, 2);
        coder.u8(&mut self.cached_permit, 2);
    }

    pub(super) fn describe(&self, model: &Workloads) -> Vec<(&'static str, String)> {
        let pods = self.pods[model.names()].iter().map(|pod| {
            let (uid, epoch, leaving) = (pod.uid, pod.epoch, boolean(pod.is_leaving));
            format!("[uid |-> {uid}, ep |-> {epoch}, go |-> {leaving}]")
        });
        let views = self.views[..model.makers].iter().zip(1..).map(|(view, m)| {
            let names = (0..MOST_NAMES).filter(|s| view.names & 1 << s != 0);
            let names = set(names.map(|s| (s + 1).to_string()));
            format!("m{m} |-> [mk |-> {}, names |-> {names}]", view.maker)
        });
        let held = || self.held.iter().zip(1..);
        let locked = held().filter(|(it, _)| it.is_locked);
        let locked =
            locked.map(|(it, uid): (_, u8)| format!("[s |-> {}, u |-> {uid}]", it.name + 1));
        let under = |permits: fn(&Held) -> u8| {
            set(held().flat_map(|(it, uid): (&Held, u8)| {
                let epochs = (1..=model.epochs).filter(move |epoch| permits(it) & bit(*epoch) != 0);
                let (s, of) = (it.name + 1, it.of);
                epochs.map(move |epoch| {
                    format!("[s |-> {s}, u |-> {uid}, ep |-> {epoch}, of |-> {of}]")
                })
            }))
        };
        vec![
            ("ep", self.epoch.to_string()),
            ("run", self.permit.to_string()),
            ("rel", self.released.to_string()),
            ("leaving", boolean(self.is_revoked).to_owned()),
            ("mkr", self.maker.to_string()),
            ("pods", format!("<<{}>>", pods.collect::<Vec<_>>().join(", "))),
            ("nuid", self.next_uid.to_string()),
            ("mv", format!("[{}]", views.collect::<Vec<_>>().join(", "))),
            ("hand", set(locked)),
            ("may", under(|held| held.may)),
            ("proc", under(|held| held.runs)),
            ("still", format!("\"{:?}\"", self.still).to_lowercase()),
            ("faults", self.faults.to_string()),
            ("pcache", self.cached_permit.to_string()),
        ]
    }

    pub(super) fn arbitrary(model: &Workloads, rng: &mut Rng) -> State {
        let below = |rng: &mut Rng, bound: u8| rng.below(usize::from(bound)) as u8;
        let epoch = |rng: &mut Rng| below(rng, model.epochs + 1);
        let permits = |rng: &mut Rng| below(rng, 1 << model.epochs);
        let names = model.names().len();
        let mut state = State {
            epoch: 1 + below(rng, model.epochs),
            permit: epoch(rng),
            released: epoch(rng),
            is_revoked: rng.flip(),
            maker: epoch(rng),
            next_uid: 1 + below(rng, model.pods + 1),
            still: STILLS[rng.below(STILLS.len())],
            faults: below(rng, model.faults + 1),
            cached_permit: epoch(rng),
            ..State::default()
        };
        for pod in &mut state.pods[model.names()] {
            let uid = below(rng, model.pods + 1);
            if uid != 0 {
                let epoch = 1 + below(rng, model.epochs);
                *pod = Pod { uid, epoch, is_leaving: rng.flip() };
            }
        }
        for view in &mut state.views[..model.makers] {
            // A maker whose view shows all slots taken and one more takes none.
            *view = View { maker: epoch(rng), names: below(rng, 1 << model.wanted) };
        }
        for held in &mut state.held[..usize::from(model.pods)] {
            let (name, of) = (rng.below(names) as u8, 1 + below(rng, model.epochs));
            let (is_locked, may, runs) = (rng.flip(), permits(rng), permits(rng));
            *held = Held { name, of, is_locked, may, runs }.tidied();
        }
        state
    }
}

fn boolean(value: bool) -> &'static str {
    if value { "TRUE" } else { "FALSE" }
}

fn set(members: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}
