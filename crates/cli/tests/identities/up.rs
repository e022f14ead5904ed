//! `interlock up` with identities, and its IAM past the controllers.

use super::cloud::Caller;
pub(crate) use super::harness::until;
use super::harness::{Client, DataDirectory, Process, TOKEN, interlock, write_kubeconfig};
use super::processes::{left_in, signal};
use super::watching::Reach;
use interlock_iam::Credentials;
use interlock_iam::Outcome;
use interlock_iam::client;
use interlock_identities::outside::At;
use interlock_identities::owner::Owner;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

pub(crate) const FLEET: &str = "test-fleet";
pub(crate) const PATH: &str = "/interlock/test-fleet/";
pub(crate) const ACCOUNT: &str = "000000000000";
/// Nobody listens there: tokens of this server are verified without a network.
pub(crate) const ISSUER: &str = "https://hub.example.com/issuers/root";
pub(crate) const GROUP: &str = "/apis/interlock.dev/v1alpha1";
pub(crate) const KINDS: &str = "/apis/irsa.voodoo.io/v1alpha1";

/// A fleet whose identities are in its embedded IAM.
pub(crate) struct Up {
    process: Process,
    clusters: String,
    /// Where the hub is: somewhere else after each start.
    address: Arc<Mutex<SocketAddr>>,
    place: DataDirectory,
    runtime: tokio::runtime::Runtime,
}

impl Up {
    pub(crate) fn start() -> Up {
        Up::of("west")
    }

    /// One with these clusters, with a comma between them.
    pub(crate) fn of(clusters: &str) -> Up {
        let place = DataDirectory::new();
        let process = Process::spawn(command(&place, FLEET, clusters)).ready();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (clusters, runtime) = (clusters.to_owned(), runtime.expect("a runtime"));
        let address = Arc::new(Mutex::new(process.address()));
        Up { process, clusters, address, place, runtime }
    }

    /// Where the hub and the account are whenever it is asked, for somebody who watches them.
    pub(crate) fn reach(&self) -> impl Fn() -> Reach + Send + 'static {
        let (address, config) = (Arc::clone(&self.address), self.config());
        move || Reach {
            hub: *address.lock().expect("nobody panics with it"),
            endpoint: written(&config, "endpoint_url"),
            credentials: credentials(&config),
        }
    }

    /// A place of its own for a test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    /// A kubeconfig of an administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        let kubeconfig = self.place.path("config");
        // Without TLS nobody has a certificate: a token says who asks.
        write_kubeconfig(&kubeconfig, &self.process.address().to_string(), TOKEN);
        kubeconfig
    }

    /// The options of a command that looks at it.
    pub(crate) fn reaching(&self) -> Vec<String> {
        let kubeconfig = self.kubeconfig();
        let endpoint = self.written("endpoint_url");
        ["--kubeconfig", &kubeconfig.to_string_lossy(), "--iam-endpoint", &endpoint]
            .map(str::to_owned)
            .into()
    }

    /// The credentials of such a command.
    pub(crate) fn cloud_variables(&self) -> [(&'static str, String); 2] {
        [
            ("AWS_ACCESS_KEY_ID", self.written("aws_access_key_id")),
            ("AWS_SECRET_ACCESS_KEY", self.written("aws_secret_access_key")),
        ]
    }

    /// What the file about IAM says.
    fn written(&self, name: &str) -> String {
        written(&self.config(), name)
    }

    /// Takes its life, as a power cut would, and starts it again on what is on the disk.
    pub(crate) fn kill_and_start_again(&mut self) {
        self.process.kill();
        self.process = Process::spawn(command(&self.place, FLEET, &self.clusters)).ready();
        *self.address.lock().expect("nobody panics with it") = self.process.address();
    }

    /// Takes its life, and says how a start for another fleet ends.
    pub(crate) fn start_as(&mut self, fleet: &str) -> (Option<i32>, String) {
        self.process.kill();
        let mut process = Process::spawn(command(&self.place, fleet, &self.clusters));
        let (status, _) = process.end();
        (status.code(), process.says())
    }

    pub(crate) fn client(&self) -> Client {
        self.process.client()
    }

    pub(crate) fn says(&self) -> String {
        self.process.says()
    }

    /// An object, or null.
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.client().call("GET", path, None).expect("the server answers");
        if answer.status == 200 { answer.json() } else { Value::Null }
    }

    pub(crate) fn namespace(&self, name: &str) {
        let body = json!({"metadata": {"name": name}});
        self.client().must("POST", "/api/v1/namespaces", Some(&body));
    }

    /// The file that says where IAM is, and its keys.
    pub(crate) fn config(&self) -> PathBuf {
        self.place.data().join("aws-config")
    }

    /// A client of IAM with the keys that `up` wrote down.
    pub(crate) fn iam(&self) -> client::Client {
        super::cloud::client(&self.written("endpoint_url"), credentials(&self.config()))
    }

    /// The same, for one call at a time.
    pub(crate) fn caller(&self) -> Caller {
        Caller::of(&self.written("endpoint_url"), credentials(&self.config()))
    }

    /// A call of IAM.
    pub(crate) fn call<T>(&self, call: impl Future<Output = Outcome<T>>) -> Outcome<T> {
        self.runtime.block_on(call)
    }

    /// A call of IAM that must be done.
    #[track_caller]
    pub(crate) fn done<T: std::fmt::Debug>(&self, call: impl Future<Output = Outcome<T>>) -> T {
        match self.call(call) {
            Outcome::Done(value) => value,
            other => panic!("{other:?}\n{}", self.says()),
        }
    }

    /// Runs a command that looks at it: how it ended, and what it printed.
    pub(crate) fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = interlock();
        command.args(words).args(self.reaching()).envs(self.cloud_variables());
        let output = command.output().expect("the binary runs");
        let printed = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.code(), String::from_utf8_lossy(&printed).into_owned())
    }

    /// The same for a command about placement: what it printed, however it ended.
    pub(crate) fn explain(&self, namespace: &str) -> String {
        let mut command = interlock();
        command.args(["explain", namespace, "--kubeconfig"]).arg(self.kubeconfig());
        let output = command.output().expect("the binary runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// The names of all roles and policies of the fleet.
    pub(crate) fn in_the_cloud(&self) -> (Vec<String>, Vec<String>) {
        let iam = self.iam();
        let roles = self.done(iam.list_roles(PATH)).into_iter().map(|role| role.name);
        let policies = self.done(iam.list_policies(PATH)).into_iter().map(|policy| policy.name);
        (roles.collect(), policies.collect())
    }

    /// Waits until an identity is made.
    pub(crate) fn created(&self, path: &str) -> Value {
        until("the identity is made", || {
            let found = self.get(path);
            match found["status"]["condition"] == "created" && is(&found, "Ready", "True") {
                true => Ok(found),
                false => Err(format!("{found:#}\n{}", self.says())),
            }
        })
    }

    /// Waits until an object is gone.
    pub(crate) fn gone(&self, path: &str) {
        until("the object is gone", || match self.get(path) {
            Value::Null => Ok(()),
            found => Err(format!("{found:#}\n{}", self.says())),
        });
    }
}

/// What the file about IAM says.
fn written(config: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(config).expect("it is there");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

fn credentials(config: &Path) -> Credentials {
    let value = |name: &str| written(config, name);
    Credentials::lasting(value("aws_access_key_id"), value("aws_secret_access_key"))
}

/// irsa-operator's own example.
pub(crate) fn example(name: &str) -> Value {
    json!({
        "apiVersion": "irsa.voodoo.io/v1alpha1",
        "kind": "IamRoleServiceAccount",
        "metadata": {"name": name},
        "spec": {"policy": {"statement": [{
            "resource": "arn:aws:s3:::test-irsa-4gkut9fl/*",
            "action": ["s3:Get*", "s3:List*"],
        }]}},
    })
}

/// Where the identities of a namespace are.
pub(crate) fn identities(namespace: &str) -> String {
    format!("{KINDS}/namespaces/{namespace}/iamroleserviceaccounts")
}

/// The name of the cloud role, and of the cloud policy, of an identity.
pub(crate) fn cloud_name(namespace: &str, name: &str) -> String {
    let owner = Owner {
        uid: String::new(),
        kind: "role",
        fleet: FLEET.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    match owner.at() {
        At::Name { name, .. } => name,
        At::Arn(arn) => panic!("{arn}"),
    }
}

/// Whether a condition of an object has this status.
pub(crate) fn is(object: &Value, kind: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == kind && it["status"] == status)
}

/// The reason of a condition.
pub(crate) fn reason(object: &Value, kind: &str) -> String {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.find(|it| it["type"] == kind);
    found.map_or("", |it| it["reason"].as_str().unwrap_or_default()).to_owned()
}

impl Drop for Up {
    fn drop(&mut self) {
        self.process.kill();
        // Processes of pods outlive it, on purpose.
        for (pid, _) in left_in(&self.place.path("")) {
            signal(pid, "KILL");
        }
    }
}

fn command(place: &DataDirectory, fleet: &str, clusters: &str) -> Command {
    let mut command = interlock();
    command.args(["up", "--clusters", clusters, "--listen", "127.0.0.1:0", "--insecure-http"]);
    command.args(["--external-url", "https://hub.example.com", "--allow-root-processes"]);
    command.arg("--data-dir").arg(place.data()).arg("--token-file").arg(place.tokens());
    command.args(["--fleet", fleet, "--resync", "2s", "--no-machines"]);
    let provider = format!("arn:aws:iam::{ACCOUNT}:oidc-provider/hub.example.com/issuers/root");
    command.arg("--oidc-provider-arn").arg(provider);
    command.env("NO_COLOR", "1");
    command
}
