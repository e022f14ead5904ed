//! Times of entries: RFC 3339 texts, compared by their seconds.

use std::borrow::Cow;

/// When an entry was last changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment<'a> {
    /// Seconds since 1970.
    pub(super) seconds: i64,
    /// In UTC, without fractions.
    pub(super) text: Cow<'a, str>,
}

impl<'a> Moment<'a> {
    /// Reads an RFC 3339 time.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let seconds = seconds_of(text)?;
        let is_plain = text.len() == 20 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
        let text = if is_plain { Cow::Borrowed(text) } else { Cow::Owned(text_of(seconds)) };
        Some(Moment { seconds, text })
    }
}

fn seconds_of(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() < 20 || !text.is_ascii() {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = &text[from..to];
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|(place, byte)| bytes[*place] != *byte) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_real = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    let rest = text[19..].trim_start_matches(|byte: char| byte == '.' || byte.is_ascii_digit());
    let zone = &bytes[bytes.len() - rest.len()..];
    let offset = match zone {
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let start = bytes.len() - 6;
            let seconds = number(start + 1, start + 3)? * 3600 + number(start + 4, start + 6)? * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let days = days_before(year, month) + day - 1;
    is_real.then_some(days * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

/// The days from 1970 to the first of a month, counted in years that begin in March so that the
/// leap day is the last.
fn days_before(year: i64, month: i64) -> i64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 - 719_468
}

fn text_of(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400);
    let second = seconds.rem_euclid(86_400);
    // The estimate is off by one year at most.
    let mut year = 1970 + days.div_euclid(365);
    while days_before(year, 1) > days {
        year -= 1;
    }
    let month = (1..=12).rev().find(|month| days_before(year, *month) <= days).unwrap_or(1);
    let day = days - days_before(year, month) + 1;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_put_into_utc() {
        for (text, seconds, utc) in [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
            ("2024-02-29T23:59:59Z", 1_709_251_199, "2024-02-29T23:59:59Z"),
            ("2024-03-01T01:00:00+01:00", 1_709_251_200, "2024-03-01T00:00:00Z"),
            ("2001-01-01T00:00:00.123456Z", 978_307_200, "2001-01-01T00:00:00Z"),
            ("1969-12-31T16:00:00-08:00", 0, "1970-01-01T00:00:00Z"),
        ] {
            let moment = Moment::parse(text).expect("it is a time");
            assert_eq!((moment.seconds, &*moment.text), (seconds, utc), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in
            ["", "now", "2024-13-01T00:00:00Z", "2024-01-01 00:00:00Z", "2024-01-01T00:00:00"]
        {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
        assert_eq!(Moment::parse("2024-01-01T00:00:00é"), None);
    }
}
