//! What a role and its sessions may do: attached and inline policies, within the boundary.

use super::Iam;
use super::context::{Answer, Context, Decided};
use super::evaluate::{Decision, Facts, Question, decide};
use super::fault::Fault;
use super::session::Session;
use super::state::{Role, State};
use crate::clock::iso8601;
use crate::document::Document;
use interlock_store::Store;

/// An action on a resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) action: &'a str,
    pub(super) resource: &'a str,
}

/// What the policies of a role decide.
pub(super) fn of_role(state: &State, role: &Role, wanted: Wanted<'_>, facts: &Facts) -> Decision {
    let Wanted { action, resource } = wanted;
    let question = Question { action, resource: Some(resource), provider: None, facts };
    // What is stored was checked before it was stored.
    let read = |text: &str| Document::read(text).ok();
    let attached = role.attached.iter().filter_map(|arn| state.policy_by_arn(arn));
    let mut documents: Vec<Document> = attached.filter_map(|it| read(it.document())).collect();
    documents.extend(role.inline.values().filter_map(|document| read(document)));
    let decision = decide(&documents, &question);
    let Some(boundary) = &role.boundary else { return decision };
    let boundary = state.policy_by_arn(boundary).and_then(|it| read(it.document()));
    match (decision, decide(boundary.as_ref(), &question)) {
        (Decision::ExplicitDeny, _) | (_, Decision::ExplicitDeny) => Decision::ExplicitDeny,
        (Decision::Allowed, Decision::Allowed) => Decision::Allowed,
        _ => Decision::ImplicitDeny,
    }
}

/// What is known of every request of a session.
fn facts_of(session: &Session, now_seconds: i64) -> Facts {
    let one = |key: &str, value: String| (key.to_ascii_lowercase(), vec![value]);
    Facts::from([
        one("aws:TokenIssueTime", iso8601(session.issued_seconds)),
        one("aws:CurrentTime", iso8601(now_seconds)),
        one("aws:EpochTime", now_seconds.to_string()),
        one("aws:FederatedProvider", session.provider.clone()),
        one("aws:userid", format!("{}:{}", session.role_id, session.name)),
        one("aws:PrincipalType", "AssumedRole".to_owned()),
    ])
}

/// What a session may do now. A session whose role is gone may do nothing.
pub(super) fn of_session(
    state: &State,
    session: &Session,
    wanted: Wanted<'_>,
    now_seconds: i64,
) -> Decision {
    let role = state.role(&session.role).ok().filter(|role| role.id == session.role_id);
    match role {
        Some(role) if now_seconds < session.expires_seconds => {
            of_role(state, role, wanted, &facts_of(session, now_seconds))
        }
        _ => Decision::ImplicitDeny,
    }
}

impl<S: Store> Iam<S> {
    /// What a session may do now, for whoever serves something that sessions are for. None if the
    /// token is not ours.
    pub async fn may(
        &self,
        credentials: &crate::Credentials,
        action: &str,
        resource: &str,
    ) -> Option<Decision> {
        let token = credentials.session_token.as_deref()?;
        let session = self.secret.session(&credentials.access_key_id, token)?;
        let state = self.state.read().await;
        let now_seconds = self.settings.clock.now_seconds();
        Some(of_session(&state, &session, Wanted { action, resource }, now_seconds))
    }
}

/// SimulatePrincipalPolicy: what a role may do, with facts that the caller makes up.
pub(super) fn simulate(context: &Context<'_>) -> Decided {
    let arn = context.parameters.need("PolicySourceArn")?;
    let Some(role) = context.state.role_by_arn(arn) else {
        return Err(Fault::no_such_entity(format!("The entity {arn} cannot be found.")));
    };
    let actions = context.parameters.list("ActionNames");
    if actions.is_empty() {
        return Err(Fault::validation("ActionNames", "Member must not be null"));
    }
    let mut resources = context.parameters.list("ResourceArns");
    if resources.is_empty() {
        resources.push("*".to_owned());
    }
    let facts = context.parameters.context();
    let asked = actions.iter().flat_map(|action| resources.iter().map(move |it| (action, it)));
    Ok(Answer::says(|writer| {
        writer.list("EvaluationResults", asked, |member, (action, resource)| {
            let decision = of_role(context.state, role, Wanted { action, resource }, &facts);
            let word = match decision {
                Decision::Allowed => "allowed",
                Decision::ImplicitDeny => "implicitDeny",
                Decision::ExplicitDeny => "explicitDeny",
            };
            member
                .text("EvalActionName", action)
                .text("EvalResourceName", resource)
                .text("EvalDecision", word);
        });
        writer.text("IsTruncated", "false");
    }))
}
