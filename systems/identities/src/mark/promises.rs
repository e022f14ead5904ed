//! What the mark promises, and the rules whose loss the promises must notice.

use super::{IdentitiesMark, Mark, Phase, Rules, State};
use interlock_checker::{Formula, Invariant, Mutant, Property};

impl IdentitiesMark {
    pub(super) fn all_invariants(&self) -> Vec<Invariant<State>> {
        let marks_first = self.rules.mark_first;
        vec![
            Invariant::new(
                "GoneIsClean",
                "when the declaration is gone, nothing exists and nothing can land",
                |s: &State| s.phase != Phase::Gone || (!s.exists && !s.create_is_coming()),
            ),
            Invariant::new(
                "UnmarkedIsQuiet",
                "without a mark no call is under way",
                move |s: &State| !marks_first || s.mark != Mark::None || s.nothing_in_flight(),
            ),
        ]
    }

    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        let calls = self.calls;
        vec![
            Property::new(
                "Deletes",
                "a deleted declaration is removed, unless the calls are used up",
                Formula::leads_to(
                    |s: &State| s.phase == Phase::Deleting,
                    move |s: &State| s.phase == Phase::Gone || s.sent == calls,
                ),
            ),
            Property::new(
                "Converges",
                "what stays declared exists in the end, unless the calls are used up",
                Formula::always_implies_eventually(
                    |s: &State| s.phase == Phase::Live,
                    move |s: &State| s.exists || s.sent == calls,
                ),
            ),
        ]
    }

    pub(super) fn all_mutants(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, breaks: &[&'static str], change: fn(&mut Rules)| {
            let least = IdentitiesMark {
                instances: self.instances.max(2),
                calls: self.calls.max(2),
                faults: self.faults.max(2),
                ..self.clone()
            };
            Mutant::new(name, sentence, breaks, least.without(change))
        };
        let clean: &[&str] = &["GoneIsClean"];
        vec![
            mutant("unmarked-create", "a call is sent without a mark", clean, |rules| {
                rules.mark_first = false;
            }),
            mutant("others-mark-believed", "the mark of any process will do", clean, |rules| {
                rules.own_mark = false;
            }),
            mutant(
                "mark-taken-over-at-once",
                "a mark is taken over, and the calls under it are not waited for",
                clean,
                |rules| rules.wait_other = false,
            ),
            mutant(
                "mark-not-read-live",
                "a process that wrote a mark once goes on sending",
                clean,
                |rules| rules.live_mark = false,
            ),
            mutant(
                "absence-believed-at-once",
                "what reads do not show is taken to be gone before W is over",
                clean,
                |rules| rules.quiet_to_believe = false,
            ),
            mutant(
                "unmarked-on-the-answer",
                "the mark is removed before W is over",
                clean,
                |rules| rules.quiet_to_unmark = false,
            ),
            mutant("w-never-ends", "W does not pass", &["Deletes"], |rules| rules.expire = false),
        ]
    }
}
