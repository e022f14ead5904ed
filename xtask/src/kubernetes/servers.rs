//! API servers of Kubernetes on one etcd, most of them a cluster of their own, and their controllers.

use crate::bench::etcd;
use crate::bench::process::free_port;
use crate::program::{Program, eventually, output};
use anyhow::Context;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What a cluster needs to be one without nodes; nothing that would start pods.
const CONTROLLERS: &str = "namespace-controller,serviceaccount-controller,\
    root-ca-certificate-publisher-controller,garbage-collector-controller,\
    persistentvolume-binder-controller,persistentvolume-protection-controller,\
    persistentvolumeclaim-protection-controller";

/// The kinds that the CSI snapshotter brings to a cluster. These definitions stand in for its own:
/// the names are the same, and any field is let through.
const SNAPSHOTS: [(&str, &str, &str); 3] = [
    ("VolumeSnapshot", "volumesnapshots", "Namespaced"),
    ("VolumeSnapshotContent", "volumesnapshotcontents", "Cluster"),
    ("VolumeSnapshotClass", "volumesnapshotclasses", "Cluster"),
];

/// The token of the administrator of each server.
pub(crate) const ADMIN: &str = "admin";

/// An API server, and its controllers if it has any.
pub(crate) struct Server {
    name: String,
    /// What its objects in etcd and its certificates are called by: two servers of one cluster have the same.
    cluster: String,
    address: String,
    folder: PathBuf,
    process: Program,
    controllers: Vec<Program>,
}

/// Starts etcd and one server for each name.
pub(crate) fn start(
    upstream: &Path,
    folder: &Path,
    names: &[&str],
) -> anyhow::Result<(Program, Vec<Server>)> {
    let (etcd, client) = start_etcd(folder)?;
    let ground = Ground { upstream, folder, etcd: &client };
    let servers = names.iter().map(|name| ground.start(name));
    Ok((etcd, servers.collect::<anyhow::Result<_>>()?))
}

/// Starts etcd, and makes the key of service accounts. Also where it is.
pub(crate) fn start_etcd(folder: &Path) -> anyhow::Result<(Program, String)> {
    let [client, peer] =
        [free_port()?, free_port()?].map(|port| format!("http://127.0.0.1:{port}"));
    let etcd = Program::start(
        Command::new(etcd::get(None)?)
            .args(["--data-dir", "etcd", "--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client, "--listen-peer-urls", &peer]),
        folder,
        "etcd",
    )
    .context("etcd is needed: apt-get install --yes etcd-server")?;
    output(Command::new("openssl").args(["genrsa", "-out", "accounts.key", "2048"]), folder)
        .context("openssl is needed: apt-get install --yes openssl")?;
    Ok((etcd, client))
}

/// What all servers need: the programs of Kubernetes, a folder, and etcd.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) upstream: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) etcd: &'a str,
}

impl Ground<'_> {
    /// Starts a cluster: its API server and its controllers.
    pub(crate) fn start(self, name: &str) -> anyhow::Result<Server> {
        let mut server = self.start_server(name, name, &[])?;
        server.controllers.push(self.start_controllers(&server)?);
        Ok(server)
    }

    /// Starts an API server of a cluster, and no controllers. One of a cluster that has one already shows the same certificate.
    pub(crate) fn start_server(
        self,
        cluster: &str,
        name: &str,
        flags: &[String],
    ) -> anyhow::Result<Server> {
        let folder = self.folder;
        let port = free_port()?.to_string();
        // Its certificate is for this name, and for no loopback address.
        let address = format!("https://localhost:{port}");
        let tokens = format!("{cluster}.csv");
        std::fs::write(folder.join(&tokens), format!("{ADMIN},admin,1,system:masters\n"))?;
        let certificates = format!("{cluster}-certificates");
        let process = Program::start(
            Command::new(self.upstream.join("kube-apiserver"))
                .args(["--etcd-servers", self.etcd, "--etcd-prefix", &format!("/{cluster}")])
                // On every address: it names its own to others, and that is no loopback address.
                .args(["--bind-address", "0.0.0.0", "--secure-port", &port])
                .args(["--cert-dir", &certificates, "--authorization-mode", "RBAC"])
                .args(["--token-auth-file", &tokens])
                .args(["--service-account-issuer", &format!("https://{cluster}.example")])
                .args(["--service-account-key-file", "accounts.key"])
                .args(["--service-account-signing-key-file", "accounts.key"])
                .args(["--service-cluster-ip-range", "10.0.0.0/24"])
                .args(flags),
            folder,
            name,
        )?;
        let (name, cluster) = (name.to_owned(), cluster.to_owned());
        let folder = folder.to_path_buf();
        let server = Server { name, cluster, address, folder, process, controllers: Vec::new() };
        let admin = kubeconfig(&server.address, &server.authority(), ADMIN);
        std::fs::write(server.admin(), admin.to_string())?;
        eventually(&format!("{} is ready", server.name), Duration::from_secs(120), || {
            Ok(server.kubectl(&["get", "--raw", "/readyz"]).is_ok())
        })?;
        Ok(server)
    }

    fn start_controllers(self, server: &Server) -> anyhow::Result<Program> {
        Program::start(
            Command::new(self.upstream.join("kube-controller-manager"))
                .args(["--secure-port", "0", "--leader-elect=false"])
                .args(["--controllers", CONTROLLERS])
                .args(["--service-account-private-key-file", "accounts.key"])
                .args(["--root-ca-file", &server.authority().to_string_lossy()])
                .arg("--kubeconfig")
                .arg(server.admin()),
            self.folder,
            &format!("{}-controllers", server.name),
        )
    }
}

impl Server {
    /// Where it is.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The certificate that its own is signed with.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.join(format!("{}-certificates", self.cluster)).join("apiserver.crt")
    }

    /// The kubeconfig of its administrator.
    pub(crate) fn admin(&self) -> PathBuf {
        self.folder.join(format!("{}-admin.json", self.name))
    }

    /// What kubectl prints for the administrator.
    pub(crate) fn kubectl(&self, words: &[&str]) -> anyhow::Result<String> {
        let mut kubectl = Command::new("kubectl");
        output(kubectl.arg("--kubeconfig").arg(self.admin()).args(words), &self.folder)
    }

    /// An object, or several.
    pub(crate) fn get(&self, words: &[&str]) -> anyhow::Result<Value> {
        let text = self.kubectl(&[&["get", "-o", "json"], words].concat())?;
        serde_json::from_str(&text).context("kubectl printed no JSON")
    }

    /// Applies a file or a folder as it is.
    pub(crate) fn apply(&self, what: &Path) -> anyhow::Result<()> {
        let what = what.to_string_lossy();
        self.kubectl(&["apply", "--server-side", "-f", &what]).map(drop)
    }

    /// Applies a text.
    pub(crate) fn apply_text(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let file = self.folder.join(format!("{}-{name}.yaml", self.name));
        std::fs::write(&file, text)?;
        self.apply(&file)
    }

    /// Brings the kinds of volume snapshots.
    pub(crate) fn bring_snapshots(&self) -> anyhow::Result<()> {
        let definitions = SNAPSHOTS.map(|(kind, plural, scope)| definition(kind, plural, scope));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": definitions});
        self.apply_text("snapshots", &list.to_string())?;
        self.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]).map(drop)
    }

    /// A kubeconfig for one of the accounts in `interlock-system`.
    pub(crate) fn of_account(&self, account: &str) -> anyhow::Result<PathBuf> {
        self.of_account_by(account, &self.address)
    }

    /// The same, for somebody who reaches the server by another address.
    pub(crate) fn of_account_by(&self, account: &str, address: &str) -> anyhow::Result<PathBuf> {
        let token =
            self.kubectl(&["--namespace", "interlock-system", "create", "token", account])?;
        let port = address.rsplit(':').next().unwrap_or_default();
        let file = self.folder.join(format!("{}-{account}-{port}.json", self.name));
        let kubeconfig = kubeconfig(address, &self.authority(), token.trim());
        std::fs::write(&file, kubeconfig.to_string())?;
        Ok(file)
    }
}

fn kubeconfig(address: &str, authority: &Path, token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster":
            {"server": address, "certificate-authority": authority}}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    })
}

fn definition(kind: &str, plural: &str, scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.snapshot.storage.k8s.io"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, it stands in for a test"},
        },
        "spec": {
            "group": "snapshot.storage.k8s.io",
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}
