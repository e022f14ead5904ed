//! `interlock up` with identities, and its IAM past the controllers.

pub(crate) use super::harness::until;
use super::harness::{Client, DataDirectory, Process, TOKEN, interlock, write_kubeconfig};
use interlock_iam::Credentials;
use interlock_iam::Outcome;
use interlock_iam::client;
use interlock_identities::outside::At;
use interlock_identities::owner::Owner;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub(crate) const FLEET: &str = "test-fleet";
pub(crate) const PATH: &str = "/interlock/test-fleet/";
pub(crate) const ACCOUNT: &str = "000000000000";
/// Nobody listens there: tokens of this server are verified without a network.
pub(crate) const ISSUER: &str = "https://hub.example.com/issuers/root";
pub(crate) const KINDS: &str = "/apis/irsa.voodoo.io/v1alpha1";

/// A fleet whose identities are in its embedded IAM.
pub(crate) struct Up {
    process: Process,
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
        let mut command = command(&place, FLEET);
        command.args(["--clusters", clusters]);
        let process = Process::spawn(command).ready();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Up { process, place, runtime: runtime.expect("a runtime") }
    }

    /// The options of a command that looks at it.
    pub(crate) fn reaching(&self) -> Vec<String> {
        let kubeconfig = self.place.path("config");
        // Without TLS nobody has a certificate: a token says who asks.
        write_kubeconfig(&kubeconfig, &self.process.address().to_string(), TOKEN);
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
        let text = std::fs::read_to_string(self.config()).expect("it is there");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    }

    /// Takes its life, as a power cut would, and starts it again on what is on the disk.
    pub(crate) fn kill_and_start_again(&mut self) {
        self.process.kill();
        self.process = Process::spawn(command(&self.place, FLEET)).ready();
    }

    /// Takes its life, and says how a start for another fleet ends.
    pub(crate) fn start_as(&mut self, fleet: &str) -> (Option<i32>, String) {
        self.process.kill();
        let mut process = Process::spawn(command(&self.place, fleet));
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
        let value = |name: &str| self.written(name);
        let credentials =
            Credentials::lasting(value("aws_access_key_id"), value("aws_secret_access_key"));
        let settings = client::Settings {
            endpoint: Some(value("endpoint_url")),
            deadline: Duration::from_secs(60),
            ..client::Settings::default()
        };
        client::Client::new(settings, credentials).expect("a loopback address")
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

fn command(place: &DataDirectory, fleet: &str) -> Command {
    let mut command = interlock();
    command.args(["up", "--listen", "127.0.0.1:0", "--insecure-http"]);
    command.args(["--external-url", "https://hub.example.com", "--allow-root-processes"]);
    command.arg("--data-dir").arg(place.data()).arg("--token-file").arg(place.tokens());
    command.args(["--fleet", fleet, "--resync", "2s"]);
    let provider = format!("arn:aws:iam::{ACCOUNT}:oidc-provider/hub.example.com/issuers/root");
    command.arg("--oidc-provider-arn").arg(provider);
    command.env("NO_COLOR", "1");
    command
}
