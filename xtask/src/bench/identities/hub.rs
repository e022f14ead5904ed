//! The hub of the benchmark, over plain HTTP: what a person does to identities, all at once.

use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "bench";
const KINDS: &str = "/apis/irsa.voodoo.io/v1alpha1";

pub(super) struct Hub {
    address: SocketAddr,
    token: String,
}

impl Hub {
    pub(super) fn new(address: SocketAddr, token: &str) -> Hub {
        Hub { address, token: token.to_owned() }
    }

    pub(super) fn kubeconfig(&self) -> String {
        let Hub { address, token } = self;
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: hub\n\
             clusters:\n- name: hub\n  cluster: {{server: \"http://{address}\"}}\n\
             contexts:\n- name: hub\n  context: {{cluster: hub, user: operator}}\n\
             users:\n- name: operator\n  user: {{token: {token}}}\n"
        )
    }

    pub(super) fn is_ready(&self) -> bool {
        self.call("GET", "/readyz", None).is_ok_and(|(status, _)| status == 200)
    }

    /// Waits until the controllers have installed the kinds.
    pub(super) fn wait_for_kinds(&self, at_most: Duration) -> anyhow::Result<()> {
        let began = Instant::now();
        while self.call("GET", &all("iamroleserviceaccounts"), None)?.0 != 200 {
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
        self.call("POST", "/api/v1/namespaces", Some(&namespace))?;
        for number in 0..identities {
            let body = json!({
                "apiVersion": "irsa.voodoo.io/v1alpha1", "kind": "IamRoleServiceAccount",
                "metadata": {"name": name(number), "namespace": NAMESPACE},
                "spec": {"policy": {"statement": statement(1)}},
            });
            self.must("POST", &all("iamroleserviceaccounts"), Some(&body))?;
        }
        Ok(())
    }

    pub(super) fn update(&self, identities: usize, version: usize) -> anyhow::Result<()> {
        let patch = json!({"spec": {"policy": {"statement": statement(version)}}});
        for number in 0..identities {
            let path = format!("{}/{}", all("iamroleserviceaccounts"), name(number));
            self.must("PATCH", &path, Some(&patch))?;
        }
        Ok(())
    }

    pub(super) fn delete(&self, identities: usize) -> anyhow::Result<()> {
        for number in 0..identities {
            let path = format!("{}/{}", all("iamroleserviceaccounts"), name(number));
            self.must("DELETE", &path, None)?;
        }
        Ok(())
    }

    /// Whether all are there and ready for what is declared, in that version, and no mark is left.
    pub(super) fn all_are_at(&self, identities: usize, version: usize) -> anyhow::Result<bool> {
        let wanted = statement(version);
        for plural in ["iamroleserviceaccounts", "policies", "roles"] {
            let items = self.list(&all(plural))?;
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
            if !self.list(&all(plural))?.is_empty() {
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
            for item in self.list(&path)? {
                let name = format!("{path}/{}", item["metadata"]["name"]);
                versions.insert(name, item["metadata"]["resourceVersion"].clone());
            }
        }
        Ok(versions)
    }

    fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let list = self.must("GET", path, None)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    fn must(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let (status, answer) = self.call(method, path, body)?;
        if !(200..300).contains(&status) {
            bail!("{method} {path}: {status} {answer}");
        }
        Ok(answer)
    }

    fn call(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<(u16, Value)> {
        let kind =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len(),
        );
        let mut stream = TcpStream::connect(self.address).context("cannot reach the hub")?;
        stream.write_all(request.as_bytes())?;
        // A server of HTTP 1.0 sends no chunks: the answer ends with the connection.
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).context("the hub does not answer")?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP")?;
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).context("no status")?;
        Ok((status, serde_json::from_str(body).unwrap_or(Value::Null)))
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
