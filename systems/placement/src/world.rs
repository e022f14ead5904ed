//! The shipped controllers of placement, explored as they are: one namespace with one pod, a hub,
//! two clusters, and people who move it.
//!
//! `interlock check placement` runs this. Nothing here says what a controller does: the world calls
//! the controllers themselves, through their caches and their live reads, and applies what they
//! write. What is written down here is what is around them: the first objects, the people, the
//! machines, and the promises.

mod drains;
mod ends;
mod labels;
mod machine;
mod makers;
mod mistakes;
mod people;
mod pods;
pub mod processes;
mod promises;
mod refine;
mod rights;
mod size;
mod start;
mod storage;
mod truth;
mod volumes;

use crate::departed::Departed;
use crate::syncer::Syncer;
use interlock_api::placement::Ref;
use interlock_checker::{Entry, Refinement};
use interlock_kernel::Name;
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Rule, Scene, Servers,
    State, System, World, shipped,
};
use jiff::Timestamp;
use machine::Machine;
use people::{EXITED, People};
use processes::{Life, Runs, start};
use truth::Truth;

const NAME: &str = "placement";
const CLUSTER_NAMES: [&str; CLUSTERS] = ["a", "b"];
/// The uids of the namespaces that have the name one after the other.
const NAMESPACE_UIDS: [&str; 2] = ["0f3a9c1e", "7b21d4f0"];
/// The names of their pods, by which what is made from them is distinguished.
const POD_NAMES: [&str; 2] = ["pod", "pod-again"];
/// The other syncer of cluster a.
const SECOND_SYNCER: &str = "second-syncer-a";
/// The claims, by their numbers.
const CLAIM_NAMES: [&str; 2] = ["data", "logs"];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of placement as they are, whatever crashes, lags or is late",
    keys: &size::KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Namespaces::from_size(size)?))),
};

/// A namespace, its people and its clusters, in some size.
#[derive(Clone)]
pub struct Namespaces {
    moves: u32,
    hostility: Hostility,
    /// 1: only the syncers of cluster a have steps under way, or are out of date; 2: and of these only
    /// the second one is out of date.
    late: u64,
    /// Power is lost on cluster a, and people may then declare it gone.
    force: bool,
    /// The claims of the pod, whose data goes along; the second one is added late.
    claims: usize,
    /// 1: snapshots take their time, and one is under way at the start; 2: none is ever made, as where no mover runs.
    slow: u64,
    /// A process may end by itself.
    exits: bool,
    /// People delete the pod and make another one of its name.
    pods: bool,
    /// A maker creates pods on cluster a.
    makers: bool,
    /// A person had a namespace of the name of the grant on cluster a.
    unplaced: bool,
    /// The namespace was on cluster b before, and its data is in a snapshot there.
    before: bool,
    /// How far cluster a is at the start: 1: it has noted its epoch, 2: it is permitted, 3: it runs.
    begun: u64,
    /// So long passes that old copies may go.
    later: bool,
    /// 1: the namespace is deleted; 2: and made again under its name.
    deletes: u8,
    /// How often somebody needs a cluster empty.
    drains: u32,
    /// How many clusters are deleted.
    retire: usize,
    /// Cluster b comes when cluster a is gone, and under its name.
    replace: bool,
    /// People strip the finalizers of what is being deleted.
    strip: bool,
    /// People give up what a cluster has of the namespace.
    forget: bool,
    /// The hub may hear no more of cluster a, which runs on.
    silent: bool,
    /// Cluster b takes nothing new; of a namespace that has cloud roles, because the cloud does not know
    /// the issuer of its tokens.
    unfit: bool,
    /// The namespace has a cloud role, which comes to trust each owner in its own time.
    rights: bool,
    /// Two hubs run at once.
    two_hubs: bool,
    /// Two syncers of cluster a run at once.
    twin: bool,
    /// With the controllers that only mirror what others decide.
    all: bool,
    /// Every step is compared with the protocol, for which every epoch is remembered.
    is_refined: bool,
    live: bool,
    /// What is done otherwise, on purpose.
    bends: &'static [mistakes::Bend],
    /// The size that it was made of.
    numbers: [u64; size::KEYS.len()],
}

impl Namespaces {
    /// Whether snapshots are made.
    fn makes_snapshots(&self) -> bool {
        self.slow < 2
    }

    /// Whether a cluster takes nothing.
    fn is_unfit(&self, cluster: usize) -> bool {
        self.unfit && cluster == 1
    }

    /// The name of a cluster, which may be that of one before it.
    fn cluster_name(&self, cluster: usize) -> &'static str {
        CLUSTER_NAMES[if self.replace { 0 } else { cluster }]
    }

    /// Whoever goes by names takes two clusters of one name for the same.
    fn cluster_uid(&self, cluster: usize) -> &'static str {
        let is_by_name = self.replace && mistakes::goes_by_cluster_names(self.bends);
        ["uid-a", "uid-b"][if is_by_name { 0 } else { cluster }]
    }

    /// Whoever goes by names takes two namespaces of one name for the same.
    fn namespace_uid(&self, place: usize) -> &'static str {
        NAMESPACE_UIDS[if mistakes::goes_by_namespace_names(self.bends) { 0 } else { place }]
    }

    fn grant_name(&self, place: usize) -> String {
        interlock_api::names::grant_name("shop", self.namespace_uid(place))
    }

    /// The names of all grants that there can be.
    fn grant_names(&self) -> Vec<String> {
        let count = if self.deletes == 2 { 2 } else { 1 };
        let mut names: Vec<String> = (0..count).map(|place| self.grant_name(place)).collect();
        names.dedup();
        names
    }

    fn hub(&self, name: &str) -> Program<Machine> {
        let grants = self.grant_names();
        let grants: Vec<&str> = grants.iter().map(String::as_str).collect();
        let mut hub = Program::new(name, None).with(mistakes::scheduler(self.bends), &grants);
        if self.force || self.all {
            hub = hub.with(mistakes::fencing(self.bends), &["force"]);
        }
        if self.has_labels() {
            hub = hub.with(mistakes::claims(self.bends), &grants);
        }
        if self.all || self.has_ends() || self.drains > 0 {
            let names = if self.replace { &CLUSTER_NAMES[..1] } else { &CLUSTER_NAMES };
            hub = hub.with(mistakes::clusters(self.bends), names);
        }
        if self.all || self.has_ends() {
            hub = hub.with(shipped(|_| Departed), &["shop"]);
        }
        hub
    }

    fn syncer(&self, name: String, c: usize) -> Program<Machine> {
        let grants = self.grant_names();
        let grants: Vec<&str> = grants.iter().map(String::as_str).collect();
        let cluster = Ref::new(self.cluster_name(c), self.cluster_uid(c));
        let (is_copying, is_second) = (self.claims > 0, name == SECOND_SYNCER);
        let make = move |boot| {
            let syncer = Syncer::new(cluster.clone(), boot_id(c, boot));
            if is_copying { syncer.copying() } else { syncer }
        };
        let program = Program::new(name, Some(c));
        if mistakes::is_in_two(self.bends) {
            let [whether, what] = mistakes::syncer_in_two(make);
            return program.with(whether, &grants).with(what, &grants);
        }
        program.with(mistakes::syncer(self.bends, is_second, make), &grants)
    }
}

fn namespace() -> Name {
    Name::cluster_wide("shop")
}

/// The number of a claim.
fn claim_number(name: &str) -> u8 {
    CLAIM_NAMES.iter().position(|known| *known == name).unwrap_or(0) as u8
}

fn boot_id(cluster: usize, boot: u8) -> String {
    format!("boot-{}-{boot}", CLUSTER_NAMES[cluster])
}

/// What people and machines do, who does it, and whether it must happen in the end.
const ACTIONS: [(&str, &str, bool); 32] = [
    ("Move", "people", false),
    ("ProcessEnds", "machine", true),
    ("PowerOff", "machine", false),
    ("PowerOn", "machine", false),
    ("DeclareGone", "people", false),
    ("BindClaim", "storage", true),
    ("DeleteVolume", "storage", true),
    ("TakeSnapshot", "storage", true),
    ("BringSnapshot", "storage", true),
    ("FallSilent", "network", false),
    ("DeleteNamespace", "people", false),
    ("StripNamespace", "people", false),
    ("MakeNamespaceAgain", "people", false),
    ("DeleteCluster", "people", false),
    ("StripCluster", "people", false),
    ("RegisterCluster", "people", false),
    ("ShutDown", "people", false),
    ("ForgetCopies", "people", false),
    ("AddClaim", "people", false),
    ("BeginSnapshot", "storage", true),
    ("ProcessExits", "machine", false),
    ("AddRole", "people", false),
    ("TrustOwner", "cloud", true),
    ("DeletePod", "people", false),
    ("MakePodAgain", "people", false),
    ("AskToDrain", "people", false),
    ("EndDrain", "people", false),
    ("MakerSees", "maker", false),
    ("MakePodOfEpoch", "maker", false),
    ("DeletePodUnplaced", "people", false),
    ("EndUnplaced", "people", false),
    ("MakePodUnplaced", "people", false),
];
const MOVE: usize = 0;
const PROCESS_ENDS: usize = 1;
const POWER_OFF: usize = 2;
const POWER_ON: usize = 3;
const DECLARE_GONE: usize = 4;
const BIND_CLAIM: usize = 5;
const DELETE_VOLUME: usize = 6;
const TAKE_SNAPSHOT: usize = 7;
const BRING_SNAPSHOT: usize = 8;
const FALL_SILENT: usize = 9;
const DELETE_NAMESPACE: usize = 10;
const STRIP_NAMESPACE: usize = 11;
const MAKE_NAMESPACE_AGAIN: usize = 12;
const DELETE_CLUSTER: usize = 13;
const STRIP_CLUSTER: usize = 14;
const REGISTER_CLUSTER: usize = 15;
const SHUT_DOWN: usize = 16;
const FORGET_COPIES: usize = 17;
const ADD_CLAIM: usize = 18;
const BEGIN_SNAPSHOT: usize = 19;
const PROCESS_EXITS: usize = 20;
const ADD_ROLE: usize = 21;
const TRUST_OWNER: usize = 22;
const DELETE_POD: usize = 23;
const MAKE_POD_AGAIN: usize = 24;
const ASK_TO_DRAIN: usize = 25;
const END_DRAIN: usize = 26;
const MAKER_SEES: usize = 27;
const MAKE_POD_OF_EPOCH: usize = 28;
const DELETE_POD_UNPLACED: usize = 29;
const END_UNPLACED: usize = 30;
const MAKE_POD_UNPLACED: usize = 31;

impl System for Namespaces {
    type Machine = Machine;
    type Past = truth::Past;
    type Truth = Truth;

    fn size(&self) -> String {
        self.shown_size()
    }

    fn hostility(&self) -> Hostility {
        self.hostility
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Move" => Some("in this size nobody moves the namespace"),
            "PowerOff" | "PowerOn" | "DeclareGone" => {
                Some("in this size there is no power loss and no ForceRelease")
            }
            "FallSilent" => Some("in this size every cluster sends heartbeats"),
            "DeleteNamespace" => Some("in this size the namespace stays"),
            "MakeNamespaceAgain" => Some("in this size no namespace is made again"),
            "DeleteCluster" | "ShutDown" => Some("in this size the clusters stay"),
            "RegisterCluster" => Some("in this size every cluster is there from the start"),
            "StripNamespace" | "StripCluster" => {
                Some("in this size nobody strips finalizers, or nothing is deleted")
            }
            "ForgetCopies" => Some("in this size nobody gives up a copy"),
            "DeleteVolume" => Some("in this size no volume outlives its claim"),
            "BindClaim" | "TakeSnapshot" | "BringSnapshot" => {
                Some("in this size there is no claim")
            }
            "AddClaim" => Some("in this size no claim is added"),
            "BeginSnapshot" => Some("in this size a snapshot takes no time"),
            "AddRole" | "TrustOwner" => Some("in this size the namespace has no cloud role"),
            "AskToDrain" | "EndDrain" => Some("in this size nobody needs a cluster empty"),
            "DeletePod" | "MakePodAgain" => Some("in this size nobody deletes the pod"),
            "MakerSees" | "MakePodOfEpoch" => Some("in this size there is no maker"),
            "DeletePodUnplaced" | "EndUnplaced" | "MakePodUnplaced" => {
                Some("in this size nobody had a namespace of its name")
            }
            "ProcessExits" => Some("in this size a process ends only when it is reported to"),
            _ => None,
        }
    }

    fn clusters(&self) -> [&'static str; CLUSTERS] {
        CLUSTER_NAMES
    }

    fn times(&self) -> Vec<Timestamp> {
        let week = Timestamp::from_second(start().as_second() + 8 * 24 * 3600);
        let later = self.later.then(|| week.unwrap_or_default());
        [start()].into_iter().chain(later).collect()
    }

    fn may_be_late(&self, program: &str) -> bool {
        self.late == 0 || program.ends_with("syncer-a")
    }

    fn may_be_behind(&self, program: &str) -> bool {
        self.may_be_late(program) && (self.late < 2 || program == SECOND_SYNCER)
    }

    fn outlives_its_machine(&self, program: &str) -> bool {
        mistakes::outlives_its_machine(self.bends) && program.ends_with("syncer-a")
    }

    /// Nothing waits for time but what has a successor that runs.
    fn may_pass(&self, scene: &Scene<'_, Self>) -> bool {
        let truth = truth::read(self, scene);
        truth.runs_on(truth.owner()) && truth.epoch() > 1
    }

    fn programs(&self) -> Vec<Program<Machine>> {
        let mut programs = vec![self.hub("hub")];
        let pods = if self.deletes == 2 { &POD_NAMES[..] } else { &POD_NAMES[..1] };
        let of = |grant: String| pods.iter().map(move |pod| format!("{grant}/{pod}"));
        let mut pods: Vec<String> = self.grant_names().into_iter().flat_map(of).collect();
        for (is_there, name) in [(self.makers, makers::MADE), (self.unplaced, makers::BARE)] {
            pods.extend(is_there.then(|| format!("{}/{name}", self.grant_name(0))));
        }
        let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
        for (c, name) in CLUSTER_NAMES.iter().enumerate() {
            programs.push(self.syncer(format!("syncer-{name}"), c));
            let runtime = mistakes::runtime(self.bends, c, self.claims > 0);
            programs.push(Program::new(format!("runtime-{name}"), Some(c)).with(runtime, &pods));
        }
        if self.twin {
            programs.push(self.syncer(SECOND_SYNCER.to_owned(), 0));
        }
        if self.two_hubs {
            programs.push(self.hub("second-hub"));
        }
        programs
    }

    fn begins(&self, truth: &Truth) -> bool {
        let here = &truth.clusters[0];
        match self.begun {
            0 => true,
            1 => here.epoch > 0,
            2 => here.permitted > 0,
            _ => truth.is_as_desired(),
        }
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        self.first(servers)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        ACTIONS.to_vec()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Machine>> {
        let mut moves = Vec::new();
        People { system: self, scene }.next(&mut moves);
        if self.rights {
            rights::next(self, scene, &mut moves);
        }
        if self.pods {
            pods::next(self, scene, &mut moves);
        }
        if self.drains > 0 {
            drains::next(self, scene, &mut moves);
        }
        makers::next(self, scene, &mut moves);
        for (c, machine) in scene.machines.iter().enumerate() {
            for (pod, life) in machine.processes.lives() {
                let Scene { contents: servers, chance, .. } = *scene;
                let may_exit = self.exits && chance & EXITED == 0;
                let (name, chance) = match life {
                    Life::Stopping => (PROCESS_ENDS, chance),
                    Life::Lives if may_exit => (PROCESS_EXITS, chance | EXITED),
                    Life::Lives | Life::Gone => continue,
                };
                let mut machines = [const { None }; CLUSTERS];
                machines[c] = Some(machine.with_processes(machine.processes.ended(pod)));
                moves.push(Move { name, servers, machines, chance, restarts: None });
            }
        }
        if self.claims > 0 {
            (0..CLUSTERS).for_each(|c| storage::next(self, scene, c, &mut moves));
        }
        moves
    }

    fn crash(&self, program: &str, machine: &Machine) -> Machine {
        match program.starts_with("runtime") {
            true => machine.with_processes(machine.processes.without_runtime()),
            false => machine.clone(),
        }
    }

    fn boot(&self, machine: &Machine) -> Option<u8> {
        (!machine.is_off).then_some(machine.boots)
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        truth::read(self, scene)
    }

    fn remember(&self, past: &truth::Past, before: &Truth, after: &Truth) -> truth::Past {
        let mut past = truth::remember(past, before, after);
        if self.is_refined {
            truth::remember_tenures(&mut past, after);
        }
        past
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        let mut all = promises::promises();
        all.extend(ends::promises(self));
        all.extend(volumes::promises(self));
        all.extend(rights::promises(self));
        all.extend(drains::promises(self));
        all.extend(makers::promises(self));
        all
    }

    fn rules(&self) -> Vec<Rule<Self>> {
        let mut rules = promises::rules();
        rules.push(volumes::rule());
        rules.extend(pods::rules(self));
        rules
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        let mut all = promises::reachable(self);
        all.extend(ends::reachable(self));
        all.extend(volumes::reachable(self));
        all.extend(rights::reachable(self));
        all.extend(drains::reachable(self));
        all.extend(makers::reachable(self));
        all
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        if !self.live {
            return Vec::new();
        }
        let mut goals = promises::goals(self);
        goals.extend(ends::goals(self));
        goals.extend(volumes::goals(self));
        goals.extend(drains::goals(self));
        goals
    }

    fn refines(&self, world: &World<Self>) -> Vec<Refinement<State>> {
        if self.is_refined { refine::refines(self, world) } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        let last = truth.last();
        // Where no other cluster takes it, it stays, or waits for one.
        let owner = last.owner();
        let is_awaited = self.unfit || ends::is_awaited(last);
        let stays = is_awaited && (owner.is_none() || last.runs_on(owner));
        let is_off = |c: usize| truth.clusters[c].is_off && !ends::is_let_go(truth, c);
        last.is_as_desired() || stays || ends::are_over(truth) || (0..CLUSTERS).any(is_off)
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        let grant = truth.grant.as_ref().map(|grant| {
            let owner = grant.owner.map_or("none", |owner| CLUSTER_NAMES[owner]);
            format!("{:?}, owner {owner}, epoch {}", grant.phase, grant.epoch)
        });
        let cluster = |c: usize| {
            let cluster = &truth.clusters[c];
            let power = if cluster.is_off { "no power, " } else { "" };
            format!(
                "{power}epoch {}, released {}, permitted {}, running {:?}, volume {:?}",
                cluster.epoch, cluster.released, cluster.permitted, cluster.running, cluster.volume
            )
        };
        let desired = truth.desired.map_or("none", |desired| CLUSTER_NAMES[desired]);
        vec![
            ("desired", desired.to_owned()),
            ("grant", grant.unwrap_or_else(|| "none".to_owned())),
            ("a", cluster(0)),
            ("b", cluster(1)),
        ]
    }
}

#[cfg(test)]
mod tests;
