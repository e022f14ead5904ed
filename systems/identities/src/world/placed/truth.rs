//! What is true, in the words of the promises.

use super::people::Left;
use super::refine::Inside;
use super::{NAMES, Placed, grant, role};
use crate::kinds::{CLUSTER, GRANT, ROLE};
use crate::outside::{Call, Request};
use crate::world::clients::Machine;
use crate::world::kept::{Rights, admitted, denied_before};
use interlock_api::identities::{RoleStatus, TAG_OWNER_UID};
use interlock_api::placement::WorkloadClusterStatus;
use interlock_api::placement::condition::ISSUER_READY;
use interlock_api::placement::{GrantStatus, Phase, RightsState};
use interlock_kernel::conditions::is_true;
use interlock_kernel::metadata::{finalizers, is_deleting, uid_of};
use interlock_kernel::{Name, Object, read_part};
use interlock_world::Scene;
use std::collections::BTreeMap;

/// What is true.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// The phase of the Grant.
    pub(super) phase: Phase,
    /// Its epoch.
    pub(super) epoch: i64,
    /// The highest epoch that was ended by force.
    pub(super) fenced_epoch: i64,
    /// What the Grant says of roles: epoch and state of each.
    pub(super) rights: Vec<(i64, RightsState)>,
    /// Whether the Role is there, and whether it is being deleted.
    pub(super) role: Option<bool>,
    /// The owner of each role in the cloud, by its tag.
    pub(super) made: Vec<String>,
    /// Whether every role in the cloud is that of the Role.
    pub(super) is_own: bool,
    /// Whether a call that creates a role is on its way.
    pub(super) is_creating: bool,
    /// What the trust of the role in the cloud admits: the epoch that it names, and the issuer.
    pub(super) admits: Vec<(i64, String)>,
    /// Sessions issued before this time are denied.
    pub(super) denied_before: i64,
    /// The first and the last session of each epoch.
    pub(super) sessions: BTreeMap<i64, (i64, i64)>,
    /// The epoch that runs on each cluster.
    pub(super) running: [i64; 2],
    /// The clusters: the uid of each, whether it has a finalizer, and whether its issuer is ready.
    pub(super) clusters: Vec<(String, bool, bool)>,
    /// The issuer that each cluster reports, as the cloud names it.
    pub(super) issuers: Vec<String>,
    /// For which clusters there are OIDC providers, or may be: by uid.
    pub(super) provided: Vec<String>,
    /// Whether any call is on its way, or reads lag.
    pub(super) is_busy: bool,
    /// Whether the late-call window can pass no more, though somebody may wait for it.
    pub(super) is_out_of_time: bool,
    /// What only the protocol speaks of, where every step is compared with it.
    pub(super) inside: Option<Inside>,
}

fn cluster(cluster: &Object) -> (String, bool, bool) {
    let status = read_part::<WorkloadClusterStatus>(cluster, "status").ok().flatten();
    let is_ready = status.is_some_and(|it| is_true(&it.conditions, ISSUER_READY));
    (uid_of(cluster).to_owned(), finalizers(cluster).next().is_some(), is_ready)
}

fn reported(scene: &Scene<'_, Placed>, cluster: &str) -> String {
    let status = scene.hub().part(&CLUSTER, &Name::cluster_wide(cluster), "status");
    status["issuer"].as_str().unwrap_or_default().trim_start_matches("https://").to_owned()
}

/// The owners of the OIDC providers that are there, or may still be created.
fn provided(machine: &Machine) -> Vec<String> {
    let calls = machine.calls.iter().map(|call| &call.request);
    let creating = |it: &&Request| matches!(it.call, Call::CreateOpenIdConnectProvider { .. });
    let creating = calls.filter(creating).map(|it| it.about.clone());
    let there = machine.account.providers.values();
    there.filter_map(|tags| tags.get(TAG_OWNER_UID).cloned()).chain(creating).collect()
}

impl Truth {
    pub(super) fn of(system: &Placed, scene: &Scene<'_, Placed>) -> Truth {
        let machine = &*scene.machines[0];
        let object = scene.hub().get(&GRANT, &grant(scene.servers, scene.contents[0]));
        let status = object.and_then(|it| read_part::<GrantStatus>(&it, "status").ok().flatten());
        let status = status.unwrap_or_default();
        let role = scene.hub().get(&ROLE, &role());
        let known = role.as_ref().and_then(|it| read_part(it, "status").ok().flatten());
        let known: RoleStatus = known.unwrap_or_default();
        let uid = role.as_ref().map(|it| uid_of(it).to_owned()).unwrap_or_default();
        let roles = machine.account.roles.values();
        let made: Vec<String> = roles
            .clone()
            .map(|it| it.tags.get(TAG_OWNER_UID).cloned().unwrap_or_default())
            .collect();
        let creates = machine.calls.iter().map(|call| &call.request);
        let mut creates = creates.filter(|it| matches!(it.call, Call::CreateRole { .. }));
        let fences = roles.clone().flat_map(|it| it.inline.values());
        Truth {
            phase: status.phase,
            epoch: status.epoch,
            fenced_epoch: status.fenced_epoch.unwrap_or(0),
            rights: status.rights.iter().map(|entry| (entry.epoch, entry.state)).collect(),
            is_own: made.iter().all(|owner| *owner == uid),
            role: role.map(|it| is_deleting(&it)),
            made,
            is_creating: creates.next().is_some(),
            admits: roles.flat_map(|it| admitted(&it.trust)).collect(),
            denied_before: denied_before(fences),
            sessions: machine.clusters.sessions.clone(),
            running: machine.clusters.running,
            clusters: scene.hub().list(&CLUSTER).iter().map(cluster).collect(),
            issuers: NAMES.iter().map(|name| reported(scene, name)).collect(),
            provided: provided(machine),
            is_busy: !machine.calls.is_empty() || machine.shown.is_some(),
            is_out_of_time: Left::unpack(scene.chance).elapses == 0,
            inside: system.size.is_refined().then(|| Inside::of(machine, &known)),
        }
    }

    /// What promises about rights look at.
    pub(super) fn of_rights(&self, system: &Placed) -> Rights<'_> {
        Rights {
            phase: self.phase,
            epoch: self.epoch,
            fenced_epoch: self.fenced_epoch,
            said: &self.rights,
            is_running: self.running[system.owner(self.epoch)] == self.epoch,
            is_declared: self.is_declared(),
            admits: &self.admits,
            issuer: host(system, self.epoch),
            denied_before: self.denied_before,
            sessions: &self.sessions,
        }
    }

    /// Whether the Role is there to stay.
    pub(super) fn is_declared(&self) -> bool {
        self.role == Some(false)
    }

    /// Whether a session that was issued then is denied.
    pub(super) fn denies(&self, issued: i64) -> bool {
        issued < self.denied_before
    }

    pub(super) fn is_done(&self) -> bool {
        // The mark of a process that is dead stays until another has something to do.
        !self.is_busy && (self.is_settled() || self.is_out_of_time)
    }

    /// What the Grant asks for is so.
    pub(super) fn is_settled(&self) -> bool {
        let is_fenced = self.rights.contains(&(self.epoch, RightsState::Fenced));
        if !self.clusters.iter().all(|(_, is_held, is_ready)| !is_held || *is_ready) {
            return false;
        }
        match self.phase {
            _ if self.role.is_none() => self.made.is_empty() && self.rights.is_empty(),
            Phase::Granted => self.running.contains(&self.epoch) || self.is_waiting(),
            Phase::Fenced => is_fenced,
            Phase::Revoking | Phase::Released | Phase::Unassigned | Phase::Deleting => true,
        }
    }

    /// The issuer is not ready, and the Grant says so. A role that was opened before two clusters shared their
    /// issuer stays open for the old one.
    fn is_waiting(&self) -> bool {
        let is_shared = self.issuers[0] == self.issuers[1];
        self.rights.contains(&(self.epoch, RightsState::Waiting))
            && (self.admits.is_empty() || is_shared)
    }

    pub(super) fn show(&self) -> Vec<(&'static str, String)> {
        let runs: Vec<String> = NAMES
            .iter()
            .zip(self.running)
            .filter(|(_, epoch)| *epoch != 0)
            .map(|(name, epoch)| format!("{name}: {epoch}"))
            .collect();
        vec![
            ("grant", format!("{:?} {}", self.phase, self.epoch)),
            ("fenced_epoch", self.fenced_epoch.to_string()),
            ("rights", format!("{:?}", self.rights)),
            ("role_is_deleting", format!("{:?}", self.role)),
            ("running", runs.join(", ")),
            ("trust", format!("{:?}", self.admits)),
            ("cloud_roles", format!("{:?}", self.made)),
            ("denied_before", format!("{:?}", self.denied_before)),
            ("sessions", format!("{:?}", self.sessions)),
        ]
    }
}

/// The issuer of the owner of an epoch, as the cloud names it.
pub(super) fn host(system: &Placed, epoch: i64) -> String {
    system.issuer(system.owner(epoch)).trim_start_matches("https://").to_owned()
}
