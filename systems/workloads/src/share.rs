//! A number of pods, or a share of those that are asked for, as fields such as `maxUnavailable` have it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A number of pods, or a share of those that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Share {
    /// So many.
    Pods(u32),
    /// So many of a hundred.
    Percent(u32),
}

impl Share {
    /// What a message says of a value that cannot be read as one.
    pub const FORM: &str = "neither a number of pods nor a share such as \"25%\"";

    /// Reads one.
    pub fn of(said: &Value) -> Option<Share> {
        match said {
            Value::String(text) => {
                let digits = text.strip_suffix('%')?;
                let is_plain = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
                digits.parse().ok().filter(|_| is_plain).map(Share::Percent)
            }
            number => {
                let pods = number.as_i64().and_then(|number| i32::try_from(number).ok());
                pods.and_then(|pods| u32::try_from(pods).ok()).map(Share::Pods)
            }
        }
    }

    /// How many pods it is of so many; what rounding leaves is one more.
    pub fn up(self, of: u32) -> u32 {
        match self {
            Share::Pods(pods) => pods,
            Share::Percent(percent) => whole((u64::from(of) * u64::from(percent)).div_ceil(100)),
        }
    }

    /// How many pods it is of so many; what rounding leaves is none.
    pub fn down(self, of: u32) -> u32 {
        match self {
            Share::Pods(pods) => pods,
            Share::Percent(percent) => whole(u64::from(of) * u64::from(percent) / 100),
        }
    }
}

fn whole(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
