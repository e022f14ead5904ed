//! Mistakes about pods that are deleted and made again under their names.

use super::{Bend, Row, synced};
use crate::syncer::facts::Facts as SyncerFacts;
use crate::syncer::objects::decide::{Live, LiveHere};

/// Two syncers, of which the second lags.
const BEHIND: &str = "moves=0,flights=0,late=2,stale=1,crash=0,pods=1,begun=3,syncers=2";

pub(super) const ROWS: &[Row] = &[
    Row(
        "applied-from-the-cache",
        "a syncer whose cache lags brings back a pod that was deleted at the hub",
        &["OnlyPodsOfTheHub"],
        &[Bend::SyncerDecides(|facts| synced(facts, |facts| taken_for_live(facts, false)))],
        BEHIND,
    ),
    Row(
        "replaced-from-the-cache",
        "a syncer whose cache lags deletes a pod that is newer than what it has seen of the hub",
        &["PodsOfTheHubStay"],
        &[Bend::SyncerDecides(|facts| synced(facts, |facts| taken_for_live(facts, true)))],
        BEHIND,
    ),
    Row(
        "stray-stays",
        "a pod that was applied after it was deleted at the hub stays for ever",
        &["DesiredIsMet", "GrantRuns"],
        &[Bend::SyncerDecides(|facts| synced(facts, |facts| facts.strays.clear()))],
        "moves=0,flights=1,late=1,stale=0,crash=0,pods=1,begun=2,syncers=2,live=1",
    ),
];

/// The cache is taken for what a live read shows, of what is here or of what is not.
fn taken_for_live(facts: &mut SyncerFacts, is_here: bool) {
    for object in &mut facts.objects {
        if object.here.is_some() == is_here {
            object.live_read = Some(Live { is_wanted: true, here: LiveHere::Absent });
        }
    }
}
