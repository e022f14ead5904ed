//! Which snapshots stay after a backup.

use crate::outside::Keep;
use interlock_api::volumes::Retain;
use interlock_kernel::Object;
use jiff::{SignedDuration, Timestamp};

/// Days between two prunes, where nobody says.
const PRUNE_DAYS: i32 = 7;

/// What a source says of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Which snapshots stay.
    pub(crate) retain: Option<&'a Retain>,
    /// Days between two prunes.
    pub(crate) prune_interval_days: Option<i32>,
    /// When the last prune was or, before the first, when the source came.
    pub(crate) last_pruned: Option<Timestamp>,
    /// Whether dead locks are removed first.
    pub(crate) unlocks: bool,
}

/// What stays, as VolSync does it: forgotten is after each backup, pruned now and then. What a
/// destination names by its id is pinned.
pub(crate) fn keep(wanted: &Wanted<'_>, destinations: &[Object], now: Timestamp) -> Keep {
    let count = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok());
    let retain = wanted.retain.cloned().unwrap_or_default();
    let mut keep = Keep {
        last: retain.last.as_deref().and_then(|last| last.parse().ok()),
        hourly: count(retain.hourly),
        daily: count(retain.daily),
        weekly: count(retain.weekly),
        monthly: count(retain.monthly),
        yearly: count(retain.yearly),
        within: retain.within,
        pinned: destinations.iter().filter_map(pinned).collect(),
        prune: is_prune_due(wanted, now),
        unlock: wanted.unlocks,
    };
    if is_silent(&keep) {
        keep.last = Some(1);
    }
    keep
}

/// Whether it names nothing that stays: then everything would go.
fn is_silent(keep: &Keep) -> bool {
    let numbers = [keep.last, keep.hourly, keep.daily, keep.weekly, keep.monthly, keep.yearly];
    keep.within.is_none() && numbers.iter().all(|number| number.is_none_or(|number| number == 0))
}

fn is_prune_due(wanted: &Wanted<'_>, now: Timestamp) -> bool {
    let days = i64::from(wanted.prune_interval_days.unwrap_or(PRUNE_DAYS));
    let interval = SignedDuration::from_hours(24 * days);
    wanted.last_pruned.is_some_and(|last| now.duration_since(last) > interval)
}

/// The snapshot that a destination is to bring back.
fn pinned(destination: &Object) -> Option<String> {
    let id = &destination.data["spec"]["external"]["parameters"]["snapshotID"];
    id.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_core::DynamicObject;
    use serde_json::json;
    use std::sync::Arc;

    fn at(days: i64) -> Timestamp {
        Timestamp::from_second(days * 86_400).expect("a time")
    }

    fn wanted(retain: Option<&Retain>) -> Wanted<'_> {
        Wanted { retain, prune_interval_days: None, last_pruned: Some(at(10)), unlocks: false }
    }

    #[test]
    fn without_a_word_the_last_snapshot_stays() {
        for retain in
            [None, Some(Retain::default()), Some(Retain { daily: Some(0), ..Retain::default() })]
        {
            let keep = keep(&wanted(retain.as_ref()), &[], at(11));
            assert_eq!(keep.last, Some(1), "{retain:?}");
        }
    }

    #[test]
    fn what_is_named_stays_and_nothing_is_added() {
        let retain = Retain {
            hourly: Some(6),
            yearly: Some(1),
            within: Some("3d".to_owned()),
            last: Some("4".to_owned()),
            ..Retain::default()
        };
        let keep = keep(&wanted(Some(&retain)), &[], at(11));
        assert_eq!((keep.hourly, keep.yearly, keep.last), (Some(6), Some(1), Some(4)));
        assert_eq!((keep.daily, keep.within.as_deref()), (None, Some("3d")));
        let within = Retain { within: Some("3d".to_owned()), ..Retain::default() };
        assert_eq!(super::keep(&wanted(Some(&within)), &[], at(11)).last, None);
    }

    #[test]
    fn pruned_is_every_seventh_day_or_as_often_as_is_said() {
        assert!(!keep(&wanted(None), &[], at(17)).prune);
        assert!(keep(&wanted(None), &[], at(18)).prune);
        let often = Wanted { prune_interval_days: Some(1), ..wanted(None) };
        assert!(keep(&often, &[], at(12)).prune);
        let never_seen = Wanted { last_pruned: None, ..wanted(None) };
        assert!(!keep(&never_seen, &[], at(1000)).prune);
        let most = Wanted { prune_interval_days: Some(i32::MAX), ..wanted(None) };
        assert!(!keep(&most, &[], at(12)).prune);
    }

    #[test]
    fn a_snapshot_that_a_destination_names_is_pinned() {
        let destination: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "d"},
            "spec": {"external": {"parameters": {"snapshotID": "4f"}}},
        }))
        .expect("a destination");
        assert_eq!(keep(&wanted(None), &[Arc::new(destination)], at(11)).pinned, ["4f"]);
    }
}
