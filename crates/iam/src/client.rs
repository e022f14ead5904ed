//! Calls of IAM and STS: one method for each, one request for each call, never repeated here.
//!
//! A list is read to its end, page by page, within the deadline of each page. The clock of the cloud,
//! as far as answers have shown it, is [`Client::cloud_seconds`].

mod answers;
mod call;
mod policies;
mod providers;
mod roles;
mod sts;

pub use answers::{
    Attached, Identity, NewPolicy, NewProvider, NewRole, Policy, PolicyVersion, Provider, Role,
    Simulated, Simulation, Tags, WebIdentity, WebIdentitySession,
};

use crate::http::{Endpoint, Http};
use crate::{Clock, EndpointError, Keys};
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Where calls go, and how long they may take.
#[derive(Debug, Clone)]
pub struct Settings {
    /// One server for IAM and STS; None is AWS.
    pub endpoint: Option<String>,
    /// Whether an endpoint without TLS may be on another machine.
    pub allow_http: bool,
    /// Certificates to trust beside the machine's.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The region in signatures. AWS's IAM has one for all.
    pub region: String,
    /// How long one request may take, connection included.
    pub deadline: Duration,
    /// The time in signatures.
    pub clock: Clock,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            endpoint: None,
            allow_http: false,
            certificates: Vec::new(),
            region: "us-east-1".to_owned(),
            // Below the time from a leader's last act to a rival's first.
            deadline: Duration::from_secs(4),
            clock: Clock::machine(),
        }
    }
}

/// What the clock of the cloud was, and when that was read.
#[derive(Debug, Clone, Copy)]
struct Dated {
    seconds: i64,
    at: Instant,
}

/// A client of one account. Clones share what they know of the cloud's clock.
#[derive(Clone)]
pub struct Client {
    http: Http,
    iam: Endpoint,
    sts: Endpoint,
    region: String,
    deadline: Duration,
    clock: Clock,
    keys: Keys,
    /// The last Date that was read, and when.
    date: Arc<Mutex<Option<Dated>>>,
}

impl Client {
    /// A client; no request is made yet.
    pub fn new(settings: Settings, keys: impl Into<Keys>) -> Result<Client, EndpointError> {
        let url = settings.endpoint.as_deref();
        let endpoint = |aws: &str| Endpoint::of(url.unwrap_or(aws), settings.allow_http);
        Ok(Client {
            http: Http::new(&settings.certificates)?,
            iam: endpoint("https://iam.amazonaws.com/")?,
            sts: endpoint("https://sts.amazonaws.com/")?,
            region: settings.region,
            deadline: settings.deadline,
            clock: settings.clock,
            keys: keys.into(),
            date: Arc::default(),
        })
    }

    /// The same client with other credentials.
    #[must_use]
    pub fn with(&self, keys: impl Into<Keys>) -> Client {
        Client { keys: keys.into(), ..self.clone() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Client")
            .field("endpoint", &self.iam.url())
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
