//! The driver of a controller: what it asks and does outside of the Kubernetes API.

use interlock_kernel::{Nothing, Outside};
use std::future::Future;

/// Asks and acts outside of the Kubernetes API for one controller.
///
/// Either may be given up half way, as if the process had died: what is done must be such that the
/// next step finds out by asking.
pub trait Driver<O: Outside>: Send + Sync + 'static {
    /// Asks the world; this changes nothing. An error is in words, and the step is tried again.
    fn ask(&self, question: O::Question) -> impl Future<Output = Result<O::Answer, String>> + Send;

    /// Does something to the world. An error is in words, and the step is tried again.
    fn perform(&self, action: O::Action) -> impl Future<Output = Result<(), String>> + Send;
}

/// For controllers that live within the API.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDriver;

impl Driver<Nothing> for NoDriver {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}
