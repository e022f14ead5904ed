//! The first objects: a hub with its clusters, a namespace that asks for cluster a, and a pod.

use super::machine::{Machine, start};
use super::{CLUSTER_NAMES, Namespaces, POD_AGAIN, namespace};
use crate::kinds::{CLAIM, NAMESPACE, POD, STORAGE_CLASS, WORKLOAD_CLUSTER};
use interlock_api::names::{ANNOTATION_CLUSTER, FINALIZER_LIVE_GRANTS};
use interlock_kernel::Name;
use interlock_world::{CLUSTERS, Chance, Servers};
use serde_json::{Value, json};

impl Namespaces {
    pub(super) fn first(
        &self,
        servers: &Servers,
    ) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        let mut hub = servers.empty();
        let there = if self.replace { 1 } else { CLUSTERS };
        for c in 0..there {
            hub = self.register(servers, hub, c);
        }
        hub = self.make_namespace(servers, hub, 0);
        let mut cluster = servers.empty();
        if self.claim {
            let class = json!({"provisioner": "local.interlock.dev"});
            cluster = servers.put(cluster, &STORAGE_CLASS, &Name::cluster_wide("local"), class);
        }
        ([hub, cluster, cluster], [Machine::default(), Machine::default()], self.moves)
    }

    /// The hub with one more cluster, of which it has heard.
    pub(super) fn register(&self, servers: &Servers, hub: u32, c: usize) -> u32 {
        let at = start().to_string();
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({"type": kind, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": at})
        };
        let mut status = json!({
            "conditions": [condition("Ready", "Ready", "it takes namespaces"),
                condition("Reachable", "Heard", "its syncer gives signs of life")],
            "heartbeat": {"sequence": 1},
        });
        // Where its sign of life is noted already, the hub has nothing to say of a cluster that stays.
        if !self.all {
            status["heartbeat"]["receivedSequence"] = json!(1);
            status["heartbeat"]["receivedAt"] = json!(at);
        }
        if self.claim {
            status["storageClasses"] = json!([{"name": "local", "canSnapshot": true}]);
        }
        let mut finalizers = json!([FINALIZER_LIVE_GRANTS]);
        // One that comes later gives its first sign of life, and the hub has yet to hear of it.
        if self.replace && c == 1 {
            finalizers = json!([]);
            status = json!({"heartbeat": {"sequence": 1}});
        }
        let cluster = json!({
            "metadata": {"uid": self.cluster_uid(c), "finalizers": finalizers},
            "spec": {"connection": {"logicalCluster": CLUSTER_NAMES[c]},
                "unschedulable": self.is_unfit(c)},
            "status": status,
        });
        servers.put(hub, &WORKLOAD_CLUSTER, &Name::cluster_wide(self.cluster_name(c)), cluster)
    }

    /// The hub with the namespace, for the first time or once more under its name.
    pub(super) fn make_namespace(&self, servers: &Servers, hub: u32, place: usize) -> u32 {
        let home = json!({"metadata": {"uid": self.namespace_uid(place),
            "labels": {"interlock.dev/placed": "true"}, "annotations": {ANNOTATION_CLUSTER: "a"}}});
        let mut hub = servers.put(hub, &NAMESPACE, &namespace(), home);
        let mut pod = json!({"spec": {"runtimeClassName": "interlock-process",
            "containers": [{"name": "main", "image": "none", "command": ["writer"]}]}});
        if place == 1 {
            pod["metadata"] = json!({"uid": POD_AGAIN});
        }
        // One that is made again need not have data to show whether it inherits anything.
        if self.claim && place == 0 {
            hub = with_claim(servers, hub, &mut pod);
        }
        servers.put(hub, &POD, &Name::within("shop", "pod"), pod)
    }
}

fn with_claim(servers: &Servers, hub: u32, pod: &mut Value) -> u32 {
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/data"}]);
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}}}});
    servers.put(hub, &CLAIM, &Name::within("shop", "data"), claim)
}
