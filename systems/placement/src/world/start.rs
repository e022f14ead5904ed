//! The first objects: a hub with its clusters, a namespace that asks for cluster a, and a pod.

use super::machine::Machine;
use super::makers;
use super::people::ADDED;
use super::pods::pod;
use super::processes::start;
use super::storage;
use super::{CLAIM_NAMES, CLUSTER_NAMES, Namespaces, POD_NAMES, namespace};
use crate::kinds::{
    CLAIM, GRANT, NAMESPACE, POD, SNAPSHOT, SOURCE, STORAGE_CLASS, WORKLOAD_CLUSTER,
};
use crate::syncer::marks::{ANNOTATION_FROM, LABEL_GRANT};
use interlock_api::names::{
    ANNOTATION_CLUSTER, ANNOTATION_EPOCH, ANNOTATION_GRANT, ANNOTATION_RAN, ANNOTATION_RELEASED,
    ANNOTATION_RUNNING, ANNOTATION_SYNC, FINALIZER_CLAIM, FINALIZER_GRANT, FINALIZER_LIVE_GRANTS,
    hold_finalizer,
};
use interlock_kernel::Name;
use interlock_world::{CLUSTERS, Chance, Servers};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The uid of a source that is at work from the start.
const UNDER_WAY: &str = "source-before";

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
        if self.claims > 0 {
            let class = json!({"provisioner": "local.interlock.dev"});
            cluster = servers.put(cluster, &STORAGE_CLASS, &Name::cluster_wide("local"), class);
        }
        let mut machines = [Machine::default(), Machine::default()];
        let mut second = cluster;
        if self.unplaced {
            cluster = makers::before(self, servers, cluster);
        }
        if self.slow == 1 {
            cluster = self.snapshot_under_way(servers, cluster, hub);
            machines[0].disks.insert(storage::under_way(UNDER_WAY), BTreeSet::new());
        }
        if self.before {
            hub = self.release(servers, hub);
            second = self.copy_left(servers, second, hub);
            machines[1].disks.insert("snapshot-before".to_owned(), [1].into());
            machines[1].mounted.insert((1, 0), "volume-before".to_owned());
        }
        let mut chance = self.moves;
        // What runs from the start has all of its claims.
        if self.claims > 1 && self.begun == 3 {
            hub = with_claim(servers, hub, CLAIM_NAMES[1]);
            chance |= ADDED;
        }
        ([hub, cluster, second], machines, chance)
    }

    /// Cluster a with a snapshot of the claim under way that an earlier epoch asked for, as a move
    /// leaves it that was called off.
    fn snapshot_under_way(&self, servers: &Servers, cluster: u32, hub: u32) -> u32 {
        let (grant, claim) = (self.grant_name(0), CLAIM_NAMES[0]);
        let uid = servers.uid(hub, &CLAIM, &Name::within("shop", claim));
        let source = json!({
            "metadata": {"uid": UNDER_WAY, "labels": {LABEL_GRANT: grant}, "annotations": {
                ANNOTATION_FROM: format!("{uid}/0"), ANNOTATION_SYNC: "begun"}},
            "spec": {"sourcePVC": claim, "trigger": {"manual": "final-0"}},
        });
        servers.put(cluster, &SOURCE, &Name::within(&grant, &format!("move-{claim}")), source)
    }

    /// Cluster b after it released the namespace: what it noted, and the snapshot that it holds.
    fn copy_left(&self, servers: &Servers, cluster: u32, hub: u32) -> u32 {
        let name = self.grant_name(0);
        let grant = servers.uid(hub, &GRANT, &Name::cluster_wide(&name));
        let home = json!({"metadata": {"labels": {LABEL_GRANT: name}, "annotations": {
            ANNOTATION_GRANT: grant, ANNOTATION_EPOCH: "1", ANNOTATION_RELEASED: "1",
            ANNOTATION_RAN: "1", ANNOTATION_RUNNING: ""}}});
        let cluster = servers.put(cluster, &NAMESPACE, &Name::cluster_wide(&name), home);
        let snapshot = json!({"metadata": {"uid": "before", "finalizers": [hold_finalizer(&grant)]},
            "status": {"readyToUse": true, "creationTime": start().to_string()}});
        servers.put(cluster, &SNAPSHOT, &Name::within(&name, "before"), snapshot)
    }

    /// The hub after cluster b released the namespace.
    fn release(&self, servers: &Servers, hub: u32) -> u32 {
        let at = start().to_string();
        let data = Name::within("shop", "data");
        let uid = servers.uid(hub, &CLAIM, &data);
        let own = json!({"metadata": {"finalizers": [FINALIZER_CLAIM]}});
        let hub = servers.change(hub, &CLAIM, &data, &own);
        let held = json!({"metadata": {"finalizers": [FINALIZER_GRANT]}});
        let hub = servers.change(hub, &NAMESPACE, &namespace(), &held);
        let b = json!({"name": "b", "uid": self.cluster_uid(1)});
        let grant = self.grant_name(0);
        let snapshot = json!({"cluster": b, "namespace": grant, "name": "before", "uid": "before"});
        let pin = json!({"claim": "data", "claimUID": uid, "epoch": 1, "taken": at,
            "files": 1, "bytes": 100, "digest": "d", "snapshot": {"volumeSnapshot": snapshot}});
        let released = json!({
            "spec": {"namespace": {"name": "shop", "uid": self.namespace_uid(0)},
                "target": {"name": "a", "uid": self.cluster_uid(0)},
                "onUnreachable": "Hold",
                "volumes": {"keepSuperseded": "168h", "transport": "Copy", "verifyOnArrival": true}},
            "status": {"phase": "Released", "phaseSince": at, "epoch": 1, "owner": b,
                "claims": [{"name": "data", "uid": uid, "fill": "Filled"}], "pins": [pin],
                "copies": [{"cluster": b, "epoch": 1, "state": "Superseded"}]},
        });
        servers.put(hub, &GRANT, &Name::cluster_wide(&grant), released)
    }

    /// The hub with one more cluster, of which it has heard.
    pub(super) fn register(&self, servers: &Servers, hub: u32, c: usize) -> u32 {
        let at = start().to_string();
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({"type": kind, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": at})
        };
        let mut status = json!({
            "conditions": [condition("Ready", "Ready", "the cluster accepts namespaces"),
                condition("Reachable", "Heard", "the syncer sends heartbeats")],
            "heartbeat": {"sequence": 1},
        });
        // Where its heartbeat is noted already, the hub has nothing to say of a cluster that stays.
        if !self.all {
            status["heartbeat"]["receivedSequence"] = json!(1);
            status["heartbeat"]["receivedAt"] = json!(at);
        }
        if self.claims > 0 {
            status["storageClasses"] = json!([{"name": "local", "canSnapshot": true}]);
        }
        if self.rights {
            let is_known = if self.is_unfit(c) { "False" } else { "True" };
            let mut issuer = condition("IssuerReady", "Provider", "the cloud knows the issuer");
            issuer["status"] = json!(is_known);
            let conditions = status["conditions"].as_array_mut();
            conditions.into_iter().for_each(|conditions| conditions.push(issuer.clone()));
        }
        let mut finalizers = json!([FINALIZER_LIVE_GRANTS]);
        // One that comes later gives its first heartbeat, and the hub has yet to hear of it.
        if self.replace && c == 1 {
            finalizers = json!([]);
            status = json!({"heartbeat": {"sequence": 1}});
        }
        let cluster = json!({
            "metadata": {"uid": self.cluster_uid(c), "finalizers": finalizers},
            "spec": {"connection": {"logicalCluster": CLUSTER_NAMES[c]},
                "unschedulable": self.is_unfit(c) && !self.rights},
            "status": status,
        });
        servers.put(hub, &WORKLOAD_CLUSTER, &Name::cluster_wide(self.cluster_name(c)), cluster)
    }

    /// The hub with the namespace, for the first time or once more under its name.
    pub(super) fn make_namespace(&self, servers: &Servers, hub: u32, place: usize) -> u32 {
        let home = json!({"metadata": {"uid": self.namespace_uid(place),
            "labels": {"interlock.dev/placed": "true"}, "annotations": {ANNOTATION_CLUSTER: "a"}}});
        let mut hub = servers.put(hub, &NAMESPACE, &namespace(), home);
        let mut pod = pod("writer");
        // One that is made again need not have data to show whether it inherits anything.
        if self.claims > 0 && place == 0 {
            use_claims(&mut pod, self.claims);
            hub = with_claim(servers, hub, CLAIM_NAMES[0]);
        }
        servers.put(hub, &POD, &Name::within("shop", POD_NAMES[place]), pod)
    }
}

/// The pod uses each of the claims.
fn use_claims(pod: &mut Value, claims: usize) {
    let names = CLAIM_NAMES.iter().take(claims);
    let volume = |name: &&str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    let mount = |name: &&str| json!({"name": name, "mountPath": format!("/{name}")});
    pod["spec"]["containers"][0]["volumeMounts"] = names.clone().map(mount).collect();
    pod["spec"]["volumes"] = names.map(volume).collect();
}

/// The hub with one more claim.
pub(super) fn with_claim(servers: &Servers, hub: u32, name: &str) -> u32 {
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}}}});
    servers.put(hub, &CLAIM, &Name::within("shop", name), claim)
}
