//! IrsaOperator as written: one resource, its policy, role and service account, and the workers.
//!
//! Kept with its defects; `specs/seed/IrsaOperator.tla` is the text it follows.

use crate::queue::{Line, REQUESTS, Request, WorkQueue, Worker, show_workers};
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "seed/irsa-operator";
const KEYS: [SizeKey; 1] =
    [SizeKey::new("workers", "workers that reconcile side by side", 2, 1, MOST as u64)];
const MOST: usize = 4;
/// `modified` never holds more: each effect happens once, and together they announce 13 changes.
const LONGEST_MODIFIED: u32 = 13;
const LONGEST_QUEUE: u32 = REQUESTS.len() as u32;

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "an operator gives a service account its role and policy in the cloud",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(IrsaOperator::from_size(size)?)),
};

/// `policy`; each field is NULL or the one value it can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Policy {
    exists: bool,
    has_statement: bool,
    has_arn: bool,
}

/// `role`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Role {
    exists: bool,
    has_account_name: bool,
    has_role_arn: bool,
    has_policy_arn: bool,
    is_attached: bool,
}

/// `sa`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Account {
    exists: bool,
    has_name: bool,
    has_role_arn: bool,
}

/// `awsRole`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct AwsRole {
    exists: bool,
    has_policy: bool,
}

/// The variables that change; `irsa` never does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    policy: Policy,
    role: Role,
    account: Account,
    aws_policy_exists: bool,
    aws_role: AwsRole,
    queue: WorkQueue,
    workers: [Worker; MOST],
    modified: Line,
}

impl State {
    fn children_exist(&self) -> bool {
        self.policy.exists && self.role.exists && self.account.exists
    }

    fn policy_is_complete(&self) -> bool {
        self.policy.exists && self.policy.has_statement && self.policy.has_arn
    }

    fn role_is_complete(&self) -> bool {
        let role = &self.role;
        let has_arns = role.has_role_arn && role.has_policy_arn;
        role.exists && role.has_account_name && has_arns && role.is_attached
    }

    fn account_is_complete(&self) -> bool {
        self.account.exists && self.account.has_name && self.account.has_role_arn
    }

    /// `ENABLED Termination`: all is as it should be, and no worker has a request.
    fn may_terminate(&self) -> bool {
        self.workers.iter().all(|worker| *worker == Worker::default())
            && self.children_exist()
            && self.role_is_complete()
            && self.policy_is_complete()
            && self.account_is_complete()
            && self.aws_policy_exists
            && self.aws_role.exists
            && self.aws_role.has_policy
    }

    /// The same after an effect that the watch will tell of.
    fn announcing(&self, changes: &[Request], effect: impl FnOnce(&mut State)) -> State {
        let mut next = self.clone();
        effect(&mut next);
        for change in changes {
            next.modified.append(*change);
        }
        next
    }

    /// The same with a worker that is finished with its request.
    fn released(mut self, worker: usize) -> State {
        self.workers[worker].is_busy = false;
        self
    }
}

/// What a worker can do, named as in the seed.
#[derive(Debug, Clone, Copy)]
enum Does {
    Get,
    Done,
    CreatePolicy,
    CreateRole,
    CreateServiceAccount,
    PolicyHasNoARN,
    RoleHasNoRoleARN,
    RoleHasNoPolicyARN,
    RoleHasPolicyARN,
    IrsaAllDone,
    PolicyAllDone,
    RoleAllDone,
    SaAllDone,
}

const WORKER_ACTIONS: [Does; 13] = [
    Does::Get,
    Does::Done,
    Does::CreatePolicy,
    Does::CreateRole,
    Does::CreateServiceAccount,
    Does::PolicyHasNoARN,
    Does::RoleHasNoRoleARN,
    Does::RoleHasNoPolicyARN,
    Does::RoleHasPolicyARN,
    Does::IrsaAllDone,
    Does::PolicyAllDone,
    Does::RoleAllDone,
    Does::SaAllDone,
];

// Action ids: Add, then those of each worker, then Termination.
const ADD: ActionId = 0;

fn action(worker: usize, does: Does) -> ActionId {
    1 + (worker * WORKER_ACTIONS.len()) as ActionId + does as ActionId
}

/// The model, for some number of workers.
#[derive(Debug, Clone)]
pub struct IrsaOperator {
    workers: usize,
    /// Down in the mutant whose queue does not know what is in hand.
    defers_what_is_in_hand: bool,
}

impl IrsaOperator {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [workers] = size.numbers(NAME, &KEYS)?;
        Ok(IrsaOperator::new(workers as usize))
    }

    fn new(workers: usize) -> Self {
        IrsaOperator { workers, defers_what_is_in_hand: true }
    }

    fn termination(&self) -> ActionId {
        action(self.workers, Does::Get)
    }

    fn add(&self, state: &State, steps: &mut Steps<State>) {
        let mut next = state.clone();
        let Some(change) = next.modified.take_head() else { return };
        next.queue.add(change);
        steps.step(ADD, next);
    }

    fn get(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let mut next = state.clone();
        let Some(request) = next.queue.take() else { return };
        if !self.defers_what_is_in_hand {
            next.queue.processing.remove(request);
        }
        next.workers[w] = Worker { is_busy: true, request: Some(request) };
        steps.step(action(w, Does::Get), next);
    }

    fn done(&self, state: &State, w: usize, request: Request, steps: &mut Steps<State>) {
        let mut next = state.clone();
        next.workers[w] = Worker::default();
        // Without deferring, what was asked for again is in the queue already.
        if self.defers_what_is_in_hand {
            next.queue.done(request);
        }
        steps.step(action(w, Does::Done), next);
    }

    fn irsa(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        if !state.policy.exists {
            let next = state.announcing(&[Request::Policy, Request::Irsa], |s| {
                s.policy.exists = true;
                s.policy.has_statement = true;
            });
            steps.step(action(w, Does::CreatePolicy), next.released(w));
        }
        if !state.role.exists {
            let next = state.announcing(&[Request::Role, Request::Irsa], |s| {
                s.role.exists = true;
                s.role.has_account_name = true;
            });
            steps.step(action(w, Does::CreateRole), next.released(w));
        }
        if !state.account.exists && state.role_is_complete() && state.policy_is_complete() {
            let next = state.announcing(&[Request::Account, Request::Irsa], |s| {
                s.account =
                    Account { exists: true, has_name: true, has_role_arn: s.role.has_role_arn };
            });
            steps.step(action(w, Does::CreateServiceAccount), next);
        }
        if state.children_exist() {
            steps.step(action(w, Does::IrsaAllDone), state.clone().released(w));
        }
    }

    fn policy(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        if !state.policy.has_arn {
            let next = state.announcing(&[Request::Policy], |s| {
                s.policy.has_arn = s.aws_policy_exists;
                s.aws_policy_exists = true;
            });
            steps.step(action(w, Does::PolicyHasNoARN), next);
        }
        if state.policy_is_complete() {
            steps.step(action(w, Does::PolicyAllDone), state.clone().released(w));
        }
    }

    fn role(&self, state: &State, w: usize, steps: &mut Steps<State>) {
        let role = &state.role;
        if !role.has_role_arn {
            let next = state.announcing(&[Request::Role], |s| {
                s.role.has_role_arn = s.aws_role.exists;
                s.aws_role.exists = true;
            });
            steps.step(action(w, Does::RoleHasNoRoleARN), next);
        }
        if !role.has_policy_arn && state.policy.has_arn {
            let next = state.announcing(&[Request::Role], |s| s.role.has_policy_arn = true);
            steps.step(action(w, Does::RoleHasNoPolicyARN), next);
        }
        let has_arns = role.has_policy_arn && role.has_role_arn;
        if has_arns && !role.is_attached && !state.aws_role.has_policy {
            let next = state.announcing(&[Request::Role], |s| {
                s.aws_role.has_policy = true;
                s.role.is_attached = true;
            });
            steps.step(action(w, Does::RoleHasPolicyARN), next);
        }
        if state.role_is_complete() {
            steps.step(action(w, Does::RoleAllDone), state.clone().released(w));
        }
    }
}

fn or_null(is_set: bool, value: &str) -> &str {
    if is_set { value } else { "NULL" }
}

impl Model for IrsaOperator {
    type State = State;
    type Packed = u128;

    fn covers(&self) -> interlock_checker::Covers {
        interlock_checker::Covers::Seed
    }

    fn size(&self) -> String {
        format!("workers={}", self.workers)
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name.split('(').next()? {
            "deadlock" | "EventuallyDone" if self.workers == 1 => Some(
                "a worker keeps its request until the resource is complete: the only one waits \
                 with the role for a policy that nobody is left to create",
            ),
            "TerminationIsTheLastAction" => Some(
                "`[]ENABLED T ~> ...` binds as `([]ENABLED T) ~> ...`, so it asks nothing of a run \
                 in which Termination does not stay possible: it passes with the only worker stuck",
            ),
            "Termination" => {
                Some("its fairness is void: it changes nothing, so it can never be put off either")
            }
            "TypeOk" => {
                Some("Spec assumes it, as the conjunct []TypeOk, so that Spec could not break it")
            }
            "RoleHasPolicyARN" => Some(
                "it attaches the policy and notes it in one step: a crash between the two, or a \
                 policy that is attached already, would leave a role that no worker can complete",
            ),
            "NoConcurrentProcessingOfSameResource" => Some(
                "it speaks of one resource that is created once: no update, deletion, drift, error \
                 or second resource ever comes between",
            ),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        for field in [
            &mut state.policy.exists,
            &mut state.policy.has_statement,
            &mut state.policy.has_arn,
            &mut state.role.exists,
            &mut state.role.has_account_name,
            &mut state.role.has_role_arn,
            &mut state.role.has_policy_arn,
            &mut state.role.is_attached,
            &mut state.account.exists,
            &mut state.account.has_name,
            &mut state.account.has_role_arn,
            &mut state.aws_policy_exists,
            &mut state.aws_role.exists,
            &mut state.aws_role.has_policy,
        ] {
            coder.bool(field);
        }
        state.queue.code(coder, LONGEST_QUEUE);
        state.modified.code(coder, LONGEST_MODIFIED);
        for worker in &mut state.workers[..self.workers] {
            worker.code(coder);
        }
    }

    fn initial(&self) -> Vec<State> {
        vec![State { modified: Line::of(&[Request::Irsa]), ..State::default() }]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::new("Add", "watch").to("work queue")];
        for w in 0..self.workers {
            actions.extend(WORKER_ACTIONS.iter().map(|does| {
                let action = Action::new(format!("{does:?}(\"w{w}\")"), format!("worker w{w}"));
                match does {
                    Does::Get | Does::Done => action.to("work queue"),
                    Does::CreatePolicy
                    | Does::CreateRole
                    | Does::CreateServiceAccount
                    | Does::RoleHasNoPolicyARN => action.to("API server"),
                    Does::PolicyHasNoARN | Does::RoleHasNoRoleARN | Does::RoleHasPolicyARN => {
                        action.to("AWS")
                    }
                    Does::IrsaAllDone
                    | Does::PolicyAllDone
                    | Does::RoleAllDone
                    | Does::SaAllDone => action,
                }
            }));
        }
        actions.push(Action::new("Termination", "everyone"));
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.add(state, steps);
        for (w, worker) in state.workers[..self.workers].iter().enumerate() {
            match (worker.is_busy, worker.request) {
                (false, None) => self.get(state, w, steps),
                (false, Some(request)) => self.done(state, w, request, steps),
                (true, Some(Request::Irsa)) => self.irsa(state, w, steps),
                (true, Some(Request::Policy)) => self.policy(state, w, steps),
                (true, Some(Request::Role)) => self.role(state, w, steps),
                (true, Some(Request::Account)) => {
                    if state.account_is_complete() {
                        steps.step(action(w, Does::SaAllDone), state.clone().released(w));
                    }
                }
                (true, None) => {}
            }
        }
        if state.may_terminate() {
            steps.step(self.termination(), state.clone());
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let State { policy, role, account, aws_role, .. } = state;
        vec![
            (
                "irsa",
                "[st |-> \"NULL\", saName |-> \"saName\", stmt |-> \"statement\", \
                 roleARN |-> \"NULL\", policyARN |-> \"NULL\"]"
                    .to_owned(),
            ),
            (
                "policy",
                format!(
                    "[st |-> \"{}\", stmt |-> \"{}\", awsPolicyArn |-> \"{}\"]",
                    or_null(policy.exists, "pending"),
                    or_null(policy.has_statement, "statement"),
                    or_null(policy.has_arn, "policyARN")
                ),
            ),
            (
                "role",
                format!(
                    "[st |-> \"{}\", saName |-> \"{}\", roleArn |-> \"{}\", policyArn |-> \"{}\", \
                     policiesAttached |-> {}]",
                    or_null(role.exists, "pending"),
                    or_null(role.has_account_name, "saName"),
                    or_null(role.has_role_arn, "roleARN"),
                    or_null(role.has_policy_arn, "policyARN"),
                    if role.is_attached { "TRUE" } else { "FALSE" }
                ),
            ),
            (
                "sa",
                format!(
                    "[st |-> \"{}\", roleArn |-> \"{}\", name |-> \"{}\"]",
                    or_null(account.exists, "pending"),
                    or_null(account.has_role_arn, "roleARN"),
                    or_null(account.has_name, "saName")
                ),
            ),
            (
                "awsPolicy",
                format!("[arn |-> \"{}\"]", or_null(state.aws_policy_exists, "policyARN")),
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
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        let workers = self.workers;
        let one_at_a_time = Invariant::new(
            "NoConcurrentProcessingOfSameResource",
            "no two workers have the same resource in hand while one works on it",
            move |s: &State| {
                (0..workers).all(|w| {
                    let is_alone =
                        |x: usize| x == w || s.workers[x].request != s.workers[w].request;
                    !s.workers[w].is_busy || (0..workers).all(is_alone)
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
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let ended = |this: Self| {
            move |state: &State| {
                let mut steps = Steps::default();
                this.next(state, &mut steps);
                let termination = this.termination();
                state.may_terminate()
                    && steps.as_slice().iter().all(|step| step.action == termination)
            }
        };
        vec![
            Property::new(
                "TerminationIsTheLastAction",
                "once Termination stays possible, in the end nothing else is",
                Formula::always_leads_to(State::may_terminate, ended(self.clone())),
            ),
            Property::new(
                "LastActionAsMeant",
                "once Termination is possible, in the end nothing else is (ours: bound as it was meant)",
                Formula::leads_to(State::may_terminate, ended(self.clone())),
            ),
            Property::new(
                "EventuallyDone",
                "in the end everything is as asked for, and stays so (ours; the seed does not ask)",
                Formula::eventually_always(State::may_terminate),
            ),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let actions = self.actions().into_iter().zip(0..);
        actions.map(|(action, id)| Fairness::weak(action.name, [id])).collect()
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
        let mut state = State {
            policy: Policy { exists: rng.flip(), has_statement: rng.flip(), has_arn: rng.flip() },
            role: Role {
                exists: rng.flip(),
                has_account_name: rng.flip(),
                has_role_arn: rng.flip(),
                has_policy_arn: rng.flip(),
                is_attached: rng.flip(),
            },
            account: Account { exists: rng.flip(), has_name: rng.flip(), has_role_arn: rng.flip() },
            aws_policy_exists: rng.flip(),
            aws_role: AwsRole { exists: rng.flip(), has_policy: rng.flip() },
            // Short enough for the steps out of it to pack as well.
            queue: WorkQueue::arbitrary(rng, LONGEST_QUEUE as usize - 1),
            modified: Line::arbitrary(rng, LONGEST_MODIFIED as usize - 2),
            workers: [Worker::default(); MOST],
        };
        for worker in &mut state.workers[..self.workers] {
            *worker = Worker::arbitrary(rng);
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        if self.workers == 1 {
            return Vec::new();
        }
        vec![Mutant::new(
            "queue-without-memory",
            "the work queue does not know which requests are in hand, and hands them out again",
            &["NoConcurrentProcessingOfSameResource"],
            IrsaOperator { defers_what_is_in_hand: false, ..self.clone() },
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_checker::reference;
    use interlock_checker::symmetry::assert_symmetric;

    #[test]
    fn the_counts_are_those_of_tlc() {
        for (workers, generated, distinct, depth) in [
            (1, 575, 319, 50),
            (2, 19_180, 7_053, 48),
            (3, 107_848, 31_292, 48),
            (4, 335_727, 87_622, 48),
        ] {
            let counts = reference::explore(&IrsaOperator::new(workers));
            assert_eq!(
                (counts.generated, counts.distinct, counts.depth),
                (generated, distinct, depth),
                "workers={workers}"
            );
            assert_eq!(counts.violated, []);
        }
    }

    #[test]
    fn the_only_worker_is_stuck_after_eleven_steps() {
        assert_eq!(reference::explore(&IrsaOperator::new(1)).deadlock, Some(12));
        assert_eq!(reference::explore(&IrsaOperator::new(2)).deadlock, None);
    }

    #[test]
    fn a_queue_that_forgets_what_is_in_hand_is_noticed() {
        for mutant in IrsaOperator::new(2).mutants() {
            let counts = reference::explore(&mutant.model);
            assert_eq!(counts.violated, [("NoConcurrentProcessingOfSameResource", 12)]);
        }
    }

    #[test]
    fn the_first_state_reads_as_the_seed_would_print_it() {
        let model = IrsaOperator::new(2);
        let described = model.describe(&model.initial()[0]);
        let value = |name| &described.iter().find(|(variable, _)| *variable == name).unwrap().1;
        assert_eq!(value("wq"), "[dirty |-> {}, processing |-> {}, queue |-> <<>>]");
        assert_eq!(value("modified"), "<<\"irsa\">>");
        assert_eq!(
            value("workers"),
            "[w0 |-> [req |-> \"NULL\", idle |-> TRUE], w1 |-> [req |-> \"NULL\", idle |-> TRUE]]"
        );
    }

    #[test]
    fn any_state_of_the_largest_size_comes_back_from_its_bits() {
        let (model, mut rng) = (IrsaOperator::new(MOST), Rng::new(1));
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }

    #[test]
    fn the_workers_are_interchangeable() {
        assert_symmetric(&IrsaOperator::new(3));
    }
}
