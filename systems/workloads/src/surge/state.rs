//! The variables of a Deployment's sizes, how they are packed and how they are shown.

use super::Surge;
use interlock_checker::{Coder, Rng};

pub(super) const REPLICA_SETS: usize = 2;
/// Two desired, one of surge, and one more without the rule of slots.
pub(super) const MOST_NAMES: usize = 4;
const MOST_PENDING: usize = 3;

/// A pod; none where `of` is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pod {
    /// Its ReplicaSet, 1 or 2: `rs`.
    pub(super) of: u8,
    pub(super) is_ready: bool,
    /// It is being deleted: `go`.
    pub(super) is_leaving: bool,
    pub(super) id: u8,
}

impl Pod {
    pub(super) fn exists(&self) -> bool {
        self.of != 0
    }

    /// It counts for a ReplicaSet: one of it that is not being deleted.
    pub(super) fn counts_for(&self, of: u8) -> bool {
        self.of == of && !self.is_leaving
    }

    pub(super) fn is_ready_of(&self, of: u8) -> bool {
        self.counts_for(of) && self.is_ready
    }

    pub(super) fn is_ready_to_stay(&self) -> bool {
        self.exists() && self.is_ready_of(self.of)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Kind {
    #[default]
    Plan,
    Spec,
    Create,
    Name,
    Delete,
    Clear,
}

const KINDS: [Kind; 6] =
    [Kind::Plan, Kind::Spec, Kind::Create, Kind::Name, Kind::Delete, Kind::Clear];

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Plan => "plan",
            Kind::Spec => "spec",
            Kind::Create => "create",
            Kind::Name => "name",
            Kind::Delete => "delete",
            Kind::Clear => "clear",
        }
    }
}

/// The object whose change makes a pending write fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    Deployment,
    ReplicaSet(u8),
    /// The name or the uid itself.
    Itself,
}

/// A write that was decided and not yet sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Write {
    pub(super) kind: Kind,
    /// The ReplicaSet that it is about, 1 or 2; 0 for a plan.
    pub(super) of: u8,
    /// A size, the place of a name, or the id of a pod.
    pub(super) number: u8,
    /// The sizes of a plan.
    pub(super) sizes: [u8; REPLICA_SETS],
    /// Its guard has not changed since: `ok`.
    pub(super) is_fresh: bool,
}

impl Write {
    pub(super) fn guard(&self) -> Guard {
        match self.kind {
            Kind::Plan => Guard::Deployment,
            Kind::Spec | Kind::Name | Kind::Clear => Guard::ReplicaSet(self.of),
            Kind::Create | Kind::Delete => Guard::Itself,
        }
    }
}

/// A set of pending writes, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pending([Option<Write>; MOST_PENDING]);

impl Pending {
    pub(super) fn all(&self) -> impl Iterator<Item = Write> + '_ {
        self.0.iter().flatten().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The set of these: each once, in order.
    pub(super) fn of(writes: impl Iterator<Item = Write>) -> Self {
        let mut pending = Pending::default();
        let mut count = 0;
        for write in writes {
            if !pending.all().any(|known| known == write) {
                pending.0[count] = Some(write);
                count += 1;
            }
        }
        pending.0[..count].sort_unstable();
        pending
    }

    /// With one more; none if it is known, or there is no room.
    pub(super) fn with(&self, write: Write, room: usize) -> Option<Self> {
        let is_known = self.all().any(|known| known == write);
        let has_room = self.all().count() < room;
        (has_room && !is_known).then(|| Pending::of(self.all().chain([write])))
    }

    pub(super) fn without(&self, write: Write) -> Self {
        Pending::of(self.all().filter(|known| *known != write))
    }

    /// An object has changed, so what it guards fails.
    pub(super) fn outdated(&self, guard: Guard) -> Self {
        Pending::of(
            self.all()
                .map(|write| Write { is_fresh: write.is_fresh && write.guard() != guard, ..write }),
        )
    }
}

/// The variables of the specification. The first template is 1, the second 2, and so are their ReplicaSets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) template: u8,
    pub(super) undos: u8,
    pub(super) plan: [u8; REPLICA_SETS],
    pub(super) spec: [u8; REPLICA_SETS],
    /// The id of the pod that each ReplicaSet is about to delete; 0 is none.
    pub(super) leaving: [u8; REPLICA_SETS],
    pub(super) pods: [Pod; MOST_NAMES],
    pub(super) next_id: u8,
    pub(super) pending: Pending,
}

impl State {
    pub(super) fn first(model: &Surge) -> State {
        let sizes = [model.desired, 0];
        let mut state = State {
            template: 2,
            plan: sizes,
            spec: sizes,
            next_id: model.desired + 1,
            ..State::default()
        };
        for (pod, id) in state.pods[..usize::from(model.desired)].iter_mut().zip(1..) {
            *pod = Pod { of: 1, is_ready: true, is_leaving: false, id };
        }
        state
    }

    /// How many pods count for a ReplicaSet, given by its place.
    pub(super) fn pods_of(&self, i: usize) -> u8 {
        self.pods.iter().filter(|pod| pod.counts_for(i as u8 + 1)).count() as u8
    }

    pub(super) fn ready_of(&self, i: usize) -> u8 {
        self.pods.iter().filter(|pod| pod.is_ready_of(i as u8 + 1)).count() as u8
    }

    /// No pod counts for the other ReplicaSet.
    pub(super) fn replaced_by(&self, new: u8) -> bool {
        self.pods_of(usize::from(2 - new)) == 0
    }

    pub(super) fn code(&mut self, model: &Surge, coder: &mut Coder) {
        coder.u8(&mut self.template, 2);
        coder.u8(&mut self.undos, 2);
        for size in self.plan.iter_mut().chain(&mut self.spec) {
            coder.u8(size, 2);
        }
        for id in &mut self.leaving {
            coder.u8(id, 3);
        }
        for pod in &mut self.pods[model.names()] {
            coder.u8(&mut pod.of, 2);
            coder.bool(&mut pod.is_ready);
            coder.bool(&mut pod.is_leaving);
            coder.u8(&mut pod.id, 3);
        }
        coder.u8(&mut self.next_id, 3);
        for slot in &mut self.pending.0[..model.pending] {
            let mut is_there = slot.is_some();
            coder.bool(&mut is_there);
            let mut write = slot.unwrap_or_default();
            coder.of(&mut write.kind, &KINDS);
            coder.u8(&mut write.of, 2);
            coder.u8(&mut write.number, 3);
            for size in &mut write.sizes {
                coder.u8(size, 2);
            }
            coder.bool(&mut write.is_fresh);
            *slot = is_there.then_some(write);
        }
    }

    pub(super) fn describe(&self, model: &Surge) -> Vec<(&'static str, String)> {
        let sizes = |sizes: &[u8; REPLICA_SETS]| format!("<<{}, {}>>", sizes[0], sizes[1]);
        let leaving = self.leaving.map(|id| match id {
            0 => "{}".to_owned(),
            _ => format!("{{{id}}}"),
        });
        let pods: Vec<_> = self.pods[model.names()].iter().map(show_pod).collect();
        let pending: Vec<_> = self.pending.all().map(show_write).collect();
        vec![
            ("tmpl", self.template.to_string()),
            ("undos", self.undos.to_string()),
            ("plan", sizes(&self.plan)),
            ("spec", sizes(&self.spec)),
            ("leaving", format!("<<{}>>", leaving.join(", "))),
            ("pods", format!("<<{}>>", pods.join(", "))),
            ("nid", self.next_id.to_string()),
            ("todo", format!("{{{}}}", pending.join(", "))),
        ]
    }

    pub(super) fn arbitrary(model: &Surge, rng: &mut Rng) -> State {
        let below = |rng: &mut Rng, bound: u8| rng.below(usize::from(bound)) as u8;
        let size = |rng: &mut Rng| below(rng, model.most() + 1);
        let id = |rng: &mut Rng| below(rng, model.pods + 1);
        let mut state = State {
            template: 1 + below(rng, 2),
            undos: below(rng, model.undos + 1),
            plan: [size(rng), size(rng)],
            spec: [size(rng), size(rng)],
            leaving: [id(rng), id(rng)],
            next_id: 1 + below(rng, model.pods + 1),
            ..State::default()
        };
        for pod in &mut state.pods[model.names()] {
            if rng.flip() {
                let (of, id) = (1 + below(rng, 2), 1 + below(rng, model.pods));
                *pod = Pod { of, is_ready: rng.flip(), is_leaving: rng.flip(), id };
            }
        }
        let count = rng.below(model.pending + 1);
        let writes: Vec<_> = (0..count).map(|_| any_write(model, rng)).collect();
        state.pending = Pending::of(writes.into_iter());
        state
    }
}

fn any_write(model: &Surge, rng: &mut Rng) -> Write {
    let kind = KINDS[rng.below(KINDS.len())];
    let of = 1 + rng.below(REPLICA_SETS) as u8;
    let size = |rng: &mut Rng| rng.below(usize::from(model.most()) + 1) as u8;
    let (sizes, is_fresh) = ([size(rng), size(rng)], rng.flip());
    let number = match kind {
        Kind::Plan => return Write { kind, of: 0, number: 0, sizes, is_fresh },
        Kind::Spec => size(rng),
        Kind::Create => rng.below(model.names().len()) as u8,
        Kind::Name | Kind::Delete => 1 + rng.below(usize::from(model.pods)) as u8,
        Kind::Clear => 0,
    };
    Write { kind, of, number, sizes: [0; REPLICA_SETS], is_fresh }
}

fn boolean(value: bool) -> &'static str {
    if value { "TRUE" } else { "FALSE" }
}

fn show_pod(pod: &Pod) -> String {
    let Pod { of, is_ready, is_leaving, id } = *pod;
    let (ready, leaving) = (boolean(is_ready), boolean(is_leaving));
    format!("[rs |-> {of}, ready |-> {ready}, go |-> {leaving}, id |-> {id}]")
}

fn show_write(write: Write) -> String {
    let guard = match write.guard() {
        Guard::Deployment => 0,
        Guard::ReplicaSet(i) => i,
        Guard::Itself => 9,
    };
    let number = match write.kind {
        Kind::Plan => 10 * write.sizes[0] + write.sizes[1],
        Kind::Create => write.number + 1,
        Kind::Spec | Kind::Name | Kind::Delete | Kind::Clear => write.number,
    };
    let (kind, of, fresh) = (write.kind.word(), write.of, boolean(write.is_fresh));
    format!("[k |-> \"{kind}\", g |-> {guard}, i |-> {of}, n |-> {number}, ok |-> {fresh}]")
}
