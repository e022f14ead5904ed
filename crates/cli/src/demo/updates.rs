//! Updates of a cluster: two good versions, one that does not get healthy, and what is remembered of it.

use super::{Stage, judged};
use crate::output::{self, ProgressLine};
use anyhow::{Context, bail};
use interlock_api::rollouts::{
    ClusterUpdate, ClusterUpdateSpec, ClusterUpdateStatus, RawObject, Source, UpdatePhase,
};
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const NAMESPACE: &str = "demo-web";
/// The file in which each process says which version it is.
const LOG: &str = "versions";
const TIMEOUT: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(50);
/// For how long a version has to be healthy: the demonstration has little time.
const SOAK_SECONDS: u32 = 1;
/// How long a version that does not get healthy is waited for.
const DEADLINE_SECONDS: u32 = 8;

/// A cluster that is updated, on its stage.
pub(super) struct Updates<'a> {
    pub(super) stage: &'a Stage,
    pub(super) cluster: &'a str,
}

impl Updates<'_> {
    /// Version 1, version 2, version 3 twice; whether each ended as promised.
    pub(super) async fn tell(&self) -> anyhow::Result<bool> {
        let cluster = self.cluster;
        output::say(&format!(
            "\n{cluster} is updated: promised: one update at a time; one that does not get healthy is \
             rolled back, and refused from then on\n"
        ))?;
        for (version, is_healthy, promised) in [
            ("v1", true, UpdatePhase::Succeeded),
            ("v2", true, UpdatePhase::Succeeded),
            ("v3", false, UpdatePhase::RolledBack),
            ("v3", false, UpdatePhase::Rejected),
        ] {
            let ended = self.ends(version, is_healthy).await?;
            if ended.phase != promised {
                let words = format!(
                    "{version} is {}, and {promised} was promised: {} {}",
                    ended.phase, ended.reason, ended.message
                );
                return judged(&[words], "");
            }
        }
        let running = self.runs().await?;
        let broken: Vec<String> = (running.as_deref() != Some("v2"))
            .then(|| format!("{cluster} runs {running:?}, and v2 was promised"))
            .into_iter()
            .collect();
        judged(&broken, &format!("the processes on {cluster} are those of v2 again"))
    }

    /// Asks for a version, and waits until the request has ended.
    async fn ends(&self, version: &str, is_healthy: bool) -> anyhow::Result<ClusterUpdateStatus> {
        let updates: Api<ClusterUpdate> = Api::namespaced(self.stage.hub.clone(), "default");
        let objects = self.bundle(version, is_healthy)?;
        let mut spec = ClusterUpdateSpec::new(self.cluster, Source::Inline(objects));
        spec.soak_seconds = SOAK_SECONDS;
        spec.deadline_seconds = if is_healthy { 60 } else { DEADLINE_SECONDS };
        let mut asked = ClusterUpdate::new("", spec);
        asked.metadata.name = None;
        asked.metadata.generate_name = Some(format!("demo-{version}-"));
        let made = updates.create(&PostParams::default(), &asked).await;
        let name = made.context("cannot create the ClusterUpdate")?.name_any();
        let (began, bar, mut told) = (Instant::now(), ProgressLine::default(), None);
        loop {
            let found = updates.get(&name).await.context("cannot read the ClusterUpdate")?;
            let status = found.status_or_default();
            let ms = began.elapsed().as_millis();
            if told != Some(status.phase) {
                told = Some(status.phase);
                bar.clear();
                let reason = Some(&status.reason).filter(|reason| !reason.is_empty());
                let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
                output::say(&format!("  {ms:>5} ms  {version}: {}{reason}\n", status.phase))?;
            }
            if status.phase.is_terminal() {
                return Ok(status);
            }
            if began.elapsed() > TIMEOUT {
                bail!("{version} does not end: see interlock rollout status {}", self.cluster);
            }
            if let Some(first) = status.not_ready.first().filter(|_| ProgressLine::is_wanted()) {
                bar.show(&format!("  {ms:>5} ms  {version}: {}: {}", first.id, first.message));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn log(&self) -> PathBuf {
        self.stage.directory.join(LOG)
    }

    /// A Deployment whose process says which version it is, once a fifth of a second, in a file outside.
    fn bundle(&self, version: &str, is_healthy: bool) -> anyhow::Result<Vec<RawObject>> {
        let says =
            format!("while :; do echo {version} >> '{}'; sleep 0.2; done", self.log().display());
        let probe = if is_healthy { "true" } else { "false" };
        let objects = json!([
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"namespace": NAMESPACE, "name": "web"},
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {
                            "terminationGracePeriodSeconds": 1,
                            "containers": [{
                                "name": "web", "image": "none", "command": ["sh", "-c", says],
                                "readinessProbe": {"exec": {"command": [probe]}, "periodSeconds": 1},
                            }],
                        },
                    },
                }},
        ]);
        let Value::Array(objects) = objects else { bail!("a bundle is a list") };
        let raw = |object| match object {
            Value::Object(fields) => Ok(RawObject(fields)),
            _ => bail!("an object of a bundle is a map"),
        };
        objects.into_iter().map(raw).collect()
    }

    /// The version whose processes run now, by what they say: all that is said from now on.
    async fn runs(&self) -> anyhow::Result<Option<String>> {
        let read = || {
            std::fs::read_to_string(self.log())
                .with_context(|| format!("cannot read {}", self.log().display()))
        };
        let before = read()?.lines().count();
        let began = Instant::now();
        loop {
            let text = read()?;
            let mut said: Vec<&str> = text.lines().skip(before + 2).collect();
            said.dedup();
            if text.lines().count() > before + 8 {
                // Two versions at once would show as two words.
                return Ok(Some(said.join(" and ")));
            }
            if began.elapsed() > TIMEOUT {
                return Ok(None);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
