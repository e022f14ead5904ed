use super::{Decision, Facts, Fence, Probed, Seen};
use crate::applier::outside::Probe;
use crate::applier::testing::{Pair, bundle, config};
use interlock_api::rollouts::{FenceMode, FencePolicy};
use interlock_kernel::Room;
use serde_json::json;

fn seen(token: i64, mode: FenceMode) -> Seen {
    Seen { token: Some(token), proven: 0, proven_at: None, mode }
}

fn decided(token: i64, fence: Option<Seen>, probe: Option<Probed>) -> Decision {
    Fence::decide(&Facts { token, fence, probe })
}

#[test]
fn the_fence_only_grows_and_is_proven_where_the_server_is_not_exact() {
    let probed = |probe| decided(7, Some(seen(7, FenceMode::Probed)), probe);
    assert!(matches!(decided(0, None, None), Decision::Rest(_)));
    assert_eq!(decided(7, None, None), Decision::Read);
    for mode in [FenceMode::None, FenceMode::Probed, FenceMode::Exact] {
        assert_eq!(decided(7, Some(seen(6, mode)), None), Decision::Raise(7));
        assert!(matches!(decided(7, Some(seen(8, mode)), None), Decision::Rest(_)));
        let missing = Seen { token: None, ..seen(0, mode) };
        assert!(matches!(decided(7, Some(missing), None), Decision::Wait(..)));
    }
    assert!(matches!(decided(7, Some(seen(7, FenceMode::Exact)), None), Decision::Wait(_, 60)));
    assert!(matches!(decided(7, Some(seen(7, FenceMode::None)), None), Decision::Wait(..)));
    assert_eq!(probed(None), Decision::Probe);
    assert_eq!(probed(Some(Probed::Refused)), Decision::Prove(7));
    assert!(matches!(probed(Some(Probed::Taken)), Decision::Wait(_, 1)));
    assert!(matches!(probed(Some(Probed::Unreachable)), Decision::Wait(_, 10)));
    let proven = Seen { proven: 7, ..seen(7, FenceMode::Probed) };
    assert!(matches!(decided(7, Some(proven), None), Decision::Wait(_, 60)));
}

#[test]
fn a_fence_is_in_force_for_its_own_token_once_it_is_raised_and_proven() {
    let required = |fence: &Seen, token| fence.is_in_force(token, FencePolicy::Required);
    let exact = seen(7, FenceMode::Exact);
    assert!(required(&exact, 7) && !required(&exact, 8) && !required(&exact, 6));
    let probed = seen(7, FenceMode::Probed);
    assert!(!required(&probed, 7) && required(&Seen { proven: 7, ..probed }, 7));
    let none = seen(6, FenceMode::None);
    assert!(!required(&none, 7) && none.is_in_force(7, FencePolicy::BestEffort));
    assert!(!seen(8, FenceMode::None).is_in_force(7, FencePolicy::BestEffort));
}

fn pair() -> Pair {
    let bundle = bundle(&[config("a", "1")]);
    let target = json!({"token": 3, "digest": bundle.digest()});
    Pair::new(&[&bundle], json!({}), json!({"target": target}))
}

#[test]
fn it_is_raised_to_the_token_of_the_target() {
    let mut pair = pair();
    assert_eq!(pair.raise().writes.len(), 1);
    assert_eq!(pair.fence()["token"], "3");
    assert!(pair.raise().writes.is_empty());
    pair.aim(&json!({"target": {"token": 2}}));
    assert!(pair.raise().writes.is_empty());
    assert_eq!(pair.fence()["token"], "3");
}

#[test]
fn it_is_proven_once_every_server_refuses() {
    let mut pair = pair();
    pair.policy(false);
    pair.around.probe = Some(Probe::Taken("10.0.0.1".to_owned()));
    assert_eq!(pair.raise().waits_seconds, Some(1));
    assert!(pair.fence()["provenToken"].is_null());
    pair.around.probe = Some(Probe::Refused);
    assert_eq!(pair.raise().writes.len(), 1);
    assert_eq!(pair.fence()["provenToken"], "3");
    assert_eq!(pair.fence()["provenAt"], "1970-01-12T13:46:40Z");
}

#[test]
fn a_policy_that_somebody_weakened_is_no_fence() {
    let mut pair = pair();
    let name = interlock_kernel::Name::cluster_wide(interlock_api::rollouts::FENCE_POLICY);
    let weak = json!({"spec": {"failurePolicy": "Ignore"}});
    let place = interlock_kernel::Place::CLUSTER;
    pair.servers.change(place, &crate::fence::POLICY, &name, &weak);
    assert_eq!(pair.raise().waits_seconds, Some(10));
    pair.report();
    assert_eq!(pair.said()["fence"]["mode"], "None");
    assert!(pair.said()["pending"].is_null());
}
