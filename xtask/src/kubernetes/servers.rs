//! Three API servers of Kubernetes on one etcd, each a cluster of its own, and their controllers.

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

/// An API server with its controllers.
pub(crate) struct Server {
    name: String,
    address: String,
    folder: PathBuf,
    process: Program,
    _controllers: Program,
}

/// Starts etcd and one server for each name.
pub(crate) fn start(
    upstream: &Path,
    folder: &Path,
    names: &[&str],
) -> anyhow::Result<(Program, Vec<Server>)> {
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
    let servers = names.iter().map(|name| Server::start(upstream, folder, name, &client));
    Ok((etcd, servers.collect::<anyhow::Result<_>>()?))
}

impl Server {
    fn start(upstream: &Path, folder: &Path, name: &str, etcd: &str) -> anyhow::Result<Self> {
        let port = free_port()?.to_string();
        let address = format!("https://127.0.0.1:{port}");
        std::fs::write(
            folder.join(format!("{name}.csv")),
            format!("{ADMIN},admin,1,system:masters\n"),
        )?;
        let certificates = format!("{name}-certificates");
        let process = Program::start(
            Command::new(upstream.join("kube-apiserver"))
                .args(["--etcd-servers", etcd, "--etcd-prefix", &format!("/{name}")])
                // On every address: it names its own to others, and that is no loopback address.
                .args(["--bind-address", "0.0.0.0", "--secure-port", &port])
                .args(["--cert-dir", &certificates, "--authorization-mode", "RBAC"])
                .args(["--token-auth-file", &format!("{name}.csv")])
                .args(["--service-account-issuer", &format!("https://{name}.example")])
                .args(["--service-account-key-file", "accounts.key"])
                .args(["--service-account-signing-key-file", "accounts.key"])
                .args(["--service-cluster-ip-range", "10.0.0.0/24"]),
            folder,
            name,
        )?;
        let admin = folder.join(format!("{name}-admin.json"));
        let authority = folder.join(&certificates).join("apiserver.crt");
        std::fs::write(&admin, kubeconfig(&address, &authority, ADMIN).to_string())?;
        let manager = format!("{name}-controllers");
        eventually(&format!("{name} is ready"), Duration::from_secs(120), || {
            let ready = ["get", "--raw", "/readyz"];
            Ok(output(Command::new("kubectl").arg("--kubeconfig").arg(&admin).args(ready), folder)
                .is_ok())
        })?;
        let controllers = Program::start(
            Command::new(upstream.join("kube-controller-manager"))
                .args(["--secure-port", "0", "--leader-elect=false"])
                .args(["--controllers", CONTROLLERS])
                .args(["--service-account-private-key-file", "accounts.key"])
                .args(["--root-ca-file", &authority.to_string_lossy()])
                .arg("--kubeconfig")
                .arg(&admin),
            folder,
            &manager,
        )?;
        let folder = folder.to_path_buf();
        let name = name.to_owned();
        Ok(Server { name, address, folder, process, _controllers: controllers })
    }

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
        self.folder.join(format!("{}-certificates", self.name)).join("apiserver.crt")
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
        let token =
            self.kubectl(&["--namespace", "interlock-system", "create", "token", account])?;
        let file = self.folder.join(format!("{}-{account}.json", self.name));
        let kubeconfig = kubeconfig(&self.address, &self.authority(), token.trim());
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
