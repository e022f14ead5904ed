//! The life of a request: admitted or refused, superseded or started, verified or rolled back,
//! under a lease with a token that only grows.
//!
//! One cluster; the fence is taken for granted. `specs/protocol/RolloutsLifecycle.tla` is the text
//! it follows.

mod steps;
#[cfg(test)]
mod tests;

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, StepRule, Steps,
};

const NAME: &str = "spec/rollouts-lifecycle";
const MOST_REQUESTS: usize = 4;
const MOST_WORKERS: usize = 3;
const KEYS: [SizeKey; 4] = [
    SizeKey::new("requests", "requests that are submitted", 2, 1, MOST_REQUESTS as u64),
    SizeKey::new("workers", "workers that compete for the lease", 2, 1, MOST_WORKERS as u64),
    SizeKey::new("crashes", "crashes of workers, together", 1, 0, 3),
    SizeKey::new("tries", "rollbacks tried before giving up", 2, 1, 4),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "requests queue for a cluster; a worker with the lease applies and verifies them",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Lifecycle::from_size(size)?)),
};

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Not submitted.
    #[default]
    New,
    /// Submitted.
    Pending,
    /// Admitted, waiting.
    Queued,
    /// Being applied.
    Applying,
    /// Being verified.
    Verifying,
    /// Being undone.
    RollingBack,
    /// Refused.
    Rejected,
    /// A newer one came first.
    Superseded,
    /// Preflight failed: nothing was changed.
    Failed,
    /// Verified.
    Succeeded,
    /// Undone.
    RolledBack,
    /// Could not be undone.
    RollbackFailed,
}

const STANDINGS: [Standing; 12] = [
    Standing::New,
    Standing::Pending,
    Standing::Queued,
    Standing::Applying,
    Standing::Verifying,
    Standing::RollingBack,
    Standing::Rejected,
    Standing::Superseded,
    Standing::Failed,
    Standing::Succeeded,
    Standing::RolledBack,
    Standing::RollbackFailed,
];

impl Standing {
    fn is_active(self) -> bool {
        matches!(self, Standing::Applying | Standing::Verifying | Standing::RollingBack)
    }

    fn is_waiting_or_active(self) -> bool {
        self == Standing::Queued || self.is_active()
    }

    fn is_final(self) -> bool {
        !matches!(self, Standing::New | Standing::Pending) && !self.is_waiting_or_active()
    }

    fn is_queued_or_succeeded(self) -> bool {
        matches!(self, Standing::Queued | Standing::Succeeded)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Request {
    standing: Standing,
    version: u8,
}

/// What is on the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Condition {
    /// One version, whole.
    #[default]
    Idle,
    /// Something between two versions.
    Partial,
    /// A rollback was given up.
    Degraded,
}

const CONDITIONS: [Condition; 3] = [Condition::Idle, Condition::Partial, Condition::Degraded];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Worker {
    /// The token it believes to hold; 0 is none.
    token: u8,
    is_dead: bool,
}

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    requests: [Request; MOST_REQUESTS],
    submitted: u8,
    version: u8,
    condition: Condition,
    good: u8,
    holder: Option<u8>,
    token: u8,
    workers: [Worker; MOST_WORKERS],
    tries: u8,
    crashes: u8,
}

impl State {
    fn needs_work(&self) -> usize {
        self.count(Standing::is_waiting_or_active)
    }

    fn count(&self, is: impl Fn(Standing) -> bool) -> usize {
        self.requests.iter().filter(|request| is(request.standing)).count()
    }

    fn is_holder_dead(&self) -> bool {
        self.holder.is_some_and(|holder| self.workers[usize::from(holder)].is_dead)
    }

    /// Whether the store takes a write of this worker.
    fn has_lease(&self, worker: usize) -> bool {
        let Worker { token, is_dead } = self.workers[worker];
        !is_dead && token == self.token && self.holder == Some(worker as u8)
    }
}

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A request that is queued supersedes the one that waits.
    pub supersede: bool,
    /// A request older than one that waits, runs or succeeded is not queued.
    pub refuse_outdated: bool,
    /// A request starts only when none is active.
    pub one_at_a_time: bool,
    /// A version is the last good one once it was verified, not before.
    pub good_once_verified: bool,
    /// What was applied in part is rolled back.
    pub roll_back: bool,
    /// A lease whose holder died, or came back without it, is free.
    pub free_lease: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        supersede: true,
        refuse_outdated: true,
        one_at_a_time: true,
        good_once_verified: true,
        roll_back: true,
        free_lease: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct Lifecycle {
    requests: usize,
    workers: usize,
    crashes: u8,
    tries: u8,
    rules: Rules,
}

// Action ids: each kind for each request, then each kind for each worker.
const OF_REQUEST: [&str; 2] = ["Submit", "Admit"];
const SUBMIT: u16 = 0;
const ADMIT: u16 = 1;
const OF_WORKER: [&str; 10] = [
    "Acquire",
    "Start",
    "Applied",
    "Healthy",
    "Fail",
    "RollbackOk",
    "RollbackBad",
    "Yield",
    "Crash",
    "Restart",
];
const ACQUIRE: u16 = 0;
const START: u16 = 1;
const APPLIED: u16 = 2;
const HEALTHY: u16 = 3;
const FAIL: u16 = 4;
const ROLLBACK_OK: u16 = 5;
const ROLLBACK_BAD: u16 = 6;
const YIELD: u16 = 7;
const CRASH: u16 = 8;
const RESTART: u16 = 9;

fn width(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

impl Lifecycle {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(Lifecycle::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([requests, workers, crashes, tries]: [u8; 4], rules: Rules) -> Self {
        let (requests, workers) = (usize::from(requests), usize::from(workers));
        Lifecycle { requests, workers, crashes, tries, rules }
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    fn of_request(&self, kind: u16, request: usize) -> ActionId {
        kind * self.requests as u16 + request as u16
    }

    fn of_worker(&self, kind: u16, worker: usize) -> ActionId {
        let first = OF_REQUEST.len() as u16 * self.requests as u16;
        first + kind * self.workers as u16 + worker as u16
    }

    /// A lease is taken for work that was queued since the last one was yielded, or after a crash.
    fn most_tokens(&self) -> u8 {
        self.requests as u8 + self.crashes
    }
}

impl Model for Lifecycle {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        format!(
            "requests={},workers={},crashes={},tries={}",
            self.requests, self.workers, self.crashes, self.tries
        )
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name.split('(').next() {
            Some("Crash" | "Restart") if self.crashes == 0 => Some("this size has no crashes"),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        let of_version = width(self.requests as u8);
        let of_token = width(self.most_tokens());
        for request in &mut state.requests[..self.requests] {
            coder.of(&mut request.standing, &STANDINGS);
            coder.u8(&mut request.version, of_version);
        }
        coder.u8(&mut state.submitted, of_version);
        coder.u8(&mut state.version, of_version);
        coder.of(&mut state.condition, &CONDITIONS);
        coder.u8(&mut state.good, of_version);
        let mut holder = state.holder.map_or(0, |holder| holder + 1);
        coder.u8(&mut holder, width(self.workers as u8));
        state.holder = holder.checked_sub(1);
        coder.u8(&mut state.token, of_token);
        for worker in &mut state.workers[..self.workers] {
            coder.u8(&mut worker.token, of_token);
            coder.bool(&mut worker.is_dead);
        }
        coder.u8(&mut state.tries, width(self.tries - 1));
        coder.u8(&mut state.crashes, width(self.crashes));
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (kind, name) in (0..).zip(OF_REQUEST) {
            actions.extend((1..=self.requests).map(|r| {
                let actor = if kind == SUBMIT { "user" } else { "admission" };
                Action::new(format!("{name}(r{r})"), actor).to(format!("request r{r}"))
            }));
        }
        for (kind, name) in (0..).zip(OF_WORKER) {
            actions.extend((1..=self.workers).map(|w| {
                let (name, worker) = (format!("{name}(w{w})"), format!("worker w{w}"));
                match kind {
                    ACQUIRE | YIELD => Action::new(name, worker).to("lease"),
                    CRASH => Action::new(name, "world").to(worker),
                    RESTART => Action::new(name, worker),
                    _ => Action::new(name, worker).to("cluster"),
                }
            }));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        for request in 0..self.requests {
            self.request_steps(state, request, steps);
        }
        for worker in 0..self.workers {
            self.lease_steps(state, worker, steps);
            if state.has_lease(worker) {
                for request in 0..self.requests {
                    self.work_steps(state, worker, request, steps);
                }
            }
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let requests = state.requests[..self.requests].iter().enumerate().map(|(r, request)| {
            let Request { standing, version } = request;
            format!("r{} :> [st |-> \"{standing:?}\", v |-> {version}]", r + 1)
        });
        let workers = |show: &dyn Fn(&Worker) -> String| {
            let one = |w: usize| format!("w{} |-> {}", w + 1, show(&state.workers[w]));
            format!("[{}]", (0..self.workers).map(one).collect::<Vec<_>>().join(", "))
        };
        let State { version, condition, token, .. } = state;
        let holder = state.holder.map_or("none".to_owned(), |holder| format!("w{}", holder + 1));
        let alive = |worker: &Worker| if worker.is_dead { "FALSE" } else { "TRUE" }.to_owned();
        vec![
            ("req", format!("({})", requests.collect::<Vec<_>>().join(" @@ "))),
            ("ctr", state.submitted.to_string()),
            ("cluster", format!("[v |-> {version}, st |-> \"{condition:?}\"]")),
            ("good", state.good.to_string()),
            ("lease", format!("[holder |-> \"{holder}\", token |-> {token}]")),
            ("wtok", workers(&|worker| worker.token.to_string())),
            ("alive", workers(&alive)),
            ("tries", state.tries.to_string()),
            ("crashes", state.crashes.to_string()),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![
            Invariant::new("SingleFlight", "at most one request moves the cluster", |s: &State| {
                s.count(Standing::is_active) <= 1
            }),
            Invariant::new("OneQueued", "at most one request waits", |s: &State| {
                s.count(|standing| standing == Standing::Queued) <= 1
            }),
            Invariant::new(
                "PartialHasRequest",
                "a cluster between two versions has a request that works on it",
                |s: &State| s.condition != Condition::Partial || s.count(Standing::is_active) > 0,
            ),
            Invariant::new("GoodWasSuccess", "the last good version was verified", |s: &State| {
                s.good == 0
                    || s.requests.iter().any(|request| {
                        request.version == s.good && request.standing == Standing::Succeeded
                    })
            }),
            Invariant::new("IdleIsGood", "idle means: at the last good version", |s: &State| {
                s.condition != Condition::Idle || s.version == s.good
            }),
        ]
    }

    fn step_rules(&self) -> Vec<StepRule<State>> {
        vec![
            StepRule::new(
                "TerminalStable",
                "an outcome never changes",
                |from: &State, to: &State| {
                    let mut requests = from.requests.iter().zip(&to.requests);
                    requests.all(|(before, after)| !before.standing.is_final() || before == after)
                },
            ),
            StepRule::new(
                "NoOutdatedStart",
                "what starts is not older than what waits or succeeded",
                |from: &State, to: &State| {
                    let starts = |(before, after): &(&Request, &Request)| {
                        before.standing == Standing::Queued && after.standing == Standing::Applying
                    };
                    let mut requests = from.requests.iter().zip(&to.requests).filter(starts);
                    requests.all(|(started, _)| {
                        let mut others = from.requests.iter();
                        others.all(|other| {
                            !other.standing.is_queued_or_succeeded()
                                || other.version <= started.version
                        })
                    })
                },
            ),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        vec![
            Property::for_all(
                "EveryReqEnds",
                "every request ends",
                (0..self.requests).map(|request| {
                    Formula::eventually(move |s: &State| s.requests[request].standing.is_final())
                }),
            ),
            Property::new(
                "EndsSettled",
                "in the end the cluster is whole, or known to be degraded",
                Formula::eventually_always(|s: &State| s.condition != Condition::Partial),
            ),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let mut fairness = Vec::new();
        for r in 0..self.requests {
            for (kind, name) in (0..).zip(OF_REQUEST) {
                let name = format!("{name}(r{})", r + 1);
                fairness.push(Fairness::weak(name, [self.of_request(kind, r)]));
            }
        }
        for w in 0..self.workers {
            let worker = w + 1;
            let steps = (START..=YIELD).map(|kind| self.of_worker(kind, w));
            let acquire = self.of_worker(ACQUIRE, w);
            let restart = self.of_worker(RESTART, w);
            fairness.push(Fairness::weak(format!("Acquire(w{worker})"), [acquire]));
            fairness.push(Fairness::weak(format!("Step(w{worker})"), steps));
            fairness.push(Fairness::weak(format!("Restart(w{worker})"), [restart]));
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        state.requests[..self.requests].iter().all(|request| request.standing.is_final())
    }

    fn symmetries(&self) -> usize {
        arrangements(self.requests) * arrangements(self.workers) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let number = permutation + 1;
        let of_requests = arrangements(self.requests);
        let requests: [_; MOST_REQUESTS] = arrangement(self.requests, number % of_requests);
        let workers: [_; MOST_WORKERS] = arrangement(self.workers, number / of_requests);
        let mut image = state.clone();
        for r in 0..self.requests {
            image.requests[requests[r]] = state.requests[r];
        }
        for w in 0..self.workers {
            image.workers[workers[w]] = state.workers[w];
        }
        image.holder = state.holder.map(|holder| workers[usize::from(holder)] as u8);
        image
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let up_to = |rng: &mut Rng, most: u8| rng.below(usize::from(most) + 1) as u8;
        let most_version = self.requests as u8;
        // One below the bounds, so that a step from here still fits.
        let most_token = self.most_tokens() - 1;
        let mut state = State {
            submitted: up_to(rng, most_version - 1),
            version: up_to(rng, most_version),
            condition: CONDITIONS[rng.below(CONDITIONS.len())],
            good: up_to(rng, most_version),
            holder: up_to(rng, self.workers as u8).checked_sub(1),
            token: up_to(rng, most_token),
            tries: up_to(rng, self.tries - 1),
            crashes: up_to(rng, self.crashes),
            ..State::default()
        };
        for request in &mut state.requests[..self.requests] {
            request.standing = STANDINGS[rng.below(STANDINGS.len())];
            request.version = up_to(rng, most_version);
        }
        for worker in &mut state.workers[..self.workers] {
            *worker = Worker { token: up_to(rng, most_token), is_dead: rng.flip() };
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let several = Lifecycle { requests: self.requests.max(2), ..self.clone() };
        let crashing = Lifecycle { crashes: self.crashes.max(1), ..self.clone() };
        vec![
            Mutant::new(
                "no-supersede",
                "a request is queued beside the one that waits",
                &["OneQueued"],
                several.without(|rules| rules.supersede = false),
            ),
            Mutant::new(
                "outdated-queued",
                "a request is queued although a newer one runs or succeeded",
                &["NoOutdatedStart"],
                several.without(|rules| rules.refuse_outdated = false),
            ),
            Mutant::new(
                "two-at-once",
                "a request starts while another is active",
                &["SingleFlight"],
                several.without(|rules| rules.one_at_a_time = false),
            ),
            Mutant::new(
                "good-unverified",
                "a version becomes the last good one when it is applied",
                &["GoodWasSuccess"],
                self.without(|rules| rules.good_once_verified = false),
            ),
            Mutant::new(
                "left-partial",
                "an update that fails ends there, and the cluster stays between two versions",
                &["PartialHasRequest"],
                self.without(|rules| rules.roll_back = false),
            ),
            Mutant::new(
                "lock-leaked",
                "the lease of a worker that died belongs to it for ever",
                &["EveryReqEnds", "EndsSettled"],
                crashing.without(|rules| rules.free_lease = false),
            ),
        ]
    }
}
