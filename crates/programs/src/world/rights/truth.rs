//! What is true of the Grant, of the clusters and of the cloud, in the words of the promises.

use super::{CLOUD, CLUSTER_NAMES, CLUSTER_UIDS, Placed, elapses_left, grant, issuer, namespace};
use interlock_api::names::{ANNOTATION_CLUSTER, ANNOTATION_RELEASED, ANNOTATION_RUNNING, Permit};
use interlock_api::placement::{GrantStatus, Phase, RightsState};
use interlock_identities::world::kept::{Rights, Sessions, admitted, denied_before};
use interlock_kernel::metadata::annotation;
use interlock_kernel::{Name, read_part};
use interlock_placement::kinds::{GRANT, NAMESPACE};
use interlock_world::{CLUSTERS, Scene};

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    phase: Phase,
    owner: Option<usize>,
    pub(super) epoch: i64,
    /// The highest epoch that was ended by force.
    fenced_epoch: i64,
    /// What the Grant says of the role: epoch and state.
    said: Vec<(i64, RightsState)>,
    /// The cluster that people want the namespace on.
    desired: Option<usize>,
    /// The epoch that may run on each cluster; 0: none.
    permitted: [i64; CLUSTERS],
    /// What the trust of the role admits: the epoch that it names, and the issuer.
    admits: Vec<(i64, String)>,
    /// Sessions issued before this time are denied.
    denied_before: i64,
    sessions: Sessions,
    /// Whether the late-call window passes no more, though somebody may wait for it.
    pub(super) is_out_of_time: bool,
}

impl Truth {
    pub(super) fn is_held_by(&self, c: usize) -> bool {
        self.phase.is_held() && self.owner == Some(c)
    }

    /// Whether a namespace may run where people want it, with its rights.
    pub(super) fn is_settled(&self) -> bool {
        let is_ready = self.said == [(self.epoch, RightsState::Ready)];
        let owner = self.owner.filter(|_| self.phase == Phase::Granted);
        is_ready
            && owner == self.desired
            && owner.is_some_and(|owner| self.permitted[owner] == self.epoch)
    }

    /// Whether the namespace has moved to cluster b, and whether that was by force.
    pub(super) fn is_moved(&self, is_forced: bool) -> bool {
        self.is_settled() && self.owner == Some(1) && (self.fenced_epoch > 0) == is_forced
    }

    /// At most one cluster may run the namespace, and only its owner in the present epoch.
    pub(super) fn is_permitted_to_the_owner(&self) -> bool {
        (0..CLUSTERS).all(|c| {
            let epoch = self.permitted[c];
            epoch == 0 || self.is_held_by(c) && epoch == self.epoch
        })
    }

    /// What promises about rights look at.
    pub(super) fn of_rights(&self) -> Rights<'_> {
        Rights {
            phase: self.phase,
            epoch: self.epoch,
            fenced_epoch: self.fenced_epoch,
            said: &self.said,
            is_running: self.owner.is_some_and(|owner| self.permitted[owner] == self.epoch),
            is_declared: true,
            admits: &self.admits,
            issuer: self.owner.map(host).unwrap_or_default(),
            denied_before: self.denied_before,
            sessions: &self.sessions,
        }
    }

    pub(super) fn show(&self) -> Vec<(&'static str, String)> {
        let named = |place: Option<usize>| place.map_or("none", |place| CLUSTER_NAMES[place]);
        let owner = named(self.owner);
        vec![
            ("desired", named(self.desired).to_owned()),
            ("grant", format!("{}, owner {owner}, epoch {}", self.phase, self.epoch)),
            ("fenced_epoch", self.fenced_epoch.to_string()),
            ("rights", format!("{:?}", self.said)),
            ("permitted", format!("{:?}", self.permitted)),
            ("trust", format!("{:?}", self.admits)),
            ("denied_before", self.denied_before.to_string()),
            ("sessions", format!("{:?}", self.sessions)),
        ]
    }
}

/// The issuer of a cluster, as the cloud names it.
fn host(c: usize) -> String {
    issuer(c).trim_start_matches("https://").to_owned()
}

pub(super) fn read(scene: &Scene<'_, Placed>) -> Truth {
    let found = scene.hub().get(&GRANT, &Name::cluster_wide(&grant()));
    let status = found.and_then(|it| read_part::<GrantStatus>(&it, "status").ok().flatten());
    let status = status.unwrap_or_default();
    let place = |uid: &str| CLUSTER_UIDS.iter().position(|known| *known == uid);
    let home = scene.hub().get(&NAMESPACE, &namespace());
    let desired = home.as_ref().and_then(|home| annotation(home, ANNOTATION_CLUSTER));
    let cloud = &scene.machines[CLOUD].cloud;
    let roles = cloud.account.roles.values();
    Truth {
        phase: status.phase,
        owner: status.owner.as_ref().and_then(|owner| place(&owner.uid)),
        epoch: status.epoch,
        fenced_epoch: status.fenced_epoch.unwrap_or(0),
        said: status.rights.iter().map(|entry| (entry.epoch, entry.state)).collect(),
        desired: CLUSTER_NAMES.iter().position(|name| Some(*name) == desired),
        permitted: std::array::from_fn(|c| permitted(scene, c)),
        admits: roles.clone().flat_map(|role| admitted(&role.trust)).collect(),
        denied_before: denied_before(roles.flat_map(|role| role.inline.values())),
        sessions: cloud.clusters.sessions.clone(),
        is_out_of_time: elapses_left(scene.chance) == 0,
    }
}

/// The epoch that may run on a cluster with power, and was not closed there.
fn permitted(scene: &Scene<'_, Placed>, c: usize) -> i64 {
    let here = scene.cluster(c).get(&NAMESPACE, &Name::cluster_wide(&grant()));
    let Some(here) = here.filter(|_| !scene.machines[c].is_off) else { return 0 };
    let epoch =
        annotation(&here, ANNOTATION_RUNNING).and_then(Permit::read).map_or(0, |it| it.epoch);
    let released: Option<i64> =
        annotation(&here, ANNOTATION_RELEASED).and_then(|it| it.parse().ok());
    if epoch > released.unwrap_or(0) { epoch } else { 0 }
}
