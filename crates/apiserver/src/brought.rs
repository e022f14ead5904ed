//! What a request brings along to the one who answers it.

use crate::limits::Permit;
use crate::negotiate::Accepted;
use crate::request::{Query, Verb};
use crate::standing::Standing;
use crate::status::Status;
use crate::upgrade::Upgrade;
use bytes::Bytes;

/// What a request brings along beside what its path says.
pub(crate) struct Brought {
    /// What is to be done.
    pub(crate) verb: Verb,
    /// The parameters.
    pub(crate) query: Query,
    /// The form that the client takes.
    pub(crate) accepted: Accepted,
    /// `Content-Type`.
    pub(crate) content_type: String,
    /// The body, read whole.
    pub(crate) body: Bytes,
    /// Whether the request is about all clusters.
    pub(crate) is_wildcard: bool,
    /// The connection of its own that it asks for, if it does.
    pub(crate) upgrade: Option<Upgrade>,
    /// What a watch or a stream holds and is let in by; None for what does not last.
    pub(crate) lasting: Option<Lasting>,
}

/// What a watch or a stream holds while it lasts.
pub(crate) struct Lasting {
    /// Its place.
    pub(crate) permit: Permit,
    /// By what it was let in.
    pub(crate) standing: Standing,
}

/// 405.
pub(crate) fn not_allowed() -> Status {
    Status::method_not_allowed("the server does not allow this method on the requested resource")
}
