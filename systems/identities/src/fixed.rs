//! IrsaOperator corrected: a pass has at most one effect, and the worker is always given back.
//!
//! Calls to the cloud and writes to Kubernetes are separate steps; the operator may restart between
//! them, the cloud may drift, the user may edit. `specs/fixed/IrsaOperatorFixed.tla` is its text.

mod steps;
#[cfg(test)]
mod tests;

use crate::queue::{Line, REQUESTS, Request, RequestSet, WorkQueue, Worker, show_workers};
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "fixed/irsa-operator";
const KEYS: [SizeKey; 4] = [
    SizeKey::new("workers", "workers that reconcile side by side", 1, 1, MOST as u64),
    SizeKey::new("crashes", "how often the operator may restart", 1, 0, 3),
    SizeKey::new("drifts", "how often the cloud may change by itself", 1, 0, 3),
    SizeKey::new("edits", "how often the user may change the statement", 1, 0, 3),
];
const MOST: usize = 4;
/// Neither `modified` nor the queue holds a request twice.
const LONGEST: u32 = REQUESTS.len() as u32;

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "an operator keeps role, policy and service account as asked for, whatever happens",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(IrsaOperator::from_size(size)?)),
};

/// What a policy allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Statement {
    /// What the user asked for first.
    #[default]
    S1,
    /// What an edit makes of it; the next edit makes it the first again.
    S2,
    /// Nobody asked for this.
    Other,
}

const WANTED: [Statement; 2] = [Statement::S1, Statement::S2];
const IN_POLICY: [Option<Statement>; 3] = [None, Some(Statement::S1), Some(Statement::S2)];
const IN_AWS: [Option<Statement>; 4] =
    [None, Some(Statement::S1), Some(Statement::S2), Some(Statement::Other)];

impl Statement {
    fn name(self) -> &'static str {
        match self {
            Statement::S1 => "s1",
            Statement::S2 => "s2",
            Statement::Other => "other",
        }
    }
}

/// `irsa`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Irsa {
    is_ok: bool,
    statement: Statement,
}

/// `policy`; it exists iff it has a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Policy {
    statement: Option<Statement>,
    has_arn: bool,
}

/// `role`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Role {
    exists: bool,
    has_role_arn: bool,
    has_policy_arn: bool,
    is_attached: bool,
}

/// `sa`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Account {
    exists: bool,
    has_role_arn: bool,
}

/// `awsRole`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct AwsRole {
    exists: bool,
    has_policy: bool,
}

/// How many faults there were: `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Faults {
    crashes: u8,
    drifts: u8,
    edits: u8,
}

/// The variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    irsa: Irsa,
    policy: Policy,
    role: Role,
    account: Account,
    /// `awsPolicy`; it exists iff it has a statement.
    aws_policy: Option<Statement>,
    aws_role: AwsRole,
    queue: WorkQueue,
    workers: [Worker; MOST],
    modified: Line,
    faults: Faults,
}

impl State {
    fn policy_is_complete(&self) -> bool {
        self.policy.statement == Some(self.irsa.statement) && self.policy.has_arn
    }

    fn role_is_complete(&self) -> bool {
        let role = &self.role;
        role.exists && role.has_role_arn && role.has_policy_arn && role.is_attached
    }

    /// `Matches`: Kubernetes and the cloud are as the user asked.
    fn is_as_asked(&self) -> bool {
        self.irsa.is_ok
            && self.policy_is_complete()
            && self.role_is_complete()
            && self.account == Account { exists: true, has_role_arn: true }
            && self.aws_policy == Some(self.irsa.statement)
            && self.aws_role == AwsRole { exists: true, has_policy: true }
    }

    /// `Quiet`: nobody has anything to do.
    fn is_quiet(&self) -> bool {
        self.modified.is_empty()
            && self.queue.queue.is_empty()
            && self.queue.dirty.is_empty()
            && self.workers.iter().all(|worker| worker.request.is_none())
    }

    /// `Converged`
    fn has_converged(&self) -> bool {
        self.is_as_asked() && self.is_quiet()
    }

    /// The watch will tell of these changes; one that it has yet to tell is not told twice.
    fn announce(&mut self, changes: &[Request]) {
        for change in changes {
            if self.modified.iter().all(|waiting| waiting != *change) {
                self.modified.append(*change);
            }
        }
    }
}

/// What a worker can do, named as in the specification.
#[derive(Debug, Clone, Copy)]
enum Does {
    Get,
    Done,
    Irsa,
    Policy,
    Role,
    Sa,
}

const WORKER_ACTIONS: [Does; 6] =
    [Does::Get, Does::Done, Does::Irsa, Does::Policy, Does::Role, Does::Sa];

// Action ids: these, then those of each worker.
const ADD: ActionId = 0;
const RESYNC_STEP: ActionId = 1;
const RESTART: ActionId = 2;
const DRIFT: ActionId = 3;
const EDIT: ActionId = 4;
const WORKER: ActionId = 5;

fn action(worker: usize, does: Does) -> ActionId {
    WORKER + (worker * WORKER_ACTIONS.len()) as ActionId + does as ActionId
}

/// A rule that a mutant breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Resync,
    WorkerIsGivenBack,
    QueueKnowsWhatIsInHand,
    AccountComesLast,
    LeftoverIsCompared,
    EditReachesPolicy,
}

/// The model, for some number of workers and of faults.
#[derive(Debug, Clone)]
pub struct IrsaOperator {
    workers: usize,
    most: Faults,
    broken: Option<Rule>,
}

impl IrsaOperator {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [workers, crashes, drifts, edits] = size.numbers(NAME, &KEYS)?;
        let most = Faults { crashes: crashes as u8, drifts: drifts as u8, edits: edits as u8 };
        Ok(IrsaOperator { workers: workers as usize, most, broken: None })
    }

    fn without(&self, rule: Rule) -> Self {
        IrsaOperator { broken: Some(rule), ..self.clone() }
    }

    fn keeps(&self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }
}

fn or_null(is_set: bool, value: &str) -> &str {
    if is_set { value } else { "NULL" }
}

impl Model for IrsaOperator {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        let Faults { crashes, drifts, edits } = self.most;
        format!("workers={},crashes={crashes},drifts={drifts},edits={edits}", self.workers)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        coder.bool(&mut state.irsa.is_ok);
        coder.of(&mut state.irsa.statement, &WANTED);
        coder.of(&mut state.policy.statement, &IN_POLICY);
        coder.bool(&mut state.policy.has_arn);
        coder.bool(&mut state.role.exists);
        coder.bool(&mut state.role.has_role_arn);
        coder.bool(&mut state.role.has_policy_arn);
        coder.bool(&mut state.role.is_attached);
        coder.bool(&mut state.account.exists);
        coder.bool(&mut state.account.has_role_arn);
        coder.of(&mut state.aws_policy, &IN_AWS);
        coder.bool(&mut state.aws_role.exists);
        coder.bool(&mut state.aws_role.has_policy);
        state.queue.code(coder, LONGEST);
        state.modified.code(coder, LONGEST);
        coder.u8(&mut state.faults.crashes, 2);
        coder.u8(&mut state.faults.drifts, 2);
        coder.u8(&mut state.faults.edits, 2);
        for worker in &mut state.workers[..self.workers] {
            worker.code(coder);
        }
    }

    fn initial(&self) -> Vec<State> {
        let first = State { modified: Line::of(&[Request::Irsa]), ..State::default() };
        // The policy is absent, or left over from somebody else and different.
        let left_over = State { aws_policy: Some(Statement::Other), ..first.clone() };
        vec![first, left_over]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![
            Action::new("Add", "watch").to("work queue"),
            Action::new("ResyncStep", "watch"),
            Action::new("Restart", "operator"),
            Action::new("Drift", "AWS"),
            Action::new("Edit", "user").to("API server"),
        ];
        for w in 0..self.workers {
            actions.extend(WORKER_ACTIONS.iter().map(|does| {
                let action = Action::new(format!("{does:?}(\"w{w}\")"), format!("worker w{w}"));
                match does {
                    Does::Get | Does::Done => action.to("work queue"),
                    Does::Irsa => action.to("API server"),
                    Does::Policy | Does::Role => action.to("AWS"),
                    Does::Sa => action,
                }
            }));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.work_queue(state, steps);
        for w in 0..self.workers {
            self.worker(state, w, steps);
        }
        self.faults(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let State { irsa, policy, role, account, aws_role, faults, .. } = state;
        let statement = |statement: Option<Statement>| statement.map_or("NULL", Statement::name);
        vec![
            (
                "irsa",
                format!(
                    "[st |-> \"{}\", stmt |-> \"{}\"]",
                    or_null(irsa.is_ok, "ok"),
                    irsa.statement.name()
                ),
            ),
            (
                "policy",
                format!(
                    "[st |-> \"{}\", stmt |-> \"{}\", awsPolicyArn |-> \"{}\"]",
                    or_null(policy.statement.is_some(), "pending"),
                    statement(policy.statement),
                    or_null(policy.has_arn, "policyARN")
                ),
            ),
            (
                "role",
                format!(
                    "[st |-> \"{}\", roleArn |-> \"{}\", policyArn |-> \"{}\", \
                     policiesAttached |-> {}]",
                    or_null(role.exists, "pending"),
                    or_null(role.has_role_arn, "roleARN"),
                    or_null(role.has_policy_arn, "policyARN"),
                    if role.is_attached { "TRUE" } else { "FALSE" }
                ),
            ),
            (
                "sa",
                format!(
                    "[st |-> \"{}\", roleArn |-> \"{}\"]",
                    or_null(account.exists, "pending"),
                    or_null(account.has_role_arn, "roleARN")
                ),
            ),
            (
                "awsPolicy",
                format!(
                    "[arn |-> \"{}\", stmt |-> \"{}\"]",
                    or_null(state.aws_policy.is_some(), "policyARN"),
                    statement(state.aws_policy)
                ),
            ),
            (
                "awsRole",
                format!(
                    "[arn |-> \"{}\", attachedPolicy |-> \"{}\"]",
                    or_null(aws_role.exists, "roleARN"),
                    or_null(aws_role.has_policy, "policyARN")
                ),
            ),
            ("wq", state.queue.show()),
            ("workers", show_workers(&state.workers[..self.workers])),
            ("modified", state.modified.show()),
            (
                "n",
                format!(
                    "[crash |-> {}, drift |-> {}, edit |-> {}]",
                    faults.crashes, faults.drifts, faults.edits
                ),
            ),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let (this, workers) = (self.clone(), self.workers);
        let one_at_a_time = Invariant::new(
            "NoConcurrentProcessingOfSameResource",
            "no two workers have the same resource in hand",
            |s: &State| {
                let in_hand: Vec<Request> = s.workers.iter().filter_map(|w| w.request).collect();
                in_hand.iter().enumerate().all(|(at, request)| !in_hand[..at].contains(request))
            },
        );
        let no_wedge = Invariant::new(
            "NoWedge",
            "a worker with a request in hand can always get on with it",
            move |s: &State| {
                (0..workers).all(|w| {
                    let at_work = s.workers[w].works_on();
                    at_work.is_none_or(|request| this.pass(s, w, request).is_some())
                })
            },
        );
        vec![
            Invariant::new("TypeOk", "every field has one of the values meant for it", |_| true)
                .unbreakable("the types of the model say it"),
            if workers == 1 {
                one_at_a_time.unbreakable("one worker has nobody to collide with")
            } else {
                one_at_a_time
            },
            Invariant::new(
                "WorkqueueOK",
                "the queue holds each request once, and knows exactly what is in hand",
                work_queue_is_sound,
            ),
            if self.keeps(Rule::WorkerIsGivenBack) {
                no_wedge.unbreakable("a pass gives the worker back whatever it finds")
            } else {
                no_wedge
            },
            Invariant::new(
                "SaOnlyWithRole",
                "a service account is never made without the ARN of its role",
                |s: &State| !s.account.exists || s.account.has_role_arn,
            ),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        vec![Property::new(
            "Converges",
            "in the end all is as asked for and nobody has anything to do",
            Formula::eventually_always(State::has_converged),
        )]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let mut fairness =
            vec![Fairness::weak("Add", [ADD]), Fairness::weak("ResyncStep", [RESYNC_STEP])];
        for w in 0..self.workers {
            let name = |does: Does| format!("{does:?}(\"w{w}\")");
            let passes = [Does::Irsa, Does::Policy, Does::Role, Does::Sa];
            fairness.extend([
                Fairness::weak(name(Does::Get), [action(w, Does::Get)]),
                Fairness::weak(name(Does::Done), [action(w, Does::Done)]),
                Fairness::weak(passes.map(name).join(" \\/ "), passes.map(|does| action(w, does))),
            ]);
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        state.has_converged()
    }

    fn symmetries(&self) -> usize {
        arrangements(self.workers) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [usize; MOST] = arrangement(self.workers, permutation + 1);
        let mut image = state.clone();
        for (worker, place) in state.workers.iter().zip(places) {
            image.workers[place] = *worker;
        }
        image
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let mut below = |most: u8| rng.below(usize::from(most) + 1) as u8;
        let faults = Faults {
            crashes: below(self.most.crashes),
            drifts: below(self.most.drifts),
            edits: below(self.most.edits),
        };
        let mut state = State {
            irsa: Irsa { is_ok: rng.flip(), statement: WANTED[rng.below(WANTED.len())] },
            policy: Policy {
                statement: IN_POLICY[rng.below(IN_POLICY.len())],
                has_arn: rng.flip(),
            },
            role: Role {
                exists: rng.flip(),
                has_role_arn: rng.flip(),
                has_policy_arn: rng.flip(),
                is_attached: rng.flip(),
            },
            account: Account { exists: rng.flip(), has_role_arn: rng.flip() },
            aws_policy: IN_AWS[rng.below(IN_AWS.len())],
            aws_role: AwsRole { exists: rng.flip(), has_policy: rng.flip() },
            // Short enough for the steps out of it to pack as well.
            queue: WorkQueue::arbitrary(rng, LONGEST as usize - 1),
            workers: [Worker::default(); MOST],
            modified: Line::default(),
            faults,
        };
        for _ in 0..rng.below(REQUESTS.len() + 1) {
            state.announce(&[REQUESTS[rng.below(REQUESTS.len())]]);
        }
        for worker in &mut state.workers[..self.workers] {
            *worker = Worker::arbitrary(rng);
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let mut mutants = vec![
            Mutant::new(
                "stuck-worker",
                "a worker keeps its request in hand while it waits for another resource",
                &["NoWedge"],
                self.without(Rule::WorkerIsGivenBack),
            ),
            Mutant::new(
                "queue-without-memory",
                "the work queue does not know which requests are in hand, and hands them out again",
                &["WorkqueueOK", "NoConcurrentProcessingOfSameResource"],
                self.without(Rule::QueueKnowsWhatIsInHand),
            ),
            Mutant::new(
                "early-account",
                "the service account is made before its role and policy are complete",
                &["SaOnlyWithRole"],
                self.without(Rule::AccountComesLast),
            ),
            Mutant::new(
                "leftover-kept",
                "a policy that is in the cloud already is taken for ours, whatever it allows",
                &["Converges"],
                self.without(Rule::LeftoverIsCompared),
            ),
        ];
        if self.most.drifts > 0 {
            mutants.push(Mutant::new(
                "no-resync",
                "no requeue once nothing changes",
                &["Converges"],
                self.without(Rule::Resync),
            ));
        }
        if self.most.edits > 0 {
            mutants.push(Mutant::new(
                "edit-ignored",
                "an edit does not reach a policy that exists",
                &["Converges"],
                self.without(Rule::EditReachesPolicy),
            ));
        }
        mutants
    }
}

fn work_queue_is_sound(state: &State) -> bool {
    let WorkQueue { dirty, processing, queue } = state.queue;
    let queued: RequestSet = queue.iter().collect();
    let in_hand: RequestSet = state.workers.iter().filter_map(|worker| worker.request).collect();
    queued.iter().count() == queue.length() as usize
        && queued.iter().all(|request| dirty.contains(request))
        && dirty.iter().all(|request| queued.contains(request) || processing.contains(request))
        && processing == in_hand
}
