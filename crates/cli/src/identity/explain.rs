//! What exists of an identity, and what happens next: the controllers' own next step, foreseen and not taken.

use super::{ExplainArgs, Scene};
use crate::output::{self, Format};
use crate::words::table;
use anyhow::{Context, anyhow, bail};
use interlock_api::identities::{IamRoleServiceAccount, Policy, Role, condition as words};
use interlock_api::names::{ANNOTATION_PROVIDER, grant_name};
use interlock_api::placement::condition::ISSUER_READY;
use interlock_api::placement::{Grant, WorkloadCluster};
use interlock_identities::outside::Request;
use interlock_identities::{irsa, policy, providers, role};
use interlock_kernel::conditions::{Condition, find};
use interlock_kernel::{Action, Controller, Nothing, Object, Outside, Place, Step, Subject, Write};
use interlock_shell::{Driver, Places, Server, foresee};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;

/// Who asks. It is shown no mark of another process, or its own: which process may call is not the question.
const READER: &str = "interlock identity explain";

/// What is known of one object of an identity.
#[derive(Debug, Serialize)]
struct Row {
    object: &'static str,
    /// Where it is in the cloud, or the role that a service account names.
    arn: Option<String>,
    ready: String,
    reason: String,
    message: String,
    next: Next,
}

/// What its controller does next.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "does")]
enum Next {
    /// Nothing, and why.
    Nothing { because: String },
    /// It waits.
    Wait { because: String },
    /// It writes an object of Kubernetes.
    Write { because: String },
    /// It makes one call to the cloud.
    Call { call: &'static str, because: String },
    /// It is made by another one.
    Other { because: String },
}

/// The answer.
#[derive(Debug, Serialize)]
struct Explained {
    identity: String,
    objects: Vec<Row>,
}

pub(super) async fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let Some((namespace, name)) = args.identity.split_once('/') else {
        bail!("write NAMESPACE/NAME instead of {:?}", args.identity);
    };
    let Scene { hub, account, identities } = args.common.scene().await?;
    let missing = || anyhow!("there is no IamRoleServiceAccount {name} in namespace {namespace}");
    let declared: Api<IamRoleServiceAccount> = Api::namespaced(hub.clone(), namespace);
    let identity = read(declared.get_opt(name).await)?.ok_or_else(missing)?;
    let policies: Api<Policy> = Api::namespaced(hub.clone(), namespace);
    let policy = read(policies.get_opt(name).await)?.and_then(|it| it.status).unwrap_or_default();
    let roles: Api<Role> = Api::namespaced(hub.clone(), namespace);
    let role = read(roles.get_opt(name).await)?.and_then(|it| it.status).unwrap_or_default();
    let accounts: Api<ServiceAccount> = Api::namespaced(hub.clone(), namespace);
    let service_account = read(accounts.get_opt(name).await)?;

    let (settings, driver) = identities.for_reader(&hub, &account, READER).await?;
    let settings = Arc::new(settings);
    let client = hub.clone();
    let places = Places::from([(Place::HUB, Server::new("hub", hub))]);
    let subject = Subject::from(args.identity.as_str());
    let at = At { places: &places, driver: &driver, subject: &subject };
    let own = identity.status.unwrap_or_default();
    let row = |object, arn, conditions: &[Condition], next| Row {
        object,
        arn,
        ready: field(conditions, |ready| &ready.status),
        reason: field(conditions, |ready| &ready.reason),
        message: field(conditions, |ready| &ready.message),
        next,
    };
    let declared = irsa::Accounts { settings: Arc::clone(&settings) };
    let mut rows = vec![row(
        "IamRoleServiceAccount",
        None,
        &own.conditions,
        at.next(&declared, no_call).await?,
    )];
    let next = at.next(&policy::Policies { settings: Arc::clone(&settings) }, call).await?;
    rows.push(row("Policy", policy.arn, &policy.conditions, next));
    let next = at.next(&role::Roles { settings: Arc::clone(&settings) }, call).await?;
    rows.push(row("Role", role.arn, &role.conditions, next));
    if let Some(owner) = owner(&client, namespace).await? {
        let subject = Subject::from(owner.name_any().as_str());
        let at = At { subject: &subject, ..at };
        let next = at.next(&providers::Providers { settings }, call).await?;
        let status = owner.status.unwrap_or_default();
        let mut provider = row("OIDC provider", status.issuer, &[], next);
        if let Some(ready) = find(&status.conditions, ISSUER_READY) {
            let Condition { status, reason, message, .. } = ready.clone();
            provider = Row { ready: status, reason, message, ..provider };
        }
        rows.push(provider);
    }
    let annotated = service_account.as_ref().and_then(|it| it.metadata.annotations.as_ref());
    let annotated = annotated.and_then(|it| it.get(interlock_api::identities::ANNOTATION_ROLE_ARN));
    let because = "the IamRoleServiceAccount makes it".to_owned();
    let mut last = row("ServiceAccount", annotated.cloned(), &[], Next::Other { because });
    last.ready = if service_account.is_some() { "True" } else { "False" }.to_owned();
    rows.push(last);

    let is_stuck = rows.iter().any(|row| STUCK.contains(&row.reason.as_str()));
    let explained = Explained { identity: args.identity.clone(), objects: rows };
    match args.common.output {
        Format::Json => output::say_json(&explained)?,
        Format::Text => output::say(&text(&explained))?,
    }
    Ok(if is_stuck { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The cluster that owns the namespace, if it is placed.
async fn owner(hub: &Client, namespace: &str) -> anyhow::Result<Option<WorkloadCluster>> {
    let namespaces: Api<Namespace> = Api::all(hub.clone());
    let Some(found) = read(namespaces.get_opt(namespace).await)? else { return Ok(None) };
    let name = grant_name(namespace, &found.metadata.uid.unwrap_or_default());
    let grants: Api<Grant> = Api::all(hub.clone());
    let grant = match grants.get(&name).await {
        Ok(grant) => Some(grant),
        // Where namespaces are not placed, the kinds of placement may not be installed.
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => return Err(error).context("cannot read the Grant of the namespace"),
    };
    let owner = grant.and_then(|grant| grant.status).and_then(|status| status.owner);
    let Some(owner) = owner else { return Ok(None) };
    let clusters: Api<WorkloadCluster> = Api::all(hub.clone());
    let cluster = read(clusters.get_opt(&owner.name).await)?;
    Ok(cluster.filter(|cluster| cluster.metadata.uid.as_ref() == Some(&owner.uid)))
}

fn call(request: &Request) -> &'static str {
    request.call.name()
}

fn no_call(nothing: &Nothing) -> &'static str {
    match *nothing {}
}

/// The reasons that nothing but a person ends.
pub(super) const STUCK: [&str; 4] =
    [words::INVALID, words::CONFLICT, words::FORBIDDEN, words::LIMIT_EXCEEDED];

fn read<T>(found: Result<Option<T>, kube::Error>) -> anyhow::Result<Option<T>> {
    found.context("cannot read the identity; are the kinds of irsa.voodoo.io installed?")
}

fn field(conditions: &[Condition], of: impl Fn(&Condition) -> &String) -> String {
    let ready = conditions.iter().find(|condition| condition.type_ == words::READY);
    ready.map(|ready| of(ready).clone()).unwrap_or_default()
}

/// Where the next step is looked for.
#[derive(Clone, Copy)]
struct At<'a> {
    places: &'a Places,
    driver: &'a interlock_cloud::Driver,
    subject: &'a Subject,
}

impl At<'_> {
    /// The next step of a controller. If that is to say that calls of this process may be under way, then the
    /// call itself is what the reader wants to know.
    async fn next<C>(&self, controller: &C, name: NameOf<C::Outside>) -> anyhow::Result<Next>
    where
        C: Controller,
        interlock_cloud::Driver: Driver<C::Outside>,
    {
        let foreseen = async |shown: fn(Object) -> Object| {
            let step = foresee(controller, self.places, self.driver, self.subject, shown).await;
            step.map_err(|why| anyhow!("{}: {why}", controller.name()))
        };
        let step = foreseen(unmarked).await?;
        let step = if is_mark(&step) { foreseen(marked).await? } else { step };
        Ok(next(step, name))
    }
}

/// What an action outside of the API is called.
type NameOf<O> = fn(&<O as Outside>::Action) -> &'static str;

pub(super) fn unmarked(object: Object) -> Object {
    with_mark(object, None)
}

fn marked(object: Object) -> Object {
    with_mark(object, Some(json!({"instance": READER, "quietAt": 0})))
}

/// An object with another mark. That of an OIDC provider is in an annotation of its WorkloadCluster, which also says
/// when the cloud was compared: here it is compared now.
fn with_mark(mut object: Object, mark: Option<Value>) -> Object {
    let bent = Arc::make_mut(&mut object);
    let annotations = bent.metadata.annotations.iter_mut().flatten();
    for (_, text) in annotations.filter(|(key, _)| *key == ANNOTATION_PROVIDER) {
        let mut record: Value = serde_json::from_str(text).unwrap_or_default();
        record["checked"] = Value::Null;
        record["mark"] = mark.clone().unwrap_or_default();
        *text = record.to_string();
    }
    if let Some(status) = bent.data.get_mut("status").and_then(Value::as_object_mut) {
        match mark {
            Some(mark) => status.insert("mark".to_owned(), mark),
            None => status.remove("mark"),
        };
    }
    object
}

fn is_mark<O: Outside>(step: &Step<O>) -> bool {
    let Step::Act(effect) = step else { return false };
    let Action::Write(Write::Patch { change, .. }) = &effect.action else { return false };
    let record = change["metadata"]["annotations"][ANNOTATION_PROVIDER].as_str();
    let record: Value = record.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let marks = [change.pointer("/status/mark"), record.get("mark")];
    marks.into_iter().flatten().any(|mark| !mark.is_null())
}

fn next<O: Outside>(step: Step<O>, name: NameOf<O>) -> Next {
    match step {
        Step::Rest { because } => Next::Nothing { because },
        Step::Wait { because, .. } | Step::LiveRead { because, .. } => Next::Wait { because },
        Step::Act(effect) => match effect.action {
            Action::Write(_) => Next::Write { because: effect.because },
            Action::Outside(action) => Next::Call { call: name(&action), because: effect.because },
        },
    }
}

fn text(explained: &Explained) -> String {
    let cells = |row: &Row| {
        let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let next = match &row.next {
            Next::Nothing { because } => format!("nothing: {because}"),
            Next::Wait { because } => format!("waits: {because}"),
            Next::Write { because } => format!("writes: {because}"),
            Next::Call { call, because } => format!("calls {call}: {because}"),
            Next::Other { because } => because.clone(),
        };
        let arn = row.arn.clone().unwrap_or_default();
        vec![row.object.to_owned(), dash(&row.ready), dash(&row.reason), dash(&arn), next]
    };
    let rows: Vec<Vec<String>> = explained.objects.iter().map(cells).collect();
    let mut text = format!("{}\n\n", explained.identity);
    text.push_str(&table(&["OBJECT", "READY", "REASON", "IN THE CLOUD", "NEXT"], &rows));
    for row in explained.objects.iter().filter(|row| !row.message.is_empty() && row.ready != "True")
    {
        text.push_str(&format!("\n{}: {}\n", row.object, row.message));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_has_the_mark_of_an_object_and_compares_the_cloud_now() {
        let record = json!({"issuer": "https://e", "checked": 7, "mark": {"instance": "x"}});
        let cluster = json!({"apiVersion": "v1", "kind": "WorkloadCluster", "status": {"issuer": "e"},
            "metadata": {"name": "e", "annotations": {ANNOTATION_PROVIDER: record.to_string()}}});
        let cluster: Object = Arc::new(serde_json::from_value(cluster).expect("an object"));
        let record = |object: &Object| -> Value {
            let annotations = object.metadata.annotations.as_ref().expect("annotations");
            serde_json::from_str(&annotations[ANNOTATION_PROVIDER]).expect("a record")
        };
        let shown = record(&unmarked(cluster.clone()));
        assert_eq!(shown, json!({"issuer": "https://e", "checked": null, "mark": null}));
        let shown = marked(cluster);
        assert_eq!(record(&shown)["mark"]["instance"], READER);
        assert_eq!(shown.data["status"]["mark"]["instance"], READER);
        assert_eq!(unmarked(shown).data["status"], json!({"issuer": "e"}));
    }

    #[test]
    fn a_step_is_said_in_words() {
        let rest =
            next::<interlock_identities::outside::Cloud>(Step::rest("all is as declared"), call);
        assert_eq!(rest, Next::Nothing { because: "all is as declared".to_owned() });
        let row = |next| Row {
            object: "Role",
            arn: None,
            ready: "False".to_owned(),
            reason: "Conflict".to_owned(),
            message: "the role is another's".to_owned(),
            next,
        };
        let call = Next::Call { call: "CreateRole", because: "there is none".to_owned() };
        let explained = Explained { identity: "shop/s3".to_owned(), objects: vec![row(call)] };
        let text = text(&explained);
        assert!(text.contains("calls CreateRole: there is none"), "{text}");
        assert!(text.ends_with("Role: the role is another's\n"), "{text}");
    }
}
