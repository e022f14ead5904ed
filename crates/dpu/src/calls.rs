//! What runs before each system call of a driver that changes something: nothing, but in tests.

use std::fmt;
use std::sync::Arc;

type Each = dyn Fn(&'static str) + Send + Sync;

/// Tests put something here that stops the driver before its n-th call, as a crash would.
#[derive(Clone, Default)]
pub struct Calls(Option<Arc<Each>>);

impl Calls {
    /// Runs this before each call, with the name of the call.
    pub fn watched(each: impl Fn(&'static str) + Send + Sync + 'static) -> Calls {
        Calls(Some(Arc::new(each)))
    }

    pub(crate) fn before(&self, call: &'static str) {
        if let Some(each) = &self.0 {
            each(call);
        }
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "watched" } else { "not watched" })
    }
}
