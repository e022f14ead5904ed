//! What is seen of a Role, of its namespace and its Policy, and of what the cloud has for it.

use super::decide::{CloudPlace, Facts, Home, Look, State};
use super::placed::{Issuer, Placement};
use crate::document::{Trusted, only_subject};
use crate::journal::Journal;
use crate::kinds::{CLUSTER, GRANT, NAMESPACE, POLICY, ROLE};
use crate::outside::{Answer, Asked, At, Cloud, Found, Process, Question, RoleReading};
use crate::owner::{Owner, Shown};
use crate::settings::Settings;
use crate::subject::{Cached, is_same_object, name_in};
use crate::valid::{invalid_boundary, is_arn};
use interlock_api::identities::{
    Adopt, DeletionPolicy, FINALIZER_ROLE, PolicyStatus, RoleSpec, RoleStatus, condition as words,
};
use interlock_api::names::{LABEL_PLACED, downstream_namespace, grant_name};
use interlock_api::placement::{GrantStatus, Phase, RightsState};
use interlock_kernel::conditions::is_true;
use interlock_kernel::metadata::{has_finalizer, is_deleting, label, uid_of};
use interlock_kernel::{
    Address, LiveReads, Name, Object, Observed, Place, Subject, View, read_part,
};
use jiff::Timestamp;

/// How many policies a role has at most.
const MOST_POLICIES: usize = 10;

/// What one step is about.
#[derive(Debug)]
pub struct Scene {
    /// The Role: by a live read, if there was one.
    pub(super) role: Object,
    /// Its status.
    pub(super) status: RoleStatus,
    /// What this process is asked about its own calls.
    pub(super) calls: Question,
    /// What can be asked: the same order as [`Facts::places`].
    pub(super) questions: Vec<Question>,
    /// The Grant of the namespace, by a live read.
    pub(super) grant: Option<Object>,
    /// What is read after the cloud.
    pub(super) objects: Vec<Address>,
    /// The process that read the cloud, and when.
    pub(super) process: Process,
    /// The time.
    pub(super) now: Timestamp,
}

/// Reads what a step is about.
pub(super) fn observe(
    settings: &Settings,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Cloud>,
) -> Observed<Facts, Scene> {
    let Some(name) = name_in(subject) else { return Observed::nothing("no such subject") };
    let objects = Objects::of(name, view, live_reads);
    let cached = view.get(Place::HUB, &ROLE, &objects.role.name);
    let live = live_reads.objects.get(&objects.role);
    let Some(role) = live.cloned().unwrap_or(cached) else {
        return Observed::nothing("there is no such Role");
    };
    let spec = read_part::<RoleSpec>(&role, "spec");
    let status = read_part::<RoleStatus>(&role, "status").ok().flatten().unwrap_or_default();
    let invalid = match &spec {
        Ok(Some(spec)) => invalid(spec, settings),
        Ok(None) => Some("there is no spec".to_owned()),
        Err(error) => Some(error.clone()),
    };
    let spec = spec.ok().flatten().unwrap_or_default();
    let owner = Owner::of(&role, "role", settings);
    let reading = Reading { settings, owner: &owner, spec: &spec, status: &status };
    let places = reading.places();
    // While there is a fence, it is seen to that it is there.
    let has_fence = status.fence.as_ref().is_some_and(|fence| fence.before.is_some());
    let question = |object: Asked| Question { object, about: owner.uid.clone() };
    let calls = question(Asked::Calls);
    let is_emptied = live_reads.answers.get(&calls).is_some_and(is_emptied);
    let read = match (is_deleting(&role), has_fence) {
        (true, false) if is_emptied => RoleReading::Attached,
        (true, _) => RoleReading::Deletion,
        (false, true) => RoleReading::Inline,
        (false, false) => RoleReading::Attached,
    };
    let about = |at: &At| question(Asked::Role { at: at.clone(), reading: read });
    let questions: Vec<Question> = places.iter().map(about).collect();
    let asked = places.iter().zip(&questions);
    let answers = asked.filter_map(|(at, question)| Some((at, live_reads.answers.get(question)?)));
    let answers: Vec<(&At, &Answer)> = answers.collect();
    let policy = live_reads.objects.get(&objects.policy).cloned().flatten();
    let journal = match answers.as_slice() {
        [] => live_reads.answers.get(&calls).map(Journal::of),
        // Whatever was read, it is as old as the first read.
        [(_, first), .., (_, last)] => {
            Some(Journal { process: first.process.clone(), ..Journal::of(last) })
        }
        [(_, only)] => Some(Journal::of(only)),
    };
    let look = journal.filter(|_| live.is_some());
    let look = look.map(|journal| reading.look(journal, &answers, policy.as_ref()));
    let process = look.as_ref().map(|look| look.journal.process.clone()).unwrap_or_default();
    let boundary = spec.permissions_boundary_arn.clone().or_else(|| settings.boundary_arn.clone());
    let facts = Facts {
        has_finalizer: has_finalizer(&role, FINALIZER_ROLE),
        is_deleting: is_deleting(&role),
        is_retained: spec.deletion_policy == Some(DeletionPolicy::Retain),
        generation: role.metadata.generation,
        spec_arn: spec.role_arn.clone().filter(|arn| !arn.is_empty()),
        status: status.clone(),
        may_adopt: reading.adopt() != Adopt::Never,
        invalid,
        boundary: boundary.filter(|arn| !arn.is_empty()),
        owner: owner.clone(),
        places: places.clone(),
        is_awaited: objects.is_awaited(&owner.uid),
        home: objects.home(&reading, live_reads),
        look,
    };
    let scene = Scene {
        role,
        status,
        calls,
        questions,
        grant: live_reads.objects.get(&objects.grant).cloned().flatten(),
        objects: objects.all(),
        process,
        now: view.now(),
    };
    Observed::Seen { facts, scene }
}

/// Whether this process took something off the role: all was read before that. What somebody put into the role
/// since, the cloud names when it refuses to delete the role; then all is read again.
fn is_emptied(calls: &Answer) -> bool {
    calls.remembered.is_emptied && calls.refused.is_none()
}

fn invalid(spec: &RoleSpec, settings: &Settings) -> Option<String> {
    if spec.service_account_name.is_empty() {
        return Some("spec.serviceAccountName: it is empty".to_owned());
    }
    let arns = spec.policy_arns.iter().chain(&spec.policy_arn).filter(|arn| !arn.is_empty());
    if let Some(wrong) = arns.clone().find(|arn| !is_arn(arn)) {
        return Some(format!("spec.policyARNs: {wrong:?} is not an ARN"));
    }
    if arns.count() > MOST_POLICIES {
        return Some(format!("spec.policyARNs: a role has at most {MOST_POLICIES} policies"));
    }
    invalid_boundary(spec.permissions_boundary_arn.as_deref(), settings)
}

/// The objects that a step reads live, in this order.
struct Objects {
    role: Address,
    namespace: Address,
    /// The uid of the namespace as the cache shows it: the name of the Grant is made of it.
    namespace_uid: String,
    grant: Address,
    policy: Address,
    /// The status of the Grant: as the Grant was read, else as the cache shows it.
    granted: GrantStatus,
}

impl Objects {
    fn of(name: Name, view: &dyn View, live_reads: &LiveReads<Cloud>) -> Objects {
        let home = name.namespace.as_deref().unwrap_or_default().to_owned();
        let namespace = Name::cluster_wide(&home);
        let cached = view.get(Place::HUB, &NAMESPACE, &namespace);
        let namespace_uid = cached.map(|it| uid_of(&it).to_owned()).unwrap_or_default();
        let grant = Name::cluster_wide(&grant_name(&home, &namespace_uid));
        let grant = Address::new(Place::HUB, &GRANT, grant);
        let shown = live_reads.objects.get(&grant).cloned();
        let shown = shown.unwrap_or_else(|| view.get(Place::HUB, &GRANT, &grant.name));
        let status = shown.and_then(|it| read_part::<GrantStatus>(&it, "status").ok().flatten());
        Objects {
            role: Address::new(Place::HUB, &ROLE, name.clone()),
            namespace: Address::new(Place::HUB, &NAMESPACE, namespace),
            grant,
            policy: Address::new(Place::HUB, &POLICY, name),
            granted: status.unwrap_or_default(),
            namespace_uid,
        }
    }

    fn all(self) -> Vec<Address> {
        let cluster = self.cluster();
        let all = [self.role, self.namespace, self.grant, self.policy];
        all.into_iter().chain(cluster).collect()
    }

    fn cluster(&self) -> Option<Address> {
        let name = Name::cluster_wide(&self.granted.owner.as_ref()?.name);
        Some(Address::new(Place::HUB, &CLUSTER, name))
    }

    /// Whether the owner of the Grant waits for the role of this uid.
    fn is_awaited(&self, uid: &str) -> bool {
        let GrantStatus { phase, epoch, rights, .. } = &self.granted;
        let mut own = rights.iter().filter(|entry| entry.uid == uid);
        *phase == Phase::Granted
            && own.any(|entry| (entry.epoch, entry.state) != (*epoch, RightsState::Ready))
    }

    /// Whom the role must trust; None: not read yet.
    fn home(&self, reading: &Reading<'_>, live_reads: &LiveReads<Cloud>) -> Option<Home> {
        let namespace = live_reads.objects.get(&self.namespace)?.as_ref();
        let grant = live_reads.objects.get(&self.grant)?.as_ref();
        let Some(namespace) = namespace.filter(|it| uid_of(it) == self.namespace_uid) else {
            return Some(Home::Unknown("the cache shows another namespace"));
        };
        let Some(grant) = grant else {
            let is_placed = label(namespace, LABEL_PLACED).is_some();
            return Some(if is_placed { Home::Placed(None) } else { reading.unplaced() });
        };
        let Some(placement) = Placement::read(grant, &self.namespace_uid) else {
            return Some(Home::Unknown("the Grant cannot be read"));
        };
        let cluster = self.cluster().and_then(|cluster| live_reads.objects.get(&cluster));
        let account = &reading.spec.service_account_name;
        let runs_as = downstream_namespace(&reading.owner.namespace, &self.namespace_uid);
        Some(Home::Placed(Some(Box::new(Placement {
            issuer: Issuer::of(self.granted.owner.as_ref(), cluster),
            subject: format!("system:serviceaccount:{runs_as}:{account}"),
            audience: reading.settings.audience.clone(),
            ..placement
        }))))
    }
}

/// What a Role says of its cloud role.
struct Reading<'a> {
    settings: &'a Settings,
    owner: &'a Owner,
    spec: &'a RoleSpec,
    status: &'a RoleStatus,
}

impl Reading<'_> {
    fn adopt(&self) -> Adopt {
        self.spec.adopt.unwrap_or(self.settings.adopt)
    }

    /// The subject of the tokens of the service account.
    fn subject(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.owner.namespace, self.spec.service_account_name)
    }

    /// The trust of a role whose namespace is not placed.
    fn unplaced(&self) -> Home {
        let provider = self.settings.provider_arn.as_ref();
        Home::Unplaced(provider.map(|provider| {
            let subject = self.subject();
            let audience = &self.settings.audience;
            Trusted { provider, subject: &subject, audience }.document("Epoch0").to_string()
        }))
    }

    /// Where the cloud role may be: where it was last, where irsa-operator said that it is, where
    /// irsa-operator kept it, and under its own name.
    fn places(&self) -> Vec<At> {
        let own = self.owner.at();
        let arns = self.status.arn.iter().chain(&self.spec.role_arn).filter(|arn| !arn.is_empty());
        let known = self.status.arn.as_ref().filter(|arn| own.is(arn)).map(|_| own.clone());
        let others: Vec<At> = arns.filter(|arn| !own.is(arn)).cloned().map(At::Arn).collect();
        let cluster = self.settings.cluster_name.as_ref().filter(|_| self.adopt() == Adopt::Legacy);
        let legacy = cluster.map(|cluster| self.owner.legacy_role(cluster));
        let mut places: Vec<At> = Vec::new();
        for at in known.into_iter().chain(others).chain(legacy).chain([own]) {
            if !places.contains(&at) {
                places.push(at);
            }
        }
        places
    }

    fn state(&self, answer: &Answer) -> State {
        match &answer.found {
            Found::Role(found) => {
                let provider = self.settings.provider_arn.as_deref().unwrap_or_default();
                let trusted = only_subject(&found.trust, provider);
                let shown = Shown {
                    arn: &found.arn,
                    id: &found.id,
                    tags: &found.tags,
                    is_legacy: trusted == Some(self.subject()),
                };
                let whose = self.owner.whose(shown, self.status.role_id.as_deref(), self.adopt());
                State::Role {
                    found: Box::new(found.clone()),
                    whose,
                    adopting: self.owner.adopting(shown),
                }
            }
            Found::Failed(failure) => State::Failed(failure.clone()),
            Found::NotAsked | Found::Absent | Found::Policy(_) | Found::Provider { .. } => {
                State::Absent
            }
        }
    }

    fn look(&self, journal: Journal, answers: &[(&At, &Answer)], policy: Option<&Object>) -> Look {
        let places = answers
            .iter()
            .map(|(at, answer)| CloudPlace { at: (*at).clone(), state: self.state(answer) });
        let journal = Journal {
            mark: self.status.mark.clone(),
            late_call_seconds: self.settings.late_call_seconds,
            ..journal
        };
        let date = answers.first().and_then(|(_, first)| first.date);
        let policy = policy.filter(|policy| !is_deleting(policy));
        let ready = policy.and_then(|policy| ready_arn(policy));
        let awaits_policy = policy.is_some() && ready.is_none();
        let mut policies: Vec<String> = ready.into_iter().collect();
        for arn in self.spec.policy_arn.iter().chain(&self.spec.policy_arns) {
            if !arn.is_empty() && !policies.contains(arn) {
                policies.push(arn.clone());
            }
        }
        Look { journal, places: places.collect(), date, policies, awaits_policy }
    }
}

/// Whether a Policy is as it was for its role. Each step costs live reads of the cloud.
pub(super) fn is_same_policy(before: &Cached, after: &Cached) -> bool {
    is_same_object(before, after) && ready_arn(before) == ready_arn(after)
}

/// Whether a Grant is as it was for the roles of its namespace: claims, copies and conditions change often
/// while a namespace moves, and a role trusts an owner that leaves until the next one is there.
pub(super) fn is_same_grant(before: &Cached, after: &Cached) -> bool {
    let status = |grant: &Cached| -> GrantStatus {
        read_part(grant, "status").ok().flatten().unwrap_or_default()
    };
    let (old, new) = (status(before), status(after));
    let is_followed = matches!(new.phase, Phase::Granted | Phase::Fenced);
    is_same_object(before, after)
        && before.data.get("spec") == after.data.get("spec")
        && (old.epoch, old.fenced_epoch, &old.rights) == (new.epoch, new.fenced_epoch, &new.rights)
        && (!is_followed || (old.phase, &old.owner) == (new.phase, &new.owner))
}

/// The ARN of a Policy that is ready for its generation.
fn ready_arn(policy: &Cached) -> Option<String> {
    let status = read_part::<PolicyStatus>(policy, "status").ok().flatten()?;
    let is_current = status.observed_generation == policy.metadata.generation;
    // A new document of a policy does not change what is attached.
    let is_there = is_true(&status.conditions, words::READY) || !is_current;
    status.arn.filter(|arn| is_there && !arn.is_empty())
}
