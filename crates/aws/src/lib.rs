//! Credentials of AWS, found where AWS's own tools find them: in variables, in profiles, by the token of a service
//! account, from the container, from the instance.
//!
//! AWS's own crate knows the places and their order. It is in a crate of its own because of what it brings with it.

mod web;

use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::ProvideCredentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_types::region::Region;
use interlock_iam::http::{EndpointError, Http};
use interlock_iam::{Credentials, Source};
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;

/// Credentials are asked for again this long before they expire, and while that fails the old ones are used.
const BEFORE_EXPIRY: Duration = Duration::from_secs(300);
/// So often at most, if the new ones are no newer.
const PAUSE: Duration = Duration::from_secs(10);
/// The region of requests to STS if nobody says one: the one where IAM is.
const REGION: &str = "us-east-1";

/// The places where AWS's tools look for credentials, in their order.
#[derive(Debug)]
pub struct Chain {
    places: DefaultCredentialsChain,
    found: Mutex<Option<Found>>,
}

/// Credentials that were found.
#[derive(Debug, Clone)]
struct Found {
    credentials: Credentials,
    expires: Option<SystemTime>,
    /// Not asked for again before.
    rest_until: SystemTime,
}

impl Found {
    fn is_to_be_renewed(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| now + BEFORE_EXPIRY >= expires) && now >= self.rest_until
    }

    fn is_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}

impl Chain {
    /// The places of this process: its variables, its files, its machine. Nothing is asked yet.
    pub async fn of_process() -> Result<Chain, EndpointError> {
        let web = web::Web::new(Http::new(&[])?);
        let settings = ProviderConfig::without_region().with_http_client(web);
        let region = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
            .or_else(ProfileFileRegionProvider::new())
            .or_else(Region::from_static(REGION));
        let places = DefaultCredentialsChain::builder().configure(settings).region(region);
        Ok(Chain { places: places.build().await, found: Mutex::default() })
    }

    async fn find(&self) -> Result<Found, String> {
        let found = self.places.provide_credentials().await.map_err(|error| whole(&error))?;
        let credentials = Credentials {
            access_key_id: found.access_key_id().to_owned(),
            secret_access_key: found.secret_access_key().to_owned(),
            session_token: found.session_token().map(str::to_owned),
        };
        let rest_until = SystemTime::now() + PAUSE;
        Ok(Found { credentials, expires: found.expiry(), rest_until })
    }
}

impl Source for Chain {
    fn current(&self) -> Pin<Box<dyn Future<Output = Result<Credentials, String>> + Send + '_>> {
        Box::pin(async {
            let mut known = self.found.lock().await;
            let now = SystemTime::now();
            if let Some(found) = &*known
                && !found.is_to_be_renewed(now)
                && !found.is_expired(now)
            {
                return Ok(found.credentials.clone());
            }
            match (self.find().await, known.as_mut()) {
                (Ok(found), _) => {
                    tracing::debug!(key = ?found.credentials, "found credentials of AWS");
                    Ok(known.insert(found).credentials.clone())
                }
                (Err(why), Some(old)) if !old.is_expired(now) => {
                    tracing::warn!(%why, "the credentials of AWS expire soon, and there are no new ones");
                    old.rest_until = now + PAUSE;
                    Ok(old.credentials.clone())
                }
                (Err(why), _) => Err(why),
            }
        })
    }
}

/// Where credentials come from that this process finds by itself.
pub async fn of_process() -> Result<Arc<dyn Source>, EndpointError> {
    Ok(Arc::new(Chain::of_process().await?))
}

/// An error with all its causes. AWS's say no more than their own part.
fn whole(error: &CredentialsError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_renewed_before_they_expire_and_not_at_every_request() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let seconds = Duration::from_secs;
        let found = |expires, rest_until| Found {
            credentials: Credentials::lasting("a", "b"),
            expires,
            rest_until,
        };
        let lasting = found(None, now);
        assert!(!lasting.is_to_be_renewed(now) && !lasting.is_expired(now));
        let fresh = found(Some(now + seconds(301)), now);
        assert!(!fresh.is_to_be_renewed(now) && !fresh.is_expired(now));
        let old = found(Some(now + seconds(300)), now);
        assert!(old.is_to_be_renewed(now) && !old.is_expired(now));
        let just_asked = found(Some(now + seconds(60)), now + seconds(1));
        assert!(!just_asked.is_to_be_renewed(now));
        assert!(found(Some(now), now + seconds(9)).is_expired(now));
    }
}
