//! Which snapshots stay, by restic's rules.

use crate::failure::{Failure, Reason};
use jiff::{Span, Timestamp, Zoned};

/// Which snapshots stay. Without any number, the last one does, as with VolSync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keep {
    /// The last so many.
    pub last: Option<u32>,
    /// One an hour, for so many.
    pub hourly: Option<u32>,
    /// One a day.
    pub daily: Option<u32>,
    /// One a week.
    pub weekly: Option<u32>,
    /// One a month.
    pub monthly: Option<u32>,
    /// One a year.
    pub yearly: Option<u32>,
    /// All of this last time before the newest, as restic writes it: `3h`, `7d`, `1y6m`.
    pub within: Option<String>,
}

/// So many are still to be kept, of periods that differ from the last one.
struct Bucket {
    left: u32,
    last: Option<i64>,
    period: fn(&Zoned, usize) -> i64,
}

impl Keep {
    /// For each snapshot, newest first, whether it stays.
    pub fn kept(&self, times: &[Zoned], now: Timestamp) -> Result<Vec<bool>, Failure> {
        let mut buckets = self.buckets();
        let newest = times.iter().filter(|time| time.timestamp() < now).max();
        let since = match (&self.within, newest) {
            (Some(within), Some(newest)) => Some(before(newest, within)?),
            _ => None,
        };
        let mut kept = Vec::with_capacity(times.len());
        for (number, time) in times.iter().enumerate() {
            let is_last = number + 1 == times.len();
            let mut stays = since.as_ref().is_some_and(|since| time > since);
            for bucket in buckets.iter_mut().filter(|bucket| bucket.left > 0) {
                let period = (bucket.period)(time, number);
                // The oldest stays while there is room, so that a policy fills up as time goes by.
                if bucket.last != Some(period) || is_last {
                    stays = true;
                    bucket.last = Some(period);
                    bucket.left -= 1;
                }
            }
            kept.push(stays);
        }
        Ok(kept)
    }

    fn buckets(&self) -> [Bucket; 6] {
        let asks = [self.last, self.hourly, self.daily, self.weekly, self.monthly, self.yearly];
        let is_silent =
            self.within.is_none() && asks.iter().all(|ask| ask.unwrap_or_default() == 0);
        let last = if is_silent { Some(1) } else { self.last };
        let bucket = |left: Option<u32>, period| Bucket {
            left: left.unwrap_or_default(),
            last: None,
            period,
        };
        [
            bucket(last, |_, number| number as i64),
            bucket(self.hourly, |time, _| day(time) * 100 + i64::from(time.hour())),
            bucket(self.daily, |time, _| day(time)),
            bucket(self.weekly, |time, _| {
                let week = time.date().iso_week_date();
                i64::from(week.year()) * 100 + i64::from(week.week())
            }),
            bucket(self.monthly, |time, _| day(time) / 100),
            bucket(self.yearly, |time, _| day(time) / 10_000),
        ]
    }
}

fn day(time: &Zoned) -> i64 {
    i64::from(time.year()) * 10_000 + i64::from(time.month()) * 100 + i64::from(time.day())
}

/// So long before a time: `1y5m7d2h`.
fn before(time: &Zoned, within: &str) -> Result<Zoned, Failure> {
    let wrong = || {
        Failure::new(
            Reason::MoverFailed,
            format!(
                "within must be numbers with y, m, d or h after them, like 1y6m or 7d; not {within:?}"
            ),
        )
    };
    let mut date = Span::new();
    let mut hours = Span::new();
    let mut rest = within.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: i64 = rest[..digits].parse().map_err(|_| wrong())?;
        let span = match rest.as_bytes()[digits] {
            b'y' => date.try_years(number).map(|span| date = span),
            b'm' => date.try_months(number).map(|span| date = span),
            b'd' => date.try_days(number).map(|span| date = span),
            b'h' => hours.try_hours(number).map(|span| hours = span),
            _ => return Err(wrong()),
        };
        span.map_err(|_| wrong())?;
        rest = &rest[digits + 1..];
    }
    time.checked_sub(date).and_then(|time| time.checked_sub(hours)).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;
    use jiff::civil::date;
    use jiff::tz::TimeZone;

    fn noon(days_ago: i64) -> Zoned {
        let newest = date(2026, 11, 15).at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap();
        newest.checked_sub(days_ago.days()).unwrap()
    }

    fn kept(keep: &Keep, days: &[i64]) -> Vec<i64> {
        let times: Vec<Zoned> = days.iter().map(|days| noon(*days)).collect();
        let now = noon(-1).timestamp();
        let kept = keep.kept(&times, now).unwrap();
        days.iter().zip(kept).filter(|(_, kept)| *kept).map(|(day, _)| *day).collect()
    }

    #[test]
    fn without_a_policy_the_last_one_stays() {
        assert_eq!(kept(&Keep::default(), &[0, 1, 2]), [0]);
    }

    #[test]
    fn the_last_few_stay() {
        assert_eq!(kept(&Keep { last: Some(2), ..Keep::default() }, &[0, 1, 2]), [0, 1]);
    }

    #[test]
    fn one_a_week_and_the_oldest_while_there_is_room() {
        let keep = Keep { weekly: Some(10), ..Keep::default() };
        // The fifteenth of November 2026 is a Sunday, the last day of its week.
        assert_eq!(kept(&keep, &[0, 1, 6, 7, 8, 13, 15]), [0, 7, 15]);
        assert_eq!(kept(&keep, &[0, 1, 6, 7, 8, 13]), [0, 7, 13]);
    }

    #[test]
    fn all_within_a_time_of_the_newest_stay() {
        let keep = Keep { within: Some("1m2d1h".into()), ..Keep::default() };
        assert_eq!(kept(&keep, &[0, 30, 33, 34]), [0, 30, 33]);
    }

    #[test]
    fn a_time_that_makes_no_sense_is_refused() {
        for within in ["", "3", "d", "3w", "1d2", "-1d", "99999999999y"] {
            let keep = Keep { within: Some(within.into()), ..Keep::default() };
            assert!(keep.kept(&[noon(0)], noon(-1).timestamp()).is_err(), "{within:?}");
        }
    }

    #[test]
    fn policies_add_up() {
        let keep = Keep { last: Some(1), monthly: Some(2), ..Keep::default() };
        assert_eq!(kept(&keep, &[0, 1, 20, 21, 60]), [0, 20]);
    }
}
