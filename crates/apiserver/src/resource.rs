//! A served resource in one version: what its objects are called, what they look like, what can be done to them.

use crate::schema::Schema;
use std::sync::Arc;

/// The identity of kinds that the hub publishes.
pub(crate) const HUB_IDENTITY: &str = "hub";

/// One resource in one version, built in or custom.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    /// The API group; empty for core.
    pub group: Arc<str>,
    /// The version that this describes.
    pub version: Arc<str>,
    /// The version that is stored. Versions differ in name only: there is no conversion but for events and autoscalers.
    pub storage_version: Arc<str>,
    /// `Deployment`.
    pub kind: Arc<str>,
    /// `DeploymentList`.
    pub list_kind: Arc<str>,
    /// `deployments`: the name in paths.
    pub plural: Arc<str>,
    /// `deployment`.
    pub singular: Arc<str>,
    /// `deploy`.
    pub short_names: Vec<Arc<str>>,
    /// `all`.
    pub categories: Vec<Arc<str>>,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
    /// Whether `/status` is a resource of its own; then a write of the object leaves the status alone.
    pub has_status: bool,
    /// Where `/scale` finds its numbers, if it is served.
    pub scale: Option<Scale>,
    /// Whose kind this is: `-` built in, `hub` published by the hub, else the id of the cluster that owns the CRD.
    pub identity: Arc<str>,
    /// What the objects look like.
    pub schema: Arc<Schema>,
    /// The columns of a custom kind's Table; built-in kinds have printers of their own.
    pub columns: Vec<Column>,
    /// The fields of a custom kind that objects can be selected by: `spec.color`.
    pub selectable: Vec<Arc<str>>,
    /// The warning for clients that use this version, if it is deprecated.
    pub deprecation: Option<Arc<str>>,
}

/// Where `/scale` finds its numbers, as paths of field names: `["spec", "replicas"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The wanted number.
    pub spec_replicas: Vec<Arc<str>>,
    /// The seen number.
    pub status_replicas: Vec<Arc<str>>,
    /// The selector as a text; custom kinds may have none.
    pub label_selector: Option<Vec<Arc<str>>>,
}

/// One additional printer column of a custom kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its heading.
    pub name: Arc<str>,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_name: Arc<str>,
    /// `int32`, `password` and so on; mostly empty.
    pub format: Arc<str>,
    /// What it shows, for a person.
    pub description: Arc<str>,
    /// Columns above 0 are shown with `-o wide` only.
    pub priority: i32,
    /// Where its value is: `.spec.replicas`.
    pub json_path: Arc<str>,
}

impl Resource {
    /// `apps/v1`, or `v1` for core.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The version that its objects are stored in. Both faces of an event are one object.
    pub(crate) fn stored_api_version(&self) -> String {
        match &*self.group {
            "" | "events.k8s.io" => "v1".to_owned(),
            group => format!("{group}/{}", self.storage_version),
        }
    }

    /// Whether the kind comes from a CRD.
    pub(crate) fn is_custom(&self) -> bool {
        &*self.identity != "-"
    }

    /// Whether the kind comes from a CRD of the logical cluster itself, not from the hub.
    pub(crate) fn is_defined_here(&self) -> bool {
        self.is_custom() && &*self.identity != HUB_IDENTITY
    }
}
