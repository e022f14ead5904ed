//! The shipped room of roles in a placed namespace, explored as it is: a Grant that is moved and released by force,
//! two clusters whose tokens are tried in every state, and a cloud account whose calls are late or lost.
//!
//! `interlock check identities/placed` runs this. Placement is people here: what its controllers do with a Grant is
//! explored in placement's own world.

mod mistakes;
mod people;
mod promises;
mod refine;
mod size;
#[cfg(test)]
mod tests;
mod truth;

use super::clients::{InProcess, LATE_CALL_SECONDS, Machine};
use super::people::PROGRAMS;
use crate::entries::Entries;
use crate::kinds::{CLUSTER, GRANT, NAMESPACE, ROLE};
use crate::providers::Providers;
use crate::role::Roles;
use crate::settings::Settings;
use interlock_api::identities::FINALIZER_ROLE;
use interlock_api::names::grant_name;
use interlock_checker::{Entry, Refinement};
use interlock_kernel::{Bent, Name};
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Scene, Servers, State,
    System, World, shipped,
};
use people::Left;
use serde_json::{Value, json};
use size::Size;
use std::sync::Arc;
use truth::Truth;

const NAME: &str = "identities/placed";
/// The namespace of the tenant.
const SHOP: &str = "shop";
/// The name of the Role, and of its service account.
const OWN: &str = "s3";
/// The clusters.
const NAMES: [&str; CLUSTERS] = ["a", "b"];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of roles and providers while a namespace moves, also by force",
    keys: &size::KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Placed::of(Size::read(size)?)))),
};

/// A Role in a placed namespace, and the cloud around it.
#[derive(Clone)]
pub struct Placed {
    size: Size,
    roles: Bent<Roles>,
    providers: Bent<Providers>,
    entries: Bent<Entries>,
}

fn settings(size: &Size) -> Arc<Settings> {
    Arc::new(Settings {
        late_call_seconds: LATE_CALL_SECONDS,
        manages_providers: size.managed == 1,
        provider_arn: Some("arn:aws:iam::1:oidc-provider/hub.example".to_owned()),
        ..Settings::of_fleet("fleet")
    })
}

fn role() -> Name {
    Name::within(SHOP, OWN)
}

fn namespace() -> Name {
    Name::cluster_wide(SHOP)
}

/// The Grant of the namespace.
fn grant(servers: &Servers, hub: u32) -> Name {
    Name::cluster_wide(&grant_name(SHOP, &servers.uid(hub, &NAMESPACE, &namespace())))
}

impl Placed {
    fn of(size: Size) -> Placed {
        let settings = settings(&size);
        Placed {
            size,
            roles: Bent::new(Roles { settings: Arc::clone(&settings) }),
            providers: Bent::new(Providers { settings }),
            entries: Bent::new(Entries),
        }
    }

    /// The issuer of a cluster, as it reports it at first.
    fn issuer(&self, cluster: usize) -> String {
        let name = if self.size.shared == 1 { NAMES[0] } else { NAMES[cluster] };
        format!("https://{name}.example")
    }

    /// The cluster that owns an epoch.
    fn owner(&self, epoch: i64) -> usize {
        if self.size.same == 1 || epoch % 2 == 1 { 0 } else { 1 }
    }

    fn cluster(&self, cluster: usize) -> Value {
        let trusted = format!("the cloud trusts the issuer {}", self.issuer(cluster));
        let ready = json!([{"type": "IssuerReady", "status": "True", "reason": "ProviderFound",
            "message": trusted, "lastTransitionTime": "1970-01-01T00:00:00Z"}]);
        // Where the room of providers runs, the condition is its own.
        let is_theirs = self.size.shared == 1 || self.size.managed == 1;
        let conditions = if is_theirs { json!([]) } else { ready };
        json!({"status": {"issuer": self.issuer(cluster), "conditions": conditions}})
    }
}

impl System for Placed {
    type Machine = Machine;
    type Past = refine::Past;
    type Truth = Truth;

    fn size(&self) -> String {
        self.size.to_string()
    }

    fn hostility(&self) -> Hostility {
        self.size.hostility()
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        self.size.explain(name)
    }

    fn programs(&self) -> Vec<Program<Machine>> {
        let subject = format!("{SHOP}/{OWN}");
        let program = |number: usize| {
            let Placed { roles, providers, entries, .. } = self.clone();
            let roles = move |_| InProcess { controller: roles.clone(), number };
            let providers = move |_| InProcess { controller: providers.clone(), number };
            let program = Program::new(PROGRAMS[number], Some(0));
            if self.size.managed == 1 {
                return program.with(shipped(providers), &NAMES);
            }
            let program = program.with(shipped(roles), &[&subject]);
            let program = program.asking(shipped(move |_| entries), 1);
            match self.size.shared {
                0 => program,
                _ => program.with(shipped(providers), &NAMES),
            }
        };
        (0..self.size.processes as usize).map(program).collect()
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        let empty = servers.empty();
        let labels = json!({"metadata": {"labels": {"interlock.dev/placed": "true"}}});
        let mut hub = servers.put(empty, &NAMESPACE, &namespace(), labels);
        let there = if self.size.managed == 1 { 1 } else { CLUSTERS };
        for (number, name) in NAMES.iter().enumerate().take(there) {
            hub = servers.put(hub, &CLUSTER, &Name::cluster_wide(name), self.cluster(number));
        }
        let uid = servers.uid(hub, &NAMESPACE, &namespace());
        let status = people::granted(self, servers, hub, 1);
        let object = json!({"spec": {"namespace": {"name": SHOP, "uid": uid}}, "status": status});
        let hub = servers.put(hub, &GRANT, &grant(servers, hub), object);
        let declared = json!({"metadata": {"finalizers": [FINALIZER_ROLE]},
            "spec": {"serviceAccountName": OWN}});
        let mut machine = Machine::default();
        if self.size.managed == 1 {
            return ([hub, empty, empty], [machine, Machine::default()], self.size.left().pack());
        }
        let hub = servers.put(hub, &ROLE, &role(), declared);
        for number in 0..CLUSTERS {
            machine.account.providers.insert(self.issuer(number), crate::outside::Tags::new());
        }
        ([hub, empty, empty], [machine, Machine::default()], self.size.left().pack())
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        people::moves()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Machine>> {
        people::next(self, scene, Left::unpack(scene.chance))
    }

    fn crash(&self, program: &str, machine: &Machine) -> Machine {
        let number = PROGRAMS.iter().position(|name| *name == program);
        number.map_or_else(|| machine.clone(), |number| machine.restarted(number))
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        Truth::of(self, scene)
    }

    fn remember(&self, past: &refine::Past, before: &Truth, after: &Truth) -> refine::Past {
        if self.size.is_refined() { past.after(before, after) } else { past.clone() }
    }

    fn refines(&self, world: &World<Self>) -> Vec<Refinement<State>> {
        if self.size.is_refined() { refine::refines(self, world) } else { Vec::new() }
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        promises::promises()
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        promises::reachable(self)
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        if self.size.live == 1 { promises::goals(self) } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::all()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        truth.is_done()
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        truth.show()
    }
}
