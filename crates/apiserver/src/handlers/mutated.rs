//! Writes as mutating webhooks make them: what was sent is checked before and after.

use crate::admission::{self, Admitting, Change, Operation};
use crate::call::Call;
use crate::object;
use crate::status::Status;
use serde_json::{Value, json};

impl Call {
    /// A new object as mutating webhooks make it.
    pub(super) async fn mutated_new(
        &self,
        mut object: Value,
        admitting: &mut Admitting,
    ) -> Result<Value, Status> {
        self.check_new(&object)?;
        if self.resource.is_namespaced {
            let namespace = json!(self.namespace);
            object::metadata_mut(&mut object).insert("namespace".to_owned(), namespace);
        }
        let change = Change { operation: Operation::Create, old: None, new: Some(&object) };
        let Some(mutated) = admission::mutate(self, &change, admitting).await? else {
            return Ok(object);
        };
        self.check_new(&mutated)?;
        Ok(mutated)
    }

    fn check_new(&self, object: &Value) -> Result<(), Status> {
        self.check_place(object)?;
        if !object::meta_text(object, "resourceVersion").is_empty() {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Status::bad_request(why));
        }
        Ok(())
    }

    /// A changed object as mutating webhooks make it.
    pub(super) async fn mutated(
        &self,
        old: &Value,
        mut new: Value,
        admitting: &mut Admitting,
    ) -> Result<Value, Status> {
        self.check_place(&new)?;
        self.check_seen(old, &new)?;
        self.keep_unchangeable(old, &mut new);
        let change = Change { operation: Operation::Update, old: Some(old), new: Some(&new) };
        let Some(mut mutated) = admission::mutate(self, &change, admitting).await? else {
            return Ok(new);
        };
        self.check_place(&mutated)?;
        self.keep_unchangeable(old, &mut mutated);
        Ok(mutated)
    }
}
