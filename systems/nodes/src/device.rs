//! One node and its ports: what each DPU's driver records of its port decides which calls take effect.
//!
//! Agents keep nothing between steps, and a call may outlive the step that made it: it lands late,
//! once or more often. The record of a port names the node and the floor of the port; a record that
//! was lost, or is of another boot, refuses older calls. `specs/protocol/NodesDevice.tla` is the text it follows.

mod promises;
pub(crate) mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use state::State;

use interlock_checker::symmetry::arrangements;
use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Rng, Size, SizeError,
    SizeKey, StepRule, Steps,
};
use state::{MOST_DPUS, MOST_EPOCHS, MOST_FAULTS, MOST_TENANTS, MOST_UIDS, Phase};
use steps::{FINISH, OF_DPU, OfDpu};

const NAME: &str = "spec/nodes-device";
const KEYS: [SizeKey; 6] = [
    SizeKey::new("tenants", "tenants that may be given the node", 2, 1, MOST_TENANTS as u64),
    SizeKey::new("dpus", "DPUs that the node is wired through", 2, 1, MOST_DPUS as u64),
    SizeKey::new("epochs", "times that the node is given away", 2, 1, MOST_EPOCHS as u64),
    SizeKey::new("uids", "2: the node is replaced by force, once", 1, 1, MOST_UIDS as u64),
    SizeKey::new("faults", "what goes wrong, all together", 1, 0, MOST_FAULTS as u64),
    SizeKey::new("born", "1: it begins in the pool, with all records made", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "each DPU records whose port it is and its floor, and late calls change nothing",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(NodesDevice::from_size(size)?)),
};

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Attach compares with the floor of the port.
    pub device_floor: bool,
    /// A report names the floor of the port, not that of the hub.
    pub raise_first: bool,
    /// A report looks at what is programmed, too.
    pub read_back: bool,
    /// Isolate closes the port in the step that raises the floor.
    pub close_first: bool,
    /// The floor survives when an agent starts anew.
    pub durable_floor: bool,
    /// Attach follows a live read of the hub.
    pub look_first: bool,
    /// The driver compares the uid of the node.
    pub tag_uid: bool,
    /// The hub counts reports and evidence for the present uid only.
    pub report_uid: bool,
    /// A record that was lost, or is of another boot, refuses older calls.
    pub term: bool,
    /// Attach compares and programs under one lock.
    pub port_lock: bool,
    /// A lost floor starts at that of the hub.
    pub adopt_floor: bool,
    /// Hardware comes up closed.
    pub closed_boot: bool,
    /// Power seen off counts for epochs that were revoked before.
    pub fresh_evidence: bool,
    /// An attachment names the tenant that the hub names.
    pub exact_match: bool,
    /// The floor of a port rises to the floor of the hub, not to the epoch that is given.
    pub floor_of_hub: bool,
    /// A record that is lost, or of another node, is made anew.
    pub adopts: bool,
    /// Power goes; one fault fewer where it does not.
    pub power_fails: bool,
    /// Three steps more, and faults are not counted: what the controllers that ship do beside the text.
    pub shipped: bool,
}

impl Rules {
    const ALL: Rules = Rules {
        device_floor: true,
        raise_first: true,
        read_back: true,
        close_first: true,
        durable_floor: true,
        look_first: true,
        tag_uid: true,
        report_uid: true,
        term: true,
        port_lock: true,
        adopt_floor: true,
        closed_boot: true,
        fresh_evidence: true,
        exact_match: true,
        floor_of_hub: true,
        adopts: true,
        power_fails: true,
        shipped: false,
    };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct NodesDevice {
    tenants: u8,
    dpus: u8,
    epochs: u8,
    uids: u8,
    faults: u8,
    is_born: bool,
    rules: Rules,
}

impl NodesDevice {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        Ok(NodesDevice::new(numbers.map(|number| number as u8), Rules::ALL))
    }

    fn new([tenants, dpus, epochs, uids, faults, born]: [u8; 6], rules: Rules) -> Self {
        NodesDevice { tenants, dpus, epochs, uids, faults, is_born: born == 1, rules }
    }

    /// The protocol as the controllers have it that ship. Beside what the text says, an agent isolates by what its cache
    /// shows, so at an older floor, or for the node before; a node in the pool is released again when its wiring
    /// changes; and evidence of power is forgotten with the release that it was for. Whoever counts faults counts them
    /// elsewhere.
    pub(crate) fn shipped(tenants: u8, dpus: u8, epochs: u8, is_born: bool) -> Self {
        let rules = Rules { shipped: true, ..Rules::ALL };
        NodesDevice::new([tenants, dpus, epochs, MOST_UIDS as u8, 1, u8::from(is_born)], rules)
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    fn each_dpu(&self) -> std::ops::Range<usize> {
        0..usize::from(self.dpus)
    }
}

impl Model for NodesDevice {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        let NodesDevice { tenants, dpus, epochs, uids, faults, .. } = self;
        let born = u8::from(self.is_born);
        format!(
            "tenants={tenants},dpus={dpus},epochs={epochs},uids={uids},faults={faults},born={born}"
        )
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        const NEED_FAULTS: [&str; 8] =
            ["See", "Restart", "Lose", "Close", "Off", "On", "Cut", "Heal"];
        let family = name.split('(').next().unwrap_or(name);
        match family {
            "CachedAttach" | "Program" => Some("only with a rule taken away"),
            "Replace" if self.uids == 1 || self.faults == 0 => Some("the node is never replaced"),
            "LookAdopt" | "LandAdopt" if self.is_born && self.faults == 0 => {
                Some("all records are made at the start, and none is lost")
            }
            _ if self.faults == 0 && NEED_FAULTS.contains(&family) => {
                Some("this size has no faults")
            }
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(self, coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![State::first(self)]
    }

    fn actions(&self) -> Vec<Action> {
        let hub = ["Revoke", "Finish", "Replace"];
        let mut actions: Vec<Action> = hub.map(|name| Action::new(name, "hub")).into();
        actions.extend((1..=self.tenants).map(|t| Action::new(format!("Bind(t{t})"), "hub")));
        for (kind, name) in OF_DPU {
            for d in 1..=self.dpus {
                let (name, agent) = (format!("{name}(d{d})"), format!("agent d{d}"));
                let dpu = format!("DPU d{d}");
                actions.push(match kind {
                    OfDpu::LookAttach | OfDpu::CachedAttach | OfDpu::LookAdopt => {
                        Action::new(name, agent).to(dpu)
                    }
                    OfDpu::Isolate => Action::new(name, agent).to(dpu),
                    OfDpu::LandAttach | OfDpu::Program | OfDpu::LandAdopt => Action::new(name, dpu),
                    OfDpu::Report => Action::new(name, dpu).to(agent),
                    OfDpu::LandReport => Action::new(name, agent).to("hub"),
                    OfDpu::See => Action::new(name, "hub").to(dpu),
                    OfDpu::Restart => Action::new(name, "world").to(agent),
                    OfDpu::Lose
                    | OfDpu::Close
                    | OfDpu::Off
                    | OfDpu::On
                    | OfDpu::Cut
                    | OfDpu::Heal => Action::new(name, "world").to(dpu),
                });
            }
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.hub_steps(state, steps);
        for d in self.each_dpu() {
            self.agent_steps(state, d, steps);
            self.driver_steps(state, d, steps);
            self.report_steps(state, d, steps);
            self.fault_steps(state, d, steps);
            self.repair_steps(state, d, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        state.describe(self)
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        self.all_invariants()
    }

    fn step_rules(&self) -> Vec<StepRule<State>> {
        promises::step_rules()
    }

    fn properties(&self) -> Vec<Property<State>> {
        self.all_properties()
    }

    /// For each DPU, and none for what starts something or goes wrong.
    fn fairness(&self) -> Vec<Fairness> {
        const FAIR: [OfDpu; 9] = [
            OfDpu::LookAttach,
            OfDpu::LandAttach,
            OfDpu::LookAdopt,
            OfDpu::LandAdopt,
            OfDpu::Isolate,
            OfDpu::Report,
            OfDpu::LandReport,
            OfDpu::On,
            OfDpu::Heal,
        ];
        let mut fairness = vec![Fairness::weak("Finish", [FINISH])];
        let actions = self.actions();
        for kind in FAIR {
            for action in self.each_dpu().map(|d| self.of_dpu(kind, d)) {
                fairness.push(Fairness::weak(&*actions[usize::from(action)].name, [action]));
            }
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        state.phase == Phase::Available && state.epoch == self.epochs
    }

    fn symmetries(&self) -> usize {
        arrangements(self.tenants.into()) * arrangements(self.dpus.into()) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        state.permuted(self, permutation + 1)
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State::arbitrary(self, rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        self.all_mutants()
    }
}
