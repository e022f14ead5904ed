//! What the Grant of a placed namespace says: which cluster runs the namespace, and what the Grant knows of
//! the role.

use crate::providers::decide::is_known;
use interlock_api::placement::condition::ISSUER_READY;
use interlock_api::placement::{
    GrantSpec, GrantStatus, Phase, Ref, RightsState, RoleRights, WorkloadClusterStatus,
};
use interlock_kernel::conditions::find;
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{Object, read_part};
use serde::{Deserialize, Serialize};

/// Where a namespace runs, by its Grant.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Placement {
    /// The phase of the Grant.
    pub phase: Phase,
    /// Its epoch.
    pub epoch: i64,
    /// The highest epoch that was ended by force; 0: none was.
    pub fenced_epoch: i64,
    /// What the Grant says of the roles of the namespace.
    pub rights: Vec<RoleRights>,
    /// The issuer of the owner's tokens.
    pub issuer: Issuer,
    /// The subject of the tokens of the service account on the cluster that runs the namespace.
    pub subject: String,
    /// The audience of those tokens.
    pub audience: String,
}

/// The issuer of the tokens of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Issuer {
    /// The WorkloadCluster was not read yet.
    Unread,
    /// No role may trust it, and why.
    NotReady(String),
    /// Its URL.
    Usable(String),
}

impl Placement {
    /// Reads a Grant; None: it cannot be read, or is that of another namespace.
    pub(super) fn read(grant: &Object, namespace_uid: &str) -> Option<Placement> {
        let spec = read_part::<GrantSpec>(grant, "spec").ok().flatten()?;
        let status = read_part::<GrantStatus>(grant, "status").ok()?.unwrap_or_default();
        // A Grant that says that it is fenced says of which epoch.
        let fenced = if status.phase == Phase::Fenced { status.epoch } else { 0 };
        (spec.namespace.uid == namespace_uid).then(|| Placement {
            phase: status.phase,
            epoch: status.epoch,
            fenced_epoch: status.fenced_epoch.unwrap_or(0).max(fenced),
            rights: status.rights,
            issuer: Issuer::Unread,
            subject: String::new(),
            audience: String::new(),
        })
    }

    /// What the Grant says of a Role.
    pub(super) fn entry(&self, uid: &str) -> Option<&RoleRights> {
        self.rights.iter().find(|entry| entry.uid == uid)
    }

    /// All that the Grant says, with this about a Role. Another entry of the same name is that of a Role that is
    /// gone.
    pub(super) fn with(&self, entry: RoleRights) -> Vec<RoleRights> {
        let others = self.rights.iter();
        let others = others.filter(|it| it.uid != entry.uid && it.name != entry.name);
        others.cloned().chain([entry.clone()]).collect()
    }

    /// All that the Grant says of other Roles.
    pub(super) fn without(&self, uid: &str) -> Vec<RoleRights> {
        self.rights.iter().filter(|entry| entry.uid != uid).cloned().collect()
    }

    /// Whether the Grant says that the owner of its epoch has its rights.
    pub(super) fn is_ready(&self, uid: &str) -> bool {
        let is_its =
            |entry: &RoleRights| (entry.epoch, entry.state) == (self.epoch, RightsState::Ready);
        self.entry(uid).is_some_and(is_its)
    }
}

impl Issuer {
    /// The issuer of the owner of a Grant; `cluster` is the WorkloadCluster of that name as it was read, if it was.
    pub(super) fn of(owner: Option<&Ref>, cluster: Option<&Option<Object>>) -> Issuer {
        let Some(owner) = owner else {
            return Issuer::NotReady("the Grant has no owner".to_owned());
        };
        let name = &owner.name;
        let cluster = match cluster {
            None => return Issuer::Unread,
            Some(cluster) => cluster.as_ref().filter(|it| uid_of(it) == owner.uid),
        };
        let Some(cluster) = cluster else {
            return Issuer::NotReady(format!("the WorkloadCluster {name} does not exist"));
        };
        let status = read_part::<WorkloadClusterStatus>(cluster, "status").ok().flatten();
        let status = status.unwrap_or_default();
        let condition = find(&status.conditions, ISSUER_READY);
        match (status.issuer.filter(|url| !url.is_empty()), condition) {
            (None, _) => Issuer::NotReady(format!("the cluster {name} has not reported an issuer")),
            (Some(url), Some(_)) if is_known(&url, &status.conditions) => Issuer::Usable(url),
            // It is about an issuer that the cluster had before: another cluster may have the new one, too.
            (Some(_), Some(condition)) if condition.status == "True" => {
                Issuer::NotReady(format!("the new issuer of {name} has not been checked yet"))
            }
            (Some(_), Some(condition)) => {
                Issuer::NotReady(format!("the issuer of {name}: {}", condition.message))
            }
            (Some(_), None) => {
                Issuer::NotReady(format!("the issuer of {name} has not been checked yet"))
            }
        }
    }
}
