//! Quantities: `100m`, `1.5Gi`, `2e3`.

/// What upstream says about a text that is no quantity.
pub(crate) const NOT_A_QUANTITY: &str = "quantities must match the regular expression \
    '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// One whole, in the unit that quantities are counted in.
pub(crate) const ONE: i128 = 1_000_000_000;

/// The largest quantity: what is beyond is cut to it, as upstream does.
const LARGEST: i128 = i64::MAX as i128 * ONE;

/// A quantity in billionths. What is smaller than a billionth is rounded away from zero.
pub(crate) fn parse_quantity(text: &str) -> Option<i128> {
    let (is_negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let magnitude = match scale(suffix)? {
        Scale::Decimal(exponent) => decimal(whole, fraction, exponent),
        Scale::Binary(shift) => binary(whole, fraction, shift),
    };
    let magnitude = magnitude.min(LARGEST);
    Some(if is_negative { -magnitude } else { magnitude })
}

enum Scale {
    Decimal(i64),
    Binary(u32),
}

fn scale(suffix: &str) -> Option<Scale> {
    let decimal = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => {
            let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
            if let Some(at) = binary.iter().position(|unit| *unit == suffix) {
                return Some(Scale::Binary(10 * (u32::try_from(at).ok()? + 1)));
            }
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number || digits.len() > 9 {
                return None;
            }
            exponent.parse().ok()?
        }
    };
    Some(Scale::Decimal(decimal))
}

/// The digits times a power of ten, digit by digit so that no length of text overflows.
fn decimal(whole: &str, fraction: &str, exponent: i64) -> i128 {
    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let mut shift = exponent.saturating_add(9).saturating_sub(places);
    let mut value: i128 = 0;
    let mut is_inexact = false;
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    // Digits below a billionth only tell whether to round.
    let dropped = usize::try_from(shift.min(0).unsigned_abs()).unwrap_or(usize::MAX);
    let kept = digits.len().saturating_sub(dropped);
    for digit in &digits[..kept] {
        value = value.saturating_mul(10).saturating_add(i128::from(digit - b'0')).min(LARGEST);
    }
    if digits[kept..].iter().any(|digit| *digit != b'0') {
        is_inexact = true;
    }
    while shift > 0 && value > 0 && value < LARGEST {
        value = value.saturating_mul(10);
        shift -= 1;
    }
    value.saturating_add(i128::from(is_inexact))
}

fn binary(whole: &str, fraction: &str, shift: u32) -> i128 {
    // At most 2^60 times what 18 digits behind the point say: it fits, and more digits would be
    // rounded anyway.
    let whole = decimal(whole, "", -9).saturating_mul(1 << shift).min(LARGEST);
    let whole = whole.saturating_mul(ONE);
    let digits = &fraction[..fraction.len().min(18)];
    let numerator = decimal(digits, "", -9).saturating_mul(1 << shift);
    let denominator = 10_i128.pow(u32::try_from(digits.len()).unwrap_or(18));
    let rest = fraction.len() > 18;
    let part = (numerator / denominator)
        .saturating_mul(ONE)
        .saturating_add((numerator % denominator * ONE + denominator - 1) / denominator);
    whole.saturating_add(part).saturating_add(i128::from(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_decimal_and_binary_suffixes() {
        assert_eq!(parse_quantity("100m"), Some(ONE / 10));
        assert_eq!(parse_quantity("1.5Gi"), Some(ONE * 3 * (1 << 29)));
        assert_eq!(parse_quantity("2e3"), Some(2000 * ONE));
        assert_eq!(parse_quantity("2E"), Some(2_000_000_000_000_000_000 * ONE));
        assert_eq!(parse_quantity("-1"), Some(-ONE));
        assert_eq!(parse_quantity("1n"), Some(1));
        assert_eq!(parse_quantity("0.1n"), Some(1));
        assert_eq!(parse_quantity("1e1000"), Some(LARGEST));
        assert_eq!(parse_quantity("0"), Some(0));
        assert_eq!(parse_quantity("0e99"), Some(0));
        for wrong in ["", "-", ".", "1.2.3", "1x", "1e", "1 Gi", "Gi", "1ee3", "é"] {
            assert_eq!(parse_quantity(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_text_makes_it_panic_and_what_is_read_is_in_range() {
        let pieces = [
            "0",
            "1",
            "9",
            ".",
            "-",
            "+",
            "e",
            "E",
            "Ki",
            "Ei",
            "m",
            "n",
            "k",
            "999999999999999999999999",
            "ü",
            "000000000",
            "99999999",
        ];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from((state >> 11) % bound as u64).expect("below a usize")
        };
        for _ in 0..50_000 {
            let text: String = (0..below(8)).map(|_| pieces[below(pieces.len())]).collect();
            if let Some(quantity) = parse_quantity(&text) {
                assert!(quantity.unsigned_abs() <= LARGEST.unsigned_abs(), "{text}");
            }
        }
    }
}
