//! What is reported about agents: logs, a condition of the WorkloadCluster, and metrics.

use super::actions::Ground;
use anyhow::Context;
use interlock_api::placement::condition::SERVED;
use interlock_api::placement::{Ref, WorkloadCluster};
use interlock_kernel::conditions::{self, Finding};
use interlock_programs::supervisor::Refusal;
use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// How often a write that conflicts is tried.
const TRIES: usize = 5;

/// How it is with the agents, by the uid of their cluster: its name, and one word.
#[derive(Debug, Clone, Default)]
pub(super) struct Agents(pub(super) BTreeMap<String, (String, &'static str)>);

impl Agents {
    /// Whether each of these was started, has failed, or was refused.
    pub(super) fn are_tried(&self, uids: &[String]) -> bool {
        let is_tried = |uid: &String| self.0.get(uid).is_some_and(|(_, word)| *word != "starting");
        uids.iter().all(is_tried)
    }

    /// As Prometheus reads it.
    pub(super) fn render(&self) -> String {
        let mut text = "# HELP interlock_agents Workload clusters by the state of their agent.\n\
                        # TYPE interlock_agents gauge\n"
            .to_owned();
        for (name, state) in self.0.values() {
            let _ = writeln!(text, "interlock_agents{{cluster=\"{name}\",state=\"{state}\"}} 1");
        }
        text
    }
}

/// The agent of a cluster could not be started.
pub(super) fn failed(ground: &Ground, of: Ref, because: &str, pause: Duration) {
    let retry_seconds = pause.as_secs();
    tracing::warn!(
        cluster = of.name,
        because,
        retry_seconds,
        "cannot start the agent of the cluster"
    );
    let message = format!("the agent of cluster {of} cannot be started: {because}");
    write(ground, of, Finding::fails(SERVED, "StartFailed", message));
}

/// The agent of a cluster runs.
pub(super) fn served(ground: &Ground, of: &Ref) {
    let message = format!("the agent of cluster {of} runs in interlock up");
    write(ground, of.clone(), Finding::holds(SERVED, "Serving", message));
}

/// A cluster gets no agent.
pub(super) fn refused(ground: &Ground, of: Ref, refusal: &Refusal) {
    let next = "name another logical cluster";
    let (reason, message) = match refusal {
        Refusal::Elsewhere => {
            let because = "the connection of the WorkloadCluster is not a logical cluster of this \
                API server";
            let next = format!("interlock syncer {of}");
            tracing::info!(
                cluster = of.name,
                because,
                next,
                "the cluster is served by another program"
            );
            return;
        }
        Refusal::IsHub => {
            ("IsHub", "the logical cluster of the WorkloadCluster is the hub".to_owned())
        }
        Refusal::Taken(by) => {
            let message = format!("WorkloadCluster {by} uses the same logical cluster");
            ("LogicalClusterTaken", message)
        }
    };
    tracing::warn!(cluster = of.name, because = message, next, "the cluster is not served");
    write(ground, of, Finding::fails(SERVED, reason, message).next(next.to_owned()));
}

/// Writes a condition, beside whatever else goes on. What cannot be written is in the log.
fn write(ground: &Ground, of: Ref, finding: Finding) {
    let hub = ground.hub.clone();
    tokio::spawn(async move {
        if let Err(error) = written(&hub, &of, &finding).await {
            tracing::debug!(
                cluster = of.name,
                because = format!("{error:#}"),
                "cannot write a condition"
            );
        }
    });
}

async fn written(hub: &Client, of: &Ref, finding: &Finding) -> anyhow::Result<()> {
    let clusters: Api<WorkloadCluster> = Api::all(hub.clone());
    for _ in 0..TRIES {
        let found = clusters.get_opt(&of.name).await.context("cannot read the WorkloadCluster")?;
        let Some(cluster) = found.filter(|it| it.uid().as_deref() == Some(&of.uid)) else { break };
        let known = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
        // That a cluster is served goes without saying, unless it was said that it is not.
        let is_news = finding.holds != Some(true) || conditions::find(known, SERVED).is_some();
        if !is_news || finding.is_in(known) {
            break;
        }
        let all = conditions::with(known, finding, Timestamp::now(), cluster.metadata.generation);
        let version = cluster.resource_version();
        let change =
            json!({"metadata": {"resourceVersion": version}, "status": {"conditions": all}});
        match clusters.patch_status(&of.name, &PatchParams::default(), &Patch::Merge(change)).await
        {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            patched => return patched.map(|_| ()).context("cannot write the status"),
        }
    }
    Ok(())
}
