//! A kube-apiserver that learns of the fence late.
//!
//! It judges a write by the token that it has read (`known`), which may be older than that of the fence. A write that it
//! took takes effect some time later, so what takes effect now may have been judged by an older token still (`judged`). The
//! clock goes on by one settle time, and by then the API server has ended whatever it took before: that is what
//! `settleSeconds` says of it. A probe is answered by `known`.

use super::{Beside, CONFIG_MAP, FENCE_NAME, Rollout, SYSTEM_NAMESPACE};
use interlock_kernel::{GroupVersion, Kind, Name};
use interlock_world::{CLUSTERS, Move, Objects, Scene, Servers};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// What an API server has read of the fence. No room can see it.
const SERVER: Kind =
    Kind::cluster_wide(GroupVersion::new("example.com", "v1"), "ApiServer", "apiservers");
/// The settle time of a record that says nothing else.
const SETTLE_SECONDS: i64 = 75;
/// The places of its moves among all.
const LEARN: usize = 5;
const FINISH: usize = 6;

fn name() -> Name {
    Name::cluster_wide("west")
}

/// The cluster with an API server that has read the first token.
pub(super) fn begun(servers: &Servers, cluster: u32) -> u32 {
    servers.put(cluster, &SERVER, &name(), json!({"data": {"known": 1, "judged": 1}}))
}

/// There are two targets after the first one, and each takes its settle time.
pub(super) fn times(lags: bool) -> Vec<Timestamp> {
    let last = if lags { 2 } else { 0 };
    let times = (0..=last).map(|time| Timestamp::from_second(time * SETTLE_SECONDS));
    times.map(Result::unwrap_or_default).collect()
}

/// The fence as it is, and its proof.
struct Fence {
    token: i64,
    proven: i64,
    proven_at: Option<Timestamp>,
}

fn fence(cluster: Objects<'_>) -> Fence {
    let data = cluster.part(&CONFIG_MAP, &Name::within(SYSTEM_NAMESPACE, FENCE_NAME), "data");
    let number = |value: &Value| value.as_str().and_then(|it| it.parse().ok()).unwrap_or(0);
    let proven_at = data["provenAt"].as_str().and_then(|at| at.parse().ok());
    Fence { token: number(&data["token"]), proven: number(&data["provenToken"]), proven_at }
}

/// The tokens by which the writes were judged that may take effect now: what was taken first to what was taken last;
/// None: the fence is exact.
pub(super) fn judged_by(cluster: Objects<'_>) -> Option<RangeInclusive<i64>> {
    let data = cluster.part(&SERVER, &name(), "data");
    Some(data["judged"].as_i64()?..=data["known"].as_i64()?)
}

/// Whether whoever goes by the proof and the settle time may rely on the fence; one that is exact is relied on at once.
pub(super) fn is_settled(scene: &Scene<'_, Rollout>) -> bool {
    if judged_by(scene.cluster(0)).is_none() {
        return true;
    }
    let fence = fence(scene.cluster(0));
    let settled = fence.proven_at.map(|at| at.as_second() + SETTLE_SECONDS);
    let is_over = settled.is_some_and(|settled| scene.now.as_second() >= settled);
    // The first target was verified long before.
    fence.token == 1 || (fence.proven == fence.token && is_over)
}

/// The clock goes on while somebody waits for the settle time of a proof, and once all has ended that was taken before.
pub(super) fn may_pass(scene: &Scene<'_, Rollout>) -> bool {
    let Some(judged_by) = judged_by(scene.cluster(0)) else { return false };
    let fence = fence(scene.cluster(0));
    let is_waited_for = fence.proven > 1 && fence.proven_at == Some(scene.now);
    is_waited_for && judged_by.start() == judged_by.end()
}

/// It reads the fence, and it ends what it took before.
pub(super) fn moves(scene: &Scene<'_, Rollout>) -> Vec<Move<Beside>> {
    let Some(judged_by) = judged_by(scene.cluster(0)) else { return Vec::new() };
    let (judged, known) = judged_by.into_inner();
    let becomes = |place: usize, judged: i64, known: i64| {
        let change = json!({"data": {"known": known, "judged": judged}});
        let mut contents = scene.contents;
        contents[1] = scene.servers.change(scene.contents[1], &SERVER, &name(), &change);
        let mut machines = [const { None }; CLUSTERS];
        machines[0] = Some(Beside { known, ..(*scene.machines[0]).clone() });
        let (servers, chance) = (contents, scene.chance);
        Move { name: place, servers, machines, chance, restarts: None }
    };
    let token = fence(scene.cluster(0)).token;
    let learns = (known < token).then(|| becomes(LEARN, judged, token));
    let finishes = (judged < known).then(|| becomes(FINISH, known, known));
    learns.into_iter().chain(finishes).collect()
}
