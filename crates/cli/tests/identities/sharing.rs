//! Two clusters that were set up with one issuer: each could assume the roles of the other.

use super::cloud::trusted;
use super::fleet::condition;
use super::harness::{DataDirectory, Process, TOKEN, interlock, write_kubeconfig};
use super::processes::left_in;
use super::up::{GROUP, Up, cloud_name, example, identities, until};
use interlock_api::names::grant_name;
use serde_json::{Value, json};
use std::process::{Child, Stdio};

const NAME: &str = "s3put";
/// What both clusters were set up with.
const SHARED: &str = "https://clusters.example.com";

/// A cluster with an API server of its own, and its syncer.
struct Cluster {
    name: &'static str,
    syncer: Child,
    _server: Process,
    place: DataDirectory,
}

impl Cluster {
    /// Registers it, and serves it.
    fn join(up: &Up, name: &'static str, issuer: &str) -> Cluster {
        let place = DataDirectory::new();
        let mut command = place.command();
        command.args(["--external-url", issuer]);
        let server = Process::spawn(command).ready();
        write_kubeconfig(&place.path("config"), &server.address().to_string(), TOKEN);
        let connection = json!({"kubeconfigSecret": {"namespace": "default", "name": name}});
        let body = json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
            "metadata": {"name": name}, "spec": {"connection": connection},
        });
        up.client().must("POST", &format!("{GROUP}/workloadclusters"), Some(&body));
        let mut command = interlock();
        command.args(["syncer", name, "--runtime", "process", "--allow-root-processes"]);
        command.args(["--heartbeat-every", "1s", "--lease", "1s"]);
        command.args(["--metrics-listen", "127.0.0.1:0", "--kubeconfig"]).arg(up.kubeconfig());
        command.arg("--cluster-kubeconfig").arg(place.path("config"));
        command.arg("--state-dir").arg(place.path("state"));
        let log = std::fs::File::create(place.path("log")).expect("the directory is ours");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let syncer = command.spawn().expect("the binary runs");
        Cluster { name, syncer, _server: server, place }
    }

    fn path(&self) -> String {
        format!("{GROUP}/workloadclusters/{}", self.name)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.syncer.kill();
        let _ = self.syncer.wait();
        for (pid, _) in left_in(&self.place.path("")) {
            super::processes::signal(pid, "KILL");
        }
    }
}

/// Waits until the issuer of a cluster is ready, or is not for this reason; what is said of it.
fn issuer_is(up: &Up, cluster: &Cluster, status: &str, why: &str) -> Value {
    until(&format!("the issuer of {} is {why}", cluster.name), || {
        let found = up.get(&cluster.path());
        let issuer = condition(&found, "IssuerReady");
        let is_so = issuer["status"] == status && issuer["reason"] == why;
        match is_so && condition(&found, "Ready")["status"] == "True" {
            true => Ok(issuer),
            false => Err(format!("{found:#}\n{}", up.says())),
        }
    })
}

#[test]
fn two_clusters_with_one_issuer_get_no_namespace_with_roles_and_nothing_is_stopped() {
    let up = Up::of("west");
    let folder = up.path("notes");
    std::fs::create_dir(&folder).expect("the directory is ours");
    let shop = json!({"metadata": {"name": "shop", "labels": {"interlock.dev/placed": "true"},
        "annotations": {"interlock.dev/cluster": "west"}}});
    let made = up.client().must("POST", "/api/v1/namespaces", Some(&shop));
    let grant = grant_name("shop", made["metadata"]["uid"].as_str().expect("a uid"));
    let grant = format!("{GROUP}/grants/{grant}");
    up.client().must("POST", &identities("shop"), Some(&example(NAME)));
    super::following::runs_on(&up, "west", 1);
    // In a command of Kubernetes two dollars are one.
    let script =
        format!("cd {}; echo $$$$ >> pids; while true; do sleep 0.1; done", folder.display());
    let pod = json!({
        "metadata": {"name": "app"},
        "spec": {
            "runtimeClassName": "interlock-process", "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "app", "image": "none", "command": ["sh", "-c", script]}],
        },
    });
    up.client().must("POST", "/api/v1/namespaces/shop/pods", Some(&pod));
    let pids = || -> Vec<u32> {
        let text = std::fs::read_to_string(folder.join("pids")).unwrap_or_default();
        text.lines().map(|line| line.parse().expect("a number")).collect()
    };
    let first = until("the workload runs", || pids().first().copied().ok_or_else(|| up.says()));

    let north = Cluster::join(&up, "north", SHARED);
    issuer_is(&up, &north, "True", "ProviderFound");
    let south = Cluster::join(&up, "south", SHARED);
    for (cluster, other) in [(&north, &south), (&south, &north)] {
        let said = issuer_is(&up, cluster, "False", "IssuerShared");
        let message =
            format!("the cluster {} reports the issuer {SHARED}/issuers/root, too", other.name);
        assert_eq!(said["message"], message, "{said:#}");
        assert_eq!(said["next"], "give each cluster an issuer of its own", "{said:#}");
    }

    // The namespace is asked to move to one of them, and stays.
    super::following::desire(&up, "north");
    until("it is said why the namespace stays", || {
        let said = up.explain("shop");
        let wanted = format!(
            "DesiredClusterDoesNotFit: the desired cluster north does not fit: IssuerNotReady, role \
             {NAME} of the namespace needs a cluster with condition IssuerReady (the cluster south \
             reports the issuer {SHARED}/issuers/root, too: give each cluster an issuer of its own)"
        );
        if said.contains(&wanted) { Ok(()) } else { Err(said + &up.says()) }
    });
    let found = up.get(&grant);
    let status = &found["status"];
    let is_as_before = status["epoch"] == 1 && status["owner"]["name"] == "west";
    assert!(is_as_before && status["phase"] == "Granted", "{found:#}");
    assert_eq!(pids(), [first], "it was not started again");
    assert!(left_in(&folder).iter().any(|(pid, _)| *pid == first), "it still runs");

    // As soon as north has an issuer of its own, the namespace moves there.
    up.client().must("DELETE", &south.path(), None);
    up.gone(&south.path());
    drop(south);
    issuer_is(&up, &north, "True", "ProviderFound");
    super::following::runs_on(&up, "north", 2);
    let role = up.done(up.iam().get_role(&cloud_name("shop", NAME)));
    assert_eq!(trusted(&role.trust), ["clusters.example.com/issuers/root"]);
    let path = format!("{}/{NAME}", identities("shop"));
    up.client().must("DELETE", "/api/v1/namespaces/shop", None);
    up.gone("/api/v1/namespaces/shop");
    up.gone(&path);
    assert_eq!(up.in_the_cloud(), (vec![], vec![]), "{}", up.says());
}
