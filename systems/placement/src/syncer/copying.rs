//! The objects by which the data of a claim leaves a cluster and arrives at another: what they are
//! called, and what they say.
//!
//! Other controllers of the cluster do the work: one takes the snapshot that a ReplicationSource asks
//! for, one brings a snapshot to a ReplicationDestination, one fills the claim from there. They and the
//! syncer meet only in these objects.

use super::Locks;
use super::claim::facts::Obstacle;
use super::objects::compare::digest;
use super::tenancy::Epoch;
use interlock_api::names::{ANNOTATION_SYNC, PROVIDER_RESTIC};
use interlock_kernel::{Kind, Object, Place, Step, Write};
use kube_core::DynamicObject;
use serde_json::{Value, json};

/// How much of the name of a claim goes into other names: these get more added by others.
const NAME_CHARACTERS: usize = 180;

/// The name of the source that takes snapshots of a claim.
pub(super) fn source_name(claim: &str) -> String {
    format!("move-{}", short(claim))
}

/// The name of the destination that a claim is filled from, at one epoch.
pub(super) fn destination_name(claim: &str, epoch: Epoch) -> String {
    format!("move-{}-{epoch}", short(claim))
}

/// The name of a claim, or as much of it as fits into other names.
fn short(claim: &str) -> String {
    if claim.len() <= NAME_CHARACTERS {
        return claim.to_owned();
    }
    let beginning: String = claim.chars().take(NAME_CHARACTERS - 17).collect();
    format!("{}-{:016x}", beginning.trim_end_matches(['-', '.']), digest(&json!(claim)))
}

/// The trigger of the last snapshot of an epoch.
pub(super) fn final_tag(epoch: Epoch) -> String {
    format!("final-{epoch}")
}

/// Whether a trigger asks for the last snapshot of an epoch, the first time or again.
pub(super) fn is_final(tag: &str, epoch: Epoch) -> bool {
    is_once_more(tag, &final_tag(epoch))
}

fn is_once_more(tag: &str, first: &str) -> bool {
    let rest = tag.strip_prefix(first);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Asks a source or destination once more for what it was asked for last.
pub(super) fn ask_again(kind: &Kind, object: &Object, because: String) -> Step<Locks> {
    let tag = again(asked(object).unwrap_or_default());
    let change = json!({"spec": {"trigger": {"manual": tag}}});
    Step::write(Write::patch(Place::CLUSTER, kind, object, change), because)
}

/// The trigger that asks once more for what was asked for by this one.
fn again(tag: &str) -> String {
    let (first, count) = tag.split_once('.').unwrap_or((tag, "1"));
    let count: u64 = count.parse().unwrap_or(1);
    format!("{first}.{}", count.saturating_add(1))
}

/// The trigger of an arrival.
pub(super) fn arrival_tag(epoch: Epoch) -> String {
    format!("epoch-{epoch}")
}

/// The name of what removes from a repository what earlier moves of a claim left there.
pub(super) fn tidy_name(claim: &str) -> String {
    format!("tidy-{}", short(claim))
}

/// The trigger that asks to remove what epochs before this one left in the repository.
pub(super) fn tidy_tag(epoch: Epoch) -> String {
    format!("tidy-{epoch}")
}

/// Whether a source or destination works on a repository.
pub(super) fn is_through_repository(object: &DynamicObject) -> bool {
    object.data["spec"]["external"]["provider"] == PROVIDER_RESTIC
}

/// The Secret that opens the repository of a source or destination.
pub(super) fn secret_of(object: &DynamicObject) -> Option<&str> {
    object.data["spec"]["external"]["parameters"]["repository"].as_str()
}

/// Whether a trigger asks for the arrival at an epoch, the first time or again.
pub(super) fn is_arrival(tag: &str, epoch: Epoch) -> bool {
    is_once_more(tag, &arrival_tag(epoch))
}

/// What a source or destination was asked for last.
pub(super) fn asked(object: &DynamicObject) -> Option<&str> {
    object.data["spec"]["trigger"]["manual"].as_str()
}

/// What it has done last.
pub(super) fn confirmed(object: &DynamicObject) -> Option<&str> {
    object.data["status"]["lastManualSync"].as_str()
}

/// Whether a sync is under way: then the tag that it began with must be confirmed before another one
/// is set, or it could be taken for the answer to the other.
pub(super) fn is_syncing(object: &DynamicObject) -> bool {
    let annotations = object.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(ANNOTATION_SYNC))
        && asked(object) != confirmed(object)
}

/// Whether what it was asked for last is given up for this reason: it is not tried again by itself.
pub(super) fn has_given_up(object: &DynamicObject, reason: &str) -> bool {
    let is_tag_given_up = asked(object).is_some() && reported(object, "gaveUpTag") == asked(object);
    is_tag_given_up && !is_syncing(object) && trouble(object).is_some_and(|it| it.reason == reason)
}

/// A word of what a source or destination tells of itself beyond VolSync's fields.
pub(super) fn reported<'a>(object: &'a DynamicObject, key: &str) -> Option<&'a str> {
    object.data["status"]["external"][key].as_str().filter(|text| !text.is_empty())
}

/// A number among these; they are words on the wire.
pub(super) fn reported_number(object: &DynamicObject, key: &str) -> Option<i64> {
    reported(object, key)?.parse().ok().filter(|number| *number >= 0)
}

/// Why a source or destination does not get on, in its own words.
pub(super) fn trouble(object: &DynamicObject) -> Option<Obstacle> {
    let conditions = object.data["status"]["conditions"].as_array()?;
    let is_trouble = |condition: &&Value| {
        let kind = &condition["type"];
        (*kind == "interlock.dev/Accepted" || *kind == "interlock.dev/Healthy")
            && condition["status"] == "False"
    };
    let found = conditions.iter().find(is_trouble)?;
    let reason = reason(found["reason"].as_str().unwrap_or_default());
    let message = found["message"].as_str().unwrap_or_default().to_owned();
    Some(Obstacle::new(reason, message))
}

/// The words that movers have for what is in the way. Another one is said to be a failed copy, and
/// stays readable in the message.
const REASONS: [&str; 23] = [
    "NotSupported",
    "SecretIncomplete",
    "RepositoryNotSupported",
    "RepositoryMissing",
    "RepositoryUnreachable",
    "WrongPassword",
    "RepositoryLocked",
    "RepositoryDamaged",
    "SourceMissing",
    "SourceEmpty",
    "SourceUnreadable",
    "NoEligibleSnapshot",
    "SnapshotEmpty",
    "SnapshotGone",
    "SnapshotLost",
    "SizeMismatch",
    "SnapshotFailed",
    "FreezeTooLong",
    "TargetFull",
    "DigestMismatch",
    "RetriesExhausted",
    "MoverFailed",
    "CopyFailed",
];

fn reason(word: &str) -> &'static str {
    REASONS.into_iter().find(|known| *known == word).unwrap_or("CopyFailed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_of_claims_stay_apart_and_leave_room() {
        assert_eq!(source_name("data"), "move-data");
        assert_eq!(destination_name("data", 7), "move-data-7");
        let (one, two) = (format!("{}a", "n".repeat(240)), format!("{}b", "n".repeat(240)));
        assert_ne!(source_name(&one), source_name(&two));
        assert!(destination_name(&one, i64::MAX).len() < 210);
    }

    #[test]
    fn a_snapshot_may_be_asked_for_again_and_is_still_of_its_epoch() {
        assert_eq!(again("final-7"), "final-7.2");
        assert_eq!(again(&again("final-7")), "final-7.3");
        assert!(is_final("final-7", 7) && is_final("final-7.3", 7));
        assert!(!is_final("final-71", 7) && !is_final("final-7", 71) && !is_final("", 7));
        assert!(is_arrival("epoch-7", 7) && is_arrival(&again("epoch-7"), 7));
        assert!(!is_arrival("epoch-71", 7) && !is_arrival("final-7", 7));
    }

    #[test]
    fn trouble_is_reported_by_its_word_or_as_a_failed_copy() {
        let object = |word: &str| -> DynamicObject {
            serde_json::from_value(json!({"metadata": {}, "status": {"conditions": [
                {"type": "Synchronizing", "status": "False", "reason": "x"},
                {"type": "interlock.dev/Healthy", "status": "False", "reason": word,
                 "message": "why"},
            ]}}))
            .unwrap()
        };
        assert_eq!(trouble(&object("TargetFull")).unwrap().reason, "TargetFull");
        let other = trouble(&object("Odd")).unwrap();
        assert_eq!((other.reason, other.message.as_str()), ("CopyFailed", "why"));
    }
}
