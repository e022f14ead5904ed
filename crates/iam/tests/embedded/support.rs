//! A server in memory, a client for it, an issuer, and a clock that is set by hand.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use interlock_iam::client::{Client, NewPolicy, NewRole, Settings, Tags};
use interlock_iam::embedded::{self, Fetched, HttpKeys, Iam, Keys, Listening};
use interlock_iam::outcome::Outcome;
use interlock_iam::{Clock, Credentials};
use interlock_store::Embedded;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const ACCOUNT: &str = "123456789012";
pub(crate) const AUDIENCE: &str = "sts.amazonaws.com";

/// Everything that a test needs.
pub(crate) struct Scene {
    pub(crate) iam: Arc<Iam<Embedded>>,
    pub(crate) client: Client,
    pub(crate) address: SocketAddr,
    pub(crate) issuers: Arc<Issuers>,
    seconds: Arc<AtomicI64>,
}

pub(crate) fn root() -> Credentials {
    Credentials::lasting("AKIAROOT", "root's secret")
}

pub(crate) fn clock(seconds: &Arc<AtomicI64>) -> Clock {
    let seconds = Arc::clone(seconds);
    Clock::new(move || seconds.load(Ordering::SeqCst))
}

pub(crate) fn client(address: SocketAddr, clock: Clock) -> Client {
    let settings = Settings {
        endpoint: Some(format!("http://{address}")),
        clock,
        deadline: Duration::from_secs(30),
        ..Settings::default()
    };
    Client::new(settings, root()).unwrap()
}

impl Scene {
    pub(crate) async fn new() -> Scene {
        Scene::on(Embedded::in_memory()).await
    }

    pub(crate) async fn on(store: Embedded) -> Scene {
        let seconds = Arc::new(AtomicI64::new(1_794_902_400));
        let clock = clock(&seconds);
        Scene::with(store, clock, seconds).await
    }

    /// A server whose clock is the machine's, for clients that have no other.
    pub(crate) async fn in_real_time() -> Scene {
        Scene::with(Embedded::in_memory(), Clock::machine(), Arc::default()).await
    }

    async fn with(store: Embedded, clock: Clock, seconds: Arc<AtomicI64>) -> Scene {
        let issuers = Arc::new(Issuers::default());
        let keys: Arc<dyn Keys> = Arc::<Issuers>::clone(&issuers);
        Scene::of(store, clock, keys).await.and(issuers, seconds)
    }

    /// A server that reads the keys of issuers over HTTP.
    pub(crate) async fn with_network() -> Scene {
        let seconds = Arc::new(AtomicI64::new(1_794_902_400));
        let keys = Arc::new(HttpKeys::new(&[]).unwrap());
        let scene = Scene::of(Embedded::in_memory(), clock(&seconds), keys).await;
        scene.and(Arc::default(), seconds)
    }

    fn and(self, issuers: Arc<Issuers>, seconds: Arc<AtomicI64>) -> Scene {
        Scene { issuers, seconds, ..self }
    }

    async fn of(store: Embedded, clock: Clock, keys: Arc<dyn Keys>) -> Scene {
        let settings = embedded::Settings {
            account: ACCOUNT.to_owned(),
            root: root(),
            clock: clock.clone(),
            keys,
            http_issuers: true,
        };
        let iam = Arc::new(Iam::start(Arc::new(store), settings).await.unwrap());
        let listening = Listening::on(Arc::clone(&iam), ([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listening.address();
        tokio::spawn(listening.run());
        let client = client(address, clock);
        Scene { iam, client, address, issuers: Arc::default(), seconds: Arc::default() }
    }

    pub(crate) fn now(&self) -> i64 {
        self.seconds.load(Ordering::SeqCst)
    }

    pub(crate) fn pass_seconds(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> Clock {
        clock(&self.seconds)
    }

    /// A policy that allows this; its ARN.
    pub(crate) async fn policy(&self, name: &str, action: &str) -> String {
        let policy =
            NewPolicy { name: name.to_owned(), document: allow(action), ..NewPolicy::default() };
        done(self.client.create_policy(&policy).await).arn
    }

    /// A role that trusts nobody yet.
    pub(crate) async fn role(&self, name: &str) {
        let role = NewRole { name: name.to_owned(), trust: closed(), ..NewRole::default() };
        done(self.client.create_role(&role).await);
    }
}

#[track_caller]
pub(crate) fn done<T: std::fmt::Debug>(outcome: Outcome<T>) -> T {
    match outcome {
        Outcome::Done(value) => value,
        other => panic!("not done: {other:?}"),
    }
}

/// The code of a refusal.
#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> String {
    match outcome {
        Outcome::Refused(refusal) => refusal.code,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
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

/// Trust in one subject of an issuer.
pub(crate) fn trust(issuer: &str, subject: &str) -> String {
    let name = interlock_iam::arn::without_scheme(issuer);
    let statement = json!({
        "Sid": "Epoch1",
        "Effect": "Allow",
        "Principal": {"Federated": format!("arn:aws:iam::{ACCOUNT}:oidc-provider/{name}")},
        "Action": "sts:AssumeRoleWithWebIdentity",
        "Condition": {"StringEquals": {
            (format!("{name}:sub")): subject,
            (format!("{name}:aud")): AUDIENCE,
        }},
    });
    json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

/// Issuers whose documents are read without a network.
#[derive(Default)]
pub(crate) struct Issuers(Mutex<BTreeMap<String, Value>>);

impl Issuers {
    pub(crate) fn publish(&self, issuer: &Issuer) {
        let mut documents = self.0.lock().unwrap();
        let url = &issuer.url;
        let keys = format!("{url}/keys");
        let discovery = json!({"issuer": url, "jwks_uri": keys});
        documents.insert(format!("{url}/.well-known/openid-configuration"), discovery);
        documents.insert(keys, issuer.key_set());
    }

    /// Serves the documents of one issuer over HTTP.
    pub(crate) async fn serve(self: Arc<Issuers>, listener: tokio::net::TcpListener) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let address = listener.local_addr().unwrap();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { break };
                head.push(byte);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let found = self.fetch(&format!("http://{address}{path}")).await;
            let (status, body) = found.map_or((404, Bytes::new()), |body| (200, body));
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
        }
    }

    pub(crate) fn set(&self, url: String, document: Value) {
        self.0.lock().unwrap().insert(url, document);
    }
}

impl Keys for Issuers {
    fn fetch<'a>(&'a self, url: &'a str) -> Fetched<'a> {
        let found = self.0.lock().unwrap().get(url).map(|it| Bytes::from(it.to_string()));
        Box::pin(async move { found.ok_or_else(|| format!("there is nothing at {url}")) })
    }
}

/// An issuer with a key of its own.
pub(crate) struct Issuer {
    pub(crate) url: String,
    key: EcdsaKeyPair,
}

impl Issuer {
    pub(crate) fn new(url: &str) -> Issuer {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Issuer { url: url.to_owned(), key }
    }

    fn key_set(&self) -> Value {
        let point = self.key.public_key().as_ref();
        let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "1", "x": x, "y": y}]})
    }

    /// A token for the usual audience, good for an hour.
    pub(crate) fn token(&self, subject: &str, now: i64) -> String {
        let claims = json!({
            "iss": self.url, "sub": subject, "aud": [AUDIENCE],
            "iat": now, "nbf": now, "exp": now + 3_600,
        });
        self.sign(&json!({"alg": "ES256", "kid": "1"}), &claims)
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| BASE64.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", BASE64.encode(signature))
    }
}
