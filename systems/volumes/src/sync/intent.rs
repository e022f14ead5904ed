//! The intent of a sync, on the object before the first effect.

use super::hash;
use super::repository::Unhealthy;
use crate::objects::{annotation, name_of, uid_of};
use crate::outside::{Failure, SyncId};
use interlock_api::names::ANNOTATION_SYNC;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};

/// After so many attempts a sync is given up.
pub(crate) const ATTEMPTS: u32 = 8;
/// How long a sync waits after its first failure; after each further one twice as long.
const FIRST_SECONDS: i64 = 10;
/// How long it waits at most.
const MOST_SECONDS: i64 = 3600;
/// How much of an object's name goes into the name of a snapshot; the rest is for the sync.
const NAME_CHARACTERS: usize = 150;

/// How much of why an attempt failed is kept: an intent is an annotation, and must stay small.
const MESSAGE_CHARACTERS: usize = 1024;

/// The intent of a sync: all that a controller which starts in the middle of it needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Intent {
    /// Names the sync for ever.
    pub(crate) id: String,
    /// The tag that was set when the sync began, which it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<String>,
    /// Which attempt, from 1.
    pub(crate) attempt: u32,
    /// The VolumeSnapshot that it takes.
    pub(crate) snapshot: String,
    /// Among whose places it needs one; empty for those that need none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) places: String,
    /// What a failure would rest on: the versions of the spec and of the Secret.
    #[serde(default)]
    pub(crate) basis: String,
    /// The word that asks for the removal of dead locks, as it was when the sync began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unlock: Option<String>,
    /// When it began.
    pub(crate) began: Time,
    /// Before this there is no other attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<Time>,
    /// Why the last attempt failed: one word, and the sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<(String, String)>,
}

impl Intent {
    /// The intent of a sync that is due now. Its name rests on the version that the write of it
    /// replaces: of two that are written over one version, one is refused.
    pub(crate) fn new(object: &DynamicObject, now: Timestamp) -> Intent {
        let version = object.metadata.resource_version.as_deref().unwrap_or_default();
        let version: String = version.chars().filter(char::is_ascii_alphanumeric).collect();
        let id = format!("{}-{}", uid_of(object), version.to_ascii_lowercase());
        let name: String = name_of(object).chars().take(NAME_CHARACTERS).collect();
        let name = name.trim_end_matches(['-', '.']);
        Intent {
            snapshot: format!("volsync-{name}-{id}"),
            id,
            tag: None,
            attempt: 1,
            places: String::new(),
            basis: String::new(),
            unlock: None,
            began: Time(now),
            after: None,
            failed: None,
        }
    }

    /// The intent on an object; an error: there is one that nobody can read.
    pub(crate) fn read(object: &DynamicObject) -> Result<Option<Intent>, String> {
        let Some(text) = annotation(object, ANNOTATION_SYNC) else { return Ok(None) };
        serde_json::from_str(text).map(Some).map_err(|error| error.to_string())
    }

    /// As it is written.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The name of this attempt.
    pub(crate) fn sync_id(&self) -> SyncId {
        SyncId { id: self.id.clone(), attempt: self.attempt }
    }

    /// The name of the attempt before.
    pub(crate) fn earlier_sync_id(&self) -> Option<SyncId> {
        let attempt = self.attempt.checked_sub(1).filter(|attempt| *attempt > 0)?;
        Some(SyncId { id: self.id.clone(), attempt })
    }

    pub(crate) fn is_last_attempt(&self) -> bool {
        self.attempt >= ATTEMPTS
    }

    /// Why a sync ends whose last attempt failed like this.
    pub(crate) fn exhausted(&self, failure: &Failure) -> Unhealthy {
        let (word, tries) = (failure.reason.word(), self.attempt);
        let message =
            format!("{tries} attempts failed, the last one with {word}: {}", failure.message);
        Unhealthy::new("RetriesExhausted", message)
    }

    /// How long there is no further attempt yet.
    pub(crate) fn backs_off(&self, now: Timestamp) -> Option<SignedDuration> {
        let after = self.after.as_ref()?.0;
        (after > now).then(|| after.duration_since(now))
    }

    /// The intent of the next attempt, after one that failed.
    pub(crate) fn next(&self, failure: &Failure, now: Timestamp) -> Intent {
        let after = now.checked_add(wait_after(&self.id, self.attempt)).unwrap_or(now);
        Intent {
            attempt: self.attempt.saturating_add(1),
            after: Some(Time(after)),
            failed: Some((
                failure.reason.word().to_owned(),
                failure.message.chars().take(MESSAGE_CHARACTERS).collect(),
            )),
            ..self.clone()
        }
    }
}

/// How long a sync waits after an attempt: half of the time for certain, and a share of the other
/// half that is its own, so that those who failed together do not come back together.
fn wait_after(id: &str, attempt: u32) -> SignedDuration {
    let doublings = attempt.saturating_sub(1).min(16);
    let most = (FIRST_SECONDS << doublings).min(MOST_SECONDS);
    let share = i64::try_from(hash(&format!("{id} {attempt}")) % 1000).unwrap_or(0);
    SignedDuration::from_millis(most * 500 + most * share / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::Reason;
    use serde_json::json;

    fn object(version: &str) -> DynamicObject {
        let metadata = json!({"name": "s", "uid": "u-1", "resourceVersion": version});
        serde_json::from_value(json!({"metadata": metadata})).expect("an object")
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn two_syncs_of_an_object_never_share_a_name() {
        let (one, two) = (Intent::new(&object("7"), at(1)), Intent::new(&object("8"), at(1)));
        assert_eq!((one.id.as_str(), one.snapshot.as_str()), ("u-1-7", "volsync-s-u-1-7"));
        assert_ne!(one.id, two.id);
    }

    #[test]
    fn an_intent_reads_as_it_was_written() {
        let mut object = object("7");
        assert_eq!(Intent::read(&object), Ok(None));
        let failure = Failure { reason: Reason::RepositoryLocked, message: "by x".to_owned() };
        let intent = Intent { tag: Some("t".to_owned()), ..Intent::new(&object, at(5)) };
        let intent = intent.next(&failure, at(9));
        let notes = [(ANNOTATION_SYNC.to_owned(), intent.text())];
        object.metadata.annotations = Some(notes.into());
        let read = Intent::read(&object).expect("it is read").expect("it is there");
        assert_eq!((read.attempt, read.tag.as_deref()), (2, Some("t")));
        assert_eq!(read.failed, Some(("RepositoryLocked".to_owned(), "by x".to_owned())));
        object.metadata.annotations = Some([(ANNOTATION_SYNC.to_owned(), "{".to_owned())].into());
        assert!(Intent::read(&object).is_err());
    }

    #[test]
    fn waits_grow_are_never_zero_and_end_at_an_hour() {
        for attempt in 1..40 {
            let waits: Vec<i64> =
                (0..50).map(|sync| wait_after(&format!("s-{sync}"), attempt).as_secs()).collect();
            let most = (FIRST_SECONDS << (attempt - 1).min(16)).min(MOST_SECONDS);
            assert!(waits.iter().all(|wait| (most / 2..=most).contains(wait)), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "they are spread");
        }
    }

    #[test]
    fn a_name_that_is_long_or_odd_makes_a_name_that_is_none() {
        let mut long = object("7");
        long.metadata.name = Some(format!("{}.-{}", "n".repeat(149), "m".repeat(100)));
        let snapshot = Intent::new(&long, at(1)).snapshot;
        assert_eq!(snapshot, format!("volsync-{}-u-1-7", "n".repeat(149)));
    }
}
