//! Placement and updates on API servers of Kubernetes itself: a hub and two workload clusters, with the accounts
//! and the rights that `interlock manifests` gives, and nothing more.

mod audit;
mod fence;
mod link;
pub(crate) mod servers;
mod updates;

use crate::program::{Program, eventually, log_of, output};
use crate::{interlock, root, say, scratch, upstream};
use anyhow::bail;
use serde_json::{Value, json};
use servers::{Ground, Server};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(120);
const CLUSTERS: [&str; 2] = ["west", "east"];

/// Counts in its claim, and tells each number to a file outside once it is in the claim.
const WRITER: &str = r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  runtimeClassName: interlock-process
  terminationGracePeriodSeconds: 1
  containers:
    - name: writer
      image: none
      command:
        - sh
        - -c
        - |
          touch "$INTERLOCK_VOLUME_DATA/log"
          while :; do
            n=$(($(wc -l < "$INTERLOCK_VOLUME_DATA/log") + 1))
            echo $n >> "$INTERLOCK_VOLUME_DATA/log" && sync "$INTERLOCK_VOLUME_DATA/log" && echo $n >> ACKNOWLEDGED
            sleep 0.1
          done
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"#;

/// Options of `kubernetes`.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The binary to run, instead of a fresh release build
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Only the last steps: the fence of updates, on a cluster with two API servers
    #[arg(long)]
    fence_only: bool,
}

/// Runs it; every line is something that was seen.
pub(crate) fn run(run: Run) -> anyhow::Result<bool> {
    let upstream = upstream::servers()?;
    let binary = run.binary.map_or_else(interlock::build, Ok)?.canonicalize()?;
    let folder = scratch().join("kubernetes").join("run");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    say(&format!("logs are in {}", folder.display()));
    let (_etcd, etcd) = servers::start_etcd(&folder)?;
    let (servers, programs) = (Vec::new(), Vec::new());
    let mut fleet = Fleet { binary, upstream, folder, etcd, servers, programs };
    fleet.deploy_hub()?;
    if !run.fence_only {
        fleet.deploy()?;
        fleet.tell()?;
        fleet.end()?;
        // Of all that, only the hub is needed from here on.
        fleet.programs.clear();
        fleet.servers.truncate(1);
    }
    fence::show(&mut fleet)?;
    Ok(true)
}

struct Fleet {
    binary: PathBuf,
    upstream: PathBuf,
    folder: PathBuf,
    /// Where etcd is.
    etcd: String,
    /// The hub first.
    servers: Vec<Server>,
    programs: Vec<Program>,
}

impl Fleet {
    /// What more API servers need.
    fn ground(&self) -> Ground<'_> {
        Ground { upstream: &self.upstream, folder: &self.folder, etcd: &self.etcd }
    }

    fn hub(&self) -> &Server {
        &self.servers[0]
    }

    fn at(&self, cluster: &str) -> &Server {
        let place = CLUSTERS.iter().position(|name| *name == cluster).unwrap_or_default();
        &self.servers[place + 1]
    }

    /// What docs/deploying.md says of the hub.
    fn deploy_hub(&mut self) -> anyhow::Result<()> {
        let hub = self.ground().start("hub")?;
        self.servers.push(hub);
        let hub = self.hub();
        hub.apply(&root().join("crates/api/crds"))?;
        hub.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
        hub.apply_text("manifests", &self.interlock(&["manifests", "hub"])?)
    }

    /// What docs/deploying.md says of clusters, but that the programs are no pods.
    fn deploy(&mut self) -> anyhow::Result<()> {
        for name in CLUSTERS {
            let server = self.ground().start(name)?;
            self.servers.push(server);
        }
        say("three API servers of Kubernetes run");
        for name in CLUSTERS {
            self.admit(name, self.at(name), &["--with-runtime", "--updates"])?;
        }
        self.start()?;
        eventually("both clusters are ready and reachable", TIMEOUT, || {
            let clusters = self.hub().get(&["workloadclusters"])?;
            let clusters = clusters["items"].as_array().map_or(&[][..], Vec::as_slice);
            let is_well =
                |cluster: &Value| is_true(cluster, "Ready") && is_true(cluster, "Reachable");
            Ok(clusters.len() == CLUSTERS.len() && clusters.iter().all(is_well))
        })?;
        say("both clusters are ready and reachable");
        Ok(())
    }

    /// Applies what the hub and a cluster need of each other.
    fn admit(&self, name: &str, at: &Server, options: &[&str]) -> anyhow::Result<()> {
        let hub = self.hub();
        let cluster = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
            "metadata": {"name": name}, "spec": {"connection": {"inCluster": {}}},
        });
        hub.apply_text(&format!("cluster-{name}"), &cluster.to_string())?;
        let access = self.interlock(&["manifests", "access", name, "--updates"])?;
        hub.apply_text(&format!("access-{name}"), &access)?;
        at.bring_snapshots()?;
        let rights = self.interlock(&[&["manifests", "cluster", name], options].concat())?;
        // The definitions in it are served a moment after they were taken.
        eventually("the manifests of a cluster are taken", TIMEOUT, || {
            at.apply_text("manifests", &rights).map(|()| true)
        })
    }

    /// The controllers and the syncers, each with its own account.
    fn start(&mut self) -> anyhow::Result<()> {
        let mut programs = vec![self.start_controllers()?];
        for name in CLUSTERS {
            let mut syncer = Command::new(&self.binary);
            syncer
                .args(["syncer", name, "--updates", "--no-install", "--runtime", "process"])
                .args(["--allow-root-processes", "--state-dir", "state", "--kubeconfig"])
                .arg(self.hub().of_account(&format!("interlock-syncer-{name}"))?)
                .arg("--cluster-kubeconfig")
                .arg(self.at(name).of_account("interlock-syncer")?);
            programs.push(Program::start(&mut syncer, &self.folder, &format!("syncer-{name}"))?);
        }
        self.programs = programs;
        Ok(())
    }

    fn start_controllers(&self) -> anyhow::Result<Program> {
        let account = self.hub().of_account("interlock-controllers")?;
        let mut controllers = Command::new(&self.binary);
        controllers.args(["controllers", "--no-install", "--kubeconfig"]).arg(account);
        Program::start(&mut controllers, &self.folder, "controllers")
    }

    fn tell(&mut self) -> anyhow::Result<()> {
        let hub = self.hub();
        hub.kubectl(&["create", "namespace", "shop"])?;
        let acknowledged = self.folder.join("acknowledged");
        let writer = WRITER.replace("ACKNOWLEDGED", &acknowledged.to_string_lossy());
        eventually("the writer is taken", TIMEOUT, || {
            let file = self.folder.join("writer.yaml");
            std::fs::write(&file, &writer)?;
            let file = file.to_string_lossy();
            hub.kubectl(&["apply", "--namespace", "shop", "-f", &file]).map(|_| true)
        })?;
        hub.kubectl(&["annotate", "namespace", "shop", "interlock.dev/cluster=west"])?;
        hub.kubectl(&["label", "namespace", "shop", "interlock.dev/placed=true"])?;
        let mut seen = writes_on(&acknowledged, 0)?;
        say(&format!("the writer runs on west and has written {seen} numbers"));
        for (from, to) in [("west", "east"), ("east", "west")] {
            let started = Instant::now();
            self.interlock(&["move", "shop", "--to", to, "--wait", "--timeout", "120s"])?;
            let took = started.elapsed();
            seen = writes_on(&acknowledged, seen)?;
            let pods = self.at(from).get(&["pods", "--all-namespaces"])?;
            if !pods["items"].as_array().is_some_and(Vec::is_empty) {
                bail!("{from} still has pods after the move to {to}");
            }
            say(&format!("moved to {to} with its data in {took:.1?}; {seen} numbers, no gap"));
        }
        self.interlock(&["move", "shop", "--to", "east"])?;
        self.programs.clear();
        self.start()?;
        self.interlock(&["move", "shop", "--to", "east", "--wait", "--timeout", "120s"])?;
        seen = writes_on(&acknowledged, seen)?;
        say(&format!("moved to east though all programs were killed; {seen} numbers, no gap"));
        updates::tell(self)
    }

    /// Deletes everything, the owner first: it has to wait for what it holds.
    fn end(&self) -> anyhow::Result<()> {
        let hub = self.hub();
        hub.kubectl(&["delete", "workloadcluster", "east", "--wait=false"])?;
        eventually("the cluster says what it holds", TIMEOUT, || {
            let cluster = hub.get(&["workloadcluster", "east"])?;
            Ok(cluster["status"]["conditions"].to_string().contains("shop"))
        })?;
        say("a cluster that owns something is not deleted, and says what it holds");
        hub.kubectl(&["delete", "namespace", "shop", "--timeout", "120s"])?;
        hub.kubectl(&["wait", "--for=delete", "workloadcluster/east", "--timeout", "120s"])?;
        for cluster in CLUSTERS {
            eventually(&format!("nothing is left on {cluster}"), TIMEOUT, || {
                let at = self.at(cluster);
                let left = at.kubectl(&["get", "namespaces,pv", "--output", "name"])?;
                Ok(!left.contains("shop") && !left.contains("persistentvolume/"))
            })?;
        }
        say("the namespace is gone, with all that the clusters had of it; then the cluster, too");
        for log in CLUSTERS.map(|name| format!("syncer-{name}")).iter().map(String::as_str) {
            self.nothing_was_forbidden(log)?;
        }
        self.nothing_was_forbidden("controllers")?;
        say("nobody asked for what it may not do");
        Ok(())
    }

    fn nothing_was_forbidden(&self, program: &str) -> anyhow::Result<()> {
        let path = self.folder.join(log_of(program));
        let log = std::fs::read_to_string(&path)?;
        // What an admission policy denies, API servers call forbidden, too.
        let is_it = |line: &&str| line.contains("forbidden") && !line.contains("denied request");
        if let Some(line) = log.lines().find(is_it) {
            bail!("{program} asked for what it may not do: {line}");
        }
        Ok(())
    }

    fn interlock(&self, words: &[&str]) -> anyhow::Result<String> {
        let mut interlock = Command::new(&self.binary);
        output(interlock.args(words).env("KUBECONFIG", self.hub().admin()), &self.folder)
    }
}

/// Whether an object has a condition that is true.
fn is_true(object: &Value, condition: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == condition && it["status"] == "True")
}

/// Waits until more has been acknowledged than was seen, and returns how much, without a gap.
fn writes_on(acknowledged: &Path, seen: usize) -> anyhow::Result<usize> {
    eventually("the writer goes on", TIMEOUT, || {
        Ok(std::fs::read_to_string(acknowledged)?.lines().count() > seen + 5)
    })?;
    let text = std::fs::read_to_string(acknowledged)?;
    let numbers: Vec<&str> = text.split_terminator('\n').collect();
    for (place, number) in numbers.iter().enumerate() {
        if number.parse() != Ok(place + 1) {
            bail!("acknowledged number {} is {number}: something was lost", place + 1);
        }
    }
    Ok(numbers.len())
}
