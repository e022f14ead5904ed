//! The embedded IAM and STS of `interlock up`: on the hub's own store, on loopback.

use super::identities::Account;
use super::issuers::Issuers;
use crate::serving::default_directory;
use anyhow::Context;
use interlock_apiserver::Server;
use interlock_apiserver::access::private_file;
use interlock_iam::embedded::{HttpKeys, Iam, Listening, Settings};
use interlock_iam::{Clock, Credentials};
use interlock_placement::runtime::tokens::Cloud;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The account of the embedded IAM: one that AWS gives nobody.
const ACCOUNT: &str = "000000000000";
const REGION: &str = "us-east-1";
/// The file with its address and its keys, as the AWS command line reads it.
const FILE: &str = "aws-config";

/// An IAM and STS that listens.
pub(crate) struct EmbeddedIam {
    /// Where it is reached.
    pub(crate) url: String,
    /// The file with its address and its keys.
    pub(crate) config: PathBuf,
    credentials: Credentials,
    task: JoinHandle<()>,
}

/// Where and how it runs.
pub(crate) struct Options<'a> {
    pub(crate) server: &'a Server,
    /// What the issuers of the server begin with.
    pub(crate) issuers: &'a str,
    pub(crate) directory: &'a Path,
    pub(crate) listen: SocketAddr,
}

impl EmbeddedIam {
    /// Starts it, and writes down how it is reached.
    pub(crate) async fn start(options: &Options<'_>) -> anyhow::Result<EmbeddedIam> {
        let config = options.directory.join(FILE);
        let credentials = kept_or_new(&config)?;
        let others = HttpKeys::new(&[]).context("cannot read documents of issuers")?;
        let issuers = Issuers::new(options.server, options.issuers, others);
        let settings = Settings {
            account: ACCOUNT.to_owned(),
            root: credentials.clone(),
            clock: Clock::machine(),
            keys: Arc::new(issuers),
            // Those of this server are, if it serves without TLS.
            http_issuers: true,
        };
        let iam = Iam::start(options.server.store(), settings).await;
        let iam = Arc::new(iam.context("cannot start the embedded IAM")?);
        let listening =
            Listening::on(iam, options.listen).await.context("set another --iam-listen")?;
        let url = format!("http://{}", listening.address());
        private_file::replace(&config, written(&url, &credentials).as_bytes())
            .with_context(|| format!("cannot write {}", config.display()))?;
        let task = tokio::spawn(listening.run());
        Ok(EmbeddedIam { url, config, credentials, task })
    }

    /// The account, for the controllers.
    pub(crate) fn account(&self) -> Account {
        let endpoint = Some(self.url.clone());
        Account { endpoint, keys: self.credentials.clone().into(), is_embedded: true }
    }

    /// What the SDKs of pods have to be told to find it.
    pub(crate) fn for_pods(&self) -> Cloud {
        Cloud {
            region: Some(REGION.to_owned()),
            sts_endpoint: Some(self.url.clone()),
            iam_endpoint: Some(self.url.clone()),
        }
    }

    /// Ends it. Calls that are under way are still carried out, as far as the store lets them.
    pub(crate) async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// The account of the `interlock up` on this machine, if there is one.
pub(crate) fn of_this_machine() -> anyhow::Result<Option<Account>> {
    let path = default_directory()?.join(FILE);
    let text = private_file::read(&path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.as_deref().and_then(|text| {
        let (keys, endpoint) = (read(text)?.into(), value(text, "endpoint_url"));
        Some(Account { endpoint, keys, is_embedded: true })
    }))
}

/// The keys of the last start, or new ones at the first.
fn kept_or_new(config: &Path) -> anyhow::Result<Credentials> {
    let kept = private_file::read(config);
    let kept = kept.with_context(|| format!("cannot read {}", config.display()))?;
    match kept.as_deref().and_then(read) {
        Some(credentials) => Ok(credentials),
        None => Credentials::random().context("cannot make keys for the embedded IAM"),
    }
}

fn read(text: &str) -> Option<Credentials> {
    let id = value(text, "aws_access_key_id")?;
    Some(Credentials::lasting(id, value(text, "aws_secret_access_key")?))
}

fn value(text: &str, name: &str) -> Option<String> {
    let named = |line: &str| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(named).filter(|value| !value.is_empty())
}

fn written(url: &str, credentials: &Credentials) -> String {
    let Credentials { access_key_id, secret_access_key, .. } = credentials;
    format!(
        "# Made by `interlock up`. These keys may do everything in its embedded IAM and STS.\n\
         [default]\nregion = {REGION}\nendpoint_url = {url}\n\
         aws_access_key_id = {access_key_id}\naws_secret_access_key = {secret_access_key}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written_and_stay_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let first = kept_or_new(&path).unwrap();
        assert_ne!(first, kept_or_new(&path).unwrap());
        private_file::replace(&path, written("http://x", &first).as_bytes()).unwrap();
        assert_eq!(kept_or_new(&path).unwrap(), first);
        std::fs::write(&path, "aws_access_key_id =\n").unwrap();
        assert_ne!(kept_or_new(&path).unwrap(), first);
    }
}
