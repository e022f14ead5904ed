//! When a sync is due: on a schedule, on a tag, or always.

use super::hash;
use interlock_api::volumes::Trigger;
use interlock_schedule::Cron;
use jiff::{SignedDuration, Timestamp};

/// "Always" is at most this often.
const ALWAYS: SignedDuration = SignedDuration::from_secs(60);
/// However long the interval is, nobody waits longer than this for the sake of others.
const MOST_JITTER: SignedDuration = SignedDuration::from_secs(30 * 60);
/// How finely syncs are spread.
const GRAINS: u64 = 1000;

/// What brings a sync about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// This tag, once.
    Manual(String),
    /// A schedule.
    Schedule(Cron),
    /// Nothing: always.
    Always,
}

impl When {
    /// Reads a trigger; a tag wins over a schedule, as in VolSync.
    pub fn read(trigger: Option<&Trigger>) -> Result<When, String> {
        let Some(trigger) = trigger else { return Ok(When::Always) };
        if !trigger.manual.is_empty() {
            return Ok(When::Manual(trigger.manual.clone()));
        }
        match trigger.schedule.as_deref().filter(|line| !line.is_empty()) {
            Some(line) => Cron::read(line).map(When::Schedule),
            None => Ok(When::Always),
        }
    }

    /// The tag that a sync which begins now answers.
    pub fn tag(&self) -> Option<&str> {
        match self {
            When::Manual(tag) => Some(tag),
            When::Schedule(_) | When::Always => None,
        }
    }
}

/// What happened last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Last<'a> {
    /// When a sync was done.
    pub synced: Option<Timestamp>,
    /// The tag that was answered.
    pub tag: &'a str,
    /// When the last sync was given up, with all as it is now; None: it was not, or something that
    /// it rested on has changed since.
    pub gave_up: Option<Timestamp>,
}

/// When the next sync is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Now.
    Now,
    /// Then.
    At(Timestamp),
    /// When somebody sets another tag.
    WithATag,
    /// When somebody changes what the last one failed by.
    WithAChange,
    /// Its schedule never comes.
    Never,
}

/// When the next sync of the object with this uid is due.
pub fn due(when: &When, last: Last<'_>, now: Timestamp, uid: &str) -> Due {
    let at = |moment: Timestamp| if moment <= now { Due::Now } else { Due::At(moment) };
    match when {
        When::Manual(tag) if tag == last.tag => Due::WithATag,
        When::Manual(_) | When::Always if last.gave_up.is_some() => Due::WithAChange,
        When::Manual(_) => Due::Now,
        When::Always => match last.synced {
            None => Due::Now,
            Some(synced) => synced.checked_add(ALWAYS).map_or(Due::Never, at),
        },
        When::Schedule(cron) => match last.synced.max(last.gave_up) {
            None => Due::Now,
            Some(last) => start(cron, last, uid).map_or(Due::Never, at),
        },
    }
}

/// When the sync after this moment starts: as scheduled, and a little later, so that a thousand
/// objects with one schedule do not start at once. How much later is always the same for one object.
fn start(cron: &Cron, last: Timestamp, uid: &str) -> Option<Timestamp> {
    let next = cron.next(last)?;
    let interval = cron.next(next).map_or(SignedDuration::ZERO, |then| then.duration_since(next));
    let most = (interval / 10).min(MOST_JITTER);
    let share = i32::try_from(hash(uid) % GRAINS).unwrap_or(0);
    let jitter = most / i32::try_from(GRAINS).unwrap_or(1) * share;
    next.checked_add(SignedDuration::from_secs(jitter.as_secs())).ok()
}

/// Whether a sync that is done now comes after the next one should have begun.
pub fn has_missed(when: &When, synced: Option<Timestamp>, now: Timestamp) -> bool {
    let (When::Schedule(cron), Some(synced)) = (when, synced) else { return false };
    let deadline = cron.next(synced).and_then(|next| cron.next(next));
    deadline.is_some_and(|deadline| deadline < now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::DateTime;
    use jiff::tz::Offset;

    fn moment(text: &str) -> Timestamp {
        let read: DateTime = text.parse().expect("a moment");
        Offset::UTC.to_timestamp(read).expect("a moment of our time")
    }

    fn trigger(manual: &str, schedule: Option<&str>) -> When {
        let schedule = schedule.map(str::to_owned);
        When::read(Some(&Trigger { manual: manual.to_owned(), schedule })).expect("a trigger")
    }

    fn last(synced: &str) -> Last<'static> {
        Last { synced: Some(moment(synced)), ..Last::default() }
    }

    const NOON: &str = "2026-01-02T12:00:00";

    #[test]
    fn a_tag_is_answered_once() {
        let when = trigger("a", Some("@hourly"));
        assert_eq!(when.tag(), Some("a"));
        let now = moment(NOON);
        assert_eq!(due(&when, Last::default(), now, "u"), Due::Now);
        assert_eq!(due(&when, Last { tag: "a", ..Last::default() }, now, "u"), Due::WithATag);
        assert_eq!(due(&when, Last { tag: "b", ..last(NOON) }, now, "u"), Due::Now);
    }

    #[test]
    fn what_was_given_up_waits_for_a_change_or_for_its_schedule() {
        let gave_up = Last { gave_up: Some(moment(NOON)), ..Last::default() };
        let now = moment("2026-01-02T12:30:00");
        assert_eq!(due(&trigger("a", None), gave_up, now, "u"), Due::WithAChange);
        assert_eq!(due(&When::Always, gave_up, now, "u"), Due::WithAChange);
        let Due::At(next) = due(&trigger("", Some("@hourly")), gave_up, now, "u") else {
            panic!("it has a schedule")
        };
        assert!(next >= moment("2026-01-02T13:00:00") && next < moment("2026-01-02T13:06:00"));
    }

    #[test]
    fn always_is_once_a_minute() {
        let when = When::read(None).expect("no trigger");
        assert_eq!(due(&when, Last::default(), moment(NOON), "u"), Due::Now);
        let then = moment("2026-01-02T12:01:00");
        assert_eq!(due(&when, last(NOON), moment("2026-01-02T12:00:59"), "u"), Due::At(then));
        assert_eq!(due(&when, last(NOON), then, "u"), Due::Now);
    }

    #[test]
    fn a_schedule_is_due_at_once_the_first_time_and_then_when_its_moment_has_come() {
        let when = trigger("", Some("@hourly"));
        assert_eq!(due(&when, Last::default(), moment(NOON), "u"), Due::Now);
        assert_eq!(due(&when, last("2026-01-02T10:00:00"), moment(NOON), "u"), Due::Now);
        assert!(matches!(due(&when, last(NOON), moment(NOON), "u"), Due::At(_)));
        let never = trigger("", Some("0 0 31 2 *"));
        assert_eq!(due(&never, last(NOON), moment(NOON), "u"), Due::Never);
    }

    #[test]
    fn objects_with_one_schedule_start_spread_over_a_tenth_of_it_and_each_at_its_own_time() {
        let when = trigger("", Some("@hourly"));
        let one = moment("2026-01-02T13:00:00");
        let mut starts = std::collections::BTreeSet::new();
        for object in 0..200 {
            let uid = format!("uid-{object}");
            let found = due(&when, last(NOON), moment(NOON), &uid);
            assert_eq!(found, due(&when, last(NOON), moment("2026-01-02T12:40:00"), &uid));
            let Due::At(start) = found else { panic!("{found:?}") };
            let later = start.duration_since(one).as_secs();
            assert!((0..360).contains(&later), "{later}");
            starts.insert(later);
        }
        assert!(starts.len() > 100, "they are spread: {starts:?}");
    }

    #[test]
    fn nobody_waits_for_days() {
        let when = trigger("", Some("@monthly"));
        for object in 0..50 {
            let uid = format!("uid-{object}");
            let Due::At(start) = due(&when, last(NOON), moment(NOON), &uid) else { panic!() };
            assert!(start <= moment("2026-02-01T00:30:00"));
        }
    }

    #[test]
    fn an_interval_is_missed_when_the_next_one_should_have_begun() {
        let when = trigger("", Some("@hourly"));
        let at = |moment_of: &str| has_missed(&when, Some(moment(NOON)), moment(moment_of));
        assert!(!at("2026-01-02T13:59:00"));
        assert!(!at("2026-01-02T14:00:00"));
        assert!(at("2026-01-02T14:00:01"));
        assert!(!has_missed(&when, None, moment(NOON)));
        assert!(!has_missed(&When::Always, Some(moment(NOON)), moment("2027-01-01T00:00:00")));
    }

    #[test]
    fn a_broken_schedule_is_said_to_be_so() {
        let broken = Trigger { schedule: Some("61 * * * *".to_owned()), manual: String::new() };
        assert!(When::read(Some(&broken)).is_err_and(|flaw| flaw.contains("61")));
    }
}
