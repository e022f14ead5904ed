//! Schedules as cron has them: five fields, or a word such as `@hourly`. In UTC.
//!
//! What a line means is what the parser that VolSync uses makes of it: a day counts if the day of the
//! month and the day of the week both fit; where both are restricted, one of them is enough. `*/2` is
//! a restriction, `*` is none. Names of days and months, which VolSync's definition does not let
//! through, are not read.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;

/// The 29th of February can be this many days away, across a year like 2100.
const DAYS_AHEAD: usize = 366 * 8 + 2;

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
            "@daily" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other if other.starts_with('@') => {
                return Err(format!(
                    "{other:?} is not one of @hourly, @daily, @weekly, @monthly, @yearly, @annually"
                ));
            }
            other => other,
        };
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(format!("{text:?} has {} fields instead of five", fields.len()));
        };
        Ok(Cron {
            minutes: field(minutes, "minute", 0, 59)?,
            hours: field(hours, "hour", 0, 23)?,
            days: field(days, "day of the month", 1, 31)?,
            months: field(months, "month", 1, 12)?,
            weekdays: field(weekdays, "day of the week", 0, 6)?,
        })
    }

    /// The first moment after this one that fits; None: there is none, such as a 31st of February.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let start = Offset::UTC.to_datetime(after);
        let mut date = start.date();
        for day in 0..DAYS_AHEAD {
            if self.has_date(date) {
                let from = if day == 0 { Some((start.hour(), start.minute())) } else { None };
                if let Some((hour, minute)) = self.time_of_day(from) {
                    let found = date.at(hour, minute, 0, 0);
                    return Offset::UTC.to_timestamp(found).ok();
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

/// Reads one field: a list of values, ranges and steps.
fn field(text: &str, name: &str, low: u32, high: u32) -> Result<Field, String> {
    let mut found = Field { values: 0, is_star: false };
    for part in text.split(',') {
        let flaw = || format!("{part:?} is not a {name} between {low} and {high}");
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(number(step).ok_or_else(flaw)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (low, high),
            Some((from, to)) => (number(from).ok_or_else(flaw)?, number(to).ok_or_else(flaw)?),
            None => {
                let from = number(range).ok_or_else(flaw)?;
                // `5/15` goes on to the end, `5` alone does not.
                (from, if step.is_some() { high } else { from })
            }
        };
        let step = step.unwrap_or(1);
        if from < low || to > high || from > to || step == 0 {
            return Err(flaw());
        }
        let values = (from..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        found.values |= values.fold(0, |bits, value| bits | 1 << value);
        found.is_star |= range == "*" && step == 1;
    }
    Ok(found)
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u32> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_digits)
}

/// A moment in UTC, for tests and messages.
#[cfg(test)]
pub(crate) fn moment(text: &str) -> Timestamp {
    let read: jiff::civil::DateTime = text.parse().expect("a moment");
    Offset::UTC.to_timestamp(read).expect("a moment of our time")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
