//! An account in memory, a proxy before it, a driver behind that, and clocks that are set by hand.

use crate::proxy::Proxy;
use bytes::Bytes;
use interlock_cloud::{Clock, Driver, Settings};
use interlock_iam::client::{self, Client};
use interlock_iam::embedded::{self, Fetched, Iam, Keys, Listening};
use interlock_iam::{Credentials, Outcome};
use interlock_identities::outside::{
    Answer, Asked, At, Call, Found, PolicyFound, PolicyReading, Process, Question, Request,
    RoleFound, RoleReading, Tags,
};
use interlock_kernel::CallRate;
use interlock_store::Embedded;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const ACCOUNT: &str = "123456789012";
pub(crate) const ME: &str = "me-1";
pub(crate) const ABOUT: &str = "uid-1";
/// The late-call window.
pub(crate) const WINDOW: u64 = 60;
/// What the clock of the cloud says.
pub(crate) const CLOUD_SECONDS: i64 = 1_794_902_400;

pub(crate) struct Scene {
    pub(crate) driver: Driver,
    pub(crate) proxy: Proxy,
    /// Past driver and proxy.
    pub(crate) direct: Client,
    milliseconds: Arc<AtomicU64>,
}

/// What differs from scene to scene.
pub(crate) struct Options {
    pub(crate) rate: CallRate,
    pub(crate) deadline: Duration,
    pub(crate) credentials: Credentials,
}

impl Default for Options {
    fn default() -> Options {
        // Tests that are not about the rate meet no limit.
        let rate = CallRate { burst: 10_000, ..CallRate::default() };
        Options { rate, deadline: Duration::from_secs(30), credentials: root() }
    }
}

pub(crate) fn root() -> Credentials {
    Credentials::lasting("AKIAROOT", "root's secret")
}

struct NoKeys;

impl Keys for NoKeys {
    fn fetch<'a>(&'a self, url: &'a str) -> Fetched<'a> {
        Box::pin(async move { Err::<Bytes, _>(format!("there is nothing at {url}")) })
    }
}

fn cloud_clock() -> interlock_iam::Clock {
    interlock_iam::Clock::new(|| CLOUD_SECONDS)
}

fn client_of(address: SocketAddr, deadline: Duration, credentials: Credentials) -> Client {
    let endpoint = Some(format!("http://{address}"));
    let clock = cloud_clock();
    let settings = client::Settings { endpoint, deadline, clock, ..client::Settings::default() };
    Client::new(settings, credentials).unwrap()
}

impl Scene {
    pub(crate) async fn new() -> Scene {
        Scene::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Scene {
        let settings = embedded::Settings {
            account: ACCOUNT.to_owned(),
            root: root(),
            clock: cloud_clock(),
            keys: Arc::new(NoKeys),
            http_issuers: true,
        };
        let iam = Iam::start(Arc::new(Embedded::in_memory()), settings).await.unwrap();
        let listening = Listening::on(Arc::new(iam), ([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listening.address();
        tokio::spawn(listening.run());
        let proxy = Proxy::start(address).await;
        let milliseconds: Arc<AtomicU64> = Arc::default();
        let since = Arc::clone(&milliseconds);
        let settings = Settings {
            rate: options.rate,
            clock: Clock::new(move || Duration::from_millis(since.load(Ordering::SeqCst))),
            ..Settings::of(ME, Duration::from_secs(WINDOW))
        };
        let client = client_of(proxy.address, options.deadline, options.credentials);
        let direct = client_of(address, Duration::from_secs(30), root());
        Scene { driver: Driver::new(client, settings), proxy, direct, milliseconds }
    }

    pub(crate) fn pass(&self, milliseconds: u64) {
        self.milliseconds.fetch_add(milliseconds, Ordering::SeqCst);
    }

    pub(crate) fn uptime(&self) -> i64 {
        i64::try_from(self.milliseconds.load(Ordering::SeqCst) / 1000).unwrap()
    }

    /// What the driver says about an object of this scene.
    pub(crate) async fn ask(&self, object: Asked) -> Answer {
        self.driver.answer(Question { object, about: ABOUT.to_owned() }).await
    }

    pub(crate) async fn policy(&self) -> PolicyFound {
        self.policy_by(all_versions()).await
    }

    pub(crate) async fn policy_by(&self, reading: PolicyReading) -> PolicyFound {
        match self.ask(Asked::Policy { at: place(), reading }).await.found {
            Found::Policy(found) => found,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn role(&self) -> RoleFound {
        self.role_by(RoleReading::Inline).await
    }

    pub(crate) async fn role_by(&self, reading: RoleReading) -> RoleFound {
        match self.ask(Asked::Role { at: place(), reading }).await.found {
            Found::Role(found) => found,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a call that was decided on just now.
    pub(crate) async fn send(&self, call: Call) -> Result<(), String> {
        let process = Process { instance: ME.to_owned(), uptime: self.uptime() };
        self.driver.send(request(call, process)).await
    }

    /// Sends calls that must be done.
    pub(crate) async fn make(&self, calls: impl IntoIterator<Item = Call>) {
        for call in calls {
            let name = call.name();
            self.send(call).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

pub(crate) fn request(call: Call, decided: Process) -> Request {
    Request { about: ABOUT.to_owned(), decided, at: place(), call }
}

pub(crate) fn place() -> At {
    At::Name { path: "/interlock/f/".to_owned(), name: "x".to_owned() }
}

/// No document has this digest.
fn all_versions() -> PolicyReading {
    PolicyReading::Wanted("none".to_owned())
}

pub(crate) fn policy(known_version: Option<&str>) -> Asked {
    let known = known_version.map(str::to_owned);
    let reading = known.map_or_else(all_versions, PolicyReading::Unless);
    Asked::Policy { at: place(), reading }
}

pub(crate) fn tags(owner: &str) -> Tags {
    Tags::from([("interlock.dev/owner-uid".to_owned(), owner.to_owned())])
}

pub(crate) fn allow(action: &str) -> String {
    let statement = json!({"Effect": "Allow", "Action": action, "Resource": "*"});
    json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

/// Trust in nobody.
pub(crate) fn closed() -> String {
    let statement = json!({
        "Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRoleWithWebIdentity",
    });
    json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

pub(crate) fn create_policy() -> Call {
    Call::CreatePolicy { document: allow("s3:GetObject"), tags: tags(ABOUT) }
}

pub(crate) fn create_role() -> Call {
    Call::CreateRole { trust: closed(), boundary: None, tags: tags(ABOUT) }
}

#[track_caller]
pub(crate) fn done<T: std::fmt::Debug>(outcome: Outcome<T>) -> T {
    match outcome {
        Outcome::Done(value) => value,
        other => panic!("not done: {other:?}"),
    }
}
