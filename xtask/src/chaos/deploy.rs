//! How a fleet is set up: what docs/deploying.md says, but that the programs are no pods.

use super::fleet::{CLUSTERS, CONTROLLERS, DPUS, Fleet, GROUP, HUB, REPLICAS, TIMEOUT, TOKEN};
use super::machines;
use crate::program::{eventually, output};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::path::Path;

/// Sets up a fleet, of which the hub runs: its clusters are ready in the end.
pub(crate) fn deploy(fleet: &mut Fleet) -> anyhow::Result<()> {
    eventually("the hub is ready", TIMEOUT, || {
        Ok(fleet.client.call("GET", "/readyz", None)?.status == 200)
    })?;
    fleet.apply("", &["hub"])?;
    machines::create(&fleet.client)?;
    // No manifest has the rights about machines, and those of a tenant's control plane: these are an administrator.
    for part in [CONTROLLERS].into_iter().chain(DPUS) {
        for replica in REPLICAS {
            let name = format!("{part}-{replica}");
            fleet.admit(&name, HUB, TOKEN)?;
            fleet.run(&name)?;
        }
    }
    for cluster in CLUSTERS {
        fleet.register(cluster)?;
        fleet.apply("", &["access", cluster, "--updates"])?;
        let at_hub = fleet.token("", &format!("interlock-syncer-{cluster}"))?;
        let there = format!("/clusters/{cluster}");
        fleet.apply(&there, &["cluster", cluster, "--with-runtime", "--updates"])?;
        let at_cluster = fleet.token(&there, "interlock-syncer")?;
        for replica in REPLICAS {
            let name = format!("{cluster}-{replica}");
            fleet.admit(&name, HUB, &at_hub)?;
            fleet.admit(&name, cluster, &at_cluster)?;
            fleet.run(&name)?;
        }
    }
    eventually("all clusters are ready", TIMEOUT, || {
        let all = fleet.client.get(&format!("{GROUP}/workloadclusters"))?;
        let ready = all["items"].as_array().into_iter().flatten().filter(|it| is_ready(it));
        Ok(ready.count() == CLUSTERS.len())
    })
}

impl Fleet {
    /// Applies manifests as the administrator of a cluster would.
    fn apply(&self, cluster: &str, words: &[&str]) -> anyhow::Result<()> {
        let mut interlock = self.interlock();
        let text = output(interlock.arg("manifests").args(words).arg("--json"), &self.folder)?;
        let list: Value = serde_json::from_str(&text).context("the manifests are no JSON")?;
        for object in list["items"].as_array().context("the manifests are no list")? {
            let path = format!("{cluster}{}", path_of(object)?);
            // A kind that was just defined is served a moment later.
            eventually(&format!("{path} can be made"), TIMEOUT, || {
                let made = self.client.call("POST", &path, Some(object))?;
                if ![201, 409].contains(&made.status) {
                    bail!("{} {}", made.status, made.body);
                }
                Ok(true)
            })?;
        }
        Ok(())
    }

    fn register(&self, name: &str) -> anyhow::Result<()> {
        let specs = [
            ("LogicalCluster", json!({})),
            ("WorkloadCluster", json!({"connection": {"logicalCluster": name}})),
        ];
        for (kind, spec) in specs {
            let object = json!({
                "apiVersion": "interlock.dev/v1alpha1", "kind": kind,
                "metadata": {"name": name}, "spec": spec,
            });
            let path = path_of(&object)?;
            eventually(&format!("{kind} {name} can be made"), TIMEOUT, || {
                self.client.must("POST", &path, Some(&object)).map(|_| true)
            })?;
        }
        Ok(())
    }

    /// A token of an account at the hub (``) or on a cluster (`/clusters/west`).
    fn token(&self, cluster: &str, account: &str) -> anyhow::Result<String> {
        let accounts = format!("{cluster}/api/v1/namespaces/interlock-system/serviceaccounts");
        let body = json!({"spec": {"expirationSeconds": 7 * 24 * 3600}});
        let made = self.client.must("POST", &format!("{accounts}/{account}/token"), Some(&body))?;
        Ok(made["status"]["token"].as_str().context("no token")?.to_owned())
    }

    /// Writes down how a program reaches the hub or a cluster, and as whom.
    fn admit(&self, program: &str, at: &str, token: &str) -> anyhow::Result<()> {
        let path = if at == HUB { String::new() } else { format!("/clusters/{at}") };
        let proxy = self.proxies.get(program).context("a program has no network")?;
        let server = format!("http://{}{path}", proxy.address);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "users": [{"name": "it", "user": {"token": token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        Ok(std::fs::write(self.config(program, at), config.to_string())?)
    }

    /// A placed namespace with a claim, and a writer that writes into it and acknowledges into a folder outside; its uid.
    pub(crate) fn place(&self, name: &str, records: &Path) -> anyhow::Result<String> {
        let body = json!({"metadata": {
            "name": name,
            "labels": {"interlock.dev/placed": "true"},
            "annotations": {"interlock.dev/cluster": CLUSTERS[0]},
        }});
        let made = self.client.must("POST", "/api/v1/namespaces", Some(&body))?;
        let within = format!("/api/v1/namespaces/{name}");
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}},
        });
        self.client.must("POST", &format!("{within}/persistentvolumeclaims"), Some(&claim))?;
        let command = json!([self.binary, "write-numbers", records, "--into", "data"]);
        let pod = json!({
            "metadata": {"name": "writer"},
            "spec": {
                "runtimeClassName": "interlock-process",
                "terminationGracePeriodSeconds": 5,
                "containers": [{
                    "name": "writer", "image": "none", "command": command,
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            },
        });
        self.client.must("POST", &format!("{within}/pods"), Some(&pod))?;
        Ok(made["metadata"]["uid"].as_str().context("the namespace has no uid")?.to_owned())
    }
}

fn is_ready(cluster: &Value) -> bool {
    let mut conditions = cluster["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

/// Where objects of its kind are made.
fn path_of(object: &Value) -> anyhow::Result<String> {
    let version = object["apiVersion"].as_str().context("an object has no apiVersion")?;
    let root = if version == "v1" { "/api/v1".into() } else { format!("/apis/{version}") };
    let within = object["metadata"]["namespace"].as_str();
    let within = within.map_or(String::new(), |name| format!("/namespaces/{name}"));
    let kind = object["kind"].as_str().context("an object has no kind")?.to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => kind.clone() + if kind.ends_with('s') { "es" } else { "s" },
    };
    Ok(format!("{root}{within}/{plural}"))
}
