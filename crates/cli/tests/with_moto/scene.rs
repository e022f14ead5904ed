//! The hub, its controllers twice, two clusters with their syncers, and the cloud.

use super::faults::Faults;
use super::harness::{
    Client, DataDirectory, Process, TIMEOUT, TOKEN, interlock, until, write_kubeconfig,
};
use super::moto::Moto;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const FLEET: &str = "moto";
pub(crate) const CLUSTERS: [&str; 2] = ["west", "east"];
/// The identities, of all namespaces and of one.
pub(crate) const IDENTITIES: &str = "/apis/irsa.voodoo.io/v1alpha1/iamroleserviceaccounts";
const PLACEMENT: &str = "/apis/interlock.dev/v1alpha1";
/// The provider that roles of namespaces trust that are not placed.
pub(crate) const PROVIDER: &str = "arn:aws:iam::123456789012:oidc-provider/issuer.example";

pub(crate) struct Scene {
    pub(crate) moto: Moto,
    pub(crate) proxy: Faults,
    hub: Process,
    controllers: Vec<Child>,
    syncers: BTreeMap<&'static str, Child>,
    started: usize,
    place: DataDirectory,
    times: Times,
    seed: u64,
}

/// How long things take with as many identities.
struct Times {
    /// How long calls fail while something is waited for.
    storm: Duration,
    /// How long something is waited for.
    timeout: Duration,
    /// How often everything is compared: what that takes must leave calls for the rest.
    resync: Duration,
}

impl Times {
    fn of(many: usize) -> Times {
        let each = |millis: u64| Duration::from_millis(millis * many as u64);
        Times {
            storm: Duration::from_secs(8) + each(300),
            timeout: TIMEOUT + each(3_000),
            resync: Duration::from_secs(10) + each(200),
        }
    }
}

impl Scene {
    /// One for as many identities.
    pub(crate) fn start(many: usize, seed: u64) -> Scene {
        let moto = Moto::start();
        let proxy = Faults::start(moto.address, seed);
        let place = DataDirectory::new();
        let mut hub = place.command();
        hub.args(["--external-url", "https://hub.example.com"]);
        let hub = Process::spawn(hub).ready();
        write_kubeconfig(&place.path("config"), &hub.address().to_string(), TOKEN);
        let (controllers, syncers, times) = (Vec::new(), BTreeMap::new(), Times::of(many));
        let started = 0;
        let mut scene =
            Scene { moto, proxy, hub, controllers, syncers, started, place, times, seed };
        scene.start_controllers();
        scene.start_controllers();
        for name in CLUSTERS {
            let kind = |kind: &str, spec: Value| json!({"apiVersion": "interlock.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
            let logical = kind("LogicalCluster", json!({}));
            scene.make(&format!("{PLACEMENT}/logicalclusters"), &logical);
            let cluster = json!({"connection": {"logicalCluster": name}});
            scene.make(&format!("{PLACEMENT}/workloadclusters"), &kind("WorkloadCluster", cluster));
            scene.start_syncer(name);
        }
        scene
    }

    /// Starts a program of ours; what it says goes to a file.
    fn spawn(&mut self, mut command: Command) -> Child {
        self.started += 1;
        let log = File::create(self.place.path(&format!("process-{}.log", self.started)));
        command.arg("--kubeconfig").arg(self.place.path("config"));
        command.args(["--lease", "1s", "--metrics-listen", "127.0.0.1:0"]);
        command.env_remove("KUBECONFIG").env_remove("RUST_LOG").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.unwrap());
        command.spawn().unwrap()
    }

    fn start_controllers(&mut self) {
        let mut command = interlock();
        command.args(["controllers", "--fleet", FLEET]);
        command.args(["--iam-endpoint", &format!("http://{}", self.proxy.address())]);
        command.args(["--oidc-provider-arn", PROVIDER, "--oidc-providers", "manage"]);
        command.args(["--resync", &format!("{}s", self.times.resync.as_secs())]);
        command.args(["--late-call-window", "8s", "--iam-calls-per-second", "200"]);
        command.env("AWS_ACCESS_KEY_ID", "AKIAROOT").env("AWS_SECRET_ACCESS_KEY", "root's secret");
        let child = self.spawn(command);
        self.controllers.push(child);
    }

    fn start_syncer(&mut self, cluster: &'static str) {
        let config = self.place.path(&format!("{cluster}.config"));
        let server = format!("{}/clusters/{cluster}", self.hub.address());
        write_kubeconfig(&config, &server, TOKEN);
        let mut command = interlock();
        command.args(["syncer", cluster, "--runtime", "process", "--allow-root-processes"]);
        command.args(["--heartbeat-every", "1s", "--state-dir"]).arg(self.place.path("state"));
        command.arg("--cluster-kubeconfig").arg(config);
        let child = self.spawn(command);
        self.syncers.insert(cluster, child);
    }

    /// Takes the life of one of the two processes with the controllers, and starts another.
    pub(crate) fn kill_controllers(&mut self) {
        let mut one = self.controllers.remove(0);
        one.kill().unwrap();
        one.wait().unwrap();
        self.start_controllers();
    }

    /// Takes the life of a syncer, and starts another.
    pub(crate) fn kill_syncer(&mut self, cluster: &'static str) {
        let mut one = self.syncers.remove(cluster).unwrap();
        one.kill().unwrap();
        one.wait().unwrap();
        self.start_syncer(cluster);
    }

    /// Somebody changes each role and each policy of the fleet in the cloud, in another way each time.
    pub(crate) fn drift(&self, number: u64) {
        self.moto.run(&["drift"], &[("SEED", (self.seed + number).to_string())]);
    }

    pub(crate) fn client(&self) -> Client {
        self.hub.client()
    }

    pub(crate) fn make(&self, path: &str, object: &Value) {
        until(&format!("{path} can be made"), || {
            let made =
                self.client().call("POST", path, Some(object)).map_err(|why| why.to_string())?;
            if made.status == 201 || made.status == 409 { Ok(()) } else { Err(made.text) }
        });
    }

    pub(crate) fn change(&self, path: &str, patch: &Value) {
        let changed = self.client().call("PATCH", path, Some(patch)).unwrap();
        assert_eq!(changed.status, 200, "{}", changed.text);
    }

    pub(crate) fn delete(&self, path: &str) {
        let deleted = self.client().call("DELETE", path, None).unwrap();
        assert_eq!(deleted.status, 200, "{}", deleted.text);
    }

    /// Deletes namespaces and the clusters, and waits until they are gone.
    pub(crate) fn delete_fleet(&self, namespaces: &[String]) {
        let namespaces: Vec<String> =
            namespaces.iter().map(|name| format!("/api/v1/namespaces/{name}")).collect();
        let clusters = CLUSTERS.map(|name| format!("{PLACEMENT}/workloadclusters/{name}"));
        for paths in [&namespaces[..], &clusters] {
            paths.iter().for_each(|path| self.delete(path));
            for path in paths {
                self.until(&format!("{path} is gone"), || {
                    let found = self.client().call("GET", path, None).unwrap();
                    if found.status == 404 { Ok(()) } else { Err(found.text) }
                });
            }
        }
    }

    /// All objects of a kind, by namespace and name.
    pub(crate) fn all(&self, path: &str) -> BTreeMap<String, Value> {
        let list = self.client().call("GET", path, None).unwrap().json();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let key = |item: &Value| {
            let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default();
            format!("{}/{}", text("namespace"), text("name"))
        };
        items.into_iter().map(|item| (key(&item), item)).collect()
    }

    /// What there is of an identity at the hub.
    pub(crate) fn parts(&self, name: &str) -> Value {
        let kinds = ["iamroleserviceaccounts", "roles", "policies"];
        let part = |kind: &str| {
            let path = IDENTITIES.replace("iamroleserviceaccounts", kind);
            let mut part = self.all(&path).remove(name).unwrap_or_default();
            part["metadata"]["managedFields"].take();
            (kind.to_owned(), part)
        };
        kinds.into_iter().map(part).collect::<serde_json::Map<_, _>>().into()
    }

    /// The grants, and the issuer that a cluster has published.
    pub(crate) fn grants(&self) -> Vec<Value> {
        self.all(&format!("{PLACEMENT}/grants")).into_values().collect()
    }

    pub(crate) fn issuer(&self, cluster: &str) -> Result<String, String> {
        let mut all = self.all(&format!("{PLACEMENT}/workloadclusters"));
        let found = all.remove(&format!("/{cluster}")).unwrap_or_default();
        let issuer = found["status"]["issuer"].as_str();
        let issuer = issuer.ok_or_else(|| format!("cluster {cluster} has no issuer: {found}"))?;
        Ok(issuer.trim_start_matches("https://").to_owned())
    }

    /// Waits until something is so, and says how long it took. Calls fail for a while, and then not any more: a step
    /// of many requests would seldom come to its end, and its back-off is up to five minutes.
    pub(crate) fn until(&self, what: &str, mut look: impl FnMut() -> Result<(), String>) {
        let began = Instant::now();
        self.proxy.set_calm(false);
        loop {
            self.proxy.set_calm(began.elapsed() > self.times.storm);
            let looks = Instant::now();
            match look() {
                Ok(()) => break,
                Err(seen) if began.elapsed() > self.times.timeout => {
                    panic!("{what}: not after {:?}: {seen}", self.times.timeout)
                }
                // The pause between two looks: one that reads the whole account must leave it to the controllers.
                Err(_) => thread::sleep(Duration::from_millis(200) + looks.elapsed() * 3),
            }
        }
        self.proxy.set_calm(false);
        println!("{what}: {:.1?}", began.elapsed());
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in self.controllers.iter_mut().chain(self.syncers.values_mut()) {
            let _ = child.kill();
            let _ = child.wait();
        }
        if !thread::panicking() {
            return;
        }
        for one in 1..=self.started {
            let log = self.place.path(&format!("process-{one}.log"));
            let text = std::fs::read_to_string(log).unwrap_or_default();
            let is_news = |line: &&str| !line.contains("heartbeat") && !line.contains("compared");
            let last: Vec<&str> = text.lines().rev().filter(is_news).take(60).collect();
            println!("process {one}:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
    }
}
