//! Mistakes about cloud roles, and whom they trust.

use super::{Bend, Row, scheduled, synced};
use crate::scheduler::decide::UnfitReason;
use crate::syncer::facts::{FreshGrant, Unready};

pub(super) const ROWS: &[Row] = &[
    Row(
        "rights-not-awaited",
        "a namespace starts before its cloud roles trust its cluster",
        &["RightsBeforeTheStart"],
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                if let Some(grant) = fresh(facts) {
                    grant.rights.unready.clear();
                }
            })
        })],
        "moves=1,flights=0,stale=0,crash=0,rights=1",
    ),
    Row(
        "rights-awaited-in-vain",
        "a namespace waits for cloud roles that trust its cluster",
        &["DesiredIsMet", "GrantRuns"],
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                if let Some(grant) = fresh(facts) {
                    grant
                        .rights
                        .unready
                        .push(Unready { role: "app".into(), because: String::new() });
                }
            })
        })],
        "moves=0,flights=0,stale=0,crash=0,rights=1,live=1",
    ),
    Row(
        "issuer-ignored",
        "what runs is stopped for a cluster whose tokens no cloud role can trust",
        &["RevokedForATarget"],
        &[Bend::SchedulerDecides(|facts| {
            scheduled(facts, |facts| {
                for cluster in &mut facts.clusters {
                    let reason = cluster.unfit_reason.take();
                    cluster.unfit_reason = reason
                        .filter(|reason| !matches!(reason, UnfitReason::IssuerNotReady { .. }));
                }
            })
        })],
        "moves=1,flights=0,stale=0,crash=0,rights=1,unfit=1",
    ),
];

fn fresh(facts: &mut crate::syncer::facts::Facts) -> Option<&mut FreshGrant> {
    facts.fresh.as_mut()?.grant.as_mut()
}
