//! UpdateCluster as written: requests for a cluster, and workers that carry them out under a lock.
//!
//! Kept with its defects; `specs/seed/UpdateCluster.tla` is the text it follows.

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "seed/update-cluster";
const KEYS: [SizeKey; 2] = [
    SizeKey::new("requests", "requests that the user sends", 2, 1, MOST_REQUESTS as u64),
    SizeKey::new("workers", "workers that carry them out", 2, 1, MOST_WORKERS as u64),
];
pub(crate) const MOST_REQUESTS: usize = 6;
pub(crate) const MOST_WORKERS: usize = 4;

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a cluster is moved to the version that was submitted last, or rolled back",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(UpdateCluster::from_size(size)?)),
};

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RequestState {
    #[default]
    Waiting,
    Submitted,
    Rejected,
    Valid,
    Processing,
    Partial,
    PartialFailure,
    Success,
    Failure,
    RolledBack,
}

pub(crate) const REQUEST_STATES: [RequestState; 10] = [
    RequestState::Waiting,
    RequestState::Submitted,
    RequestState::Rejected,
    RequestState::Valid,
    RequestState::Processing,
    RequestState::Partial,
    RequestState::PartialFailure,
    RequestState::Success,
    RequestState::Failure,
    RequestState::RolledBack,
];

impl RequestState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            RequestState::Waiting => "waiting",
            RequestState::Submitted => "submitted",
            RequestState::Rejected => "rejected",
            RequestState::Valid => "valid",
            RequestState::Processing => "processing",
            RequestState::Partial => "partial",
            RequestState::PartialFailure => "partialFailure",
            RequestState::Success => "success",
            RequestState::Failure => "failure",
            RequestState::RolledBack => "rolledback",
        }
    }
}

/// What is going on in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ClusterState {
    #[default]
    Idle,
    /// Declared by the seed, never used.
    Starting,
    Partial,
    Failed,
}

const CLUSTER_STATES: [ClusterState; 4] =
    [ClusterState::Idle, ClusterState::Starting, ClusterState::Partial, ClusterState::Failed];

impl ClusterState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ClusterState::Idle => "idle",
            ClusterState::Starting => "starting",
            ClusterState::Partial => "partial",
            ClusterState::Failed => "failed",
        }
    }
}

/// What a worker is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WorkerState {
    #[default]
    Waiting,
    Starting,
    Working,
}

pub(crate) const WORKER_STATES: [WorkerState; 3] =
    [WorkerState::Waiting, WorkerState::Starting, WorkerState::Working];

impl WorkerState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            WorkerState::Waiting => "waiting",
            WorkerState::Starting => "starting",
            WorkerState::Working => "working",
        }
    }
}

/// A version, or NULL. Versions count submissions; 0 is what the cluster starts with.
pub(crate) type MaybeVersion = Option<u8>;

pub(crate) const VERSIONS: [MaybeVersion; MOST_REQUESTS + 2] =
    [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)];
pub(crate) const VERSION_BITS: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Request {
    pub(crate) state: RequestState,
    pub(crate) version: MaybeVersion,
}

impl Request {
    pub(crate) fn code(&mut self, coder: &mut Coder) {
        coder.of(&mut self.state, &REQUEST_STATES);
        coder.of(&mut self.version, &VERSIONS);
    }

    /// Any request when `count` of them are sent.
    pub(crate) fn arbitrary(rng: &mut Rng, count: usize) -> Self {
        Request {
            state: REQUEST_STATES[rng.below(REQUEST_STATES.len())],
            version: VERSIONS[rng.below(count + 2)],
        }
    }

    pub(crate) fn show(&self) -> String {
        format!("[st |-> \"{}\", v |-> {}]", self.state.name(), show_version(self.version))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Worker {
    state: WorkerState,
    version: MaybeVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cluster {
    state: ClusterState,
    version: u8,
}

/// The variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    configuration_is_valid: bool,
    last_submitted: u8,
    last_good: u8,
    to_apply: u8,
    cluster: Cluster,
    requests: [Request; MOST_REQUESTS],
    workers: [Worker; MOST_WORKERS],
    is_locked: bool,
}

// Action ids: three for each request, then three for each worker.
const SUBMIT: usize = 0;
const INITIAL_CHECK: usize = 1;
const PUSH_TO_PENDING: usize = 2;
const SPAWN_WORKER: usize = 0;
const APPLY_START: usize = 1;
const APPLY_FINISH: usize = 2;

/// A rule of the lock that a mutant breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    WorkerTakesLock,
    FinishGivesLockBack,
}

/// The model, for some number of requests and workers.
#[derive(Debug, Clone)]
pub struct UpdateCluster {
    requests: usize,
    workers: usize,
    broken: Option<Rule>,
}

impl UpdateCluster {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [requests, workers] = size.numbers(NAME, &KEYS)?;
        Ok(UpdateCluster::new(requests as usize, workers as usize))
    }

    fn new(requests: usize, workers: usize) -> Self {
        UpdateCluster { requests, workers, broken: None }
    }

    fn request_action(&self, kind: usize, r: usize) -> ActionId {
        (3 * r + kind) as ActionId
    }

    fn worker_action(&self, kind: usize, w: usize) -> ActionId {
        (3 * (self.requests + w) + kind) as ActionId
    }

    fn request(&self, state: &State, r: usize, steps: &mut Steps<State>) {
        let mut next = state.clone();
        let request = &mut next.requests[r];
        match request.state {
            RequestState::Waiting => {
                next.last_submitted += 1;
                *request =
                    Request { state: RequestState::Submitted, version: Some(next.last_submitted) };
                steps.step(self.request_action(SUBMIT, r), next);
            }
            RequestState::Submitted => {
                request.state = RequestState::Rejected;
                steps.step(self.request_action(INITIAL_CHECK, r), next.clone());
                next.requests[r].state = RequestState::Valid;
                steps.step(self.request_action(INITIAL_CHECK, r), next);
            }
            RequestState::Valid => {
                match request.version.filter(|version| state.to_apply < *version) {
                    Some(version) => next.to_apply = version,
                    None => request.state = RequestState::Rejected,
                }
                steps.step(self.request_action(PUSH_TO_PENDING, r), next);
            }
            RequestState::Rejected
            | RequestState::Processing
            | RequestState::Partial
            | RequestState::PartialFailure
            | RequestState::Success
            | RequestState::Failure
            | RequestState::RolledBack => {}
        }
    }

    fn worker(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        match state.workers[w].state {
            WorkerState::Waiting => self.spawn(state, w, steps),
            WorkerState::Starting => self.start(state, w, steps),
            WorkerState::Working => self.finish(state, w, steps),
        }
    }

    fn spawn(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let version = match state.cluster.state {
            ClusterState::Idle => state.to_apply,
            ClusterState::Failed => state.last_good,
            ClusterState::Starting | ClusterState::Partial => return,
        };
        if state.is_locked {
            return;
        }
        let mut next = state.clone();
        next.workers[w] = Worker { state: WorkerState::Starting, version: Some(version) };
        next.is_locked = self.broken != Some(Rule::WorkerTakesLock);
        steps.step(self.worker_action(SPAWN_WORKER, w), next);
    }

    fn start(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let version = state.workers[w].version;
        let is_current = version == Some(state.last_submitted) || version == Some(state.last_good);
        let mut next = state.clone();
        if is_current && state.configuration_is_valid {
            let version = version.unwrap_or_default();
            next.cluster = Cluster { state: ClusterState::Partial, version };
            next.workers[w].state = WorkerState::Working;
        } else {
            // As written: a worker that is too late does not give the lock back.
            next.is_locked &= !is_current;
            next.workers[w] = Worker::default();
        }
        steps.step(self.worker_action(APPLY_START, w), next);
    }

    fn finish(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let version = state.workers[w].version;
        for succeeds in [false, true] {
            let mut next = state.clone();
            next.is_locked &= self.broken == Some(Rule::FinishGivesLockBack);
            next.workers[w] = Worker::default();
            // A rollback always works, so both ways lead to the same state then.
            if succeeds || version == Some(state.last_good) {
                next.cluster.state = ClusterState::Idle;
                next.last_good = version.unwrap_or_default();
            } else {
                next.cluster.state = ClusterState::Failed;
            }
            steps.step(self.worker_action(APPLY_FINISH, w), next);
        }
    }
}

pub(crate) fn show_bool(value: bool) -> String {
    if value { "TRUE" } else { "FALSE" }.to_owned()
}

pub(crate) fn show_version(version: MaybeVersion) -> String {
    version.map_or_else(|| "NULL".to_owned(), |version| version.to_string())
}

pub(crate) fn show_function(name: char, values: impl Iterator<Item = String>) -> String {
    let pairs = values.zip(1..).map(|(value, number)| format!("{name}{number} :> {value}"));
    format!("({})", pairs.collect::<Vec<_>>().join(" @@ "))
}

impl Model for UpdateCluster {
    type State = State;
    type Packed = u128;

    fn covers(&self) -> interlock_checker::Covers {
        interlock_checker::Covers::Seed
    }

    fn size(&self) -> String {
        format!("requests={},workers={}", self.requests, self.workers)
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name.split('(').next()? {
            "LockHasHolder" | "deadlock" => Some(
                "a worker that finds its version outdated goes back to waiting and leaves the \
                 lock taken; it has no owner, so nobody can ever give it back",
            ),
            "PushToPending" => Some(
                "the request stays valid after it is queued, so it is pushed a second time and \
                 then rejected, although it is queued or even applied",
            ),
            "SpawnWorker" => Some(
                "it does not ask whether there is anything to do: the same version is applied \
                 again and again, a failed one too after its rollback",
            ),
            "ApplyStart" => Some(
                "it compares with what was submitted last, not with what was accepted last: a \
                 valid request is dropped for a later one that is then rejected; and without a \
                 valid configuration it gives up and is spawned again for ever",
            ),
            "NoPartialUpdateTermination" => Some(
                "workers are spawned without anything to do, so the cluster becomes partial again \
                 and again and is never idle for good",
            ),
            "EveryReqIsProcessed" => Some(
                "it only asks that no request waits: in the end every request is rejected, and \
                 success, failure and rolledback are never reached",
            ),
            "NoConcurrentUpdate" => Some(
                "it counts requests in the state \"working\", which no request has: it cannot \
                 fail, not even if the lock is never taken",
            ),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        coder.bool(&mut state.configuration_is_valid);
        coder.bool(&mut state.is_locked);
        coder.u8(&mut state.last_submitted, VERSION_BITS);
        coder.u8(&mut state.last_good, VERSION_BITS);
        coder.u8(&mut state.to_apply, VERSION_BITS);
        coder.u8(&mut state.cluster.version, VERSION_BITS);
        coder.of(&mut state.cluster.state, &CLUSTER_STATES);
        for request in &mut state.requests[..self.requests] {
            request.code(coder);
        }
        for worker in &mut state.workers[..self.workers] {
            coder.of(&mut worker.state, &WORKER_STATES);
            coder.of(&mut worker.version, &VERSIONS);
        }
    }

    fn initial(&self) -> Vec<State> {
        [false, true]
            .map(|configuration_is_valid| State { configuration_is_valid, ..State::default() })
            .to_vec()
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for r in 1..=self.requests {
            actions.extend([
                Action::new(format!("Submit(r{r})"), "user").to("updater"),
                Action::new(format!("Initialcheck(r{r})"), "updater"),
                Action::new(format!("PushToPending(r{r})"), "updater"),
            ]);
        }
        for w in 1..=self.workers {
            let worker = format!("worker w{w}");
            actions.extend([
                Action::new(format!("SpawnWorker(w{w})"), "updater").to(worker.as_str()),
                Action::new(format!("ApplyStart(w{w})"), worker.as_str()).to("cluster"),
                Action::new(format!("ApplyFinish(w{w})"), worker.as_str()).to("cluster"),
            ]);
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        for r in 0..self.requests {
            self.request(state, r, steps);
        }
        for w in 0..self.workers {
            self.worker(state, w, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let Cluster { state: cluster, version } = state.cluster;
        let requests = state.requests[..self.requests].iter().map(Request::show);
        let workers = state.workers[..self.workers].iter().map(|worker| {
            let version = show_version(worker.version);
            format!("[st |-> \"{}\", v |-> {version}]", worker.state.name())
        });
        vec![
            ("confOK", show_bool(state.configuration_is_valid)),
            ("lastVSubmitted", state.last_submitted.to_string()),
            ("lastVOK", state.last_good.to_string()),
            ("toApply", state.to_apply.to_string()),
            ("cluster", format!("[st |-> \"{}\", v |-> {version}]", cluster.name())),
            ("requests", show_function('r', requests)),
            ("workers", show_function('w', workers)),
            ("lock", show_bool(state.is_locked)),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![
            Invariant::new(
                "TypeInvariants",
                "cluster, requests and workers are in one of the states meant for them",
                |_| true,
            )
            .unbreakable("the types of the model say it"),
            Invariant::new(
                "NoConcurrentUpdate",
                "at most one request is being worked on",
                |s: &State| {
                    s.requests.iter().filter(|request| request.state.name() == "working").count()
                        < 2
                },
            ),
            Invariant::new(
                "LockHasHolder",
                "a lock that is taken has a worker that holds it (ours; the seed does not ask)",
                |s: &State| {
                    !s.is_locked
                        || s.workers.iter().any(|worker| worker.state != WorkerState::Waiting)
                },
            ),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let requests = self.requests;
        vec![
            Property::new(
                "NoPartialUpdateTermination",
                "in the end the cluster is idle, and stays so",
                Formula::eventually_always(|s: &State| s.cluster.state == ClusterState::Idle),
            ),
            Property::new(
                "EveryReqIsProcessed",
                "in the end no request waits to be submitted",
                Formula::eventually_always(move |s: &State| {
                    s.requests[..requests].iter().all(|r| r.state != RequestState::Waiting)
                }),
            ),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let actions = self.actions().into_iter().zip(0..);
        actions.map(|(action, id)| Fairness::weak(action.name, [id])).collect()
    }

    fn symmetries(&self) -> usize {
        arrangements(self.requests) * arrangements(self.workers) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let ways = arrangements(self.requests);
        let number = permutation + 1;
        let requests: [usize; MOST_REQUESTS] = arrangement(self.requests, number % ways);
        let workers: [usize; MOST_WORKERS] = arrangement(self.workers, number / ways);
        let mut image = state.clone();
        for (request, place) in state.requests.iter().zip(requests) {
            image.requests[place] = *request;
        }
        for (worker, place) in state.workers.iter().zip(workers) {
            image.workers[place] = *worker;
        }
        image
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let mut version = || rng.below(self.requests + 1) as u8;
        let mut state = State {
            // Every request that still waits will take one version more.
            last_submitted: 0,
            last_good: version(),
            to_apply: version(),
            cluster: Cluster { version: version(), state: ClusterState::Idle },
            ..State::default()
        };
        state.configuration_is_valid = rng.flip();
        state.is_locked = rng.flip();
        state.cluster.state = CLUSTER_STATES[rng.below(CLUSTER_STATES.len())];
        for request in &mut state.requests[..self.requests] {
            *request = Request::arbitrary(rng, self.requests);
            state.last_submitted += u8::from(request.state != RequestState::Waiting);
        }
        for worker in &mut state.workers[..self.workers] {
            *worker = Worker {
                state: WORKER_STATES[rng.below(WORKER_STATES.len())],
                version: VERSIONS[rng.below(self.requests + 2)],
            };
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let without = |rule| UpdateCluster { broken: Some(rule), ..self.clone() };
        vec![
            Mutant::new(
                "lock-kept",
                "a worker that has finished keeps the lock",
                &["LockHasHolder"],
                without(Rule::FinishGivesLockBack),
            ),
            Mutant::new(
                "lock-never-taken",
                "workers start without taking the lock, and NoConcurrentUpdate does not notice",
                &["NoConcurrentUpdate"],
                without(Rule::WorkerTakesLock),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_checker::reference;
    use interlock_checker::symmetry::assert_symmetric;

    #[test]
    fn the_counts_are_those_of_tlc() {
        for (requests, workers, generated, distinct, depth) in [
            (1, 1, 91, 46, 10),
            (1, 3, 245, 106, 10),
            (2, 1, 1_664, 625, 16),
            (2, 2, 2_982, 1_024, 16),
            (3, 1, 36_137, 10_292, 20),
            (3, 2, 63_380, 16_892, 20),
            (3, 3, 90_623, 23_492, 20),
            (4, 1, 884_416, 200_341, 22),
        ] {
            let counts = reference::explore(&UpdateCluster::new(requests, workers));
            assert_eq!(
                (counts.generated, counts.distinct, counts.depth),
                (generated, distinct, depth),
                "requests={requests},workers={workers}"
            );
        }
    }

    #[test]
    fn the_lock_leaks_and_then_nothing_moves() {
        for (requests, workers, leak, deadlock) in [
            (1, 1, None, None),
            (2, 1, Some(7), Some(9)),
            (2, 2, Some(7), Some(9)),
            (3, 2, Some(7), Some(11)),
        ] {
            let counts = reference::explore(&UpdateCluster::new(requests, workers));
            let violated: Vec<_> =
                leak.map(|states| ("LockHasHolder", states)).into_iter().collect();
            assert_eq!((counts.violated, counts.deadlock), (violated, deadlock));
        }
    }

    #[test]
    fn a_lock_that_is_kept_is_noticed_and_one_that_is_never_taken_is_not() {
        let [kept, never_taken] = UpdateCluster::new(1, 2).mutants().try_into().ok().unwrap();
        assert_eq!(reference::explore(&kept.model).violated, [("LockHasHolder", 4)]);
        assert_eq!(reference::explore(&never_taken.model).violated, []);
    }

    #[test]
    fn the_first_state_reads_as_the_seed_would_print_it() {
        let model = UpdateCluster::new(2, 1);
        assert_eq!(
            model.describe(&model.initial()[0]),
            [
                ("confOK", "FALSE"),
                ("lastVSubmitted", "0"),
                ("lastVOK", "0"),
                ("toApply", "0"),
                ("cluster", "[st |-> \"idle\", v |-> 0]"),
                (
                    "requests",
                    "(r1 :> [st |-> \"waiting\", v |-> NULL] @@ \
                     r2 :> [st |-> \"waiting\", v |-> NULL])"
                ),
                ("workers", "(w1 :> [st |-> \"waiting\", v |-> NULL])"),
                ("lock", "FALSE"),
            ]
            .map(|(name, value)| (name, value.to_owned()))
        );
    }

    #[test]
    fn any_state_of_the_largest_size_comes_back_from_its_bits() {
        let (model, mut rng) = (UpdateCluster::new(MOST_REQUESTS, MOST_WORKERS), Rng::new(1));
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }

    #[test]
    fn requests_and_workers_are_interchangeable() {
        assert_symmetric(&UpdateCluster::new(3, 2));
    }
}
