//! Mistakes about pods that no syncer made.

use super::moves::permit_in_the_cache;
use super::{Bend, Row};
use crate::runtime::Runtime;
use crate::runtime::decide::{Facts, Stamp};
use interlock_kernel::Room;

pub(super) const ROWS: &[Row] = &[
    Row(
        "stamp-ignored",
        "a pod that a maker made in an epoch that was closed since starts in a later one",
        &["OwnEpoch"],
        &[Bend::RuntimeDecides(|facts| {
            let mut facts = *facts;
            if let Facts::Asked(asked) = &mut facts {
                let as_if_synced = |stamp: Stamp| match stamp {
                    Stamp::Epoch(_) => Stamp::Syncer,
                    Stamp::None | Stamp::Syncer => stamp,
                };
                asked.stamp = as_if_synced(asked.stamp);
                if let Some(permit) = &mut asked.permit {
                    permit.stamp = as_if_synced(permit.stamp);
                }
            }
            Runtime::decide(&facts)
        })],
        "moves=2,flights=0,stale=0,crash=0,makers=1,begun=2",
    ),
    Row(
        "unplaced-from-the-cache",
        "a start believes its cache that the namespace is not placed, where it was made anew since",
        &["OnlyTheOwnerRuns"],
        &[Bend::RuntimeObserves(permit_in_the_cache)],
        "moves=0,flights=0,stale=1,crash=0,unplaced=1",
    ),
];
