//! The revisions of bundles that left the history: they are deleted once no record names them.

use super::candidate::part_address;
use super::facts::{Sweep, Unnamed};
use crate::bundle::MOST_PARTS;
use crate::kinds::CLUSTER_ROLLOUT;
use crate::record::Record;
use interlock_api::rollouts::ClusterRolloutStatus;
use interlock_kernel::{LiveReads, Nothing, Object, Place, Read, read_part};
use jiff::Timestamp;

/// How long a bundle has to be without a name.
const SECONDS: i64 = 3600;

fn numbers() -> impl DoubleEndedIterator<Item = u32> {
    0..u32::try_from(MOST_PARTS).unwrap_or(u32::MAX)
}

/// What is read live before a revision is deleted: all records, and then its parts.
pub(super) fn reads(digest: &str) -> Vec<Read<Nothing>> {
    let records = Read::List { place: Place::HUB, kind: CLUSTER_ROLLOUT, namespace: None };
    let parts = numbers().map(|part| Read::Object(part_address(digest, part)));
    [records].into_iter().chain(parts).collect()
}

/// The digest that is to be deleted next, or in how many seconds one is.
pub(super) fn observe(
    record: &Record,
    now: Timestamp,
    live: &LiveReads<Nothing>,
) -> (Option<Unnamed>, Option<i64>) {
    let oldest =
        record.status.unnamed.iter().max_by_key(|it| crate::record::age(it.since.as_ref(), now));
    let Some(oldest) = oldest else { return (None, None) };
    let left = SECONDS.saturating_sub(crate::record::age(oldest.since.as_ref(), now));
    if left > 0 {
        return (None, Some(left));
    }
    let digest = oldest.digest.clone();
    let found = found(&digest, live);
    (Some(Unnamed { digest, found }), None)
}

fn found(digest: &str, live: &LiveReads<Nothing>) -> Sweep {
    let Some(records) = live.lists.get(&(Place::HUB, CLUSTER_ROLLOUT, None)) else {
        return Sweep::Unread;
    };
    // A record that cannot be read may name anything.
    let names = |record: &Object| match read_part::<ClusterRolloutStatus>(record, "status") {
        Ok(status) => status.is_some_and(|status| status.names_digest(digest)),
        Err(_) => true,
    };
    if records.iter().any(names) {
        return Sweep::Named;
    }
    // The first part says how many there are, and so it goes last.
    let there =
        |part: &u32| matches!(live.objects.get(&part_address(digest, *part)), Some(Some(_)));
    numbers().rev().find(there).map_or(Sweep::Gone, Sweep::There)
}

/// A part as the live read shows it.
pub(super) fn part(digest: &str, part: u32, live: &LiveReads<Nothing>) -> Option<Object> {
    live.objects.get(&part_address(digest, part)).cloned().flatten()
}
