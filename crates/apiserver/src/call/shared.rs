//! Objects that every logical cluster has and none has stored: bootstrap roles, flow control, the Service
//! `kubernetes`, and the APIServices of what is served.
//!
//! A cluster that changes one of them stores a copy of its own, which then hides the shared one.

use super::{Call, time_text};
use crate::access::{bootstrap, stable_uid};
use crate::discovery;
use crate::flowcontrol;
use crate::object;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// What an object of the shared layer was last written at: before anything that anybody has read.
const FIRST_VERSION: &str = "1";
/// The addresses of Services, as kube-apiserver has them if nothing is said.
const SERVICE_RANGE: &str = "10.0.0.0/24";
const SERVICE_ADDRESS: &str = "10.0.0.1";
const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";

impl Call {
    /// The object of this name in the layer that all clusters share.
    pub(crate) fn shared_object(&self, name: &str) -> Option<Value> {
        self.shared_objects().into_iter().find(|object| object::name(object) == name)
    }

    /// All objects of that layer, of the kind and in the namespace that the call is about.
    pub(crate) fn shared_objects(&self) -> Vec<Value> {
        let resource = &self.resource;
        let found = match (&*resource.group, &*resource.plural) {
            ("rbac.authorization.k8s.io", plural) => bootstrap::objects(plural).to_vec(),
            (flowcontrol::GROUP, plural) => flowcontrol::objects(plural).to_vec(),
            ("apiregistration.k8s.io", "apiservices") => self.api_services(),
            ("networking.k8s.io", "servicecidrs") => vec![service_range()],
            ("", "services" | "endpoints") | ("discovery.k8s.io", "endpointslices")
                if matches!(self.namespace.as_str(), "" | NAMESPACE) =>
            {
                own_service(&resource.plural, self.server.advertised()).into_iter().collect()
            }
            _ => return Vec::new(),
        };
        found.into_iter().map(|object| self.as_of_this_cluster(object)).collect()
    }

    /// The same object with what differs between clusters.
    fn as_of_this_cluster(&self, mut object: Value) -> Value {
        let born = time_text(self.cluster.born());
        for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastTransitionTime"] = json!(born);
        }
        if object["status"].is_null() {
            object.as_object_mut().map(|fields| fields.remove("status"));
        }
        let uid = stable_uid(&self.resource.kind, object::name(&object));
        let metadata = object::metadata_mut(&mut object);
        metadata.entry("uid").or_insert(json!(uid));
        metadata.insert("creationTimestamp".to_owned(), json!(born));
        metadata.insert("resourceVersion".to_owned(), json!(FIRST_VERSION));
        object
    }

    /// One for each group and version: all of them are served here.
    fn api_services(&self) -> Vec<Value> {
        let served = self.server.clusters().served(&self.cluster);
        let versions = discovery::group_versions(&served);
        let mut found: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(place, (group, version))| {
                let is_custom =
                    served.iter().any(|resource| resource.group == *group && resource.is_custom());
                let priority = if is_custom { 1_000 } else { 18_000 - 10 * place.min(1_500) };
                api_service(group, version, priority)
            })
            .collect();
        found.sort_by(|one, other| object::name(one).cmp(object::name(other)));
        found
    }
}

fn api_service(group: &str, version: &str, priority: usize) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {
            "name": format!("{version}.{group}"),
            "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
        },
        "spec": {
            "group": group, "version": version, "groupPriorityMinimum": priority,
            "versionPriority": 100,
        },
        "status": {"conditions": [{
            "type": "Available", "status": "True", "reason": "Local",
            "message": "Local APIServices are always available",
        }]},
    })
}

/// The addresses of the Services of a cluster.
fn service_range() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {
            "name": NAME, "finalizers": ["networking.k8s.io/service-cidr-finalizer"],
        },
        "spec": {"cidrs": [SERVICE_RANGE]},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "",
            "message": "Kubernetes Service CIDR is ready",
        }]},
    })
}

/// How clients inside of the cluster find the server: the Service, and what is behind it once the server can be
/// reached over the network.
fn own_service(plural: &str, advertised: Option<SocketAddr>) -> Option<Value> {
    if plural == "services" {
        return Some(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": NAME, "namespace": NAMESPACE,
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "clusterIP": SERVICE_ADDRESS, "clusterIPs": [SERVICE_ADDRESS],
                "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "type": "ClusterIP",
                "ports": [{
                    "name": "https", "port": 443, "protocol": "TCP",
                    "targetPort": advertised.map_or(443, |address| address.port()),
                }],
            },
            "status": {"loadBalancer": {}},
        }));
    }
    let address = advertised?;
    let port = json!({"name": "https", "port": address.port(), "protocol": "TCP"});
    if plural == "endpoints" {
        return Some(json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "name": NAME, "namespace": NAMESPACE,
                "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
            },
            "subsets": [{"addresses": [{"ip": address.ip().to_string()}], "ports": [port]}],
        }));
    }
    Some(json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": NAME, "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": NAME},
        },
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{
            "addresses": [address.ip().to_string()], "conditions": {"ready": true},
        }],
        "ports": [port],
    }))
}
