//! Opens the turns of a cluster one after the other. A step is about one cluster.
//!
//! Which turn has a cluster is written on the WorkloadCluster itself, as a finalizer. Each write carries the
//! version that was seen, so two turns never have one cluster; and no cluster is gone before its turn is over.

use interlock_api::turns::{MaintenanceTurnStatus, TURN_FINALIZER_PREFIX, TurnPhase};
use interlock_api::{GROUP, VERSION};
use interlock_kernel::{
    Address, GroupVersion, Kind, LiveReads, Name, Nothing, Object, Observed, Place, Read, Right,
    Room, Seen, Step, Subject, Verb, View, Watch, Watcher, Write, read_part,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

const V1ALPHA1: GroupVersion = GroupVersion::new(GROUP, VERSION);
/// A turn.
pub const TURN: Kind = Kind::cluster_wide(V1ALPHA1, "MaintenanceTurn", "maintenanceturns");
/// A cluster.
pub const CLUSTER: Kind = Kind::cluster_wide(V1ALPHA1, "WorkloadCluster", "workloadclusters");

fn cluster_of(turn: &Object) -> Option<&str> {
    turn.data["spec"]["cluster"].as_str()
}

/// All that one decision depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Facts {
    /// The uid of the turn that has the cluster.
    pub holder: Option<String>,
    /// Whether that turn is gone, by a live read; None: there was none yet.
    pub is_holder_gone: Option<bool>,
    /// Whether the cluster is being deleted.
    pub is_terminating: bool,
    /// The turns of the cluster that the cache shows, the oldest first.
    pub turns: Vec<Turn>,
}

/// A turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Turn {
    /// Its identity.
    pub uid: String,
    /// Whether its owner is finished, or deletes it.
    pub is_finished: bool,
    /// What its status says.
    pub phase: TurnPhase,
}

/// The one next thing to do. A turn is named by its place in [`Facts::turns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing until the cache shows what a live read showed.
    WaitForCache,
    /// Read live whether the turn that has the cluster still exists.
    LiveRead,
    /// Give the cluster to this turn.
    Give(usize),
    /// Take the cluster back.
    TakeBack,
    /// Report the phase of this turn in its status.
    Report(usize, TurnPhase),
}

/// The objects that a decision is about.
pub struct Scene {
    now: String,
    cluster: Object,
    turns: Vec<Object>,
}

/// The controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turns;

impl Watcher for Turns {
    fn name(&self) -> &'static str {
        "turns/turn"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::all(Place::HUB, &TURN), Watch::all(Place::HUB, &CLUSTER)]
    }

    fn rights(&self) -> Vec<Right> {
        let on_turns = Right::to(Place::HUB, &TURN, &[Verb::PatchStatus]);
        [on_turns, Right::to(Place::HUB, &CLUSTER, &[Verb::Patch])].concat()
    }

    fn subjects(&self, watch: &Watch, object: &Object, _: &dyn View) -> Vec<Subject> {
        let name = object.metadata.name.as_deref();
        let cluster = if watch.kind == TURN { cluster_of(object) } else { name };
        cluster.map(Subject::from).into_iter().collect()
    }
}

impl Room for Turns {
    type Outside = Nothing;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        reads: &LiveReads<Nothing>,
    ) -> Observed<Facts, Scene> {
        let address = Address::new(Place::HUB, &CLUSTER, Name::cluster_wide(subject));
        let Some(cluster) = view.get(Place::HUB, &CLUSTER, &address.name) else {
            return Observed::nothing("the cache shows no such WorkloadCluster");
        };
        let mut turns = view.list(Place::HUB, &TURN, None);
        turns.retain(|turn| cluster_of(turn) == Some(subject));
        turns.sort_by_key(|turn| (turn.metadata.creation_timestamp.clone(), Seen::of(turn).uid));
        let holder = holder(&cluster);
        let live = reads.objects.get(&address).zip(reads.lists.get(&(Place::HUB, TURN, None)));
        let facts = Facts {
            // The list was read after the cluster. If the cluster is as in the cache, the turn that has
            // it existed before the list was read, and one that is not listed is gone.
            is_holder_gone: live.map(|(live, turns)| {
                let is_same = live.as_ref().map(|live| Seen::of(live)) == Some(Seen::of(&cluster));
                is_same && !turns.iter().any(|turn| Some(Seen::of(turn).uid) == holder)
            }),
            holder,
            is_terminating: cluster.metadata.deletion_timestamp.is_some(),
            turns: turns.iter().map(turn).collect(),
        };
        // Whole seconds are what the wire has.
        Observed::Seen { facts, scene: Scene { now: format!("{:.0}", view.now()), cluster, turns } }
    }

    fn decide(facts: &Facts) -> Decision {
        let place_of = |is_it: &dyn Fn(&Turn) -> bool| facts.turns.iter().position(is_it);
        // A turn reports that it is over before the cluster is taken back, and never opens again. A
        // controller that still believes in it cannot open it then: the turn has another version.
        if let Some(over) = place_of(&|turn| turn.is_finished && turn.phase != TurnPhase::Done) {
            return Decision::Report(over, TurnPhase::Done);
        }
        let Some(holder) = &facts.holder else {
            return match place_of(&|turn| turn.phase != TurnPhase::Done) {
                None => Decision::Rest("no turn waits for the cluster"),
                Some(_) if facts.is_terminating => Decision::Rest("the cluster is being deleted"),
                Some(oldest) => Decision::Give(oldest),
            };
        };
        let place = place_of(&|turn| turn.uid == *holder);
        match (place.map(|place| (place, facts.turns[place].phase)), facts.is_holder_gone) {
            (Some((place, TurnPhase::Waiting)), _) => Decision::Report(place, TurnPhase::Open),
            (Some((_, TurnPhase::Open)), _) => Decision::Rest("a turn has the cluster"),
            (Some((_, TurnPhase::Done)), _) => Decision::TakeBack,
            // Absence from a cache is not deletion: the owner of the turn may be at work.
            (None, None) => Decision::LiveRead,
            (None, Some(false)) => Decision::WaitForCache,
            (None, Some(true)) => Decision::TakeBack,
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        let because = "the cache does not show the turn that has the cluster".to_owned();
        match decision {
            Decision::Rest(because) => Step::rest(because),
            Decision::WaitForCache => Step::Wait { because, at_most: Duration::from_secs(5) },
            Decision::LiveRead => {
                let address = Address::new(Place::HUB, &CLUSTER, Name::of(&scene.cluster));
                let turns = Read::List { place: Place::HUB, kind: TURN, namespace: None };
                Step::LiveRead { reads: vec![Read::Object(address), turns], because }
            }
            Decision::Give(place) => {
                hold(scene, Some(&scene.turns[place]), "the turn is the oldest")
            }
            Decision::TakeBack => hold(scene, None, "the turn that had the cluster is over"),
            Decision::Report(place, phase) => {
                let change = json!({"status": {"phase": phase, "phaseSince": scene.now}});
                let write = Write::patch_status(Place::HUB, &TURN, &scene.turns[place], change);
                Step::write(write, format!("the turn is {phase:?}"))
            }
        }
    }
}

/// The uid of the turn that has a cluster.
pub(crate) fn holder(cluster: &Object) -> Option<String> {
    let mut finalizers = cluster.metadata.finalizers.iter().flatten();
    finalizers.find_map(|it| it.strip_prefix(TURN_FINALIZER_PREFIX)).map(str::to_owned)
}

/// A turn as a fact; a turn without a status waits.
pub(crate) fn turn(object: &Object) -> Turn {
    let status = read_part::<MaintenanceTurnStatus>(object, "status").ok().flatten();
    let is_finished = object.data["spec"]["finished"] == true;
    let is_finished = is_finished || object.metadata.deletion_timestamp.is_some();
    Turn { uid: Seen::of(object).uid, is_finished, phase: status.unwrap_or_default().phase }
}

/// Writes which turn has the cluster, over the version of the cluster that was seen.
fn hold(scene: &Scene, turn: Option<&Object>, because: &str) -> Step<Nothing> {
    let known = scene.cluster.metadata.finalizers.iter().flatten().cloned();
    let others = known.filter(|it| !it.starts_with(TURN_FINALIZER_PREFIX));
    let own = turn.map(|turn| format!("{TURN_FINALIZER_PREFIX}{}", Seen::of(turn).uid));
    let change = json!({"metadata": {"finalizers": others.chain(own).collect::<Vec<String>>()}});
    Step::write(Write::patch(Place::HUB, &CLUSTER, &scene.cluster, change), because)
}
