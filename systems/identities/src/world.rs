//! The shipped rooms of identities, explored as they are: a namespace, what tenants declare in it, a cloud
//! account whose calls are late or lost, and two processes of which any may crash.
//!
//! `interlock check identities` runs this. Nothing here says what a controller does: the world calls the
//! controllers themselves. What is written down here is what is around them: the first objects, the
//! people, the cloud, and the promises.

pub mod account;
pub mod clients;
pub mod kept;
mod mistakes;
mod people;
pub mod placed;
mod processes;
mod promises;
mod refine;
mod size;
#[cfg(test)]
mod tests;
mod truth;

use crate::irsa::Accounts;
use crate::kinds::NAMESPACE;
use crate::policy::Policies;
use crate::role::Roles;
use crate::settings::Settings;
use clients::{InProcess, LATE_CALL_SECONDS, Machine};
use interlock_checker::{Entry, Refinement};
use interlock_kernel::{Bent, Name};
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Rule, Scene, Servers,
    State, System, World, shipped,
};
use people::Left;
use serde_json::json;
use size::Size;
use std::sync::Arc;
use truth::Truth;

const NAME: &str = "identities";
/// The namespace of the tenant.
const SHOP: &str = "shop";
/// The name of what the tenant declares.
const OWN: &str = "s3";

/// The OIDC provider.
const PROVIDER: &str = "arn:aws:iam::1:oidc-provider/issuer.example";
/// The permissions boundary of every role.
const BOUNDARY: &str = "arn:aws:iam::1:policy/boundary";

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of identities, whatever crashes, lags, is late or drifts",
    keys: &size::KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Identities::of(Size::read(size)?)))),
};

/// What a tenant declares, and the cloud around it.
#[derive(Clone)]
pub struct Identities {
    size: Size,
    policies: Bent<Policies>,
    roles: Bent<Roles>,
    accounts: Bent<Accounts>,
}

fn settings() -> Arc<Settings> {
    Arc::new(Settings {
        late_call_seconds: LATE_CALL_SECONDS,
        provider_arn: Some(PROVIDER.to_owned()),
        boundary_arn: Some(BOUNDARY.to_owned()),
        ..Settings::of_fleet("fleet")
    })
}

fn name() -> Name {
    Name::within(SHOP, OWN)
}

impl Identities {
    fn of(size: Size) -> Identities {
        let settings = settings();
        Identities {
            size,
            policies: Bent::new(Policies { settings: Arc::clone(&settings) }),
            roles: Bent::new(Roles { settings: Arc::clone(&settings) }),
            accounts: Bent::new(Accounts { settings }),
        }
    }
}

impl System for Identities {
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
            let Identities { policies, roles, accounts, .. } = self.clone();
            let policies = move |_| InProcess { controller: policies.clone(), number };
            let program = Program::new(people::PROGRAMS[number], Some(0));
            let program = program.with(shipped(policies), &[&subject]);
            if self.size.whole == 0 {
                return program;
            }
            let roles = move |_| InProcess { controller: roles.clone(), number };
            let program = program.with(shipped(roles), &[&subject]);
            program.with(shipped(move |_| accounts.clone()), &[&subject])
        };
        (0..self.size.processes as usize).map(program).collect()
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        let empty = servers.empty();
        let hub = servers.put(empty, &NAMESPACE, &Name::cluster_wide(SHOP), json!({}));
        let hub = servers.put(hub, &self.size.kind(), &name(), self.size.declared(0));
        let machines = [self.size.first_machine(), Machine::default()];
        ([hub, empty, empty], machines, self.size.left().pack())
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        people::moves()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Machine>> {
        people::next(self, scene, Left::unpack(scene.chance))
    }

    fn crash(&self, program: &str, machine: &Machine) -> Machine {
        let number = people::PROGRAMS.iter().position(|name| *name == program);
        number.map_or_else(|| machine.clone(), |number| machine.restarted(number))
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        Truth::of(self, scene)
    }

    fn remember(&self, past: &refine::Past, before: &Truth, after: &Truth) -> refine::Past {
        if self.size.is_refined() { past.after(before, after) } else { *past }
    }

    fn refines(&self, world: &World<Self>) -> Vec<Refinement<State>> {
        if self.size.is_refined() { refine::refines(self, world) } else { Vec::new() }
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
        if self.size.live == 1 { promises::goals() } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::all()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        truth.is_done(self.size.whole == 1)
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        truth.show()
    }
}
