//! What is wrong with a bundle, and where.

use super::object::At;
use serde::Serialize;
use std::fmt;

/// What is wrong with a bundle, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum FlawReason {
    /// It is no YAML.
    NotYaml,
    /// It is no object of Kubernetes.
    NotAnObject,
    /// Two objects are the same one.
    Duplicate,
    /// It is larger than a bundle may be.
    TooLarge,
    /// There is nothing in it.
    Empty,
    /// A part is missing, cannot be read, or is of another bundle.
    Broken,
}

/// What is wrong with a bundle, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Flaw {
    /// In one word.
    pub reason: FlawReason,
    /// The file; empty: it is not in a file.
    pub file: String,
    /// The line in the file, or the number of an object that is in no file, counted from 1; 0: nowhere in particular.
    pub line: usize,
    /// The object, as far as it could be read.
    pub object: String,
    /// In a sentence.
    pub message: String,
}

impl Flaw {
    pub(super) fn at(
        at: &At,
        reason: FlawReason,
        object: &str,
        message: impl Into<String>,
    ) -> Flaw {
        let (file, line) = (at.file.clone(), at.line);
        Flaw { reason, file, line, object: object.to_owned(), message: message.into() }
    }

    pub(super) fn of_all(reason: FlawReason, message: impl Into<String>) -> Flaw {
        let (file, object) = (String::new(), String::new());
        Flaw { reason, file, line: 0, object, message: message.into() }
    }
}

/// `deploy.yaml:12: apps/Deployment/shop/web: what is wrong`.
impl fmt::Display for Flaw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", 0) => {}
            ("", line) => write!(formatter, "object {line}: ")?,
            (file, 0) => write!(formatter, "{file}: ")?,
            (file, line) => write!(formatter, "{file}:{line}: ")?,
        }
        if !self.object.is_empty() {
            write!(formatter, "{}: ", self.object)?;
        }
        formatter.write_str(&self.message)
    }
}
