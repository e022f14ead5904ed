//! The Endpoints of a Service, for clients that do not read EndpointSlices. The subject of a step is a Service.
//!
//! They have the name of the Service, and at most 1000 addresses: who needs more reads the slices.

use super::decide::{Candidate, Port};
use super::{LABEL_HEADLESS, LABEL_SERVICE, resolve};
use crate::kinds::{ENDPOINTS, POD, SERVICE};
use crate::owned::{labels_of, name_in, subject_of};
use interlock_kernel::metadata::{is_deleting, label, namespace_of};
use interlock_kernel::{
    Address, LiveReads, Nothing, Object, Observed, Place, Read, Right, Room, Step, Subject, Verb,
    View, Watch, Watcher, Write,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// On Endpoints, upstream's own: who writes them. Upstream deletes none without it.
const LABEL_MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGED_BY: &str = "endpoint-controller";
/// Upstream's limit.
const MOST_ADDRESSES: usize = 1000;
/// How long the cache may take to show what a live read showed.
const CACHE_DELAY: Duration = Duration::from_secs(5);

/// The controller of the Endpoints of Services.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LegacyEndpoints;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// The Service.
    pub service: Service,
    /// The Endpoints of its name; None: the cache shows none.
    pub found: Option<Found>,
}

/// A Service.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum Service {
    /// The cache does not show it.
    Unseen {
        /// Whether a live read showed it; None: there was none.
        is_there: Option<bool>,
    },
    /// Its Endpoints are left to others.
    LeftAlone,
    /// Its Endpoints are to say this.
    Wanted(Wanted),
}

/// What Endpoints are to say.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Wanted {
    /// Their labels.
    pub labels: BTreeMap<String, String>,
    /// The addresses, by the ports that they have.
    pub subsets: Value,
}

/// Endpoints as they are.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Found {
    /// Whether they are made here.
    pub is_ours: bool,
    /// Whether they are being deleted.
    pub is_terminating: bool,
    /// What they say.
    pub says: Wanted,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing until the cache shows the Service that a live read showed.
    WaitForCache,
    /// Read the Service live: its Endpoints are only deleted if it is gone.
    ReadService,
    /// Make them.
    Create(Wanted),
    /// Rewrite them.
    Rewrite(Wanted),
    /// Delete them.
    Delete,
}

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    service: Address,
    endpoints: Option<Object>,
}

impl Watcher for LegacyEndpoints {
    fn name(&self) -> &'static str {
        "workloads/legacy-endpoints"
    }

    fn watches(&self) -> Vec<Watch> {
        [SERVICE, POD, ENDPOINTS].iter().map(|kind| Watch::all(Place::CLUSTER, kind)).collect()
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::CLUSTER, &ENDPOINTS, &[Verb::Create, Verb::Patch, Verb::Delete])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind != POD {
            return vec![subject_of(object)];
        }
        let namespace = Some(namespace_of(object));
        let services = view.list(Place::CLUSTER, &SERVICE, namespace);
        let selects = |service: &&Object| {
            let selector = resolve::selector_of(service);
            selector.is_some_and(|selector| resolve::is_selected(&selector, labels_of(object)))
        };
        let now = services.iter().filter(selects).map(|service| subject_of(service));
        let all = view.list(Place::CLUSTER, &ENDPOINTS, namespace);
        let before = all.iter().filter(|it| names_pod(it, object)).map(|it| subject_of(it));
        let woken: BTreeSet<Subject> = now.chain(before).collect();
        woken.into_iter().collect()
    }
}

/// Whether Endpoints have an address that is this pod's.
fn names_pod(endpoints: &Object, pod: &Object) -> bool {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let subsets = endpoints.data["subsets"].as_array().into_iter().flatten();
    let addresses = subsets.flat_map(|subset| {
        let lists = ["addresses", "notReadyAddresses"];
        lists.into_iter().flat_map(|list| subset[list].as_array().into_iter().flatten())
    });
    addresses.into_iter().any(|address| address["targetRef"]["uid"] == uid)
}

impl Room for LegacyEndpoints {
    type Outside = Nothing;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<Facts, Scene> {
        let address = Address::new(Place::CLUSTER, &SERVICE, name_in(subject));
        let service = view.get(Place::CLUSTER, &SERVICE, &address.name);
        let endpoints = view.get(Place::CLUSTER, &ENDPOINTS, &address.name);
        let facts = Facts {
            service: match &service {
                None => Service::Unseen {
                    is_there: live_reads.objects.get(&address).map(Option::is_some),
                },
                Some(service) => wanted(service, view).map_or(Service::LeftAlone, Service::Wanted),
            },
            found: endpoints.as_ref().map(found),
        };
        Observed::Seen { facts, scene: Scene { service: address, endpoints } }
    }

    fn decide(facts: &Facts) -> Decision {
        let wanted = match (&facts.service, &facts.found) {
            (Service::Wanted(wanted), _) => wanted,
            (Service::LeftAlone, _) => return Decision::Rest("the Service selects no pods"),
            (Service::Unseen { .. }, None) => return Decision::Rest("there is no such Service"),
            (Service::Unseen { .. }, Some(found)) if !found.is_ours || found.is_terminating => {
                return Decision::Rest("the Endpoints are not made here, or are being deleted");
            }
            (Service::Unseen { is_there: None }, Some(_)) => return Decision::ReadService,
            (Service::Unseen { is_there: Some(true) }, Some(_)) => return Decision::WaitForCache,
            (Service::Unseen { is_there: Some(false) }, Some(_)) => return Decision::Delete,
        };
        match &facts.found {
            None => Decision::Create(wanted.clone()),
            Some(found) if found.is_terminating => Decision::Rest("they are being deleted"),
            Some(found) if found.says == *wanted => {
                Decision::Rest("the Endpoints have the addresses of the pods")
            }
            Some(_) => Decision::Rewrite(wanted.clone()),
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        let address = Address::new(Place::CLUSTER, &ENDPOINTS, scene.service.name.clone());
        match (decision, &scene.endpoints) {
            (Decision::Rest(because), _) => Step::rest(because),
            (Decision::WaitForCache, _) => Step::Wait {
                because: "the cache does not show the Service that there is".to_owned(),
                at_most: CACHE_DELAY,
            },
            (Decision::ReadService, _) => Step::LiveRead {
                reads: vec![Read::Object(scene.service.clone())],
                because: "only a live read can show that the Service is gone".to_owned(),
            },
            (Decision::Delete, Some(endpoints)) => {
                let write = Write::delete_seen(Place::CLUSTER, &ENDPOINTS, endpoints);
                Step::write(write, "the Service is gone")
            }
            (Decision::Delete, None) => Step::rest("there are no Endpoints any more"),
            (Decision::Rewrite(wanted), Some(endpoints)) => {
                let known = endpoints.metadata.labels.iter().flatten();
                let mut labels: Map<String, Value> =
                    known.map(|(key, _)| (key.clone(), Value::Null)).collect();
                labels.extend(wanted.labels.into_iter().map(|(key, value)| (key, json!(value))));
                let change = json!({"metadata": {"labels": labels}, "subsets": wanted.subsets});
                let write = Write::patch(Place::CLUSTER, &ENDPOINTS, endpoints, change);
                Step::write(write, "the addresses differ from the pods of the Service")
            }
            (Decision::Create(wanted) | Decision::Rewrite(wanted), _) => {
                let metadata = json!({"labels": wanted.labels});
                let object = json!({"metadata": metadata, "subsets": wanted.subsets});
                Step::write(Write::Create { address, object }, "the Service has no Endpoints")
            }
        }
    }
}

fn found(endpoints: &Object) -> Found {
    let subsets = endpoints.data["subsets"].as_array().cloned().unwrap_or_default();
    Found {
        is_ours: label(endpoints, LABEL_MANAGED_BY) == Some(MANAGED_BY),
        is_terminating: is_deleting(endpoints),
        says: Wanted {
            labels: labels_of(endpoints).cloned().unwrap_or_default(),
            subsets: Value::Array(subsets),
        },
    }
}

/// What the Endpoints of a Service are to say; None: they are left to others.
fn wanted(service: &Object, view: &dyn View) -> Option<Wanted> {
    let selector = resolve::selector_of(service).filter(|_| !is_deleting(service))?;
    let publishes_all = service.data["spec"]["publishNotReadyAddresses"] == true;
    let pods = view.list(Place::CLUSTER, &POD, Some(namespace_of(service)));
    let selected = pods.iter().filter(|pod| resolve::is_selected(&selector, labels_of(pod)));
    let candidates = selected.filter_map(|pod| resolve::candidate(service, pod));
    let staying = candidates.filter(|it| publishes_all || !it.endpoint.is_terminating);
    let mut labels = labels_of(service).cloned().unwrap_or_default();
    labels.remove(LABEL_SERVICE);
    labels.remove(LABEL_HEADLESS);
    labels.insert(LABEL_MANAGED_BY.to_owned(), MANAGED_BY.to_owned());
    if service.data["spec"]["clusterIP"] == "None" {
        labels.insert(LABEL_HEADLESS.to_owned(), String::new());
    }
    let staying: Vec<Candidate> = staying.take(MOST_ADDRESSES).collect();
    Some(Wanted { labels, subsets: subsets(&staying, namespace_of(service)) })
}

fn subsets(candidates: &[Candidate], namespace: &str) -> Value {
    let mut groups: BTreeMap<&BTreeSet<Port>, Vec<&Candidate>> = BTreeMap::new();
    for candidate in candidates {
        groups.entry(&candidate.ports).or_default().push(candidate);
    }
    let subsets = groups.into_iter().map(|(ports, members)| {
        let mut subset = Map::new();
        for (list, is_ready) in [("addresses", true), ("notReadyAddresses", false)] {
            let those = members.iter().filter(|it| it.endpoint.is_ready == is_ready);
            let mut those: Vec<&Candidate> = those.copied().collect();
            those.sort_by_key(|it| it.endpoint.address);
            let all: Vec<Value> = those.into_iter().map(|it| address(it, namespace)).collect();
            if !all.is_empty() {
                subset.insert(list.to_owned(), Value::Array(all));
            }
        }
        let ports: Vec<Value> = ports.iter().map(port).collect();
        if !ports.is_empty() {
            subset.insert("ports".to_owned(), Value::Array(ports));
        }
        Value::Object(subset)
    });
    Value::Array(subsets.collect())
}

fn address(candidate: &Candidate, namespace: &str) -> Value {
    let endpoint = &candidate.endpoint;
    let mut address = json!({"ip": endpoint.address.to_string(), "targetRef":
        {"kind": "Pod", "namespace": namespace, "name": endpoint.pod, "uid": endpoint.uid}});
    let named = [("nodeName", &endpoint.node), ("hostname", &endpoint.hostname)];
    for (field, value) in named.into_iter().filter_map(|(field, it)| Some((field, it.as_ref()?))) {
        address[field] = json!(value);
    }
    address
}

/// Upstream leaves out a name that is empty.
fn port(port: &Port) -> Value {
    let mut written = port.written();
    if let Some(fields) = written.as_object_mut().filter(|_| port.name.is_empty()) {
        fields.remove("name");
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_kernel::Name;
    use interlock_kernel::testing::{NoMachine, Run, TestServers, patched, survives};

    const SUBJECT: &str = "shop/web";

    fn service(patch: &Value) -> Value {
        let object = json!({"kind": "Service", "metadata": {"name": "web", "namespace": "shop",
            "uid": "u", "labels": {"team": "a"}},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}});
        patched(object, patch)
    }

    fn pod(name: &str, address: &str, ready: &str) -> Value {
        json!({"kind": "Pod", "metadata": {"name": name, "namespace": "shop",
            "uid": format!("uid-{name}"), "labels": {"app": "web"}}, "spec": {"nodeName": "local"},
            "status": {"podIP": address, "conditions": [{"type": "Ready", "status": ready}]}})
    }

    fn name() -> Name {
        Name::within("shop", "web")
    }

    fn settled(objects: Vec<Value>) -> (TestServers, Run<Nothing>) {
        let mut cluster = TestServers::of(&LegacyEndpoints).with(objects);
        let run = cluster.settle(&LegacyEndpoints, &mut NoMachine, SUBJECT);
        (cluster, run)
    }

    fn endpoints(cluster: &TestServers) -> Value {
        cluster.json(Place::CLUSTER, &ENDPOINTS, &name())
    }

    #[test]
    fn ready_pods_and_others_are_listed_apart() {
        let leaving = patched(
            pod("c", "127.64.0.3", "True"),
            &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        );
        let pods = [pod("b", "127.64.0.2", "True"), pod("a", "127.64.0.1", "False"), leaving];
        let (mut cluster, _) = settled([vec![service(&json!({}))], pods.to_vec()].concat());
        let subset = endpoints(&cluster)["subsets"][0].clone();
        let target = |name: &str| {
            json!({"kind": "Pod", "namespace": "shop", "name": name,
            "uid": format!("uid-{name}")})
        };
        let wanted = json!({
            "addresses": [{"ip": "127.64.0.2", "nodeName": "local", "targetRef": target("b")}],
            "notReadyAddresses":
                [{"ip": "127.64.0.1", "nodeName": "local", "targetRef": target("a")}],
            "ports": [{"port": 8080, "protocol": "TCP"}],
        });
        assert_eq!(subset, wanted);
        let labels = endpoints(&cluster)["metadata"]["labels"].clone();
        assert_eq!(labels, json!({"team": "a", LABEL_MANAGED_BY: MANAGED_BY}));
        let pod = Name::within("shop", "b");
        cluster.delete(Place::CLUSTER, &POD, &pod);
        let run = cluster.settle(&LegacyEndpoints, &mut NoMachine, SUBJECT);
        assert_eq!(run.writes.len(), 1);
        assert!(endpoints(&cluster)["subsets"][0]["addresses"].is_null());
    }

    #[test]
    fn a_service_without_pods_has_endpoints_without_addresses() {
        let (mut cluster, _) = settled(vec![service(&json!({}))]);
        assert_eq!(endpoints(&cluster)["subsets"], json!([]));
        cluster.change(Place::CLUSTER, &ENDPOINTS, &name(), &json!({"subsets": null}));
        let run = cluster.settle(&LegacyEndpoints, &mut NoMachine, SUBJECT);
        assert!(run.writes.is_empty(), "a server may leave out a list that is empty");
    }

    #[test]
    fn endpoints_of_a_service_without_a_selector_are_left_to_others() {
        let plain = service(&json!({"spec": {"selector": null}}));
        let (cluster, run) = settled(vec![plain]);
        assert!(run.writes.is_empty() && endpoints(&cluster).is_null());
    }

    #[test]
    fn they_go_only_after_a_live_read_shows_no_service_and_if_they_are_ours() {
        let (mut cluster, _) = settled(vec![service(&json!({})), pod("a", "127.64.0.1", "True")]);
        cluster.delete(Place::CLUSTER, &SERVICE, &name());
        let view = cluster.view();
        let step = view.step_with(&LegacyEndpoints, SUBJECT, &LiveReads::default());
        assert!(matches!(step, Step::LiveRead { .. }), "{step:?}");
        cluster.settle(&LegacyEndpoints, &mut NoMachine, SUBJECT);
        assert!(endpoints(&cluster).is_null());
        let other = json!({"kind": "Endpoints", "metadata": {"name": "web", "namespace": "shop",
            "uid": "x"}, "subsets": []});
        let (_, run) = settled(vec![other]);
        assert!(run.writes.is_empty());
    }

    #[test]
    fn broken_objects_do_not_break_it() {
        let objects = vec![service(&json!({})), pod("a", "127.64.0.1", "True")];
        let (cluster, _) = settled(objects.clone());
        survives(&LegacyEndpoints, &NoMachine, &[objects, vec![endpoints(&cluster)]].concat());
    }
}
