//! The `interlock up` that is measured: what is asked of it, and what it counts.

use super::counted::{Log, Requests};
use crate::bench::process::{Directory, Running, ended_processor_seconds, free_port};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const OWN: &str = "apis/interlock.dev/v1alpha1";
/// What `up` writes: a context for the hub and one for each cluster.
const KUBECONFIG: &str = "up/kubeconfig";
/// The logical cluster that is the hub, and its context.
pub(super) const HUB: &str = "root";
/// How many objects are listed at a time.
const PAGE: usize = 500;
/// How often it is asked whether something is so: often enough, and not so often that this is what is measured.
const POLL: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(3_600);

pub(super) struct Up {
    running: Running,
    /// What is asked here goes through it: it has the certificates.
    proxy: KubectlProxy,
    directory: Directory,
    binary: PathBuf,
    /// From its start until it said that it is ready.
    pub(super) started: Duration,
    /// From its start until all clusters were ready.
    pub(super) ready: Duration,
}

impl Up {
    /// Starts it with these clusters, and waits until all of them are ready.
    pub(super) fn start(binary: &Path, clusters: &[String]) -> anyhow::Result<Up> {
        let directory = Directory::new("rollouts")?;
        let (path, port) = (directory.path(), free_port()?);
        let began = Instant::now();
        let running = Running::start(
            Command::new(binary)
                .args(["up", "--no-machines", "--listen", &format!("127.0.0.1:{port}")])
                .args(["--allow-root-processes", "--clusters", &clusters.join(",")])
                .arg("--data-dir")
                .arg(path.join("up")),
        )?;
        let (started, _) = running.says(" ready ")?;
        let proxy = KubectlProxy::start(&path.join(KUBECONFIG))?;
        let binary = binary.to_owned();
        let mut up = Up { running, proxy, directory, binary, started, ready: started };
        while !up.are_ready(clusters.len())? {
            if began.elapsed() > TIMEOUT {
                bail!("not all of {} clusters are ready", clusters.len());
            }
            std::thread::sleep(POLL);
        }
        up.ready = began.elapsed();
        Ok(up)
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.running.stop()
    }

    /// A place for files.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Has a context for the hub and one for each cluster.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.path(KUBECONFIG)
    }

    pub(super) fn resident_bytes(&self) -> f64 {
        self.running.resident_bytes()
    }

    /// The time of the processor that it has used itself.
    pub(super) fn own_processor_seconds(&self) -> anyhow::Result<f64> {
        self.running.processor_seconds()
    }

    /// The time of the processor that it has used, and that programs have used which were run beside it.
    pub(super) fn processor_seconds(&self) -> anyhow::Result<f64> {
        Ok(self.own_processor_seconds()? + ended_processor_seconds()?)
    }

    /// What it has counted.
    pub(super) fn requests(&self) -> anyhow::Result<Requests> {
        let (status, page) = self.text("GET", "/metrics", None)?;
        if status != 200 {
            bail!("/metrics: {status}");
        }
        Ok(Requests::of(&page))
    }

    /// The end of its audit log.
    pub(super) fn log(&self) -> anyhow::Result<Log> {
        Log::at_its_end(self.path("up").join("audit.log"))
    }

    /// Asks for a bundle as a person does, by the program; the name of the request.
    pub(super) fn submit(&self, words: &[&str], bundle: &Path) -> anyhow::Result<String> {
        let output = Command::new(&self.binary)
            .args(["rollout", "submit", "--soak", "0s", "--deadline", "1h", "--output", "json"])
            .args(words)
            .arg("--directory")
            .arg(bundle)
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .env("HOME", self.directory.path())
            .output()
            .context("cannot start interlock")?;
        if !output.status.success() {
            bail!("rollout submit: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let answer: Value = serde_json::from_slice(&output.stdout)
            .context("`interlock rollout submit` printed no JSON")?;
        let name = answer["name"].as_str().context("the answer names no request")?;
        Ok(name.to_owned())
    }

    /// Waits until a request has succeeded; how often it was read until then.
    pub(super) fn until_succeeded(&self, plural: &str, name: &str) -> anyhow::Result<u64> {
        let path = format!("/{OWN}/namespaces/default/{plural}/{name}");
        let (began, mut reads) = (Instant::now(), 0);
        loop {
            let found = self.must("GET", &path, None)?;
            reads += 1;
            match found["status"]["phase"].as_str().unwrap_or_default() {
                "Succeeded" => return Ok(reads),
                "" | "Pending" | "Queued" | "Applying" | "Verifying" | "Progressing" => {}
                phase => bail!("{plural} {name} is {phase}: {}", found["status"]),
            }
            if began.elapsed() > TIMEOUT {
                bail!("{plural} {name} has not ended: {}", found["status"]);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Gives a WorkloadCluster a label.
    pub(super) fn label(&self, cluster: &str, key: &str, value: &str) -> anyhow::Result<()> {
        let path = format!("/{OWN}/workloadclusters/{cluster}");
        let labels = json!({"metadata": {"labels": {key: value}}});
        self.must("PATCH", &path, Some(&labels)).map(drop)
    }

    fn are_ready(&self, clusters: usize) -> anyhow::Result<bool> {
        let found = self.list(&format!("/{OWN}/workloadclusters"))?;
        Ok(found.len() >= clusters && found.iter().all(is_ready))
    }

    pub(super) fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let page = self.must("GET", &format!("{path}?limit={PAGE}&continue={token}"), None)?;
            all.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) {
                Some(next) => next.clone_into(&mut token),
                None => return Ok(all),
            }
        }
    }

    fn must(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let (status, text) = self.text(method, path, body)?;
        if !(200..300).contains(&status) {
            bail!("{method} {path}: {status} {text}");
        }
        serde_json::from_str(&text).with_context(|| format!("{method} {path}: no JSON"))
    }

    fn text(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(u16, String)> {
        let kind =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: {}\r\ncontent-type: {kind}\r\n\
             content-length: {}\r\n\r\n{body}",
            self.proxy.address,
            body.len(),
        );
        let mut stream = TcpStream::connect(self.proxy.address).context("cannot reach the hub")?;
        stream.write_all(request.as_bytes())?;
        // A server of HTTP 1.0 sends no chunks: the answer ends with the connection.
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).context("the hub does not answer")?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP")?;
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).context("no status")?;
        Ok((status, body.to_owned()))
    }
}

fn is_ready(cluster: &Value) -> bool {
    let mut conditions = cluster["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

/// `kubectl proxy` to the hub. Ends with us.
struct KubectlProxy {
    child: Child,
    address: SocketAddr,
}

impl KubectlProxy {
    fn start(kubeconfig: &Path) -> anyhow::Result<KubectlProxy> {
        let address: SocketAddr = ([127, 0, 0, 1], free_port()?).into();
        let child = Command::new("kubectl")
            .args(["proxy", "--context", HUB, "--port", &address.port().to_string()])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start kubectl: install it with apt-get install kubernetes-client")?;
        let proxy = KubectlProxy { child, address };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if began.elapsed() > Duration::from_secs(30) {
                bail!("kubectl proxy does not answer");
            }
            std::thread::sleep(POLL);
        }
        Ok(proxy)
    }
}

impl Drop for KubectlProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
