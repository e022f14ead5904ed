//! The identities protocol: one idempotent call a step, the key put back instead of waiting, drift
//! found by a resync, and an ordered deletion behind a finalizer.
//!
//! Several identities, a queue and its workers. `specs/protocol/Identities.tla` is the text it
//! follows.

mod steps;
#[cfg(test)]
mod tests;

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "spec/identities";
const MOST_RESOURCES: usize = 3;
const MOST_WORKERS: usize = 3;
const KEYS: [SizeKey; 5] = [
    SizeKey::new("resources", "identities that are declared", 1, 1, MOST_RESOURCES as u64),
    SizeKey::new("workers", "workers that share the queue", 1, 1, MOST_WORKERS as u64),
    SizeKey::new("drift", "changes that somebody makes by hand", 2, 0, 3),
    SizeKey::new("faults", "calls throttled and processes crashed, together", 2, 0, 3),
    SizeKey::new("generations", "versions of a declaration", 2, 1, 3),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "workers make policy, role, attachment and account as declared, and remove them again",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Identities::from_size(size)?)),
};

/// Where the declaration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

/// A role or a service account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Thing {
    #[default]
    Absent,
    AsDeclared,
    Drifted,
}

const THINGS: [Thing; 3] = [Thing::Absent, Thing::AsDeclared, Thing::Drifted];

/// The policy in the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Policy {
    #[default]
    Absent,
    Drifted,
    /// As one generation declared it.
    Of(u8),
}

/// One identity: its declaration, what exists of it, and whether its key waits in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Identity {
    phase: Phase,
    generation: u8,
    has_finalizer: bool,
    /// The generation it was last seen to match.
    observed: u8,
    policy: Policy,
    role: Thing,
    is_attached: bool,
    account: Thing,
    is_dirty: bool,
}

impl Identity {
    /// In how many ways it differs from what is declared.
    fn differences(&self) -> usize {
        [
            self.policy != Policy::Of(self.generation),
            self.role != Thing::AsDeclared,
            !self.is_attached,
            self.account != Thing::AsDeclared,
        ]
        .into_iter()
        .filter(|differs| *differs)
        .count()
    }

    /// Nothing differs, and the status says so.
    fn is_as_declared(&self) -> bool {
        self.differences() == 0 && self.observed == self.generation
    }
}

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    identities: [Identity; MOST_RESOURCES],
    /// The key that each worker holds.
    busy: [Option<u8>; MOST_WORKERS],
    drift: u8,
    faults: u8,
}

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The finalizer goes last, when nothing is left in the cloud.
    pub finalizer_last: bool,
    /// The attachment goes before the things it joins.
    pub detach_first: bool,
    /// A key that a worker holds is given to no other.
    pub one_worker_per_key: bool,
    /// What differs is found without an event.
    pub resync: bool,
    /// A step that changed something puts its key back.
    pub requeue: bool,
    /// The status is written only when it changes.
    pub status_once: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        finalizer_last: true,
        detach_first: true,
        one_worker_per_key: true,
        resync: true,
        requeue: true,
        status_once: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct Identities {
    resources: usize,
    workers: usize,
    drift: u8,
    faults: u8,
    generations: u8,
    rules: Rules,
}

// Action ids: one crash of all, two kinds for each worker, four for each identity, then each
// worker taking each key.
const CRASH_ALL: ActionId = 0;
const OF_WORKER: [&str; 2] = ["Work", "Throttle"];
const WORK: u16 = 0;
const THROTTLE: u16 = 1;
const OF_RESOURCE: [&str; 4] = ["Update", "Delete", "Drift", "Resync"];
const UPDATE: u16 = 0;
const DELETE: u16 = 1;
const DRIFT: u16 = 2;
const RESYNC: u16 = 3;

fn width(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

fn letter(resource: usize) -> char {
    char::from(b'a' + resource as u8)
}

impl Identities {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(Identities::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([resources, workers, drift, faults, generations]: [u8; 5], rules: Rules) -> Self {
        let (resources, workers) = (usize::from(resources), usize::from(workers));
        Identities { resources, workers, drift, faults, generations, rules }
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    fn of_worker(&self, kind: u16, worker: usize) -> ActionId {
        1 + kind * self.workers as u16 + worker as u16
    }

    fn of_resource(&self, kind: u16, resource: usize) -> ActionId {
        self.of_worker(OF_WORKER.len() as u16, 0) + kind * self.resources as u16 + resource as u16
    }

    fn get(&self, worker: usize, resource: usize) -> ActionId {
        let place = worker * self.resources + resource;
        self.of_resource(OF_RESOURCE.len() as u16, 0) + place as u16
    }
}

impl Model for Identities {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        format!(
            "resources={},workers={},drift={},faults={},generations={}",
            self.resources, self.workers, self.drift, self.faults, self.generations
        )
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name.split('(').next() {
            Some("Drift") if self.drift == 0 => Some("this size has no drift"),
            Some("Throttle" | "CrashAll") if self.faults == 0 => Some("this size has no faults"),
            Some("Update") if self.generations == 1 => Some("this size has one generation"),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        for identity in &mut state.identities[..self.resources] {
            coder.of(&mut identity.phase, &PHASES);
            coder.u8(&mut identity.generation, width(self.generations));
            coder.bool(&mut identity.has_finalizer);
            coder.u8(&mut identity.observed, width(self.generations));
            let mut policy = match identity.policy {
                Policy::Absent => 0,
                Policy::Drifted => 1,
                Policy::Of(generation) => 1 + generation,
            };
            coder.u8(&mut policy, width(1 + self.generations));
            identity.policy = match policy {
                0 => Policy::Absent,
                1 => Policy::Drifted,
                more => Policy::Of(more - 1),
            };
            coder.of(&mut identity.role, &THINGS);
            coder.bool(&mut identity.is_attached);
            coder.of(&mut identity.account, &THINGS);
            coder.bool(&mut identity.is_dirty);
        }
        for key in &mut state.busy[..self.workers] {
            let mut number = key.map_or(0, |key| key + 1);
            coder.u8(&mut number, width(self.resources as u8));
            *key = number.checked_sub(1);
        }
        coder.u8(&mut state.drift, width(self.drift));
        coder.u8(&mut state.faults, width(self.faults));
    }

    /// Left over from a crash or an older life: a policy, a role, and if there are both, perhaps an
    /// attachment.
    fn initial(&self) -> Vec<State> {
        const LEFT_OVER: [(Policy, Thing, bool); 5] = [
            (Policy::Absent, Thing::Absent, false),
            (Policy::Absent, Thing::Drifted, false),
            (Policy::Drifted, Thing::Absent, false),
            (Policy::Drifted, Thing::Drifted, false),
            (Policy::Drifted, Thing::Drifted, true),
        ];
        let mut states = vec![State::default()];
        for resource in 0..self.resources {
            let with = |state: &State, (policy, role, is_attached)| {
                let mut state = state.clone();
                let fresh = Identity { generation: 1, is_dirty: true, ..Identity::default() };
                state.identities[resource] = Identity { policy, role, is_attached, ..fresh };
                state
            };
            let each = states.iter();
            states = each.flat_map(|s| LEFT_OVER.map(|left_over| with(s, left_over))).collect();
        }
        states
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::new("CrashAll", "world").to("queue")];
        for (kind, name) in (0..).zip(OF_WORKER) {
            actions.extend((1..=self.workers).map(|w| {
                let (name, worker) = (format!("{name}(w{w})"), format!("worker w{w}"));
                match kind {
                    WORK => Action::new(name, worker).to("cloud"),
                    _ => Action::new(name, "cloud").to(worker),
                }
            }));
        }
        for (kind, name) in (0..).zip(OF_RESOURCE) {
            actions.extend((0..self.resources).map(letter).map(|c| {
                let name = format!("{name}({c})");
                match kind {
                    DRIFT => Action::new(name, "world").to("cloud"),
                    RESYNC => Action::new(name, "queue"),
                    _ => Action::new(name, "user").to("queue"),
                }
            }));
        }
        for w in 1..=self.workers {
            actions.extend((0..self.resources).map(letter).map(|c| {
                Action::new(format!("Get(w{w}, {c})"), format!("worker w{w}")).to("queue")
            }));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        for worker in 0..self.workers {
            self.worker_steps(state, worker, steps);
        }
        for resource in 0..self.resources {
            self.resource_steps(state, resource, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let each = |show: &dyn Fn(&Identity) -> String| {
            let one = |c: usize| format!("{} |-> {}", letter(c), show(&state.identities[c]));
            format!("[{}]", (0..self.resources).map(one).collect::<Vec<_>>().join(", "))
        };
        let dirty = (0..self.resources).filter(|c| state.identities[*c].is_dirty);
        let dirty = dirty.map(|c| format!("\"{}\"", letter(c))).collect::<Vec<_>>();
        let key = |key: Option<u8>| key.map_or("none".into(), |c| letter(c.into()).to_string());
        let busy = state.busy[..self.workers].iter().enumerate();
        let busy = busy.map(|(w, held)| format!("w{} |-> \"{}\"", w + 1, key(*held)));
        vec![
            ("ph", each(&|identity| format!("\"{:?}\"", identity.phase).to_lowercase())),
            ("gen", each(&|identity| identity.generation.to_string())),
            ("fin", each(&|identity| boolean(identity.has_finalizer))),
            ("seen", each(&|identity| identity.observed.to_string())),
            ("pol", each(&|identity| show_policy(identity.policy))),
            ("role", each(&|identity| show_thing(identity.role))),
            ("att", each(&|identity| boolean(identity.is_attached))),
            ("sa", each(&|identity| show_thing(identity.account))),
            ("dirty", format!("{{{}}}", dirty.join(", "))),
            ("busy", format!("[{}]", busy.collect::<Vec<_>>().join(", "))),
            ("drift", state.drift.to_string()),
            ("fault", state.faults.to_string()),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let (workers, resources) = (self.workers, self.resources);
        let no_concurrent =
            Invariant::new("NoConcurrent", "no two workers hold one key", move |s: &State| {
                let mut held = s.busy[..workers].iter().flatten().collect::<Vec<_>>();
                held.sort();
                held.windows(2).all(|pair| pair[0] != pair[1])
            });
        vec![
            if workers == 1 {
                no_concurrent.unbreakable("there is one worker")
            } else {
                no_concurrent
            },
            Invariant::new(
                "GoneIsClean",
                "when a declaration is gone, so is everything made for it",
                move |s: &State| {
                    s.identities[..resources].iter().all(|identity| {
                        identity.phase != Phase::Gone
                            || (identity.policy == Policy::Absent
                                && identity.role == Thing::Absent
                                && !identity.is_attached
                                && identity.account == Thing::Absent)
                    })
                },
            ),
            Invariant::new(
                "AwsOrder",
                "an attachment joins a policy and a role that exist",
                move |s: &State| {
                    s.identities[..resources].iter().all(|identity| {
                        !identity.is_attached
                            || (identity.policy != Policy::Absent && identity.role != Thing::Absent)
                    })
                },
            ),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let termination = (0..self.resources).map(|c| {
            let this = self.clone();
            // Edits, drift and faults are counted, so what stays declared is left alone in the end.
            Formula::stable_implies_stable(
                move |s: &State| s.identities[c].phase == Phase::Live,
                move |s: &State| s.identities[c].is_as_declared() && !this.is_about_to_write(s, c),
            )
        });
        vec![
            Property::for_all(
                "Converges",
                "an identity that stays declared becomes as declared, is seen to be, and stays so",
                (0..self.resources).map(|c| {
                    Formula::stable_implies_stable(
                        move |s: &State| s.identities[c].phase == Phase::Live,
                        move |s: &State| s.identities[c].is_as_declared(),
                    )
                }),
            ),
            Property::for_all(
                "Deletes",
                "a deleted identity goes",
                (0..self.resources).map(|c| {
                    Formula::leads_to(
                        move |s: &State| s.identities[c].phase == Phase::Deleting,
                        move |s: &State| s.identities[c].phase == Phase::Gone,
                    )
                }),
            ),
            Property::for_all(
                "TerminationIsTheLastAction",
                "an identity that is left alone becomes as declared, and then nothing is written",
                termination,
            ),
        ]
    }

    /// The queue is first in, first out: a key that waits is taken in the end, by whichever worker.
    fn fairness(&self) -> Vec<Fairness> {
        let mut fairness = Vec::new();
        for c in 0..self.resources {
            let taken = (0..self.workers).map(|worker| self.get(worker, c));
            fairness.push(Fairness::strong(format!("GetC({})", letter(c)), taken));
            let resync = self.of_resource(RESYNC, c);
            fairness.push(Fairness::weak(format!("Resync({})", letter(c)), [resync]));
        }
        for w in 0..self.workers {
            let work = self.of_worker(WORK, w);
            fairness.push(Fairness::weak(format!("Work(w{})", w + 1), [work]));
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        state.identities[..self.resources].iter().all(|identity| identity.phase == Phase::Gone)
    }

    fn symmetries(&self) -> usize {
        arrangements(self.resources) * arrangements(self.workers) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let number = permutation + 1;
        let of_resources = arrangements(self.resources);
        let resources: [_; MOST_RESOURCES] = arrangement(self.resources, number % of_resources);
        let workers: [_; MOST_WORKERS] = arrangement(self.workers, number / of_resources);
        let mut image = state.clone();
        for c in 0..self.resources {
            image.identities[resources[c]] = state.identities[c];
        }
        for w in 0..self.workers {
            image.busy[workers[w]] = state.busy[w].map(|key| resources[usize::from(key)] as u8);
        }
        image
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let up_to = |rng: &mut Rng, most: u8| rng.below(usize::from(most) + 1) as u8;
        let mut state = State {
            drift: up_to(rng, self.drift),
            faults: up_to(rng, self.faults),
            ..State::default()
        };
        for identity in &mut state.identities[..self.resources] {
            let generation = 1 + up_to(rng, self.generations - 1);
            let policies = [Policy::Absent, Policy::Drifted, Policy::Of(generation)];
            *identity = Identity {
                phase: PHASES[rng.below(PHASES.len())],
                generation,
                has_finalizer: rng.flip(),
                observed: up_to(rng, generation),
                policy: policies[rng.below(policies.len())],
                role: THINGS[rng.below(THINGS.len())],
                is_attached: rng.flip(),
                account: THINGS[rng.below(THINGS.len())],
                is_dirty: rng.flip(),
            };
        }
        for key in &mut state.busy[..self.workers] {
            *key = up_to(rng, self.resources as u8).checked_sub(1);
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let drifting = Identities { drift: self.drift.max(1), ..self.clone() };
        let shared = Identities { workers: self.workers.max(2), ..self.clone() };
        vec![
            Mutant::new(
                "early-finalizer",
                "the finalizer is removed with the account, before role and policy are gone",
                &["GoneIsClean"],
                self.without(|rules| rules.finalizer_last = false),
            ),
            Mutant::new(
                "policy-before-detach",
                "the policy is deleted while it is attached",
                &["AwsOrder"],
                self.without(|rules| rules.detach_first = false),
            ),
            Mutant::new(
                "shared-key",
                "a key that one worker holds may be taken by another",
                &["NoConcurrent"],
                shared.without(|rules| rules.one_worker_per_key = false),
            ),
            Mutant::new(
                "no-resync",
                "what changed without an event is never looked at again",
                &["Converges"],
                drifting.without(|rules| rules.resync = false),
            ),
            Mutant::new(
                "no-requeue",
                "a step that changed something does not put its key back",
                &["Converges", "Deletes"],
                self.without(|rules| rules.requeue = false),
            ),
            Mutant::new(
                "status-each-time",
                "the status is written by each step, and each write puts the key back",
                &["TerminationIsTheLastAction"],
                self.without(|rules| rules.status_once = false),
            ),
        ]
    }
}

fn boolean(value: bool) -> String {
    if value { "TRUE" } else { "FALSE" }.to_owned()
}

fn show_thing(thing: Thing) -> String {
    match thing {
        Thing::Absent => "\"none\"",
        Thing::AsDeclared => "\"ok\"",
        Thing::Drifted => "\"drift\"",
    }
    .to_owned()
}

fn show_policy(policy: Policy) -> String {
    match policy {
        Policy::Absent => "0".to_owned(),
        Policy::Drifted => "-1".to_owned(),
        Policy::Of(generation) => generation.to_string(),
    }
}
