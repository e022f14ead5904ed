//! An object that syncs: its trigger, its intent, and what its status says of earlier syncs.

use super::facts::Next;
use super::intent::Intent;
use super::trigger::{Due, Last, When, due};
use crate::objects::{annotation, change, namespace_of, uid_of};
use crate::outside::SyncId;
use interlock_api::names::{ANNOTATION_ALLOW_EMPTY, ANNOTATION_SYNC};
use interlock_api::volumes::ResticStatus;
use interlock_kernel::conditions::Condition;
use interlock_kernel::{Address, Kind, Name, Object, Place, Write};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// In `status.external`: the sync that is over.
pub(crate) const SYNC_ID: &str = "syncID";
/// In `status.external`: what the sync that was given up rested on.
pub(crate) const GAVE_UP_ON: &str = "gaveUpOn";
/// In `status.external`: when a sync was given up.
pub(crate) const GAVE_UP_AT: &str = "gaveUpAt";
/// In `status.external`: how many intervals of the schedule went by without a sync.
pub(crate) const MISSED: &str = "missedIntervals";
/// In `status.external`: how many syncs were done, and how long all of them took.
pub(crate) const SYNCS: &str = "syncs";
pub(crate) const SYNC_MILLISECONDS: &str = "syncMilliseconds";
/// The reason of the condition Healthy of a source whose namespace runs on another cluster.
pub(crate) const NOT_HERE: &str = "NotHere";

/// What the status of an object says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(crate) synced: Option<Timestamp>,
    pub(crate) tag: String,
    pub(crate) external: BTreeMap<String, String>,
    pub(crate) conditions: Vec<Condition>,
    /// What a source did to its repository last.
    pub(crate) restic: ResticStatus,
    /// The name of what a destination published last.
    pub(crate) latest_image: Option<String>,
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

impl Task {
    pub(crate) fn uid(&self) -> &str {
        uid_of(&self.object)
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

    pub(super) fn due_after(&self, last: Last<'_>) -> Due {
        match &self.when {
            Ok(when) => due(when, last, self.now, self.uid()),
            Err(_) => Due::Never,
        }
    }

    /// What a sync that is due then waits for.
    pub(crate) fn next(&self, due: Due) -> Next {
        match due {
            _ if self.is_paused => Next::Unpaused,
            Due::Now => Next::Now,
            Due::At(_) if matches!(self.when, Ok(When::Schedule(_))) => Next::Scheduled,
            Due::At(_) => Next::Minute,
            Due::WithATag => Next::Tag,
            Due::WithAChange => Next::Change,
            Due::Never => Next::Never,
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

    pub(crate) fn write_main(&self, what: Value) -> Write {
        change(&self.kind, &self.object, what)
    }
}

/// A number in `status.external`; none is zero.
pub(crate) fn number(external: &BTreeMap<String, String>, key: &str) -> u64 {
    external.get(key).and_then(|text| text.parse().ok()).unwrap_or(0)
}
