//! The ledger: a writer with data and a cloud role, placed on one cluster after the other.

use super::Stage;
use super::records::{RECORDS, REFUSALS, Record, compare, count, judge, read, read_lines};
use super::roles;
use crate::fleet::progress::Data;
use crate::output::{self, ProgressLine};
use anyhow::{Context, bail};
use interlock_api::names;
use interlock_api::placement::{Fill, Grant, GrantStatus, Phase, Placement};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The namespace of the ledger.
pub(super) const NAMESPACE: &str = "ledger";
const POD: &str = "writer";
const CLAIM: &str = "data";
/// What is in the claim besides the records.
const BALLAST_BYTES: u64 = 96 * 1024 * 1024;
/// Old copies of the demonstration are deleted soon: it makes one with every move.
const KEEP_SUPERSEDED: &str = "10s";
/// A move of a few records takes far less; a machine that is busy with other things may take longer.
const TIMEOUT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// The ledger on its stage.
pub(super) struct Ledger<'a> {
    pub(super) stage: &'a Stage,
}

impl Ledger<'_> {
    fn numbers(&self) -> PathBuf {
        self.stage.directory.join(RECORDS)
    }

    /// Makes the namespace and the pod, if they are not there from an earlier start.
    pub(super) async fn place(&self, cluster: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        output::say(&format!("place {NAMESPACE} on {cluster}\n"))?;
        let placements: Api<Placement> = Api::all(self.stage.hub.clone());
        let placement = serde_json::from_value(json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "Placement",
            "metadata": {"name": NAMESPACE},
            "spec": {
                "namespaceSelector": {"matchLabels": {"demo": NAMESPACE}}, "clusterSelector": {},
                "volumes": {"keepSuperseded": KEEP_SUPERSEDED},
            },
        }))
        .context("a placement")?;
        super::made(placements.create(&PostParams::default(), &placement).await)?;
        let namespaces: Api<Namespace> = Api::all(self.stage.hub.clone());
        let namespace = serde_json::from_value(json!({"metadata": {
            "name": NAMESPACE,
            "labels": {names::LABEL_PLACED: names::PLACED_TRUE, "demo": NAMESPACE},
            "annotations": {names::ANNOTATION_CLUSTER: cluster},
        }}))
        .context("a namespace")?;
        let is_new = super::made(namespaces.create(&PostParams::default(), &namespace).await)?;
        if !is_new {
            self.place_on(cluster).await?;
        }
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.stage.hub.clone(), NAMESPACE);
        let claim = serde_json::from_value(json!({
            "metadata": {"name": CLAIM},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "128Mi"}},
            },
        }))
        .context("a claim")?;
        super::made(claims.create(&PostParams::default(), &claim).await)?;
        roles::declare(&self.stage.hub, NAMESPACE).await?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let pod = serde_json::from_value(json!({
            "metadata": {"name": POD},
            "spec": {
                "runtimeClassName": names::RUNTIME_CLASS,
                "terminationGracePeriodSeconds": 5,
                "serviceAccountName": roles::ACCOUNT,
                "containers": [{
                    "name": "writer", "image": "none",
                    "command": [
                        program, "write-numbers", self.stage.directory, "--into", CLAIM,
                        "--ballast", BALLAST_BYTES.to_string(),
                    ],
                    "volumeMounts": [{"name": CLAIM, "mountPath": format!("/{CLAIM}")}],
                }],
                "volumes": [{"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}],
            },
        }))
        .context("a pod")?;
        let pods: Api<Pod> = Api::namespaced(self.stage.hub.clone(), NAMESPACE);
        super::made(pods.create(&PostParams::default(), &pod).await)?;
        self.runs_on(cluster, began).await
    }

    pub(super) async fn step(&self, cluster: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        output::say(&format!(
            "\nmove {NAMESPACE} to {cluster}: promised: {cluster} starts when the old owner has \
             stopped for certain, and with every\nrecord that was acknowledged\n"
        ))?;
        self.place_on(cluster).await?;
        self.runs_on(cluster, began).await
    }

    async fn place_on(&self, cluster: &str) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.stage.hub.clone());
        let patch = json!({"metadata": {"annotations": {names::ANNOTATION_CLUSTER: cluster}}});
        let params = PatchParams::default();
        namespaces
            .patch(NAMESPACE, &params, &Patch::Merge(&patch))
            .await
            .context("cannot set the desired cluster of the namespace")?;
        Ok(())
    }

    /// Waits until the writer writes on this cluster, and tells the phases as they pass.
    async fn runs_on(&self, cluster: &str, began: Instant) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.stage.hub.clone());
        let namespace = namespaces.get(NAMESPACE).await.context("cannot read the namespace")?;
        let uid = namespace.uid().unwrap_or_default();
        let grants: Api<Grant> = Api::all(self.stage.hub.clone());
        let name = names::grant_name(NAMESPACE, &uid);
        let mut told = (Phase::Unassigned, -1);
        let mut is_filled = false;
        let bar = ProgressLine::default();
        let written = count(&self.numbers());
        loop {
            if let Some(grant) = grants.get_opt(&name).await.context("cannot read the grant")? {
                let status = grant.status_or_default();
                let owner = status.owner.as_ref().map_or("nobody", |owner| &owner.name).to_owned();
                let ms = began.elapsed().as_millis();
                if told != (status.phase, status.epoch) {
                    told = (status.phase, status.epoch);
                    let (phase, epoch) = told;
                    bar.clear();
                    let line = format!("  {ms:>5} ms  {phase:<10} epoch {epoch}, owner {owner}\n");
                    output::say(&line)?;
                }
                let is_there = status.phase == Phase::Granted && owner == cluster;
                if let Some(data) = Data::of(&status.claims).filter(|_| ProgressLine::is_wanted()) {
                    bar.show(&format!("  {ms:>5} ms  Filling    {}", data.bar(None)));
                }
                if let Some(data) = arrived(&status).filter(|_| is_there && !is_filled) {
                    is_filled = true;
                    bar.clear();
                    output::say(&format!("  {ms:>5} ms  Filled     {}\n", data.bar(None)))?;
                }
                if is_there
                    && count(&self.numbers()) > written
                    && self.last_writer() == status.epoch
                {
                    return output::say(&format!("  {ms:>5} ms  writes on {cluster}\n"));
                }
            }
            // A writer that met another one is gone, and is not waited for: the check says so.
            if !self.refusals().is_empty() {
                return Ok(());
            }
            if began.elapsed() > TIMEOUT {
                bail!("{NAMESPACE} does not run on {cluster}: see interlock explain {NAMESPACE}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn refusals(&self) -> Vec<String> {
        read_lines(&self.stage.directory.join(REFUSALS))
    }

    /// The epoch of the last record.
    fn last_writer(&self) -> i64 {
        read(&self.numbers()).last().map_or(0, |record| record.epoch)
    }

    /// Whether the records are what one writer after another leaves, and all in the claim.
    pub(super) async fn check(&self, cluster: &str) -> anyhow::Result<bool> {
        let mut broken = self.refusals();
        // First what was acknowledged, then what is there: more may have come in between.
        let acknowledged = read(&self.numbers());
        let there = self.in_the_claim(cluster).await?;
        broken.extend(judge(&acknowledged).err());
        broken.extend(compare(&acknowledged, &there, cluster).err());
        for words in &broken {
            output::say(&format!("  BROKEN: {words}\n"))?;
        }
        if broken.is_empty() {
            output::say(&format!(
                "  kept: {} records acknowledged, all in the volume on {cluster}; none lost, none \
                 twice; never two writers\n",
                acknowledged.len()
            ))?;
        }
        Ok(broken.is_empty())
    }

    /// The records in the volume that the writer has on a cluster: the one that was written to last.
    async fn in_the_claim(&self, cluster: &str) -> anyhow::Result<Vec<Record>> {
        let clusters: Api<interlock_api::placement::WorkloadCluster> =
            Api::all(self.stage.hub.clone());
        let uid = clusters.get(cluster).await.context("cannot read the cluster")?.uid();
        let folder = self.stage.volumes.join(uid.unwrap_or_default());
        let entries = std::fs::read_dir(&folder);
        let entries = entries.with_context(|| format!("cannot list {}", folder.display()))?;
        let volumes = entries.filter_map(|entry| Some(read(&entry.ok()?.path().join(RECORDS))));
        Ok(volumes
            .max_by_key(|records| records.last().map_or(0, |last| last.epoch))
            .unwrap_or_default())
    }
}

/// What the claims were filled with, once all of it is there; None: they began empty, or it is not.
fn arrived(status: &GrantStatus) -> Option<Data> {
    let is_filled = status.claims.iter().all(|claim| claim.fill == Fill::Filled);
    let bytes = status.pins.iter().map(|pin| pin.bytes.max(0).unsigned_abs()).sum();
    (is_filled && bytes > 0).then_some(Data { bytes, of_bytes: Some(bytes) })
}
