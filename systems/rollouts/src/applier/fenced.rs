//! What the fence of a cluster says, and whether it is in force for a token.

use super::CONFIG_MAP;
use super::compare::{contains, json};
use super::outside::Reach;
use crate::fence::{BINDING, EXACT, POLICY, binding, policy};
use interlock_api::rollouts::{
    FENCE_NAME, FENCE_POLICY, FenceMode, FencePolicy, FenceReport, SYSTEM_NAMESPACE,
};
use interlock_kernel::{Address, LiveReads, Name, Object, Place, Read};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fence of a cluster, by live reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fence {
    /// Its token, 0 if it was never raised; None: there is no ConfigMap of it, or its token is no number.
    pub token: Option<i64>,
    /// The last token that was proven; 0: none.
    pub proven: i64,
    /// When that was, in seconds since 1970.
    pub proven_at: Option<i64>,
    /// How the cluster refuses writes under older tokens, if the fence is raised.
    pub mode: FenceMode,
}

fn addresses() -> [Address; 3] {
    let fence = Name::within(SYSTEM_NAMESPACE, FENCE_NAME);
    let named = || Name::cluster_wide(FENCE_POLICY);
    [
        Address::new(Place::CLUSTER, &CONFIG_MAP, fence),
        Address::new(Place::CLUSTER, &POLICY, named()),
        Address::new(Place::CLUSTER, &BINDING, named()),
    ]
}

/// What must be read to know the fence: the policy first, so that what it protects is not older than it.
pub(super) fn reads() -> Vec<Read<Reach>> {
    let [fence, policy, binding] = addresses();
    [policy, binding, fence].map(Read::Object).into()
}

/// The ConfigMap of the fence, if it was read and is there.
pub(super) fn map(live_reads: &LiveReads<Reach>) -> Option<Object> {
    let [fence, ..] = addresses();
    live_reads.objects.get(&fence).cloned().flatten()
}

/// The fence; None: it was not read yet.
pub(super) fn seen(live_reads: &LiveReads<Reach>, user: &str) -> Option<Fence> {
    let [fence, of_policy, of_binding] = addresses();
    let map = live_reads.objects.get(&fence)?;
    let found = |address: &Address| live_reads.objects.get(address).cloned().flatten();
    let (of_policy, of_binding) = (found(&of_policy), found(&of_binding));
    let number = |key: &str| match &map.as_ref()?.data["data"][key] {
        Value::Null => Some(0),
        text => text.as_str()?.parse::<i64>().ok().filter(|token| *token >= 0),
    };
    let at = map.as_ref().and_then(|map| map.data["data"]["provenAt"].as_str()?.parse().ok());
    let at = at.map(|at: Timestamp| at.as_second());
    let is_there = |object: &Option<Object>, wanted: &Value| {
        object.as_ref().is_some_and(|object| contains(&object.data["spec"], &wanted["spec"]))
    };
    let is_whole = is_there(&of_policy, &policy(user)) && is_there(&of_binding, &binding());
    let mode = match (is_whole, of_policy.as_ref().is_some_and(|it| is_exact(it))) {
        (false, _) => FenceMode::None,
        (true, false) => FenceMode::Probed,
        (true, true) => FenceMode::Exact,
    };
    let proven = number("provenToken").unwrap_or(0);
    Some(Fence { token: number("token"), proven, proven_at: at, mode })
}

/// Whether the server says of this very policy that check and commit are one.
fn is_exact(policy: &DynamicObject) -> bool {
    let policy = json(policy);
    let conditions = policy["status"]["conditions"].as_array().into_iter().flatten();
    let mut exact = conditions.filter(|condition| condition["type"] == EXACT);
    exact.any(|condition| {
        condition["status"] == "True"
            && condition["observedGeneration"] == policy["metadata"]["generation"]
    })
}

impl Fence {
    /// Whether writes under this token, and under no older one, are taken: nothing is written before. A cluster that can
    /// refuse nothing is written to if its record says that best effort is enough.
    pub(super) fn is_in_force(&self, token: i64, needed: FencePolicy) -> bool {
        let is_raised = self.token == Some(token);
        match self.mode {
            FenceMode::Exact => is_raised,
            FenceMode::Probed => is_raised && self.proven == token,
            FenceMode::None => {
                needed == FencePolicy::BestEffort && self.token.is_none_or(|it| it <= token)
            }
        }
    }

    /// As the report has it.
    pub(super) fn reported(&self) -> FenceReport {
        let is_proven = self.mode == FenceMode::Probed && self.token == Some(self.proven);
        let proven_at = self.proven_at.filter(|_| is_proven);
        let proven_at = proven_at.and_then(|at| Timestamp::from_second(at).ok()).map(Time);
        FenceReport { token: self.token.unwrap_or(0), mode: self.mode, proven_at }
    }
}

/// Whether the report says that the fence is in force for a token. It stays so: the fence only grows, and what is written
/// under a token that it has passed is refused.
pub(super) fn is_reported(fence: Option<&FenceReport>, token: i64, needed: FencePolicy) -> bool {
    let Some(fence) = fence else { return false };
    match fence.mode {
        FenceMode::Exact => fence.token == token,
        FenceMode::Probed => fence.token == token && fence.proven_at.is_some(),
        FenceMode::None => needed == FencePolicy::BestEffort && fence.token <= token,
    }
}
