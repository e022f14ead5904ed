//! What sources and destinations have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// When to sync. Without any: always.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// When to sync, as cron has it, in UTC: minute, hour, day of the month, month, day of the week;
    /// or one of @hourly, @daily, @weekly, @monthly, @yearly, @annually.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        regex(
            pattern = r"^(@(annually|yearly|monthly|weekly|daily|hourly))|((((\d+,)*\d+|(\d+(\/|-)\d+)|\*(\/\d+)?)\s?){5})$"
        )
    )]
    pub schedule: Option<String>,
    /// A word that asks for one sync. Once it is done, status.lastManualSync is this word, and the
    /// next sync comes with another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manual: String,
}

/// How an image of a volume comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CopyMethod {
    /// None is made: the volume itself is read or written.
    Direct,
    /// The old word for Direct.
    None,
    /// By cloning the volume.
    Clone,
    /// By a VolumeSnapshot.
    Snapshot,
}

/// A replication by somebody else than VolSync.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// Who does it: domain.com/provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// What the provider is told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// Whom to believe who a repository is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomAuthority {
    /// The Secret that holds the certificate; not together with configMapName.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secret_name: String,
    /// The ConfigMap that holds the certificate; not together with secretName.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config_map_name: String,
    /// The key of the certificate in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

impl CustomAuthority {
    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        *self == CustomAuthority::default()
    }
}

/// How the latest mover fared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoverStatus {
    /// Successful or Failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// What it had to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub logs: String,
}
