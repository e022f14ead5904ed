//! The formats that texts may have, as upstream checks them.

mod time;

#[cfg(test)]
mod tests;

pub(crate) use time::{Moment, parse_date, parse_duration, parse_rfc3339};

use regex::Regex;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;
use time::{is_date_time, parse_loose_duration};

/// Whether a text has the format; nothing if the format is not known, and then anything goes.
pub(crate) fn has_format(format: &str, text: &str) -> Option<bool> {
    let name: String = format.chars().filter(|c| *c != '-').collect();
    let is_fine = match name.as_str() {
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "uri" => is_request_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => matches!(text.parse::<IpAddr>(), Ok(IpAddr::V4(_))),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => parse_cidr(text).is_some(),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None, false),
        "uuid3" => is_uuid(text, Some('3'), false),
        "uuid4" => is_uuid(text, Some('4'), true),
        "uuid5" => is_uuid(text, Some('5'), true),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "ssn" => SOCIAL_SECURITY.is_match(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && is_hex(digits)
        }
        "rgbcolor" => RGB_COLOR.is_match(text),
        "byte" => !text.is_empty() && decode_base64(text).is_ok(),
        "password" => true,
        "date" => parse_date(text).is_some(),
        "duration" => parse_loose_duration(text).is_some(),
        "datetime" => is_date_time(text),
        "k8sshortname" => text.len() <= 63 && is_label(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_label),
        _ => return None,
    };
    Some(is_fine)
}

/// Whether a format is one that is checked.
pub(crate) fn is_known(format: &str) -> bool {
    has_format(format, "").is_some()
}

fn pattern(source: &'static str) -> Regex {
    Regex::new(source).expect("the pattern is a constant, and a test compiles it")
}

static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|",
        r"([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.))",
        r"{1,}([a-zA-Z\p{L}]){2,63})$"
    ))
});
static SOCIAL_SECURITY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])",
        r"\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$"
    ))
});
static CREDIT_CARD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}",
        r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    ))
});

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A DNS label of RFC 1123 in lower case, of any length.
pub(crate) fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.iter().all(is_inner) && *first != b'-' && *last != b'-'
}

/// What Go's `url.ParseRequestURI` takes: an absolute URI or an absolute path.
pub(crate) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let rest = match text.split_once(':') {
        Some((scheme, rest)) if !text.starts_with('/') && is_scheme(scheme) => {
            if !rest.starts_with('/') {
                // Opaque, such as mailto:a@b: fine unless it has no content that a path could be.
                return true;
            }
            rest
        }
        _ if text.starts_with('/') => text,
        _ => return false,
    };
    let authority = rest.strip_prefix("//").map(|rest| rest.split('/').next().unwrap_or(rest));
    let host_is_fine = authority.is_none_or(|host| !host.contains([' ', '<', '>', '"', '^', '`']));
    host_is_fine && has_whole_escapes(rest)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn has_whole_escapes(text: &str) -> bool {
    let path = text.split('?').next().unwrap_or(text).as_bytes();
    path.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(at, _)| {
        path.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    })
}

fn is_email(text: &str) -> bool {
    let address = match (text.find('<'), text.ends_with('>')) {
        (Some(open), true) => &text[open + 1..text.len() - 1],
        (None, false) => text.trim(),
        _ => return false,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| !c.is_whitespace() && !c.is_control() && !"()<>[]:;@\\,\"".contains(c))
    };
    let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    (is_quoted || local.split('.').all(is_word)) && domain.split('.').all(is_word)
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && HOSTNAME.is_match(text)
}

fn is_mac(text: &str) -> bool {
    let is_group = |width: usize| move |group: &str| group.len() == width && is_hex(group);
    for separator in [':', '-'] {
        let groups: Vec<&str> = text.split(separator).collect();
        if groups.iter().copied().all(is_group(2)) && matches!(groups.len(), 6 | 8 | 20) {
            return true;
        }
    }
    let groups: Vec<&str> = text.split('.').collect();
    groups.iter().copied().all(is_group(4)) && matches!(groups.len(), 3 | 4 | 10)
}

fn is_uuid(text: &str, version: Option<char>, has_variant: bool) -> bool {
    let mut digits = String::with_capacity(32);
    for (at, character) in text.chars().enumerate() {
        if character == '-' && matches!(digits.len(), 8 | 12 | 16 | 20) {
            // One hyphen per border: a second one would stand where the text has grown no digit
            // since.
            if at > 0 && text.as_bytes().get(at - 1) == Some(&b'-') {
                return false;
            }
            continue;
        }
        digits.push(character);
        if digits.len() > 32 {
            return false;
        }
    }
    if digits.len() != 32 || !is_hex(&digits) || text.ends_with('-') {
        return false;
    }
    let version_is_fine = version.is_none_or(|version| digits[12..13].starts_with(version));
    let variant_is_fine = !has_variant || digits[16..17].contains(['8', '9', 'a', 'b', 'A', 'B']);
    version_is_fine && variant_is_fine
}

fn is_isbn10(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| !b" -".contains(byte)).collect();
    if digits.len() != 10 || !digits[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match digits[9] {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..).zip(&digits[..9]).map(|(at, digit)| at * u32::from(digit - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| !b" -".contains(byte)).collect();
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weight = |at: usize| if at.is_multiple_of(2) { 1 } else { 3 };
    let sum: u32 = digits.iter().enumerate().map(|(at, d)| weight(at) * u32::from(d - b'0')).sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.is_match(&digits) {
        return false;
    }
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 = digits
        .bytes()
        .rev()
        .map(|byte| u32::from(byte - b'0'))
        .enumerate()
        .map(|(at, digit)| if at.is_multiple_of(2) { digit } else { doubled(digit) })
        .sum();
    sum.is_multiple_of(10)
}

/// An address and the length of its prefix, as Go's `net.ParseCIDR` reads them.
pub(crate) fn parse_cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let has_stray_sign = !prefix.bytes().all(|byte| byte.is_ascii_digit());
    if has_stray_sign || prefix.is_empty() || (prefix.len() > 1 && prefix.starts_with('0')) {
        return None;
    }
    let prefix: u8 = prefix.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    (prefix <= longest).then_some((address, prefix))
}

/// The bytes behind base64 with padding, or the place of the first byte that does not belong. Line
/// breaks are skipped, as Go does.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut group = [0u8; 4];
    let (mut filled, mut padding) = (0, 0);
    for (at, byte) in text.bytes().enumerate() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if filled >= 2 => {
                padding += 1;
                0
            }
            b'\r' | b'\n' => continue,
            _ => return Err(at),
        };
        if padding > 0 && byte != b'=' {
            return Err(at);
        }
        group[filled] = value;
        filled += 1;
        if filled < 4 {
            continue;
        }
        filled = 0;
        if padding > 2 {
            return Err(at);
        }
        let bytes = [
            group[0] << 2 | group[1] >> 4,
            group[1] << 4 | group[2] >> 2,
            group[2] << 6 | group[3],
        ];
        out.extend_from_slice(&bytes[..3 - padding]);
        if padding > 0 {
            let rest = text.as_bytes()[at + 1..].iter();
            let mut left = rest.enumerate().filter(|(_, byte)| !b"\r\n".contains(byte));
            return left.next().map_or(Ok(out), |(more, _)| Err(at + 1 + more));
        }
    }
    if filled == 0 { Ok(out) } else { Err(text.len()) }
}
