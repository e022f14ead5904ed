//! By what a request that lasts was let in, so that it can be checked again while it lasts.

use crate::access::Identity;
use crate::clusters::Cluster;
use crate::request::RequestInfo;
use std::sync::Arc;

/// The credential, the identity and the request.
pub(crate) struct Standing {
    /// The token that the client showed. A secret.
    pub(crate) token: Option<Arc<str>>,
    /// Whom the client acts as.
    pub(crate) identity: Identity,
    /// Where.
    pub(crate) cluster: Arc<Cluster>,
    /// What was asked.
    pub(crate) info: RequestInfo,
}
