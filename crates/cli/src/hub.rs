//! The hub, as commands about objects of one system need it: found, asked page by page, and explained when it refuses.

use crate::location::{Found, Location};
use anyhow::{Context, anyhow};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// How many objects are asked for at a time.
const PAGE: u32 = 500;
/// A hub that does not answer is not waited for.
const CONNECT: Duration = Duration::from_secs(5);

/// The hub.
pub(crate) struct Hub {
    pub(crate) client: Client,
    source: String,
    /// Whose kinds the commands are about, in words.
    system: &'static str,
}

impl Hub {
    /// Finds the hub. Nothing is asked yet.
    pub(crate) async fn open(location: &Location, system: &'static str) -> anyhow::Result<Hub> {
        let Found { source, mut config, .. } = location.find().await?;
        config.connect_timeout = Some(CONNECT);
        let client = Client::try_from(config);
        let client = client.with_context(|| format!("cannot make a client of {source}"))?;
        Ok(Hub { client, source, system })
    }

    /// The objects of an API, page by page.
    pub(crate) async fn list<K>(&self, api: &Api<K>, what: &str) -> anyhow::Result<Vec<K>>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let mut params = ListParams::default().limit(PAGE);
        let mut items = Vec::new();
        loop {
            let page = api.list(&params).await;
            let page = page.map_err(|error| self.told(error, &format!("list {what}")))?;
            items.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                None => return Ok(items),
                Some(token) => params = params.continue_token(&token),
            }
        }
    }

    /// What went wrong, for people.
    pub(crate) fn told(&self, error: kube::Error, what: &str) -> anyhow::Error {
        match error {
            kube::Error::Api(status) if status.code == 404 => anyhow!(
                "cannot {what}: the API server does not serve the kinds of {}\nnext: interlock up, \
                 or kubectl apply -f the output of `interlock manifests`",
                self.system
            ),
            kube::Error::Api(status) => anyhow!("cannot {what}: {}", status.message),
            other => anyhow!(
                "cannot {what}: the hub does not answer ({}): {other}\nnext: interlock up, or name \
                 another one with --kubeconfig FILE",
                self.source
            ),
        }
    }
}
