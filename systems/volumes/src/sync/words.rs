//! What the status of an object says of its syncs, and the events that go with it.

use super::facts::{Next, Trouble, Why};
use super::intent::Intent;
use super::observe::Scene;
use super::repository::Unhealthy;
use super::task::{
    GAVE_UP_AT, GAVE_UP_ON, MISSED, NOT_HERE, SYNC_ID, SYNC_MILLISECONDS, SYNCS, Task, number,
};
use super::trigger::{Due, Last, has_missed};
use super::{snapshots, source};
use crate::objects::change_status;
use crate::outside::{self, Mover, Outcome, Progress, Reason};
use interlock_api::volumes::condition as words;
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::{Event, Importance, Step};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Map, Value, json};

/// In `status.external`: the tag that it was to answer; whoever set it may set another one.
const GAVE_UP_TAG: &str = "gaveUpTag";
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
/// Reasons of the condition Healthy that are seen without a sync, and go without one.
const SEEN: [&str; 8] = [
    NOT_HERE,
    snapshots::CLASS_MISSING,
    snapshots::NOT_BEGUN,
    "SecretIncomplete",
    "RepositoryNotSupported",
    "SourceMissing",
    "BrokenIntent",
    "TargetMissing",
];

/// What is said in a status besides the conditions.
pub(crate) type Fields = Map<String, Value>;

/// What is said, and why.
#[derive(Debug)]
pub(crate) struct Saying {
    pub(crate) status: Fields,
    pub(crate) findings: Vec<Finding>,
    pub(crate) because: String,
    pub(crate) event: Option<Event>,
}

impl Saying {
    /// The same, with one more finding.
    #[must_use]
    pub(crate) fn and(mut self, finding: Finding) -> Saying {
        self.findings.push(finding);
        self
    }

    /// The same, with what was wrong without a sync, and is not any more.
    #[must_use]
    pub(crate) fn mended(self) -> Saying {
        self.and(Finding {
            kind: words::HEALTHY,
            holds: None,
            reason: "NotTriedYet",
            message: "The cause of the failure has changed; the next sync is pending".to_owned(),
            next: None,
        })
    }

    /// The same, with what has no effect as its event, if it has no other.
    #[must_use]
    pub(crate) fn telling_ignored(mut self, scene: &Scene) -> Saying {
        let is_field = scene.ignored.iter().any(|path| path.starts_with("spec."));
        let reason = if is_field { "FieldWithoutEffect" } else { "KeyWithoutEffect" };
        let tell = || scene.task.tells(Importance::Normal, reason, accepted(&scene.ignored));
        self.event = self.event.or_else(|| Some(tell()));
        self
    }

    /// The one write of the status that says it.
    pub(crate) fn step(self, task: &Task) -> Step<Mover> {
        let generation = task.object.metadata.generation;
        let all = self.findings.iter().fold(task.known.conditions.clone(), |all, finding| {
            conditions::with(&all, finding, task.now, generation)
        });
        let mut status = self.status;
        status.insert("conditions".to_owned(), json!(all));
        let write = change_status(&task.kind, &task.object, Value::Object(status));
        let step = Step::write(write, self.because);
        match self.event {
            Some(event) => step.telling(event),
            None => step,
        }
    }
}

/// What the status says while nothing is done for this reason; None: nothing.
pub(crate) fn saying(scene: &Scene, why: Why) -> Option<Saying> {
    let task = &scene.task;
    let running = |what: &str| task.current().map(|intent| task.running(intent, what));
    let say = match why {
        Why::Terminating => return None,
        Why::Refused => return scene.work.as_ref().err().map(|flaw| task.refused(flaw)),
        Why::BrokenIntent => return task.intent.as_ref().err().map(|flaw| task.broken(flaw)),
        Why::Held => return Some(held(scene)),
        Why::NotHere => {
            let mut say = task.hindered(&source::not_here(task));
            say.status.insert("nextSyncTime".to_owned(), Value::Null);
            return Some(say);
        }
        Why::SnapshotNotReady(trouble) => {
            let say = running("the snapshot is being taken")?.and(accept(scene));
            return Some(troubled(scene, say, trouble));
        }
        Why::NotDue(next) => task.idle(next, scene.due),
        Why::Hindered => task.hindered(scene.hindrance.as_ref()?),
        Why::BacksOff => task.backing_off(task.current()?),
        Why::TargetNotBound => running("the claim has no volume yet")?,
        Why::SlotsFull => running("all slots at the repository are in use")?,
        Why::Runs { is_news: false } => running("the mover runs")?,
        Why::Runs { is_news: true } => {
            let Some(outside::Sync::Runs(progress)) = scene.mover else { return None };
            let mut say = running("the mover runs")?;
            say.status.insert("external".to_owned(), task.progress(progress));
            say
        }
    };
    Some(say.and(accept(scene)))
}

/// That everything is supported, with what has no effect.
pub(crate) fn accept(scene: &Scene) -> Finding {
    Finding::holds(words::ACCEPTED, "Supported", accepted(&scene.ignored))
}

fn accepted(ignored: &[String]) -> String {
    match ignored {
        [] => "Every field of the spec is supported".to_owned(),
        some => format!("These fields have no effect: {}", some.join(", ")),
    }
}

/// Who holds the snapshots of an object that is being deleted.
fn held(scene: &Scene) -> Saying {
    let because =
        format!("the object is deleted once its snapshots have no holder: {}", scene.holders);
    let findings = vec![Finding::fails(words::HEALTHY, "SnapshotHeld", because.clone())];
    Saying { status: Fields::new(), findings, because, event: None }
}

/// What keeps a snapshot from being taken: what the storage says of that, or that nobody takes it.
fn troubled(scene: &Scene, mut say: Saying, trouble: Trouble) -> Saying {
    let flaw = scene.snapshot.as_ref().and_then(|snapshot| match trouble {
        Trouble::None => None,
        Trouble::Failing => snapshots::flaw_of(snapshot),
        Trouble::NotBegun => snapshots::neglected(snapshot),
    });
    if let Some(Unhealthy { reason, message }) = flaw {
        say.event = Some(scene.task.tells(Importance::Warning, reason, message.clone()));
        say.findings.push(Finding::fails(words::HEALTHY, reason, message));
    }
    say
}

impl Task {
    /// Whether the status says all of this already.
    pub(crate) fn says(&self, say: &Saying) -> bool {
        let known = &self.object.data["status"];
        say.findings.iter().all(|finding| finding.is_in(&self.known.conditions))
            && say.status.iter().all(|(key, value)| contains(&known[key], value))
    }

    /// Whether the status says that something is wrong which would be seen without a sync.
    pub(crate) fn is_something_wrong(&self) -> bool {
        let known = conditions::find(&self.known.conditions, words::HEALTHY);
        known.is_some_and(|known| known.status == "False" && SEEN.contains(&known.reason.as_str()))
    }

    pub(crate) fn tells(
        &self,
        importance: Importance,
        reason: &'static str,
        note: impl Into<String>,
    ) -> Event {
        // An API server takes no longer ones; a letter has at most four bytes.
        let note: String = note.into().chars().take(NOTE_BYTES / 4).collect();
        Event { importance, ..crate::objects::tells(&self.kind, &self.object, reason, note) }
    }

    /// What is said while no sync runs and nothing is wrong.
    fn idle(&self, next: Next, due: Due) -> Saying {
        let (reason, message) = match next {
            Next::Unpaused => {
                (words::WAITING_FOR_MANUAL, "Paused: set spec.paused to false to resume")
            }
            Next::Scheduled => {
                (words::WAITING_FOR_SCHEDULE, "Waiting for next scheduled synchronization")
            }
            Next::Minute => (
                words::WAITING_FOR_SCHEDULE,
                "Waiting for next synchronization, at most one a minute",
            ),
            Next::Now | Next::Tag => (words::WAITING_FOR_MANUAL, "Waiting for manual trigger"),
            Next::Change => (words::ERROR, "Given up: change the spec or the Secret to try again"),
            Next::Never => (words::ERROR, "The schedule matches no time"),
        };
        let at = match (next, due) {
            (Next::Scheduled, Due::At(at)) => Some(Time(at)),
            _ => None,
        };
        Saying {
            status: fields(json!({"nextSyncTime": at, "lastSyncStartTime": null})),
            findings: vec![Finding::fails(words::SYNCHRONIZING, reason, message)],
            because: message.to_owned(),
            event: None,
        }
    }

    /// What is said while a sync runs.
    fn running(&self, intent: &Intent, what: &str) -> Saying {
        let findings = vec![Finding::holds(
            words::SYNCHRONIZING,
            words::SYNC_IN_PROGRESS,
            "Synchronization in-progress",
        )];
        let status = fields(json!({ "lastSyncStartTime": intent.began }));
        Saying { status, findings, because: what.to_owned(), event: None }
    }

    /// Whether how far a mover is, is news, and it is time to say so.
    pub(crate) fn is_progress_news(&self, intent: &Intent, progress: Progress) -> bool {
        let said = |key: &str| self.known.external.get(key);
        let last: Option<Timestamp> = said(PROGRESS[3]).and_then(|at| at.parse().ok());
        let since = self.now.duration_since(last.unwrap_or(intent.began.0));
        let is_large = progress.of_bytes.is_some_and(|bytes| bytes >= LARGE_BYTES);
        let is_time =
            (last.is_none() && is_large) || since >= SignedDuration::from_secs(PROGRESS_SECONDS);
        let is_other = said(PROGRESS[0]) != Some(&progress.bytes.to_string())
            || said(PROGRESS[2]) != Some(&progress.files.to_string());
        is_time && is_other
    }

    /// How far a mover is, in `status.external`.
    fn progress(&self, progress: Progress) -> Value {
        json!({
            PROGRESS[0]: progress.bytes.to_string(),
            PROGRESS[1]: progress.of_bytes.map(|bytes| bytes.to_string()),
            PROGRESS[2]: progress.files.to_string(),
            PROGRESS[3]: Time(self.now),
        })
    }

    /// The intent cannot be read.
    fn broken(&self, flaw: &str) -> Saying {
        let what = format!(
            "annotation interlock.dev/sync cannot be parsed ({flaw}); remove it to start again"
        );
        self.hindered(&Unhealthy::new("BrokenIntent", what))
    }

    /// What is said when something is in the way, with or without a sync.
    fn hindered(&self, flaw: &Unhealthy) -> Saying {
        let message: String = flaw.message.chars().take(LOG_CHARACTERS).collect();
        let findings = vec![
            Finding::fails(words::SYNCHRONIZING, words::ERROR, message.clone()),
            Finding::fails(words::HEALTHY, flaw.reason, message.clone()),
        ];
        Saying {
            status: Fields::new(),
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
            status: fields(json!({"nextSyncTime": null, "lastSyncStartTime": null})),
            findings,
            because: message.to_owned(),
            event: Some(self.tells(Importance::Warning, "NotSupported", message)),
        }
    }

    /// The status of a sync that is done: everything in one write.
    pub(crate) fn done(&self, intent: &Intent, outcome: &Outcome, product: Value) -> Saying {
        let tag = intent.tag.clone().unwrap_or_default();
        let last = Last { synced: Some(self.now), tag: &tag, gave_up: None };
        let due = self.due_after(last);
        let mut say = self.idle(self.next(due), due);
        let has_missed =
            self.when.as_ref().is_ok_and(|when| has_missed(when, self.known.synced, self.now));
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
        external.extend(fields(product));
        say.status.extend(fields(json!({
            "lastSyncTime": Time(self.now),
            "lastSyncDuration": go_duration(took),
            "lastManualSync": intent.tag,
            "latestMoverStatus": { "result": "Successful", "logs": cut(&outcome.log) },
            "external": external,
        })));
        say.findings.push(Finding::holds(words::HEALTHY, "Synced", "The last sync succeeded"));
        say.because = "the sync is done".to_owned();
        say
    }

    /// The status of a sync that cannot go on.
    pub(crate) fn ended_badly(&self, intent: &Intent, flaw: &Unhealthy) -> Saying {
        let mut say = self.hindered(flaw);
        let mut external = over(intent);
        external.insert(GAVE_UP_ON.to_owned(), json!(intent.basis));
        external.insert(GAVE_UP_AT.to_owned(), json!(Time(self.now)));
        external.insert(GAVE_UP_TAG.to_owned(), json!(intent.tag));
        say.status = fields(json!({
            "lastSyncStartTime": null,
            "latestMoverStatus": { "result": "Failed", "logs": cut(&flaw.message) },
            "external": external,
        }));
        let note = format!("the sync is given up: {}", flaw.message);
        say.event = Some(self.tells(Importance::Warning, "TransferFailed", note));
        say
    }

    /// What is said between two attempts.
    fn backing_off(&self, intent: &Intent) -> Saying {
        let mut say = self.running(intent, "the sync waits for the next attempt");
        if let Some((word, message)) = &intent.failed {
            let next = intent.after.as_ref().map(|after| json!(after)).unwrap_or_default();
            let next = next.as_str().unwrap_or_default().to_owned();
            let advice = match word == Reason::RepositoryLocked.word() {
                true => {
                    "; if that process is dead, set spec.restic.unlock of a ReplicationSource of \
                     this repository to a new value"
                }
                false => "",
            };
            let message =
                format!("attempt {} is scheduled at {next}: {message}{advice}", intent.attempt);
            say.findings.push(Finding::fails(words::HEALTHY, reason_of(word), message.clone()));
            say.event = Some(self.tells(Importance::Warning, "TransferFailed", message));
        }
        say
    }
}

/// What `status.external` says of a sync that is over.
fn over(intent: &Intent) -> Fields {
    let mut external = Fields::new();
    external.insert(SYNC_ID.to_owned(), json!(intent.id));
    external.extend(PROGRESS.map(|key| (key.to_owned(), Value::Null)));
    external
}

/// The word of a reason, for good.
fn reason_of(word: &str) -> &'static str {
    Reason::ALL.iter().map(|reason| reason.word()).find(|known| *known == word).unwrap_or("Failed")
}

fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
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
fn go_duration(span: SignedDuration) -> String {
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
