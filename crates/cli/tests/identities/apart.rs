//! A fleet whose server, controllers and syncers are processes of their own, with a proxy in front of its cloud
//! account.

use super::cloud::{Account, Caller};
use super::fleet::{Cloud, Fleet, Said, interlock, run};
use super::harness::proxy::{Fault, Proxy};
use super::up::{FLEET, PATH, identities, is, until};
use super::watching::{Reach, Watched, Watcher};
use interlock_api::names::grant_name;
use interlock_iam::Outcome;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

pub(crate) struct Apart {
    pub(crate) fleet: Fleet,
    pub(crate) account: Account,
    pub(crate) caller: Caller,
    endpoint: String,
    /// What the next call of this name meets.
    next: Arc<Mutex<Option<(String, Fault)>>>,
}

impl Apart {
    /// With west and east, and so many seconds for a call to take effect.
    pub(crate) fn start(window_seconds: u32) -> Apart {
        let account = Account::start();
        let next: Arc<Mutex<Option<(String, Fault)>>> = Arc::default();
        let shared = Arc::clone(&next);
        let proxy = Proxy::start(account.address, move |form| {
            let mut next = shared.lock().expect("nobody panics with it");
            let action = |action: &str| form.split('&').any(|it| it == format!("Action={action}"));
            next.take_if(|(name, _)| action(name)).map(|(_, fault)| fault)
        });
        let endpoint = format!("http://{}", proxy.address);
        let window = format!("{window_seconds}s");
        let options = [
            ["--fleet", FLEET],
            ["--iam-endpoint", &endpoint],
            ["--oidc-providers", "manage"],
            ["--late-call-window", &window],
            ["--iam-calls-per-second", "500"],
            ["--resync", "2s"],
        ];
        let options = options.concat().into_iter().map(str::to_owned).collect();
        let cloud = Cloud { options, variables: variables(&account).into() };
        let fleet = Fleet::with_cloud(&["west", "east"], cloud);
        let caller = account.caller();
        let apart = Apart { fleet, account, caller, endpoint, next };
        for name in ["west", "east"] {
            apart.issuer(name);
        }
        apart
    }

    /// What happens to the next call of this name.
    pub(crate) fn next(&self, action: &str, fault: Fault) {
        let next = Some((action.to_owned(), fault));
        *self.next.lock().expect("nobody panics with it") = next;
    }

    /// Waits until roles may trust a cluster; its issuer, without the scheme.
    fn issuer(&self, cluster: &str) -> String {
        until(&format!("the issuer of {cluster} is known in the cloud"), || {
            let found = self.fleet.get(&format!("{}/workloadclusters/{cluster}", super::up::GROUP));
            let issuer = found["status"]["issuer"].as_str().and_then(|it| it.split_once("://"));
            match issuer.filter(|_| is(&found, "IssuerReady", "True")) {
                Some((_, host)) => Ok(host.to_owned()),
                None => Err(self.fleet.story(&found)),
            }
        })
    }

    pub(crate) fn declare(&self, namespace: &str, identity: &Value) {
        self.fleet.client().must("POST", &identities(namespace), Some(identity));
    }

    /// Waits until an identity is made; the ARN of its role.
    pub(crate) fn created(&self, namespace: &str, name: &str) -> String {
        let path = format!("{}/{name}", identities(namespace));
        until("the identity is made", || {
            let found = self.fleet.get(&path);
            let arn = found["status"]["roleARN"].as_str().filter(|_| is(&found, "Ready", "True"));
            arn.map(str::to_owned).ok_or_else(|| self.fleet.story(&found))
        })
    }

    pub(crate) fn watcher(&self, namespace: &str, uid: &str, role: String) -> Watcher {
        let grant = format!("{}/grants/{}", super::up::GROUP, grant_name(namespace, uid));
        let issuers = ["west", "east"].map(|name| (name.to_owned(), self.issuer(name))).into();
        let (hub, credentials) = (self.fleet.address(), self.account.credentials.clone());
        let endpoint = format!("http://{}", self.account.address);
        Watcher::of(Watched { grant, role, issuers }, move || {
            let (endpoint, credentials) = (endpoint.clone(), credentials.clone());
            Reach { hub, endpoint, credentials }
        })
    }

    /// Deletes an identity, and waits until it is gone.
    pub(crate) fn delete(&self, namespace: &str, name: &str) {
        let path = format!("{}/{name}", identities(namespace));
        self.fleet.client().must("DELETE", &path, None);
        self.gone(&path);
    }

    pub(crate) fn gone(&self, path: &str) {
        until("the identity is gone", || match self.fleet.get(path) {
            Value::Null => Ok(()),
            found => Err(self.fleet.story(&found)),
        });
    }

    /// Nothing of the fleet is left in the account, whoever is asked.
    pub(crate) fn prove_that_nothing_is_left(&self) {
        let mut command = interlock();
        command.args(["identity", "orphans", "--iam-endpoint", &self.endpoint, "--kubeconfig"]);
        command.arg(self.fleet.path("config")).envs(variables(&self.account));
        let Said { code, out, err } = run(command);
        assert_eq!((code, out.as_str()), (Some(0), "nothing is left over\n"), "{err}");
        let client = self.caller.client();
        let roles = self.caller.call(client.list_roles(PATH));
        let policies = self.caller.call(client.list_policies(PATH));
        assert_eq!((roles, policies), (Outcome::Done(vec![]), Outcome::Done(vec![])));
    }
}

/// The keys of an account, as AWS's tools read them.
fn variables(account: &Account) -> [(&'static str, String); 2] {
    let keys = account.credentials.clone();
    [("AWS_ACCESS_KEY_ID", keys.access_key_id), ("AWS_SECRET_ACCESS_KEY", keys.secret_access_key)]
}

/// An identity whose sessions may read roles.
pub(crate) fn reader_of_roles(name: &str) -> Value {
    let mut identity = super::up::example(name);
    let resource = format!("arn:aws:iam::{}:role/*", super::up::ACCOUNT);
    identity["spec"]["policy"]["statement"] =
        json!([{"resource": resource, "action": ["iam:GetRole"]}]);
    identity
}
