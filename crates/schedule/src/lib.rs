//! Schedules as cron has them: five fields, or a word such as `@hourly`; in UTC, or in a time zone that is
//! handed in. Stands alone, imports nothing of ours.
//!
//! What a line means is what the parser that VolSync and CronJobs use makes of it: a day counts if the day of the
//! month and the day of the week both fit; where both are restricted, one of them is enough. `*/2` is
//! a restriction, `*` and `?` are none. Months and days of the week may be named.

#![forbid(unsafe_code)]

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// The 29th of February can be this many days away, across a year like 2100.
const DAYS_AHEAD: usize = 366 * 8 + 2;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Spans in which the latest time before another is looked for, the shortest first: an hour, a day, a month, a year,
/// and as long as any schedule pauses.
const SPANS_HOURS: [i64; 5] = [1, 24, 24 * 32, 24 * 366, 24 * DAYS_AHEAD as i64];

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
}

/// The values of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    /// One bit for each value.
    values: u64,
    /// Whether it says nothing: `*`.
    is_star: bool,
}

impl Field {
    fn has(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| value < 64 && self.values & (1 << value) != 0)
    }
}

impl Cron {
    /// Reads a schedule; the error says in words what is wrong with it.
    pub fn read(text: &str) -> Result<Cron, String> {
        let line = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other if other.starts_with('@') => {
                return Err(format!(
                    "{other:?} is not one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, \
                     @annually"
                ));
            }
            other => other,
        };
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(format!("{text:?} has {} fields instead of five", fields.len()));
        };
        Ok(Cron {
            minutes: Bounds { called: "minute", low: 0, high: 59, names: &[] }.read(minutes)?,
            hours: Bounds { called: "hour", low: 0, high: 23, names: &[] }.read(hours)?,
            days: Bounds { called: "day of the month", low: 1, high: 31, names: &[] }.read(days)?,
            months: Bounds { called: "month", low: 1, high: 12, names: &MONTHS }.read(months)?,
            weekdays: Bounds { called: "day of the week", low: 0, high: 6, names: &WEEKDAYS }
                .read(weekdays)?,
        })
    }

    /// The first moment after this one that fits, in UTC; None: there is none, such as a 31st of February.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.next_at(Offset::UTC, after)
    }

    /// The first moment after this one that fits in a time zone. A time that the clocks skip when they are put
    /// forward does not come on that day; one that they show twice when they are put back comes twice.
    pub fn next_in(&self, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
        let (mut offset, mut from, mut since) = (zone.to_offset(after), after, after);
        loop {
            let found = self.next_at(offset, from)?;
            let change = zone.following(since).next();
            let Some(change) = change.filter(|change| change.timestamp() <= found) else {
                return Some(found);
            };
            since = change.timestamp();
            offset = change.offset();
            // The first minute under the new offset counts.
            from = since.checked_sub(SignedDuration::from_mins(1)).ok()?;
        }
    }

    /// The last moment after the first and up to the second that fits in a time zone.
    pub fn latest_in(
        &self,
        zone: &TimeZone,
        after: Timestamp,
        until: Timestamp,
    ) -> Option<Timestamp> {
        for hours in SPANS_HOURS {
            let begin = until.checked_sub(SignedDuration::from_hours(hours));
            let begin = begin.map_or(after, |begin| begin.max(after));
            let next = |at: &Timestamp| self.next_in(zone, *at).filter(|next| *next <= until);
            if let Some(latest) = std::iter::successors(next(&begin), next).last() {
                return Some(latest);
            }
            if begin == after {
                return None;
            }
        }
        None
    }

    /// The first moment after this one that fits where clocks differ from UTC by this.
    fn next_at(&self, offset: Offset, after: Timestamp) -> Option<Timestamp> {
        let start = offset.to_datetime(after);
        let mut date = start.date();
        for day in 0..DAYS_AHEAD {
            if self.has_date(date) {
                let from = if day == 0 { Some((start.hour(), start.minute())) } else { None };
                if let Some((hour, minute)) = self.time_of_day(from) {
                    let found = date.at(hour, minute, 0, 0);
                    return offset.to_timestamp(found).ok();
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn has_date(&self, date: Date) -> bool {
        let day = self.days.has(date.day());
        let weekday = self.weekdays.has(date.weekday().to_sunday_zero_offset());
        let is_either = !self.days.is_star && !self.weekdays.is_star;
        self.months.has(date.month()) && if is_either { day || weekday } else { day && weekday }
    }

    /// The first time of a day, after this hour and minute where the day is not a whole one.
    fn time_of_day(&self, after: Option<(i8, i8)>) -> Option<(i8, i8)> {
        let times = (0..24).flat_map(|hour| (0..60).map(move |minute| (hour, minute)));
        let mut fitting =
            times.filter(|(hour, minute)| self.hours.has(*hour) && self.minutes.has(*minute));
        fitting.find(|time| after.is_none_or(|after| *time > after))
    }
}

/// What a field may say.
struct Bounds {
    called: &'static str,
    low: u32,
    high: u32,
    /// Names of its values, the lowest first.
    names: &'static [&'static str],
}

impl Bounds {
    /// Reads one field: a list of values, ranges and steps.
    fn read(&self, text: &str) -> Result<Field, String> {
        let mut found = Field { values: 0, is_star: false };
        for part in text.split(',') {
            let flaw = || {
                let Bounds { called, low, high, .. } = self;
                format!("{part:?} is not a {called} between {low} and {high}")
            };
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(number(step).ok_or_else(flaw)?)),
                None => (part, None),
            };
            let is_any = matches!(range, "*" | "?");
            let (from, to) = match range.split_once('-') {
                _ if is_any => (self.low, self.high),
                Some((from, to)) => {
                    (self.value(from).ok_or_else(flaw)?, self.value(to).ok_or_else(flaw)?)
                }
                None => {
                    let from = self.value(range).ok_or_else(flaw)?;
                    // `5/15` goes on to the end, `5` alone does not.
                    (from, if step.is_some() { self.high } else { from })
                }
            };
            let step = step.unwrap_or(1);
            if from < self.low || to > self.high || from > to || step == 0 {
                return Err(flaw());
            }
            let values = (from..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX));
            found.values |= values.fold(0, |bits, value| bits | 1 << value);
            found.is_star |= is_any && step == 1;
        }
        Ok(found)
    }

    /// A value by its number or its name.
    fn value(&self, text: &str) -> Option<u32> {
        let place = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        match place.and_then(|place| u32::try_from(place).ok()) {
            Some(place) => Some(self.low + place),
            None => number(text),
        }
    }
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u32> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clocks of New York, as they are changed since 2007.
    const NEW_YORK: &str = "EST5EDT,M3.2.0,M11.1.0";

    fn moment(text: &str) -> Timestamp {
        let read: jiff::civil::DateTime = text.parse().expect("a moment");
        Offset::UTC.to_timestamp(read).expect("a moment of our time")
    }

    fn next(line: &str, after: &str) -> String {
        let cron = Cron::read(line).expect("a schedule");
        match cron.next(moment(after)) {
            Some(found) => Offset::UTC.to_datetime(found).to_string(),
            None => "never".to_owned(),
        }
    }

    #[test]
    fn the_next_moment_is_after_the_one_given_and_fits() {
        for (line, after, wanted) in [
            ("*/30 * * * *", "2026-01-02T03:04:05", "2026-01-02T03:30:00"),
            ("*/30 * * * *", "2026-01-02T03:30:00", "2026-01-02T04:00:00"),
            ("*/30 * * * *", "2026-01-02T03:29:59.9", "2026-01-02T03:30:00"),
            ("0 2 * * *", "2026-01-02T02:00:00", "2026-01-03T02:00:00"),
            ("0 2 * * *", "2026-12-31T23:59:59", "2027-01-01T02:00:00"),
            ("15,45 8-10 * * *", "2026-01-02T10:45:00", "2026-01-03T08:15:00"),
            ("5/20 * * * *", "2026-01-02T00:26:00", "2026-01-02T00:45:00"),
            ("10-20/5 * * * *", "2026-01-02T00:15:30", "2026-01-02T00:20:00"),
            ("0 0 29 2 *", "2097-01-01T00:00:00", "2104-02-29T00:00:00"),
            ("0 0 31 * *", "2026-04-01T00:00:00", "2026-05-31T00:00:00"),
            ("@hourly", "2026-01-02T03:00:00", "2026-01-02T04:00:00"),
            ("@daily", "2026-01-02T03:00:00", "2026-01-03T00:00:00"),
            ("@weekly", "2026-01-02T03:00:00", "2026-01-04T00:00:00"),
            ("@monthly", "2026-01-02T03:00:00", "2026-02-01T00:00:00"),
            ("@yearly", "2026-01-02T03:00:00", "2027-01-01T00:00:00"),
            ("@annually", "2026-01-01T00:00:00", "2027-01-01T00:00:00"),
            ("0 0 31 2 *", "2026-01-01T00:00:00", "never"),
            ("*/1 * * * ?", "2026-01-02T03:04:05", "2026-01-02T03:05:00"),
            ("0 9 ? jan-Mar MON-fri", "2026-01-02T09:00:00", "2026-01-05T09:00:00"),
            ("0 0 * feb/3 *", "2026-03-01T00:00:00", "2026-05-01T00:00:00"),
            ("@midnight", "2026-01-02T03:00:00", "2026-01-03T00:00:00"),
        ] {
            assert_eq!(next(line, after), wanted, "{line} after {after}");
        }
    }

    #[test]
    fn where_both_days_are_restricted_one_is_enough() {
        // The 2nd of January 2026 is a Friday.
        assert_eq!(next("0 0 15 * 5", "2026-01-01T00:00:00"), "2026-01-02T00:00:00");
        assert_eq!(next("0 0 15 * 5", "2026-01-09T00:00:00"), "2026-01-15T00:00:00");
        assert_eq!(next("0 0 * * 5", "2026-01-02T00:00:00"), "2026-01-09T00:00:00");
        // A step is a restriction: every odd day, or a Friday.
        assert_eq!(next("0 0 */2 * 5", "2026-01-01T00:00:00"), "2026-01-02T00:00:00");
        assert_eq!(next("0 0 */1 * 5", "2026-01-02T00:00:00"), "2026-01-09T00:00:00");
    }

    #[test]
    fn what_is_no_schedule_is_refused_in_words() {
        for line in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 7",
            "5-1 * * * *",
            "*/0 * * * *",
            "a * * * *",
            "1, * * * *",
            "+1 * * * *",
            "99999999999 * * * *",
            "@every 1h",
            "@hourlyfoo",
            "12345",
            "1-2-3 * * * *",
            "-1 * * * *",
            "mon * * * *",
            "* * * mon *",
            "* * * * monday",
            "TZ=UTC * * * * *",
            "?-3 * * * *",
        ] {
            assert!(Cron::read(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn the_end_of_time_is_no_panic() {
        let cron = Cron::read("* * * * *").expect("a schedule");
        assert_eq!(cron.next(Timestamp::MAX), None);
        assert!(cron.next(Timestamp::MIN).is_some());
    }

    fn in_new_york(line: &str, after: &str) -> String {
        let zone = TimeZone::posix(NEW_YORK).expect("a time zone");
        let after: Timestamp = after.parse().expect("a moment");
        let found = Cron::read(line).expect("a schedule").next_in(&zone, after);
        found.map_or_else(|| "never".to_owned(), |at| at.to_string())
    }

    #[test]
    fn a_time_zone_says_when_it_is_nine() {
        for (after, wanted) in [
            ("2026-01-02T00:00:00Z", "2026-01-02T14:00:00Z"),
            ("2026-07-02T00:00:00Z", "2026-07-02T13:00:00Z"),
            ("2026-03-07T14:00:00Z", "2026-03-08T13:00:00Z"),
            ("2026-10-31T13:00:00Z", "2026-11-01T14:00:00Z"),
        ] {
            assert_eq!(in_new_york("0 9 * * *", after), wanted, "after {after}");
        }
        assert_eq!(in_new_york("0 0 31 2 *", "2026-01-02T00:00:00Z"), "never");
    }

    #[test]
    fn what_the_clocks_skip_does_not_come_and_what_they_repeat_comes_twice() {
        // On the 8th of March 2026 two o'clock is three o'clock at once.
        let skipped = in_new_york("30 2 * * *", "2026-03-08T00:00:00-05:00");
        assert_eq!(skipped, "2026-03-09T06:30:00Z");
        assert_eq!(in_new_york("0 * * * *", "2026-03-08T06:00:00Z"), "2026-03-08T07:00:00Z");
        // On the 1st of November one o'clock comes twice.
        let first = in_new_york("0 1 * * *", "2026-11-01T00:00:00-04:00");
        assert_eq!(first, "2026-11-01T05:00:00Z");
        assert_eq!(in_new_york("0 1 * * *", &first), "2026-11-01T06:00:00Z");
        assert_eq!(in_new_york("*/30 * * * *", "2026-11-01T05:30:00Z"), "2026-11-01T06:00:00Z");
    }

    #[test]
    fn the_latest_moment_is_found_however_long_ago_it_was() {
        for (line, after, until, wanted) in [
            ("* * * * *", "1990-01-01T00:00:00", "2026-01-02T03:04:05", "2026-01-02T03:04:00"),
            ("0 2 * * *", "2026-01-01T00:00:00", "2026-01-02T02:00:00", "2026-01-02T02:00:00"),
            ("0 2 * * *", "2026-01-01T00:00:00", "2026-01-02T01:59:59", "2026-01-01T02:00:00"),
            ("0 0 1 * *", "1990-01-01T00:00:00", "2026-01-31T00:00:00", "2026-01-01T00:00:00"),
            ("0 0 29 2 *", "2090-01-01T00:00:00", "2104-02-28T00:00:00", "2096-02-29T00:00:00"),
        ] {
            let cron = Cron::read(line).expect("a schedule");
            let found = cron.latest_in(&TimeZone::UTC, moment(after), moment(until));
            assert_eq!(found, Some(moment(wanted)), "{line}");
        }
        let hourly = Cron::read("@hourly").expect("a schedule");
        let (after, until) = (moment("2026-01-02T03:00:00"), moment("2026-01-02T03:59:59"));
        assert_eq!(hourly.latest_in(&TimeZone::UTC, after, until), None);
        assert_eq!(hourly.latest_in(&TimeZone::UTC, until, after), None, "the wrong way round");
    }
}
