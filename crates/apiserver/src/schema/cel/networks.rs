//! Addresses, networks, URLs and semantic versions.

use super::eval::{Evaluated, Fault, fault};
use super::functions::sign;
use super::value::Val;
use crate::schema::formats::{is_request_uri, parse_cidr};
use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A URL in its parts, as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(super) text: Box<str>,
    scheme: Box<str>,
    host: Box<str>,
    path: Box<str>,
    query: Box<str>,
}

/// A semantic version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    before_release: Vec<Box<str>>,
    build: Box<str>,
}

impl Semver {
    fn parse(text: &str) -> Option<Self> {
        let (text, build) = text.split_once('+').map_or((text, ""), |(text, build)| (text, build));
        let (core, before_release) =
            text.split_once('-').map_or((text, None), |(core, rest)| (core, Some(rest)));
        let mut parts = core.split('.');
        let mut numbers = [0; 3];
        for number in &mut numbers {
            let part = parts.next()?;
            let has_zero = part.len() > 1 && part.starts_with('0');
            if has_zero || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            *number = part.parse().ok()?;
        }
        if parts.next().is_some() {
            return None;
        }
        let is_word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let before_release: Vec<Box<str>> = match before_release {
            None => Vec::new(),
            Some(words) => words.split('.').map(Box::from).collect(),
        };
        let is_fine = |word: &str| {
            is_word(word) && !(is_number(word) && word.len() > 1 && word.starts_with('0'))
        };
        if !before_release.iter().all(|word| is_fine(word)) {
            return None;
        }
        if !build.is_empty() && !build.split('.').all(is_word) {
            return None;
        }
        Some(Semver { numbers, before_release, build: build.into() })
    }

    /// Reads a version that is written loosely: `v1.2`, `01.2.3`.
    fn parse_loosely(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (core, rest) = text.split_at(end);
        let mut parts: Vec<&str> = core.split('.').collect();
        if parts.len() > 3 {
            return None;
        }
        parts.resize(3, "0");
        let plain: Vec<&str> = parts
            .into_iter()
            .map(|part| match part.trim_start_matches('0') {
                "" if !part.is_empty() => "0",
                stripped => stripped,
            })
            .collect();
        Semver::parse(&format!("{}{rest}", plain.join(".")))
    }

    /// Which version comes first; what was built does not count.
    pub(super) fn precedence(&self, other: &Semver) -> Ordering {
        let order = self.numbers.cmp(&other.numbers);
        let words = (&self.before_release, &other.before_release);
        order.then_with(|| match (words.0.is_empty(), words.1.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let each = words.0.iter().zip(words.1).map(|(one, other)| word_order(one, other));
                let first = each.into_iter().find(|order| order.is_ne());
                first.unwrap_or_else(|| words.0.len().cmp(&words.1.len()))
            }
        })
    }
}

fn word_order(one: &str, other: &str) -> Ordering {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    match (is_number(one), is_number(other)) {
        (true, true) => one.len().cmp(&other.len()).then_with(|| one.cmp(other)),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => one.cmp(other),
    }
}

impl std::fmt::Display for Semver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(formatter, "{major}.{minor}.{patch}")?;
        if !self.before_release.is_empty() {
            write!(formatter, "-{}", self.before_release.join("."))?;
        }
        if !self.build.is_empty() {
            write!(formatter, "+{}", self.build)?;
        }
        Ok(())
    }
}

/// An address as upstream takes it: no zone, no IPv4 inside IPv6.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    match address {
        IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => None,
        _ => Some(address),
    }
}

/// A network, as it was written: bits behind the prefix may be set.
#[derive(Clone, Copy)]
struct Network {
    address: IpAddr,
    prefix: u8,
}

fn parse_network(text: &str) -> Option<Network> {
    let (address, prefix) = parse_cidr(text)?;
    parse_ip(&address.to_string()).map(|address| Network { address, prefix })
}

/// The address with the bits behind the prefix cleared.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(four) => {
            let mask = u32::MAX.checked_shl(32 - prefix.min(32)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(four) & mask))
        }
        IpAddr::V6(six) => {
            let mask = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(six) & mask))
        }
    }
}

fn holds(network: Network, address: IpAddr) -> bool {
    let same_family = network.address.is_ipv4() == address.is_ipv4();
    same_family && masked(network.address, network.prefix) == masked(address, network.prefix)
}

fn parse_url(text: &str) -> Option<Url> {
    if !is_request_uri(text) {
        return None;
    }
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if !text.starts_with('/') => (scheme, rest),
        _ => ("", text),
    };
    let rest = rest.split('#').next().unwrap_or(rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            (authority.rsplit('@').next().unwrap_or(authority), path)
        }
        None => ("", rest),
    };
    Some(Url {
        text: text.into(),
        scheme: scheme.to_lowercase().into(),
        host: host.into(),
        path: path.into(),
        query: query.into(),
    })
}

impl Url {
    /// The host without its port, and the port; an address of IPv6 stands in brackets.
    fn host_and_port(&self) -> (&str, &str) {
        if let Some(rest) = self.host.strip_prefix('[') {
            let (name, after) = rest.split_once(']').unwrap_or((rest, ""));
            return (name, after.strip_prefix(':').unwrap_or(""));
        }
        self.host.rsplit_once(':').unwrap_or((&self.host, ""))
    }

    fn query<'a>(&self) -> Val<'a> {
        let mut entries: Vec<(String, Vec<Val<'a>>)> = Vec::new();
        for part in self.query.split('&').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (unescape(key), Val::text(unescape(value)));
            match entries.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => entries.push((key, vec![value])),
            }
        }
        let made = entries.into_iter().map(|(key, values)| (Val::text(key), Val::list(values)));
        Val::Map(super::value::MapVal::Made(Arc::new(made.collect())))
    }
}

/// A path with everything escaped that may not stand in one.
fn escaped(path: &str) -> String {
    let is_plain = |byte: u8| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'<' | b'>' | b'^' | b'`' | b'{'..=b'}' | b'\\')
    };
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if is_plain(byte) || byte == b'~' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

pub(super) fn global<'a>(name: &str, values: &[Val<'a>]) -> Evaluated<'a> {
    let [Val::String(text), rest @ ..] = values else { return Err(Fault::NoSuchOverload) };
    let text: &str = text;
    let version = |is_loose: bool| {
        if is_loose { Semver::parse_loosely(text) } else { Semver::parse(text) }
    };
    match (name, rest) {
        ("ip", []) => match parse_ip(text) {
            Some(address) => Ok(Val::Ip(address)),
            None => fault(format!("IP Address {text:?} parse error during conversion from string")),
        },
        ("isIP", []) => Ok(Val::Bool(parse_ip(text).is_some())),
        ("ip.isCanonical", []) => match parse_ip(text) {
            Some(address) => Ok(Val::Bool(address.to_string() == text)),
            None => fault(format!("IP Address {text:?} parse error during conversion from string")),
        },
        ("cidr", []) => match parse_network(text) {
            Some(network) => Ok(Val::Cidr(network.address, network.prefix)),
            None => {
                fault(format!("network address parse error during conversion from string: {text}"))
            }
        },
        ("isCIDR", []) => Ok(Val::Bool(parse_network(text).is_some())),
        ("url", []) => match parse_url(text) {
            Some(url) => Ok(Val::Url(Arc::new(url))),
            None => fault(format!("URL parse error during conversion from string: {text:?}")),
        },
        ("isURL", []) => Ok(Val::Bool(parse_url(text).is_some())),
        ("semver" | "isSemver", [] | [Val::Bool(_)]) => {
            let found = version(matches!(rest, [Val::Bool(true)]));
            match (name, found) {
                ("isSemver", found) => Ok(Val::Bool(found.is_some())),
                (_, Some(version)) => Ok(Val::Semver(Arc::new(version))),
                (_, None) => fault("Invalid character(s) found in version number"),
            }
        }
        _ => Err(Fault::NoSuchOverload),
    }
}

pub(super) fn method<'a>(name: &str, values: &[Val<'a>]) -> Evaluated<'a> {
    match values {
        [Val::Ip(address)] => ip_method(name, *address),
        [Val::Cidr(address, prefix), rest @ ..] => {
            cidr_method(name, Network { address: *address, prefix: *prefix }, rest)
        }
        [Val::Url(url)] => {
            let (host, port) = url.host_and_port();
            Ok(match name {
                "getScheme" => Val::text(&*url.scheme),
                "getHost" => Val::text(&*url.host),
                "getHostname" => Val::text(host),
                "getPort" => Val::text(port),
                "getEscapedPath" => Val::text(escaped(&url.path)),
                "getQuery" => url.query(),
                _ => return Err(Fault::NoSuchOverload),
            })
        }
        [Val::Semver(own)] => {
            let place = match name {
                "major" => 0,
                "minor" => 1,
                "patch" => 2,
                _ => return Err(Fault::NoSuchOverload),
            };
            Ok(Val::Int(i64::try_from(own.numbers[place]).unwrap_or(i64::MAX)))
        }
        [Val::Semver(own), Val::Semver(other)] => Ok(match name {
            "isGreaterThan" => Val::Bool(own.precedence(other).is_gt()),
            "isLessThan" => Val::Bool(own.precedence(other).is_lt()),
            "compareTo" => Val::Int(sign(own.precedence(other))),
            _ => return Err(Fault::NoSuchOverload),
        }),
        _ => Err(Fault::NoSuchOverload),
    }
}

fn ip_method<'a>(name: &str, address: IpAddr) -> Evaluated<'a> {
    let is_link_local_multicast = match address {
        IpAddr::V4(four) => four.octets()[..3] == [224, 0, 0],
        IpAddr::V6(six) => six.segments()[0] & 0xff0f == 0xff02,
    };
    let is_link_local = match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.segments()[0] & 0xffc0 == 0xfe80,
    };
    let is_broadcast = matches!(address, IpAddr::V4(four) if four.is_broadcast());
    Ok(match name {
        "family" => Val::Int(if address.is_ipv4() { 4 } else { 6 }),
        "isUnspecified" => Val::Bool(address.is_unspecified()),
        "isLoopback" => Val::Bool(address.is_loopback()),
        "isLinkLocalMulticast" => Val::Bool(is_link_local_multicast),
        "isLinkLocalUnicast" => Val::Bool(is_link_local),
        "isGlobalUnicast" => Val::Bool(
            !is_broadcast
                && !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !is_link_local,
        ),
        _ => return Err(Fault::NoSuchOverload),
    })
}

fn cidr_method<'a>(name: &str, own: Network, rest: &[Val<'a>]) -> Evaluated<'a> {
    let wrong = |text: &str| {
        Fault::Other(format!("network address parse error during conversion from string: {text}"))
    };
    match (name, rest) {
        ("ip", []) => Ok(Val::Ip(own.address)),
        ("prefixLength", []) => Ok(Val::Int(i64::from(own.prefix))),
        ("masked", []) => Ok(Val::Cidr(masked(own.address, own.prefix), own.prefix)),
        ("containsIP", [Val::Ip(address)]) => Ok(Val::Bool(holds(own, *address))),
        ("containsIP", [Val::String(text)]) => match parse_ip(text) {
            Some(address) => Ok(Val::Bool(holds(own, address))),
            None => Err(wrong(text)),
        },
        ("containsCIDR", [other]) => {
            let inner = match other {
                Val::Cidr(address, prefix) => Network { address: *address, prefix: *prefix },
                Val::String(text) => parse_network(text).ok_or_else(|| wrong(text))?,
                _ => return Err(Fault::NoSuchOverload),
            };
            Ok(Val::Bool(inner.prefix >= own.prefix && holds(own, inner.address)))
        }
        _ => Err(Fault::NoSuchOverload),
    }
}
