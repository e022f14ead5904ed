//! The programs of rollouts, as their lists say: one at the hub and one for each cluster, and now and then another one
//! beside it.

use super::{DEPLOYMENT, Updates, flaws};
use crate::Flaw;
use crate::engine::actor::Actor;
use crate::engine::line::Lines;
use crate::engine::{Broken, Engine, api_of};
use interlock_api::rollouts::{BundleRevisionSpec, part_name};
use interlock_kernel::{Controller, Kind, Nothing, Place, Watcher, read_part};
use interlock_programs::{Account, Program, Rollouts, Visitor};
use interlock_rollouts::applier::Serves;
use interlock_rollouts::applier::outside::{self, Answer, Held, Probe, Question, Reach};
use interlock_rollouts::bundle::{Bundle, joined};
use interlock_rollouts::kinds::{BUNDLE_REVISION, CONFIG_MAP};
use interlock_shell::{Driver, NoDriver, Places, Server};
use kube::Client;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many instances of a program there are at most.
const INSTANCES: usize = 2;
/// The kinds of all versions.
const SERVED: [Kind; 2] = [CONFIG_MAP, DEPLOYMENT];

impl Engine<Updates> {
    /// Starts the program of the hub, or of a cluster, if there is room for one more.
    pub(crate) async fn start_program(&mut self, cluster: Option<usize>) -> Result<(), Broken> {
        let others = self.actors.iter().filter(|actor| actor.cluster == cluster).count();
        if others >= INSTANCES {
            return Ok(());
        }
        self.numbered += 1;
        self.counts.twins += u64::from(others > 0);
        let name = cluster.map_or(crate::HUB, |place| crate::CLUSTERS[place]);
        let name = if others == 0 { name.to_owned() } else { format!("{name}-2") };
        let mut actor = match cluster {
            None => self.conductors(&name),
            Some(place) => self.agent(&name, place),
        };
        actor.cluster = cluster;
        self.begins(actor).await
    }

    fn conductors(&self, name: &str) -> Actor {
        let clock = Arc::clone(&self.clock);
        let hub = Server::new(crate::HUB, self.lines.admin(name, crate::HUB));
        let places = Places::from([(Place::HUB, hub)]);
        let mut actor = Actor::empty(name, places, Arc::new(move || clock.now()), self.numbered);
        actor.is_cut.push((Place::HUB, Arc::default()));
        let flaw = self.world.flaw;
        Rollouts.visit(&mut AtHub { actor: &mut actor, lines: &self.lines, flaw });
        actor
    }

    fn agent(&self, name: &str, place: usize) -> Actor {
        let cluster = crate::CLUSTERS[place];
        let clock = Arc::clone(&self.clock);
        let server = |at: &str| Server::new(at, self.lines.admin(name, at));
        let places = [(Place::HUB, server(crate::HUB)), (Place::CLUSTER, server(cluster))];
        let places = Places::from(places);
        let mut actor = Actor::empty(name, places, Arc::new(move || clock.now()), self.numbered);
        let to_hub = Arc::default();
        let user = Account::Applier.user(Some(cluster));
        let hub = self.lines.account(name, &user, crate::HUB, &to_hub);
        actor.is_cut = vec![(Place::HUB, to_hub), (Place::CLUSTER, Arc::default())];
        let program = self.applier(place);
        let driver = Questions { hub, bundles: Arc::default() };
        let (lines, flaw, serves) = (&self.lines, self.world.flaw, program.serves.clone());
        program.visit(&mut OnCluster { actor: &mut actor, lines, flaw, user, serves, driver });
        actor
    }
}

/// Wires the controllers of the hub, but for the one that the flaw is about: that is bent.
struct AtHub<'a> {
    actor: &'a mut Actor,
    lines: &'a Lines,
    flaw: Flaw,
}

impl Visitor<Nothing> for AtHub<'_> {
    fn room<C: Controller<Outside = Nothing>>(&mut self, account: Account, controller: C) {
        let places = self.actor.places_as(&account.user(None), self.lines);
        let bent = flaws::conductor(self.flaw).filter(|bent| bent.name() == controller.name());
        match bent {
            Some(bent) => self.actor.wire(bent, places, NoDriver),
            None => self.actor.wire(controller, places, NoDriver),
        }
    }
}

/// The same for the controllers of a cluster.
struct OnCluster<'a> {
    actor: &'a mut Actor,
    lines: &'a Lines,
    flaw: Flaw,
    /// As whom they act.
    user: String,
    serves: Serves,
    driver: Questions,
}

impl Visitor<Reach> for OnCluster<'_> {
    fn room<C: Controller<Outside = Reach>>(&mut self, _: Account, controller: C) {
        let driver = self.driver.clone();
        let places = self.actor.places_as(&self.user, self.lines);
        let bent = flaws::report(self.flaw, &self.serves);
        match bent.filter(|bent| bent.name() == controller.name()) {
            Some(bent) => self.actor.wire(bent, places, driver),
            None => self.actor.wire(controller, places, driver),
        }
    }
}

/// What an applier asks beside the API: bundles of the hub, which it keeps as long as it lives, and the kinds of its
/// cluster.
#[derive(Clone)]
struct Questions {
    hub: Client,
    bundles: Arc<Mutex<BTreeMap<String, Arc<Bundle>>>>,
}

impl Questions {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Bundle>>> {
        self.bundles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn bundle(&self, digest: &str) -> Result<Held, String> {
        let kept = self.known().get(digest).cloned();
        if let Some(bundle) = kept {
            return Ok(Held::Whole(bundle));
        }
        let name = part_name(digest, 0);
        let found = api_of(&self.hub, &BUNDLE_REVISION, None).get_opt(&name).await;
        let Some(part) = found.map_err(|error| error.to_string())? else {
            return Ok(Held::Unreadable(format!("there is no BundleRevision {name}")));
        };
        let parts: Option<BundleRevisionSpec> = read_part(&part, "spec")?;
        let parts: Vec<BundleRevisionSpec> = parts.into_iter().collect();
        Ok(match joined(digest, &parts) {
            Ok(bundle) => {
                let bundle = Arc::new(bundle);
                self.known().insert(digest.to_owned(), Arc::clone(&bundle));
                Held::Whole(bundle)
            }
            Err(flaw) => Held::Unreadable(flaw.to_string()),
        })
    }
}

impl Driver<Reach> for Questions {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        match question {
            Question::Bundle(digest) => self.bundle(&digest).await.map(Answer::Bundle),
            Question::Served(version, kind) => {
                let is_it = |it: &&Kind| it.api_version() == version && it.kind == kind;
                Ok(Answer::Served(SERVED.iter().find(is_it).cloned()))
            }
            // The API server says that the fence is exact: nobody asks.
            Question::Refuses(_) => Ok(Answer::Refuses(Probe::Refused)),
            // The role of an applier is for everything on its cluster.
            Question::Lacks(_) => Ok(Answer::Lacks(BTreeMap::new())),
        }
    }

    async fn perform(&self, action: outside::Nothing) -> Result<(), String> {
        match action {}
    }
}
