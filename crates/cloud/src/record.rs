//! What this process sent, and what the cloud refused, by the Kubernetes object that it was for.
//!
//! Every call is an entry of its own: of two equal calls the first may be late although the second was
//! answered. An entry is made before the first byte is sent, so a call that is cut off at any later moment
//! is on record as unanswered.

use crate::clock::seconds;
use interlock_identities::outside::{Call, Code, Refusal, Remembered, Sent};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a refusal is kept about an object that nobody asks about: longer than any room waits before it
/// repeats a refused call.
const REFUSALS_KEPT: Duration = Duration::from_secs(3600);
/// How long it is remembered what the answer to a call said.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What was sent and refused.
#[derive(Debug)]
pub(crate) struct Record {
    /// Within this time of being sent a call takes effect, or never.
    window: Duration,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    about: HashMap<String, About>,
    next: u64,
    swept_at: Duration,
}

/// What is kept about one object.
#[derive(Debug, Default)]
struct About {
    sent: Vec<Entry>,
    refused: Option<Refused>,
    /// What the answers said, and when the last call was sent.
    remembered: Remembered,
    last: Duration,
}

/// What is known of the calls about an object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// What was sent within the window.
    pub(crate) sent: Vec<Sent>,
    /// What was refused last.
    pub(crate) refused: Option<Refusal>,
    /// What the answers said, after the window, too.
    pub(crate) remembered: Remembered,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    call: Call,
    is_answered: bool,
    at: Duration,
}

#[derive(Debug)]
struct Refused {
    refusal: Refusal,
    at: Duration,
}

/// A call on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number(u64);

/// What the cloud said of a call that it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Record {
    pub(crate) fn new(window: Duration) -> Record {
        Record { window, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is about to be sent.
    pub(crate) fn begin(&self, about: &str, call: &Call, at: Duration) -> Number {
        let mut kept = self.kept();
        kept.sweep(at, self.window);
        let number = kept.next;
        kept.next += 1;
        let about = kept.about.entry(about.to_owned()).or_default();
        about.sent.push(Entry { number, call: call.clone(), is_answered: false, at });
        about.remembered = about.remembered.sends(call);
        about.last = at;
        Number(number)
    }

    /// The cloud said that the call is done.
    pub(crate) fn done(&self, about: &str, number: Number) {
        let mut kept = self.kept();
        let about = kept.about.entry(about.to_owned()).or_default();
        about.refused = None;
        let is_last = about.sent.last().is_some_and(|entry| entry.number == number.0);
        for entry in about.sent.iter_mut().filter(|entry| entry.number == number.0) {
            entry.is_answered = true;
            if is_last {
                about.remembered = about.remembered.learns(&entry.call);
            }
        }
    }

    /// Nothing of the call was sent: it never takes effect.
    pub(crate) fn not_sent(&self, about: &str, number: Number) {
        if let Some(about) = self.kept().about.get_mut(about) {
            about.sent.retain(|entry| entry.number != number.0);
        }
    }

    /// The cloud refused the call: it never takes effect.
    pub(crate) fn refused(&self, about: &str, number: Number, said: Said, at: Duration) {
        let mut kept = self.kept();
        let about = kept.about.entry(about.to_owned()).or_default();
        let place = about.sent.iter().position(|entry| entry.number == number.0);
        // The window may have passed meanwhile. Then nobody needs to know any more.
        let Some(entry) = place.map(|place| about.sent.remove(place)) else { return };
        let Said { code, message } = said;
        let refusal = Refusal { call: entry.call, code, message, at: seconds(at) };
        about.refused = Some(Refused { refusal, at });
    }

    /// What is known of the calls about an object at a time.
    pub(crate) fn of(&self, about: &str, now: Duration) -> Known {
        let mut kept = self.kept();
        let Some(about) = kept.about.get_mut(about) else { return Known::default() };
        about.drop_old(now, self.window);
        let sent = about.sent.iter().map(|entry| Sent {
            call: entry.call.clone(),
            is_answered: entry.is_answered,
            at: seconds(entry.at),
        });
        Known {
            sent: sent.collect(),
            refused: about.refused.as_ref().map(|refused| refused.refusal.clone()),
            remembered: about.remembered,
        }
    }

    /// How many objects something is kept about.
    #[cfg(test)]
    fn remembered(&self) -> usize {
        self.kept().about.len()
    }
}

impl About {
    fn drop_old(&mut self, now: Duration, window: Duration) {
        self.sent.retain(|entry| now < entry.at.saturating_add(window));
        if now >= self.last.saturating_add(REMEMBERED) {
            self.remembered = Remembered::default();
        }
    }
}

impl Kept {
    /// Forgets objects that nothing is to be said about any more, once in a window.
    fn sweep(&mut self, now: Duration, window: Duration) {
        if now < self.swept_at.saturating_add(window) {
            return;
        }
        self.swept_at = now;
        self.about.retain(|_, about| {
            about.drop_old(now, window);
            let is_recent = |it: &Refused| now < it.at.saturating_add(REFUSALS_KEPT);
            !about.sent.is_empty()
                || about.remembered != Remembered::default()
                || about.refused.as_ref().is_some_and(is_recent)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call::DeleteRole;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn record() -> Record {
        Record::new(at(60))
    }

    fn answered(record: &Record, now: u64) -> Vec<bool> {
        record.of("a", at(now)).sent.iter().map(|sent| sent.is_answered).collect()
    }

    #[test]
    fn a_call_is_unanswered_until_the_cloud_says_that_it_is_done() {
        let record = record();
        let number = record.begin("a", &CALL, at(10));
        let sent = Sent { call: CALL, is_answered: false, at: 10 };
        assert_eq!(record.of("a", at(10)).sent, [sent]);
        record.done("a", number);
        assert_eq!(answered(&record, 10), [true]);
        assert_eq!(record.of("b", at(10)), Known::default());
    }

    #[test]
    fn of_two_equal_calls_each_is_on_record() {
        let record = record();
        record.begin("a", &CALL, at(10));
        let second = record.begin("a", &CALL, at(12));
        record.done("a", second);
        assert_eq!(answered(&record, 20), [false, true]);
    }

    #[test]
    fn a_call_leaves_when_the_window_is_over_and_not_before() {
        let record = record();
        record.begin("a", &CALL, at(10));
        assert_eq!(answered(&record, 69), [false]);
        assert_eq!(answered(&record, 70), [false; 0]);
    }

    #[test]
    fn a_call_that_was_refused_or_not_sent_never_takes_effect() {
        let record = record();
        let (first, second) = (record.begin("a", &CALL, at(1)), record.begin("a", &CALL, at(2)));
        record.not_sent("a", first);
        let said = Said { code: Code::DeleteConflict, message: "m".to_owned() };
        record.refused("a", second, said, at(3));
        let Known { sent, refused, .. } = record.of("a", at(4));
        assert_eq!(sent, []);
        assert_eq!(
            refused.map(|it| (it.call, it.code, it.at)),
            Some((CALL, Code::DeleteConflict, 3))
        );
        // A later call that was done ends the refusal.
        let third = record.begin("a", &CALL, at(5));
        record.done("a", third);
        assert_eq!(record.of("a", at(6)).refused, None);
    }

    #[test]
    fn objects_that_nobody_asks_about_are_forgotten() {
        let record = record();
        for number in 0..1_000 {
            record.begin(&number.to_string(), &CALL, at(number));
            assert!(record.remembered() <= 122, "{}", record.remembered());
        }
        let number = record.begin("refused", &CALL, at(1_000));
        let said = Said { code: Code::AccessDenied, message: String::new() };
        record.refused("refused", number, said, at(1_000));
        record.begin("x", &CALL, at(2_000));
        assert!(record.of("refused", at(2_000)).refused.is_some());
        record.begin("x", &CALL, at(9_000));
        assert!(record.of("refused", at(9_000)).refused.is_none());
    }

    #[test]
    fn what_an_answer_said_is_remembered_after_the_window_and_not_for_ever() {
        let record = record();
        let create =
            Call::CreateRole { trust: String::new(), boundary: None, tags: Default::default() };
        let remembered = |now| record.of("a", at(now)).remembered;
        let created = record.begin("a", &create, at(10));
        assert_eq!(remembered(11), Remembered::default());
        record.done("a", created);
        assert!(remembered(11).is_made && remembered(300).is_made && !remembered(300).is_emptied);
        let detach = Call::DetachRolePolicy { arn: "arn".to_owned() };
        let detached = record.begin("a", &detach, at(300));
        assert!(!remembered(300).is_emptied);
        record.done("a", detached);
        record.begin("another", &CALL, at(500));
        assert!(remembered(500).is_emptied && remembered(899).is_made);
        assert_eq!(remembered(900), Remembered::default());
    }

    #[test]
    fn what_is_on_its_way_is_not_remembered() {
        let record = record();
        let detach = Call::DetachRolePolicy { arn: "arn".to_owned() };
        let detached = record.begin("a", &detach, at(1));
        record.done("a", detached);
        record.begin("a", &CALL, at(2));
        // The answer to an earlier call comes after a later one was sent.
        record.done("a", detached);
        assert_eq!(record.of("a", at(3)).remembered, Remembered::default());
    }
}
