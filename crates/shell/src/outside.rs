//! The hands of a controller: what it asks and does outside of the Kubernetes API.

use interlock_kernel::{Nothing, Outside};
use std::future::Future;

/// Asks and acts outside of the Kubernetes API for one controller.
///
/// Either may be given up half way, as if the process had died: what is done must be such that the
/// next step finds out by asking.
pub trait Hands<O: Outside>: Send + Sync + 'static {
    /// Asks the world; this changes nothing. An error is in words, and the step is tried again.
    fn ask(&self, question: O::Question) -> impl Future<Output = Result<O::Answer, String>> + Send;

    /// Does something to the world. An error is in words, and the step is tried again.
    fn perform(&self, deed: O::Deed) -> impl Future<Output = Result<(), String>> + Send;
}

/// For controllers that live within the API.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHands;

impl Hands<Nothing> for NoHands {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, deed: Nothing) -> Result<(), String> {
        match deed {}
    }
}
