//! The controllers of placement and of volumes together, explored as they ship: one namespace with one
//! claim, a hub, two clusters with disks, and people who move it.
//!
//! `interlock check placement-and-volumes` runs this. Each system has a world of its own, in which the
//! other is a stand-in or is not there. Here nothing stands in for a controller: what the syncers ask of
//! the storage, the storage, the populator, the sources and the destinations do.

pub mod drain;
mod machine;
pub mod machines;
pub mod rights;
mod truth;

use interlock_api::names::{ANNOTATION_CLUSTER, FINALIZER_LIVE_GRANTS, LOCAL_CLASS, LOCAL_DRIVER};
use interlock_api::placement::Ref;
use interlock_checker::{Entry, Size, SizeError, SizeKey};
use interlock_kernel::{Bent, Decide, Kind, Name, Room};
use interlock_placement::claims::Claims;
use interlock_placement::kinds::{
    CLAIM, DESTINATION, NAMESPACE, POD, SNAPSHOT, SOURCE, STORAGE_CLASS, WORKLOAD_CLUSTER,
};
use interlock_placement::runtime::Runtime;
use interlock_placement::scheduler::Scheduler;
use interlock_placement::syncer::Syncer;
use interlock_placement::world::processes::{Runs, start};
use interlock_volumes::keeper::Keeper;
use interlock_volumes::kinds::SNAPSHOT_CLASS;
use interlock_volumes::populator::Populator;
use interlock_volumes::storage;
use interlock_volumes::sync::{Here, Replication, Serves};
use interlock_volumes::world::collected;
use interlock_volumes::world::disks::{Ending, Storage, Stores};
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Rest, Scene, Servers,
    System, World, shipped,
};
use jiff::Timestamp;
use machine::Machine;
use serde_json::{Value, json};
use truth::Truth;

const NAME: &str = "placement-and-volumes";
const CLUSTER_NAMES: [&str; CLUSTERS] = ["a", "b"];
const CLUSTER_UIDS: [&str; CLUSTERS] = ["uid-a", "uid-b"];
const NAMESPACE_UID: &str = "0f3a9c1e";
/// The namespace on a cluster in which movers take their places.
const PLACES: &str = "interlock-system";
/// As many subjects as the volume controllers have at most, over all states: claims, volumes, snapshots,
/// claims that are filled, sources, destinations, and places.
const MOST: [usize; 7] = [8, 6, 6, 4, 2, 2, 4];

const KEYS: [SizeKey; 10] = [
    SizeKey::new("moves", "how often people move the namespace", 1, 0, 2),
    SizeKey::new(
        "half",
        "1: cluster b does nothing yet; 2: it begins when cluster a has done all that it can",
        2,
        0,
        2,
    ),
    SizeKey::new("begun", "1: it begins when the namespace runs on cluster a", 1, 0, 1),
    SizeKey::new("flights", "steps that are under way at once", 0, 0, 1),
    SizeKey::new("late", "1: only steps of placement, 2: of volumes are under way", 0, 0, 2),
    SizeKey::new("stale", "objects that are out of date at once", 0, 0, 1),
    SizeKey::new("crash", "1: programs crash at any time", 0, 0, 1),
    SizeKey::new("relist", "1: programs that start anew list the past", 0, 0, 1),
    SizeKey::new("wakes", "1: whoever gains work must be woken", 0, 0, 1),
    SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1),
];

/// The worlds of several systems, by name.
pub fn models() -> Vec<Entry> {
    vec![ENTRY, drain::ENTRY, machines::ENTRY, rights::ENTRY]
}

const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of placement and volumes together, through a move with data",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Fleet::from_size(size)?))),
};

/// Where a world begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// The namespace was just made.
    New,
    /// It runs on cluster a.
    Running,
    /// Cluster a has released it for cluster b, which has done nothing yet.
    Released,
}

impl First {
    /// Where the world comes to rest that begins here: the servers and machines, as the controllers
    /// left them.
    fn rest(self, moves: u32) -> Rest<Machine> {
        let (numbers, hostility) = ([0; KEYS.len()], Hostility::of([0; 6]));
        let fleet = Fleet {
            moves,
            first: self,
            is_b_down: true,
            late: 0,
            hostility,
            live: false,
            bend: None,
            numbers,
        };
        World::new(fleet).rest()
    }
}

/// A namespace with a claim, its clusters and its people, in some size.
#[derive(Clone)]
pub struct Fleet {
    moves: u32,
    first: First,
    /// The programs of cluster b do not run.
    is_b_down: bool,
    /// Whose steps are under way: 1: of placement, 2: of volumes, 0: of both.
    late: u64,
    hostility: Hostility,
    live: bool,
    /// What is decided otherwise about syncs, on purpose.
    bend: Option<Decide<Replication>>,
    /// The size that it was made of.
    numbers: [u64; KEYS.len()],
}

impl Fleet {
    fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        let [moves, half, begun, flights, late, stale, crash, relist, wakes, live] = numbers;
        let hostility = Hostility::of([flights, stale, crash, relist, wakes, live]);
        let first = match (half, begun) {
            (2, _) => First::Released,
            (_, 1) => First::Running,
            _ => First::New,
        };
        let moves = if first == First::Released { 0 } else { moves as u32 };
        let is_b_down = half == 1;
        Ok(Fleet { moves, first, is_b_down, late, hostility, live: live == 1, bend: None, numbers })
    }

    fn volumes(&self, c: usize) -> Program<Machine> {
        let bend = self.bend;
        let bent = move |room: Replication| match bend {
            Some(decide) => Bent::new(room).deciding(decide),
            None => Bent::new(room),
        };
        let here = move || Here { name: CLUSTER_NAMES[c].into(), uid: CLUSTER_UIDS[c].into() };
        let destinations = move |_| bent(Replication::of_destinations(Serves::Own, here()));
        let sources = move |_| bent(Replication::of_sources(Serves::Own));
        Program::new(format!("volumes-{}", CLUSTER_NAMES[c]), Some(c))
            .asking(shipped(|_| storage::Claims), MOST[0])
            .asking(shipped(|_| storage::Volumes), MOST[1])
            .asking(shipped(|_| storage::Snapshots), MOST[2])
            .asking(shipped(|_| Populator), MOST[3])
            .asking(shipped(sources), MOST[4])
            .asking(shipped(destinations), MOST[5])
            .asking(shipped(|_| Keeper), MOST[6])
    }
}

fn namespace() -> Name {
    Name::cluster_wide("shop")
}

/// The name of the grant, and of the namespace on the clusters.
fn grant() -> String {
    interlock_api::names::grant_name("shop", NAMESPACE_UID)
}

fn boot_id(cluster: usize) -> String {
    format!("boot-{}", CLUSTER_NAMES[cluster])
}

/// A mistake: its name, its sentence, what must break, what is decided instead, and the least size in
/// which it shows.
struct Row(&'static str, &'static str, &'static [&'static str], Decide<Replication>, &'static str);

impl Row {
    fn mistake(&self) -> Mistake<Fleet> {
        let Row(name, sentence, breaks, decide, size) = self;
        let size = Size::parse(size).expect("the sizes here can be read");
        let system = Fleet::from_size(&size).expect("the sizes here are in range");
        Mistake { name, sentence, breaks, system: Fleet { bend: Some(*decide), ..system } }
    }
}

const MISTAKES: &[Row] = &[Row(
    "pinned-snapshot-deleted",
    "a source deletes its snapshots although the grant holds one",
    &["HeldSnapshotStays"],
    |facts| {
        let mut facts = facts.clone();
        facts.has_held_snapshot = false;
        for snapshot in &mut facts.snapshots {
            snapshot.is_held = false;
            snapshot.is_latest = false;
        }
        Replication::decide(&facts)
    },
    "half=2",
)];

/// What people and machines do, who does it, and whether it must happen in the end.
const ACTIONS: [(&str, &str, bool); 5] = [
    ("Move", "people", false),
    ("ProcessEnds", "machine", true),
    ("Collect", "garbage collector", true),
    ("Made", "disk", true),
    ("Moved", "mover", true),
];
const MOVE: usize = 0;
const PROCESS_ENDS: usize = 1;
const COLLECT: usize = 2;
const MADE: usize = 3;
const MOVED: usize = 4;

/// The kinds that own something, or are owned.
const OWNED: [Kind; 4] = [CLAIM, SNAPSHOT, SOURCE, DESTINATION];

impl System for Fleet {
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
            "Move" | "Moved" => Some("in this size nobody moves the namespace"),
            "Collect" => Some("nothing is left for the garbage collector"),
            "ProcessEnds" | "Made" => Some("in this size nothing is stopped, or made"),
            _ => None,
        }
    }

    fn clusters(&self) -> [&'static str; CLUSTERS] {
        CLUSTER_NAMES
    }

    fn times(&self) -> Vec<Timestamp> {
        vec![start()]
    }

    fn may_be_late(&self, program: &str) -> bool {
        match self.late {
            0 => true,
            1 => !program.starts_with("volumes"),
            _ => program.starts_with("volumes"),
        }
    }

    fn programs(&self) -> Vec<Program<Machine>> {
        let grant = grant();
        let (grants, pods) = ([grant.as_str()], [format!("{grant}/pod")]);
        let pods = [pods[0].as_str()];
        let hub = Program::new("hub", None)
            .with(shipped(|_| Scheduler::default()), &grants)
            .with(shipped(|_| Claims), &grants);
        let mut programs = vec![hub];
        let up = if self.is_b_down { 1 } else { CLUSTERS };
        for (c, name) in CLUSTER_NAMES.iter().enumerate().take(up) {
            let cluster = Ref::new(*name, CLUSTER_UIDS[c]);
            let syncer = move |_| Syncer::new(cluster.clone(), boot_id(c)).copying();
            let runtime = move |_| Runtime::new(boot_id(c)).with_storage();
            programs.extend([
                Program::new(format!("syncer-{name}"), Some(c)).with(shipped(syncer), &grants),
                Program::new(format!("runtime-{name}"), Some(c)).with(shipped(runtime), &pods),
                self.volumes(c),
            ]);
        }
        programs
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        match self.first {
            First::New => {}
            First::Running => return put(servers, First::New.rest(0), self.moves),
            First::Released => return put(servers, First::Running.rest(1), self.moves),
        }
        let class = json!({"provisioner": LOCAL_DRIVER});
        let name = Name::cluster_wide(LOCAL_CLASS);
        let cluster = servers.put(servers.empty(), &STORAGE_CLASS, &name, class);
        let name = Name::cluster_wide(PLACES);
        let cluster = servers.put(cluster, &NAMESPACE, &name, json!({}));
        let class = json!({"driver": LOCAL_DRIVER, "deletionPolicy": "Delete"});
        let name = Name::cluster_wide(LOCAL_CLASS);
        let cluster = servers.put(cluster, &SNAPSHOT_CLASS, &name, class);
        let machine = |c: usize| {
            let storage = Storage { cluster: CLUSTER_UIDS[c].to_owned(), ..Storage::default() };
            Machine::default().with_storage(storage)
        };
        ([first_hub(servers), cluster, cluster], [machine(0), machine(1)], self.moves)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        ACTIONS.to_vec()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Machine>> {
        let mut moves = Vec::new();
        if scene.chance > 0 {
            let to = if truth::read(scene).desired == Some(0) { "b" } else { "a" };
            let patch = json!({"metadata": {"annotations": {ANNOTATION_CLUSTER: to}}});
            let hub = scene.servers.change(scene.contents[0], &NAMESPACE, &namespace(), &patch);
            let mut found = scene.at_hub(MOVE, hub);
            found.chance -= 1;
            moves.push(found);
        }
        (0..CLUSTERS).for_each(|c| ends(scene, c, &mut moves));
        moves
    }

    fn crash(&self, program: &str, machine: &Machine) -> Machine {
        if program.starts_with("runtime") {
            return machine.with_processes(machine.processes.without_runtime());
        }
        let mut machine = machine.clone();
        if program.starts_with("volumes") {
            machine.storage = machine.storage.crashed();
        }
        machine
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        truth::read(scene)
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        truth::promises()
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        let is_moved = self.first == First::Released || self.moves == 1;
        if is_moved && !self.is_b_down { vec![truth::moved()] } else { Vec::new() }
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        let runs: Goal<Self> = Goal {
            name: "RunsWhereDesired",
            sentence: "in the end the namespace runs where people want it",
            while_true: |_, truth| truth.desired.is_some(),
            then: |system, truth| system.is_done(truth),
        };
        if self.live { vec![runs] } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        MISTAKES.iter().map(Row::mistake).collect()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        // As long as cluster b does nothing, a namespace that was released for it waits.
        truth.is_as_desired() || self.is_b_down && truth.owner == Some(1)
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        let named = |place: Option<usize>| place.map_or("none", |place| CLUSTER_NAMES[place]);
        let cluster = |c: usize| {
            let it = &truth.clusters[c];
            format!(
                "epoch {}, released {}, running {:?}, volume {:?}, snapshots {:?}",
                it.epoch, it.released, it.running, it.volume, it.snapshots
            )
        };
        vec![
            ("desired", named(truth.desired).to_owned()),
            (
                "grant",
                format!("{:?}, owner {}, epoch {}", truth.phase, named(truth.owner), truth.epoch),
            ),
            ("pinned", format!("{:?}", truth.pinned)),
            ("a", cluster(0)),
            ("b", cluster(1)),
        ]
    }
}

/// What ends by itself on a cluster, and what the garbage collector takes away there.
fn ends(scene: &Scene<'_, Fleet>, c: usize, moves: &mut Vec<Move<Machine>>) {
    let unchanged = |name: usize| scene.at_hub(name, scene.contents[0]);
    let machine = &scene.machines[c];
    let mut machine_becomes = |name: usize, after: Machine| {
        let mut found = unchanged(name);
        found.machines[c] = Some(after);
        moves.push(found);
    };
    for after in machine.endings() {
        machine_becomes(PROCESS_ENDS, after);
    }
    for (ending, storage) in machine.storage.endings() {
        let name = match ending {
            Ending::Made => MADE,
            Ending::Moved => MOVED,
            Ending::Fails | Ending::FailsForGood | Ending::BringsNothing | Ending::Dies => continue,
        };
        machine_becomes(name, machine.with_storage(storage));
    }
    let all = |kind: &Kind| {
        let found = scene.cluster(c).list(kind).into_iter();
        found.map(|object| (kind.clone(), object)).collect::<Vec<_>>()
    };
    let owned: Vec<_> = OWNED.iter().flat_map(all).collect();
    for server in collected(scene.servers, scene.contents[1 + c], &owned) {
        let mut found = unchanged(COLLECT);
        found.servers[1 + c] = server;
        moves.push(found);
    }
}

/// The servers and machines of another world that came to rest.
fn put(
    servers: &Servers,
    rest: Rest<Machine>,
    moves: u32,
) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
    let server = |objects: Vec<(Kind, Name, Value)>| {
        let put = |server: u32, (kind, name, object): (Kind, Name, Value)| {
            servers.put(server, &kind, &name, object)
        };
        objects.into_iter().fold(servers.empty(), put)
    };
    (rest.objects.map(server), rest.machines, moves)
}

/// A hub with its clusters, and a namespace that asks for cluster a, with a pod and its claim.
fn first_hub(servers: &Servers) -> u32 {
    let at = start().to_string();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": at})
    };
    let mut hub = servers.empty();
    for (c, name) in CLUSTER_NAMES.iter().enumerate() {
        let cluster = json!({
            "metadata": {"uid": CLUSTER_UIDS[c], "finalizers": [FINALIZER_LIVE_GRANTS]},
            "spec": {"connection": {"logicalCluster": name}},
            "status": {
                "conditions": [condition("Ready", "Ready", "the cluster accepts namespaces"),
                    condition("Reachable", "Heard", "the syncer sends heartbeats")],
                "heartbeat": {"sequence": 1, "receivedSequence": 1, "receivedAt": at},
                "storageClasses": [{"name": LOCAL_CLASS, "canSnapshot": true}],
            },
        });
        hub = servers.put(hub, &WORKLOAD_CLUSTER, &Name::cluster_wide(name), cluster);
    }
    let home = json!({"metadata": {"uid": NAMESPACE_UID,
        "labels": {"interlock.dev/placed": "true"}, "annotations": {ANNOTATION_CLUSTER: "a"}}});
    hub = servers.put(hub, &NAMESPACE, &namespace(), home);
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": LOCAL_CLASS,
        "resources": {"requests": {"storage": "1Gi"}}}});
    hub = servers.put(hub, &CLAIM, &Name::within("shop", "data"), claim);
    let pod = json!({"spec": {"runtimeClassName": "interlock-process",
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        "containers": [{"name": "main", "image": "none", "command": ["writer"],
            "volumeMounts": [{"name": "v", "mountPath": "/data"}]}]}});
    servers.put(hub, &POD, &Name::within("shop", "pod"), pod)
}

#[cfg(test)]
mod tests;
