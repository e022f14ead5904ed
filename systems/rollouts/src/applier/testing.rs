//! A hub, a cluster and an applier, for the tests of the rooms.

use super::fence::Fence;
use super::object::Objects;
use super::outside::{Answer, Held, Nothing, Probe, Question, Reach};
use super::preflight::Preflight;
use super::report::Reports;
use super::{CONFIG_MAP, NAMESPACE, Serves};
use crate::bundle::{Bundle, ObjectId};
use crate::fence::{BINDING, EXACT, POLICY, binding, config_map, policy};
use crate::kinds::{CLUSTER_ROLLOUT, ROLLOUT_REPORT, SECRET};
use interlock_api::placement::Ref;
use interlock_api::rollouts::{APPLIER_USER, FENCE_NAME, FENCE_POLICY, SYSTEM_NAMESPACE};
use interlock_kernel::testing::{Machine, Run, TestServers, patched};
use interlock_kernel::{Address, GroupVersion, Kind, Name, Place, Write};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// The uid of the cluster.
pub(crate) const UID: &str = "0123456789abcdef";
/// The name of its record.
pub(crate) const RECORD: &str = "west-01234567";
pub(crate) const DEPLOYMENT: Kind =
    Kind::namespaced(GroupVersion::new("apps", "v1"), "Deployment", "deployments");
pub(crate) const CLAIM: Kind = Kind::namespaced(
    GroupVersion::new("", "v1"),
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
);
const SERVED: [Kind; 5] = [NAMESPACE, CONFIG_MAP, SECRET, DEPLOYMENT, CLAIM];
/// More rounds than any test needs.
const ROUNDS: usize = 40;

pub(crate) fn serves() -> Serves {
    Serves::new(Ref { name: "west".to_owned(), uid: UID.to_owned() }, APPLIER_USER)
}

pub(crate) fn id(text: &str) -> ObjectId {
    ObjectId::read(text).expect("an id")
}

pub(crate) fn bundle(objects: &[Value]) -> Arc<Bundle> {
    Arc::new(Bundle::from_objects(objects.to_vec()).expect("a bundle"))
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub(crate) fn config(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": value},
        "metadata": {"name": name, "namespace": "shop"}})
}

/// What is around an applier.
#[derive(Default)]
pub(crate) struct Around {
    pub(crate) bundles: HashMap<String, Arc<Bundle>>,
    pub(crate) probe: Option<Probe>,
    /// The verbs that the applier lacks for every kind.
    pub(crate) lacks: Vec<String>,
}

impl Machine<Reach> for Around {
    fn ask(&self, question: &Question) -> Answer {
        match question {
            Question::Bundle(digest) => Answer::Bundle(match self.bundles.get(digest) {
                Some(bundle) => Held::Whole(Arc::clone(bundle)),
                None => Held::Unreadable(format!("there is no BundleRevision of {digest}")),
            }),
            Question::Served(version, kind) => Answer::Served(
                SERVED.iter().find(|it| it.api_version() == *version && it.kind == *kind).cloned(),
            ),
            Question::Refuses(_) => Answer::Refuses(self.probe.clone().unwrap_or(Probe::Refused)),
            Question::Lacks(scopes) => Answer::Lacks(
                scopes.iter().map(|scope| (scope.clone(), self.lacks.clone())).collect(),
            ),
        }
    }

    fn perform(&mut self, action: &Nothing) -> bool {
        match *action {}
    }
}

/// A hub and a cluster.
pub(crate) struct Pair {
    pub(crate) servers: TestServers,
    pub(crate) around: Around,
}

impl Pair {
    /// With a record that has this status, a report, and a fence that is exact.
    pub(crate) fn new(bundles: &[&Arc<Bundle>], spec: Value, status: Value) -> Pair {
        let mut servers = TestServers::of(&Fence::new(serves()));
        servers.show(&Objects::new(serves()));
        servers.show(&Reports::new(serves()));
        servers.show(&Preflight::new(serves()));
        let cluster = json!({"name": "west", "uid": UID});
        let record = json!({"kind": "ClusterRollout", "status": status,
            "metadata": {"name": RECORD, "uid": "uid-record"},
            "spec": patched(json!({"cluster": cluster, "settleSeconds": 75}), &spec)});
        let report = json!({"kind": "RolloutReport", "spec": {"cluster": cluster},
            "metadata": {"name": RECORD, "uid": "uid-report"}});
        servers.put(Place::HUB, record);
        servers.put(Place::HUB, report);
        servers.put(Place::CLUSTER, patched(config_map(), &json!({"metadata": {"uid": "f"}})));
        let around = Around {
            bundles: bundles.iter().map(|it| (it.digest().to_owned(), Arc::clone(it))).collect(),
            ..Around::default()
        };
        let mut pair = Pair { servers, around };
        for home in ["shop", "default", SYSTEM_NAMESPACE] {
            pair.make(&NAMESPACE, &Name::cluster_wide(home), namespace(home));
        }
        pair.policy(true);
        pair
    }

    /// Puts an object on the cluster, as a person would.
    pub(crate) fn make(&mut self, kind: &Kind, name: &Name, object: Value) {
        let address = Address::new(Place::CLUSTER, kind, name.clone());
        self.servers.apply(&Write::Create { address, object }).expect("it is made");
    }

    /// The policy of the fence, on a server that is exact or on one that is not.
    pub(crate) fn policy(&mut self, is_exact: bool) {
        let named = Name::cluster_wide(FENCE_POLICY);
        for (kind, object) in [(POLICY, policy(APPLIER_USER)), (BINDING, binding())] {
            self.servers.delete(Place::CLUSTER, &kind, &named);
            self.make(&kind, &named, object);
        }
        if is_exact {
            let condition = json!({"type": EXACT, "status": "True", "observedGeneration": 3});
            let change =
                json!({"status": {"conditions": [condition]}, "metadata": {"generation": 3}});
            self.servers.change(Place::CLUSTER, &POLICY, &named, &change);
        }
    }

    /// Another target, as the conductor would write it.
    pub(crate) fn aim(&mut self, change: &Value) {
        let name = Name::cluster_wide(RECORD);
        let change = json!({"status": change});
        self.servers.change(Place::HUB, &CLUSTER_ROLLOUT, &name, &change);
    }

    pub(crate) fn said(&self) -> Value {
        self.servers.json(Place::HUB, &ROLLOUT_REPORT, &Name::cluster_wide(RECORD))["status"].take()
    }

    pub(crate) fn fence(&self) -> Value {
        let name = Name::within(SYSTEM_NAMESPACE, FENCE_NAME);
        self.servers.json(Place::CLUSTER, &CONFIG_MAP, &name)["data"].take()
    }

    pub(crate) fn object(&self, kind: &Kind, name: &str) -> Value {
        self.servers.json(Place::CLUSTER, kind, &Name::within("shop", name))
    }

    /// Steps of the report.
    pub(crate) fn report(&mut self) -> Run<Reach> {
        self.servers.settle(&Reports::new(serves()), &mut self.around, RECORD)
    }

    /// Steps about an object.
    pub(crate) fn write(&mut self, id: &str) -> Run<Reach> {
        self.servers.settle(&Objects::new(serves()), &mut self.around, id)
    }

    /// Steps of the fence.
    pub(crate) fn raise(&mut self) -> Run<Reach> {
        self.servers.settle(&Fence::new(serves()), &mut self.around, RECORD)
    }

    /// Steps of the preflight.
    pub(crate) fn check(&mut self) -> Run<Reach> {
        self.servers.settle(&Preflight::new(serves()), &mut self.around, RECORD)
    }

    /// All rooms, until none of them writes anything. All writes.
    pub(crate) fn settle(&mut self) -> Vec<Write> {
        let mut all = Vec::new();
        for _ in 0..ROUNDS {
            let before = all.len();
            all.extend(self.raise().writes);
            all.extend(self.report().writes);
            for id in self.servers.subjects(&Objects::new(serves())) {
                all.extend(self.write(&id).writes);
            }
            all.extend(self.check().writes);
            self.servers.pass(3);
            if all.len() == before {
                return all;
            }
        }
        panic!("the rooms do not come to rest: {}", self.said());
    }
}
