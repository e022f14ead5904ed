//! The shipped applier as it is, twice at once: a record, a cluster with a fence, and people around it.
//!
//! The record is at its first target, which is verified. The conductor aims at the next version, and back at the first
//! one, at any moment. Objects are of a kind whose controller reports what it has seen. The policy of the fence is played
//! here, word for word as [`crate::fence`] has it; that the API server agrees is a test of the server.
//!
//! The fence is exact, or with `lag=1` that of a kube-apiserver (`lag`): it learns of a token late, and what it took before
//! takes effect later still.

mod lag;
mod mistakes;
mod policy;
mod promises;
#[cfg(test)]
mod tests;
mod truth;

use super::fence::Fence;
use super::object::Objects;
use super::outside::{Answer, Held, Nothing, Probe, Question, Reach};
use super::report::Reports;
use super::wanted::Wanted;
use super::{CONFIG_MAP, NAMESPACE, Serves};
use crate::bundle::Bundle;
use crate::fence::{BINDING, EXACT, POLICY, binding, config_map, policy as manifest};
use crate::kinds::{CLUSTER_ROLLOUT, ROLLOUT_REPORT};
use interlock_api::placement::Ref;
use interlock_api::rollouts::{APPLIER_USER, FENCE_NAME, FENCE_POLICY, SYSTEM_NAMESPACE, Target};
use interlock_checker::{Entry, SizeKey};
use interlock_kernel::{Bent, GroupVersion, Kind, Name, Object, Place, Write};
use interlock_world::{
    CLUSTERS, Chance, Driver, Goal, Hostility, Mistake, Move, Program, Promise, Rule, Scene,
    Servers, System, World, shipped,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use truth::Truth;

const KEYS: [SizeKey; 6] = [
    Hostility::KEYS[0],
    Hostility::KEYS[1],
    Hostility::KEYS[2],
    SizeKey::new("objects", "1: one is made; 2: one is pruned, too; 3: one changes, too", 2, 1, 3),
    SizeKey::new("people", "1: somebody makes an object of a name that the bundle has", 0, 0, 1),
    SizeKey::new("lag", "1: the API server of the cluster learns of the fence late", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: "rollouts/applier",
    summary: "the shipped applier of rollouts, twice, while the target changes and old writes land",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| {
        let [flights, stale, live, objects, people, lag] =
            size.numbers("rollouts/applier", &KEYS)?;
        let others = if live == 1 { Hostility::LIVE } else { Hostility::HARSH };
        let hostility = Hostility { flights: flights as usize, stale: stale as usize, ..others };
        let (objects, people, lags) = (objects as u8, people == 1, lag == 1);
        let system = Rollout { objects, people, lags, ..Rollout::new(hostility) };
        Ok(Box::new(World::new(system)))
    },
};

/// A kind whose controller says which generation it has seen.
const WIDGET: Kind = Kind::namespaced(GroupVersion::new("example.com", "v1"), "Widget", "widgets");
const UID: &str = "0123456789abcdef";
const RECORD: &str = "west-01234567";
const HOME: &str = "shop";
/// It changes from target to target.
const CHANGED: &str = "example.com/Widget/shop/changed";
/// It is in the second version only.
const MADE: &str = "example.com/Widget/shop/made";
/// It is in the first version only.
const PRUNED: &str = "example.com/Widget/shop/pruned";
const IDS: [&str; 3] = [CHANGED, MADE, PRUNED];
/// The token of the last target.
const LAST: i64 = 3;

/// A cluster, its applier twice, and who is around them.
#[derive(Clone)]
pub struct Rollout {
    hostility: Hostility,
    /// How many of the objects there are.
    objects: u8,
    /// Whether somebody makes an object of a name that the bundle has.
    people: bool,
    /// Whether the API server of the cluster learns of the fence late.
    lags: bool,
    /// Whether the hub may lose a bundle for a while.
    loses: bool,
    /// What the policy checks.
    policy: policy::Checks,
    fence: Bent<Fence>,
    object: Bent<Objects>,
    report: Bent<Reports>,
}

fn serves() -> Serves {
    Serves::new(Ref { name: "west".to_owned(), uid: UID.to_owned() }, APPLIER_USER)
}

impl Rollout {
    fn new(hostility: Hostility) -> Rollout {
        // Nothing on the cluster wakes a report here: it reads again by itself, so that caches of the hub are all there is.
        let report = Reports::new(serves()).watching(&[]).every(Duration::ZERO);
        Rollout {
            hostility,
            objects: 2,
            people: false,
            lags: false,
            loses: false,
            policy: policy::Checks::ALL,
            fence: Bent::new(Fence::new(serves())),
            object: Bent::new(Objects::new(serves())),
            report: Bent::new(report),
        }
    }

    /// The objects of a target, by its token; the first and the last target are the same version.
    fn version(&self, token: i64) -> Vec<Value> {
        let is_new = token == 2;
        let widget = |name: &str, value: i64| {
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"value": value},
                "metadata": {"name": name, "namespace": HOME}})
        };
        let changed = (self.objects > 2).then(|| widget("changed", if is_new { 2 } else { 1 }));
        let made = is_new.then(|| widget("made", 1));
        let pruned = (!is_new && self.objects > 1).then(|| widget("pruned", 1));
        [changed, made, pruned].into_iter().flatten().collect()
    }

    /// The digest of a target; None: nothing is wanted.
    fn digest(&self, token: i64) -> Option<String> {
        Bundle::from_objects(self.version(token)).ok().map(|bundle| bundle.digest().to_owned())
    }

    fn target(&self, token: i64) -> Target {
        Target { token, digest: self.digest(token), ..Target::default() }
    }
}

/// What is beside the API: bundles by their digests, which are the same for ever, and the API server itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Beside {
    /// The hub cannot show the bundle of the first version.
    is_lost: bool,
    /// The token of the fence that the API server of the cluster has read, if it learns of it late.
    known: i64,
}

/// Every bundle of every size, and whether it is that of the first version.
fn bundles() -> &'static [(bool, Arc<Bundle>)] {
    static ALL: OnceLock<Vec<(bool, Arc<Bundle>)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let of = |objects| Rollout { objects, ..Rollout::new(Hostility::LIVE) };
        let versions = (1..=3).flat_map(|objects| [1, 2].map(|token| (token, of(objects))));
        let bundle = |(token, of): (i64, Rollout)| {
            let bundle = Bundle::from_objects(of.version(token)).ok()?;
            Some((token == 1, Arc::new(bundle)))
        };
        versions.filter_map(bundle).collect()
    })
}

impl Driver<Beside> for Reach {
    fn ask(machines: &[&Beside], here: usize, question: &Question) -> Answer {
        match question {
            Question::Bundle(digest) => {
                let known = bundles().iter().find(|(_, bundle)| bundle.digest() == digest);
                let is_shown = |is_first: bool| !(is_first && machines[here].is_lost);
                Answer::Bundle(match known.filter(|(is_first, _)| is_shown(*is_first)) {
                    Some((_, bundle)) => Held::Whole(Arc::clone(bundle)),
                    None => Held::Unreadable("the hub does not show it".to_owned()),
                })
            }
            Question::Served(..) => Answer::Served(Some(WIDGET)),
            Question::Refuses(token) if machines[here].known > *token => {
                Answer::Refuses(Probe::Refused)
            }
            Question::Refuses(_) => {
                Answer::Refuses(Probe::Taken("it has an older fence".to_owned()))
            }
            Question::Lacks(_) => Answer::Lacks(BTreeMap::new()),
        }
    }

    fn perform(_: &[&Beside], _: usize, action: &Nothing) -> Beside {
        match *action {}
    }
}

fn widget(id: &str) -> Name {
    Name::within(HOME, id.rsplit('/').next().unwrap_or_default())
}

impl System for Rollout {
    type Machine = Beside;
    /// The highest token that anything was written under.
    type Past = i64;
    type Truth = Truth;

    fn size(&self) -> String {
        let Hostility { flights, stale, .. } = self.hostility;
        let (live, people) = (u8::from(self.hostility.is_live()), u8::from(self.people));
        let (objects, lag) = (self.objects, u8::from(self.lags));
        format!(
            "flights={flights},stale={stale},live={live},objects={objects},people={people},lag={lag}"
        )
    }

    fn hostility(&self) -> Hostility {
        self.hostility
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Observe" => Some("in this size no object changes its spec"),
            "MakeTheirs" => Some("in this size nobody makes objects of names that bundles have"),
            "LoseBundles" | "FindBundles" => Some("in this size the hub shows every bundle"),
            "Learn" | "Finish" => Some("in this size the API server is exact"),
            _ => None,
        }
    }

    fn programs(&self) -> Vec<Program<Beside>> {
        let program = |name: &str| {
            let (fence, object) = (self.fence.clone(), self.object.clone());
            let report = self.report.clone();
            Program::new(name, Some(0))
                .with(shipped(move |_| fence.clone()), &[RECORD])
                .with(shipped(move |_| object.clone()), &IDS)
                .with(shipped(move |_| report.clone()), &[RECORD])
        };
        vec![program("agent-a"), program("agent-b")]
    }

    fn times(&self) -> Vec<Timestamp> {
        lag::times(self.lags)
    }

    fn may_pass(&self, scene: &Scene<'_, Self>) -> bool {
        lag::may_pass(scene)
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Beside; CLUSTERS], Chance) {
        let empty = servers.empty();
        let name = Name::cluster_wide(RECORD);
        let cluster = json!({"name": "west", "uid": UID});
        let may_exist: Vec<String> = [1, 2].iter().filter_map(|it| self.digest(*it)).collect();
        let record = json!({"spec": {"cluster": cluster, "drift": "Repair"},
            "status": {"target": self.target(1), "mayExist": may_exist}});
        let proven_at = "1970-01-01T00:00:00Z";
        let of_report = match self.lags {
            false => json!({"token": 1, "mode": "Exact"}),
            true => json!({"token": 1, "mode": "Probed", "provenAt": proven_at}),
        };
        let said = json!({"token": 1, "verdict": "Soaked", "healthySince": proven_at,
            "fence": of_report});
        let hub = servers.put(empty, &CLUSTER_ROLLOUT, &name, record);
        let report = json!({"spec": {"cluster": cluster}, "status": said});
        let hub = servers.put(hub, &ROLLOUT_REPORT, &name, report);
        let named = Name::cluster_wide(FENCE_POLICY);
        let exact = json!({"type": EXACT, "status": "True", "observedGeneration": 1});
        let mut of_policy = manifest(APPLIER_USER);
        of_policy["metadata"]["generation"] = json!(1);
        let mut fence = config_map();
        fence["data"] = json!({"token": "1"});
        match self.lags {
            false => of_policy["status"] = json!({"conditions": [exact]}),
            true => {
                fence["data"] = json!({"token": "1", "provenToken": "1", "provenAt": proven_at})
            }
        }
        let at = Name::within(SYSTEM_NAMESPACE, FENCE_NAME);
        let mut cluster = servers.put(empty, &NAMESPACE, &Name::cluster_wide(HOME), json!({}));
        cluster = servers.put(cluster, &POLICY, &named, of_policy);
        cluster = servers.put(cluster, &BINDING, &named, binding());
        cluster = servers.put(cluster, &CONFIG_MAP, &at, fence);
        for manifest in self.version(1) {
            let Ok(id) = crate::bundle::ObjectId::of(&manifest) else { continue };
            let wanted = Wanted { id: &id, manifest: &manifest };
            let mut object = wanted.stamped(UID, &self.target(1));
            object["metadata"]["generation"] = json!(1);
            object["status"] = seen(1);
            cluster = servers.put(cluster, &WIDGET, &widget(&id.to_string()), object);
        }
        if self.lags {
            cluster = lag::begun(servers, cluster);
        }
        let known = i64::from(self.lags);
        let machines = [Beside { known, ..Beside::default() }, Beside::default()];
        ([hub, cluster, empty], machines, 0)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        vec![
            ("Aim", "conductor", true),
            ("Observe", "controller", true),
            ("MakeTheirs", "people", false),
            ("LoseBundles", "hub", false),
            ("FindBundles", "hub", true),
            ("Learn", "API server", true),
            ("Finish", "API server", true),
        ]
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Beside>> {
        let truth = self.truth(scene);
        let (servers, cluster) = (scene.servers, scene.contents[1]);
        let mut next = Vec::new();
        if truth.token < LAST {
            let target = json!({"status": {"target": {"digest": null}}});
            let name = Name::cluster_wide(RECORD);
            let hub = servers.change(scene.contents[0], &CLUSTER_ROLLOUT, &name, &target);
            let target = json!({"status": {"target": self.target(truth.token + 1)}});
            let hub = servers.change(hub, &CLUSTER_ROLLOUT, &name, &target);
            next.push(scene.at_hub(0, hub));
        }
        let on_cluster = |name: usize, cluster: u32, chance: Chance| {
            let (mut contents, machines) = (scene.contents, [const { None }; CLUSTERS]);
            contents[1] = cluster;
            Move { name, servers: contents, machines, chance, restarts: None }
        };
        let unseen = scene.cluster(0).get(&WIDGET, &widget(CHANGED)).filter(|it| !is_seen(it));
        if let Some(object) = unseen {
            let status = json!({"status": seen(object.metadata.generation.unwrap_or(0))});
            let cluster = servers.change(cluster, &WIDGET, &widget(CHANGED), &status);
            next.push(on_cluster(1, cluster, scene.chance));
        }
        let is_absent = scene.cluster(0).get(&WIDGET, &widget(MADE)).is_none();
        if self.people && scene.chance & 1 == 0 && is_absent {
            let theirs = json!({"spec": {"value": 9}});
            let cluster = servers.put(cluster, &WIDGET, &widget(MADE), theirs);
            next.push(on_cluster(2, cluster, scene.chance | 1));
        }
        let is_lost = scene.machines[0].is_lost;
        if self.loses && (is_lost || scene.chance & 2 == 0) {
            let machines =
                [Some(Beside { is_lost: !is_lost, ..(*scene.machines[0]).clone() }), None];
            let (name, chance) = (if is_lost { 4 } else { 3 }, scene.chance | 2);
            let servers = scene.contents;
            next.push(Move { name, servers, machines, chance, restarts: None });
        }
        if self.lags {
            next.extend(lag::moves(scene));
        }
        next
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn admits(&self, _: &str, server: interlock_world::Objects<'_>, write: &Write) -> bool {
        write.address().place == Place::HUB || self.policy.admits(server, write)
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        truth::truth(self, scene)
    }

    fn remember(&self, past: &i64, _: &Truth, after: &Truth) -> i64 {
        let stamps =
            after.objects.iter().flatten().filter(|it| it.is_ours).map(truth::Object::stamp);
        stamps.chain([*past]).max().unwrap_or(*past)
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        promises::promises()
    }

    fn rules(&self) -> Vec<Rule<Self>> {
        promises::rules()
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        promises::reachable()
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        if self.hostility.is_live() { promises::goals() } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        truth.token == LAST && truth.is_verified()
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        vec![
            ("token", truth.token.to_string()),
            ("fence", truth.fence.to_string()),
            ("said", format!("{} {:?}", truth.said, truth.verdict)),
            ("objects", format!("{:?}", truth.objects)),
        ]
    }
}

/// The status of an object whose controller has seen a generation.
fn seen(generation: i64) -> Value {
    json!({"observedGeneration": generation, "conditions": [{"type": "Ready", "status": "True"}]})
}

/// Whether its controller has seen what is there.
fn is_seen(object: &Object) -> bool {
    object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation
}
