//! A cloud account that is read and never written: calls change a copy of what was read.

use interlock_identities::outside::{
    Answer, Asked, At, Call, Cloud, Found, PolicyFound, PolicyReading, Question, Request,
    RoleFound, RoleReading, Version,
};
use interlock_kernel::Nothing;
use interlock_shell::Driver;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The account, with what calls would have made of it.
#[derive(Clone)]
pub(super) struct Played {
    real: interlock_cloud::Driver,
    /// `arn:aws:iam::123456789012:`
    home: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What is there, by kind and place.
    found: HashMap<(&'static str, At), Answer>,
    /// Policies that calls took off roles: the ARN of the policy, and the name of the role.
    detached: HashSet<(String, String)>,
    calls: Vec<Call>,
}

impl Played {
    pub(super) fn new(real: interlock_cloud::Driver, home: String) -> Played {
        Played { real, home, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls since the last time.
    pub(super) fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.state().calls)
    }

    /// Forgets what was read and made: the next identity has other cloud objects.
    pub(super) fn forget(&self) {
        *self.state() = State::default();
    }

    async fn answer(&self, question: Question) -> Answer {
        let Some(about) = about(&question.object) else {
            return self.real.answer_in_turn(question).await;
        };
        let known = self.state().found.get(&about).cloned();
        if let Some(known) = known.filter(|known| is_enough(&known.found, &question.object)) {
            return known;
        }
        let mut answer = self.read(question).await;
        if matches!(answer.found, Found::Failed(_)) {
            return answer;
        }
        let mut state = self.state();
        if let Found::Policy(PolicyFound { arn, attached_to: Some(roles), .. }) = &mut answer.found
        {
            roles.retain(|role| !state.detached.contains(&(arn.clone(), role.clone())));
        }
        state.found.insert(about, answer.clone());
        answer
    }

    /// Reads the account. Its inline policies are read of a role that is to be deleted, whatever is attached:
    /// what is attached is taken off in the copy only.
    async fn read(&self, question: Question) -> Answer {
        let inline = match &question.object {
            Asked::Role { at, reading: RoleReading::Deletion } => {
                let object = Asked::Role { at: at.clone(), reading: RoleReading::Inline };
                let about = question.about.clone();
                match self.real.answer_in_turn(Question { object, about }).await.found {
                    Found::Role(role) => role.inline,
                    _ => None,
                }
            }
            _ => None,
        };
        let mut answer = self.real.answer_in_turn(question).await;
        if let (Found::Role(role), Some(inline)) = (&mut answer.found, inline) {
            role.inline = Some(inline);
        }
        answer
    }

    fn play(&self, request: &Request) -> Result<(), String> {
        let Request { at, call, .. } = request;
        let (kind, mut state) = (interlock_cloud::kind_of(call), self.state());
        let (path, name) = match at {
            At::Name { path, name } => (path.clone(), name.clone()),
            At::Arn(arn) => (String::new(), arn.rsplit('/').next().unwrap_or_default().to_owned()),
        };
        let made_arn = format!("{}{kind}{path}{name}", self.home);
        let place = match call {
            Call::CreateOpenIdConnectProvider { issuer, .. } => of_provider(issuer),
            Call::DeleteOpenIdConnectProvider => of_provider(host_in(at)),
            _ => (kind, at.clone()),
        };
        match call {
            Call::AttachRolePolicy { arn } => state.is_attached(arn, &name, true),
            Call::DetachRolePolicy { arn } => state.is_attached(arn, &name, false),
            _ => {}
        }
        let known = state.found.get_mut(&place);
        let known = known.ok_or("a call rests on no live read")?;
        known.found = after(&known.found, call, &made_arn);
        state.calls.push(call.clone());
        Ok(())
    }
}

impl State {
    /// A policy has on record which roles it is attached to.
    fn is_attached(&mut self, policy: &str, role: &str, is_attached: bool) {
        let pair = (policy.to_owned(), role.to_owned());
        if is_attached {
            self.detached.remove(&pair)
        } else {
            self.detached.insert(pair)
        };
        for answer in self.found.values_mut() {
            if let Found::Policy(PolicyFound { arn, attached_to: Some(roles), .. }) =
                &mut answer.found
                && arn == policy
            {
                roles.retain(|known| known != role);
                roles.extend(is_attached.then(|| role.to_owned()));
            }
        }
    }
}

/// The cloud object that is asked about, by kind and place.
fn about(asked: &Asked) -> Option<(&'static str, At)> {
    match asked {
        Asked::Calls => None,
        Asked::Policy { at, .. } => Some(("policy", at.clone())),
        Asked::Role { at, .. } => Some(("role", at.clone())),
        Asked::Provider { issuer } => Some(of_provider(issuer)),
    }
}

/// What the ARN of an OIDC provider has of its issuer.
fn host_in(at: &At) -> &str {
    match at {
        At::Arn(arn) => arn.split_once("oidc-provider/").map_or(arn.as_str(), |(_, host)| host),
        At::Name { name, .. } => name,
    }
}

/// The OIDC provider of an issuer, by what follows its scheme: that is all that the cloud has of it.
fn of_provider(issuer: &str) -> (&'static str, At) {
    let host = issuer.split_once("://").map_or(issuer, |(_, host)| host);
    ("oidc-provider", At::Arn(host.to_owned()))
}

/// Whether what was found is all that is asked for.
fn is_enough(found: &Found, asked: &Asked) -> bool {
    match (found, asked) {
        (Found::Policy(policy), Asked::Policy { reading, .. }) => match reading {
            PolicyReading::Unless(_) => true,
            PolicyReading::Wanted(_) => policy.versions.is_some(),
            PolicyReading::Attachments => policy.attached_to.is_some(),
        },
        (Found::Role(role), Asked::Role { reading, .. }) => match reading {
            RoleReading::Attached => true,
            RoleReading::Inline => role.inline.is_some(),
            RoleReading::Deletion => role.inline.is_some() && role.instance_profiles.is_some(),
        },
        _ => true,
    }
}

/// What a call makes of what was found.
fn after(found: &Found, call: &Call, made_arn: &str) -> Found {
    let (arn, id) = (made_arn.to_owned(), "not made yet".to_owned());
    match (found.clone(), call.clone()) {
        (_, Call::CreatePolicy { document, tags }) => Found::Policy(PolicyFound {
            default_version: "v1".to_owned(),
            versions: Some(vec![Version { id: "v1".to_owned(), document }]),
            attached_to: Some(Vec::new()),
            arn,
            id,
            tags,
        }),
        (_, Call::CreateRole { trust, boundary, tags }) => Found::Role(RoleFound {
            attached: Vec::new(),
            inline: Some(Vec::new()),
            instance_profiles: Some(Vec::new()),
            arn,
            id,
            trust,
            boundary,
            tags,
        }),
        (_, Call::CreateOpenIdConnectProvider { tags, .. }) => Found::Provider { arn, tags },
        (_, Call::DeletePolicy | Call::DeleteRole | Call::DeleteOpenIdConnectProvider) => {
            Found::Absent
        }
        (Found::Policy(policy), call) => Found::Policy(policy_after(policy, call)),
        (Found::Role(role), call) => Found::Role(role_after(role, call)),
        (other, _) => other,
    }
}

fn policy_after(mut policy: PolicyFound, call: Call) -> PolicyFound {
    match call {
        Call::TagPolicy { tags } => policy.tags.extend(tags),
        Call::CreatePolicyVersion { document } => {
            let id = "v (new)".to_owned();
            policy.default_version.clone_from(&id);
            policy.versions.get_or_insert_default().push(Version { id, document });
        }
        Call::SetDefaultPolicyVersion { version } => policy.default_version = version,
        Call::DeletePolicyVersion { version } => {
            policy.versions.iter_mut().for_each(|all| all.retain(|it| it.id != version));
        }
        _ => {}
    }
    policy
}

fn role_after(mut role: RoleFound, call: Call) -> RoleFound {
    match call {
        Call::TagRole { tags } => role.tags.extend(tags),
        Call::UpdateAssumeRolePolicy { trust } => role.trust = trust,
        Call::PutRolePermissionsBoundary { arn } => role.boundary = Some(arn),
        Call::AttachRolePolicy { arn } => role.attached.push(arn),
        Call::DetachRolePolicy { arn } => role.attached.retain(|known| *known != arn),
        Call::PutRolePolicy { name, document } => {
            let inline = role.inline.get_or_insert_default();
            inline.retain(|known| known.id != name);
            inline.push(Version { id: name, document });
        }
        Call::DeleteRolePolicy { name } => {
            role.inline.iter_mut().for_each(|all| all.retain(|it| it.id != name));
        }
        _ => {}
    }
    role
}

impl Driver<Cloud> for Played {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        Ok(self.answer(question).await)
    }

    async fn perform(&self, request: Request) -> Result<(), String> {
        self.play(&request)
    }
}

impl Driver<Nothing> for Played {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}
