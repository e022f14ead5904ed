//! IAM and STS as a person, a pod or a thief calls them; and an account in the process of the test, for fleets whose
//! parts are processes of their own.

use super::harness::Client as Hub;
use interlock_apiserver::Server;
use interlock_iam::client::{self, Client, Role, WebIdentity, WebIdentitySession};
use interlock_iam::embedded::{self, HttpKeys, Iam, Listening};
use interlock_iam::{Clock, Credentials, Outcome};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Somebody who makes one call at a time.
pub(crate) struct Caller {
    client: Client,
    runtime: Runtime,
}

impl Caller {
    pub(crate) fn of(endpoint: &str, credentials: Credentials) -> Caller {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        Caller { client: client(endpoint, credentials), runtime }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn call<T>(&self, call: impl Future<Output = Outcome<T>>) -> Outcome<T> {
        self.runtime.block_on(call)
    }

    pub(crate) fn role(&self, name: &str) -> Outcome<Role> {
        self.call(self.client.get_role(name))
    }

    /// Exchanges a token of a service account for a session.
    pub(crate) fn assume(&self, arn: &str, token: &str) -> Outcome<WebIdentitySession> {
        let (role, session, token) = (arn.to_owned(), "test".to_owned(), token.to_owned());
        let identity = WebIdentity { role, session, token, seconds: None };
        self.call(self.client.assume_role_with_web_identity(&identity))
    }

    /// Reads a role with the credentials of a session.
    pub(crate) fn read_as(&self, session: &WebIdentitySession, name: &str) -> Outcome<Role> {
        let client = self.client.with(session.credentials.clone());
        self.call(client.get_role(name))
    }
}

/// A client with a deadline for a busy machine.
pub(crate) fn client(endpoint: &str, credentials: Credentials) -> Client {
    let settings = client::Settings {
        endpoint: Some(endpoint.to_owned()),
        deadline: Duration::from_secs(60),
        ..client::Settings::default()
    };
    Client::new(settings, credentials).expect("a loopback address")
}

/// A token of a service account on a cluster, as a pod there would have it.
pub(crate) fn token(hub: &mut Hub, cluster: &str, namespace: &str, account: &str) -> String {
    let accounts = format!("/clusters/{cluster}/api/v1/namespaces/{namespace}/serviceaccounts");
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": ["sts.amazonaws.com"]},
    });
    let made = hub.must("POST", &format!("{accounts}/{account}/token"), Some(&body));
    made["status"]["token"].as_str().expect("a token").to_owned()
}

/// The issuers that a trust policy lets in, without their scheme.
pub(crate) fn trusted(document: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(document).expect("a trust policy is JSON");
    let statements = document["Statement"].as_array().expect("ours is a list").iter();
    let allowed = statements.filter(|statement| statement["Effect"] == "Allow");
    let principals = allowed.flat_map(|statement| match &statement["Principal"]["Federated"] {
        Value::Array(all) => all.clone(),
        one => vec![one.clone()],
    });
    let issuer = |principal: Value| {
        let arn = principal.as_str().unwrap_or_else(|| panic!("not an issuer: {document}"));
        arn.split_once(":oidc-provider/").map_or(arn, |(_, issuer)| issuer).to_owned()
    };
    principals.map(issuer).collect()
}

/// An account whose IAM and STS are served by the test.
pub(crate) struct Account {
    pub(crate) address: SocketAddr,
    pub(crate) credentials: Credentials,
    /// Its tasks.
    _runtime: Runtime,
}

impl Account {
    pub(crate) fn start() -> Account {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let credentials = Credentials::random().expect("the machine has random numbers");
        let settings = embedded::Settings {
            account: super::up::ACCOUNT.to_owned(),
            root: credentials.clone(),
            clock: Clock::machine(),
            keys: Arc::new(HttpKeys::new(&[]).expect("no certificate is needed")),
            http_issuers: true,
        };
        let listening = runtime.block_on(async {
            let store = Server::in_memory().await.expect("it needs only memory").store();
            let iam = Iam::start(store, settings).await.expect("there is nothing yet");
            Listening::on(Arc::new(iam), ([127, 0, 0, 1], 0).into()).await.expect("a port")
        });
        let address = listening.address();
        runtime.spawn(listening.run());
        Account { address, credentials, _runtime: runtime }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::of(&format!("http://{}", self.address), self.credentials.clone())
    }
}

#[test]
fn a_trust_policy_shows_everybody_that_it_lets_in() {
    let arn = |host: &str| format!("arn:aws:iam::000000000000:oidc-provider/{host}");
    let both = json!({"Statement": [
        {"Effect": "Allow", "Principal": {"Federated": arn("a/1")}},
        {"Effect": "Deny", "Principal": "*"},
        {"Effect": "Allow", "Principal": {"Federated": [arn("a/2"), arn("b")]}},
    ]});
    assert_eq!(trusted(&both.to_string()), ["a/1", "a/2", "b"]);
}
