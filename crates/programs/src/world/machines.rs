//! The controllers of nodes and of placement together, explored as they ship: the machines of clusters are taken back
//! while namespaces run on those clusters.
//!
//! `interlock check fleet/machines` runs this. The pool and the claims of nodes, the scheduler and the clusters
//! controller of placement, and the conductor and the mirror of rollouts, if a cluster is updated meanwhile, are the
//! controllers themselves. The clusters and the agents stand in as in `fleet/drain`, and so does the DPU: it opens and
//! closes its ports as the records of their nodes say, and reports that. It has a world of its own, `nodes`.

mod ends;
mod mistakes;
mod promises;
mod start;
#[cfg(test)]
mod tests;
mod truth;

use super::drain::{self, CLUSTER_NAMES, Machine, START_DEADLINE};
use interlock_api::names::grant_name;
use interlock_api::nodes::Ref;
use interlock_checker::{Entry, Size, SizeError, SizeKey};
use interlock_kernel::{Bent, Decide};
use interlock_nodes::claims::{Claims, NETWORK};
use interlock_nodes::kinds::LEASE_NAMESPACE;
use interlock_nodes::pool::Pool;
use interlock_nodes::power::{IsOff, Power, PowerOff, PowerState};
use interlock_placement::clusters::Clusters;
use interlock_placement::scheduler::Scheduler;
use interlock_placement::world::processes::start as beginning;
use interlock_rollouts::conductor::Conductor;
use interlock_rollouts::mirror::Mirror;
use interlock_world::{
    CLUSTERS, Chance, Driver, Goal, Hostility, Mistake, Move, Program, Promise, Rule, Scene,
    Servers, System, World, shipped,
};
use jiff::Timestamp;
use start::{CLAIM, DRAIN_SECONDS, HOME_UID, NODES, ONE_MORE, RACK, TENANT, TENANT_UID};
use truth::Truth;

const NAME: &str = "fleet/machines";

const KEYS: [SizeKey; 17] = [
    SizeKey::new("spaces", "placed namespaces", 1, 1, 2),
    SizeKey::new(
        "nodes",
        "machines of the tenant: one of cluster a, and one of cluster b",
        1,
        1,
        2,
    ),
    SizeKey::new("shared", "1: all machines are of cluster a", 0, 0, 1),
    SizeKey::new("alone", "1: cluster b takes no namespaces", 0, 0, 1),
    SizeKey::new("updates", "1: cluster b is updated, 2: cluster a is", 0, 0, 2),
    SizeKey::new("reclaims", "1: the platform ends the epoch of each machine", 1, 0, 1),
    SizeKey::new("deletes", "1: the tenant deletes its claim", 0, 0, 1),
    SizeKey::new("fences", "1: a person fences a machine that is being drained", 0, 0, 1),
    SizeKey::new("edits", "1: people give cluster a one more machine", 0, 0, 1),
    SizeKey::new("pools", "copies of the pool, as while a Lease changes hands", 1, 1, 2),
    SizeKey::new("flights", "steps that are under way at once", 1, 0, 1),
    SizeKey::new("stale", "objects that are out of date at once", 0, 0, 1),
    SizeKey::new("late", "whose: 1: of placement, 2: of nodes, 3: of rollouts, 0: all", 0, 0, 3),
    SizeKey::new("crash", "1: programs crash at any time", 0, 0, 1),
    SizeKey::new("relist", "1: programs that start anew list the past", 0, 0, 1),
    SizeKey::new("wakes", "1: whoever gains work must be woken", 0, 0, 1),
    SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of nodes and placement together, while machines of clusters are taken back",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Machines::from_size(size)?))),
};

/// Two clusters on machines of one tenant, which loses them, and namespaces that are placed on the clusters, in some
/// size.
#[derive(Clone)]
pub struct Machines {
    spaces: usize,
    /// The cluster of each machine.
    nodes: Vec<usize>,
    /// Cluster b takes no namespaces.
    is_alone: bool,
    /// The cluster that is updated.
    updated: Option<usize>,
    reclaims: bool,
    deletes: bool,
    fences: bool,
    edits: bool,
    /// Each with a cache of its own.
    pools: usize,
    /// Whose steps are under way, and whose caches are out of date.
    late: u64,
    hostility: Hostility,
    live: bool,
    scheduler: Bent<Scheduler>,
    clusters: Bent<Clusters>,
    pool: Bent<Pool>,
    /// What is decided otherwise about claims, on purpose.
    claims: Option<Decide<Claims>>,
    /// The size that it was made of.
    numbers: [u64; KEYS.len()],
}

impl Machines {
    fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        let [spaces, nodes, shared, alone, updates, rest @ ..] = numbers;
        let [
            reclaims,
            deletes,
            fences,
            edits,
            pools,
            flights,
            stale,
            late,
            crash,
            relist,
            wakes,
            live,
        ] = rest;
        let cluster_of = |node: u64| if shared == 1 { 0 } else { node as usize };
        Ok(Machines {
            spaces: spaces as usize,
            nodes: (0..nodes).map(cluster_of).collect(),
            is_alone: alone == 1,
            updated: [None, Some(1), Some(0)][updates as usize],
            reclaims: reclaims == 1,
            deletes: deletes == 1,
            fences: fences == 1,
            edits: edits == 1,
            pools: pools as usize,
            late,
            hostility: Hostility::of([flights, stale, crash, relist, wakes, live]),
            live: live == 1,
            scheduler: Bent::new(Scheduler::default()),
            clusters: Bent::new(Clusters::default()),
            pool: Bent::new(Pool),
            claims: None,
            numbers,
        })
    }

    /// Whether a namespace may be on a cluster that is to be drained, and no other one takes it: then nothing goes on
    /// before somebody has waited too long.
    fn may_be_stuck(&self) -> bool {
        let is_to_be_drained = |c: usize| self.nodes.contains(&c) || self.updated == Some(c);
        self.is_alone || self.spaces == CLUSTERS && (0..CLUSTERS).all(is_to_be_drained)
    }

    /// Whether the steps of a program may be late, and its cache out of date.
    fn is_hostile_to(&self, program: &str) -> bool {
        match self.late {
            0 => true,
            1 => program == "placement",
            2 => program.starts_with("pool") || program == "claims",
            _ => program == "rollouts",
        }
    }

    /// The scheduler is asked about every namespace, and finds that the last ones are not placed.
    fn grants(&self) -> Vec<String> {
        let others = [(LEASE_NAMESPACE, HOME_UID), (drain::OPERATORS, drain::OPERATORS_UID)];
        let others = others.map(|(name, uid)| grant_name(name, uid));
        (0..self.spaces).map(drain::grant).chain(others).collect()
    }
}

impl System for Machines {
    type Machine = Machine;
    type Past = ();
    type Truth = Truth;

    fn size(&self) -> String {
        let shown = |(key, number): (&SizeKey, &u64)| format!("{}={number}", key.key);
        KEYS.iter().zip(&self.numbers).map(shown).collect::<Vec<_>>().join(",")
    }

    fn hostility(&self) -> Hostility {
        self.hostility
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Check" | "Apply" | "Submit" => Some("in this size no cluster is updated"),
            "Reclaim" => Some("in this size the platform ends no epoch"),
            "DeleteClaim" => Some("in this size the tenant keeps its claim"),
            "Fence" => Some("in this size nobody fences a machine"),
            "Edit" => Some("in this size no cluster gets one more machine"),
            "Beat" => Some("in this size no answer is of a generation before"),
            _ => None,
        }
    }

    fn may_be_late(&self, program: &str) -> bool {
        self.is_hostile_to(program)
    }

    /// A cache of the claims that is behind gives up what was just given, again and again: the world `nodes` asks that.
    fn may_be_behind(&self, program: &str) -> bool {
        self.is_hostile_to(program) && program != "claims"
    }

    /// The first server is the control plane of the tenant. Nothing is on the other one: clusters are machines here.
    fn clusters(&self) -> [&'static str; CLUSTERS] {
        ["plane", "none"]
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn times(&self) -> Vec<Timestamp> {
        let late = beginning().as_second() + 2 * START_DEADLINE.max(DRAIN_SECONDS);
        let late = self.may_be_stuck().then(|| Timestamp::from_second(late).unwrap_or_default());
        [beginning()].into_iter().chain(late).collect()
    }

    /// Whatever can go on is faster than the deadlines.
    fn may_pass(&self, scene: &Scene<'_, Self>) -> bool {
        let placed = Truth::read(self, scene).placed;
        placed.is_stuck() || self.is_alone && placed.is_asked(0) && placed.all_run()
    }

    fn programs(&self) -> Vec<Program<Machine>> {
        let (scheduler, clusters, pool, bend) =
            (self.scheduler, self.clusters, self.pool, self.claims);
        let grants = self.grants();
        let grants: Vec<&str> = grants.iter().map(String::as_str).collect();
        let rack = format!("/rack/{RACK}");
        let edited = self.edits.then_some(ONE_MORE);
        let nodes = NODES.into_iter().take(self.nodes.len()).chain(edited);
        let nodes: Vec<&str> = nodes.chain([rack.as_str()]).collect();
        let claims = move |_| {
            let room = Bent::new(Claims::new(Ref::new(TENANT, TENANT_UID)));
            match bend {
                Some(decide) => room.deciding(decide),
                None => room,
            }
        };
        let mut programs = vec![
            Program::new("placement", None)
                .with(shipped(move |_| scheduler), &grants)
                .with(shipped(move |_| clusters), &CLUSTER_NAMES),
            Program::new("claims", Some(0))
                .on_machine(None)
                .with(shipped(claims), &[CLAIM, NETWORK]),
        ];
        for name in ["pool", "pool-again"].into_iter().take(self.pools) {
            programs.push(Program::new(name, None).with(shipped(move |_| pool), &nodes));
        }
        if let Some(c) = self.updated {
            // The conductor is asked about the records of all clusters.
            let records = [0, 1].map(|c| drain::record(c).name.to_string());
            let records: Vec<&str> = records.iter().map(String::as_str).collect();
            let request = format!("{}/{}", drain::OPERATORS, drain::REQUESTS[c]);
            let program = Program::new("rollouts", None)
                .with(shipped(|_| Conductor), &records)
                .with(shipped(|_| Mirror), &[request.as_str()]);
            programs.push(program);
        }
        programs
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        let servers = [start::hub(self, servers), start::plane(self, servers), servers.empty()];
        (servers, [Machine::default(), Machine::default()], 0)
    }

    fn begins(&self, truth: &Truth) -> bool {
        truth.placed.all_run() && truth.all_are_in_use()
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        ends::moves()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Machine>> {
        ends::next(self, scene)
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        Truth::read(self, scene)
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        promises::promises()
    }

    fn rules(&self) -> Vec<Rule<Self>> {
        promises::rules()
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        promises::reachable(self)
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        if self.live { promises::goals(self) } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        let is_over = truth.no_reclaim_waits(self) && truth.no_drain_waits(self);
        truth.placed.all_run() && truth.placed.no_update_waits() && is_over
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        truth.show()
    }
}

/// The rack leaves it to people to see a DPU off: the command of the platform is never asked.
impl Driver<Machine> for Power {
    fn ask(_: &[&Machine], _: usize, question: &IsOff) -> PowerState {
        PowerState::Unknown(format!("there is no command that knows {}", question.0))
    }

    fn perform(machines: &[&Machine], here: usize, _: &PowerOff) -> Machine {
        machines[here].clone()
    }
}
