//! Whether a webhook is about a write, and one call of it.

use super::review::{self, Answer};
use crate::admission::evaluate::{self, Values};
use crate::admission::request::{Operation, Request};
use crate::admission_registration::hook::{Hook, Sort};
use crate::call::Admitted;
use crate::object;
use crate::resource::Resource;
use crate::schema::cel::{Val, Who};
use crate::status::Status;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

/// What webhooks are matched by beside the write itself.
pub(super) struct Facts {
    namespace: Option<Value>,
    who: Option<Arc<Who>>,
}

/// Which call of which round it is, for the audit log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) round: usize,
    pub(super) index: usize,
}

impl Facts {
    pub(super) async fn read<'h>(
        request: &Request<'_>,
        mut hooks: impl Iterator<Item = &'h Hook>,
    ) -> Result<Facts, Status> {
        let namespace = match &*request.namespace {
            "" => None,
            _ => request.call.server.storage().get(&request.namespace_key()).await?,
        };
        let is_lost = namespace.is_none() && !request.namespace.is_empty();
        if is_lost && request.operation == Operation::Create {
            return Err(Status::not_found("", "namespaces", &request.namespace));
        }
        let who = match hooks.any(Hook::asks_authorizer) {
            true => Some(request.who().await?),
            false => None,
        };
        Ok(Facts { namespace: namespace.as_ref().map(object::decode), who })
    }

    /// The resource as which a write is shown to a webhook; none if the webhook is not about it.
    pub(super) fn matched(
        &self,
        hook: &Hook,
        request: &Request<'_>,
    ) -> Result<Option<Arc<Resource>>, Status> {
        let matched = hook.matching.matched(request, self.namespace.as_ref());
        let matched = matched.map_err(|why| review::failure(hook, &why))?;
        let Some(matched) = matched else { return Ok(None) };
        match self.conditions_hold(hook, request, &matched) {
            Ok(true) => Ok(Some(matched)),
            Ok(false) => Ok(None),
            Err(why) => {
                let resource = &request.call.resource;
                Err(Status::forbidden(&resource.group, &resource.plural, &request.name, why))
            }
        }
    }

    fn conditions_hold(
        &self,
        hook: &Hook,
        request: &Request<'_>,
        matched: &Resource,
    ) -> Result<bool, String> {
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let asked = request.value(matched);
        let (object, old) = request.as_version(matched);
        let json = |value| Val::from_json(value, None);
        let mut values: Values<'_> = vec![
            ("object", json(&object)),
            ("oldObject", json(&old)),
            ("request", json(&asked)),
            ("namespaceObject", Val::Null),
        ];
        if let Some(who) = &self.who {
            values.extend(request.authorities(who));
        }
        evaluate::conditions_hold(&hook.conditions, hook.ignores_failures, &values)
    }
}

/// What a webhook said, or why it said nothing.
pub(super) enum Heard {
    Answer(Answer),
    /// The call failed.
    Failure(String),
}

/// Calls a webhook once.
pub(super) async fn call(
    request: &Request<'_>,
    hook: &Hook,
    matched: &Resource,
    deadline: Instant,
) -> Result<Heard, Status> {
    let call = request.call;
    if call.dry_run && !hook.takes_dry_run {
        let why = format!("admission webhook {:?} does not support dry run", hook.name);
        return Err(Status::bad_request(why));
    }
    let uid = call.server.new_uid();
    let question = review::question(request, matched, &uid, hook.version);
    let seconds = hook.timeout.as_secs();
    let own_deadline = Instant::now() + hook.timeout;
    let posting = hook.target.post(call, question, seconds);
    let answered = tokio::time::timeout_at(own_deadline.min(deadline), posting).await;
    let shown = || hook.target.shown(seconds);
    let heard = match answered {
        Ok(Ok(body)) => match review::answer(hook, &uid, &body) {
            Ok(answer) => Heard::Answer(answer),
            Err(why) => Heard::Failure(why),
        },
        Ok(Err(why)) => Heard::Failure(format!("failed to call webhook: {}: {why}", shown())),
        Err(_) if deadline <= own_deadline => {
            return Err(Status::timeout(
                "Timeout: request did not complete within requested timeout - context deadline \
                 exceeded",
            ));
        }
        Err(_) => Heard::Failure(format!(
            "failed to call webhook: {}: context deadline exceeded",
            shown()
        )),
    };
    Ok(heard)
}

/// Does with what was heard what the webhook's failurePolicy says. Gives the answer of a webhook that lets the write
/// pass; none if the call failed and may fail.
pub(super) fn pass(
    hook: &Hook,
    heard: Heard,
    turn: Turn,
    said: &mut Admitted,
) -> Result<Option<Answer>, Status> {
    let mut answer = match heard {
        Heard::Answer(answer) => answer,
        Heard::Failure(why) if hook.ignores_failures => {
            tracing::debug!(webhook = hook.name, because = why, "a webhook failed and is skipped");
            let sort = match hook.sort {
                Sort::Mutating => "mutation",
                Sort::Validating => "validating",
            };
            let Turn { round, index } = turn;
            let key =
                format!("failed-open.{sort}.webhook.admission.k8s.io/round_{round}_index_{index}");
            said.annotations.insert(key, hook.name.clone());
            return Ok(None);
        }
        Heard::Failure(why) => return Err(review::failure(hook, &why)),
    };
    said.warnings.append(&mut answer.warnings);
    for (key, text) in answer.annotations.drain(..) {
        said.annotations.entry(key).or_insert_with(|| crate::admission::cut(text));
    }
    if !answer.is_allowed {
        return Err(review::denial(hook, &answer.status));
    }
    Ok(Some(answer))
}
