//! What must hold after every event: the promises of the checker's worlds, for several identities at once.

use super::account::{ANOTHER, Account, BOUNDARY};
use crate::engine::Broken;
use crate::engine::truth::Truth;
use interlock_api::identities::{ANNOTATION_ROLE_ARN, TAG_OWNER_UID};
use interlock_api::placement::{GrantStatus, Ref, RightsState};
use interlock_identities::kinds::{CLUSTER, GRANT, POLICY, ROLE, SERVICE_ACCOUNT};
use interlock_identities::outside::Tags;
use interlock_identities::world::account::{HeldRole, arn};
use interlock_identities::world::kept::{Rights, Sessions, admitted, denied_before, left_over};
use interlock_kernel::metadata::{annotation, is_deleting, uid_of};
use interlock_kernel::{Kind, Object, read_part};
use std::collections::{BTreeMap, BTreeSet};

/// What must be remembered to see that a promise is broken.
#[derive(Default)]
pub(crate) struct Promises {
    /// The cluster that each epoch was granted to, by its place.
    pub(crate) owners: BTreeMap<i64, usize>,
    /// The epoch that runs on each cluster; 0: none.
    pub(crate) running: [i64; 3],
    /// The Roles that the permit of the running epoch waited for, by uid.
    pub(crate) permitted: BTreeSet<String>,
    /// How often the namespace went from one cluster to another.
    pub(crate) moves: u64,
}

impl Promises {
    /// Holds what is true against what must be.
    pub(crate) fn check(
        &self,
        truth: &Truth,
        account: &Account,
        clusters: &[Ref],
    ) -> Result<(), Broken> {
        only_ours(account)?;
        one_owner(truth, account)?;
        let lives = |uid: &str| {
            let is_its = |object: &Object| uid_of(object) == uid;
            let mut kinds = [POLICY, ROLE, CLUSTER].into_iter();
            uid == ANOTHER || kinds.any(|kind| truth.all(crate::HUB, &kind).iter().any(is_its))
        };
        if let Some(uid) = left_over(&account.machine, lives) {
            return Err(format!("GoneIsClean: {uid} is gone, and left something in the cloud"));
        }
        service_accounts_name_roles(truth, account)?;
        let Some(grant) = truth.all(crate::HUB, &GRANT).first() else { return Ok(()) };
        let status = read_part::<GrantStatus>(grant, "status").ok().flatten().unwrap_or_default();
        for role in truth.all(crate::HUB, &ROLE).iter().filter(|it| is_placed(it)) {
            self.rights(role, &status, account, clusters)?;
        }
        Ok(())
    }

    fn rights(
        &self,
        role: &Object,
        status: &GrantStatus,
        account: &Account,
        clusters: &[Ref],
    ) -> Result<(), Broken> {
        let uid = uid_of(role);
        let Some(held) = owned(account, uid) else { return Ok(()) };
        let GrantStatus { phase, epoch, fenced_epoch, rights, .. } = status;
        let entries = rights.iter().filter(|entry| entry.uid == uid);
        let said: Vec<(i64, RightsState)> = entries.map(|it| (it.epoch, it.state)).collect();
        let issuer = |epoch: &i64| {
            let owner = self.owners.get(epoch).and_then(|place| clusters.get(*place));
            owner.map(|owner| format!("{}.example", owner.name)).unwrap_or_default()
        };
        let none = Sessions::new();
        // A role to which nothing is attached gives nothing to anybody: one that is being deleted loses its fences then.
        let sessions = account.sessions.get(&held.id).filter(|_| !held.attached.is_empty());
        let admits = admitted(&held.trust);
        let owner = self.owners.get(epoch).copied().unwrap_or_default();
        let rights = Rights {
            phase: *phase,
            epoch: *epoch,
            fenced_epoch: fenced_epoch.unwrap_or(0),
            said: &said,
            is_running: self.running[owner] == *epoch && self.permitted.contains(uid),
            is_declared: !is_deleting(role),
            issuer: issuer(epoch),
            denied_before: denied_before(held.inline.values()),
            sessions: sessions.unwrap_or(&none),
            admits: &admits,
        };
        let all = [
            ("RightsFollowTheGrant", rights.follow_the_grant()),
            ("ReadyIsTrue", rights.are_ready_if_said()),
            ("FencedHasNoRights", rights.fenced_have_none()),
            ("OwnerNotDenied", rights.owner_is_not_denied()),
            ("OneIssuer", admits.iter().all(|(epoch, admitted)| *admitted == issuer(epoch))),
            ("BoundaryHolds", held.boundary.as_deref() == Some(BOUNDARY)),
        ];
        match all.into_iter().find(|(_, holds)| !holds) {
            Some((promise, _)) => Err(format!("{promise}: {rights:?}")),
            None => Ok(()),
        }
    }
}

fn is_placed(role: &Object) -> bool {
    role.metadata.namespace.as_deref() == Some(super::SHOP)
}

/// The cloud role of a Role.
pub(crate) fn owned<'a>(account: &'a Account, uid: &str) -> Option<&'a HeldRole> {
    let mut roles = account.machine.account.roles.values();
    roles.find(|role| role.tags.get(TAG_OWNER_UID).map(String::as_str) == Some(uid))
}

/// No call changes a foreign object.
fn only_ours(account: &Account) -> Result<(), Broken> {
    let (now, foreign) = (&account.machine.account, &account.foreign);
    let mut policies = foreign.policies.iter();
    let mut roles = foreign.roles.iter();
    let is_same = policies.all(|(name, policy)| now.policies.get(name) == Some(policy))
        && roles.all(|(name, role)| now.roles.get(name) == Some(role));
    if is_same { Ok(()) } else { Err(format!("OnlyOurs: {foreign:?} became {now:?}")) }
}

/// Two objects never own one role or policy, and none owns two.
fn one_owner(truth: &Truth, account: &Account) -> Result<(), Broken> {
    let of_kind = |kind: &Kind| -> Result<(), Broken> {
        let mut seen = BTreeSet::new();
        for object in truth.all(crate::HUB, kind) {
            let arn = object.data["status"]["arn"].as_str().filter(|arn| !arn.is_empty());
            if let Some(arn) = arn.filter(|arn| !seen.insert(*arn)) {
                return Err(format!("OneOwner: two objects own {arn}"));
            }
        }
        Ok(())
    };
    of_kind(&POLICY)?;
    of_kind(&ROLE)?;
    let account = &account.machine.account;
    let policies: Vec<&Tags> = account.policies.values().map(|it| &it.tags).collect();
    let roles: Vec<&Tags> = account.roles.values().map(|it| &it.tags).collect();
    for tags in [policies, roles] {
        let mut seen = BTreeSet::new();
        let mut owners = tags.into_iter().filter_map(|tags| tags.get(TAG_OWNER_UID));
        if let Some(uid) = owners.find(|uid| !seen.insert(*uid)) {
            return Err(format!("OneOwner: {uid} owns two of a kind"));
        }
    }
    Ok(())
}

/// A ServiceAccount names only a role that is in the cloud.
fn service_accounts_name_roles(truth: &Truth, account: &Account) -> Result<(), Broken> {
    let roles = account.machine.account.roles.iter();
    let roles: BTreeSet<String> = roles.map(|(name, role)| arn("role", &role.path, name)).collect();
    for object in truth.all(crate::HUB, &SERVICE_ACCOUNT) {
        if let Some(named) =
            annotation(object, ANNOTATION_ROLE_ARN).filter(|it| !roles.contains(*it))
        {
            return Err(format!("SaOnlyWithRole: a ServiceAccount names {named}"));
        }
    }
    Ok(())
}
