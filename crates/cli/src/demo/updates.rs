//! Updates of a cluster: two good versions, for the second of which it is drained; one that does not get healthy, and what
//! is remembered of it.

use super::ledger::{self, Ledger};
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
    /// It is on the cluster at first.
    pub(super) ledger: &'a Ledger<'a>,
}

/// A version that is asked for.
struct Version {
    name: &'static str,
    is_healthy: bool,
    /// The epoch in which the ledger is on the cluster, which is drained first; None: the cluster is not drained.
    drains: Option<i64>,
}

/// How a request for a version ended.
struct Ended {
    status: ClusterUpdateStatus,
    /// How many records of the drained epoch there were when the update was first seen to have begun.
    records_before: Option<usize>,
}

impl Updates<'_> {
    /// Version 1 beside the ledger, and version 2 once the ledger has left; the cluster that the ledger moved to. None: a
    /// promise is broken.
    pub(super) async fn drain(&self) -> anyhow::Result<Option<String>> {
        let (cluster, name) = (self.cluster, ledger::NAMESPACE);
        output::say(&format!(
            "\n{cluster} is updated, and drained before v2: promised: v2 begins when {name} has left for \
             certain, with every record\n"
        ))?;
        let v1 = Version { name: "v1", is_healthy: true, drains: None };
        if !self.is_as_promised(&v1, &self.ends(&v1).await?, UpdatePhase::Succeeded)? {
            return Ok(None);
        }
        // A namespace that asks for this very cluster would not move away.
        self.ledger.desires(None).await?;
        let epoch = self.ledger.epoch();
        let v2 = Version { name: "v2", is_healthy: true, drains: Some(epoch) };
        let ended = self.ends(&v2).await?;
        if !self.is_as_promised(&v2, &ended, UpdatePhase::Succeeded)? {
            return Ok(None);
        }
        let before = ended.records_before.unwrap_or_default();
        let late = self.ledger.logged_in(epoch).saturating_sub(before);
        let broken: Vec<String> = (late > 0)
            .then(|| format!("{name} wrote {late} records on {cluster} after the update began"))
            .into_iter()
            .collect();
        let kept = format!("{name} wrote nothing on {cluster} from the beginning of v2 on");
        if !judged(&broken, &kept)? {
            return Ok(None);
        }
        self.ledger.left(cluster).await
    }

    /// Version 3, twice, while the ledger is elsewhere; whether it ended as promised.
    pub(super) async fn roll_back(&self) -> anyhow::Result<bool> {
        let cluster = self.cluster;
        output::say(&format!(
            "\n{cluster} is updated to v3, which does not get healthy: promised: it is rolled back, and \
             refused from then on\n"
        ))?;
        let v3 = Version { name: "v3", is_healthy: false, drains: None };
        // A cluster on which v3 ran in an earlier round remembers it.
        let is_remembered = self.said()?.lines().any(|line| line == v3.name);
        let first = if is_remembered { UpdatePhase::Rejected } else { UpdatePhase::RolledBack };
        for promised in [first, UpdatePhase::Rejected] {
            if !self.is_as_promised(&v3, &self.ends(&v3).await?, promised)? {
                return Ok(false);
            }
        }
        let running = self.runs().await?;
        let broken: Vec<String> = (running.as_deref() != Some("v2"))
            .then(|| format!("{cluster} runs {running:?}, and v2 was promised"))
            .into_iter()
            .collect();
        judged(&broken, &format!("the processes on {cluster} are those of v2 again"))
    }

    fn is_as_promised(
        &self,
        version: &Version,
        ended: &Ended,
        promised: UpdatePhase,
    ) -> anyhow::Result<bool> {
        let (name, status) = (version.name, &ended.status);
        if status.phase == promised {
            return Ok(true);
        }
        let words = format!(
            "{name} on {} is {}, and {promised} was promised: {} {}",
            self.cluster, status.phase, status.reason, status.message
        );
        judged(&[words], "")
    }

    /// Asks for a version, and waits until the request has ended.
    async fn ends(&self, version: &Version) -> anyhow::Result<Ended> {
        let updates: Api<ClusterUpdate> = Api::namespaced(self.stage.hub.clone(), "default");
        let made = updates.create(&PostParams::default(), &self.request(version)?).await;
        let asked = made.context("cannot create the ClusterUpdate")?.name_any();
        let (began, bar, name) = (Instant::now(), ProgressLine::default(), version.name);
        let (mut told, mut records_before) = (None, None);
        loop {
            let found = updates.get(&asked).await.context("cannot read the ClusterUpdate")?;
            let status = found.status_or_default();
            let ms = began.elapsed().as_millis();
            let now = (status.phase, status.reason.clone());
            if told.as_ref() != Some(&now) {
                bar.clear();
                let reason = Some(&now.1).filter(|reason| !reason.is_empty());
                let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
                output::say(&format!("  {ms:>5} ms  {name}: {}{reason}\n", now.0))?;
                told = Some(now);
            }
            let has_begun = !matches!(status.phase, UpdatePhase::Pending | UpdatePhase::Queued);
            if let Some(epoch) = version.drains.filter(|_| has_begun && records_before.is_none()) {
                records_before = Some(self.ledger.stored_in(self.cluster, epoch).await?);
            }
            if status.phase.is_terminal() {
                return Ok(Ended { status, records_before });
            }
            if began.elapsed() > TIMEOUT {
                bail!("{name} does not end: see interlock rollout status {}", self.cluster);
            }
            if let Some(first) = status.not_ready.first().filter(|_| ProgressLine::is_wanted()) {
                bar.show(&format!("  {ms:>5} ms  {name}: {}: {}", first.id, first.message));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn request(&self, version: &Version) -> anyhow::Result<ClusterUpdate> {
        let objects = self.bundle(version)?;
        let mut spec = ClusterUpdateSpec::new(self.cluster, Source::Inline(objects));
        spec.soak_seconds = SOAK_SECONDS;
        spec.deadline_seconds = if version.is_healthy { 60 } else { DEADLINE_SECONDS };
        spec.drain_first = version.drains.is_some();
        let mut asked = ClusterUpdate::new("", spec);
        asked.metadata.name = None;
        asked.metadata.generate_name = Some(format!("demo-{}-", version.name));
        Ok(asked)
    }

    fn log(&self) -> PathBuf {
        self.stage.directory.join(LOG)
    }

    /// A Deployment whose process says which version it is, once a fifth of a second, in a file outside.
    fn bundle(&self, version: &Version) -> anyhow::Result<Vec<RawObject>> {
        let (name, log) = (version.name, self.log());
        let says = format!("while :; do echo {name} >> '{}'; sleep 0.2; done", log.display());
        let probe = if version.is_healthy { "true" } else { "false" };
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

    /// What all processes said so far.
    fn said(&self) -> anyhow::Result<String> {
        let log = self.log();
        std::fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))
    }

    /// The version whose processes run now, by what they say: all that is said from now on.
    async fn runs(&self) -> anyhow::Result<Option<String>> {
        let before = self.said()?.lines().count();
        let began = Instant::now();
        loop {
            let text = self.said()?;
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
