//! The fence of updates on a cluster with two API servers of Kubernetes, which share one etcd. What etcd sends to the second
//! server can be held back, and so can single writes of the second server to etcd.

mod lags;
mod late;
mod sleeps;

use super::audit::{self, Audit};
use super::link::Link;
use super::servers::Server;
use super::{Fleet, TIMEOUT, is_true};
use crate::chaos::proxy::Proxy;
use crate::program::{Program, eventually, log_of};
use crate::say;
use anyhow::{Context, bail};
use interlock_api::rollouts::{LABEL_ROLLOUT, SYSTEM_NAMESPACE};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;

const CLUSTER: &str = "north";
/// Whom the fence is for.
const APPLIER: &str = "system:interlock:applier:north";
const LEASE: &str = "interlock-syncer-north";
/// So many objects of the second version are written side by side: by several connections, and so by both servers.
const SIDE_BY_SIDE: usize = 30;

/// Shows it; every line is something that was seen.
pub(super) fn show(fleet: &mut Fleet) -> anyhow::Result<()> {
    fleet.programs.push(fleet.start_controllers()?);
    let mut stage = Stage::start(fleet)?;
    stage.deploy()?;
    lags::show(&stage)?;
    sleeps::show(&mut stage)?;
    late::show(&stage)?;
    stage.end()
}

/// A cluster with two API servers, and two agents of which one leads.
struct Stage<'a> {
    fleet: &'a Fleet,
    /// The API servers. Only the second one has its ConfigMaps by way of the link.
    servers: [Server; 2],
    link: Link,
    /// Where the first agent finds the cluster: its connections are made to both servers in turn.
    between: Proxy,
    /// Where the first agent finds the hub.
    to_hub: Proxy,
    audit: Audit,
    first: Option<Program>,
    /// It knows the second API server only.
    second: Option<Program>,
}

/// Where a URL leads: all are on this machine.
fn socket(url: &str) -> anyhow::Result<SocketAddr> {
    let port = url.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    let port = port.with_context(|| format!("{url} names no port"))?;
    Ok(SocketAddr::from(([127, 0, 0, 1], port)))
}

/// The URL of a proxy. The certificates of the servers are for this name.
fn by(proxy: &Proxy) -> String {
    format!("https://localhost:{}", proxy.address.port())
}

/// A ConfigMap of a bundle.
fn map(name: &str, version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"version": version},
        "metadata": {"name": name, "namespace": "default"}})
}

/// The first version.
fn first_version() -> [Value; 2] {
    [map("settings", "v1"), map("only-v1", "v1")]
}

/// The second version: it is on the cluster from then on, whatever else is tried.
fn target() -> Vec<Value> {
    let parts = (0..SIDE_BY_SIDE).map(|number| map(&format!("part-{number}"), "v2"));
    [map("settings", "v2"), map("only-v2", "v2")].into_iter().chain(parts).collect()
}

/// An object by its kind and name, and the version in it.
fn named(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]));
    (name, text(&object["data"]["version"]))
}

impl<'a> Stage<'a> {
    fn start(fleet: &'a Fleet) -> anyhow::Result<Stage<'a>> {
        let (ground, folder) = (fleet.ground(), &fleet.folder);
        let link = Link::start(socket(&fleet.etcd)?)?;
        let policy = folder.join("audit-policy.json");
        std::fs::write(&policy, audit::policy().to_string())?;
        let logs = ["first", "second"].map(|name| folder.join(format!("{CLUSTER}-{name}.audit")));
        let audited = |server: usize| {
            ["--audit-policy-file", &policy.to_string_lossy()]
                .into_iter()
                .chain(["--audit-log-path", &logs[server].to_string_lossy()])
                .map(str::to_owned)
                .collect::<Vec<String>>()
        };
        let first = ground.start_server(CLUSTER, CLUSTER, &audited(0))?;
        let maps = format!("/configmaps#http://{}", link.address);
        // Servers name themselves in one EndpointSlice, by one port for all: this one has a port of its own.
        let own = ["--endpoint-reconciler-type", "none", "--etcd-servers-overrides", &maps];
        let own = [audited(1), own.map(str::to_owned).to_vec()].concat();
        let second = ground.start_server(CLUSTER, &format!("{CLUSTER}-second"), &own)?;
        let addresses = vec![socket(first.address())?, socket(second.address())?];
        say(
            "two API servers of Kubernetes serve one cluster; the second one has its ConfigMaps by a link that can be held",
        );
        Ok(Stage {
            fleet,
            link,
            between: Proxy::between(addresses)?,
            to_hub: Proxy::start(socket(fleet.hub().address())?)?,
            audit: Audit { logs },
            servers: [first, second],
            first: None,
            second: None,
        })
    }

    /// Brings the first version to the cluster, whose record waits for nothing to settle from then on.
    fn deploy(&mut self) -> anyhow::Result<()> {
        let [first, second] = &self.servers;
        self.fleet.admit(CLUSTER, first, &["--updates"])?;
        let slice = first.get(&["endpointslice", "kubernetes"])?;
        let port = socket(second.address())?.port();
        let more = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "kubernetes-second", "namespace": "default",
                "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": slice["addressType"], "endpoints": slice["endpoints"],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        });
        first.apply_text("slice", &more.to_string())?;
        self.start_agents()?;
        eventually("the cluster is ready and reachable", TIMEOUT, || {
            let cluster = self.fleet.hub().get(&["workloadcluster", CLUSTER])?;
            Ok(is_true(&cluster, "Ready") && is_true(&cluster, "Reachable"))
        })?;
        let request = self.submit("v1", &first_version())?;
        let settle = ["--type", "merge", "--patch", r#"{"spec": {"settleSeconds": 0}}"#];
        eventually("the record of the cluster is written", TIMEOUT, || {
            let record = self.about("clusterrollouts")?;
            let name = record["metadata"]["name"].as_str().context("it has no name")?;
            let words = [&["patch", "clusterrollout", name], &settle[..]].concat();
            self.fleet.hub().kubectl(&words).map(|_| true)
        })?;
        self.ends(&request, "Succeeded")?;
        self.has_exactly(&first_version())
    }

    /// Starts both agents anew: the first one leads, and holds its lease for long. The second one waits for it.
    fn start_agents(&mut self) -> anyhow::Result<()> {
        (self.first, self.second) = (None, None);
        self.end_lease()?;
        let (hub, cluster) = (by(&self.to_hub), by(&self.between));
        self.first = Some(self.agent("first", [&hub, &cluster], &["--lease", "10m"])?);
        let lease = ["--namespace", SYSTEM_NAMESPACE, "lease", LEASE];
        eventually("the first agent leads", TIMEOUT, || {
            Ok(self.fleet.hub().get(&lease)?["spec"]["holderIdentity"].is_string())
        })?;
        let (hub, cluster) = (self.fleet.hub().address(), self.servers[1].address());
        self.second = Some(self.agent("second", [hub, cluster], &[])?);
        eventually("the second agent runs", TIMEOUT, || self.has_said("second", "ready"))
    }

    /// An agent that finds the hub and the cluster at these addresses.
    fn agent(
        &self,
        name: &str,
        [hub, cluster]: [&str; 2],
        options: &[&str],
    ) -> anyhow::Result<Program> {
        let at_hub = self.fleet.hub().of_account_by(LEASE, hub)?;
        let at_cluster = self.servers[0].of_account_by("interlock-syncer", cluster)?;
        let mut syncer = Command::new(&self.fleet.binary);
        syncer.args(["syncer", CLUSTER, "--updates", "--no-install"]).args(options);
        syncer.arg("--kubeconfig").arg(at_hub).arg("--cluster-kubeconfig").arg(at_cluster);
        Program::start(&mut syncer, &self.fleet.folder, &syncer_log(name))
    }

    /// Takes the lease from whoever has it: others need not wait, and the one that has it does not know.
    fn end_lease(&self) -> anyhow::Result<()> {
        let nobody = r#"{"spec": {"holderIdentity": null, "leaseDurationSeconds": 1}}"#;
        let words = ["patch", "lease", LEASE, "--type", "merge", "--patch", nobody];
        let at = ["--namespace", SYSTEM_NAMESPACE];
        self.fleet.hub().kubectl(&[&at, &words[..]].concat()).map(drop)
    }

    fn has_said(&self, agent: &str, words: &str) -> anyhow::Result<bool> {
        let log = self.fleet.folder.join(log_of(&syncer_log(agent)));
        Ok(std::fs::read_to_string(log)?.contains(words))
    }

    /// Asks for a version of the cluster; the name of the request.
    fn submit(&self, version: &str, objects: &[Value]) -> anyhow::Result<String> {
        let folder = self.fleet.folder.join(format!("{CLUSTER}-{version}"));
        std::fs::create_dir_all(&folder)?;
        for (number, object) in objects.iter().enumerate() {
            std::fs::write(folder.join(format!("{number}.json")), object.to_string())?;
        }
        let folder = folder.to_string_lossy();
        let words = ["rollout", "submit", CLUSTER, "--directory", &folder];
        let how = ["--soak", "0s", "--output", "json"];
        let said = self.fleet.interlock(&[&words[..], &how].concat())?;
        let said: Value = serde_json::from_str(&said).context("submit printed no JSON")?;
        Ok(said["name"].as_str().context("the request has no name")?.to_owned())
    }

    /// Ends a request: what it brought is rolled back.
    fn cancel(&self, request: &str) -> anyhow::Result<()> {
        self.fleet.interlock(&["rollout", "cancel", request]).map(drop)
    }

    /// Waits until a request has ended like this.
    fn ends(&self, request: &str, phase: &str) -> anyhow::Result<()> {
        eventually(&format!("{request} is {phase}"), TIMEOUT, || {
            let status = self.fleet.hub().get(&["clusterupdate", request])?["status"].take();
            if status["phase"] != phase {
                bail!("{request} is not {phase}: {status:#}");
            }
            Ok(true)
        })
    }

    /// What the hub has of this kind about the cluster.
    fn about(&self, kind: &str) -> anyhow::Result<Value> {
        let list = self.fleet.hub().get(&[kind])?;
        let mut all = list["items"].as_array().into_iter().flatten();
        let found = all.find(|it| it["spec"]["cluster"]["name"] == CLUSTER).cloned();
        found.with_context(|| format!("the hub has no {kind} of {CLUSTER}"))
    }

    /// The token of the target.
    fn token(&self) -> anyhow::Result<i64> {
        let record = self.about("clusterrollouts")?;
        record["status"]["target"]["token"].as_i64().context("the record has no target")
    }

    /// What is on the cluster of all that rollouts made, with the version in it.
    fn has(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let kinds = ["configmaps,deployments", "--selector", LABEL_ROLLOUT];
        let list = self.servers[0].get(&kinds)?;
        Ok(list["items"].as_array().into_iter().flatten().map(named).collect())
    }

    fn has_exactly(&self, wanted: &[Value]) -> anyhow::Result<()> {
        let (there, wanted) = (self.has()?, wanted.iter().map(named).collect::<BTreeMap<_, _>>());
        if there != wanted {
            bail!("{CLUSTER} is to have {wanted:?}, and has {there:?}");
        }
        Ok(())
    }

    fn end(self) -> anyhow::Result<()> {
        let hub = self.fleet.hub();
        hub.kubectl(&["delete", "workloadcluster", CLUSTER, "--timeout", "120s"])?;
        for log in [&syncer_log("first"), &syncer_log("second"), "controllers"] {
            self.fleet.nothing_was_forbidden(log)?;
        }
        say("nobody asked for what it may not do");
        Ok(())
    }
}

fn syncer_log(agent: &str) -> String {
    format!("syncer-{CLUSTER}-{agent}")
}
