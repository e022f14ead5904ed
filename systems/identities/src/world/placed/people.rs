//! What placement and tenants do, and what happens to calls on their way.

use super::{NAMES, Placed, grant, role};
use crate::kinds::{CLUSTER, GRANT, ROLE};
use crate::providers::record::Record;
use crate::world::clients::Machine;
use crate::world::kept::admitted;
use crate::world::people::{ON_THE_WAY, Spent, on_the_way};
use interlock_api::identities::{Mark, RoleStatus};
use interlock_api::placement::{GrantStatus, Phase, RightsState};
use interlock_kernel::{Name, read_part};
use interlock_world::{Chance, Move, Scene, Servers};
use serde_json::{Value, json};

/// What may still happen, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) faults: u32,
    pub(super) lags: u32,
    pub(super) elapses: u32,
    pub(super) forced: u32,
    pub(super) deletes: u32,
}

impl Left {
    pub(super) fn pack(self) -> Chance {
        self.faults | self.lags << 2 | self.elapses << 4 | self.forced << 7 | self.deletes << 9
    }

    pub(super) fn unpack(chance: Chance) -> Left {
        Left {
            faults: chance & 3,
            lags: chance >> 2 & 3,
            elapses: chance >> 4 & 7,
            forced: chance >> 7 & 3,
            deletes: chance >> 9 & 1,
        }
    }
}

const ELAPSE: usize = ON_THE_WAY.len();
const REVOKE: usize = ELAPSE + 1;
const RELEASE: usize = ELAPSE + 2;
const FORCE: usize = ELAPSE + 3;
const GIVE: usize = ELAPSE + 4;
const PERMIT: usize = ELAPSE + 5;
const STOP: usize = ELAPSE + 6;
const DELETE: usize = ELAPSE + 7;
const REPORT_ISSUER: usize = ELAPSE + 8;

/// What happens by itself: its name, who does it, and whether it must happen in the end.
pub(super) fn moves() -> Vec<(&'static str, &'static str, bool)> {
    let others = [
        ("Elapse", "clock", true),
        ("Revoke", "placement", false),
        ("Release", "placement", true),
        ("Force", "somebody", false),
        ("Give", "placement", false),
        ("Permit", "placement", true),
        ("Stop", "placement", true),
        ("Delete", "tenant", false),
        ("ReportIssuer", "operator", false),
    ];
    ON_THE_WAY.into_iter().chain(others).collect()
}

/// The status of a Grant that was just given for an epoch: what else it says stays.
pub(super) fn granted(system: &Placed, servers: &Servers, hub: u32, epoch: i64) -> Value {
    let name = NAMES[system.owner(epoch)];
    let uid = servers.uid(hub, &CLUSTER, &Name::cluster_wide(name));
    json!({"phase": "Granted", "epoch": epoch, "owner": {"name": name, "uid": uid}})
}

/// What can happen now.
pub(super) fn next(system: &Placed, scene: &Scene<'_, Placed>, left: Left) -> Vec<Move<Machine>> {
    let machine = &*scene.machines[0];
    let mut next = Vec::new();
    let mut to = |name: usize, machine: Machine, left: Left| {
        let machines = [Some(machine.tried()), None];
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
        to(ELAPSE, machine.elapsed(), Left { elapses: left.elapses - 1, ..left });
    }
    next.extend(placement(system, scene, left));
    next.extend(shares_its_issuer(system, scene));
    next
}

/// The first cluster is set up anew, with the issuer of the other one.
fn shares_its_issuer(system: &Placed, scene: &Scene<'_, Placed>) -> Option<Move<Machine>> {
    let first = Name::cluster_wide(NAMES[0]);
    let reported = scene.hub().part(&CLUSTER, &first, "status")["issuer"].clone();
    let may_share = system.size.shared == 2 && reported == system.issuer(0);
    may_share.then(|| {
        let change = json!({"status": {"issuer": system.issuer(1)}});
        let hub = scene.servers.change(scene.contents[0], &CLUSTER, &first, &change);
        scene.at_hub(REPORT_ISSUER, hub)
    })
}

impl Machine {
    /// Whoever has a token tries it.
    fn tried(mut self) -> Machine {
        let accounts = [Some(&self.account), self.shown.as_deref()];
        let trusts = accounts.into_iter().flatten().flat_map(|it| it.roles.values());
        let epochs: Vec<i64> =
            trusts.flat_map(|role| admitted(&role.trust)).map(|(epoch, _)| epoch).collect();
        for epoch in epochs {
            let date = self.date;
            self.clusters.sessions.entry(epoch).or_insert((date, date)).1 = date;
        }
        self
    }
}

/// Whether somebody waits for the late-call window to pass, and nothing can land any more.
fn is_waited_for(scene: &Scene<'_, Placed>) -> bool {
    let machine = &*scene.machines[0];
    if !machine.calls.is_empty() || machine.shown.is_some() {
        return false;
    }
    let clusters = scene.hub().list(&CLUSTER);
    let records = clusters.iter().map(|cluster| Record::read(cluster).mark);
    let role = scene.hub().get(&ROLE, &role());
    let status = role.and_then(|it| read_part::<RoleStatus>(&it, "status").ok().flatten());
    let status = status.unwrap_or_default();
    let before = status.fence.and_then(|fence| fence.before);
    let is_fencing = before.is_some_and(|before| before.0.as_second() >= machine.date);
    let is_marked = (0..machine.clients.len()).any(|number| {
        let process = machine.process(number);
        let is_its =
            |mark: &Mark| mark.instance == process.instance && mark.quiet_at > Some(process.uptime);
        let marks = records.clone().chain([status.mark.clone()]);
        marks.flatten().any(|mark| is_its(&mark))
    });
    is_fencing || is_marked || machine.clients.iter().any(|client| !client.sent.is_empty())
}

/// What placement does, and the tenant.
fn placement(system: &Placed, scene: &Scene<'_, Placed>, left: Left) -> Vec<Move<Machine>> {
    let (servers, hub, machine) = (scene.servers, scene.contents[0], &*scene.machines[0]);
    let name = grant(servers, hub);
    let object = scene.hub().get(&GRANT, &name);
    let status = object.and_then(|it| read_part::<GrantStatus>(&it, "status").ok().flatten());
    let GrantStatus { phase, epoch, rights, .. } = status.unwrap_or_default();
    let (owner, running) = (system.owner(epoch), machine.clusters.running);
    let is_last = epoch >= system.size.epochs as i64;
    let mut next = Vec::new();
    let mut to = |number: usize, change: Value, left: Left| {
        let hub = servers.change(hub, &GRANT, &name, &json!({"status": change}));
        next.push(Move { chance: left.pack(), ..scene.at_hub(number, hub) });
    };
    match phase {
        Phase::Granted if !is_last => to(REVOKE, json!({"phase": "Revoking"}), left),
        Phase::Revoking if running[owner] != epoch => {
            to(RELEASE, json!({"phase": "Released"}), left);
        }
        Phase::Released | Phase::Fenced if !is_last => {
            to(GIVE, granted(system, servers, hub, epoch + 1), left);
        }
        _ => {}
    }
    if phase.is_held() && !is_last && left.forced > 0 {
        let change = json!({"phase": "Fenced", "fencedEpoch": epoch});
        to(FORCE, change, Left { forced: left.forced - 1, ..left });
    }
    let mut runs = |number: usize, cluster: usize, epoch: i64| {
        let mut machine = machine.clone();
        machine.clusters.running[cluster] = epoch;
        let machines = [Some(machine), None];
        next.push(Move { machines, ..scene.at_hub(number, hub) });
    };
    let mut entries = rights.iter();
    let is_ready = entries.all(|it| (it.epoch, it.state) == (epoch, RightsState::Ready));
    // A Role that is not listed yet is one that nobody waits for.
    if phase == Phase::Granted && running[owner] == 0 && is_ready && !rights.is_empty() {
        runs(PERMIT, owner, epoch);
    }
    for (cluster, runs_here) in running.into_iter().enumerate() {
        let is_over = runs_here != epoch || phase != Phase::Granted;
        if runs_here != 0 && is_over {
            runs(STOP, cluster, 0);
        }
    }
    let (kind, name) = match system.size.managed {
        0 => (ROLE, role()),
        _ => (CLUSTER, Name::cluster_wide(NAMES[0])),
    };
    let there = scene.hub().get(&kind, &name);
    if left.deletes > 0 && there.is_some_and(|it| it.metadata.deletion_timestamp.is_none()) {
        let hub = servers.remove(hub, &kind, &name);
        let chance = Left { deletes: 0, ..left }.pack();
        next.push(Move { chance, ..scene.at_hub(DELETE, hub) });
    }
    next
}
