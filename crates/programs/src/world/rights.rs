//! The controllers of placement and of identities together, explored as they ship: a namespace with a cloud role that
//! moves from one cluster to the other, also by force.
//!
//! `interlock check fleet/rights` runs this. The scheduler, the fencing controller, a syncer for each cluster and the
//! controller of roles are the controllers themselves. The cloud account is that of `identities`. The namespace has no
//! pods and no claims: what a syncer permits could start, and that is what the role has to trust.

mod ends;
mod machine;
mod mistakes;
mod promises;
#[cfg(test)]
mod tests;
mod truth;

use interlock_api::identities::FINALIZER_ROLE;
use interlock_api::names::{
    ANNOTATION_CLUSTER, FINALIZER_LIVE_GRANTS, LABEL_PLACED, PLACED_TRUE, grant_name,
};
use interlock_api::placement::Ref;
use interlock_checker::{Entry, Size, SizeError, SizeKey};
use interlock_identities::kinds::ROLE;
use interlock_identities::outside::Tags;
use interlock_identities::role::Roles;
use interlock_identities::settings::Settings;
use interlock_identities::world::clients::{InProcess, LATE_CALL_SECONDS};
use interlock_kernel::{Bent, Decide, Name};
use interlock_placement::fencing::Fencing;
use interlock_placement::kinds::{NAMESPACE, WORKLOAD_CLUSTER};
use interlock_placement::scheduler::Scheduler;
use interlock_placement::syncer::Syncer;
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Scene, Servers, System,
    World, shipped,
};
use jiff::Timestamp;
use machine::Machine;
use serde_json::{Value, json};
use std::sync::Arc;
use truth::Truth;

const NAME: &str = "fleet/rights";
const CLUSTER_NAMES: [&str; CLUSTERS] = ["a", "b"];
const CLUSTER_UIDS: [&str; CLUSTERS] = ["uid-a", "uid-b"];
const NAMESPACE_UID: &str = "0f3a9c1e";
/// The namespace of the tenant.
const SHOP: &str = "shop";
/// The name of the Role, and of its service account.
const OWN: &str = "s3";
/// The ForceRelease.
const FORCE: &str = "force";
/// The machine whose state has the cloud account: power is lost on the other one.
const CLOUD: usize = 1;

const KEYS: [SizeKey; 8] = [
    SizeKey::new("moves", "1: people move the namespace to cluster b", 1, 0, 1),
    SizeKey::new("force", "1: cluster a loses power, and people declare it gone", 0, 0, 1),
    SizeKey::new("elapses", "times that the late-call window passes", 3, 0, 7),
    SizeKey::new("flights", "steps that are under way at once", 1, 0, 1),
    SizeKey::new("stale", "objects that are out of date at once", 0, 0, 1),
    SizeKey::new("crash", "crashes", 0, 0, 1),
    SizeKey::new("wakes", "1: whoever gains work must be woken", 0, 0, 1),
    SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of placement and cloud roles together, through a move, also by force",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Placed::from_size(size)?))),
};

/// A namespace with a cloud role, its clusters and the cloud, in some size.
#[derive(Clone)]
pub struct Placed {
    moves: bool,
    force: bool,
    elapses: Chance,
    hostility: Hostility,
    live: bool,
    roles: Bent<Roles>,
    /// What the syncers decide otherwise, on purpose.
    syncs: Option<Decide<Syncer>>,
    /// The size that it was made of.
    numbers: [u64; KEYS.len()],
}

impl Placed {
    fn from_size(size: &Size) -> Result<Self, SizeError> {
        let numbers = size.numbers(NAME, &KEYS)?;
        let [moves, force, elapses, flights, stale, crash, wakes, live] = numbers;
        let settings = Settings {
            late_call_seconds: LATE_CALL_SECONDS,
            provider_arn: Some("arn:aws:iam::1:oidc-provider/hub.example".to_owned()),
            ..Settings::of_fleet("fleet")
        };
        Ok(Placed {
            moves: moves == 1,
            force: force == 1,
            elapses: elapses as Chance,
            // Crashes are counted: each is another process, with another name.
            hostility: Hostility::of([flights, stale, crash, 0, wakes, 1]),
            live: live == 1,
            roles: Bent::new(Roles { settings: Arc::new(settings) }),
            syncs: None,
            numbers,
        })
    }

    fn syncer(&self, c: usize) -> Program<Machine> {
        let (grant, syncs) = (grant(), self.syncs);
        let cluster = Ref::new(CLUSTER_NAMES[c], CLUSTER_UIDS[c]);
        let syncer = move |_| {
            let boot_id = format!("boot-{}", CLUSTER_NAMES[c]);
            let room = Bent::new(Syncer::new(cluster.clone(), boot_id));
            match syncs {
                Some(decide) => room.deciding(decide),
                None => room,
            }
        };
        let program = Program::new(format!("syncer-{}", CLUSTER_NAMES[c]), Some(c));
        program.with(shipped(syncer), &[grant.as_str()])
    }
}

fn namespace() -> Name {
    Name::cluster_wide(SHOP)
}

/// The name of the Grant, and of the namespace on the clusters.
fn grant() -> String {
    grant_name(SHOP, NAMESPACE_UID)
}

fn role() -> Name {
    Name::within(SHOP, OWN)
}

fn cluster(c: usize) -> Name {
    Name::cluster_wide(CLUSTER_NAMES[c])
}

/// The issuer of the tokens of a cluster.
fn issuer(c: usize) -> String {
    format!("https://{}.example", CLUSTER_NAMES[c])
}

/// How often the late-call window may still pass: the lowest bits of what is left to happen.
fn elapses_left(chance: Chance) -> Chance {
    chance & 7
}

/// What the hub says of a cluster.
fn conditions(c: usize, is_reachable: bool) -> Value {
    let at = Timestamp::UNIX_EPOCH.to_string();
    let condition = |kind: &str, is_true: bool, reason: &str, message: &str| {
        let status = if is_true { "True" } else { "False" };
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": at})
    };
    let trusted = format!("the cloud trusts the issuer {}", issuer(c));
    let (ready, heard) = match is_reachable {
        true => ("Ready", "Heard"),
        false => ("NotReachable", "Silent"),
    };
    json!([
        condition("Ready", is_reachable, ready, ""),
        condition("Reachable", is_reachable, heard, ""),
        condition("IssuerReady", true, "ProviderFound", &trusted),
    ])
}

impl System for Placed {
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
            "Move" => Some("in this size nobody moves the namespace"),
            "PowerOff" | "DeclareGone" => Some("in this size every cluster has power"),
            "Answer" => Some("in this size nothing moves"),
            "Elapse" => Some("in this size nothing is late"),
            _ => None,
        }
    }

    fn clusters(&self) -> [&'static str; CLUSTERS] {
        CLUSTER_NAMES
    }

    fn programs(&self) -> Vec<Program<Machine>> {
        let (grant, roles) = (grant(), self.roles.clone());
        let roles = move |_| InProcess { controller: roles.clone(), number: 0 };
        let subject = format!("{SHOP}/{OWN}");
        let hub = Program::new("hub", None)
            .with(shipped(|_| Scheduler::default()), &[grant.as_str()])
            .with(shipped(|_| Fencing), &[FORCE]);
        let identities = Program::new("identities", None)
            .on_machine(Some(CLOUD))
            .with(shipped(roles), &[subject.as_str()]);
        vec![hub, identities, self.syncer(0), self.syncer(1)]
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        let empty = servers.empty();
        let home = json!({"metadata": {"uid": NAMESPACE_UID, "labels": {LABEL_PLACED: PLACED_TRUE},
            "annotations": {ANNOTATION_CLUSTER: "a"}}});
        let mut hub = servers.put(empty, &NAMESPACE, &namespace(), home);
        let mut machines = [Machine::default(), Machine::default()];
        for c in 0..CLUSTERS {
            let object = json!({
                "metadata": {"uid": CLUSTER_UIDS[c], "finalizers": [FINALIZER_LIVE_GRANTS]},
                "spec": {"connection": {"logicalCluster": CLUSTER_NAMES[c]}},
                "status": {"conditions": conditions(c, true), "issuer": issuer(c)},
            });
            hub = servers.put(hub, &WORKLOAD_CLUSTER, &cluster(c), object);
            machines[CLOUD].cloud.account.providers.insert(issuer(c), Tags::new());
        }
        let declared = json!({"metadata": {"finalizers": [FINALIZER_ROLE]},
            "spec": {"serviceAccountName": OWN}});
        hub = servers.put(hub, &ROLE, &role(), declared);
        ([hub, empty, empty], machines, ends::first(self))
    }

    /// The namespace may run on cluster a, with its rights.
    fn begins(&self, truth: &Truth) -> bool {
        truth.is_settled()
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        ends::MOVES.to_vec()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Machine>> {
        ends::next(scene)
    }

    fn crash(&self, program: &str, machine: &Machine) -> Machine {
        match program {
            "identities" => machine.with_cloud(machine.cloud.restarted(0)),
            _ => machine.clone(),
        }
    }

    fn boot(&self, machine: &Machine) -> Option<u8> {
        (!machine.is_off).then_some(0)
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        truth::read(scene)
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        promises::promises()
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        promises::reachable(self)
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        if self.live { promises::goals() } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        truth.is_settled() || truth.is_out_of_time
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        truth.show()
    }
}
