//! What is true, in the words of the promises.

use super::account::{HeldPolicy, HeldRole, arn};
use super::kept;
use super::people::{AUDIT, Left};
use super::promises::ANOTHER;
use super::refine::Inside;
use super::{BOUNDARY, Identities, OWN, PROVIDER, SHOP, name};
use crate::document;
use crate::kinds::{ACCOUNT, POLICY, ROLE, SERVICE_ACCOUNT};
use crate::outside::Tags;
use interlock_api::identities::{
    ANNOTATION_ROLE_ARN, PolicySpec, PolicyStatus, TAG_OWNER_UID, condition as words,
};
use interlock_kernel::metadata::{annotation, finalizers, is_deleting, uid_of};
use interlock_kernel::{Kind, read_part};
use interlock_world::Scene;
use std::collections::{BTreeMap, BTreeSet};

/// What is true.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Truth {
    /// The IamRoleServiceAccount at the hub.
    pub(super) account: Option<Declared>,
    /// The Policy at the hub.
    pub(super) policy: Option<Declared>,
    /// The Role at the hub.
    pub(super) role: Option<Declared>,
    /// The role that the ServiceAccount names, if there is one.
    pub(super) named: Option<String>,
    /// Whether there is a ServiceAccount.
    pub(super) has_service_account: bool,
    /// The digest of the document that the Policy declares.
    pub(super) digest: String,
    /// The policies of the cloud, by name.
    pub(super) policies: BTreeMap<String, HeldPolicy>,
    /// The roles of the cloud, by name.
    pub(super) roles: BTreeMap<String, HeldRole>,
    /// For which objects calls that create something are on their way.
    pub(super) creating: BTreeSet<String>,
    /// An object that is gone, and left something in the cloud or on its way there.
    pub(super) left_over: Option<String>,
    /// Whether any call is on its way, or reads lag.
    pub(super) is_busy: bool,
    /// Whether the late-call window can pass no more, though somebody may wait for it.
    pub(super) is_out_of_time: bool,
    /// What only the protocol speaks of, where every step is compared with it.
    pub(super) inside: Option<Inside>,
}

/// An object at the hub.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Declared {
    pub(super) uid: String,
    pub(super) is_deleting: bool,
    pub(super) has_finalizer: bool,
    /// The status of the condition `Ready`, with its reason.
    pub(super) ready: String,
}

impl Declared {
    fn of(scene: &Scene<'_, Identities>, kind: &Kind) -> Option<Declared> {
        let object = scene.hub().get(kind, &name())?;
        let conditions = object.data["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|it| it["type"] == words::READY);
        let ready = ready.map(|it| format!("{} {}", it["status"], it["reason"]));
        Some(Declared {
            uid: uid_of(&object).to_owned(),
            is_deleting: is_deleting(&object),
            has_finalizer: finalizers(&object).next().is_some(),
            ready: ready.unwrap_or_default().replace('"', ""),
        })
    }

    fn is_ready(&self) -> bool {
        !self.is_deleting && self.ready == format!("True {}", words::AS_DECLARED)
    }

    fn is_conflict(&self) -> bool {
        !self.is_deleting && self.ready == format!("False {}", words::CONFLICT)
    }
}

impl Truth {
    pub(super) fn of(system: &Identities, scene: &Scene<'_, Identities>) -> Truth {
        let machine = &*scene.machines[0];
        let policy = scene.hub().get(&POLICY, &name());
        let status = policy.as_ref().and_then(|it| read_part(it, "status").ok().flatten());
        let status: PolicyStatus = status.unwrap_or_default();
        let spec = policy.and_then(|it| read_part::<PolicySpec>(&it, "spec").ok().flatten());
        let document = document::of_statements(&spec.unwrap_or_default().statement).to_string();
        let service_account = scene.hub().get(&SERVICE_ACCOUNT, &name());
        let named = service_account.as_ref().and_then(|it| annotation(it, ANNOTATION_ROLE_ARN));
        let (declared_policy, role) = (Declared::of(scene, &POLICY), Declared::of(scene, &ROLE));
        let lives = |uid: &str| {
            let mut owners = declared_policy.iter().chain(&role);
            uid == ANOTHER || owners.any(|owner| owner.uid == uid)
        };
        Truth {
            account: Declared::of(scene, &ACCOUNT),
            left_over: kept::left_over(machine, lives),
            policy: declared_policy,
            role,
            named: named.map(str::to_owned),
            has_service_account: service_account.is_some(),
            digest: document::digest(&document),
            policies: machine.account.policies.clone(),
            roles: machine.account.roles.clone(),
            creating: machine.creating().map(str::to_owned).collect(),
            is_busy: !machine.calls.is_empty() || machine.shown.is_some(),
            is_out_of_time: Left::unpack(scene.chance).elapses == 0,
            inside: system.size.is_refined().then(|| Inside::of(machine, status.mark.as_ref())),
        }
    }

    /// The objects that own something in the cloud.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Declared> {
        self.policy.iter().chain(&self.role)
    }

    /// All tags of all that is in the cloud.
    pub(super) fn tags(&self) -> impl Iterator<Item = &Tags> {
        let roles = self.roles.values().map(|role| &role.tags);
        self.policies.values().map(|policy| &policy.tags).chain(roles)
    }

    /// What the tenant declared.
    pub(super) fn declared(&self, is_whole: bool) -> Option<&Declared> {
        if is_whole { self.account.as_ref() } else { self.policy.as_ref() }
    }

    /// The roles that are ours, with their ARNs.
    pub(super) fn own_roles(&self) -> impl Iterator<Item = (String, &HeldRole)> {
        let is_ours = |role: &&HeldRole| {
            let tag = role.tags.get(TAG_OWNER_UID);
            self.role.as_ref().is_some_and(|own| tag == Some(&own.uid))
        };
        let roles = self.roles.iter().filter(move |(_, role)| is_ours(role));
        roles.map(|(name, role)| (arn("role", &role.path, name), role))
    }

    fn is_policy_held(&self) -> bool {
        let own = self.policy.as_ref().map(|policy| &policy.uid);
        self.policies.values().any(|held| {
            let text = held.versions.get(&held.default).map(String::as_str).unwrap_or_default();
            held.tags.get(TAG_OWNER_UID) == own && document::digest(text) == self.digest
        })
    }

    fn is_role_held(&self) -> bool {
        let policy = |arn_of: &String| {
            self.policies.iter().any(|(name, it)| arn("policy", &it.path, name) == *arn_of)
        };
        self.own_roles().any(|(_, role)| {
            is_trusting(role)
                && role.boundary.as_deref() == Some(BOUNDARY)
                && role.attached.iter().filter(|arn| *arn != AUDIT).count() == 1
                && role.attached.iter().all(|arn| arn == AUDIT || policy(arn))
        })
    }

    /// The cloud is as declared, and the status says so; or it says why not.
    pub(super) fn is_as_declared(&self, is_whole: bool) -> bool {
        let Some(declared) = self.declared(is_whole) else {
            let is_empty = self.policy.is_none() && self.role.is_none();
            return is_empty && !self.has_service_account;
        };
        if !is_whole {
            let is_held = self.is_policy_held();
            return is_held && declared.is_ready() || !is_held && declared.is_conflict();
        }
        let is_named = self.own_roles().any(|(arn, _)| self.named.as_ref() == Some(&arn));
        let is_held = self.is_policy_held() && self.is_role_held() && is_named;
        let are_ready = self.owners().all(Declared::is_ready);
        is_held && are_ready && declared.is_ready() || !is_held && declared.is_conflict()
    }

    /// A policy that is to go is attached to a role of others: nobody but them can end that.
    fn is_in_use(&self) -> bool {
        let is_ours = |role: &HeldRole| role.tags.contains_key(TAG_OWNER_UID);
        let mut others = self.roles.values().filter(|role| !is_ours(role));
        self.policy.as_ref().is_some_and(|it| it.is_deleting)
            && others.any(|role| !role.attached.is_empty())
    }

    pub(super) fn is_done(&self, is_whole: bool) -> bool {
        // The mark of a process that is dead stays until another has something to do.
        let is_settled = self.is_as_declared(is_whole) || self.is_out_of_time;
        !self.is_busy && (is_settled || self.is_in_use())
    }

    pub(super) fn show(&self) -> Vec<(&'static str, String)> {
        vec![
            ("account", format!("{:?}", self.account)),
            ("policy", format!("{:?}", self.policy)),
            ("role", format!("{:?}", self.role)),
            ("named", format!("{:?}", self.named)),
            ("cloud_policies", format!("{:?}", self.policies)),
            ("cloud_roles", format!("{:?}", self.roles)),
            ("creating", format!("{:?}", self.creating)),
        ]
    }
}

/// Whether a role trusts the service account, and nobody else.
pub(super) fn is_trusting(role: &HeldRole) -> bool {
    let subject = format!("system:serviceaccount:{SHOP}:{OWN}");
    document::only_subject(&role.trust, PROVIDER) == Some(subject)
}
