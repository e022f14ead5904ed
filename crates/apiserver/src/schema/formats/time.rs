//! Dates, moments and durations in texts.

/// Days since 1970 of a date `2006-01-02`.
pub(crate) fn parse_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (number(&bytes[..4])?, number(&bytes[5..7])?, number(&bytes[8..])?);
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let longest = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if day < 1 || day > longest {
        return None;
    }
    // Counted from March, so that the leap day is the last of the year.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// A moment: seconds since 1970 and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    /// Whole seconds since 1970, in UTC.
    pub(crate) seconds: i64,
    /// What is beyond, below a second.
    pub(crate) nanoseconds: u32,
}

/// A moment as RFC 3339 writes it.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Moment> {
    let bytes = text.as_bytes();
    if bytes.len() < 20 || !text.is_ascii() || !matches!(bytes[10], b'T' | b't') {
        return None;
    }
    let days = parse_date(&text[..10])?;
    if bytes[13] != b':' || bytes[16] != b':' {
        return None;
    }
    let (hour, minute) = (number(&bytes[11..13])?, number(&bytes[14..16])?);
    let second = number(&bytes[17..19])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = &bytes[19..];
    let mut nanoseconds = 0;
    if let [b'.', fraction @ ..] = rest {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let kept = &fraction[..digits.min(9)];
        let scale = 10_i64.pow(9 - u32::try_from(kept.len()).ok()?);
        nanoseconds = u32::try_from(number(kept)? * scale).ok()?;
        rest = &fraction[digits..];
    }
    let offset = match rest {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), clock @ ..] if clock.len() == 5 && clock[2] == b':' => {
            let (hours, minutes) = (number(&clock[..2])?, number(&clock[3..])?);
            if hours > 24 || minutes > 59 {
                return None;
            }
            let seconds = hours * 3600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some(Moment { seconds, nanoseconds })
}

/// Upstream's loose `date-time`: a date, `t`, a clock, and a zone.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((date, clock)) = lower.split_once('t') else { return false };
    let clock = clock.split('t').next().unwrap_or(clock);
    parse_date(date).is_some() && is_clock(clock.as_bytes())
}

fn is_clock(bytes: &[u8]) -> bool {
    if bytes.len() < 9 || bytes[2] != b':' || bytes[5] != b':' {
        return false;
    }
    let in_range = |part: &[u8], most: i64| number(part).is_some_and(|value| value <= most);
    if !in_range(&bytes[..2], 23) || !in_range(&bytes[3..5], 59) || !in_range(&bytes[6..8], 59) {
        return false;
    }
    let mut rest = &bytes[8..];
    if !matches!(rest.first(), Some(b'z' | b'+' | b'-')) {
        let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return false;
        }
        rest = &rest[1 + digits..];
    }
    match rest {
        [b'z'] => true,
        [b'+' | b'-', clock @ ..] => {
            clock.len() == 5
                && clock[2] == b':'
                && number(&clock[..2]).is_some()
                && number(&clock[3..]).is_some()
        }
        _ => false,
    }
}

/// Nanoseconds of a duration as Go writes it: `1h30m`, `-1.5s`, `300ms`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (amount, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        total += nanoseconds(amount, unit)?;
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = after;
    }
    i64::try_from(if is_negative { -total } else { total }).ok()
}

fn nanoseconds(amount: &str, unit: &str) -> Option<i128> {
    let scale: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || whole.len() > 19 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut sum = whole * scale;
    let mut step = scale;
    for digit in fraction.bytes() {
        step /= 10;
        sum += i128::from(digit - b'0') * step;
    }
    Some(sum)
}

/// Go's durations, and those with words: `3 days`, `2 weeks 1 hour`.
pub(super) fn parse_loose_duration(text: &str) -> Option<()> {
    if parse_duration(text).is_some() {
        return Some(());
    }
    let bytes = text.as_bytes();
    let mut is_found = false;
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            at += 1;
            continue;
        }
        let after = text[at + digits..].trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let end = after.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(after.len());
        if end > 0 {
            if digits > 18 {
                return None;
            }
            is_found |= is_time_unit(&after[..end].to_lowercase());
        }
        at += digits;
    }
    is_found.then_some(())
}

fn is_time_unit(word: &str) -> bool {
    const SHORT: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const LONG: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    SHORT.contains(&word) || LONG.iter().any(|unit| word.starts_with(unit))
}
