//! A source or a destination as an object that syncs: its trigger, its intent, and the words of its
//! status.

use super::images;
use super::intent::Intent;
use super::repository::Flaw;
use super::trigger::{Due, Last, When, due};
use crate::objects::{annotation, name_of, namespace_of, uid_of};
use crate::outside::{Failure, Outcome, Progress, Reason, SyncId};
use interlock_api::names::{ANNOTATION_ALLOW_EMPTY, ANNOTATION_SYNC};
use interlock_api::volumes::Trigger;
use interlock_api::volumes::condition as words;
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::{
    Address, Event, Importance, Kind, Name, Object, Outside, Part, Place, Step, Write,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// In `status.external`: the sync that is over.
pub(crate) const SYNC_ID: &str = "syncID";
/// In `status.external`: what the sync that was given up rested on.
pub(crate) const GAVE_UP_ON: &str = "gaveUpOn";
/// In `status.external`: when a sync was given up.
pub(crate) const GAVE_UP_AT: &str = "gaveUpAt";
/// In `status.external`: the tag that it was to answer; whoever set it may set another one.
const GAVE_UP_TAG: &str = "gaveUpTag";
/// In `status.external`: how many intervals of the schedule went by without a sync.
pub(crate) const MISSED: &str = "missedIntervals";
/// In `status.external`: how many syncs were done, and how long all of them took.
pub(crate) const SYNCS: &str = "syncs";
pub(crate) const SYNC_MILLISECONDS: &str = "syncMilliseconds";
/// In `status.external`: how far the sync that runs is.
const PROGRESS: [&str; 4] = ["progressBytes", "progressOfBytes", "progressFiles", "progressTime"];
/// Progress is written at most this often.
const PROGRESS_SECONDS: i64 = 1;
/// That so much is on its way is said at once: it takes long enough for people to look.
const LARGE_BYTES: u64 = 32 * 1024 * 1024;
/// How much of what a mover says goes into the status.
const LOG_CHARACTERS: usize = 4096;
/// How long the note of an event may be.
const NOTE_BYTES: usize = 1024;
/// The reason of the condition Healthy of a source whose namespace runs on another cluster.
pub(crate) const NOT_HERE: &str = "NotHere";
/// Reasons of the condition Healthy that are seen without a sync, and go without one.
const SEEN: [&str; 8] = [
    NOT_HERE,
    images::CLASS_MISSING,
    images::NOT_BEGUN,
    "SecretIncomplete",
    "RepositoryNotSupported",
    "SourceMissing",
    "BrokenIntent",
    "TargetMissing",
];

/// What the status of both kinds has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) synced: Option<Timestamp>,
    pub(crate) tag: String,
    pub(crate) external: BTreeMap<String, String>,
    pub(crate) conditions: Vec<Condition>,
}

/// An object that syncs.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) kind: Kind,
    pub(crate) object: Object,
    pub(crate) now: Timestamp,
    pub(crate) when: Result<When, String>,
    pub(crate) is_paused: bool,
    pub(crate) known: Known,
    pub(crate) intent: Result<Option<Intent>, String>,
}

/// What is said in a status besides the conditions.
pub(crate) type Say = Map<String, Value>;

impl Task {
    pub(crate) fn new(
        (kind, object): (&Kind, &Object),
        (trigger, is_paused): (Option<&Trigger>, bool),
        (known, now): (Known, Timestamp),
    ) -> Task {
        Task {
            kind: kind.clone(),
            now,
            when: When::read(trigger),
            is_paused,
            known,
            intent: Intent::read(object),
            object: object.clone(),
        }
    }

    pub(crate) fn uid(&self) -> &str {
        uid_of(&self.object)
    }

    pub(crate) fn name(&self) -> &str {
        name_of(&self.object)
    }

    pub(crate) fn namespace(&self) -> &str {
        namespace_of(&self.object)
    }

    pub(crate) fn address(&self) -> Address {
        Address::new(Place::CLUSTER, &self.kind, Name::of(&self.object))
    }

    /// `ReplicationSource shop/data`
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.kind, Name::of(&self.object))
    }

    /// The intent of the sync that is on its way, if it can be read.
    pub(crate) fn current(&self) -> Option<&Intent> {
        self.intent.as_ref().ok().and_then(Option::as_ref)
    }

    /// The names of the attempts that the mover is asked about.
    pub(crate) fn questions(&self) -> Vec<SyncId> {
        let Some(intent) = self.current() else { return Vec::new() };
        [intent.earlier_sync_id(), Some(intent.sync_id())].into_iter().flatten().collect()
    }

    pub(crate) fn allows_empty(&self) -> bool {
        annotation(&self.object, ANNOTATION_ALLOW_EMPTY) == Some("true")
    }

    /// Whether the status says that a sync is over.
    pub(crate) fn is_over(&self, intent: &Intent) -> bool {
        self.known.external.get(SYNC_ID) == Some(&intent.id)
    }

    /// What a failure rests on: while none of it changes, the same fails again.
    pub(crate) fn basis(&self, secret_version: &str) -> String {
        let generation = self.object.metadata.generation.unwrap_or_default();
        // An annotation is no part of the generation.
        let empty = if self.allows_empty() { "/allow-empty" } else { "" };
        format!("{generation}/{secret_version}{empty}")
    }

    /// When the next sync is due, on this basis.
    pub(crate) fn due(&self, basis: &str) -> Due {
        let gave_up = self.known.external.get(GAVE_UP_AT).and_then(|at| at.parse().ok());
        let is_same = self.known.external.get(GAVE_UP_ON).is_some_and(|on| on == basis);
        let last = Last {
            synced: self.known.synced,
            tag: &self.known.tag,
            gave_up: gave_up.filter(|_| is_same),
        };
        self.due_after(last)
    }

    fn due_after(&self, last: Last<'_>) -> Due {
        match &self.when {
            Ok(when) => due(when, last, (self.now, self.uid())),
            Err(_) => Due::Never,
        }
    }

    // Writes.

    /// The intent of a sync, with further changes of the metadata.
    pub(crate) fn write_intent(&self, intent: &Intent, mut metadata: Value) -> Write {
        metadata["annotations"][ANNOTATION_SYNC] = json!(intent.text());
        self.write_main(json!({ "metadata": metadata }))
    }

    pub(crate) fn remove_intent(&self) -> Write {
        self.write_main(json!({"metadata": {"annotations": {ANNOTATION_SYNC: null}}}))
    }

    pub(crate) fn write_main(&self, change: Value) -> Write {
        Write::patch(Place::CLUSTER, &self.kind, &self.object, (Part::Main, change))
    }

    /// A change of the status, conditions among it.
    pub(crate) fn write_status(&self, mut status: Say, findings: &[Finding]) -> Write {
        let at = (self.now, self.object.metadata.generation);
        let all = findings.iter().fold(self.known.conditions.clone(), |all, finding| {
            conditions::with(&all, finding, at)
        });
        status.insert("conditions".to_owned(), json!(all));
        let change = json!({ "status": status });
        Write::patch(Place::CLUSTER, &self.kind, &self.object, (Part::Status, change))
    }

    /// Whether the status says all of this already.
    fn says(&self, status: &Say, findings: &[Finding]) -> bool {
        let known = &self.object.data["status"];
        findings.iter().all(|finding| finding.is_in(&self.known.conditions))
            && status.iter().all(|(key, value)| contains(&known[key], value))
    }

    /// Rests or waits, once the status says why.
    pub(crate) fn wait<O: Outside>(&self, say: Saying, at_most: Option<Duration>) -> Step<O> {
        let Saying { status, findings, because, event } = say;
        if !self.says(&status, &findings) {
            let step = Step::write(self.write_status(status, &findings), because);
            return match event {
                Some(event) => step.telling(event),
                None => step,
            };
        }
        match at_most {
            Some(at_most) => Step::Wait { because, at_most },
            None => Step::Rest { because },
        }
    }

    pub(crate) fn tells(
        &self,
        importance: Importance,
        reason: &'static str,
        note: impl Into<String>,
    ) -> Event {
        let uid = self.uid().to_owned();
        // An API server takes no longer ones; a letter has at most four bytes.
        let note = note.into().chars().take(NOTE_BYTES / 4).collect();
        Event { about: self.address(), uid, importance, reason, note }
    }

    // Words.

    /// What is said while no sync runs and nothing is wrong.
    pub(crate) fn idle(&self, due: Due) -> Saying {
        let (reason, message, next) = match due {
            _ if self.is_paused => {
                (words::WAITING_FOR_MANUAL, "Paused: set spec.paused to false to go on", None)
            }
            Due::At(next) => match &self.when {
                Ok(When::Schedule(_)) => (
                    words::WAITING_FOR_SCHEDULE,
                    "Waiting for next scheduled synchronization",
                    Some(next),
                ),
                _ => (
                    words::WAITING_FOR_SCHEDULE,
                    "Waiting for next synchronization, at most one a minute",
                    None,
                ),
            },
            Due::Now | Due::WithATag => {
                (words::WAITING_FOR_MANUAL, "Waiting for manual trigger", None)
            }
            Due::WithAChange => {
                (words::ERROR, "Given up: change the spec or the Secret to try again", None)
            }
            Due::Never => (words::ERROR, "No moment fits the schedule", None),
        };
        let mut findings = vec![Finding::fails(words::SYNCHRONIZING, reason, message)];
        findings.extend(self.mended());
        let status = object(json!({
            "nextSyncTime": next.map(Time), "lastSyncStartTime": null,
        }));
        Saying { status, findings, because: message.to_owned(), event: None }
    }

    /// What was wrong without a sync, and is not any more.
    pub(crate) fn mended(&self) -> Option<Finding> {
        let known = conditions::find(&self.known.conditions, words::HEALTHY)?;
        let is_seen = known.status == "False" && SEEN.contains(&known.reason.as_str());
        is_seen.then(|| Finding {
            kind: words::HEALTHY,
            holds: None,
            reason: "NotTriedYet",
            message: "What was wrong is mended; the next sync will show".to_owned(),
        })
    }

    /// What is said while a sync runs.
    pub(crate) fn running(&self, intent: &Intent, what: &str) -> Saying {
        let findings = vec![Finding::holds(
            words::SYNCHRONIZING,
            words::SYNC_IN_PROGRESS,
            "Synchronization in-progress",
        )];
        let status = object(json!({ "lastSyncStartTime": intent.began }));
        Saying { status, findings, because: what.to_owned(), event: None }
    }

    /// The same, with how far it is; written now and then.
    pub(crate) fn progressing(&self, intent: &Intent, progress: Progress) -> Saying {
        let mut say = self.running(intent, "the mover runs");
        let last: Option<Timestamp> =
            self.known.external.get(PROGRESS[3]).and_then(|at| at.parse().ok());
        let since = last.unwrap_or(intent.began.0);
        let is_large = progress.of_bytes.is_some_and(|bytes| bytes >= LARGE_BYTES);
        if (last.is_none() && is_large)
            || self.now.duration_since(since) >= SignedDuration::from_secs(PROGRESS_SECONDS)
        {
            let is_news = self.known.external.get(PROGRESS[0]) != Some(&progress.bytes.to_string())
                || self.known.external.get(PROGRESS[2]) != Some(&progress.files.to_string());
            if is_news {
                let at = json!(Time(self.now));
                let of_bytes = progress.of_bytes.map(|bytes| bytes.to_string());
                say.status.insert(
                    "external".to_owned(),
                    json!({
                        PROGRESS[0]: progress.bytes.to_string(), PROGRESS[1]: of_bytes,
                        PROGRESS[2]: progress.files.to_string(), PROGRESS[3]: at,
                    }),
                );
            }
        }
        say
    }

    /// What is said when something is in the way, with or without a sync.
    pub(crate) fn hindered(&self, flaw: &Flaw) -> Saying {
        let message: String = flaw.message.chars().take(LOG_CHARACTERS).collect();
        let findings = vec![
            Finding::fails(words::SYNCHRONIZING, words::ERROR, message.clone()),
            Finding::fails(words::HEALTHY, flaw.reason, message.clone()),
        ];
        Saying {
            status: Say::new(),
            findings,
            event: Some(self.tells(Importance::Warning, flaw.reason, message.clone())),
            because: message,
        }
    }

    /// What is said of an object that asks for what is not supported.
    pub(crate) fn refused(&self, message: &str) -> Saying {
        let findings = vec![
            Finding::fails(words::ACCEPTED, "NotSupported", message),
            Finding::fails(words::SYNCHRONIZING, words::ERROR, message),
        ];
        Saying {
            status: object(json!({"nextSyncTime": null, "lastSyncStartTime": null})),
            findings,
            because: message.to_owned(),
            event: Some(self.tells(Importance::Warning, "NotSupported", message)),
        }
    }

    /// That everything is supported, with what has no effect; an event tells that once.
    pub(crate) fn accepted(&self, ignored: &[String]) -> (Finding, Option<Event>) {
        let message = match ignored {
            [] => "Everything that it asks for is supported".to_owned(),
            some => format!("Without effect here: {}", some.join(", ")),
        };
        let finding = Finding::holds(words::ACCEPTED, "Supported", message.clone());
        let is_news = !ignored.is_empty() && !finding.is_in(&self.known.conditions);
        let is_field = ignored.iter().any(|path| path.starts_with("spec."));
        let reason = if is_field { "FieldWithoutEffect" } else { "KeyWithoutEffect" };
        (finding, is_news.then(|| self.tells(Importance::Normal, reason, message)))
    }

    /// The status of a sync that is done: everything in one write.
    pub(crate) fn done(&self, intent: &Intent, outcome: &Outcome, product: Value) -> Saying {
        let tag = intent.tag.clone().unwrap_or_default();
        let last = Last { synced: Some(self.now), tag: &tag, gave_up: None };
        let mut say = self.idle(self.due_after(last));
        let has_missed = self
            .when
            .as_ref()
            .is_ok_and(|when| super::trigger::has_missed(when, self.known.synced, self.now));
        let took = self.now.duration_since(intent.began.0);
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(0);
        let count = |key: &str, more: u64| number(&self.known.external, key).saturating_add(more);
        let missed = count(MISSED, u64::from(has_missed));
        let mut external = over(intent);
        external.insert(GAVE_UP_ON.to_owned(), Value::Null);
        external.insert(GAVE_UP_AT.to_owned(), Value::Null);
        external.insert(GAVE_UP_TAG.to_owned(), Value::Null);
        external.insert(MISSED.to_owned(), json!((missed > 0).then(|| missed.to_string())));
        external.insert(SYNCS.to_owned(), json!(count(SYNCS, 1).to_string()));
        let all = count(SYNC_MILLISECONDS, milliseconds);
        external.insert(SYNC_MILLISECONDS.to_owned(), json!(all.to_string()));
        external.extend(object(product));
        say.status.extend(object(json!({
            "lastSyncTime": Time(self.now),
            "lastSyncDuration": go_duration(took),
            "lastManualSync": intent.tag,
            "latestMoverStatus": { "result": "Successful", "logs": cut(&outcome.log) },
            "external": external,
        })));
        say.findings.retain(|finding| finding.kind != words::HEALTHY);
        say.findings.push(Finding::holds(words::HEALTHY, "Synced", "The last sync went well"));
        say.because = "the sync is done".to_owned();
        say
    }

    /// The status of a sync that is given up.
    pub(crate) fn gave_up(&self, intent: &Intent, failure: &Failure) -> Saying {
        let (reason, message) = match failure.reason.may_heal() && intent.is_last_attempt() {
            true => ("RetriesExhausted", {
                let (word, tries) = (failure.reason.word(), intent.attempt);
                format!("{tries} attempts failed, the last one with {word}: {}", failure.message)
            }),
            false => (failure.reason.word(), failure.message.clone()),
        };
        self.ended_badly(intent, &Flaw::new(reason, message))
    }

    /// The status of a sync that cannot go on.
    pub(crate) fn ended_badly(&self, intent: &Intent, flaw: &Flaw) -> Saying {
        let mut say = self.hindered(flaw);
        let mut external = over(intent);
        external.insert(GAVE_UP_ON.to_owned(), json!(intent.basis));
        external.insert(GAVE_UP_AT.to_owned(), json!(Time(self.now)));
        external.insert(GAVE_UP_TAG.to_owned(), json!(intent.tag));
        say.status = object(json!({
            "lastSyncStartTime": null,
            "latestMoverStatus": { "result": "Failed", "logs": cut(&flaw.message) },
            "external": external,
        }));
        let note = format!("the sync is given up: {}", flaw.message);
        say.event = Some(self.tells(Importance::Warning, "TransferFailed", note));
        say
    }

    /// What is said between two attempts.
    pub(crate) fn backing_off(&self, intent: &Intent) -> Saying {
        let mut say = self.running(intent, "it waits for the next attempt");
        if let Some((word, message)) = &intent.failed {
            let next = intent.after.as_ref().map(|after| json!(after)).unwrap_or_default();
            let next = next.as_str().unwrap_or_default().to_owned();
            let advice = match word == Reason::RepositoryLocked.word() {
                true => {
                    "; if that process is dead, set spec.restic.unlock of a ReplicationSource \
                         of this repository to a new word"
                }
                false => "",
            };
            let message = format!("attempt {} comes at {next}: {message}{advice}", intent.attempt);
            say.findings.push(Finding::fails(words::HEALTHY, reason_of(word), message.clone()));
            say.event = Some(self.tells(Importance::Warning, "TransferFailed", message));
        }
        say
    }
}

/// What is said, and why.
#[derive(Debug)]
pub(crate) struct Saying {
    pub(crate) status: Say,
    pub(crate) findings: Vec<Finding>,
    pub(crate) because: String,
    pub(crate) event: Option<Event>,
}

impl Saying {
    /// The same, with one more finding.
    #[must_use]
    pub(crate) fn and(mut self, (finding, event): (Finding, Option<Event>)) -> Saying {
        if !self.findings.iter().any(|known| known.kind == finding.kind) {
            self.findings.push(finding);
            self.event = self.event.or(event);
        }
        self
    }
}

/// A number in `status.external`; none is zero.
pub(crate) fn number(external: &BTreeMap<String, String>, key: &str) -> u64 {
    external.get(key).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What `status.external` says of a sync that is over.
fn over(intent: &Intent) -> Say {
    let mut external = Say::new();
    external.insert(SYNC_ID.to_owned(), json!(intent.id));
    external.extend(PROGRESS.map(|key| (key.to_owned(), Value::Null)));
    external
}

/// The word of a reason, for good.
fn reason_of(word: &str) -> &'static str {
    Reason::ALL.iter().map(|reason| reason.word()).find(|known| *known == word).unwrap_or("Failed")
}

pub(crate) fn object(value: Value) -> Say {
    match value {
        Value::Object(fields) => fields,
        _ => Say::new(),
    }
}

/// Whether a value has all of what a merge patch would put there.
fn contains(known: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(fields) => fields.iter().all(|(key, value)| contains(&known[key], value)),
        wanted => known == wanted,
    }
}

fn cut(text: &str) -> String {
    let too_many = text.chars().count().saturating_sub(LOG_CHARACTERS);
    // The end of a log says how it ended.
    text.chars().skip(too_many).collect()
}

/// A time span as Go writes it, and so VolSync: `1h2m3.5s`.
pub(crate) fn go_duration(span: SignedDuration) -> String {
    let span = span.max(SignedDuration::ZERO);
    let (seconds, millis) = (span.as_secs(), span.subsec_millis());
    let fraction = format!("{millis:03}");
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    let rest = format!("{}{dot}{fraction}s", seconds % 60);
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => rest,
        (0, minutes) => format!("{minutes}m{rest}"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_span_is_written_as_go_writes_it() {
        for (millis, wanted) in [
            (0, "0s"),
            (512, "0.512s"),
            (1_000, "1s"),
            (3_500, "3.5s"),
            (60_000, "1m0s"),
            (3_723_040, "1h2m3.04s"),
            (7_200_000, "2h0m0s"),
            (-5, "0s"),
        ] {
            assert_eq!(go_duration(SignedDuration::from_millis(millis)), wanted);
        }
    }

    #[test]
    fn a_log_keeps_its_end() {
        let log = format!("{}é", "a".repeat(5000));
        assert_eq!(cut(&log).chars().count(), LOG_CHARACTERS);
        assert!(cut(&log).ends_with('é'));
    }
}
