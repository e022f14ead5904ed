//! The rollouts protocol: one request at a time moves a cluster, every write carries a token, and a
//! fence on the cluster refuses writes of older tokens, however late they land.
//!
//! One cluster, two objects on it, and controllers that take over from each other.
//! `specs/protocol/Rollouts.tla` is the text it follows.

mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use state::{Outcome, Stage, State};

use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, StepRule, Steps,
};
use state::{MOST_TAKEOVERS, MOST_VERSIONS, MOST_WRITES, OBJECTS};

const NAME: &str = "spec/rollouts";
const KEYS: [SizeKey; 3] = [
    SizeKey::new("versions", "requests, one version each", 2, 1, MOST_VERSIONS as u64),
    SizeKey::new("messages", "writes under way to the cluster at once", 1, 1, MOST_WRITES as u64),
    SizeKey::new("takeovers", "times that another controller takes over", 1, 0, MOST_TAKEOVERS),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "requests are applied, verified and rolled back behind a fence, while old writes land",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(RolloutsFence::from_size(size)?)),
};

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The cluster refuses a write whose token is older than its fence.
    pub fence: bool,
    /// Only what was read after the fence counts as seen.
    pub read_after_fence: bool,
    /// A write lands only on the revision that it was made for.
    pub revision_guard: bool,
    /// An object is marked with the token before it is deleted.
    pub mark_first: bool,
    /// A controller does not write to what a newer token wrote.
    pub token_guard: bool,
    /// A version is the last good one once it was verified, not before.
    pub good_once_verified: bool,
    /// The request that waits is superseded in the write that queues a newer one.
    pub supersede: bool,
    /// A request starts only when none is active.
    pub one_at_a_time: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        fence: true,
        read_after_fence: true,
        revision_guard: true,
        mark_first: true,
        token_guard: true,
        good_once_verified: true,
        supersede: true,
        one_at_a_time: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct RolloutsFence {
    versions: u8,
    messages: u8,
    takeovers: u8,
    rules: Rules,
}

const SUBMIT: ActionId = 0;
const REJECT: ActionId = 1;
const START: ActionId = 2;
const PREFLIGHT: ActionId = 3;
const TAKE: ActionId = 4;
const APPLY_DONE: ActionId = 5;
const HEALTHY: ActionId = 6;
const FAIL: ActionId = 7;
const RB_OK: ActionId = 8;
const RB_BAD: ActionId = 9;
const SET_FENCE: ActionId = 10;
const LAND: ActionId = 11;
// For each object. The specification is fair to sends of the present token only, so those of older
// tokens are actions of their own.
const SEE: ActionId = 12;
const SEND: ActionId = SEE + OBJECTS as u16;
const SEND_OLDER: ActionId = SEND + OBJECTS as u16;

impl RolloutsFence {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(RolloutsFence::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([versions, messages, takeovers]: [u8; 3], rules: Rules) -> Self {
        RolloutsFence { versions, messages, takeovers, rules }
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    /// A token for each start, each rollback and each takeover.
    fn most_tokens(&self) -> u8 {
        2 * self.versions + self.takeovers
    }

    /// The revision that no write of the protocol exceeds: a token writes each object at most
    /// twice, to mark it and to delete it. Without a fence the writes may go on for ever; there the
    /// world ends at this revision.
    fn most_revisions(&self) -> u8 {
        1 + 2 * OBJECTS as u8 * self.most_tokens()
    }
}

impl Model for RolloutsFence {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        let RolloutsFence { versions, messages, takeovers, .. } = self;
        format!("versions={versions},messages={messages},takeovers={takeovers}")
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Take" if self.takeovers == 0 => Some("this size has no takeovers"),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(self, coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![State { next_revision: 1, ..State::default() }]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![
            Action::new("Submit", "user").to("record"),
            Action::new("Reject", "controller").to("record"),
            Action::new("Start", "controller").to("record"),
            Action::new("Preflight", "controller").to("record"),
            Action::new("Take", "other controller").to("record"),
            Action::new("ApplyDone", "controller").to("record"),
            Action::new("Healthy", "controller").to("record"),
            Action::new("Fail", "controller").to("record"),
            Action::new("RbOk", "controller").to("record"),
            Action::new("RbBad", "controller").to("record"),
            Action::new("SetFence", "controller").to("cluster"),
            Action::new("Land", "network").to("cluster"),
        ];
        let objects = 1..=OBJECTS;
        let see = |o| Action::new(format!("See(o{o})"), "cluster").to("controller");
        let send = |o| Action::new(format!("Send(o{o}, token)"), "controller").to("network");
        let late = |o| Action::new(format!("Send(o{o}, older)"), "other controller").to("network");
        actions.extend(objects.clone().map(see));
        actions.extend(objects.clone().map(send));
        actions.extend(objects.map(late));
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.request_steps(state, steps);
        self.progress_steps(state, steps);
        self.write_steps(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        state.describe(self)
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![
            Invariant::new(
                "IdleIsGood",
                "idle means that exactly the last good version is on the cluster",
                |s: &State| s.stage != Stage::Idle || s.is_degraded || s.has_on_cluster(s.good),
            ),
            Invariant::new("SingleFlight", "at most one request moves the cluster", |s: &State| {
                s.count(Outcome::is_active) <= 1
            }),
            Invariant::new("OneQueued", "at most one request waits", |s: &State| {
                s.count(|outcome| outcome == Outcome::Queued) <= 1
            }),
            Invariant::new("LockHasOwner", "the cluster moves if and only if a request does", {
                |s: &State| {
                    let moving = s.stage != Stage::Idle;
                    moving == (s.active != 0) && moving == (s.count(Outcome::is_active) == 1)
                }
            }),
            Invariant::new("LastGoodSucceeded", "the last good version was verified", {
                |s: &State| s.good == 0 || s.outcome(s.good) == Outcome::Succeeded
            }),
        ]
    }

    fn step_rules(&self) -> Vec<StepRule<State>> {
        vec![
            StepRule::new(
                "TerminalStable",
                "an outcome never changes",
                |from: &State, to: &State| {
                    let mut outcomes = from.outcomes.iter().zip(&to.outcomes);
                    outcomes.all(|(before, after)| !before.is_final() || before == after)
                },
            ),
            StepRule::new(
                "FenceHolds",
                "an object changes only under a token that is not older than the fence",
                |from: &State, to: &State| {
                    from.objects.iter().zip(&to.objects).all(|(before, after)| {
                        let by = if after.exists() { after.token } else { before.token };
                        before == after || by >= from.fence
                    })
                },
            ),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        vec![Property::for_all(
            "EveryReqEnds",
            "every request ends",
            (1..=self.versions).map(|version| {
                Formula::leads_to(
                    move |s: &State| s.outcome(version) != Outcome::New,
                    move |s: &State| s.outcome(version).is_final(),
                )
            }),
        )]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let mut fairness = vec![
            Fairness::weak("Start \\/ Preflight", [START, PREFLIGHT]),
            Fairness::weak("ApplyDone", [APPLY_DONE]),
            Fairness::weak("Healthy \\/ Fail", [HEALTHY, FAIL]),
            Fairness::weak("RbOk \\/ RbBad", [RB_OK, RB_BAD]),
            Fairness::weak("SetFence", [SET_FENCE]),
            Fairness::weak("Land", [LAND]),
        ];
        for object in 0..OBJECTS as u16 {
            let o = object + 1;
            fairness.push(Fairness::weak(format!("See(o{o})"), [SEE + object]));
            fairness.push(Fairness::strong(format!("Send(o{o}, token)"), [SEND + object]));
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        (1..=self.versions).all(|version| state.outcome(version).is_final())
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State::arbitrary(self, rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        // A write finds a revision that it was not made for only if two of them are under way, and
        // controllers of two versions take over from each other.
        let crossing = RolloutsFence {
            versions: self.versions.max(2),
            messages: self.messages.max(2),
            takeovers: self.takeovers.max(1),
            ..self.clone()
        };
        let two_versions = RolloutsFence { versions: self.versions.max(2), ..self.clone() };
        vec![
            Mutant::new(
                "no-fence",
                "the cluster takes writes of any token",
                &["IdleIsGood"],
                self.without(|rules| rules.fence = false),
            ),
            Mutant::new(
                "read-before-fence",
                "what was read before the fence counts as applied",
                &["IdleIsGood"],
                self.without(|rules| rules.read_after_fence = false),
            ),
            Mutant::new(
                "no-revision",
                "a write lands on whatever revision it finds",
                &["IdleIsGood"],
                crossing.without(|rules| rules.revision_guard = false),
            ),
            Mutant::new(
                "delete-unmarked",
                "an object is deleted without being marked first, so the fence cannot judge it",
                &["IdleIsGood", "FenceHolds"],
                self.without(|rules| rules.mark_first = false),
            ),
            Mutant::new(
                "good-unverified",
                "a version becomes the last good one when it is applied",
                &["LastGoodSucceeded"],
                self.without(|rules| rules.good_once_verified = false),
            ),
            Mutant::new(
                "lost-request",
                "a newer request takes the place of the one that waits, and nobody tells that one",
                &["OneQueued", "EveryReqEnds"],
                two_versions.without(|rules| rules.supersede = false),
            ),
            Mutant::new(
                "two-at-once",
                "a request starts while another is active",
                &["SingleFlight"],
                two_versions.without(|rules| rules.one_at_a_time = false),
            ),
        ]
    }
}
