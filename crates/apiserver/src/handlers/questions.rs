//! Questions: objects that are answered and never stored. Reviews of rights and tokens, and token requests.

use super::subresources::posted;
use crate::access::identity::ServiceAccount;
use crate::access::reviews::{self, AccessReview};
use crate::access::tokens::BoundKind;
use crate::access::{Decision, token_request};
use crate::admission::{self, Admitting, Change, Operation};
use crate::brought::Brought;
use crate::call::{Call, decode_body};
use crate::http::{self, Body};
use crate::kinds;
use crate::object;
use crate::request::{Verb, WriteKind};
use crate::status::Status;
use crate::storage;
use ::http::Response;
use interlock_store::Key;
use serde_json::Value;

/// The answer, if the request is a question at all.
pub(super) async fn answer(
    call: &Call,
    brought: &Brought,
) -> Option<Result<Response<Body>, Status>> {
    let is_question = kinds::built_in().of(&call.resource).is_some_and(kinds::BuiltIn::is_virtual);
    if !is_question {
        return None;
    }
    if brought.verb != Verb::Create || !call.subresource.is_empty() {
        return Some(Err(Status::method_not_allowed(
            "the server does not allow this method on the requested resource",
        )));
    }
    Some(ask(call, brought).await.map(|answer| http::json(201, &answer)))
}

async fn ask(call: &Call, brought: &Brought) -> Result<Value, Status> {
    brought.query.write_options(WriteKind::Create)?;
    let question = call.object_from(&brought.content_type, &brought.body)?;
    let now = call.now.as_second();
    match &*call.resource.kind {
        "SelfSubjectAccessReview" => access(call, AccessReview::Own, question).await,
        "SubjectAccessReview" => access(call, AccessReview::Anyone, question).await,
        "LocalSubjectAccessReview" => access(call, AccessReview::Local, question).await,
        "SelfSubjectRulesReview" => {
            let roles = call.cluster.roles(call.server.storage()).await?;
            let namespace = reviews::rules_review_namespace(&question)?;
            Ok(reviews::rules_review(&roles.rules_for(&call.identity, namespace)))
        }
        "TokenReview" => token_review(call, question).await,
        "SelfSubjectReview" => Ok(reviews::self_review(&call.identity, now)),
        other => Err(Status::internal(format!("nobody answers a {other}"))),
    }
}

async fn access(call: &Call, kind: AccessReview, question: Value) -> Result<Value, Status> {
    let decision = {
        let asked = reviews::question(kind, &question, &call.identity, &call.namespace)?;
        if asked.who.is_master() {
            Decision { allowed: true, reason: String::new() }
        } else {
            let roles = call.cluster.roles(call.server.storage()).await?;
            roles.allows(&asked.who, &asked.what)
        }
    };
    Ok(reviews::answer(question, &decision))
}

async fn token_review(call: &Call, question: Value) -> Result<Value, Status> {
    let (token, asked) = reviews::token_asked_about(&question)?;
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let audiences = (!asked.is_empty()).then_some(asked.as_slice());
    let mut known = call.server.identify_token(token, audiences).await.ok();
    // A token that opens nothing here is nobody's here.
    if let Some((identity, _)) = &known
        && !call.server.may_enter(identity, &call.cluster.address()).await?
    {
        known = None;
    }
    let unknown = || "the token is not known here, or has expired".to_owned();
    Ok(reviews::token_answer(question, known.ok_or_else(unknown)))
}

/// A token for a service account.
pub(super) async fn token(mut call: Call, brought: &Brought) -> Result<Response<Body>, Status> {
    let request = decode_body(&brought.content_type, &brought.body, false)?.value;
    let account = call.found().await?.object;
    let posted = posted("authentication.k8s.io/v1", "TokenRequest", &request);
    let request = admission::mutate_posted(&mut call, posted).await?;
    let change = Change { operation: Operation::Create, old: None, new: None };
    admission::ask_webhooks(&call, &change, &mut Admitting::new(&call)).await?;
    admission::judge(&call, &change).await?;
    let now = call.now.as_second();
    let who =
        ServiceAccount { namespace: &call.namespace, name: &call.name, uid: object::uid(&account) };
    let mut spec = token_request::specification(&request, &who, &call.cluster.id)?;
    if let Some(bound) = &spec.bound {
        let (plural, namespace) = match bound.kind {
            BoundKind::Pod => ("pods", call.namespace.as_str()),
            BoundKind::Secret => ("secrets", call.namespace.as_str()),
            BoundKind::Node => ("nodes", ""),
        };
        let row = storage::row(&call.cluster.id, namespace, &bound.object.name);
        let key = Key::new(storage::table_of("", plural, "-"), row);
        let found = call.server.storage().get(&key).await?;
        let found = found.ok_or_else(|| Status::not_found("", plural, &bound.object.name))?;
        token_request::bind(&mut spec, &object::decode(&found))?;
    }
    let token = call
        .server
        .token_key()
        .issue(&spec, now)
        .map_err(|_| Status::internal("the token cannot be signed"))?;
    Ok(http::json(201, &token_request::answer(&request, &spec, &token, now)))
}
