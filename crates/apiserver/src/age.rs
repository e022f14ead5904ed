//! Ages as `kubectl` shows them: `5d3h`, `12m`, `<unknown>`.

use jiff::Timestamp;
use serde_json::Value;

/// What a time that was never set looks like when Go writes it.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// The longest span that Go can count in nanoseconds; longer ones are cut to it upstream.
const LONGEST_SECONDS: i64 = i64::MAX / 1_000_000_000;

/// A moment in an object, by RFC 3339. The time that was never set is none.
pub(crate) fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str().filter(|text| *text != NEVER).and_then(parse)
}

/// A moment from a text, by RFC 3339 and no other of the forms that ISO 8601 knows.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let is_date_and_time = bytes.len() >= 20 && bytes[10] == b'T' && bytes[16] == b':';
    let has_zone = text.ends_with('Z')
        || matches!(bytes.len().checked_sub(6).map(|sign| bytes[sign]), Some(b'+' | b'-'));
    if !is_date_and_time || !has_zone {
        return None;
    }
    text.parse().ok()
}

/// How long ago that was, as `kubectl` shows it.
pub(crate) fn since(value: &Value, now: Timestamp) -> String {
    moment(value)
        .map_or_else(|| "<unknown>".to_owned(), |then| human_seconds(seconds_between(then, now)))
}

/// Whole seconds from one moment to another, cut towards zero.
pub(crate) fn seconds_between(from: Timestamp, to: Timestamp) -> i64 {
    let nanoseconds = to.as_nanosecond().saturating_sub(from.as_nanosecond());
    i64::try_from(nanoseconds / 1_000_000_000)
        .unwrap_or(LONGEST_SECONDS)
        .clamp(-LONGEST_SECONDS, LONGEST_SECONDS)
}

/// A span with the two or three figures that matter. A moment that lies ahead by more than clocks
/// differ is `<invalid>`.
pub(crate) fn human_seconds(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => two(days, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        return format!("{large}{large_unit}");
    }
    format!("{large}{large_unit}{small}{small_unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spans_are_shown_with_two_or_three_figures() {
        let minute = 60;
        let hour = 60 * minute;
        let day = 24 * hour;
        for (seconds, shown) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (9 * minute + 59, "9m59s"),
            (10 * minute + 1, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (7 * hour + 59 * minute, "7h59m"),
            (47 * hour, "47h"),
            (48 * hour, "2d"),
            (7 * day + 23 * hour, "7d23h"),
            (8 * day, "8d"),
            (729 * day, "729d"),
            (730 * day, "2y"),
            (7 * 365 * day + 364 * day, "7y364d"),
            (8 * 365 * day + 5 * day, "8y"),
        ] {
            assert_eq!(human_seconds(seconds), shown);
        }
    }

    #[test]
    fn what_is_no_time_has_an_unknown_age() {
        let now = parse("2024-01-01T00:00:10Z").expect("a good time");
        assert_eq!(since(&json!("2024-01-01T00:00:00Z"), now), "10s");
        assert_eq!(since(&json!("2024-01-01T01:00:00.5+01:00"), now), "9s");
        for odd in [json!(null), json!(7), json!(NEVER), json!("yesterday"), json!("2024-01-01")] {
            assert_eq!(since(&odd, now), "<unknown>");
        }
        assert_eq!(since(&json!("1000-01-01T00:00:00Z"), now), "292y");
    }

    #[test]
    fn no_time_makes_it_panic() {
        let now = parse("2024-01-01T00:00:10Z").expect("a good time");
        let good = b"2024-01-01T01:00:00.500000000+01:00";
        let letters = b"0123456789-:TZtz.+ \xc3\xbc";
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from((state >> 11) % bound as u64).expect("below a usize")
        };
        for _ in 0..20_000 {
            let mut bytes = good.to_vec();
            for _ in 0..below(5) {
                let place = below(bytes.len());
                bytes[place] = letters[below(letters.len())];
            }
            bytes.truncate(below(good.len() + 1));
            since(&json!(String::from_utf8_lossy(&bytes)), now);
        }
    }
}
