//! UpdateCluster corrected: the lock has an owner, every request comes to an end, and so does work.
//!
//! `specs/fixed/UpdateClusterFixed.tla` is its text.

mod steps;
#[cfg(test)]
mod tests;

use crate::seed::{
    MOST_REQUESTS, MOST_WORKERS, MaybeVersion, Request, RequestState, VERSION_BITS, VERSIONS,
    WORKER_STATES, WorkerState, show_bool, show_function, show_version,
};
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, StepRule, Steps,
};

const NAME: &str = "fixed/update-cluster";
const KEYS: [SizeKey; 3] = [
    SizeKey::new("requests", "requests that the user sends", 2, 1, MOST_REQUESTS as u64),
    SizeKey::new("workers", "workers that carry them out", 2, 1, MOST_WORKERS as u64),
    SizeKey::new("crashes", "how often a worker may die", 1, 0, 3),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a cluster is moved to the newest accepted version, or rolled back, and then rests",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(UpdateCluster::from_size(size)?)),
};

/// What is going on in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ClusterState {
    #[default]
    Idle,
    Partial,
    Failed,
}

const CLUSTER_STATES: [ClusterState; 3] =
    [ClusterState::Idle, ClusterState::Partial, ClusterState::Failed];

impl ClusterState {
    fn name(self) -> &'static str {
        match self {
            ClusterState::Idle => "idle",
            ClusterState::Partial => "partial",
            ClusterState::Failed => "failed",
        }
    }
}

/// What a worker was spawned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    Apply,
    Rollback,
}

const JOBS: [Option<Job>; 3] = [None, Some(Job::Apply), Some(Job::Rollback)];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Worker {
    state: WorkerState,
    version: MaybeVersion,
    job: Option<Job>,
}

impl Worker {
    fn show(&self) -> String {
        let job = match self.job {
            None => "NULL",
            Some(Job::Apply) => "\"apply\"",
            Some(Job::Rollback) => "\"rollback\"",
        };
        let (state, version) = (self.state.name(), show_version(self.version));
        format!("[st |-> \"{state}\", v |-> {version}, kind |-> {job}]")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cluster {
    state: ClusterState,
    version: u8,
}

/// A worker as the owner of the lock, or nobody.
const OWNERS: [Option<u8>; MOST_WORKERS + 1] = [None, Some(0), Some(1), Some(2), Some(3)];

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
    lock: Option<u8>,
    crashes: u8,
}

impl State {
    /// The requests for this version go from one state to another.
    fn move_requests(&mut self, version: MaybeVersion, from: RequestState, to: RequestState) {
        for request in &mut self.requests {
            if request.version == version && request.state == from {
                request.state = to;
            }
        }
    }

    fn is_any_queued(&self) -> bool {
        self.requests.iter().any(|request| request.state == RequestState::Processing)
    }

    /// The worker is free again, and so is the lock.
    fn dismiss(&mut self, w: usize) {
        self.workers[w] = Worker::default();
        self.lock = None;
    }

    /// Work that was begun and did not end well.
    fn fail(&mut self, version: MaybeVersion) {
        self.cluster.state = ClusterState::Failed;
        self.move_requests(version, RequestState::Partial, RequestState::PartialFailure);
    }
}

fn is_final(state: RequestState) -> bool {
    match state {
        RequestState::Rejected
        | RequestState::Success
        | RequestState::Failure
        | RequestState::RolledBack => true,
        RequestState::Waiting
        | RequestState::Submitted
        | RequestState::Valid
        | RequestState::Processing
        | RequestState::Partial
        | RequestState::PartialFailure => false,
    }
}

// Action ids: three for each request, then four for each worker.
const SUBMIT: usize = 0;
const INITIAL_CHECK: usize = 1;
const PUSH_TO_PENDING: usize = 2;
const REQUEST_ACTIONS: usize = 3;
const SPAWN_WORKER: usize = 0;
const APPLY_START: usize = 1;
const APPLY_FINISH: usize = 2;
const CRASH: usize = 3;
const WORKER_ACTIONS: usize = 4;

/// A rule that a mutant breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    WorkerTakesLock,
    LateWorkerGivesLockBack,
    WorkersAreSpawnedForWork,
    OlderIsRejected,
    AppliedIsNotRejected,
    OutdatedIsNotApplied,
    FailureIsRolledBack,
    CrashIsAFailure,
}

/// The model, for some number of requests, workers and crashes.
#[derive(Debug, Clone)]
pub struct UpdateCluster {
    requests: usize,
    workers: usize,
    crashes: u8,
    broken: Option<Rule>,
}

impl UpdateCluster {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [requests, workers, crashes] = size.numbers(NAME, &KEYS)?;
        Ok(UpdateCluster::new(requests as usize, workers as usize, crashes as u8))
    }

    fn new(requests: usize, workers: usize, crashes: u8) -> Self {
        UpdateCluster { requests, workers, crashes, broken: None }
    }

    fn without(&self, rule: Rule) -> Self {
        UpdateCluster { broken: Some(rule), ..self.clone() }
    }

    fn keeps(&self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }

    fn request_action(&self, kind: usize, r: usize) -> ActionId {
        (REQUEST_ACTIONS * r + kind) as ActionId
    }

    fn worker_action(&self, kind: usize, w: usize) -> ActionId {
        (REQUEST_ACTIONS * self.requests + WORKER_ACTIONS * w + kind) as ActionId
    }
}

impl Model for UpdateCluster {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        format!("requests={},workers={},crashes={}", self.requests, self.workers, self.crashes)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        coder.bool(&mut state.configuration_is_valid);
        coder.u8(&mut state.last_submitted, VERSION_BITS);
        coder.u8(&mut state.last_good, VERSION_BITS);
        coder.u8(&mut state.to_apply, VERSION_BITS);
        coder.u8(&mut state.cluster.version, VERSION_BITS);
        coder.of(&mut state.cluster.state, &CLUSTER_STATES);
        coder.of(&mut state.lock, &OWNERS);
        coder.u8(&mut state.crashes, 2);
        for request in &mut state.requests[..self.requests] {
            request.code(coder);
        }
        for worker in &mut state.workers[..self.workers] {
            coder.of(&mut worker.state, &WORKER_STATES);
            coder.of(&mut worker.version, &VERSIONS);
            coder.of(&mut worker.job, &JOBS);
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
                Action::new(format!("Crash(w{w})"), worker.as_str()),
            ]);
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        for r in 0..self.requests {
            self.request(state, r, steps);
        }
        for w in 0..self.workers {
            match state.workers[w].state {
                WorkerState::Waiting => self.spawn(state, w, steps),
                WorkerState::Starting => self.start(state, w, steps),
                WorkerState::Working => self.finish(state, w, steps),
            }
            self.crash(state, w, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let Cluster { state: cluster, version } = state.cluster;
        let requests = state.requests[..self.requests].iter().map(Request::show);
        let workers = state.workers[..self.workers].iter().map(Worker::show);
        let owner = state.lock.map_or_else(|| "NULL".to_owned(), |w| format!("w{}", w + 1));
        vec![
            ("confOK", show_bool(state.configuration_is_valid)),
            ("lastVSubmitted", state.last_submitted.to_string()),
            ("lastVOK", state.last_good.to_string()),
            ("toApply", state.to_apply.to_string()),
            ("cluster", format!("[st |-> \"{}\", v |-> {version}]", cluster.name())),
            ("requests", show_function('r', requests)),
            ("workers", show_function('w', workers)),
            ("lock", owner),
            ("crashes", state.crashes.to_string()),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let workers = self.workers;
        let one_at_a_time = Invariant::new(
            "NoConcurrentUpdate",
            "at most one worker changes the cluster",
            |s: &State| s.workers.iter().filter(|w| w.state == WorkerState::Working).count() < 2,
        );
        let mut invariants = vec![
            Invariant::new(
                "TypeInvariants",
                "cluster, requests and workers are in one of the states meant for them",
                |_| true,
            )
            .unbreakable("the types of the model say it"),
            if workers == 1 {
                one_at_a_time.unbreakable("one worker has nobody to collide with")
            } else {
                one_at_a_time
            },
            Invariant::new(
                "LockMeansWork",
                "a worker has the lock exactly while it has work",
                move |s: &State| {
                    (0..workers).all(|w| {
                        let has_work = s.workers[w].state != WorkerState::Waiting;
                        has_work == (s.lock == Some(w as u8))
                    })
                },
            ),
        ];
        invariants.extend(cluster_invariants());
        invariants.extend(request_invariants(self.requests));
        invariants
    }

    fn step_rules(&self) -> Vec<StepRule<State>> {
        vec![
            StepRule::new(
                "NoApplicationOfOutdatedReq",
                "a version is applied only while it is the newest accepted one",
                |from: &State, to: &State| {
                    from.workers.iter().zip(&to.workers).all(|(before, after)| {
                        let begins = before.state == WorkerState::Starting
                            && after.state == WorkerState::Working
                            && before.job == Some(Job::Apply);
                        !begins || before.version == Some(from.to_apply)
                    })
                },
            ),
            StepRule::new(
                "LastOKMonotone",
                "the last good version never goes back",
                |from: &State, to: &State| to.last_good >= from.last_good,
            ),
            StepRule::new(
                "FinalIsFinal",
                "a request that came to its end stays there",
                |from: &State, to: &State| {
                    from.requests.iter().zip(&to.requests).all(|(before, after)| {
                        !is_final(before.state) || after.state == before.state
                    })
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
            Property::for_all(
                "EveryReqInQueueIsProcessed",
                "a request that was submitted comes to its end",
                (0..requests).map(|r| {
                    Formula::leads_to(
                        move |s: &State| s.requests[r].state == RequestState::Submitted,
                        move |s: &State| is_final(s.requests[r].state),
                    )
                }),
            ),
            Property::new(
                "EveryReqIsProcessed",
                "in the end every request has come to its end",
                Formula::eventually_always(move |s: &State| {
                    s.requests[..requests].iter().all(|request| is_final(request.state))
                }),
            ),
            Property::new("Quiesces", "in the end nothing changes any more", Formula::ComesToRest),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let mut fairness = Vec::new();
        for r in 0..self.requests {
            let kinds = [SUBMIT, INITIAL_CHECK, PUSH_TO_PENDING];
            let names = ["Submit", "Initialcheck", "PushToPending"];
            fairness.extend(names.iter().zip(kinds).map(|(name, kind)| {
                Fairness::weak(format!("{name}(r{})", r + 1), [self.request_action(kind, r)])
            }));
        }
        let spawns = (0..self.workers).map(|w| self.worker_action(SPAWN_WORKER, w));
        fairness.push(Fairness::weak("\\E w : SpawnWorker(w)", spawns));
        for w in 0..self.workers {
            let (start, finish) =
                (self.worker_action(APPLY_START, w), self.worker_action(APPLY_FINISH, w));
            fairness.push(Fairness::weak(format!("ApplyStart(w{})", w + 1), [start]));
            fairness.push(Fairness::weak(format!("ApplyFinish(w{})", w + 1), [finish]));
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        let all_have_ended = state.requests[..self.requests].iter().all(|r| is_final(r.state));
        all_have_ended && state.cluster.state == ClusterState::Idle && state.lock.is_none()
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
        image.lock = state.lock.map(|w| workers[usize::from(w)] as u8);
        image
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let mut version = || rng.below(self.requests + 1) as u8;
        let mut state = State {
            last_good: version(),
            to_apply: version(),
            cluster: Cluster { version: version(), state: ClusterState::Idle },
            ..State::default()
        };
        state.configuration_is_valid = rng.flip();
        state.cluster.state = CLUSTER_STATES[rng.below(CLUSTER_STATES.len())];
        state.lock = OWNERS[rng.below(self.workers + 1)];
        state.crashes = rng.below(usize::from(self.crashes) + 1) as u8;
        for request in &mut state.requests[..self.requests] {
            *request = Request::arbitrary(rng, self.requests);
            // Every request that still waits will take one version more.
            state.last_submitted += u8::from(request.state != RequestState::Waiting);
        }
        for worker in &mut state.workers[..self.workers] {
            *worker = Worker {
                state: WORKER_STATES[rng.below(WORKER_STATES.len())],
                version: VERSIONS[rng.below(self.requests + 2)],
                job: JOBS[rng.below(JOBS.len())],
            };
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let mut mutants = vec![
            Mutant::new(
                "lock-never-taken",
                "workers start without taking the lock",
                &["LockMeansWork", "NoConcurrentUpdate"],
                self.without(Rule::WorkerTakesLock),
            ),
            Mutant::new(
                "idle-spawn",
                "workers are spawned although no request is queued",
                &["Quiesces", "LastOKSucceeded"],
                self.without(Rule::WorkersAreSpawnedForWork),
            ),
            Mutant::new(
                "no-rollback",
                "a cluster that failed is left as it is",
                &["NoPartialUpdateTermination"],
                self.without(Rule::FailureIsRolledBack),
            ),
        ];
        if self.requests > 1 {
            mutants.extend([
                Mutant::new(
                    "late-worker-keeps-lock",
                    "a worker that finds its version outdated keeps the lock",
                    &["LockMeansWork"],
                    self.without(Rule::LateWorkerGivesLockBack),
                ),
                Mutant::new(
                    "older-stays-queued",
                    "a newer request does not supersede the one that is queued",
                    &["AtMostOneQueued"],
                    self.without(Rule::OlderIsRejected),
                ),
                Mutant::new(
                    "applied-rejected",
                    "a newer request supersedes the one before it even when that was applied",
                    &["FinalIsFinal", "LastOKSucceeded"],
                    self.without(Rule::AppliedIsNotRejected),
                ),
                Mutant::new(
                    "outdated-applied",
                    "a worker applies its version although a newer one was accepted",
                    &["NoApplicationOfOutdatedReq"],
                    self.without(Rule::OutdatedIsNotApplied),
                ),
            ]);
        }
        if self.crashes > 0 {
            mutants.push(Mutant::new(
                "crash-unnoticed",
                "nobody notices that a worker died with its work half done",
                &["PartialIffWorking"],
                self.without(Rule::CrashIsAFailure),
            ));
        }
        mutants
    }
}

fn cluster_invariants() -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "PartialIffWorking",
            "the cluster is partly changed exactly while a worker changes it",
            |s: &State| {
                let at_work = s.workers.iter().any(|w| w.state == WorkerState::Working);
                at_work == (s.cluster.state == ClusterState::Partial)
            },
        ),
        Invariant::new("IdleIsLastOK", "an idle cluster has the last good version", |s: &State| {
            s.cluster.state != ClusterState::Idle || s.cluster.version == s.last_good
        }),
        Invariant::new(
            "LastOKSucceeded",
            "the last good version is the first, or its request succeeded",
            |s: &State| {
                let success = Request { state: RequestState::Success, version: Some(s.last_good) };
                s.last_good == 0 || s.requests.contains(&success)
            },
        ),
    ]
}

fn request_invariants(requests: usize) -> Vec<Invariant<State>> {
    let one_queued =
        Invariant::new("AtMostOneQueued", "at most one request is queued", |s: &State| {
            s.requests.iter().filter(|r| r.state == RequestState::Processing).count() <= 1
        });
    vec![
        Invariant::new(
            "NeverAppliedIfRefused",
            "a version that was rejected, or failed before it began, is not in the cluster",
            |s: &State| {
                let in_cluster = s.requests.iter().filter(|r| r.version == Some(s.cluster.version));
                in_cluster.into_iter().all(|request| {
                    !matches!(request.state, RequestState::Rejected | RequestState::Failure)
                })
            },
        ),
        if requests == 1 {
            one_queued.unbreakable("there is one request only")
        } else {
            one_queued
        },
        Invariant::new(
            "QueuedIsToApply",
            "a queued request is the one to be applied next",
            |s: &State| {
                let mut queued = s.requests.iter().filter(|r| r.state == RequestState::Processing);
                queued.all(|request| request.version == Some(s.to_apply))
            },
        ),
    ]
}
