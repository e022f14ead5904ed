//! The time since this process started, on a clock that never goes back.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where that time comes from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// That of the machine, which begins now.
    pub fn machine() -> Clock {
        let start = Instant::now();
        Clock(Arc::new(move || start.elapsed()))
    }

    /// Any other; for tests and simulations.
    pub fn new(uptime: impl Fn() -> Duration + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(uptime))
    }

    pub(crate) fn uptime(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}

/// Whole seconds, as rooms count them: never later than it is.
pub(crate) fn seconds(uptime: Duration) -> i64 {
    i64::try_from(uptime.as_secs()).unwrap_or(i64::MAX)
}
