//! Sizes as Kubernetes writes them: `1Gi`, `500M`, `1e9`, `1048576`.

use serde_json::Value;

const SUFFIXES: [(&str, u128); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

/// The bytes of a size, rounded up; None: it is no size.
pub(crate) fn bytes(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => parse(text),
        _ => None,
    }
}

fn parse(text: &str) -> Option<u64> {
    if let Some(number) = text.strip_suffix('m') {
        return scaled(number, 1).map(|bytes| bytes.div_ceil(1_000));
    }
    let known = SUFFIXES.iter().find_map(|(suffix, unit)| {
        text.strip_suffix(suffix).filter(|number| !number.is_empty()).map(|n| (n, *unit))
    });
    if let Some((number, unit)) = known {
        return scaled(number, unit);
    }
    match text.split_once(['e', 'E']) {
        Some((number, exponent)) => {
            let exponent: u32 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
            scaled(number, 10_u128.checked_pow(exponent)?)
        }
        None => scaled(text, 1),
    }
}

/// A number with or without a fraction, in a unit, rounded up.
fn scaled(number: &str, unit: u128) -> Option<u64> {
    let number = number.strip_prefix('+').unwrap_or(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = fraction.get(..fraction.len().min(15))?;
    let parts = 10_u128.checked_pow(fraction.len() as u32)?;
    let rest: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let rest = rest.checked_mul(unit)?.div_ceil(parts);
    u64::try_from(whole.checked_mul(unit)?.checked_add(rest)?).ok()
}

/// A size for people: `12 GiB`.
pub(crate) fn readable(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1 << 10 {
        return format!("{bytes} bytes");
    }
    let unit = (1..=UNITS.len()).rev().find(|unit| bytes >> (10 * unit) > 0).unwrap_or(1);
    let tenths = (u128::from(bytes) * 10).div_ceil(1 << (10 * unit));
    match tenths % 10 {
        0 => format!("{} {}", tenths / 10, UNITS[unit - 1]),
        tenth => format!("{}.{tenth} {}", tenths / 10, UNITS[unit - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_are_read_as_kubernetes_reads_them() {
        for (size, expected) in [
            ("1Gi", 1 << 30),
            ("1.5Ki", 1_536),
            ("500M", 500_000_000),
            ("1e9", 1_000_000_000),
            ("12E2", 1_200),
            ("2E", 2_000_000_000_000_000_000),
            ("1500m", 2),
            ("0.1", 1),
            ("+7", 7),
            ("0", 0),
        ] {
            assert_eq!(bytes(&json!(size)), Some(expected), "{size}");
        }
        assert_eq!(bytes(&json!(42)), Some(42));
    }

    #[test]
    fn what_is_no_size_is_none() {
        for broken in ["", "Gi", "-1Gi", "1Xi", "1e99", "99999999Ei", ".", "1.2.3", "é"] {
            assert_eq!(bytes(&json!(broken)), None, "{broken}");
        }
        assert_eq!(bytes(&json!(-1)), None);
        assert_eq!(bytes(&json!(null)), None);
    }

    #[test]
    fn sizes_are_told_to_people_in_their_unit() {
        assert_eq!(readable(12 << 30), "12 GiB");
        assert_eq!(readable((1 << 30) + 1), "1.1 GiB");
        assert_eq!(readable(17), "17 bytes");
    }
}
