//! Moments and spans.

use super::eval::{Evaluated, Fault, fault};
use super::value::Val;
use crate::schema::formats::{Moment, parse_duration, parse_rfc3339};
use crate::timestamp;

pub(super) fn convert<'a>(to: &str, value: &Val<'a>) -> Evaluated<'a> {
    match (to, value) {
        ("timestamp", Val::Timestamp(_)) | ("duration", Val::Duration(_)) => Ok(value.clone()),
        ("timestamp", Val::String(text)) => match parse_rfc3339(text) {
            Some(moment) => Ok(Val::Timestamp(moment)),
            None => fault(format!("cannot parse {:?} as a timestamp", &**text)),
        },
        ("timestamp", Val::Int(seconds)) => {
            if !(-62_135_596_800..=253_402_300_799).contains(seconds) {
                return fault("timestamp overflow");
            }
            Ok(Val::Timestamp(Moment { seconds: *seconds, nanoseconds: 0 }))
        }
        ("duration", Val::String(text)) => match parse_duration(text) {
            Some(span) => Ok(Val::Duration(span)),
            None => fault(format!("time: invalid duration {:?}", &**text)),
        },
        ("duration", Val::Int(nanoseconds)) => Ok(Val::Duration(*nanoseconds)),
        _ => Err(Fault::NoSuchOverload),
    }
}

pub(super) fn method<'a>(name: &str, values: &[Val<'a>]) -> Evaluated<'a> {
    match (values.first(), &values[1..]) {
        (Some(Val::Duration(span)), []) => match name {
            "getHours" => Ok(Val::Int(span / 3_600_000_000_000)),
            "getMinutes" => Ok(Val::Int(span / 60_000_000_000)),
            "getSeconds" => Ok(Val::Int(span / 1_000_000_000)),
            "getMilliseconds" => Ok(Val::Int(span / 1_000_000)),
            _ => Err(Fault::NoSuchOverload),
        },
        (Some(Val::Timestamp(moment)), []) => part(name, *moment, 0),
        (Some(Val::Timestamp(moment)), [Val::String(zone)]) => match offset(zone) {
            Some(offset) => part(name, *moment, offset),
            None => fault(format!("unknown time zone {}", &**zone)),
        },
        _ => Err(Fault::NoSuchOverload),
    }
}

/// Seconds east of UTC. Only fixed offsets are known: there is no time zone database here.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "UTC" | "Z" | "Etc/UTC" | "GMT") {
        return Some(0);
    }
    let (sign, clock) = match zone.as_bytes().first()? {
        b'-' => (-1, &zone[1..]),
        b'+' => (1, &zone[1..]),
        _ => (1, zone),
    };
    let (hours, minutes) = clock.split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let is_fine = (0..24).contains(&hours) && (0..60).contains(&minutes);
    is_fine.then_some(sign * (hours * 3600 + minutes * 60))
}

struct Civil {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
}

/// The date of a day since 1970.
fn civil(days: i64) -> Civil {
    let (year, month, day) = timestamp::date(days);
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let month_index = usize::try_from(month - 1).unwrap_or(0).min(11);
    let day_of_year = before[month_index] + i64::from(is_leap && month > 2) + day - 1;
    Civil { year, month, day, day_of_year }
}

fn part<'a>(name: &str, moment: Moment, offset: i64) -> Evaluated<'a> {
    let seconds = moment.seconds + offset;
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let date = civil(days);
    let value = match name {
        "getFullYear" => date.year,
        "getMonth" => date.month - 1,
        "getDayOfYear" => date.day_of_year,
        "getDate" => date.day,
        "getDayOfMonth" => date.day - 1,
        "getDayOfWeek" => (days + 4).rem_euclid(7),
        "getHours" => of_day / 3600,
        "getMinutes" => of_day / 60 % 60,
        "getSeconds" => of_day % 60,
        "getMilliseconds" => i64::from(moment.nanoseconds / 1_000_000),
        _ => return Err(Fault::NoSuchOverload),
    };
    Ok(Val::Int(value))
}

/// As RFC 3339 writes it, in UTC.
pub(super) fn rfc3339(moment: Moment) -> String {
    let (days, of_day) = (moment.seconds.div_euclid(86_400), moment.seconds.rem_euclid(86_400));
    let Civil { year, month, day, .. } = civil(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = match moment.nanoseconds {
        0 => String::new(),
        nanoseconds => format!(".{nanoseconds:09}").trim_end_matches('0').to_owned(),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// A span in seconds: `90s`, `1.5s`.
pub(super) fn seconds(span: i64) -> String {
    let sign = if span < 0 { "-" } else { "" };
    let (whole, rest) = (span.unsigned_abs() / 1_000_000_000, span.unsigned_abs() % 1_000_000_000);
    let fraction = match rest {
        0 => String::new(),
        rest => format!(".{rest:09}").trim_end_matches('0').to_owned(),
    };
    format!("{sign}{whole}{fraction}s")
}
