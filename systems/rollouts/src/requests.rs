//! The record of one cluster: one request at a time starts, the newest first, and every one ends.
//!
//! What happens on the cluster is left open: the report says applied, healthy or failed, or never comes. Every write is
//! guarded by the version of the record, so several conductors with old caches are the same as one.
//! `specs/protocol/RolloutsRequests.tla` is the text it follows.

mod promises;
pub(crate) mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use state::State;

use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Reachable, Rng, Size,
    SizeError, SizeKey, StepRule, Steps,
};
use state::MOST_REQUESTS;
use steps::{ALONE, Alone, OF_REQUEST, OfRequest};

const NAME: &str = "spec/rollouts-requests";
const KEYS: [SizeKey; 4] = [
    SizeKey::new("requests", "requests, the third with the content of the second", 2, 1, 3),
    SizeKey::new("tries", "rollbacks tried before giving up", 2, 1, 3),
    SizeKey::new("cancels", "requests that people cancel", 1, 0, 3),
    SizeKey::new("calm", "1: no deadlines, for the agent stays and drains end", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "one request at a time starts on a cluster, the newest first, and every one ends",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(RolloutsRequests::from_size(size)?)),
};

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A request starts in one write, without a lock that is taken before.
    pub one_write: bool,
    /// Such a lock is given back when the request was superseded meanwhile.
    pub frees_outdated: bool,
    /// The request is read again under such a lock.
    pub checks_outdated: bool,
    /// A request is numbered once.
    pub by_uid: bool,
    /// The older request is superseded in the write that queues the newer one.
    pub supersede_at_once: bool,
    /// A request that is rejected supersedes nothing.
    pub only_valid_supersedes: bool,
    /// Nothing starts while a request is active.
    pub one_at_a_time: bool,
    /// A version is the last good one when it was verified, not when it was applied.
    pub good_once_verified: bool,
    /// Content that is known to be bad is not queued.
    pub bad_kept: bool,
    /// Nor started.
    pub bad_at_start: bool,
    /// What does not come is not awaited for ever.
    pub deadlines: bool,
    /// A cancel or an absent cluster proves nothing against the content.
    pub causes_apart: bool,
    /// A drain is taken off.
    pub drain_ends: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        one_write: true,
        frees_outdated: true,
        checks_outdated: true,
        by_uid: true,
        supersede_at_once: true,
        only_valid_supersedes: true,
        one_at_a_time: true,
        good_once_verified: true,
        bad_kept: true,
        bad_at_start: true,
        deadlines: true,
        causes_apart: true,
        drain_ends: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct RolloutsRequests {
    requests: usize,
    tries: u8,
    cancels: u8,
    is_calm: bool,
    rules: Rules,
    /// What the rooms that ship do beside the text, and do not: [`RolloutsRequests::shipped`].
    is_shipped: bool,
}

impl RolloutsRequests {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(RolloutsRequests::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([requests, tries, cancels, calm]: [u8; 4], rules: Rules) -> Self {
        let (requests, is_calm) = (usize::from(requests), calm == 1);
        RolloutsRequests { requests, tries, cancels, is_calm, rules, is_shipped: false }
    }

    /// The protocol as the rooms that ship have it, where a rollback is tried once: what their world is compared with.
    /// Beside what the text says, a request ends well at once if the cluster is at its content already. Nobody asks for
    /// a drain. Whoever counts cancels counts them elsewhere.
    pub(crate) fn shipped(requests: usize, cancels: bool, is_calm: bool) -> Self {
        let size = [requests as u8, 1, u8::from(cancels), u8::from(is_calm)];
        RolloutsRequests { is_shipped: true, ..RolloutsRequests::new(size, Rules::ALL) }
    }

    /// Whether a request asks for a drain.
    fn drains(&self, r: usize) -> bool {
        !self.is_shipped && state::drains(r)
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    fn has_deadlines(&self) -> bool {
        self.rules.deadlines && !self.is_calm
    }
}

impl Model for RolloutsRequests {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        let RolloutsRequests { requests, tries, cancels, .. } = self;
        format!(
            "requests={requests},tries={tries},cancels={cancels},calm={}",
            u8::from(self.is_calm)
        )
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name.split('(').next()? {
            "GoAway" | "StartDeadline" | "RbBad" if self.is_calm => {
                Some("in a calm size the agent stays, and there are no deadlines")
            }
            "AskDrain" | "Drained" | "Undrain" if self.requests == 1 => {
                Some("the second request asks for a drain")
            }
            "Cancel" if self.cancels == 0 => Some("this size has no cancels"),
            "Lock" | "Locked" => Some("only with a rule taken away"),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(self.requests, coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions: Vec<Action> = ALONE
            .into_iter()
            .map(|(kind, name)| match kind {
                Alone::GoAway => Action::new(name, "world").to("applier"),
                Alone::Preflight | Alone::Applied | Alone::Healthy | Alone::RbOk => {
                    Action::new(name, "applier").to("conductor")
                }
                Alone::Drained => Action::new(name, "placement").to("conductor"),
                Alone::AskDrain | Alone::Undrain => Action::new(name, "conductor").to("placement"),
                Alone::Fail | Alone::RbBad => Action::new(name, "conductor"),
            })
            .collect();
        let is_taken = |kind: OfRequest| self.is_shipped || kind != OfRequest::FoundThere;
        for (kind, name) in OF_REQUEST.into_iter().filter(|(kind, _)| is_taken(*kind)) {
            actions.extend((1..=self.requests).map(|r| {
                let name = format!("{name}({r})");
                match kind {
                    OfRequest::Submit | OfRequest::Cancel => {
                        Action::new(name, "people").to("conductor")
                    }
                    OfRequest::Number
                    | OfRequest::Refuse
                    | OfRequest::StartDeadline
                    | OfRequest::Lock
                    | OfRequest::Locked
                    | OfRequest::FoundThere => Action::new(name, "conductor"),
                    OfRequest::Start => Action::new(name, "conductor").to("applier"),
                }
            }));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.world_steps(state, steps);
        for r in 0..self.requests {
            self.queue_steps(state, r, steps);
            self.start_steps(state, r, steps);
        }
        self.drain_steps(state, steps);
        self.active_steps(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        state.describe(self.requests)
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        promises::invariants(self)
    }

    fn step_rules(&self) -> Vec<StepRule<State>> {
        promises::step_rules()
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        self.all_reachable()
    }

    fn properties(&self) -> Vec<Property<State>> {
        self.all_properties()
    }

    fn fairness(&self) -> Vec<Fairness> {
        let of = |kind| (0..self.requests).map(move |r| self.of_request(kind, r));
        let mut fairness = Vec::new();
        for r in 0..self.requests {
            let on_queued = [
                OfRequest::Start,
                OfRequest::Refuse,
                OfRequest::StartDeadline,
                OfRequest::Lock,
                OfRequest::Locked,
            ];
            let on_queued = on_queued.map(|kind| self.of_request(kind, r));
            fairness.push(Fairness::weak(format!("OnQueued({})", r + 1), on_queued));
        }
        for (kind, name) in [(OfRequest::Submit, "Submit"), (OfRequest::Number, "Number")] {
            let each = of(kind).zip(1..);
            fairness.extend(each.map(|(id, r)| Fairness::weak(format!("{name}({r})"), [id])));
        }
        let alone = |name: &str, kinds: &[Alone]| {
            Fairness::weak(name, kinds.iter().map(|kind| *kind as u16))
        };
        fairness.extend([
            alone("Preflight", &[Alone::Preflight]),
            alone("AskDrain", &[Alone::AskDrain]),
            alone("Undrain", &[Alone::Undrain]),
            alone("Applied", &[Alone::Applied]),
            alone("Healthy \\/ Fail", &[Alone::Healthy, Alone::Fail]),
            alone("RbOk \\/ RbBad", &[Alone::RbOk, Alone::RbBad]),
        ]);
        if self.is_calm {
            fairness.push(alone("Drained", &[Alone::Drained]));
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        let requests = &state.requests[..self.requests];
        requests.iter().all(|request| request.phase.is_final()) && state.active.is_none()
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State::arbitrary(self, rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.all_mutants()
    }
}

const _: () = assert!(MOST_REQUESTS as u64 == KEYS[0].most);
