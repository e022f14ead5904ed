//! Files with service-account tokens: which of them a pod wants, and when one is asked for.
//!
//! A pod that mounts a projected volume of tokens gets it, and so does one whose service account has a
//! cloud role: its SDK finds the file by a variable of the environment. Each token is bound to the pod,
//! and another one takes its place when four fifths of its life are over, as a kubelet does it.

use super::files::is_of_files;
use super::outside::{FileVariable, HeldToken, TokenFile, TokenFiles, TokenMount, TokenRequest};
use super::status::Container;
use crate::kinds::SERVICE_ACCOUNT;
use crate::syncer::objects::desired::TOKEN_VOLUME_PREFIX;
use interlock_kernel::metadata::{annotation, name_of, uid_of};
use interlock_kernel::{Name, Object, Place, View};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Names the cloud role of a service account.
const ANNOTATION_ROLE: &str = "eks.amazonaws.com/role-arn";
/// Who the tokens for cloud roles are for.
const AUDIENCE: &str = "sts.amazonaws.com";
/// The volume of that token, and where it appears: as the pod identity webhook of EKS has it.
const ROLE_VOLUME: &str = "aws-iam-token";
const ROLE_PATH: &str = "/var/run/secrets/eks.amazonaws.com/serviceaccount";
const ROLE_FILE: &str = "token";
const ROLE_ARN: &str = "AWS_ROLE_ARN";
const TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
/// For how long a token is asked for where the pod does not say.
const SECONDS: u64 = 3600;
/// Who may read a file where the pod does not say: all processes here are of one user.
const MODE: u32 = 0o600;
/// The service account of a pod that names none.
const DEFAULT_ACCOUNT: &str = "default";
/// How long to wait after a request that came to nothing.
const BETWEEN_TRIES: SignedDuration = SignedDuration::from_secs(10);

/// Where the cloud is that the roles of pods are in, as far as their SDKs have to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cloud {
    /// `AWS_REGION`
    pub region: Option<String>,
    /// `AWS_ENDPOINT_URL_STS`
    pub sts_endpoint: Option<String>,
    /// `AWS_ENDPOINT_URL_IAM`
    pub iam_endpoint: Option<String>,
}

impl Cloud {
    fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("AWS_REGION", &self.region),
            ("AWS_ENDPOINT_URL_STS", &self.sts_endpoint),
            ("AWS_ENDPOINT_URL_IAM", &self.iam_endpoint),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

/// What a decision knows of the tokens of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Tokens {
    /// The pod wants none.
    #[default]
    None,
    /// Each is in its file, and good for a while.
    Good,
    /// One is missing, or most of its life is over.
    Due,
    /// The same, and a request for one came to nothing a moment ago.
    Failing {
        /// Whether the pod cannot do without it: there is no token at all.
        is_missing: bool,
    },
}

/// What one file with a token is in need of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    None,
    Renewal,
    First,
}

/// What the tokens of a pod are in need of at this time, and the first file that is in need of one.
pub(super) fn judge<'a>(
    wanted: &'a [TokenFile],
    files: &TokenFiles,
    now: Timestamp,
) -> (Tokens, Option<&'a TokenFile>) {
    if wanted.is_empty() {
        return (Tokens::None, None);
    }
    let needs = wanted.iter().map(|file| (file, need(file, &files.held, now)));
    let needs: Vec<(&TokenFile, Need)> = needs.filter(|(_, need)| *need != Need::None).collect();
    // What is missing comes first: the pod may wait for it.
    let first = needs.iter().find(|(_, need)| *need == Need::First);
    let is_missing = first.is_some();
    let Some((file, _)) = first.or_else(|| needs.first()) else { return (Tokens::Good, None) };
    let is_recent =
        |at: Timestamp| (SignedDuration::ZERO..BETWEEN_TRIES).contains(&now.duration_since(at));
    match files.failed.as_ref().is_some_and(|failed| is_recent(failed.at)) {
        true => (Tokens::Failing { is_missing }, Some(file)),
        false => (Tokens::Due, Some(file)),
    }
}

/// A token that was issued in the future was issued before the clock was set back: nobody knows how old
/// it is.
fn need(file: &TokenFile, held: &[HeldToken], now: Timestamp) -> Need {
    let Some(held) = held.iter().find(|held| held.asked == *file) else { return Need::First };
    let age = now.duration_since(held.issued);
    let is_young = Duration::try_from(age).is_ok_and(|age| age < held.life * 4 / 5);
    if is_young { Need::None } else { Need::Renewal }
}

/// The tokens that a pod wants, and what its process has to know about them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) files: Vec<TokenFile>,
    pub(super) mounts: Vec<TokenMount>,
    /// Variables of the environment that the pod does not set itself.
    pub(super) env: BTreeMap<String, String>,
}

impl Wanted {
    /// What a container of a pod wants; the error says what is missing on the cluster.
    pub(super) fn of(
        container: Container<'_>,
        view: &dyn View,
        cloud: &Cloud,
    ) -> Result<Wanted, String> {
        let Container { pod, part } = container;
        let (spec, described) = (&pod.data["spec"], part.described(pod));
        let mut wanted = Wanted::default();
        for mount in items(&described["volumeMounts"]) {
            let volume = items(&spec["volumes"]).find(|known| known["name"] == mount["name"]);
            let Some(volume) = volume.filter(|volume| has_tokens(volume)) else { continue };
            wanted.mount(volume, mount);
        }
        if let Some(role) = role_of(pod, view)? {
            wanted.take_on(&role, cloud, &described["env"]);
        }
        Ok(wanted)
    }

    fn mount(&mut self, volume: &Value, mount: &Value) {
        let name = volume["name"].as_str().unwrap_or_default();
        let mode = volume["projected"]["defaultMode"].as_u64();
        let mode = mode.and_then(|mode| u32::try_from(mode).ok()).unwrap_or(MODE);
        let is_known = self.mounts.iter().any(|known| known.name == name);
        let sources = items(&volume["projected"]["sources"]).filter(|_| !is_known);
        let tokens = sources.map(|source| &source["serviceAccountToken"]);
        for token in tokens.filter(|token| token.is_object()) {
            let audience = token["audience"].as_str().filter(|audience| !audience.is_empty());
            self.files.push(TokenFile {
                volume: name.to_owned(),
                path: token["path"].as_str().unwrap_or_default().to_owned(),
                audience: audience.map(str::to_owned),
                seconds: token["expirationSeconds"].as_u64().unwrap_or(SECONDS),
                mode,
            });
        }
        let path = mount["mountPath"].as_str().unwrap_or_default().to_owned();
        self.mounts.push(TokenMount { name: name.to_owned(), path, variable: None });
    }

    /// Whoever sets one of these variables in the container knows better.
    fn take_on(&mut self, role: &str, cloud: &Cloud, env: &Value) {
        let is_set = |name: &str| items(env).any(|variable| variable["name"] == name);
        let variables = [(ROLE_ARN, role)].into_iter().chain(cloud.variables());
        for (name, value) in variables.filter(|(name, _)| !is_set(name)) {
            self.env.insert(name.to_owned(), value.to_owned());
        }
        let is_mounted = self.mounts.iter().any(|known| known.name == ROLE_VOLUME);
        if is_set(TOKEN_FILE) || is_mounted {
            return;
        }
        self.files.push(TokenFile {
            volume: ROLE_VOLUME.to_owned(),
            path: ROLE_FILE.to_owned(),
            audience: Some(AUDIENCE.to_owned()),
            seconds: SECONDS,
            mode: MODE,
        });
        self.mounts.push(TokenMount {
            name: ROLE_VOLUME.to_owned(),
            path: ROLE_PATH.to_owned(),
            variable: Some(FileVariable {
                name: TOKEN_FILE.to_owned(),
                file: ROLE_FILE.to_owned(),
            }),
        });
    }
}

/// Whether the machine may have made files for a pod. Of most pods it is certain that it made none,
/// and it is not asked.
pub(super) fn may_have(pod: &Object, view: &dyn View) -> bool {
    let spec = &pod.data["spec"];
    items(&spec["volumes"]).any(|volume| has_tokens(volume) || is_of_files(volume))
        || account_of(pod) != DEFAULT_ACCOUNT
        || role_of(pod, view).is_ok_and(|role| role.is_some())
}

/// Whether tokens of service accounts are in a volume that is made here.
pub(super) fn has_tokens(volume: &Value) -> bool {
    let name = volume["name"].as_str().unwrap_or_default();
    let mut sources = items(&volume["projected"]["sources"]);
    !name.starts_with(TOKEN_VOLUME_PREFIX)
        && sources.any(|source| source["serviceAccountToken"].is_object())
}

/// The cloud role of a pod's service account. One that the pod names and that the cache does not show yet
/// is waited for: without it the process would begin without its rights.
fn role_of(pod: &Object, view: &dyn View) -> Result<Option<String>, String> {
    let name = account_of(pod);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let found = view.get(Place::CLUSTER, &SERVICE_ACCOUNT, &Name::within(namespace, name));
    match found {
        Some(found) => Ok(annotation(&found, ANNOTATION_ROLE).map(str::to_owned)),
        None if name == DEFAULT_ACCOUNT => Ok(None),
        None => Err(format!("ServiceAccount {name} does not exist on this cluster")),
    }
}

fn account_of(pod: &Object) -> &str {
    let name = pod.data["spec"]["serviceAccountName"].as_str();
    name.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_ACCOUNT)
}

/// The request for the token of a file.
pub(super) fn request(pod: &Object, file: &TokenFile) -> TokenRequest {
    TokenRequest {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        service_account: account_of(pod).to_owned(),
        pod_name: name_of(pod).to_owned(),
        pod_uid: uid_of(pod).to_owned(),
        file: file.clone(),
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests;
