//! What is measured of sources and destinations, under VolSync's names: all of it is in the
//! objects, so that whoever reads them at any time reads the same.

use crate::kinds::SOURCE;
use crate::objects::{HEALTHY, conditions};
use crate::sync::task::{MISSED, NOT_HERE, SYNC_MILLISECONDS, SYNCS, number};
use crate::sync::trigger::{When, has_missed};
use interlock_api::names::{PROVIDER_COPY, PROVIDER_RESTIC};
use interlock_api::volumes::Trigger;
use interlock_kernel::{Kind, Object};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What is measured of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// `source` or `destination`.
    pub role: &'static str,
    /// `restic`, or one of our providers.
    pub method: String,
    /// How many intervals of its schedule went by without a sync.
    pub missed_intervals: u64,
    /// Whether what was asked for last is not there yet.
    pub is_out_of_sync: bool,
    /// How many syncs were done.
    pub syncs: u64,
    /// How long all of them took.
    pub milliseconds: u64,
}

/// What is measured of a ReplicationSource or ReplicationDestination; None: it is not ours.
pub fn measure(kind: &Kind, object: &Object, now: Timestamp) -> Option<Measured> {
    let spec = &object.data["spec"];
    let provider = spec["external"]["provider"].as_str().unwrap_or_default();
    let method = match provider {
        PROVIDER_COPY | PROVIDER_RESTIC => provider,
        "" if spec["restic"].is_object() => "restic",
        _ => return None,
    };
    let trigger: Option<Trigger> = serde_json::from_value(spec["trigger"].clone()).ok().flatten();
    let when = When::read(trigger.as_ref()).ok()?;
    let status = &object.data["status"];
    let external = serde_json::from_value(status["external"].clone());
    let external: BTreeMap<String, String> = external.unwrap_or_default();
    let synced = status["lastSyncTime"].as_str().and_then(|time| time.parse().ok());
    let is_answered = when.tag().is_none_or(|tag| status["lastManualSync"] == tag);
    let healthy = conditions::find(object, HEALTHY);
    let is_elsewhere = healthy.is_some_and(|healthy| healthy["reason"] == NOT_HERE);
    let is_behind = synced.is_none() || !is_answered || has_missed(&when, synced, now);
    Some(Measured {
        role: if *kind == SOURCE { "source" } else { "destination" },
        method: method.to_owned(),
        missed_intervals: number(&external, MISSED),
        // One whose namespace runs elsewhere has nothing to do here, and nobody is to be woken.
        is_out_of_sync: is_behind && !is_elsewhere,
        syncs: number(&external, SYNCS),
        milliseconds: number(&external, SYNC_MILLISECONDS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::DESTINATION;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn measured(spec: Value, status: Value) -> Option<Measured> {
        let object = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
        let object = serde_json::from_value(object).expect("an object");
        measure(&DESTINATION, &Arc::new(object), "2026-01-02T12:00:00Z".parse().expect("a time"))
    }

    #[test]
    fn a_sync_that_was_asked_for_is_missing_until_it_is_done() {
        let restic = json!({"restic": {}, "trigger": {"manual": "a"}});
        let fresh = measured(restic.clone(), json!({})).expect("ours");
        assert_eq!((fresh.role, fresh.method.as_str(), fresh.syncs), ("destination", "restic", 0));
        assert!(fresh.is_out_of_sync);
        let done = json!({
            "lastSyncTime": "2026-01-01T00:00:00Z", "lastManualSync": "a",
            "external": {"syncs": "2", "syncMilliseconds": "2500", "missedIntervals": "1"},
        });
        let done = measured(restic, done).expect("ours");
        assert!(!done.is_out_of_sync);
        assert_eq!((done.syncs, done.milliseconds, done.missed_intervals), (2, 2500, 1));
    }

    #[test]
    fn a_schedule_is_out_of_sync_when_the_next_but_one_has_begun() {
        let hourly = json!({"restic": {}, "trigger": {"schedule": "@hourly"}});
        for (synced, wanted) in [("2026-01-02T11:30:00Z", false), ("2026-01-02T09:30:00Z", true)] {
            let found = measured(hourly.clone(), json!({"lastSyncTime": synced})).expect("ours");
            assert_eq!(found.is_out_of_sync, wanted, "{synced}");
        }
    }

    #[test]
    fn a_source_of_a_namespace_that_left_wakes_nobody() {
        let hourly = json!({"restic": {}, "trigger": {"schedule": "@hourly"}});
        let left = json!({"type": "interlock.dev/Healthy", "status": "False", "reason": "NotHere"});
        let old = json!({"lastSyncTime": "2026-01-01T00:00:00Z", "conditions": [left]});
        assert!(!measured(hourly, old).expect("ours").is_out_of_sync);
    }

    #[test]
    fn what_is_not_ours_is_not_measured() {
        assert_eq!(measured(json!({"rclone": {}}), json!({})), None);
        assert_eq!(measured(json!({"external": {"provider": "example.com/x"}}), json!({})), None);
        let ours = json!({"external": {"provider": "interlock.dev/copy"}});
        assert_eq!(measured(ours, json!({})).expect("ours").method, "interlock.dev/copy");
    }
}
