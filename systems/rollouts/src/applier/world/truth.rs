//! What is true, read off the objects.

use super::{
    CONFIG_MAP, FENCE_NAME, IDS, RECORD, ROLLOUT_REPORT, Rollout, SYSTEM_NAMESPACE, UID, WIDGET,
    is_seen, lag, widget,
};
use crate::applier::wanted::mark_of;
use crate::kinds::CLUSTER_ROLLOUT;
use interlock_api::rollouts::{ANNOTATION_TOKEN, LABEL_ROLLOUT, RolloutReportStatus, Verdict};
use interlock_kernel::metadata::{annotation, label};
use interlock_kernel::{Name, read_part};
use interlock_world::Scene;

/// What is true.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// The token of the target.
    pub(super) token: i64,
    /// The fence of the cluster.
    pub(super) fence: i64,
    /// The token that the report is about.
    pub(super) said: i64,
    /// What the report says of it.
    pub(super) verdict: Verdict,
    /// The objects, in the order of their ids; None: there is none.
    pub(super) objects: [Option<Object>; 3],
    /// What each of them is to be under the target; None: it is to be absent.
    pub(super) wanted: [Option<i64>; 3],
    /// Whether somebody made an object of a name that the bundle has.
    pub(super) has_theirs: bool,
    /// The highest token that anything was written under before.
    pub(super) top: i64,
    /// Whether writes that are older than the fence must not take effect any more.
    pub(super) is_settled: bool,
}

/// An object on the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Object {
    pub(super) value: i64,
    pub(super) is_ours: bool,
    /// The token that it was applied under last.
    pub(super) token: i64,
    /// The token that it was marked under; 0: it was not.
    pub(super) mark: i64,
    /// Whether its controller has seen it as it is, or does not look at it.
    pub(super) is_seen: bool,
}

impl Object {
    /// The token of the last write.
    pub(super) fn stamp(&self) -> i64 {
        self.token.max(self.mark)
    }
}

impl Truth {
    /// Whether the report says that the present target is verified.
    pub(super) fn is_verified(&self) -> bool {
        self.said == self.token && self.verdict == Verdict::Soaked
    }

    /// Whether exactly the target is there, but for what somebody else made.
    pub(super) fn is_target(&self) -> bool {
        self.objects.iter().zip(self.wanted).all(|(there, wanted)| match (there, wanted) {
            (Some(there), None) => !there.is_ours,
            (there, wanted) => there.as_ref().map(|it| it.value) == wanted,
        })
    }
}

pub(super) fn truth(rollout: &Rollout, scene: &Scene<'_, Rollout>) -> Truth {
    let (hub, cluster) = (scene.hub(), scene.cluster(0));
    let name = Name::cluster_wide(RECORD);
    let record = hub.part(&CLUSTER_ROLLOUT, &name, "status");
    let token = record["target"]["token"].as_i64().unwrap_or(0);
    let report = hub.get(&ROLLOUT_REPORT, &name);
    let said = report.and_then(|it| read_part::<RolloutReportStatus>(&it, "status").ok().flatten());
    let said = said.unwrap_or_default();
    let fence = cluster.part(&CONFIG_MAP, &Name::within(SYSTEM_NAMESPACE, FENCE_NAME), "data");
    let fence = fence["token"].as_str().and_then(|it| it.parse().ok()).unwrap_or(0);
    let object = |id: &str| {
        let there = cluster.get(&WIDGET, &widget(id))?;
        let token = annotation(&there, ANNOTATION_TOKEN).and_then(|it| it.parse().ok());
        Some(Object {
            value: there.data["spec"]["value"].as_i64().unwrap_or(0),
            is_ours: label(&there, LABEL_ROLLOUT) == Some(UID),
            token: token.unwrap_or(0),
            mark: mark_of(&there).unwrap_or(0),
            is_seen: is_seen(&there),
        })
    };
    let version = rollout.version(token);
    let wanted = |id: &str| {
        let found = version.iter().find(|it| it["metadata"]["name"] == *widget(id).name);
        found.and_then(|it| it["spec"]["value"].as_i64())
    };
    Truth {
        token,
        fence,
        said: said.token,
        verdict: said.verdict,
        objects: IDS.map(object),
        wanted: IDS.map(wanted),
        has_theirs: scene.chance & 1 == 1,
        top: *scene.past,
        is_settled: lag::is_settled(scene),
    }
}
