//! What a Deployment asks for.

use crate::owned::{is_selected, labels_of_template, selector_of};
use crate::replicaset::count;
use crate::share::Share;
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What upstream allows if nobody says otherwise.
const DEFAULT_PERCENT: u32 = 25;
/// How many ReplicaSets of the past are kept if nobody says otherwise.
const DEFAULT_HISTORY: u32 = 10;
/// How long a change may take without progress if nobody says otherwise.
const DEFAULT_DEADLINE_SECONDS: i64 = 600;

/// What a Deployment asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Spec {
    /// How many pods.
    pub replicas: u32,
    /// How its pods are changed.
    pub strategy: Strategy,
    /// Whether a change of the template waits.
    pub is_paused: bool,
    /// How many ReplicaSets of the past are kept.
    pub history: u32,
    /// How many seconds a change may take without progress; None: any.
    pub deadline_seconds: Option<i64>,
}

/// How the pods of a Deployment are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Strategy {
    /// All old pods go before the first new one comes.
    Recreate,
    /// One after the other.
    Rolling {
        /// How many pods there may be above those that are asked for.
        surge: u32,
        /// How many of those that are asked for need not be available.
        unavailable: u32,
    },
}

impl Spec {
    /// What a Deployment asks for, or what is wrong with that, in words.
    pub fn of(deployment: &DynamicObject) -> Result<Spec, String> {
        let said = &deployment.data["spec"];
        let replicas = count(&said["replicas"]).map_err(|flaw| format!("spec.replicas: {flaw}"))?;
        let selector = selector_of(deployment)?;
        if !said["template"]["spec"].is_object() {
            return Err("spec.template.spec is missing".to_owned());
        }
        if !is_selected(&selector, Some(&labels_of_template(&said["template"]))) {
            return Err("spec.selector does not select the labels of spec.template".to_owned());
        }
        let history = match &said["revisionHistoryLimit"] {
            Value::Null => DEFAULT_HISTORY,
            limit => count(limit)
                .map_err(|_| format!("spec.revisionHistoryLimit: {limit} is no number"))?,
        };
        let deadline = &said["progressDeadlineSeconds"];
        let seconds = match deadline {
            Value::Null => DEFAULT_DEADLINE_SECONDS,
            number => number
                .as_i64()
                .filter(|number| *number > 0)
                .ok_or_else(|| format!("spec.progressDeadlineSeconds: {number} is no time"))?,
        };
        Ok(Spec {
            replicas,
            strategy: Strategy::of(&said["strategy"], replicas)?,
            is_paused: said["paused"] == true,
            history,
            // Upstream's word for no deadline at all.
            deadline_seconds: (seconds < i64::from(i32::MAX)).then_some(seconds),
        })
    }

    /// How many pods there may be at once.
    pub fn most(&self) -> u32 {
        match self.strategy {
            Strategy::Recreate => self.replicas,
            Strategy::Rolling { surge, .. } => self.replicas.saturating_add(surge),
        }
    }

    /// How many pods stay available.
    pub fn floor(&self) -> u32 {
        match self.strategy {
            Strategy::Recreate => 0,
            Strategy::Rolling { unavailable, .. } => self.replicas.saturating_sub(unavailable),
        }
    }
}

impl Strategy {
    fn of(said: &Value, replicas: u32) -> Result<Strategy, String> {
        match said["type"].as_str() {
            Some("Recreate") => return Ok(Strategy::Recreate),
            Some("RollingUpdate") | None => {}
            Some(other) => {
                let known = "is none of RollingUpdate and Recreate";
                return Err(format!("spec.strategy.type: {other:?} {known}"));
            }
        }
        let read = |key: &str, share: &Value| match share {
            Value::Null => Ok(Share::Percent(DEFAULT_PERCENT)),
            share => Share::of(share).ok_or_else(|| {
                format!("spec.strategy.rollingUpdate.{key}: {share} is {}", Share::FORM)
            }),
        };
        let rolling = &said["rollingUpdate"];
        // Upstream rounds in favour of those who use the pods.
        let surge = read("maxSurge", &rolling["maxSurge"])?.up(replicas);
        let unavailable = read("maxUnavailable", &rolling["maxUnavailable"])?.down(replicas);
        // With both at 0 nothing could ever change.
        let is_stuck = surge == 0 && unavailable == 0;
        Ok(Strategy::Rolling { surge, unavailable: if is_stuck { 1 } else { unavailable } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(patch: Value) -> Result<Spec, String> {
        let mut said = json!({"selector": {"matchLabels": {"app": "shop"}},
            "template": {"metadata": {"labels": {"app": "shop"}}, "spec": {}}});
        interlock_kernel::testing::merge(&mut said, &patch);
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "shop"}, "spec": said});
        Spec::of(&serde_json::from_value(object).expect("an object"))
    }

    fn rolling(replicas: u32, surge: Value, unavailable: Value) -> Result<(u32, u32), String> {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let said = json!({"replicas": replicas, "strategy": {"rollingUpdate": rolling}});
        spec(said).map(|spec| (spec.most(), spec.floor()))
    }

    #[test]
    fn a_surge_is_rounded_up_and_what_is_unavailable_down() {
        assert_eq!(rolling(10, json!(3), json!(2)), Ok((13, 8)));
        assert_eq!(rolling(10, json!("25%"), json!("25%")), Ok((13, 8)));
        assert_eq!(rolling(3, Value::Null, Value::Null), Ok((4, 3)));
        assert_eq!(rolling(1, json!("1%"), json!("99%")), Ok((2, 1)));
        assert_eq!(rolling(4, json!("100%"), json!("100%")), Ok((8, 0)));
        assert_eq!(rolling(2, json!(0), json!(5)), Ok((2, 0)), "never fewer than none");
        assert_eq!(rolling(0, json!("50%"), json!("50%")), Ok((0, 0)));
    }

    #[test]
    fn with_neither_surge_nor_anything_unavailable_one_pod_may_be() {
        assert_eq!(rolling(3, json!(0), json!(0)), Ok((3, 2)));
        assert_eq!(rolling(3, json!(0), json!("10%")), Ok((3, 2)));
    }

    #[test]
    fn a_share_that_makes_no_sense_is_named() {
        for share in [json!("25"), json!("%"), json!("x%"), json!("-5%"), json!("+5%"), json!(-1)] {
            let flaw = rolling(3, share.clone(), json!(1)).expect_err("it is refused");
            assert!(flaw.starts_with("spec.strategy.rollingUpdate.maxSurge: "), "{flaw}");
            assert!(rolling(3, json!(1), share).is_err());
        }
        assert!(rolling(3, json!({}), json!(1)).is_err());
        assert_eq!(rolling(3, json!("4294967295%"), json!(0)).map(|it| it.1), Ok(3));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_field() {
        for (patch, word) in [
            (json!({"replicas": -1}), "spec.replicas: -1"),
            (json!({"replicas": "two"}), "spec.replicas: "),
            (json!({"selector": null}), "spec.selector is missing"),
            (json!({"selector": {"matchLabels": {"app": "cart"}}}), "does not select"),
            (json!({"template": {"spec": null}}), "spec.template.spec is missing"),
            (json!({"strategy": {"type": "Slowly"}}), "spec.strategy.type: \"Slowly\""),
            (json!({"revisionHistoryLimit": -1}), "spec.revisionHistoryLimit: -1"),
            (json!({"progressDeadlineSeconds": 0}), "spec.progressDeadlineSeconds: 0"),
        ] {
            let flaw = spec(patch).expect_err("it is refused");
            assert!(flaw.contains(word), "{flaw}");
        }
    }

    #[test]
    fn what_nobody_says_is_as_upstream_has_it() {
        let said = spec(json!({})).expect("it can be read");
        assert_eq!((said.replicas, said.history, said.deadline_seconds), (1, 10, Some(600)));
        let said =
            spec(json!({"progressDeadlineSeconds": i32::MAX, "strategy": {"type": "Recreate"}}))
                .expect("it can be read");
        assert_eq!((said.deadline_seconds, said.most(), said.floor()), (None, 1, 0));
    }
}
