//! Quantities: `500m`, `1.5Gi`, `2e3`; read, compared and written the way Kubernetes does.

#![forbid(unsafe_code)]

use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;

/// What upstream says about a text that is no quantity.
pub const NOT_A_QUANTITY: &str = "quantities must match the regular expression \
    '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NO_SUCH_SUFFIX: &str = "unable to parse quantity's suffix";

/// How many billionths make one.
pub const NANOS: u128 = 1_000_000_000;
/// Upstream cuts binary quantities to what fits 63 bits; decimal ones have room for more than
/// anybody owns.
const LARGEST_BINARY: u128 = i64::MAX as u128 * NANOS;
const LARGEST_DECIMAL: u128 = 100_000_000_000_000_000_000_000_000_000_000_000_000;
/// How many digits upstream reads without going to unlimited precision.
const SHORT_DIGITS: usize = 18;
/// Fraction digits beyond these can only round up.
const FRACTION_DIGITS: usize = 18;

const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY_SUFFIXES: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// An amount of something, exact to a billionth.
#[derive(Debug, Clone)]
pub struct Quantity {
    nanos: i128,
    format: Format,
    /// The text it came as, where upstream takes that for canonical.
    canonical_text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

struct Parts<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

enum Suffix {
    Ten { exponent: i64, format: Format },
    Two { exponent: u32 },
}

impl Quantity {
    /// Reads a quantity. The error is upstream's sentence.
    pub fn parse(text: &str) -> Result<Quantity, &'static str> {
        if text.is_empty() {
            return Err(NOT_A_QUANTITY);
        }
        let parts = split(text)?;
        let suffix = suffix(parts.suffix).ok_or(NO_SUCH_SUFFIX)?;
        let (magnitude, format, is_kept) = match suffix {
            Suffix::Ten { exponent, format } => {
                let is_kept = is_decimal_kept(&parts, exponent);
                (decimal_nanos(&parts, exponent), format, is_kept)
            }
            Suffix::Two { exponent } => {
                let nanos = binary_nanos(&parts, exponent);
                let format = if nanos < NANOS { Format::Decimal } else { Format::Binary };
                (nanos, format, is_binary_kept(&parts, exponent))
            }
        };
        let nanos = i128::try_from(magnitude).unwrap_or(i128::MAX);
        Ok(Quantity {
            nanos: if parts.is_negative { -nanos } else { nanos },
            format,
            canonical_text: is_kept.then(|| text.to_owned()),
        })
    }

    /// Reads a quantity from JSON, where it may also be a number.
    pub fn from_value(value: &Value) -> Result<Quantity, &'static str> {
        match value {
            Value::String(text) => Quantity::parse(text.trim()),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(NOT_A_QUANTITY)
            }
        }
    }

    /// Another amount that is written in the same form: sums of memory stay in powers of two.
    #[must_use]
    pub fn with_nanos(&self, nanos: i128) -> Quantity {
        Quantity { nanos, format: self.format, canonical_text: None }
    }

    /// The amount in billionths.
    pub fn nanos(&self) -> i128 {
        self.nanos
    }

    /// The amount as a number of bytes, rounded up; None: it is below zero, or more than fits.
    pub fn bytes(&self) -> Option<u64> {
        u64::try_from(u128::try_from(self.nanos).ok()?.div_ceil(NANOS)).ok()
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether it is a whole number.
    pub fn is_whole(&self) -> bool {
        self.nanos.unsigned_abs().is_multiple_of(NANOS)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.canonical_text {
            return formatter.write_str(text);
        }
        if self.nanos == 0 {
            return formatter.write_str("0");
        }
        let sign = if self.nanos < 0 { "-" } else { "" };
        let nanos = self.nanos.unsigned_abs();
        let is_binary =
            self.format == Format::Binary && nanos >= 1024 * NANOS && nanos.is_multiple_of(NANOS);
        if is_binary {
            let (amount, suffix) = in_binary(nanos / NANOS);
            return write!(formatter, "{sign}{amount}{suffix}");
        }
        let (amount, exponent) = in_thousands(nanos);
        if self.format == Format::Exponent {
            return match exponent {
                0 => write!(formatter, "{sign}{amount}"),
                _ => write!(formatter, "{sign}{amount}e{exponent}"),
            };
        }
        let suffix = DECIMAL_SUFFIXES
            .iter()
            .find(|(_, known)| *known == exponent)
            .map_or("", |(suffix, _)| suffix);
        write!(formatter, "{sign}{amount}{suffix}")
    }
}

fn split(text: &str) -> Result<Parts<'_>, &'static str> {
    let (is_negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let digits_end =
        |text: &str| text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = unsigned.split_at(digits_end(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits_end(rest)),
        None => ("", rest),
    };
    // Upstream takes a sign or a suffix alone for zero, and so do we.
    let letters =
        suffix.bytes().position(|byte| !b"eEinumkKMGTP".contains(&byte)).unwrap_or(suffix.len());
    let exponent = suffix[letters..].trim_start_matches(['-', '+']);
    let signs = suffix.len() - letters - exponent.len();
    if signs > 1 || digits_end(exponent) != exponent.len() {
        return Err(NOT_A_QUANTITY);
    }
    Ok(Parts { is_negative, whole: whole.trim_start_matches('0'), fraction, suffix })
}

fn suffix(text: &str) -> Option<Suffix> {
    if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
        return Some(Suffix::Ten { exponent: i64::from(*exponent), format: Format::Decimal });
    }
    if let Some((_, exponent)) = BINARY_SUFFIXES.iter().find(|(suffix, _)| *suffix == text) {
        return Some(Suffix::Two { exponent: *exponent });
    }
    let exponent = text.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some(Suffix::Ten { exponent, format: Format::Exponent })
}

fn is_decimal_kept(parts: &Parts<'_>, exponent: i64) -> bool {
    let digits = parts.whole.len().max(1) + parts.fraction.len();
    let fraction = i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
    let scale = exponent.saturating_sub(fraction);
    let all = format!("{}{}", parts.whole, parts.fraction);
    digits <= SHORT_DIGITS
        && scale >= -9
        && scale % 3 == 0
        && !all.ends_with("000")
        && !parts.whole.is_empty()
}

fn is_binary_kept(parts: &Parts<'_>, exponent: u32) -> bool {
    let digits = parts.whole.len() + usize::try_from(exponent * 3 / 10).unwrap_or(usize::MAX);
    let Ok(amount) = parts.whole.parse::<u64>() else { return false };
    parts.fraction.is_empty() && digits <= 14 && amount & 7 != 0
}

/// The amount in billionths, by moving the decimal point in the text; what is smaller rounds up.
fn decimal_nanos(parts: &Parts<'_>, exponent: i64) -> u128 {
    let digits = format!("{}{}", parts.whole, parts.fraction);
    if digits.bytes().all(|digit| digit == b'0') {
        return 0;
    }
    let whole = i64::try_from(parts.whole.len()).unwrap_or(i64::MAX);
    let point = whole.saturating_add(exponent).saturating_add(9);
    let mut nanos: u128 = 0;
    for place in 0..point.max(0) {
        let digit = usize::try_from(place).ok().and_then(|place| digits.as_bytes().get(place));
        let digit = digit.map_or(0, |digit| u128::from(digit - b'0'));
        nanos = nanos.saturating_mul(10).saturating_add(digit);
        if nanos >= LARGEST_DECIMAL {
            return LARGEST_DECIMAL;
        }
    }
    let left = usize::try_from(point.max(0)).unwrap_or(usize::MAX);
    let has_rest = digits.bytes().skip(left).any(|digit| digit != b'0');
    nanos + u128::from(has_rest)
}

fn binary_nanos(parts: &Parts<'_>, exponent: u32) -> u128 {
    let whole: u128 = match parts.whole {
        "" => 0,
        digits => digits.parse().unwrap_or(u128::MAX),
    };
    let (kept, rest) = parts.fraction.split_at(parts.fraction.len().min(FRACTION_DIGITS));
    let fraction: u128 = format!("{kept:0<FRACTION_DIGITS$}").parse().unwrap_or(0);
    let has_rest = rest.bytes().any(|digit| digit != b'0');
    let fraction_nanos = ((fraction + u128::from(has_rest)) << exponent).div_ceil(10_u128.pow(9));
    whole
        .checked_mul(1_u128 << exponent)
        .and_then(|amount| amount.checked_mul(NANOS))
        .and_then(|nanos| nanos.checked_add(fraction_nanos))
        .unwrap_or(LARGEST_BINARY)
        .min(LARGEST_BINARY)
}

/// The amount with as many thousands as it has, and their power of ten.
fn in_thousands(nanos: u128) -> (u128, i32) {
    let (mut amount, mut exponent) = (nanos, -9);
    while amount.is_multiple_of(1_000) && amount != 0 && exponent < 18 {
        amount /= 1_000;
        exponent += 3;
    }
    (amount, exponent)
}

fn in_binary(whole: u128) -> (u128, &'static str) {
    let (mut amount, mut suffix) = (whole, "");
    for (next, _) in BINARY_SUFFIXES {
        if !amount.is_multiple_of(1024) {
            break;
        }
        amount /= 1024;
        suffix = next;
    }
    (amount, suffix)
}

/// A number of bytes for people: `512 B`, `3.4 MiB`, `120 GiB`.
pub fn readable(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut size, mut unit) = (bytes as f64 / 1024.0, 0);
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    // A large number that is whole, or nearly, is easier to read without its zero.
    let is_whole = size >= 99.95 && (size - size.round()).abs() < 0.05;
    let digits = usize::from(!is_whole);
    format!("{size:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        Quantity::parse(text).map_or_else(str::to_owned, |quantity| quantity.to_string())
    }

    #[test]
    fn a_quantity_is_written_as_upstream_writes_it() {
        for (text, written) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("0.0", "0"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.1", "100m"),
            ("1.5", "1500m"),
            ("1.500", "1.500"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("1000Mi", "1000Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("0.5Mi", "512Ki"),
            ("100000000", "100M"),
            ("12e6", "12e6"),
            ("1000e3", "1e6"),
            ("1E3", "1E3"),
            ("-1000m", "-1"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("16Ei", "9223372036854775807"),
            ("1.", "1."),
            (".5", "500m"),
            (".", "0"),
            ("-", "0"),
            ("-0", "0"),
            ("Gi", "0"),
            ("+1", "+1"),
            ("01", "01"),
            ("1e30", "1e30"),
            ("100E", "100E"),
            ("1.5E", "1500P"),
            ("0.3Gi", "322122547200m"),
            ("0.0000000001Gi", "107374183n"),
            ("1.0000000001", "1000000001n"),
            ("9223372036854775807Ki", "9223372036854775807"),
            ("5e-3", "5e-3"),
            ("1e-10", "1e-9"),
            ("1000000m", "1k"),
        ] {
            assert_eq!(canonical(text), written, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused_in_upstreams_words() {
        for text in ["", "x", "1 Gi", "1Xi", "1.2.3", "1e--3", "- 1"] {
            assert_eq!(Quantity::parse(text).map(|_| ()), Err(NOT_A_QUANTITY), "{text}");
        }
        for text in ["1K", "1mm", "1ee", "e"] {
            assert_eq!(Quantity::parse(text).map(|_| ()), Err(NO_SUCH_SUFFIX), "{text}");
        }
    }

    #[test]
    fn quantities_compare_by_amount() {
        let read = |text: &str| Quantity::parse(text).expect("a good quantity");
        assert_eq!(read("1Gi"), read("1024Mi"));
        assert!(read("1G") < read("1Gi"));
        assert!(read("-1") < read("0"));
        assert!(read("1e30") > read("16Ei"));
        assert!(read("1500m") > read("1") && !read("1500m").is_whole());
    }

    #[test]
    fn no_text_makes_it_panic_and_canonical_texts_stay() {
        let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
        let alphabet = b"0123456789.+-eEinumkKMGTP00099 x";
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..(state % 24) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                text.push(char::from(alphabet[(state % 32) as usize]));
            }
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let Ok(quantity) = Quantity::parse(&text) else { continue };
            let written = quantity.to_string();
            let again = Quantity::parse(&written).expect("what is written can be read");
            assert_eq!(again.to_string(), written, "{text}");
        }
    }

    #[test]
    fn sizes_are_bytes_rounded_up() {
        for (size, expected) in [
            ("1Gi", Some(1 << 30)),
            ("1.5Ki", Some(1_536)),
            ("1e9", Some(1_000_000_000)),
            ("2E", Some(2_000_000_000_000_000_000)),
            ("1500m", Some(2)),
            ("0.1", Some(1)),
            ("0", Some(0)),
            ("-1Gi", None),
            ("1e99", None),
        ] {
            let read = Quantity::parse(size).expect("a good quantity");
            assert_eq!(read.bytes(), expected, "{size}");
        }
    }

    #[test]
    fn sizes_are_reported_to_people_in_their_unit() {
        assert_eq!(readable(17), "17 B");
        assert_eq!(readable(1536), "1.5 KiB");
        assert_eq!(readable(12 << 30), "12.0 GiB");
        assert_eq!(readable(120 << 30), "120 GiB");
        assert_eq!(readable(705_012), "688.5 KiB");
        assert_eq!(readable(u64::MAX), "16.0 EiB");
    }
}
