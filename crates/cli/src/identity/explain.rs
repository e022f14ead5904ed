//! What exists of an identity, and what happens next: the controllers' own next step, foreseen and not taken.

use super::{ExplainArgs, Scene};
use crate::fleet::table;
use crate::output::{self, Format};
use anyhow::{Context, anyhow, bail};
use interlock_api::identities::{IamRoleServiceAccount, Policy, Role, condition as words};
use interlock_identities::outside::Request;
use interlock_identities::{irsa, policy, role};
use interlock_kernel::conditions::Condition;
use interlock_kernel::{Action, Controller, Nothing, Object, Outside, Place, Step, Subject, Write};
use interlock_shell::{Driver, Places, Server, foresee};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
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
    let next = at.next(&role::Roles { settings }, call).await?;
    rows.push(row("Role", role.arn, &role.conditions, next));
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

pub(super) fn unmarked(mut object: Object) -> Object {
    let data = &mut Arc::make_mut(&mut object).data;
    if let Some(status) = data.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("mark");
    }
    object
}

fn marked(mut object: Object) -> Object {
    let data = &mut Arc::make_mut(&mut object).data;
    if data.get("status").is_some_and(Value::is_object) {
        data["status"]["mark"] = json!({"instance": READER, "quietAt": 0});
    }
    object
}

fn is_mark<O: Outside>(step: &Step<O>) -> bool {
    let Step::Act(effect) = step else { return false };
    let Action::Write(Write::Patch { change, .. }) = &effect.action else { return false };
    change.pointer("/status/mark").is_some_and(|mark| !mark.is_null())
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
