//! What sources and destinations have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// When to sync. If nothing is set: continuously.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// A cron schedule in UTC: minute, hour, day of the month, month, day of the week;
    /// or one of @hourly, @daily, @weekly, @monthly, @yearly, @annually.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        regex(
            pattern = r"^(@(annually|yearly|monthly|weekly|daily|hourly))|((((\d+,)*\d+|(\d+(\/|-)\d+)|\*(\/\d+)?)\s?){5})$"
        )
    )]
    pub schedule: Option<String>,
    /// A new value starts one sync. When the sync is done, status.lastManualSync has this value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manual: String,
}

/// The copy method of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CopyMethod {
    /// No snapshot: the volume itself is read or written.
    Direct,
    /// The deprecated name of Direct.
    None,
    /// By cloning the volume.
    Clone,
    /// By a VolumeSnapshot.
    Snapshot,
}

/// Replication by an external provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// The name of the provider: domain.com/provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Parameters for the provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// The certificate authority of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomAuthority {
    /// The Secret that holds the certificate; not together with configMapName.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secret_name: String,
    /// The ConfigMap that holds the certificate; not together with secretName.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config_map_name: String,
    /// The key of the certificate.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

impl CustomAuthority {
    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        *self == CustomAuthority::default()
    }
}

/// The result of the last mover.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MoverStatus {
    /// Successful or Failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// The log output of the mover.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub logs: String,
}
