//! The ledger: a Deployment with data and a cloud role, placed on one cluster after the other.

use super::records::{RECORDS, REFUSALS, Record, compare, count, judge, read, read_lines};
use super::{Stage, judged, roles};
use crate::fleet::progress::Data;
use crate::output::{self, ProgressLine};
use anyhow::{Context, bail};
use interlock_api::names;
use interlock_api::placement::{Fill, Grant, GrantStatus, Phase, Placement};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The namespace of the ledger, and its Deployment.
pub(super) const NAMESPACE: &str = "ledger";
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

/// A move that is followed.
struct Following<'a> {
    to: &'a str,
    began: Instant,
    /// Whether each agent that the move waits for is killed once.
    is_disturbed: bool,
    /// The clusters whose agents were killed.
    killed: Vec<String>,
    told: (Phase, i64),
    is_filled: bool,
    bar: ProgressLine,
}

impl<'a> Following<'a> {
    fn new(to: &'a str) -> Following<'a> {
        Following {
            to,
            began: Instant::now(),
            is_disturbed: false,
            killed: Vec::new(),
            told: (Phase::Unassigned, -1),
            is_filled: false,
            bar: ProgressLine::default(),
        }
    }

    fn says(&self, words: &str) -> anyhow::Result<()> {
        self.bar.clear();
        output::say(&format!("  {:>5} ms  {words}\n", self.began.elapsed().as_millis()))
    }

    /// Tells what is new in the status of the grant.
    fn tell(&mut self, status: &GrantStatus) -> anyhow::Result<()> {
        if self.told != (status.phase, status.epoch) {
            self.told = (status.phase, status.epoch);
            let (phase, epoch) = self.told;
            let owner = owner(status).unwrap_or("none");
            self.says(&format!("{phase:<10} epoch {epoch}, owner {owner}"))?;
        }
        if let Some(data) = Data::of(&status.claims).filter(|_| ProgressLine::is_wanted()) {
            let ms = self.began.elapsed().as_millis();
            self.bar.show(&format!("  {ms:>5} ms  Filling    {}", data.bar(None)));
        }
        if let Some(data) = arrived(status).filter(|_| self.is_there(status) && !self.is_filled) {
            self.is_filled = true;
            self.says(&format!("Filled     {}", data.bar(None)))?;
        }
        Ok(())
    }

    fn is_there(&self, status: &GrantStatus) -> bool {
        status.phase == Phase::Granted && owner(status) == Some(self.to)
    }

    /// The cluster whose agent is to be killed now: the move waits for it.
    fn victim(&self, status: &GrantStatus) -> Option<String> {
        let is_filling = status.claims.iter().any(|claim| claim.fill != Fill::Filled);
        let is_under_way = status.phase == Phase::Revoking || self.is_there(status) && is_filling;
        let owner = owner(status).filter(|_| self.is_disturbed && is_under_way)?;
        (!self.killed.iter().any(|killed| killed == owner)).then(|| owner.to_owned())
    }

    async fn disturb(&mut self, stage: &Stage, status: &GrantStatus) -> anyhow::Result<()> {
        let Some(victim) = self.victim(status) else { return Ok(()) };
        if stage.killer.kill(&victim).await {
            self.says(&format!("Killed     the agent of {victim}, in phase {}", status.phase))?;
            self.killed.push(victim);
        }
        Ok(())
    }
}

fn owner(status: &GrantStatus) -> Option<&str> {
    status.owner.as_ref().map(|owner| owner.name.as_str())
}

impl Ledger<'_> {
    fn numbers(&self) -> PathBuf {
        self.stage.directory.join(RECORDS)
    }

    /// Makes the namespace and all that is in it, if they are not there from an earlier start; whether the records are as
    /// promised after that.
    pub(super) async fn place(&self, cluster: &str) -> anyhow::Result<bool> {
        output::say(&format!("\nplace {NAMESPACE} on {cluster}\n"))?;
        let mut following = Following::new(cluster);
        self.make_namespace(cluster).await?;
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
        let deployment = serde_json::from_value(self.deployment()?).context("a deployment")?;
        let deployments: Api<Deployment> = Api::namespaced(self.stage.hub.clone(), NAMESPACE);
        super::made(deployments.create(&PostParams::default(), &deployment).await)?;
        self.follow(&mut following).await?;
        self.check(cluster).await
    }

    async fn make_namespace(&self, cluster: &str) -> anyhow::Result<()> {
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
        if is_new { Ok(()) } else { self.desires(Some(cluster)).await }
    }

    fn deployment(&self) -> anyhow::Result<Value> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let labels = json!({"app": NAMESPACE});
        Ok(json!({
            "metadata": {"name": NAMESPACE},
            "spec": {
                "replicas": 1,
                // A second writer beside the first one would be refused.
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "runtimeClassName": names::RUNTIME_CLASS,
                        "terminationGracePeriodSeconds": 5,
                        "serviceAccountName": roles::ACCOUNT,
                        "containers": [{
                            "name": "writer", "image": "none",
                            "command": [
                                program, "write-numbers", self.stage.directory, "--into", CLAIM,
                                "--ballast", BALLAST_BYTES.to_string(), "--role",
                            ],
                            "volumeMounts": [{"name": CLAIM, "mountPath": format!("/{CLAIM}")}],
                        }],
                        "volumes": [
                            {"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}},
                        ],
                    },
                },
            },
        }))
    }

    /// Moves the ledger; whether the records are as promised after that.
    pub(super) async fn step(&self, cluster: &str) -> anyhow::Result<bool> {
        output::say(&format!(
            "\nmove {NAMESPACE} to {cluster}: promised: {cluster} starts when the old owner has \
             stopped for certain, and with every\nrecord that was acknowledged\n"
        ))?;
        let mut following = Following::new(cluster);
        self.desires(Some(cluster)).await?;
        self.follow(&mut following).await?;
        self.check(cluster).await
    }

    /// The same, with the agents of both clusters killed in the middle of the move.
    pub(super) async fn step_disturbed(&self, cluster: &str) -> anyhow::Result<bool> {
        output::say(&format!(
            "\nmove {NAMESPACE} to {cluster}, and kill the agents of both clusters in the middle of \
             it: promised: the move is completed,\nand nothing is lost\n"
        ))?;
        let mut following = Following { is_disturbed: true, ..Following::new(cluster) };
        self.desires(Some(cluster)).await?;
        self.follow(&mut following).await?;
        let killed = following.killed.join(", ");
        let too_late = "the move was over before an agent could be killed".to_owned();
        let broken: Vec<String> = killed.is_empty().then_some(too_late).into_iter().collect();
        let kept = format!("the move was completed; agents killed in the middle of it: {killed}");
        Ok(judged(&broken, &kept)? && self.check(cluster).await?)
    }

    /// Sets the desired cluster; None: the ledger stays where it is until its cluster is drained.
    pub(super) async fn desires(&self, cluster: Option<&str>) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.stage.hub.clone());
        let patch = json!({"metadata": {"annotations": {names::ANNOTATION_CLUSTER: cluster}}});
        let params = PatchParams::default();
        namespaces
            .patch(NAMESPACE, &params, &Patch::Merge(&patch))
            .await
            .context("cannot set the desired cluster of the namespace")?;
        Ok(())
    }

    /// Waits until the ledger writes on another cluster than this one, which was drained. That cluster; None: a promise is
    /// broken.
    pub(super) async fn left(&self, drained: &str) -> anyhow::Result<Option<String>> {
        let now = self.owner_but(drained).await?;
        self.follow(&mut Following::new(&now)).await?;
        Ok(self.check(&now).await?.then_some(now))
    }

    /// Waits until the ledger is granted to another cluster than this one.
    async fn owner_but(&self, drained: &str) -> anyhow::Result<String> {
        let began = Instant::now();
        loop {
            let status = self.grant().await?.and_then(|grant| grant.status).unwrap_or_default();
            let granted = owner(&status).filter(|_| status.phase == Phase::Granted);
            if let Some(now) = granted.filter(|now| *now != drained) {
                return Ok(now.to_owned());
            }
            if began.elapsed() > TIMEOUT {
                bail!("{NAMESPACE} did not leave {drained}: see interlock explain {NAMESPACE}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn grant(&self) -> anyhow::Result<Option<Grant>> {
        let namespaces: Api<Namespace> = Api::all(self.stage.hub.clone());
        let namespace = namespaces.get(NAMESPACE).await.context("cannot read the namespace")?;
        let name = names::grant_name(NAMESPACE, &namespace.uid().unwrap_or_default());
        let grants: Api<Grant> = Api::all(self.stage.hub.clone());
        grants.get_opt(&name).await.context("cannot read the grant")
    }

    /// Waits until the writer writes on a cluster, and tells the phases as they pass.
    async fn follow(&self, following: &mut Following<'_>) -> anyhow::Result<()> {
        let written = count(&self.numbers());
        loop {
            if let Some(grant) = self.grant().await? {
                let status = grant.status_or_default();
                following.tell(&status)?;
                if following.is_there(&status)
                    && count(&self.numbers()) > written
                    && self.epoch() == status.epoch
                {
                    return following.says(&format!("writes on {}", following.to));
                }
                following.disturb(self.stage, &status).await?;
            }
            // A writer that met another one is gone, and is not waited for: the check says so.
            if !self.refusals().is_empty() {
                return Ok(());
            }
            if following.began.elapsed() > TIMEOUT {
                let to = following.to;
                bail!("{NAMESPACE} does not run on {to}: see interlock explain {NAMESPACE}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn refusals(&self) -> Vec<String> {
        read_lines(&self.stage.directory.join(REFUSALS))
    }

    /// The epoch of the last record.
    pub(super) fn epoch(&self) -> i64 {
        read(&self.numbers()).last().map_or(0, |record| record.epoch)
    }

    /// How many records have this epoch, by the log of the writers.
    pub(super) fn logged_in(&self, epoch: i64) -> usize {
        of_epoch(&read(&self.numbers()), epoch)
    }

    /// How many records of this epoch are in the volume on a cluster. That may be one more than are in the log: a writer
    /// that is stopped between the two is helped by the next one, which adds it to the log then.
    pub(super) async fn stored_in(&self, cluster: &str, epoch: i64) -> anyhow::Result<usize> {
        Ok(of_epoch(&self.in_the_claim(cluster).await?, epoch))
    }

    /// Whether the records are what one writer after another leaves, and all in the claim.
    pub(super) async fn check(&self, cluster: &str) -> anyhow::Result<bool> {
        let refusals = self.refusals();
        if !refusals.is_empty() {
            return judged(&refusals, "");
        }
        // First what was acknowledged, then what is there: more may have come in between.
        let acknowledged = read(&self.numbers());
        let there = self.in_the_claim(cluster).await?;
        let judgements = [judge(&acknowledged), compare(&acknowledged, &there, cluster)];
        let broken: Vec<String> = judgements.into_iter().filter_map(Result::err).collect();
        let kept = format!(
            "{} records acknowledged, all in the volume on {cluster}; none lost, none twice; never \
             two writers",
            acknowledged.len()
        );
        judged(&broken, &kept)
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

fn of_epoch(records: &[Record], epoch: i64) -> usize {
    records.iter().filter(|record| record.epoch == epoch).count()
}

/// What the claims were filled with, once all of it is there; None: they began empty, or it is not.
fn arrived(status: &GrantStatus) -> Option<Data> {
    let is_filled = status.claims.iter().all(|claim| claim.fill == Fill::Filled);
    let bytes = status.pins.iter().map(|pin| pin.bytes.max(0).unsigned_abs()).sum();
    (is_filled && bytes > 0).then_some(Data { bytes, of_bytes: Some(bytes) })
}
