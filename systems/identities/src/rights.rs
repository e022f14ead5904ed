//! Rights that follow the Grant: the trust of one role is rewritten for each epoch of its namespace.
//!
//! Calls land late, reads and sessions rest on an older state for a while, two processes act, each
//! may crash between a call and its record, a forced owner runs on, and its token is tried at any
//! time. `specs/protocol/IdentitiesRights.tla` is the text it follows. W is no clock here: `Quiesce`
//! and `PassT` say what has passed when it is over.

mod promises;
pub(crate) mod state;
mod steps;
#[cfg(test)]
mod tests;

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Reachable, Rng,
    Size, SizeError, SizeKey, Steps,
};
pub use state::State;
use state::{DEAD, Phase};

const NAME: &str = "spec/identities-rights";
const MOST_INSTANCES: usize = 2;
const MOST_EPOCHS: u8 = 3;
const KEYS: [SizeKey; 5] = [
    SizeKey::new("instances", "processes that may act", 2, 1, MOST_INSTANCES as u64),
    SizeKey::new("epochs", "times that the namespace is granted", 2, 1, MOST_EPOCHS as u64),
    SizeKey::new("forced", "owners that lose it by force", 1, 0, MOST_EPOCHS as u64 - 1),
    SizeKey::new("faults", "crashes, marks taken over and answers lost, together", 2, 0, 3),
    SizeKey::new("same", "1: it is granted to the same cluster each time", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the trust of a role follows the grant, and forced owners lose their sessions",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(IdentitiesRights::from_size(size)?)),
};

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The Grant is read live before each call and each claim.
    pub live_grant: bool,
    /// The trust of the next owner is written only after the release.
    pub after_release: bool,
    /// A call is sent under the mark of this very process only.
    pub own_mark: bool,
    /// The mark is read live before the call.
    pub live_mark: bool,
    /// A mark that was taken over is waited out.
    pub wait_other: bool,
    /// An unanswered call of one's own about the trust is waited out.
    pub wait_own: bool,
    /// An epoch is permitted only when the rights are ready for it.
    pub await_rights: bool,
    /// A forced epoch is fenced before a later one is opened.
    pub fence: bool,
    /// The trust is closed before the time of the fence is recorded.
    pub close_first: bool,
    /// "Closed" is taken from a read only when nothing that was sent can still land.
    pub believe_quiet: bool,
    /// The time of the fence is so late that no session is issued after it through an old trust.
    pub fence_later: bool,
    /// The next owner is opened only when that time has passed.
    pub wait_fence: bool,
    /// Each fence has a name of its own.
    pub own_name: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        live_grant: true,
        after_release: true,
        own_mark: true,
        live_mark: true,
        wait_other: true,
        wait_own: true,
        await_rights: true,
        fence: true,
        close_first: true,
        believe_quiet: true,
        fence_later: true,
        wait_fence: true,
        own_name: true,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct IdentitiesRights {
    instances: usize,
    epochs: u8,
    forced: u8,
    faults: u8,
    same_cluster: bool,
    rules: Rules,
    more: More,
}

/// What the rooms that ship do, and the text does not: the promises hold with it, too (decision 27).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct More {
    /// A trust that is known to be closed may be closed again.
    closes_again: bool,
    /// Faults are as many as there are.
    any_faults: bool,
}

// Action ids: those of placement and of the cloud, what happens to the calls of each sender, a
// session for each epoch, then each kind for each process. `Take` is the part of `Mark` that is
// fair: a mark that no process which is there holds.
const ALONE: [&str; 9] =
    ["Revoke", "Release", "Force", "Grant", "Permit", "Stop(A)", "Stop(B)", "Settle", "PassT"];
const REVOKE: ActionId = 0;
const RELEASE: ActionId = 1;
const FORCE: ActionId = 2;
const GRANT: ActionId = 3;
const PERMIT: ActionId = 4;
const STOP: ActionId = 5;
const SETTLE: ActionId = 7;
const PASS_T: ActionId = 8;
const OF_SENDER: [&str; 2] = ["Land", "Drop"];
const LAND: u16 = 0;
const DROP: u16 = 1;
const OF_INSTANCE: [&str; 10] = [
    "Take",
    "Mark",
    "Look",
    "WriteReady",
    "WriteFenced",
    "Send",
    "Answer",
    "GiveUp",
    "Quiesce",
    "Crash",
];
const TAKE: u16 = 0;
const MARK: u16 = 1;
const LOOK: u16 = 2;
const WRITE_READY: u16 = 3;
const WRITE_FENCED: u16 = 4;
const SEND: u16 = 5;
const ANSWER: u16 = 6;
const GIVE_UP: u16 = 7;
const QUIESCE: u16 = 8;
const CRASH: u16 = 9;

impl IdentitiesRights {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(IdentitiesRights::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([instances, epochs, forced, faults, same]: [u8; 5], rules: Rules) -> Self {
        let (instances, same_cluster) = (usize::from(instances), same == 1);
        let more = More::default();
        IdentitiesRights { instances, epochs, forced, faults, same_cluster, rules, more }
    }

    /// The protocol as the rooms that ship have it, for so many processes: what their world is compared with.
    pub(crate) fn shipped(instances: usize, epochs: u8, same_cluster: bool) -> Self {
        let same = u8::from(same_cluster);
        let size = [instances as u8, epochs, MOST_EPOCHS - 1, 1, same];
        let more = More { closes_again: true, any_faults: true };
        IdentitiesRights { more, ..IdentitiesRights::new(size, Rules::ALL) }
    }

    /// What a fault adds to those that there were.
    fn fault(&self) -> u8 {
        u8::from(!self.more.any_faults)
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    /// The cluster that an epoch is granted to: A is 0, B is 1.
    fn owner(&self, epoch: u8) -> usize {
        usize::from(!self.same_cluster && epoch.is_multiple_of(2))
    }

    fn is_forced_ever(&self) -> bool {
        self.forced > 0 && self.epochs > 1
    }

    /// The senders: the processes, and those who died.
    fn senders(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.instances).chain([DEAD])
    }

    fn of_sender(&self, kind: u16, sender: usize) -> ActionId {
        let each = self.instances as u16 + 1;
        ALONE.len() as u16 + kind * each + sender.min(self.instances) as u16
    }

    fn assume(&self, epoch: u8) -> ActionId {
        self.of_sender(OF_SENDER.len() as u16, 0) + u16::from(epoch) - 1
    }

    fn of_instance(&self, kind: u16, instance: usize) -> ActionId {
        self.assume(self.epochs + 1) + kind * self.instances as u16 + instance as u16
    }
}

impl Model for IdentitiesRights {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        let IdentitiesRights { instances, epochs, forced, faults, .. } = self;
        let same = u8::from(self.same_cluster);
        format!("instances={instances},epochs={epochs},forced={forced},faults={faults},same={same}")
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Crash" | "GiveUp" | "Drop" | "Land" if self.faults == 0 => {
                Some("this size has no faults")
            }
            "Mark" if self.faults == 0 || self.instances == 1 => {
                Some("a mark is taken over by another process, which is a fault")
            }
            "Revoke" | "Release" | "Grant" | "Stop" if self.epochs == 1 => {
                Some("this size has one epoch")
            }
            "Stop" => Some("a cluster that has the last epoch only is not stopped"),
            "Force" | "PassT" | "WriteFenced" if !self.is_forced_ever() => {
                Some("nothing is forced in this size")
            }
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(self.instances, coder);
        match self.rules.live_grant {
            true => state.history = state::FIRST,
            false => coder.u16(&mut state.history, 4 * u32::from(MOST_EPOCHS)),
        }
    }

    fn initial(&self) -> Vec<State> {
        vec![State::first()]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions: Vec<Action> = ALONE
            .into_iter()
            .map(|name| match name {
                "Revoke" | "Release" | "Force" | "Grant" => Action::new(name, "hub"),
                "Permit" => Action::new(name, "syncer").to("hub"),
                "Settle" | "PassT" => Action::new(name, "cloud"),
                _ => Action::new(name, "syncer"),
            })
            .collect();
        let named = |sender: usize| match sender {
            DEAD => "dead".to_owned(),
            i => format!("i{}", i + 1),
        };
        for name in OF_SENDER {
            let each = self.senders().map(|sender| format!("{name}({})", named(sender)));
            actions.extend(each.map(|name| Action::new(name, "network").to("cloud")));
        }
        let sessions = (1..=self.epochs).map(|epoch| format!("Assume({epoch})"));
        actions.extend(sessions.map(|name| Action::new(name, "workload").to("cloud")));
        for (kind, name) in (0..).zip(OF_INSTANCE) {
            actions.extend((1..=self.instances).map(|i| {
                let (name, process) = (format!("{name}(i{i})"), format!("process i{i}"));
                match kind {
                    TAKE | MARK | WRITE_READY | WRITE_FENCED => {
                        Action::new(name, process).to("hub")
                    }
                    LOOK | SEND => Action::new(name, process).to("cloud"),
                    ANSWER => Action::new(name, "cloud").to(process),
                    CRASH => Action::new(name, "world").to(process),
                    _ => Action::new(name, process),
                }
            }));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.placement_steps(state, steps);
        self.cloud_steps(state, steps);
        for sender in self.senders() {
            self.flight_steps(state, sender, steps);
        }
        for instance in 0..self.instances {
            self.mark_steps(state, instance, steps);
            self.look_steps(state, instance, steps);
            self.pending_steps(state, instance, steps);
            self.crash_steps(state, instance, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        state.describe(self.instances)
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        promises::invariants()
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        if !self.is_forced_ever() || self.same_cluster {
            return Vec::new();
        }
        vec![Reachable::new(
            "ForcedOwnerRunsOn",
            "the forced owner still runs, the next one runs, and a session of the first is denied",
            |s: &State| s.running == [1, 2] && s.forced == 1 && s.sessions().any(|it| s.denies(it)),
        )]
    }

    fn properties(&self) -> Vec<Property<State>> {
        self.all_properties()
    }

    fn fairness(&self) -> Vec<Fairness> {
        let all = self.actions();
        let fair = |action: ActionId| Fairness::weak(&*all[usize::from(action)].name, [action]);
        let takes = (0..self.instances).map(|instance| self.of_instance(TAKE, instance));
        let ends = self.senders().flat_map(|sender| {
            [LAND, DROP].map(|kind| self.of_sender(kind, sender)) //
        });
        let mut fairness =
            vec![Fairness::weak("Take", takes), Fairness::weak("Land \\/ Drop", ends)];
        fairness.extend([SETTLE, PASS_T, PERMIT, RELEASE, STOP, STOP + 1].map(fair));
        for instance in 0..self.instances {
            for kind in [LOOK, WRITE_READY, WRITE_FENCED, SEND, ANSWER, QUIESCE] {
                fairness.push(fair(self.of_instance(kind, instance)));
            }
        }
        fairness
    }

    /// The last owner has what it needs, and nobody is to take it away.
    fn may_rest(&self, state: &State) -> bool {
        state.grant.epoch == self.epochs && state.grant.phase == Phase::Granted
    }

    fn symmetries(&self) -> usize {
        arrangements(self.instances) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [_; MOST_INSTANCES] = arrangement(self.instances, permutation + 1);
        state.renamed(&places[..self.instances])
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let mut state = State::any(self.instances, self.epochs, self.faults, rng);
        if self.rules.live_grant {
            state.history = state::FIRST;
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.all_mutants()
    }
}
