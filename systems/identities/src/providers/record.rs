//! What a WorkloadCluster says of its OIDC provider, in an annotation.

use interlock_api::identities::Mark;
use interlock_api::names::ANNOTATION_PROVIDER;
use interlock_kernel::Object;
use interlock_kernel::metadata::annotation;
use serde::{Deserialize, Serialize};

/// What is known of the OIDC provider of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The issuer that a provider was made for, or is being made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Which process may have calls under way about the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// When the cloud was last compared, by the clock of the hub, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<i64>,
}

impl Record {
    /// Reads the annotation. One that cannot be read says that anybody may have calls under way.
    pub(crate) fn read(cluster: &Object) -> Record {
        let Some(text) = annotation(cluster, ANNOTATION_PROVIDER) else {
            return Record::default();
        };
        serde_json::from_str(text).unwrap_or_else(|_| Record {
            mark: Some(Mark { instance: "unknown".to_owned(), ..Mark::default() }),
            ..Record::default()
        })
    }

    /// As the annotation has it.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
