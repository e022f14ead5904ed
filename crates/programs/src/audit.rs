//! Judges recorded steps: by the rules of the rooms, and by what must never happen across all of them.
//!
//! Each recorded decision is made again on the recorded facts, with the rules of this program ([`Judges`]). What was
//! done is held against a few promises over the steps of all programs together ([`Promise`]), in the order in which the
//! steps were decided. The first step that is not explained is named, with what it rests on.

mod finding;
mod judges;
mod order;
pub mod promises;

pub use finding::{Finding, turning_points};
pub use judges::{Judged, Judges};
pub use promises::Promise;

use interlock_kernel::{Begins, End, Line, Record};
use jiff::{SignedDuration, Timestamp};
use order::Order;
use promises::Keeper;
use serde::Serialize;
use std::collections::BTreeMap;

/// The promise that each decision is the one that the rules make.
pub const RULES: Promise = Promise {
    name: "RulesAreFollowed",
    sentence: "every decision is the one that the rules of this program make of the recorded facts",
    keeper: || Box::new(promises::Nothing),
};

/// Judges what it hears of one or several logs.
pub struct Audit {
    judges: Judges,
    promises: Vec<Watched>,
    order: Order,
    /// The processes that write, by log.
    writers: BTreeMap<usize, Writer>,
    report: Report,
}

/// A promise, and what is known about it.
struct Watched {
    promise: Promise,
    keeper: Box<dyn Keeper>,
}

/// The process that writes a log.
struct Writer {
    begins: Begins,
    /// The number of its last step; None: its log was begun before what was read.
    last: Option<u64>,
    /// When its last step was decided, also of the process that wrote this log before.
    decided: Option<Timestamp>,
}

/// A time of which it is not known what was done.
#[derive(Clone, Copy, Default)]
struct Gap {
    /// The last step before it in its log; None: it is not known.
    since: Option<Timestamp>,
    /// When it was over; None: with the step that comes next.
    until: Option<Timestamp>,
}

/// What was found so far.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Since when steps were judged; None: there was none.
    pub since: Option<Timestamp>,
    /// The last step that was judged.
    pub until: Option<Timestamp>,
    /// How many steps were judged.
    pub steps: u64,
    /// How many more were the same as the one before.
    pub same: u64,
    /// How many steps are missing in the logs.
    pub missing: u64,
    /// How many lines cannot be read.
    pub unreadable: u64,
    /// How many steps nobody can judge, by controller: this program does not have it.
    pub not_judged: BTreeMap<String, u64>,
    /// The promises.
    pub promises: Vec<Kept>,
    /// How many steps are not explained.
    pub broken: u64,
    /// The first of them.
    pub first: Option<Finding>,
}

/// How a promise was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Its name.
    pub promise: &'static str,
    /// What it says.
    pub sentence: &'static str,
    /// Since when it is audited without a gap.
    pub since: Option<Timestamp>,
    /// How many steps broke it.
    pub broken: u64,
}

impl Report {
    /// Whether all that was judged is explained, and all of it could be read.
    pub fn is_good(&self) -> bool {
        self.broken == 0 && self.unreadable == 0
    }
}

impl Default for Audit {
    fn default() -> Self {
        Audit::new(Judges::shipped())
    }
}

impl Audit {
    /// An audit by these rules, and by all promises.
    pub fn new(judges: Judges) -> Audit {
        let promises: Vec<Watched> = promises::all()
            .into_iter()
            .map(|promise| Watched { keeper: (promise.keeper)(), promise })
            .collect();
        let kept = [RULES].into_iter().chain(promises.iter().map(|it| it.promise)).map(|it| Kept {
            promise: it.name,
            sentence: it.sentence,
            since: None,
            broken: 0,
        });
        let report = Report { promises: kept.collect(), ..Report::default() };
        let (order, writers) = (Order::default(), BTreeMap::new());
        Audit { judges, promises, order, writers, report }
    }

    /// What was found so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The next line of a log. Steps that are not explained are returned; what the promises say of a step comes
    /// later, when no earlier one can follow.
    pub fn hear(&mut self, log: usize, line: Line) -> Vec<Finding> {
        match line {
            Line::Begins(begins) => self.begin(log, begins),
            Line::Missing(count) => {
                let since = self.writers.get(&log).and_then(|writer| writer.decided);
                self.miss(count, Gap { since, until: None })
            }
            Line::Step(record) => {
                let mut found = self.number(log, &record);
                // It is judged with its end.
                if record.end != End::UnderWay {
                    found.extend(self.judge(log, &record));
                }
                for next in self.order.put(*record) {
                    found.extend(self.hold(&next));
                }
                found
            }
        }
    }

    /// A line of a log that cannot be read: steps may be missing.
    pub fn unreadable(&mut self) -> Vec<Finding> {
        self.report.unreadable += 1;
        self.miss(0, Gap::default())
    }

    /// Holds all steps against the promises that were decided before a time: no earlier one follows.
    pub fn pass(&mut self, until: Timestamp) -> Vec<Finding> {
        let steps = self.order.until(until);
        steps.iter().filter_map(|step| self.hold(step)).collect()
    }

    /// The logs are at their end.
    pub fn end(&mut self) -> Vec<Finding> {
        let steps = self.order.all();
        steps.iter().filter_map(|step| self.hold(step)).collect()
    }

    fn begin(&mut self, log: usize, begins: Begins) -> Vec<Finding> {
        let before = self.writers.get(&log);
        let goes_on =
            begins.goes_on && before.is_some_and(|it| it.begins.process == begins.process);
        let last = match (goes_on, begins.goes_on) {
            (true, _) => before.and_then(|before| before.last),
            // The beginning of the log of this process was removed, or is not read.
            (false, true) => None,
            (false, false) => Some(0),
        };
        let is_gap = before.is_some() && !goes_on;
        let decided = before.and_then(|before| before.decided);
        let gap = Gap { since: decided, until: Some(begins.time) };
        self.writers.insert(log, Writer { begins, last, decided });
        if is_gap { self.forget(gap) } else { Vec::new() }
    }

    /// Whether steps are missing before this one.
    fn number(&mut self, log: usize, record: &Record) -> Vec<Finding> {
        let Some(writer) = self.writers.get_mut(&log) else { return Vec::new() };
        let last = writer.last.replace(record.number);
        let since = writer.decided.replace(record.time);
        match last.map(|last| record.number.saturating_sub(last + 1)) {
            None | Some(0) => Vec::new(),
            Some(missing) => self.miss(missing, Gap { since, until: None }),
        }
    }

    fn miss(&mut self, count: u64, gap: Gap) -> Vec<Finding> {
        self.report.missing += count;
        self.forget(gap)
    }

    /// What was done in the gap is not known, so nothing that the promises remember is certain any more. What others
    /// decided in it is not held against them: it may rest on what was done and is not in the log.
    fn forget(&mut self, gap: Gap) -> Vec<Finding> {
        let found = match gap.since {
            Some(since) => {
                let since = since.checked_sub(RECORDED_WITHIN).unwrap_or(since);
                let steps = self.order.leave_out_after(since);
                steps.iter().filter_map(|step| self.hold(step)).collect()
            }
            None => self.end(),
        };
        if let Some(until) = gap.until {
            self.order.begin_at(until);
        }
        for watched in &mut self.promises {
            watched.keeper = (watched.promise.keeper)();
        }
        for kept in self.report.promises.iter_mut().skip(1) {
            kept.since = None;
        }
        found
    }

    fn judge(&mut self, log: usize, record: &Record) -> Option<Finding> {
        let report = &mut self.report;
        report.steps += 1;
        report.same += record.same;
        report.since.get_or_insert(record.time);
        report.until = report.until.max(Some(record.time));
        report.promises.iter_mut().for_each(|kept| {
            kept.since.get_or_insert(record.time);
        });
        let (what, expected) = match self.judges.judge(record) {
            Judged::Same => return None,
            Judged::Unknown => {
                *report.not_judged.entry(record.controller.clone()).or_default() += 1;
                return None;
            }
            Judged::Other(expected) => {
                ("the rules decide something else on these facts".to_owned(), Some(expected))
            }
            Judged::Unreadable(because) => (format!("the facts cannot be read: {because}"), None),
        };
        let facts = match &expected {
            Some(_) => turning_points(&self.judges, record),
            None => Vec::new(),
        };
        let version = self.writers.get(&log).map(|writer| writer.begins.version.clone());
        let finding =
            Finding { expected, turning_points: facts, ..Finding::of(&RULES, record, what) };
        Some(self.found(0, Finding { version, ..finding }))
    }

    /// Holds a step against the promises.
    fn hold(&mut self, record: &Record) -> Option<Finding> {
        let mut first = None;
        for place in 0..self.promises.len() {
            let Watched { promise, keeper } = &mut self.promises[place];
            if let Err(what) = keeper.hear(record) {
                let finding = Finding::of(promise, record, what);
                let finding = self.found(place + 1, finding);
                first.get_or_insert(finding);
            }
        }
        first
    }

    fn found(&mut self, place: usize, finding: Finding) -> Finding {
        self.report.broken += 1;
        if let Some(kept) = self.report.promises.get_mut(place) {
            kept.broken += 1;
        }
        self.report.first.get_or_insert_with(|| finding.clone());
        finding
    }
}

/// How long a line may be on its way to the log: a process that is killed may lose the last ones. What its effects in
/// flight were is in the log, however long they take.
const RECORDED_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// How long a step may take from its decision to its record, before it is taken to be out of order.
pub const LONGEST_STEP: SignedDuration = SignedDuration::from_secs(15);

#[cfg(test)]
mod tests;
