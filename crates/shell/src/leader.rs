//! Which of several processes acts: leader election over a Lease.
//!
//! What controllers write is safe without it, because every write carries what it saw. It only
//! keeps two processes from doing the same work against each other.
//!
//! No two clocks are compared. A rival counts from when it itself saw the lease change; the leader
//! counts from when it sent the renewal, which is earlier, and gives up sooner than a rival may
//! take over.

use crate::backoff::jittered;
use crate::stop::{Stop, Stopper};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

/// Which lease is fought over, by whom, and how long it holds.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    /// Where it is.
    pub namespace: String,
    /// What it is called: one for all that act together.
    pub name: String,
    /// Who we are: no other process has this name, not even this one after a restart.
    pub identity: String,
    /// How long a rival waits after it last saw the leader renew it.
    pub holds_for: Duration,
    /// How long the leader acts after it last sent a renewal that was acknowledged: shorter.
    pub acts_for: Duration,
    /// How often it is renewed, or tried for.
    pub tries_every: Duration,
}

impl LeaseSettings {
    /// A lease of this name in `interlock-system`, with the times that Kubernetes itself uses.
    pub fn new(name: &str, identity: &str) -> Self {
        LeaseSettings {
            namespace: "interlock-system".to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            holds_for: Duration::from_secs(15),
            acts_for: Duration::from_secs(10),
            tries_every: Duration::from_secs(2),
        }
    }
}

/// Whether we lead, and until when at the least.
#[derive(Debug, Clone)]
pub struct Leadership(watch::Receiver<Option<Instant>>);

impl Leadership {
    /// Whether we lead at this moment, by our own clock and not by anybody's word.
    pub fn holds(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Returns once we lead.
    pub async fn gained(&self) {
        let mut until = self.0.clone();
        let leads = |until: &Option<Instant>| until.is_some_and(|until| Instant::now() < until);
        if until.wait_for(leads).await.is_err() {
            // Nobody campaigns any more: we never will.
            std::future::pending().await
        }
    }

    /// Returns once we no longer lead; at once, if we do not.
    pub async fn lost(&self) {
        let mut until = self.0.clone();
        loop {
            let Some(end) = *until.borrow_and_update() else { return };
            tokio::select! {
                () = tokio::time::sleep_until(end) => {
                    if until.borrow().is_none_or(|until| until <= Instant::now()) {
                        return;
                    }
                }
                changed = until.changed() => {
                    if changed.is_err() {
                        tokio::time::sleep_until(end).await;
                        return;
                    }
                }
            }
        }
    }
}

/// A campaign that goes on until it is ended.
#[derive(Debug)]
pub struct Campaign {
    leadership: Leadership,
    stopper: Stopper,
    task: JoinHandle<()>,
}

impl Campaign {
    /// Begins to try for a lease.
    pub fn begin(client: Client, settings: LeaseSettings) -> Campaign {
        let (sender, receiver) = watch::channel(None);
        let stopper = Stopper::new();
        let stop = stopper.signal();
        let api = Api::namespaced(client, &settings.namespace);
        let candidate = Candidate { api, settings, observed: None };
        let task = tokio::spawn(candidate.campaign(sender, stop));
        Campaign { leadership: Leadership(receiver), stopper, task }
    }

    /// Whether we lead.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Ends it and gives the lease back, so that another need not wait. To be called after all who
    /// act under it have ended.
    pub async fn end(self) {
        self.stopper.stop();
        let _ = self.task.await;
    }
}

struct Candidate {
    api: Api<Lease>,
    settings: LeaseSettings,
    observed: Option<Observed>,
}

/// The lease as it was when it last changed, and when we saw that.
struct Observed {
    resource_version: Option<String>,
    at: Instant,
}

impl Candidate {
    async fn campaign(mut self, leads: watch::Sender<Option<Instant>>, stop: Stop) {
        let name = self.settings.name.clone();
        let mut went_well = true;
        while !stop.is_asked() {
            let sent_at = Instant::now();
            let has_led = leads.borrow().is_some_and(|until| sent_at < until);
            let attempt = timeout(self.settings.acts_for, self.try_once(sent_at)).await;
            let attempt =
                attempt.unwrap_or_else(|_| Err("the server did not answer in time".to_owned()));
            let is_new_trouble = std::mem::replace(&mut went_well, attempt.is_ok());
            match attempt {
                Ok(true) => {
                    if !has_led {
                        info!(
                            lease = name,
                            identity = self.settings.identity,
                            "acquired the lease; this process leads"
                        );
                    }
                    leads.send_replace(Some(sent_at + self.settings.acts_for));
                }
                Ok(false) => {
                    if has_led {
                        warn!(lease = name, "another process holds the lease");
                    }
                    leads.send_replace(None);
                }
                // What we had holds until its end; only that it was not renewed is known.
                Err(reason) if has_led || is_new_trouble => {
                    warn!(lease = name, reason, has_led, "cannot renew or acquire the lease");
                }
                Err(reason) => debug!(lease = name, reason, "still cannot acquire the lease"),
            }
            tokio::select! {
                () = stop.asked() => {}
                () = sleep(jittered(self.settings.tries_every)) => {}
            }
        }
        let has_led = leads.borrow().is_some();
        leads.send_replace(None);
        if has_led && let Err(reason) = self.give_back().await {
            debug!(lease = name, reason, "cannot release the lease; it expires by itself");
        }
    }

    /// Takes or renews the lease if nobody else may have it; whether it is ours.
    async fn try_once(&mut self, now: Instant) -> Result<bool, String> {
        let found = self.api.get_opt(&self.settings.name).await.map_err(|e| e.to_string())?;
        let Some(lease) = found else {
            let created = self.api.create(&PostParams::default(), &self.lease(None)).await;
            return created.map(|_| true).map_err(|error| error.to_string());
        };
        self.observe(&lease, now);
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        let is_free = holder.is_empty() || holder == self.settings.identity;
        if !is_free && !self.has_run_out(&spec, now) {
            return Ok(false);
        }
        let renewed = self.lease(Some(&lease));
        let params = PostParams::default();
        let replaced = self.api.replace(&self.settings.name, &params, &renewed).await;
        // If another one was faster, the next try sees who.
        self.observe(&replaced.map_err(|error| error.to_string())?, now);
        Ok(true)
    }

    fn observe(&mut self, lease: &Lease, now: Instant) {
        let resource_version = lease.metadata.resource_version.clone();
        let is_known =
            self.observed.as_ref().is_some_and(|seen| seen.resource_version == resource_version);
        if !is_known {
            self.observed = Some(Observed { resource_version, at: now });
        }
    }

    /// Whether the lease did not change for as long as it holds, since we first saw it so.
    fn has_run_out(&self, spec: &LeaseSpec, now: Instant) -> bool {
        let seconds = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
        let holds_for = seconds.map_or(self.settings.holds_for, Duration::from_secs);
        self.observed.as_ref().is_some_and(|seen| now.duration_since(seen.at) > holds_for)
    }

    /// The lease in our name, over the version that was seen.
    fn lease(&self, before: Option<&Lease>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let spec = before.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let is_renewal = spec.holder_identity.as_deref() == Some(&self.settings.identity);
        let seconds = self.settings.holds_for.as_secs().max(1);
        let transitions = spec.lease_transitions.unwrap_or(0);
        Lease {
            metadata: ObjectMeta {
                name: Some(self.settings.name.clone()),
                namespace: Some(self.settings.namespace.clone()),
                ..before.map(|lease| lease.metadata.clone()).unwrap_or_default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.settings.identity.clone()),
                lease_duration_seconds: Some(i32::try_from(seconds).unwrap_or(i32::MAX)),
                acquire_time: spec.acquire_time.filter(|_| is_renewal).or(Some(now.clone())),
                renew_time: Some(now),
                lease_transitions: Some(match before {
                    Some(_) if !is_renewal => transitions.saturating_add(1),
                    _ => transitions,
                }),
                ..LeaseSpec::default()
            }),
        }
    }

    async fn give_back(&self) -> Result<(), String> {
        let name = &self.settings.name;
        let mut lease = self.api.get(name).await.map_err(|error| error.to_string())?;
        let Some(spec) = &mut lease.spec else { return Ok(()) };
        if spec.holder_identity.as_deref() != Some(&self.settings.identity) {
            return Ok(());
        }
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
        let replaced = self.api.replace(name, &PostParams::default(), &lease).await;
        replaced.map(|_| ()).map_err(|error| error.to_string())
    }
}
