//! The mark: which process may have calls under way, and when absence in the cloud is believed.
//!
//! One object in the cloud (a role, a policy) under calls that land late, reads that show an older
//! state, crashes, and several processes. `specs/protocol/IdentitiesMark.tla` is the text it
//! follows. W is no clock here: `Quiesce` says what has passed when it is over.

mod promises;
mod steps;
#[cfg(test)]
mod tests;

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Reachable, Rng,
    Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "spec/identities-mark";
const MOST_INSTANCES: usize = 3;
const KEYS: [SizeKey; 3] = [
    SizeKey::new("instances", "processes that may act", 2, 1, MOST_INSTANCES as u64),
    SizeKey::new("calls", "calls that are sent", 4, 1, 5),
    SizeKey::new("faults", "crashes, marks taken over and answers lost, together", 3, 0, 3),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "calls land late, and the mark of a process says when absence is believed",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(IdentitiesMark::from_size(size)?)),
};

/// Where the declaration is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phase {
    /// Declared.
    #[default]
    Live,
    /// Marked for deletion, held by its finalizer.
    Deleting,
    /// No longer there.
    Gone,
}

const PHASES: [Phase; 3] = [Phase::Live, Phase::Deleting, Phase::Gone];

/// Whose mark is on the object: no one's, that of a process which is there, or of one which died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Mark {
    #[default]
    None,
    Of(u8),
    Dead,
}

/// How much the mark proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Proof {
    /// Taken over: calls of another process may be under way.
    Wait,
    /// Its process may send; calls of its own may be under way.
    Clear,
    /// Nothing that was sent can still land.
    #[default]
    Quiet,
}

const PROOFS: [Proof; 3] = [Proof::Wait, Proof::Clear, Proof::Quiet];

/// A call about the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Call {
    #[default]
    Create,
    Delete,
}

const CALLS: [Call; 2] = [Call::Create, Call::Delete];

/// What a process is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Pending {
    #[default]
    Idle,
    /// It has read everything, and sends next.
    Send(Call),
    /// It has sent, and waits for the answer.
    Wait(Call),
    /// The call has taken effect; the answer is on its way.
    Done(Call),
}

const PENDINGS: [Pending; 7] = [
    Pending::Idle,
    Pending::Send(Call::Create),
    Pending::Send(Call::Delete),
    Pending::Wait(Call::Create),
    Pending::Wait(Call::Delete),
    Pending::Done(Call::Create),
    Pending::Done(Call::Delete),
];

/// The place of calls whose sender died, behind those of the processes.
pub(crate) const DEAD: usize = MOST_INSTANCES;

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct State {
    pub(crate) phase: Phase,
    pub(crate) mark: Mark,
    pub(crate) proof: Proof,
    pub(crate) exists: bool,
    /// Older values of `exists` that reads may still show: no, yes.
    pub(crate) stale: [bool; 2],
    /// Calls that were sent and have not landed, of each kind, by sender.
    pub(crate) in_flight: [[u8; MOST_INSTANCES + 1]; 2],
    pub(crate) pending: [Pending; MOST_INSTANCES],
    /// The processes that wrote a mark at some time, a bit for each.
    pub(crate) once: u8,
    pub(crate) sent: u8,
    pub(crate) faults: u8,
}

impl State {
    /// Whether a read may show the object (`TRUE \in Reads`), or may not show it.
    fn may_read(&self, shown: bool) -> bool {
        self.exists == shown || self.stale[usize::from(shown)]
    }

    fn nothing_in_flight(&self) -> bool {
        self.in_flight.iter().flatten().all(|calls| *calls == 0)
    }

    /// A create may still take effect.
    fn create_is_coming(&self) -> bool {
        self.pending.contains(&Pending::Send(Call::Create))
            || self.in_flight[Call::Create as usize].iter().any(|calls| *calls > 0)
    }
}

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A call is sent under a mark only.
    pub mark_first: bool,
    /// A call is sent under the mark of this very process only.
    pub own_mark: bool,
    /// The mark is read live before the call.
    pub live_mark: bool,
    /// A mark that was taken over is waited out.
    pub wait_other: bool,
    /// Absence is believed only when nothing that was sent can still land.
    pub quiet_to_believe: bool,
    /// A mark is removed only then.
    pub quiet_to_unmark: bool,
    /// W passes.
    pub expire: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        mark_first: true,
        own_mark: true,
        live_mark: true,
        wait_other: true,
        quiet_to_believe: true,
        quiet_to_unmark: true,
        expire: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct IdentitiesMark {
    instances: usize,
    calls: u8,
    faults: u8,
    rules: Rules,
    /// Calls and faults are as many as there are, as for the rooms that ship (decision 27).
    is_unbounded: bool,
}

// Action ids: two of the world, each kind for each process, then each kind for each sender of each
// call. `Take` is the part of `Mark` that is fair: a mark that no process which is there holds, and
// something to do.
const DELETE: ActionId = 0;
const SETTLE: ActionId = 1;
const FIRST_OF_INSTANCE: ActionId = 2;
const OF_INSTANCE: [&str; 10] =
    ["Take", "Mark", "Unmark", "Look", "Send", "Answer", "GiveUp", "Gone", "Quiesce", "Crash"];
const TAKE: u16 = 0;
const MARK: u16 = 1;
const UNMARK: u16 = 2;
const LOOK: u16 = 3;
const SEND: u16 = 4;
const ANSWER: u16 = 5;
const GIVE_UP: u16 = 6;
const GONE: u16 = 7;
const QUIESCE: u16 = 8;
const CRASH: u16 = 9;
const OF_CALL: [&str; 2] = ["Land", "Drop"];
const LAND: u16 = 0;
const DROP: u16 = 1;

fn width(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

impl IdentitiesMark {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(IdentitiesMark::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([instances, calls, faults]: [u8; 3], rules: Rules) -> Self {
        let instances = usize::from(instances);
        IdentitiesMark { instances, calls, faults, rules, is_unbounded: false }
    }

    /// The protocol for so many processes, whatever they send and whatever fails: what the world of the rooms is
    /// compared with.
    pub(crate) fn shipped(instances: usize) -> Self {
        let bounded = IdentitiesMark::new([instances as u8, 1, 1], Rules::ALL);
        IdentitiesMark { is_unbounded: true, ..bounded }
    }

    /// What a call or a fault adds to those that there were.
    fn one(&self) -> u8 {
        u8::from(!self.is_unbounded)
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    fn of_instance(&self, kind: u16, instance: usize) -> ActionId {
        FIRST_OF_INSTANCE + kind * self.instances as u16 + instance as u16
    }

    /// The senders: the processes, and those who died.
    fn senders(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.instances).chain([DEAD])
    }

    fn of_call(&self, kind: u16, call: Call, sender: usize) -> ActionId {
        let sender = sender.min(self.instances) as u16;
        let each = self.instances as u16 + 1;
        self.of_instance(OF_INSTANCE.len() as u16, 0) + (kind * 2 + call as u16) * each + sender
    }

    /// Each process reads before it counts the call, so all of them may be one call late.
    fn most_sent(&self) -> u8 {
        self.calls + self.instances as u8 - 1
    }
}

impl Model for IdentitiesMark {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        format!("instances={},calls={},faults={}", self.instances, self.calls, self.faults)
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Crash" | "GiveUp" | "Drop" | "Land" if self.faults == 0 => {
                Some("this size has no faults")
            }
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        coder.of(&mut state.phase, &PHASES);
        let mut mark = match state.mark {
            Mark::None => 0,
            Mark::Dead => 1,
            Mark::Of(instance) => 2 + instance,
        };
        coder.u8(&mut mark, width(1 + self.instances as u8));
        state.mark = match mark {
            0 => Mark::None,
            1 => Mark::Dead,
            more => Mark::Of(more - 2),
        };
        coder.of(&mut state.proof, &PROOFS);
        coder.bool(&mut state.exists);
        state.stale.iter_mut().for_each(|value| coder.bool(value));
        for calls in &mut state.in_flight {
            for sender in self.senders() {
                coder.u8(&mut calls[sender], width(self.most_sent()));
            }
        }
        for pending in &mut state.pending[..self.instances] {
            coder.of(pending, &PENDINGS);
        }
        coder.u8(&mut state.once, self.instances as u32);
        coder.u8(&mut state.sent, width(self.most_sent()));
        coder.u8(&mut state.faults, width(self.faults));
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions =
            vec![Action::new("Delete", "user").to("declaration"), Action::new("Settle", "cloud")];
        for (kind, name) in (0..).zip(OF_INSTANCE) {
            actions.extend((1..=self.instances).map(|i| {
                let (name, process) = (format!("{name}(i{i})"), format!("process i{i}"));
                match kind {
                    TAKE | MARK | UNMARK | GONE => Action::new(name, process).to("declaration"),
                    LOOK | SEND => Action::new(name, process).to("cloud"),
                    ANSWER => Action::new(name, "cloud").to(process),
                    CRASH => Action::new(name, "world").to(process),
                    _ => Action::new(name, process),
                }
            }));
        }
        for name in OF_CALL {
            for call in ["create", "delete"] {
                let senders = (1..=self.instances).map(|i| format!("i{i}"));
                actions.extend(senders.chain(["dead".to_owned()]).map(|sender| {
                    Action::new(format!("{name}({call}, {sender})"), "network").to("cloud")
                }));
            }
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.world_steps(state, steps);
        for instance in 0..self.instances {
            self.mark_steps(state, instance, steps);
            self.call_steps(state, instance, steps);
            self.end_steps(state, instance, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let boolean = |value: bool| if value { "TRUE" } else { "FALSE" }.to_owned();
        let set = |elements: Vec<String>| format!("{{{}}}", elements.join(", "));
        let call = |call: Call| format!("\"{call:?}\"").to_lowercase();
        let calls = |call: Call| {
            let of = &state.in_flight[call as usize];
            let one = |sender: usize| match sender {
                DEAD => format!("dead :> {}", of[DEAD]),
                i => format!("i{} :> {}", i + 1, of[i]),
            };
            format!("({})", self.senders().map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let pending = (0..self.instances).map(|i| {
            let (step, about, done) = match state.pending[i] {
                Pending::Idle => ("idle", "\"none\"".to_owned(), false),
                Pending::Send(kind) => ("send", call(kind), false),
                Pending::Wait(kind) => ("wait", call(kind), false),
                Pending::Done(kind) => ("wait", call(kind), true),
            };
            let done = boolean(done);
            format!("i{} :> [a |-> \"{step}\", k |-> {about}, done |-> {done}]", i + 1)
        });
        let marked = (0..self.instances).filter(|i| state.once >> i & 1 == 1);
        let stale = [false, true].into_iter().filter(|value| state.stale[usize::from(*value)]);
        vec![
            ("cr", format!("\"{:?}\"", state.phase).to_lowercase()),
            ("mark", show_mark(state.mark)),
            ("q", format!("\"{:?}\"", state.proof).to_lowercase()),
            ("ex", boolean(state.exists)),
            ("st", set(stale.map(boolean).collect())),
            (
                "fl",
                format!("[create |-> {}, delete |-> {}]", calls(Call::Create), calls(Call::Delete)),
            ),
            ("pend", format!("({})", pending.collect::<Vec<_>>().join(" @@ "))),
            ("once", set(marked.map(|i| format!("i{}", i + 1)).collect())),
            ("sent", state.sent.to_string()),
            ("fault", state.faults.to_string()),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        self.all_invariants()
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        if self.faults == 0 {
            return Vec::new();
        }
        vec![Reachable::new(
            "LateCall",
            "a call of a process that died lands under the mark of another",
            |s: &State| {
                let is_late = s.in_flight.iter().any(|calls| calls[DEAD] > 0);
                is_late && s.proof == Proof::Wait && matches!(s.mark, Mark::Of(_))
            },
        )]
    }

    fn properties(&self) -> Vec<Property<State>> {
        self.all_properties()
    }

    fn fairness(&self) -> Vec<Fairness> {
        let takes = (0..self.instances).map(|instance| self.of_instance(TAKE, instance));
        let mut fairness = vec![Fairness::weak("Settle", [SETTLE]), Fairness::weak("Take", takes)];
        let all = self.actions();
        for call in CALLS {
            for sender in self.senders() {
                let ends = [LAND, DROP].map(|kind| self.of_call(kind, call, sender));
                let names = ends.map(|action| &*all[usize::from(action)].name);
                fairness.push(Fairness::weak(names.join(" \\/ "), ends));
            }
        }
        for instance in 0..self.instances {
            for kind in [LOOK, SEND, ANSWER, QUIESCE, GONE] {
                let action = self.of_instance(kind, instance);
                fairness.push(Fairness::weak(&*all[usize::from(action)].name, [action]));
            }
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        state.phase == Phase::Gone || state.sent >= self.calls
    }

    fn symmetries(&self) -> usize {
        arrangements(self.instances) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [_; MOST_INSTANCES] = arrangement(self.instances, permutation + 1);
        let mut image = State { once: 0, ..state.clone() };
        if let Mark::Of(instance) = state.mark {
            image.mark = Mark::Of(places[usize::from(instance)] as u8);
        }
        for (i, place) in places.into_iter().enumerate().take(self.instances) {
            image.pending[place] = state.pending[i];
            image.once |= (state.once >> i & 1) << place;
            for call in CALLS {
                image.in_flight[call as usize][place] = state.in_flight[call as usize][i];
            }
        }
        image
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let marks = [Mark::None, Mark::Dead, Mark::Of(rng.below(self.instances) as u8)];
        let mut state = State {
            phase: PHASES[rng.below(PHASES.len())],
            mark: marks[rng.below(marks.len())],
            proof: PROOFS[rng.below(PROOFS.len())],
            exists: rng.flip(),
            stale: [rng.flip(), rng.flip()],
            once: rng.below(1 << self.instances) as u8,
            // Below the limit, so that a step from here fits too.
            sent: rng.below(usize::from(self.calls)) as u8,
            faults: rng.below(usize::from(self.faults) + 1) as u8,
            ..State::default()
        };
        for pending in &mut state.pending[..self.instances] {
            *pending = PENDINGS[rng.below(PENDINGS.len())];
        }
        // Each process waits for a call of its own, and at most one other call is under way.
        for i in 0..self.instances {
            if let Pending::Wait(call) = state.pending[i] {
                state.in_flight[call as usize][i] = 1;
            }
        }
        if rng.flip() {
            let of = [rng.below(self.instances), DEAD][rng.below(2)];
            state.in_flight[rng.below(2)][of] += 1;
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.all_mutants()
    }
}

fn show_mark(mark: Mark) -> String {
    match mark {
        Mark::None => "none".to_owned(),
        Mark::Dead => "dead".to_owned(),
        Mark::Of(instance) => format!("i{}", instance + 1),
    }
}
