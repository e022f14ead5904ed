//! Values: bytes, and what a reader made of them.

use crate::{Key, Revision};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The bytes of one version of a key. What a reader parses out of them is kept beside them, so that it is
/// parsed once, however many watchers and lists look at it.
pub struct Value {
    bytes: Box<[u8]>,
    view: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Value {
    /// Takes the bytes.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Self {
        Value { bytes: bytes.into(), view: OnceLock::new() }
    }

    /// The bytes as they were written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What `make` made of the bytes, the first time. All readers of a store use one type for it; a reader
    /// with another type gets its own, made anew each time.
    pub fn view<T: Any + Send + Sync>(&self, make: impl Fn(&[u8]) -> T) -> Arc<T> {
        let view = self.view.get_or_init(|| Arc::new(make(&self.bytes)));
        match Arc::clone(view).downcast::<T>() {
            Ok(view) => view,
            Err(_) => Arc::new(make(&self.bytes)),
        }
    }
}

impl fmt::Debug for Value {
    // Values may be secrets: only their size is shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.bytes.len())
    }
}

/// A key with one of its versions.
#[derive(Debug, Clone)]
pub struct Versioned {
    /// Which key.
    pub key: Key,
    /// When the key came into being; a deleted and re-created key has a new one.
    pub created: Revision,
    /// When this version was written.
    pub modified: Revision,
    /// What it says.
    pub value: Arc<Value>,
}
