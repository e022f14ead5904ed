//! The hub of the benchmark, over plain HTTP: what a person does to identities, all at once.

use crate::bench::plain::Plain;
use anyhow::bail;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const NAMESPACE: &str = "bench";
const KINDS: &str = "/apis/irsa.voodoo.io/v1alpha1";

pub(super) struct Hub(Plain);

impl Hub {
    pub(super) fn new(address: SocketAddr, token: &str) -> Hub {
        Hub(Plain::new(address, token))
    }

    pub(super) fn kubeconfig(&self) -> String {
        self.0.kubeconfig()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.0.call("GET", "/readyz", None).is_ok_and(|(status, _)| status == 200)
    }

    /// Waits until the controllers have installed the kinds.
    pub(super) fn wait_for_kinds(&self, at_most: Duration) -> anyhow::Result<()> {
        let began = Instant::now();
        while self.0.call("GET", &all("iamroleserviceaccounts"), None)?.0 != 200 {
            if began.elapsed() > at_most {
                bail!("the kinds of irsa.voodoo.io are not installed");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    pub(super) fn create(&self, identities: usize) -> anyhow::Result<()> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.0.call("POST", "/api/v1/namespaces", Some(&namespace))?;
        for number in 0..identities {
            let body = json!({
                "apiVersion": "irsa.voodoo.io/v1alpha1", "kind": "IamRoleServiceAccount",
                "metadata": {"name": name(number), "namespace": NAMESPACE},
                "spec": {"policy": {"statement": statement(1)}},
            });
            self.0.must("POST", &all("iamroleserviceaccounts"), Some(&body))?;
        }
        Ok(())
    }

    pub(super) fn update(&self, identities: usize, version: usize) -> anyhow::Result<()> {
        let patch = json!({"spec": {"policy": {"statement": statement(version)}}});
        for number in 0..identities {
            let path = format!("{}/{}", all("iamroleserviceaccounts"), name(number));
            self.0.must("PATCH", &path, Some(&patch))?;
        }
        Ok(())
    }

    pub(super) fn delete(&self, identities: usize) -> anyhow::Result<()> {
        for number in 0..identities {
            let path = format!("{}/{}", all("iamroleserviceaccounts"), name(number));
            self.0.must("DELETE", &path, None)?;
        }
        Ok(())
    }

    /// Whether all are there and ready for what is declared, in that version, and no mark is left.
    pub(super) fn all_are_at(&self, identities: usize, version: usize) -> anyhow::Result<bool> {
        let wanted = statement(version);
        for plural in ["iamroleserviceaccounts", "policies", "roles"] {
            let items = self.0.list(&all(plural))?;
            let is_done = |item: &Value| {
                let status = &item["status"];
                let conditions = status["conditions"].as_array();
                let is_ready = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
                let is_current = status["observedGeneration"] == item["metadata"]["generation"];
                let is_wanted = plural != "policies" || item["spec"]["statement"] == wanted;
                conditions.is_some_and(|all| all.iter().any(is_ready))
                    && is_current
                    && is_wanted
                    && status.get("mark").is_none_or(Value::is_null)
            };
            if items.len() != identities || !items.iter().all(is_done) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn all_are_gone(&self) -> anyhow::Result<bool> {
        for plural in ["iamroleserviceaccounts", "policies", "roles"] {
            if !self.0.list(&all(plural))?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The version of each object of an identity: another one says that it was written.
    pub(super) fn versions(&self) -> anyhow::Result<BTreeMap<String, Value>> {
        let mut versions = BTreeMap::new();
        let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
        let own = ["iamroleserviceaccounts", "policies", "roles"].map(all);
        for path in own.into_iter().chain([accounts]) {
            for item in self.0.list(&path)? {
                let name = format!("{path}/{}", item["metadata"]["name"]);
                versions.insert(name, item["metadata"]["resourceVersion"].clone());
            }
        }
        Ok(versions)
    }
}

fn all(plural: &str) -> String {
    format!("{KINDS}/namespaces/{NAMESPACE}/{plural}")
}

fn name(number: usize) -> String {
    format!("identity-{number:05}")
}

fn statement(version: usize) -> Value {
    json!([{"resource": format!("arn:aws:s3:::bucket-{version}"), "action": ["s3:Get*"]}])
}
