//! What people do.

use super::Fleet;
use super::flaws::Flaw;
use super::granted::Granted;
use crate::engine::{Broken, Engine, api_of, said};
use interlock_api::names::{
    ANNOTATION_CLUSTER, ANNOTATION_FORGET_COPIES, LABEL_PLACED, RUNTIME_CLASS, grant_name,
};
use interlock_kernel::{Kind, Object};
use interlock_placement::kinds::{
    CLAIM, FORCE_RELEASE, GRANT, NAMESPACE, POD, SNAPSHOT, WORKLOAD_CLUSTER,
};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

const NAMESPACES: [&str; 2] = ["shop", "bank"];
const PODS: [&str; 2] = ["one", "two"];

impl Engine<Fleet> {
    /// A person does something.
    pub(crate) async fn user_acts(&mut self) -> Result<(), Broken> {
        let name = NAMESPACES[usize::from(self.chance.once_in(4))];
        let Some(found) = self.truth.get(crate::HUB, &NAMESPACE, None, name).cloned() else {
            return self.place(name).await;
        };
        if found.metadata.deletion_timestamp.is_some() && self.chance.once_in(2) {
            return self.give_up_copies().await;
        }
        if self.carries_data() {
            return self.acts_with_data(name, &found).await;
        }
        match self.chance.below(24) {
            0..=12 => self.change_desired_cluster(name).await,
            13 => self.delete_namespace(&found).await,
            14..=15 | 19..=20 => self.add_pod(name).await,
            16 => self.delete_pod(name).await,
            // Nothing carries data here: what has a claim stays, so most have none.
            17 if self.seed.is_multiple_of(4) => self.add_claim(name).await,
            18 if self.seed % 5 == 1 => self.delete_cluster().await,
            _ => self.force(name).await,
        }
    }

    /// The same, where a move takes longer: people wait longer.
    async fn acts_with_data(&mut self, name: &str, found: &DynamicObject) -> Result<(), Broken> {
        match self.chance.below(24) {
            0..=4 => self.change_desired_cluster(name).await,
            5 if self.chance.once_in(2) => self.delete_namespace(found).await,
            6..=8 => self.add_pod(name).await,
            9 => self.delete_pod(name).await,
            10 => self.add_claim(name).await,
            11 if self.seed % 5 == 1 => self.delete_cluster().await,
            12..=13 => self.delete_snapshot_by_hand().await,
            14..=18 => self.force(name).await,
            _ => Ok(()),
        }
    }

    /// Somebody tidies up, and knows not what a snapshot is for: the last one of a volume that moves,
    /// ready or not, or the one that a claim is to be filled from.
    async fn delete_snapshot_by_hand(&mut self) -> Result<(), Broken> {
        let cluster = crate::CLUSTERS[self.chance.below(crate::CLUSTERS.len())];
        let snapshots = self.truth.all(cluster, &SNAPSHOT).to_vec();
        let Some(snapshot) = self.chance.one_of(&snapshots) else { return Ok(()) };
        if snapshot.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let (namespace, name) =
            (snapshot.metadata.namespace.as_deref(), snapshot.metadata.name.clone());
        let name = name.unwrap_or_default();
        self.counts.by_hand += 1;
        self.note(format!("user: deletes snapshot {name} at {cluster} by hand"));
        let user = self.lines.admin("user", cluster);
        let snapshots = api_of(&user, &SNAPSHOT, namespace);
        snapshots.delete(&name, &DeleteParams::default()).await.map(|_| ()).map_err(said)
    }

    /// A namespace with a pod in it, and most often with a claim that the pod writes to.
    pub(crate) async fn place(&mut self, name: &str) -> Result<(), Broken> {
        let desired = crate::CLUSTERS[self.chance.below(crate::CLUSTERS.len())];
        self.note(format!("user: places {name} on {desired}"));
        let namespace = json!({"metadata": {
            "name": name, "labels": {LABEL_PLACED: "true"},
            "annotations": {ANNOTATION_CLUSTER: desired},
        }});
        let made = self.create(&NAMESPACE, None, namespace).await?;
        let uid = made.metadata.uid.unwrap_or_default();
        let named = grant_name(name, &uid);
        if !self.world.promises.known.insert(named.clone()) {
            return Err(format!("{named} was there before"));
        }
        if self.carries_data() && !self.chance.once_in(8) {
            self.add_claim_to(name).await?;
        }
        self.add(name, PODS[0]).await
    }

    pub(crate) async fn change_desired_cluster(&mut self, name: &str) -> Result<(), Broken> {
        let desired = crate::CLUSTERS[self.chance.below(crate::CLUSTERS.len())];
        self.set_desired_cluster(name, desired).await
    }

    async fn set_desired_cluster(&mut self, name: &str, desired: &str) -> Result<(), Broken> {
        self.note(format!("user: sets the desired cluster of {name} to {desired}"));
        let change = json!({"metadata": {"annotations": {ANNOTATION_CLUSTER: desired}}});
        self.change(&NAMESPACE, None, name, change).await
    }

    /// A user whose desired cluster is being deleted names another one.
    pub(crate) async fn set_possible_clusters(&mut self) -> Result<(), Broken> {
        for name in NAMESPACES {
            let found = self.truth.get(crate::HUB, &NAMESPACE, None, name);
            let notes = found.and_then(|found| found.metadata.annotations.as_ref());
            let desired = notes.and_then(|notes| notes.get(ANNOTATION_CLUSTER));
            if desired.is_some_and(|desired| !self.takes_new_ones(desired)) {
                self.set_desired_cluster(name, crate::CLUSTERS[2]).await?;
            }
            // Pods that write to a claim wait for it.
            if self.carries_data() {
                self.add_claim(name).await?;
            }
        }
        self.check().await
    }

    async fn change(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        change: Value,
    ) -> Result<(), Broken> {
        let patch = Patch::Merge(change);
        let changed = self.api(kind, namespace).patch(name, &PatchParams::default(), &patch).await;
        changed.map(|_| ()).map_err(said)
    }

    async fn delete_namespace(&mut self, found: &DynamicObject) -> Result<(), Broken> {
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let (name, uid) = (found.metadata.name.clone(), found.metadata.uid.clone());
        let name = name.unwrap_or_default();
        self.note(format!("user: deletes {name}"));
        self.world.promises.deleted.insert(grant_name(&name, &uid.unwrap_or_default()));
        self.delete(&NAMESPACE, None, &name).await
    }

    async fn delete(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Result<(), Broken> {
        let deleted = self.api(kind, namespace).delete(name, &DeleteParams::default()).await;
        deleted.map(|_| ()).map_err(said)
    }

    fn is_terminating(&self, namespace: &str) -> bool {
        let found = self.truth.get(crate::HUB, &NAMESPACE, None, namespace);
        found.is_none_or(|found| found.metadata.deletion_timestamp.is_some())
    }

    async fn add_pod(&mut self, namespace: &str) -> Result<(), Broken> {
        let name = PODS[self.chance.below(PODS.len())];
        let known = self.truth.get(crate::HUB, &POD, Some(namespace), name);
        if known.is_some() || self.is_terminating(namespace) {
            return Ok(());
        }
        self.add(namespace, name).await
    }

    async fn add(&mut self, namespace: &str, name: &str) -> Result<(), Broken> {
        self.note(format!("user: adds pod {name} to {namespace}"));
        let mut pod = json!({
            "metadata": {"name": name},
            "spec": {
                "runtimeClassName": RUNTIME_CLASS,
                "terminationGracePeriodSeconds": 5,
                "containers": [{"name": "writer", "image": "none", "command": ["write"]}],
            },
        });
        // The first pod writes to the claim, and the second one sometimes does, too.
        if self.carries_data() && (name == PODS[0] || self.chance.once_in(2)) {
            let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
            pod["spec"]["volumes"] = json!([claim]);
            let mount = json!({"name": "data", "mountPath": "/data"});
            pod["spec"]["containers"][0]["volumeMounts"] = json!([mount]);
        }
        self.create(&POD, Some(namespace), pod).await.map(|_| ())
    }

    async fn delete_pod(&mut self, namespace: &str) -> Result<(), Broken> {
        let name = PODS[self.chance.below(PODS.len())];
        let known = self.truth.get(crate::HUB, &POD, Some(namespace), name);
        let Some(uid) = known.and_then(|pod| pod.metadata.uid.clone()) else { return Ok(()) };
        self.note(format!("user: deletes pod {name} of {namespace}"));
        self.world.promises.deleted_pods.insert(uid);
        self.world.promises.deleted_pod_names.insert((namespace.to_owned(), name.to_owned()));
        self.delete(&POD, Some(namespace), name).await
    }

    async fn add_claim(&mut self, namespace: &str) -> Result<(), Broken> {
        let known = self.truth.get(crate::HUB, &CLAIM, Some(namespace), "data");
        if known.is_some() || self.is_terminating(namespace) {
            return Ok(());
        }
        self.add_claim_to(namespace).await
    }

    async fn add_claim_to(&mut self, namespace: &str) -> Result<(), Broken> {
        self.note(format!("user: adds a claim to {namespace}"));
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        self.create(&CLAIM, Some(namespace), claim).await.map(|_| ())
    }

    /// Whatever runs there: it must stay until nothing does.
    async fn delete_cluster(&mut self) -> Result<(), Broken> {
        let name = crate::CLUSTERS[0];
        let found = self.truth.get(crate::HUB, &WORKLOAD_CLUSTER, None, name);
        if found.is_none_or(|found| found.metadata.deletion_timestamp.is_some()) {
            return Ok(());
        }
        self.note(format!("user: deletes cluster {name}"));
        self.delete(&WORKLOAD_CLUSTER, None, name).await
    }

    fn grant_of(&self, namespace: &str) -> Option<&Object> {
        let mut grants = self.truth.all(crate::HUB, &GRANT).iter();
        grants.find(|grant| grant.data["spec"]["namespace"]["name"] == namespace)
    }

    /// The cluster that has a namespace now, by its place.
    pub(crate) fn owner_of(&self, namespace: &str) -> Option<usize> {
        let granted = Granted::of(self.grant_of(namespace)?);
        self.world.clusters.iter().position(|cluster| granted.is_held_by(&cluster.uid))
    }

    /// Declares the owner gone: only while its machine is off, unless the person is wrong.
    pub(crate) async fn force(&mut self, namespace: &str) -> Result<(), Broken> {
        let Some(grant) = self.grant_of(namespace) else { return Ok(()) };
        let (name, uid) = (grant.metadata.name.clone(), grant.metadata.uid.clone());
        let Granted { owner, epoch, .. } = Granted::of(grant);
        let Some(place) = self.owner_of(namespace) else { return Ok(()) };
        let is_lie = self.world.flaw == Flaw::FalseAttestation;
        if !self.world.machines[place].is_off() && !is_lie {
            return Ok(());
        }
        let name = name.unwrap_or_default();
        self.note(format!(
            "user: says that {} is off, and forces {name}",
            self.world.clusters[place]
        ));
        let force = json!({
            "metadata": {"name": format!("{name}-{epoch}-{}", self.event_count)},
            "spec": {
                "grant": {"name": name, "uid": uid},
                "owner": {"name": self.world.clusters[place].name, "uid": owner},
                "epoch": epoch, "attestation": "PoweredOff",
                "reason": "its machine has no power", "requester": "somebody on call",
            },
        });
        self.create(&FORCE_RELEASE, None, force).await.map(|_| ())
    }

    /// A person gives up copies that nobody else can: those of namespaces that are being deleted.
    pub(crate) async fn give_up_copies(&mut self) -> Result<(), Broken> {
        for grant in self.truth.all(crate::HUB, &GRANT).to_vec() {
            if grant.data["status"]["phase"] != "Deleting" {
                continue;
            }
            for copy in grant.data["status"]["copies"].as_array().into_iter().flatten() {
                if copy["state"] != "Diverged" {
                    continue;
                }
                let cluster = copy["cluster"]["name"].as_str().unwrap_or_default();
                self.note(format!("user: gives up what {cluster} has of a deleted namespace"));
                let uid = grant.metadata.uid.clone();
                let change = json!({"metadata": {"annotations": {ANNOTATION_FORGET_COPIES: uid}}});
                self.change(&WORKLOAD_CLUSTER, None, cluster, change).await?;
            }
        }
        Ok(())
    }
}
