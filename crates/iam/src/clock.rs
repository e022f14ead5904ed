//! Time as a fact that is handed in.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the time comes from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn machine() -> Clock {
        Clock(Arc::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        }))
    }

    /// Any other source of seconds since 1970; for tests and simulations.
    pub fn new(now_seconds: impl Fn() -> i64 + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now_seconds))
    }

    /// Seconds since 1970.
    pub fn now_seconds(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}

/// A moment as AWS writes it: `2026-11-17T08:00:00Z`.
pub(crate) fn iso8601(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |at| at.to_string())
}

/// A moment as AWS writes it, or seconds since 1970.
pub(crate) fn seconds_of(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<i64>() {
        return Some(seconds);
    }
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(at.as_second());
    }
    let date: jiff::civil::Date = text.parse().ok()?;
    let at = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(at.timestamp().as_second())
}

/// A moment as HTTP's Date header writes it.
pub(crate) fn http_date(seconds: i64) -> String {
    let at = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&at).unwrap_or_default()
}

/// The moment in a Date header.
pub(crate) fn seconds_of_http_date(text: &str) -> Option<i64> {
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(at.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        assert_eq!(iso8601(1_794_902_400), "2026-11-17T08:00:00Z");
        assert_eq!(seconds_of("2026-11-17T08:00:00Z"), Some(1_794_902_400));
        assert_eq!(seconds_of("2026-11-17T09:00:00.5+01:00"), Some(1_794_902_400));
        assert_eq!(seconds_of("1794902400"), Some(1_794_902_400));
        assert_eq!(seconds_of("2026-11-17"), Some(1_794_873_600));
        assert_eq!(seconds_of("yesterday"), None);
        assert_eq!(http_date(1_794_902_400), "Tue, 17 Nov 2026 08:00:00 GMT");
        assert_eq!(seconds_of_http_date("Tue, 17 Nov 2026 08:00:00 GMT"), Some(1_794_902_400));
    }
}
