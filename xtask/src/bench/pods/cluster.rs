//! The cluster of the benchmark: what a person does to Deployments, and how far they are.

use crate::bench::plain::Plain;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// The logical cluster whose pods are processes of this machine.
pub(super) const CLUSTER: &str = "west";
/// How many pods a Deployment has.
pub(super) const IN_EACH: usize = 10;

pub(super) struct Cluster(Plain);

impl Cluster {
    pub(super) fn new(address: SocketAddr, token: &str) -> Cluster {
        Cluster(Plain::new(address, token))
    }

    /// Whether it has its Node: then its agent runs.
    pub(super) fn is_ready(&self) -> anyhow::Result<bool> {
        let path = format!("/clusters/{CLUSTER}/api/v1/nodes");
        let (status, found) = self.0.call("GET", &path, None)?;
        Ok(status == 200 && found["items"].as_array().is_some_and(|all| !all.is_empty()))
    }

    pub(super) fn metrics(&self) -> anyhow::Result<String> {
        self.0.metrics()
    }

    pub(super) fn make(&self, pods: usize) -> anyhow::Result<()> {
        for name in names(pods) {
            self.0.must("POST", &deployments(), Some(&deployment(&name, "1")))?;
        }
        Ok(())
    }

    /// Gives all pods another version.
    pub(super) fn roll(&self, pods: usize) -> anyhow::Result<()> {
        for name in names(pods) {
            let template = deployment(&name, "2")["spec"]["template"].take();
            let change = json!({"spec": {"template": template}});
            self.0.must("PATCH", &format!("{}/{name}", deployments()), Some(&change))?;
        }
        Ok(())
    }

    pub(super) fn delete(&self, pods: usize) -> anyhow::Result<()> {
        for name in names(pods) {
            self.0.must("DELETE", &format!("{}/{name}", deployments()), None)?;
        }
        Ok(())
    }

    /// Whether the processes of so many pods run.
    pub(super) fn runs(&self, pods: usize) -> anyhow::Result<bool> {
        let all = self.0.list(&all_pods())?;
        Ok(all.iter().filter(|pod| pod["status"]["phase"] == "Running").count() == pods)
    }

    /// Whether all pods of each Deployment are there in its version, available, and no others.
    pub(super) fn is_as_declared(&self) -> anyhow::Result<bool> {
        Ok(self.0.list(&deployments())?.iter().all(is_available))
    }

    pub(super) fn is_empty(&self) -> anyhow::Result<bool> {
        Ok(self.0.list(&all_pods())?.is_empty())
    }
}

fn is_available(deployment: &Value) -> bool {
    let (status, generation) = (&deployment["status"], &deployment["metadata"]["generation"]);
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    status["observedGeneration"] == *generation
        && counts.iter().all(|count| status[*count] == IN_EACH)
}

fn names(pods: usize) -> impl Iterator<Item = String> {
    (0..pods / IN_EACH).map(|number| format!("d{number:04}"))
}

fn deployments() -> String {
    format!("/clusters/{CLUSTER}/apis/apps/v1/namespaces/default/deployments")
}

fn all_pods() -> String {
    format!("/clusters/{CLUSTER}/api/v1/namespaces/default/pods")
}

fn deployment(name: &str, version: &str) -> Value {
    let container = json!({
        "name": "sleep", "image": "none", "command": ["sleep", "1000000"],
        "env": [{"name": "VERSION", "value": version}],
    });
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": IN_EACH,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 5, "containers": [container]},
        },
    }})
}
