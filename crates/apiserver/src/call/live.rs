//! The object that a call names, as it is now.

use super::Call;
use crate::object;
use crate::schema;
use crate::status::Status;
use crate::storage;
use interlock_store::{Key, Revision, Value as Stored};
use serde_json::{Value, json};
use std::sync::Arc;

/// An object as it was found.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    /// With its resourceVersion.
    pub(crate) object: Value,
    /// When it was written; none for an object of the shared layer that was never written here.
    pub(crate) modified: Option<Revision>,
    /// As it is stored.
    stored: Option<Arc<Stored>>,
}

impl Live {
    /// Whether this is what is stored already, byte for byte. An object that would be stored in another form
    /// than it is, say in a new version of its kind, is written again: so does upstream.
    pub(crate) fn is_stored_as(&self, encoded: &[u8]) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.bytes() == encoded)
    }
}

impl Call {
    /// The key of the object that the call names.
    pub(crate) fn key(&self) -> Key {
        self.key_of(&self.name)
    }

    /// The key of an object of the same resource in the same namespace.
    pub(crate) fn key_of(&self, name: &str) -> Key {
        Key::new(
            storage::table(&self.resource),
            storage::row(&self.cluster.id, &self.namespace, name),
        )
    }

    /// How many bytes are stored of the object that the call names.
    pub(crate) async fn stored_bytes(&self) -> Result<usize, Status> {
        let found = self.server.storage().get(&self.key()).await?;
        Ok(found.map_or(0, |versioned| versioned.value.bytes().len()))
    }

    /// The object that the call names, as it is now.
    pub(crate) async fn live(&self) -> Result<Option<Live>, Status> {
        self.live_named(&self.name).await
    }

    async fn live_named(&self, name: &str) -> Result<Option<Live>, Status> {
        if let Some(versioned) = self.server.storage().get(&self.key_of(name)).await? {
            let mut object = object::decode(&versioned);
            self.after_reading(&mut object);
            let (modified, stored) = (Some(versioned.modified), Some(versioned.value));
            return Ok(Some(Live { object, modified, stored }));
        }
        Ok(self.shared_object(name).map(|object| Live { object, modified: None, stored: None }))
    }

    /// The object that the call names, or 404.
    pub(crate) async fn found(&self) -> Result<Live, Status> {
        self.live().await?.ok_or_else(|| self.not_found())
    }

    /// Defaults that the schema has learnt since the object was stored, and the version that was asked for.
    pub(crate) fn after_reading(&self, object: &mut Value) {
        if !self.resource.is_custom() {
            return;
        }
        if self.resource.schema.has_defaults() {
            schema::apply_defaults(object, self.resource.schema.shape());
        }
        object["apiVersion"] = json!(self.resource.api_version());
    }

    /// 404 for the object that the call names.
    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(&self.resource.group, &self.resource.plural, &self.name)
    }

    /// 409 for the object that the call names.
    pub(crate) fn conflict(&self, why: impl std::fmt::Display) -> Status {
        Status::conflict(&self.resource.group, &self.resource.plural, &self.name, why)
    }
}
