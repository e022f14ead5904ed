//! What the controllers would do about every identity, to the end: their own steps, on a copy of the hub and of
//! the account. Nothing is written to either.

mod account;

use super::Scene;
use crate::output::{self, Format, ProgressLine};
use crate::words::table;
use account::Played;
use anyhow::{anyhow, bail};
use interlock_api::identities::condition as words;
use interlock_api::placement::condition::ISSUER_READY;
use interlock_iam::Outcome;
use interlock_identities::kinds::{ACCOUNT, CLUSTER, POLICY, ROLE};
use interlock_identities::outside::{Call, Cloud};
use interlock_identities::settings::Settings;
use interlock_identities::{irsa, policy, providers, role};
use interlock_kernel::conditions::{Condition, find};
use interlock_kernel::{
    Controller, Kind, Name, Nothing, Object, Outside, Part, Place, Subject, Watcher, Write,
};
use interlock_shell::{Driver, Places, Rehearsal, Rehearsed, Server};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

/// Who asks: no process that runs has this name, and none reads its marks.
const READER: &str = "interlock identity plan";
/// An identity that takes more steps than this does not come to an end.
const MOST_STEPS: usize = 200;

/// What would happen to an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Verdict {
    /// It needs a person: a conflict, a spec that cannot be, a right or a quota that is missing.
    Stalled,
    /// Nobody can tell: the account could not be read.
    Unknown,
    /// Cloud objects are deleted.
    Delete,
    /// Cloud objects of another owner are taken over.
    Adopt,
    /// Cloud objects are created.
    Create,
    /// Cloud objects are changed.
    Change,
    /// The cloud stays as it is.
    Nothing,
}

/// What would happen to one identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Planned {
    identity: String,
    verdict: Verdict,
    /// Calls to the cloud, in their order.
    calls: Vec<String>,
    /// What would be created, changed or deleted at the hub; status and finalizers left out.
    writes: Vec<String>,
    /// The reason of the condition `Ready` at the end.
    reason: String,
    /// Its sentence, unless all is as declared.
    message: String,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Plan {
    fleet: String,
    verdicts: BTreeMap<String, usize>,
    identities: Vec<Planned>,
    providers: Vec<Provider>,
}

/// What would happen to the OIDC provider of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Provider {
    cluster: String,
    verdict: Verdict,
    /// Calls to the cloud, in their order.
    calls: Vec<String>,
    /// The reason of the condition `IssuerReady` at the end.
    reason: String,
    /// Its sentence, unless it is ready.
    message: String,
}

/// Plans all identities, or these, and prints the plan.
pub(super) async fn run(
    scene: &Scene,
    only: &[String],
    format: Format,
) -> anyhow::Result<ExitCode> {
    if let Some(wrong) = only.iter().find(|name| !name.contains('/')) {
        bail!("write NAMESPACE/NAME instead of {wrong:?}");
    }
    let Scene { hub, account, identities } = scene;
    let (settings, real) = identities.for_reader(hub, account, READER).await?;
    let home = match account.client()?.get_caller_identity().await {
        Outcome::Done(identity) => home_of(&identity.arn, &identity.account),
        Outcome::Refused(why) => bail!("the account cannot be read: {why}"),
        Outcome::Unknown(why) => bail!("the account cannot be read: {why}"),
    };
    let places = Places::from([(Place::HUB, Server::new("hub", hub.clone()))]);
    let planner = Planner::new(settings, places, Played::new(real, home));
    let plan = planner.plan(only).await?;
    match format {
        Format::Json => output::say_json(&plan)?,
        Format::Text => output::say(&text(&plan))?,
    }
    let is_stuck = |planned: &Planned| planned.verdict <= Verdict::Unknown;
    let is_stuck = plan.identities.iter().any(is_stuck);
    Ok(if is_stuck { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What the ARNs of IAM in an account begin with.
fn home_of(arn: &str, account: &str) -> String {
    let partition = arn.split(':').nth(1).filter(|it| !it.is_empty()).unwrap_or("aws");
    format!("arn:{partition}:iam::{account}:")
}

/// The controllers of an identity and of the providers that roles trust, and what they work on.
struct Planner {
    accounts: irsa::Accounts,
    policies: policy::Policies,
    roles: role::Roles,
    providers: providers::Providers,
    fleet: String,
    places: Places,
    cloud: Played,
}

/// What the steps about one identity came to.
#[derive(Default)]
struct Steps {
    calls: Vec<Call>,
    writes: Vec<String>,
    /// Whether the last round did something.
    is_moving: bool,
    count: usize,
}

impl Planner {
    fn new(settings: Settings, places: Places, cloud: Played) -> Planner {
        let (fleet, settings) = (settings.fleet.clone(), Arc::new(settings));
        Planner {
            accounts: irsa::Accounts { settings: Arc::clone(&settings) },
            policies: policy::Policies { settings: Arc::clone(&settings) },
            roles: role::Roles { settings: Arc::clone(&settings) },
            providers: providers::Providers { settings },
            fleet,
            places,
            cloud,
        }
    }

    async fn plan(&self, only: &[String]) -> anyhow::Result<Plan> {
        let mut watches = self.accounts.watches();
        watches.extend(self.policies.watches());
        watches.extend(self.roles.watches());
        watches.extend(self.providers.watches());
        // Which process has calls under way is not the question.
        let copy = Rehearsal::of(&watches, &self.places, super::explain::unmarked).await;
        let mut copy = copy.map_err(|why| anyhow!("the hub cannot be read: {why}"))?;
        let mut subjects: BTreeSet<String> = BTreeSet::new();
        for kind in [ACCOUNT, POLICY, ROLE] {
            subjects.extend(copy.list(Place::HUB, &kind).iter().map(|it| Name::of(it).to_string()));
        }
        if let Some(missing) = only.iter().find(|name| !subjects.contains(*name)) {
            bail!("there is no IamRoleServiceAccount, Policy or Role {missing}");
        }
        subjects.retain(|name| only.is_empty() || only.contains(name));
        // Roles trust only issuers that are ready, so it is planned first which are.
        let providers = self.planned_providers(&mut copy).await?;
        let (progress, all) = (ProgressLine::default(), subjects.len());
        let mut identities = Vec::new();
        for (number, subject) in subjects.into_iter().enumerate() {
            if ProgressLine::is_wanted() {
                progress.show(&format!("planning {subject} ({} of {all})", number + 1));
            }
            identities.push(self.planned(&mut copy, subject).await?);
        }
        progress.clear();
        let mut verdicts = BTreeMap::new();
        for planned in &identities {
            *verdicts.entry(planned.verdict.word().to_owned()).or_default() += 1;
        }
        Ok(Plan { fleet: self.fleet.clone(), verdicts, identities, providers })
    }

    /// The OIDC providers of all clusters.
    async fn planned_providers(&self, copy: &mut Rehearsal) -> anyhow::Result<Vec<Provider>> {
        let mut planned = Vec::new();
        for cluster in copy.list(Place::HUB, &CLUSTER) {
            let name = Name::of(&cluster);
            let (subject, mut steps) = (Subject::from(&*name.name), Steps::default());
            self.cloud.forget();
            self.turn::<_, Cloud>(&self.providers, copy, &subject, &mut steps).await?;
            let after = copy.get(Place::HUB, &CLUSTER, &name);
            let (reason, message) = match after.map(|cluster| conditions(&cluster)) {
                Some(all) => said(&all, ISSUER_READY),
                None => ("Gone".to_owned(), String::new()),
            };
            let verdict = verdict_of_provider(&steps.calls, &reason);
            let calls = steps.calls.iter().map(in_words).collect();
            let cluster = name.name.to_string();
            planned.push(Provider { cluster, verdict, calls, reason, message });
        }
        planned.sort_by(|one, other| one.cluster.cmp(&other.cluster));
        Ok(planned)
    }

    /// One controller after the other steps, until none of them has anything to do.
    async fn planned(&self, copy: &mut Rehearsal, identity: String) -> anyhow::Result<Planned> {
        let subject = Subject::from(identity.as_str());
        self.cloud.forget();
        let mut steps = Steps { is_moving: true, ..Steps::default() };
        while steps.is_moving && steps.count < MOST_STEPS {
            steps.is_moving = false;
            self.turn::<_, Nothing>(&self.accounts, copy, &subject, &mut steps).await?;
            self.turn::<_, Cloud>(&self.policies, copy, &subject, &mut steps).await?;
            self.turn::<_, Cloud>(&self.roles, copy, &subject, &mut steps).await?;
        }
        let (reason, message) = ready(copy, &identity);
        let verdict = verdict(&steps.calls, &reason);
        let calls = steps.calls.iter().map(in_words).collect();
        Ok(Planned { identity, verdict, calls, writes: steps.writes, reason, message })
    }

    /// A controller takes steps until it rests or waits.
    async fn turn<C, O>(
        &self,
        controller: &C,
        copy: &mut Rehearsal,
        subject: &Subject,
        steps: &mut Steps,
    ) -> anyhow::Result<()>
    where
        O: Outside,
        O::Action: Clone,
        C: Controller<Outside = O>,
        Played: Driver<O>,
    {
        while steps.count < MOST_STEPS {
            let done = copy.step(controller, subject, &self.places, &self.cloud).await;
            let done = done.map_err(|why| anyhow!("{subject}: {}: {why}", controller.name()))?;
            match done {
                Rehearsed::Rests(_) | Rehearsed::Waits(_) => return Ok(()),
                Rehearsed::Acted(_) => steps.calls.extend(self.cloud.take_calls()),
                Rehearsed::Wrote(write) => steps.writes.extend(worth_saying(&write)),
            }
            steps.is_moving = true;
            steps.count += 1;
        }
        Ok(())
    }
}

/// The condition `Ready` of an identity at the end: of the object that a person wrote.
fn ready(copy: &Rehearsal, identity: &str) -> (String, String) {
    let Some((namespace, name)) = identity.split_once('/') else { return Default::default() };
    let name = Name::within(namespace, name);
    let get = |kind: &Kind| copy.get(Place::HUB, kind, &name);
    let Some(object) = get(&ACCOUNT).or_else(|| get(&ROLE)).or_else(|| get(&POLICY)) else {
        return ("Gone".to_owned(), String::new());
    };
    said(&conditions(&object), words::READY)
}

/// The reason of a condition, and its sentence unless it holds.
fn said(conditions: &[Condition], kind: &str) -> (String, String) {
    let Some(it) = find(conditions, kind) else { return Default::default() };
    let message = if it.status == "True" { String::new() } else { it.message.clone() };
    (it.reason.clone(), message)
}

fn conditions(object: &Object) -> Vec<Condition> {
    let conditions = object.data.pointer("/status/conditions").cloned().unwrap_or_default();
    serde_json::from_value(conditions).unwrap_or_default()
}

/// Roles trust no issuer that two clusters have, or that the cloud does not know: a person has to act.
fn verdict_of_provider(calls: &[Call], reason: &str) -> Verdict {
    let has = |is: fn(&Call) -> bool| calls.iter().any(is);
    if has(|call| matches!(call, Call::DeleteOpenIdConnectProvider)) {
        return Verdict::Delete;
    }
    if has(|call| matches!(call, Call::CreateOpenIdConnectProvider { .. })) {
        return Verdict::Create;
    }
    let stuck = [words::ISSUER_SHARED, words::NO_PROVIDER];
    if stuck.contains(&reason) { Verdict::Stalled } else { verdict(calls, reason) }
}

fn verdict(calls: &[Call], reason: &str) -> Verdict {
    if super::explain::STUCK.contains(&reason) {
        return Verdict::Stalled;
    }
    if [words::UNAVAILABLE, words::THROTTLED].contains(&reason) {
        return Verdict::Unknown;
    }
    let has = |is: fn(&Call) -> bool| calls.iter().any(is);
    // Tags are written onto what exists only when it is taken over, or lost them.
    if has(|call| matches!(call, Call::DeletePolicy | Call::DeleteRole)) {
        return Verdict::Delete;
    }
    if has(|call| matches!(call, Call::TagPolicy { .. } | Call::TagRole { .. })) {
        return Verdict::Adopt;
    }
    if has(|call| matches!(call, Call::CreatePolicy { .. } | Call::CreateRole { .. })) {
        return Verdict::Create;
    }
    if calls.is_empty() { Verdict::Nothing } else { Verdict::Change }
}

/// A write to the hub that a person wants to know of.
fn worth_saying(write: &Write) -> Option<String> {
    let address = write.address();
    let what = format!("{} {}", address.kind.kind, address.name);
    match write {
        Write::Create { .. } => Some(format!("create {what}")),
        Write::Apply { part: Part::Main, uid: None, .. } => Some(format!("create {what}")),
        Write::Apply { part: Part::Main, .. } => Some(format!("change {what}")),
        Write::Delete { .. } => Some(format!("delete {what}")),
        Write::Patch { part: Part::Main, change, .. } => {
            let is_finalizer = change.pointer("/metadata/finalizers").is_some();
            (!is_finalizer).then(|| format!("change {what}"))
        }
        Write::Apply { part: Part::Status, .. } | Write::Patch { part: Part::Status, .. } => None,
    }
}

/// A call with what tells it from another one of its name.
fn in_words(call: &Call) -> String {
    let more = match call {
        Call::AttachRolePolicy { arn }
        | Call::DetachRolePolicy { arn }
        | Call::PutRolePermissionsBoundary { arn } => arn.as_str(),
        Call::SetDefaultPolicyVersion { version } | Call::DeletePolicyVersion { version } => {
            version.as_str()
        }
        Call::PutRolePolicy { name, .. } | Call::DeleteRolePolicy { name } => name.as_str(),
        _ => return call.name().to_owned(),
    };
    format!("{} {more}", call.name())
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Stalled => "stalled",
            Verdict::Unknown => "unknown",
            Verdict::Delete => "delete",
            Verdict::Adopt => "adopt",
            Verdict::Create => "create",
            Verdict::Change => "change",
            Verdict::Nothing => "nothing",
        }
    }
}

fn text(plan: &Plan) -> String {
    let mut text = text_of_identities(plan);
    let is_shown = |it: &&Provider| it.verdict != Verdict::Nothing;
    let cells = |it: &Provider| {
        let mut does = it.calls.clone();
        does.extend((!it.message.is_empty()).then(|| it.message.clone()));
        vec![it.cluster.clone(), it.verdict.word().to_owned(), does.join("; ")]
    };
    let rows: Vec<Vec<String>> = plan.providers.iter().filter(is_shown).map(cells).collect();
    if !rows.is_empty() {
        text += &format!("\n{}", table(&["CLUSTER", "WOULD", "OIDC PROVIDER"], &rows));
    }
    text
}

fn text_of_identities(plan: &Plan) -> String {
    if plan.identities.is_empty() {
        return "no identity is declared\n".to_owned();
    }
    let all = plan.identities.len();
    let counts: Vec<String> =
        plan.verdicts.iter().map(|(verdict, count)| format!("{verdict} {count}")).collect();
    let mut text = format!(
        "{all} identities of fleet {}: {}. Nothing was written.\n\n",
        plan.fleet,
        counts.join(", "),
    );
    let mut sorted: Vec<&Planned> = plan.identities.iter().collect();
    sorted.sort_by_key(|planned| planned.verdict);
    let unchanged =
        |planned: &&Planned| planned.verdict == Verdict::Nothing && planned.writes.is_empty();
    let shown: Vec<&Planned> = sorted.iter().copied().filter(|it| !unchanged(it)).collect();
    let cells = |planned: &&Planned| {
        let Planned { identity, verdict, calls, writes, message, .. } = planned;
        let mut does: Vec<String> = calls.iter().chain(writes).cloned().collect();
        does.extend((!message.is_empty()).then(|| message.clone()));
        vec![identity.clone(), verdict.word().to_owned(), does.join("; ")]
    };
    let rows: Vec<Vec<String>> = shown.iter().map(cells).collect();
    if !rows.is_empty() {
        text += &table(&["IDENTITY", "WOULD", "CALLS AND WRITES, IN ORDER"], &rows);
    }
    if let Some(worst) = sorted.iter().find(|planned| planned.verdict <= Verdict::Unknown) {
        text += &format!("\nnext: interlock identity explain {}\n", worst.identity);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags() -> interlock_identities::outside::Tags {
        Default::default()
    }

    #[test]
    fn a_verdict_is_the_gravest_thing_that_would_happen() {
        let create = Call::CreateRole { trust: String::new(), boundary: None, tags: tags() };
        let attach = Call::AttachRolePolicy { arn: "a".to_owned() };
        let adopt = Call::TagRole { tags: tags() };
        let update = Call::UpdateAssumeRolePolicy { trust: String::new() };
        let of = |calls: &[&Call], reason: &str| {
            verdict(&calls.iter().map(|call| (*call).clone()).collect::<Vec<_>>(), reason)
        };
        assert_eq!(of(&[], "AsDeclared"), Verdict::Nothing);
        assert_eq!(of(&[&update], "AsDeclared"), Verdict::Change);
        assert_eq!(of(&[&create, &attach], "AsDeclared"), Verdict::Create);
        assert_eq!(of(&[&adopt, &update], "AsDeclared"), Verdict::Adopt);
        assert_eq!(of(&[&attach, &Call::DeleteRole], "Gone"), Verdict::Delete);
        assert_eq!(of(&[&create], "Conflict"), Verdict::Stalled);
        assert_eq!(of(&[], "Unavailable"), Verdict::Unknown);
    }

    #[test]
    fn an_issuer_that_no_role_may_trust_needs_a_person() {
        let (issuer, audience) = ("https://e.example".to_owned(), "sts".to_owned());
        let create = Call::CreateOpenIdConnectProvider { issuer, audience, tags: tags() };
        assert_eq!(verdict_of_provider(&[], "ProviderFound"), Verdict::Nothing);
        assert_eq!(verdict_of_provider(&[create], "ProviderFound"), Verdict::Create);
        let delete = [Call::DeleteOpenIdConnectProvider];
        assert_eq!(verdict_of_provider(&delete, "Gone"), Verdict::Delete);
        assert_eq!(verdict_of_provider(&[], "IssuerShared"), Verdict::Stalled);
        assert_eq!(verdict_of_provider(&[], "NoProvider"), Verdict::Stalled);
        assert_eq!(verdict_of_provider(&[], "Unavailable"), Verdict::Unknown);
    }

    #[test]
    fn what_needs_a_person_comes_first_and_what_stays_is_only_counted() {
        let planned = |identity: &str, verdict, calls: &[&str]| Planned {
            identity: identity.to_owned(),
            verdict,
            calls: calls.iter().map(|call| (*call).to_owned()).collect(),
            writes: Vec::new(),
            reason: String::new(),
            message: if verdict == Verdict::Stalled {
                "it is another's".into()
            } else {
                String::new()
            },
        };
        let provider = |cluster: &str, verdict, call: &str, message: &str| Provider {
            cluster: cluster.to_owned(),
            verdict,
            calls: if call.is_empty() { Vec::new() } else { vec![call.to_owned()] },
            reason: String::new(),
            message: message.to_owned(),
        };
        let plan = Plan {
            fleet: "f".to_owned(),
            verdicts: BTreeMap::from([("create".to_owned(), 1), ("stalled".to_owned(), 1)]),
            identities: vec![
                planned("a/same", Verdict::Nothing, &[]),
                planned("b/new", Verdict::Create, &["CreatePolicy", "CreateRole"]),
                planned("c/taken", Verdict::Stalled, &[]),
            ],
            providers: vec![
                provider("east", Verdict::Create, "CreateOpenIDConnectProvider", ""),
                provider("north", Verdict::Nothing, "", ""),
                provider("west", Verdict::Stalled, "", "the cluster north reports it, too"),
            ],
        };
        assert_eq!(
            text(&plan),
            "3 identities of fleet f: create 1, stalled 1. Nothing was written.\n\n\
             IDENTITY  WOULD    CALLS AND WRITES, IN ORDER\n\
             c/taken   stalled  it is another's\n\
             b/new     create   CreatePolicy; CreateRole\n\n\
             next: interlock identity explain c/taken\n\n\
             CLUSTER  WOULD    OIDC PROVIDER\n\
             east     create   CreateOpenIDConnectProvider\n\
             west     stalled  the cluster north reports it, too\n"
        );
    }

    #[test]
    fn arns_are_those_of_the_account() {
        assert_eq!(home_of("arn:aws-cn:iam::1:root", "1"), "arn:aws-cn:iam::1:");
        assert_eq!(home_of("", "1"), "arn:aws:iam::1:");
    }
}
