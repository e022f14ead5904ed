//! The shipped controllers of placement, explored as they are: one namespace with one pod, a hub,
//! two clusters, and people who move it.
//!
//! `interlock check placement` runs this. Nothing here says what a controller does: the world calls
//! the controllers themselves, through their caches and their live reads, and applies what they
//! write. What is written down here is what is around them: the first objects, the people, the
//! machines, and the promises.

mod machine;
mod mistakes;
mod promises;
mod refine;
mod storage;
mod truth;

use crate::claims::Claims;
use crate::clusters::Clusters;
use crate::departed::Departed;
use crate::kinds::{CLAIM, FORCE_RELEASE, GRANT, NAMESPACE, POD, STORAGE_CLASS, WORKLOAD_CLUSTER};
use crate::spec::hub::MOST_EPOCHS;
use crate::syncer::Syncer;
use interlock_api::names::ANNOTATION_CLUSTER;
use interlock_api::placement::Ref;
use interlock_checker::{Entry, Refinement, Size, SizeError, SizeKey};
use interlock_kernel::Name;
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Rule, Scene, Servers,
    State, System, World, shipped,
};
use jiff::Timestamp;
use machine::{Life, Machine, start};
use serde_json::{Value, json};
use truth::Truth;

const NAME: &str = "placement";
const CLUSTER_NAMES: [&str; CLUSTERS] = ["a", "b"];
const NAMESPACE_UID: &str = "0f3a9c1e";

const MOVES: SizeKey = SizeKey::new("moves", "how often people move the namespace", 1, 0, 3);
const FLIGHTS: SizeKey = SizeKey::new("flights", "steps that are under way at once", 1, 0, 2);
const STALE: SizeKey = SizeKey::new("stale", "objects that are out of date at once", 1, 0, 2);
const CRASH: SizeKey = SizeKey::new("crash", "1: programs crash at any time", 1, 0, 1);
const RELIST: SizeKey =
    SizeKey::new("relist", "1: programs that start anew list the past", 0, 0, 1);
const FORCE: SizeKey = SizeKey::new("force", "1: power loss and ForceRelease happen", 0, 0, 1);
const CLAIMS: SizeKey = SizeKey::new("claims", "claims, whose data goes along", 0, 0, 1);
const LATER: SizeKey = SizeKey::new("later", "1: so long passes that old copies may go", 0, 0, 1);
const SILENT: SizeKey =
    SizeKey::new("silent", "1: the hub may hear no more of cluster a, which runs on", 0, 0, 1);
const UNFIT: SizeKey = SizeKey::new("unfit", "1: cluster b takes nothing new", 0, 0, 1);
const SYNCERS: SizeKey = SizeKey::new("syncers", "syncers of cluster a at once", 1, 1, 2);
const ALL: SizeKey =
    SizeKey::new("all", "1: with the controllers that only mirror what others decide", 0, 0, 1);
const WAKES: SizeKey = SizeKey::new("wakes", "1: whoever gains work must be woken", 0, 0, 1);
const REFINE: SizeKey =
    SizeKey::new("refine", "1: every step is compared with spec/placement", 1, 0, 1);
const LIVE: SizeKey = SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1);

const KEYS: [SizeKey; 15] = [
    MOVES, FLIGHTS, STALE, CRASH, RELIST, FORCE, CLAIMS, LATER, SILENT, UNFIT, SYNCERS, ALL, WAKES,
    REFINE, LIVE,
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of placement as they are, whatever crashes, lags or is late",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Namespaces::from_size(size)?))),
};

/// A namespace, its people and its clusters, in some size.
#[derive(Clone)]
pub struct Namespaces {
    moves: u32,
    hostility: Hostility,
    /// Power is lost on cluster a, and people may then declare it gone.
    force: bool,
    /// The pod has a claim, and its data goes along.
    claim: bool,
    /// So long passes that old copies may go.
    later: bool,
    /// The hub may hear no more of cluster a, which runs on.
    silent: bool,
    /// Cluster b takes nothing new.
    unfit: bool,
    /// Two syncers of cluster a run at once.
    twin: bool,
    /// With the controllers that only mirror what others decide.
    all: bool,
    /// Every step is compared with the protocol, for which every epoch is remembered.
    is_refined: bool,
    live: bool,
    /// What is done otherwise, on purpose.
    bends: &'static [mistakes::Bend],
}

impl Namespaces {
    fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [
            moves,
            flights,
            stale,
            crash,
            relist,
            force,
            claims,
            later,
            silent,
            unfit,
            syncers,
            all,
            wakes,
            refine,
            live,
        ] = size.numbers(NAME, &KEYS)?;
        let hostility = Hostility::of([flights, stale, crash, relist, wakes, live]);
        // The protocol has so many epochs: the first, one for each move, and one after a forced release.
        let is_comparable = moves + 1 + force <= MOST_EPOCHS as u64;
        Ok(Namespaces {
            moves: moves as u32,
            hostility,
            force: force == 1,
            claim: claims == 1,
            later: later == 1,
            silent: silent == 1,
            unfit: unfit == 1,
            twin: syncers == 2,
            all: all == 1,
            is_refined: refine == 1 && is_comparable,
            live: live == 1,
            bends: &[],
        })
    }

    /// Whether a cluster takes nothing.
    fn is_unfit(&self, cluster: usize) -> bool {
        self.unfit && cluster == 1
    }
}

fn namespace() -> Name {
    Name::cluster_wide("shop")
}

fn grant_name() -> String {
    interlock_api::names::grant_name("shop", NAMESPACE_UID)
}

fn boot_id(cluster: usize, boot: u8) -> String {
    format!("boot-{}-{boot}", CLUSTER_NAMES[cluster])
}

/// How often people may still move the namespace: the lowest bits of what is left to happen.
fn moves_left(chance: Chance) -> u32 {
    chance & 0xf
}

/// People declared a cluster gone.
const FORCED: Chance = 1 << 4;
/// Power was lost.
const LOST_POWER: Chance = 1 << 5;
/// The hub hears no more of cluster a.
const FELL_SILENT: Chance = 1 << 6;

/// What people and machines do, who does it, and whether it must happen in the end.
const ACTIONS: [(&str, &str, bool); 10] = [
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

impl System for Namespaces {
    type Machine = Machine;
    type Past = truth::Past;
    type Truth = Truth;

    fn size(&self) -> String {
        let Hostility { flights, stale, relists, wakes, .. } = self.hostility;
        let crash = self.hostility.crash();
        let flags = [relists, self.force, self.claim, self.later, self.silent, self.unfit];
        let [relist, force, claims, later, silent, unfit] = flags.map(u8::from);
        let [all, wakes] = [self.all, wakes].map(u8::from);
        let [refine, live] = [self.is_refined, self.live].map(u8::from);
        let syncers = 1 + u8::from(self.twin);
        format!(
            "moves={},flights={flights},stale={stale},crash={crash},relist={relist},force={force},\
             claims={claims},later={later},silent={silent},unfit={unfit},syncers={syncers},all={all},\
             wakes={wakes},refine={refine},live={live}",
            self.moves
        )
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
            "FallSilent" => Some("in this size every cluster is heard of"),
            "DeleteVolume" => Some("in this size no volume outlives its claim"),
            "BindClaim" | "TakeSnapshot" | "BringSnapshot" => {
                Some("in this size there is no claim")
            }
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

    fn programs(&self) -> Vec<Program<Machine>> {
        let grant = grant_name();
        let pod = format!("{grant}/pod");
        let syncer = |c: usize| {
            let cluster = Ref::new(CLUSTER_NAMES[c], format!("uid-{}", CLUSTER_NAMES[c]));
            let is_copying = self.claim;
            mistakes::syncer(self.bends, move |boot| {
                let syncer = Syncer::new(cluster.clone(), boot_id(c, boot));
                if is_copying { syncer.copying() } else { syncer }
            })
        };
        let mut hub = Program::new("hub", None).with(mistakes::scheduler(self.bends), &[&grant]);
        if self.force || self.all {
            hub = hub.with(mistakes::fencing(self.bends), &["force"]);
        }
        if self.all || self.claim {
            hub = hub.with(shipped(|_| Claims), &[&grant]);
        }
        if self.all {
            hub = hub
                .with(shipped(|_| Clusters::default()), &CLUSTER_NAMES)
                .with(shipped(|_| Departed), &["shop"]);
        }
        let mut programs = vec![hub];
        for (c, name) in CLUSTER_NAMES.iter().enumerate() {
            programs
                .push(Program::new(format!("syncer-{name}"), Some(c)).with(syncer(c), &[&grant]));
            let runtime = mistakes::runtime(self.bends, c, self.claim);
            programs.push(Program::new(format!("runtime-{name}"), Some(c)).with(runtime, &[&pod]));
        }
        if self.twin {
            programs.push(Program::new("second-syncer-a", Some(0)).with(syncer(0), &[&grant]));
        }
        programs
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        let empty = servers.empty();
        let mut hub = empty;
        for name in CLUSTER_NAMES {
            let at = start().to_string();
            let condition = |kind: &str, message: &str| {
                json!({"type": kind, "status": "True", "reason": "Heard", "message": message,
                    "lastTransitionTime": at})
            };
            let heard = "its syncer gives signs of life";
            let cluster = json!({
                "metadata": {"uid": format!("uid-{name}"), "finalizers": ["interlock.dev/live-grants"]},
                "spec": {"connection": {"logicalCluster": name},
                    "unschedulable": self.unfit && name == "b"},
                "status": {"conditions": [condition("Ready", heard), condition("Reachable", heard)],
                    "heartbeat": {"sequence": 1}},
            });
            hub = servers.put(hub, &WORKLOAD_CLUSTER, &Name::cluster_wide(name), cluster);
        }
        let home = json!({"metadata": {"uid": NAMESPACE_UID,
            "labels": {"interlock.dev/placed": "true"}, "annotations": {ANNOTATION_CLUSTER: "a"}}});
        hub = servers.put(hub, &NAMESPACE, &namespace(), home);
        let mut pod = json!({"spec": {"runtimeClassName": "interlock-process",
            "containers": [{"name": "main", "image": "none", "command": ["writer"]}]}});
        let mut cluster = empty;
        if self.claim {
            pod["spec"]["volumes"] =
                json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
            pod["spec"]["containers"][0]["volumeMounts"] =
                json!([{"name": "v", "mountPath": "/data"}]);
            let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "resources": {"requests": {"storage": "1Gi"}}}});
            hub = servers.put(hub, &CLAIM, &Name::within("shop", "data"), claim);
            for name in CLUSTER_NAMES {
                let name = Name::cluster_wide(name);
                let can =
                    json!({"status": {"storageClasses": [{"name": "local", "canSnapshot": true}]}});
                hub = servers.change(hub, &WORKLOAD_CLUSTER, &name, &can);
            }
            let class = json!({"provisioner": "local.interlock.dev"});
            cluster = servers.put(cluster, &STORAGE_CLASS, &Name::cluster_wide("local"), class);
        }
        hub = servers.put(hub, &POD, &Name::within("shop", "pod"), pod);
        ([hub, cluster, cluster], [Machine::default(), Machine::default()], self.moves)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        ACTIONS.to_vec()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Machine>> {
        let mut moves = Vec::new();
        let unchanged = |name: usize| Move {
            name,
            servers: scene.contents,
            machines: [None, None],
            chance: scene.chance,
            restarts: None,
        };
        if moves_left(scene.chance) > 0 {
            let mut found = unchanged(MOVE);
            let desired = truth::read(self, scene).desired;
            let to = if desired == Some(0) { "b" } else { "a" };
            let patch = json!({"metadata": {"annotations": {ANNOTATION_CLUSTER: to}}});
            found.servers[0] =
                scene.servers.change(scene.contents[0], &NAMESPACE, &namespace(), &patch);
            found.chance -= 1;
            moves.push(found);
        }
        for (c, machine) in scene.machines.iter().enumerate() {
            for (pod, process) in &machine.processes {
                if process.life == Life::Stopping {
                    let mut found = unchanged(PROCESS_ENDS);
                    found.machines[c] = Some(machine.ended(pod));
                    moves.push(found);
                }
            }
        }
        if self.silent && scene.chance & FELL_SILENT == 0 {
            let mut found = unchanged(FALL_SILENT);
            let fails = |kind: &str| {
                json!({"type": kind, "status": "False", "reason": "Silent", "message": "not heard of",
                    "lastTransitionTime": start().to_string()})
            };
            let silent = json!({"status": {"conditions": [fails("Ready"), fails("Reachable")]}});
            let name = Name::cluster_wide("a");
            found.servers[0] =
                scene.servers.change(scene.contents[0], &WORKLOAD_CLUSTER, &name, &silent);
            found.chance |= FELL_SILENT;
            moves.push(found);
        }
        if self.force {
            self.power(scene, &mut moves);
        }
        if self.claim {
            (0..CLUSTERS).for_each(|c| storage::next(scene, c, &mut moves));
        }
        moves
    }

    fn crash(&self, program: &str, machine: &Machine) -> Machine {
        if program.starts_with("runtime") { machine.without_runtime() } else { machine.clone() }
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

    fn refines(&self, world: &World<Self>) -> Vec<Refinement<State>> {
        if self.is_refined { refine::refines(self, world) } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        // Where no other cluster takes it, it stays, or waits for one.
        let owner = truth.owner();
        let stays = self.unfit && (owner.is_none() || truth.runs_on(owner));
        truth.is_as_desired() || stays || truth.clusters.iter().any(|cluster| cluster.is_off)
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

impl Namespaces {
    /// Cluster a loses power once. People may then declare it gone, and power may return.
    fn power(&self, scene: &Scene<'_, Self>, moves: &mut Vec<Move<Machine>>) {
        let unchanged = |name: usize| Move {
            name,
            servers: scene.contents,
            machines: [None, None],
            chance: scene.chance,
            restarts: None,
        };
        let machine = &scene.machines[0];
        if !machine.is_off && scene.chance & LOST_POWER == 0 {
            let mut found = unchanged(POWER_OFF);
            found.machines[0] = Some(machine.without_power());
            found.chance |= LOST_POWER;
            found.restarts = Some(0);
            moves.push(found);
        }
        if machine.is_off {
            let mut found = unchanged(POWER_ON);
            found.machines[0] = Some(machine.started_again());
            found.restarts = Some(0);
            moves.push(found);
        } else if !mistakes::is_forced_while_running(self.bends) {
            return;
        }
        let status = scene.hub().part(&GRANT, &Name::cluster_wide(&grant_name()), "status");
        let is_held = ["Granted", "Revoking"].iter().any(|phase| status["phase"] == *phase);
        if scene.chance & FORCED == 0 && is_held && status["owner"]["name"] == "a" {
            let mut found = unchanged(DECLARE_GONE);
            let force = force_release(&status["epoch"]);
            let name = Name::cluster_wide("force");
            found.servers[0] = scene.servers.put(scene.contents[0], &FORCE_RELEASE, &name, force);
            found.chance |= FORCED;
            moves.push(found);
        }
    }
}

fn force_release(epoch: &Value) -> Value {
    json!({"metadata": {"uid": "uid-force"}, "spec": {
        "grant": {"name": grant_name(), "uid": format!("grant-{}-0", grant_name())},
        "owner": {"name": "a", "uid": "uid-a"}, "epoch": epoch,
        "attestation": "PoweredOff", "reason": "the rack burnt down", "requester": "kim"}})
}

#[cfg(test)]
mod tests;
