//! A length of time as people write it: `168h`, `1h30m`, `45s`.
//!
//! Kubernetes' own form allows negative and fractional lengths, and reading one can overflow. These
//! are whole seconds, and reading one can only fail.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const UNITS: [(char, u64); 3] = [('h', 3600), ('m', 60), ('s', 1)];

/// A length of time in whole seconds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Period {
    seconds: u64,
}

/// Why a text is not a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParsePeriodError {
    /// A number is missing, or is followed by none of `h`, `m` and `s`.
    NotNumberAndUnit,
    /// It does not fit.
    TooLong,
}

impl Period {
    /// That many hours.
    pub const fn hours(hours: u32) -> Self {
        Self { seconds: hours as u64 * 3600 }
    }

    /// That many seconds.
    pub const fn seconds(seconds: u32) -> Self {
        Self { seconds: seconds as u64 }
    }

    /// Its length in seconds.
    pub const fn as_seconds(self) -> u64 {
        self.seconds
    }
}

impl From<Period> for Duration {
    fn from(period: Period) -> Self {
        Duration::from_secs(period.seconds)
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.to_string()
    }
}

impl TryFrom<String> for Period {
    type Error = ParsePeriodError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for Period {
    type Err = ParsePeriodError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(ParsePeriodError::NotNumberAndUnit);
        }
        let (mut seconds, mut rest) = (0u64, text);
        while !rest.is_empty() {
            let end = rest
                .find(|character: char| !character.is_ascii_digit())
                .filter(|end| *end > 0)
                .ok_or(ParsePeriodError::NotNumberAndUnit)?;
            let (number, behind) = rest.split_at(end);
            let (_, unit_seconds) = UNITS
                .into_iter()
                .find(|(unit, _)| behind.starts_with(*unit))
                .ok_or(ParsePeriodError::NotNumberAndUnit)?;
            let number: u64 = number.parse().map_err(|_| ParsePeriodError::TooLong)?;
            let part = number.checked_mul(unit_seconds).ok_or(ParsePeriodError::TooLong)?;
            seconds = seconds.checked_add(part).ok_or(ParsePeriodError::TooLong)?;
            rest = &behind[1..];
        }
        Ok(Self { seconds })
    }
}

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.seconds == 0 {
            return formatter.write_str("0s");
        }
        let mut left = self.seconds;
        for (unit, unit_seconds) in UNITS {
            if left >= unit_seconds {
                write!(formatter, "{}{unit}", left / unit_seconds)?;
                left %= unit_seconds;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ParsePeriodError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotNumberAndUnit => "a length of time is written like 168h, 1h30m or 45s",
            Self::TooLong => "the length of time is too long",
        })
    }
}

impl std::error::Error for ParsePeriodError {}

impl JsonSchema for Period {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Period".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Nine digits of hours fit with much to spare, so whatever passes here can be read.
        json_schema!({ "type": "string", "pattern": "^([0-9]{1,9}[hms])+$", "maxLength": 32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_reads_as_it_is_written() {
        for text in ["168h", "1h30m", "45s", "2m1s", "0s"] {
            let period: Period = text.parse().unwrap();
            assert_eq!(period.to_string(), text);
        }
        assert_eq!("90m".parse::<Period>().unwrap().to_string(), "1h30m");
    }

    #[test]
    fn what_is_no_period_is_refused() {
        for text in ["", "h", "5", "-5s", "1.5h", "5d", "5s ", "s5", "5µs"] {
            assert_eq!(text.parse::<Period>(), Err(ParsePeriodError::NotNumberAndUnit), "{text}");
        }
        for text in ["99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(text.parse::<Period>(), Err(ParsePeriodError::TooLong), "{text}");
        }
    }
}
