//! What people do, and what happens to calls on their way.

use super::clients::{Machine, UnderWay};
use super::{Identities, name};
use crate::document;
use crate::kinds::{POLICY, ROLE};
use interlock_api::identities::{Mark, TAG_OWNER_UID};
use interlock_world::{Chance, Move, Scene};
use serde::Deserialize;

/// The names of the programs, by process.
pub(super) const PROGRAMS: [&str; 2] = ["controllers", "second-controllers"];

/// A policy that somebody attaches to whatever roles there are.
pub(super) const AUDIT: &str = "arn:aws:iam::1:policy/audit";

/// What may still happen, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) faults: u32,
    pub(super) lags: u32,
    pub(super) elapses: u32,
    pub(super) drifts: u32,
    pub(super) edits: u32,
    pub(super) deletes: u32,
    pub(super) again: u32,
}

impl Left {
    pub(super) fn pack(self) -> Chance {
        self.faults
            | self.lags << 2
            | self.elapses << 4
            | self.drifts << 7
            | self.edits << 9
            | self.deletes << 11
            | self.again << 12
    }

    pub(super) fn unpack(chance: Chance) -> Left {
        Left {
            faults: chance & 3,
            lags: chance >> 2 & 3,
            elapses: chance >> 4 & 7,
            drifts: chance >> 7 & 3,
            edits: chance >> 9 & 3,
            deletes: chance >> 11 & 1,
            again: chance >> 12 & 1,
        }
    }
}

/// What a move of the cloud uses up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spent {
    Nothing,
    Fault,
    Lag,
}

/// What happens to calls on their way: the first of the moves, by number.
pub(super) const ON_THE_WAY: [(&str, &str, bool); 6] = [
    ("Answer", "cloud", true),
    ("AnswerAndLag", "cloud", false),
    ("StopWaiting", "cloud", false),
    ("LandLate", "cloud", true),
    ("GetLost", "cloud", false),
    ("CatchUp", "cloud", true),
];

/// What can happen to calls on their way.
pub(super) fn on_the_way(
    machine: &Machine,
    may_fail: bool,
    may_lag: bool,
) -> Vec<(usize, Machine, Spent)> {
    let mut next = Vec::new();
    for (place, UnderWay { awaited_by, .. }) in machine.calls.iter().enumerate() {
        let landed = machine.landed(place, false);
        if awaited_by.is_some() {
            next.push((0, landed, Spent::Nothing));
            if may_lag && machine.shown.is_none() {
                next.push((1, machine.landed(place, true), Spent::Lag));
            }
            if may_fail {
                next.push((2, machine.given_up(place), Spent::Fault));
            }
        } else {
            next.push((3, landed, Spent::Nothing));
            next.push((4, machine.dropped(place), Spent::Nothing));
        }
    }
    if machine.shown.is_some() {
        next.push((5, Machine { shown: None, ..machine.clone() }, Spent::Nothing));
    }
    next
}

/// What happens by itself: its name, who does it, and whether it must happen in the end.
pub(super) fn moves() -> Vec<(&'static str, &'static str, bool)> {
    let others = [
        ("Elapse", "clock", true),
        ("Drift", "somebody", false),
        ("DriftAway", "somebody", false),
        ("DriftTags", "somebody", false),
        ("Edit", "tenant", false),
        ("Delete", "tenant", false),
        ("DeclareAgain", "tenant", false),
    ];
    ON_THE_WAY.into_iter().chain(others).collect()
}

/// What can happen now.
pub(super) fn next(
    system: &Identities,
    scene: &Scene<'_, Identities>,
    left: Left,
) -> Vec<Move<Machine>> {
    let machine = &*scene.machines[0];
    let mut next = Vec::new();
    let mut to = |name: usize, machine: Machine, left: Left| {
        let machines = [Some(machine), None];
        let chance = left.pack();
        next.push(Move { machines, chance, ..scene.at_hub(name, scene.contents[0]) });
    };
    for (name, machine, spent) in on_the_way(machine, left.faults > 0, left.lags > 0) {
        let left = match spent {
            Spent::Nothing => left,
            Spent::Fault => Left { faults: left.faults - 1, ..left },
            Spent::Lag => Left { lags: left.lags - 1, ..left },
        };
        to(name, machine, left);
    }
    if left.elapses > 0 && is_waited_for(scene) {
        to(6, machine.elapsed(), Left { elapses: left.elapses - 1, ..left });
    }
    if left.drifts > 0 {
        let fewer = Left { drifts: left.drifts - 1, ..left };
        for (name, drifted) in drifts(machine) {
            to(name, drifted, fewer);
        }
    }
    next.extend(tenant(system, scene, left));
    next
}

/// What the tenant does.
fn tenant(system: &Identities, scene: &Scene<'_, Identities>, left: Left) -> Vec<Move<Machine>> {
    let (servers, hub, kind) = (scene.servers, scene.contents[0], system.size.kind());
    let mut next = Vec::new();
    let mut to = |name: usize, hub: u32, left: Left| {
        next.push(Move { chance: left.pack(), ..scene.at_hub(name, hub) });
    };
    let there = scene.hub().get(&kind, &name());
    let is_declared = there.as_ref().is_some_and(|it| it.metadata.deletion_timestamp.is_none());
    if left.edits > 0 && is_declared {
        let edited = servers.change(hub, &kind, &name(), &system.size.declared(left.edits % 2));
        to(10, edited, Left { edits: left.edits - 1, ..left });
    }
    if left.deletes > 0 && is_declared {
        to(11, servers.remove(hub, &kind, &name()), Left { deletes: 0, ..left });
    }
    if left.again > 0 && left.deletes == 0 && there.is_none() {
        let again = servers.put(hub, &kind, &name(), system.size.declared(0));
        to(12, again, Left { again: 0, ..left });
    }
    next
}

/// Whether some process waits for the late-call window to pass, and nothing can land any more.
fn is_waited_for(scene: &Scene<'_, Identities>) -> bool {
    let machine = &*scene.machines[0];
    if !machine.calls.is_empty() || machine.shown.is_some() {
        return false;
    }
    let marks = [POLICY, ROLE].map(|kind| {
        let status = scene.hub().part(&kind, &name(), "status");
        Option::<Mark>::deserialize(&status["mark"]).ok().flatten()
    });
    let is_marked = (0..machine.clients.len()).any(|number| {
        let process = machine.process(number);
        let is_its =
            |mark: &Mark| mark.instance == process.instance && mark.quiet_at > Some(process.uptime);
        marks.iter().flatten().any(is_its)
    });
    is_marked || machine.clients.iter().any(|client| !client.sent.is_empty())
}

/// What somebody changes in the cloud: the document, the policy as a whole, its tags.
fn drifts(machine: &Machine) -> Vec<(usize, Machine)> {
    let mut drifts = Vec::new();
    for name in machine.account.policies.keys() {
        let changed = |change: &dyn Fn(&mut Machine)| {
            let mut machine = machine.clone();
            change(&mut machine);
            machine
        };
        let held = |machine: &mut Machine| machine.account.policies.remove(name);
        drifts.push((
            7,
            changed(&|machine| {
                if let Some(mut policy) = held(machine) {
                    let next = policy.versions.keys().max().copied().unwrap_or(0) + 1;
                    policy.versions.insert(next, r#"{"Statement": []}"#.to_owned());
                    policy.default = next;
                    machine.account.policies.insert(name.clone(), policy);
                }
            }),
        ));
        drifts.push((8, changed(&|machine| drop(held(machine)))));
        drifts.push((
            9,
            changed(&|machine| {
                if let Some(mut policy) = held(machine) {
                    policy.tags.remove(TAG_OWNER_UID);
                    machine.account.policies.insert(name.clone(), policy);
                }
            }),
        ));
    }
    for name in machine.account.roles.keys() {
        let mut drifted = machine.clone();
        if let Some(role) = drifted.account.roles.get_mut(name) {
            role.trust = document::closed("Drift").to_string();
            role.attached = [AUDIT.to_owned()].into();
        }
        drifts.push((7, drifted));
        let mut drifted = machine.clone();
        drifted.account.roles.remove(name);
        drifts.push((8, drifted));
    }
    drifts
}
