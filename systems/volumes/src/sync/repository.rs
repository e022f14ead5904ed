//! The Secret of a repository, read: where it is and how it is opened, or what is wrong with it.

use crate::kinds::{CONFIG_MAP, SECRET};
use crate::objects::name_of;
use crate::outside::Repository;
use interlock_api::volumes::CustomAuthority;
use interlock_kernel::{Name, Object, Place, View};
use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

const ADDRESS: &str = "RESTIC_REPOSITORY";
const PASSWORD: &str = "RESTIC_PASSWORD";
/// The keys that have an effect.
const READ: [&str; 11] = [
    ADDRESS,
    PASSWORD,
    "RESTIC_COMPRESSION",
    "RESTIC_PACK_SIZE",
    "RESTIC_READ_CONCURRENCY",
    "RESTIC_REST_USERNAME",
    "RESTIC_REST_PASSWORD",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
];
/// What the keys begin with that VolSync passes on to restic.
const PASSED_ON: [&str; 9] =
    ["RESTIC_", "AWS_", "ST_", "OS_", "B2_", "AZURE_", "GOOGLE_", "RCLONE_", "FILEN_"];

/// A repository that can be opened.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) repository: Repository,
    /// Keys that VolSync would pass on, and that have no effect here.
    pub(crate) ignored: Vec<String>,
    /// The version of the Secret.
    pub(crate) version: String,
}

impl Opened {
    /// Where the repository is.
    pub(crate) fn address(&self) -> &str {
        self.repository.settings.get(ADDRESS).map(String::as_str).unwrap_or_default()
    }
}

/// What is wrong, as a reason of the condition Healthy and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unhealthy {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Unhealthy {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Unhealthy {
        Unhealthy { reason, message: message.into() }
    }
}

/// Reads the Secret of a repository, as the cache shows it.
pub(crate) fn open(
    namespace: &str,
    secret: &str,
    authority: Option<&CustomAuthority>,
    view: &dyn View,
) -> Result<Opened, Unhealthy> {
    if secret.is_empty() {
        return Err(incomplete("no Secret is named as repository".to_owned()));
    }
    let found = view.get(Place::CLUSTER, &SECRET, &Name::within(namespace, secret));
    let Some(found) = found else {
        return Err(incomplete(format!("Secret {secret} does not exist")));
    };
    let settings = texts(&found)?;
    for key in [ADDRESS, PASSWORD] {
        if settings.get(key).is_none_or(String::is_empty) {
            return Err(incomplete(format!("Secret {secret} has no {key}")));
        }
    }
    let address = settings.get(ADDRESS).map(String::as_str).unwrap_or_default();
    is_supported(address)?;
    let named = authority.filter(|authority| !authority.is_empty());
    let authority = named.map(|named| certificate(namespace, named, view)).transpose()?;
    let is_ignored = |key: &&String| {
        !READ.contains(&key.as_str()) && PASSED_ON.iter().any(|prefix| key.starts_with(prefix))
    };
    Ok(Opened {
        ignored: settings.keys().filter(is_ignored).cloned().collect(),
        version: found.metadata.resource_version.clone().unwrap_or_default(),
        repository: Repository {
            settings: settings
                .into_iter()
                .filter(|(key, _)| READ.contains(&key.as_str()))
                .collect(),
            authority,
        },
    })
}

/// Whether a certificate authority of one's own can be had for this repository.
pub(crate) fn takes_authority(opened: &Opened) -> bool {
    opened.address().starts_with("rest:")
}

fn incomplete(message: String) -> Unhealthy {
    Unhealthy::new("SecretIncomplete", message)
}

fn is_supported(address: &str) -> Result<(), Unhealthy> {
    let is_web = |rest: &str| rest.starts_with("http://") || rest.starts_with("https://");
    let fits = match address.split_once(':') {
        _ if address.starts_with('/') => true,
        Some(("local", path)) => path.starts_with('/'),
        Some(("rest", rest)) => is_web(rest),
        Some(("s3", rest)) => !rest.is_empty(),
        Some(_) | None => false,
    };
    if fits {
        return Ok(());
    }
    let scheme = address.split_once(':').map_or(address, |(scheme, _)| scheme);
    // The rest of the address may hold a password.
    let scheme: String = scheme.chars().take(20).collect();
    Err(Unhealthy::new(
        "RepositoryNotSupported",
        format!(
            "{ADDRESS} begins with {scheme:?}, which is not supported; use an absolute path, \
             local:/path, rest:http://..., rest:https://... or s3:..."
        ),
    ))
}

/// The texts of a Secret, all of them.
fn texts(secret: &Object) -> Result<BTreeMap<String, String>, Unhealthy> {
    let mut texts = BTreeMap::new();
    for (key, value) in secret.data["data"].as_object().into_iter().flatten() {
        let text = decoded(value).ok_or_else(|| {
            incomplete(format!("{key} of Secret {} is not text", name_of(secret)))
        })?;
        texts.insert(key.clone(), text);
    }
    Ok(texts)
}

fn decoded(value: &Value) -> Option<String> {
    let bytes = ByteString::deserialize(value).ok()?.0;
    String::from_utf8(bytes).ok()
}

fn certificate(
    namespace: &str,
    named: &CustomAuthority,
    view: &dyn View,
) -> Result<String, Unhealthy> {
    let (kind, name) = match (named.secret_name.as_str(), named.config_map_name.as_str()) {
        ("", "") => return Err(incomplete("customCA names no Secret and no ConfigMap".into())),
        ("", config_map) => (CONFIG_MAP, config_map),
        (secret, "") => (SECRET, secret),
        _ => return Err(incomplete("customCA names a Secret and a ConfigMap".into())),
    };
    let found = view.get(Place::CLUSTER, &kind, &Name::within(namespace, name));
    let value = found.as_ref().map(|found| &found.data["data"][&named.key]);
    let text = value.and_then(|value| match kind == SECRET {
        true => decoded(value),
        false => value.as_str().map(str::to_owned),
    });
    text.filter(|text| !text.is_empty()).ok_or_else(|| {
        incomplete(format!("customCA: {kind} {name} has no certificate under {:?}", named.key))
    })
}
