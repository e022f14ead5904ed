//! The shipped controller as it is, twice at once: a cluster, two turns and their owners around it.

use crate::turn::{CLUSTER, Decision, Facts, TURN, Turns, holder, turn};
use interlock_api::turns::TurnPhase;
use interlock_checker::Entry;
use interlock_kernel::{Bent, Name, Room};
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Scene, Servers, System,
    World, shipped,
};
use serde_json::json;

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: "turns",
    summary: "the shipped controller of maintenance turns, whatever crashes, lags or is late",
    keys: &Hostility::KEYS,
    words: &[],
    seed_config: None,
    build: |size| {
        let (hostility, room) = (Hostility::from_size("turns", size)?, Bent::new(Turns));
        Ok(Box::new(World::new(Maintenance { hostility, room })))
    },
};

/// A cluster and the people who maintain it.
#[derive(Clone)]
pub struct Maintenance {
    hostility: Hostility,
    room: Bent<Turns>,
}

impl System for Maintenance {
    type Machine = ();
    type Past = ();
    type Truth = Facts;

    fn hostility(&self) -> Hostility {
        self.hostility
    }

    fn programs(&self) -> Vec<Program<()>> {
        let room = self.room;
        let program = |name| Program::new(name, None).with(shipped(move |_| room), &["west"]);
        ["controllers", "second-controllers"].map(program).into()
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [(); CLUSTERS], Chance) {
        let empty = servers.empty();
        let hub = servers.put(empty, &CLUSTER, &Name::cluster_wide("west"), json!({}));
        let (kernel, turn) = (Name::cluster_wide("kernel"), json!({"spec": {"cluster": "west"}}));
        let hub = servers.put(hub, &TURN, &kernel, turn);
        ([hub, empty, empty], [(), ()], 0)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        vec![
            ("Finish", "people", true),
            // The others happen once.
            ("CreateTurn", "people", true),
            ("DeleteTurn", "people", false),
            ("DeleteCluster", "people", false),
            ("CreateCluster", "people", true),
        ]
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<()>> {
        let (servers, hub) = (scene.servers, scene.contents[0]);
        // Both turns are of the same second, and the first one by uid is the second to be created.
        let [west, first, second] = ["west", "kernel", "disks"].map(Name::cluster_wide);
        let mut next = vec![
            (1, servers.put(hub, &TURN, &second, json!({"spec": {"cluster": "west"}}))),
            (2, servers.remove(hub, &TURN, &first)),
            (3, servers.remove(hub, &CLUSTER, &west)),
        ];
        if scene.chance >> 3 & 1 == 1 && scene.hub().get(&CLUSTER, &west).is_none() {
            next.push((4, servers.put(hub, &CLUSTER, &west, json!({}))));
        }
        next.retain(|(name, _)| scene.chance >> name & 1 == 0);
        let turns = scene.hub().list(&TURN).into_iter();
        for open in turns.filter(|object| turn(object).phase == TurnPhase::Open) {
            let finished = json!({"spec": {"finished": true}});
            next.push((0, servers.change(hub, &TURN, &Name::of(&open), &finished)));
        }
        let made = next.into_iter().map(|(name, hub)| {
            let once = if name == 0 { 0 } else { 1 << name };
            Move { chance: scene.chance | once, ..scene.at_hub(name, hub) }
        });
        made.collect()
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Facts {
        let west = scene.hub().get(&CLUSTER, &Name::cluster_wide("west"));
        let turns = scene.hub().list(&TURN).iter().map(turn).collect();
        Facts { holder: west.and_then(|west| holder(&west)), turns, ..Facts::default() }
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        vec![Promise {
            name: "AtMostOneOpen",
            sentence: "a turn that is open has the cluster, and no other turn is open",
            holds: |_, truth| {
                let mut open = truth.turns.iter().filter(|turn| turn.phase == TurnPhase::Open);
                open.all(|turn| truth.holder.as_ref() == Some(&turn.uid))
            },
        }]
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        let ends = Goal {
            name: "EveryTurnEnds",
            sentence: "every turn is opened and over in the end, and the cluster is free",
            while_true: |system: &Self, truth| !system.is_done(truth),
            then: |_, _| false,
        };
        self.hostility.is_live().then_some(ends).into_iter().collect()
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        let believing = Bent::new(Turns).deciding(|facts| {
            Turns::decide(&Facts { is_holder_gone: Some(true), ..facts.clone() })
        });
        let keeping = Bent::new(Turns).deciding(|facts| match Turns::decide(facts) {
            Decision::TakeBack => Decision::LiveRead,
            decision => decision,
        });
        vec![
            Mistake {
                name: "absence-is-deletion",
                sentence: "a turn that the cache does not show counts as deleted",
                breaks: &["AtMostOneOpen"],
                system: Maintenance { hostility: Hostility::HARSH, room: believing },
            },
            Mistake {
                name: "never-taken-back",
                sentence: "a turn that is over keeps the cluster",
                breaks: &["EveryTurnEnds"],
                system: Maintenance { hostility: Hostility::LIVE, room: keeping },
            },
        ]
    }

    fn is_done(&self, truth: &Facts) -> bool {
        let are_done = truth.turns.iter().all(|turn| turn.phase == TurnPhase::Done);
        are_done && truth.holder.is_none()
    }

    fn show(&self, truth: &Facts) -> Vec<(&'static str, String)> {
        vec![
            ("holder", truth.holder.clone().unwrap_or_default()),
            ("turns", format!("{:?}", truth.turns)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_checker::{Options, Size};
    use interlock_kernel::testing::{NoMachine, survives};

    #[test]
    fn promises_are_kept_by_the_controller_that_ships_and_mistakes_are_found() {
        for (size, states) in [("", 35_016), ("flights=0,stale=0,live=1", 108)] {
            let world = Size::parse(size).and_then(|size| (ENTRY.build)(&size)).expect("a world");
            let report = world.check("turns", &Options::default()).expect("it is explored");
            assert!(report.all_hold() && report.complete, "{report:?}");
            assert_eq!(report.distinct_states, states, "{size}");
            let report = world.check_mutants("turns", &Options::default());
            assert!(report.as_ref().is_ok_and(|report| report.all_killed()), "{report:?}");
        }
    }

    #[test]
    fn objects_that_cannot_be_read_do_no_harm() {
        let held = json!({"name": "west", "finalizers": ["interlock.dev/turn-gone"]});
        let turn = json!({"kind": "MaintenanceTurn", "metadata": {"name": "disks", "uid": "d"},
            "spec": {"cluster": "west"}, "status": {"phase": "Open"}});
        survives(&Turns, &NoMachine, &[turn, json!({"kind": "WorkloadCluster", "metadata": held})]);
    }
}
