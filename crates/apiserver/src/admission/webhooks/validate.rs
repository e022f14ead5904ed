//! Validating webhooks: all are asked at the same time, and the first refusal in their order counts.

use super::rounds::{Admitting, Asked};
use super::run::{self, Facts, Heard, Turn};
use crate::admission::is_exempt;
use crate::admission::judge::judge;
use crate::admission::request::{Change, Request};
use crate::admission_registration::hook::{Hook, Sort};
use crate::call::{Admitted, Call};
use crate::resource::Resource;
use crate::status::Status;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

/// So many webhooks are asked about one write at the same time.
const AT_ONCE: usize = 4;

type Asking<'a> = Pin<Box<dyn Future<Output = Result<Heard, Status>> + Send + 'a>>;

/// Asks the validating webhooks of the cluster about a write.
pub(crate) async fn validate(
    call: &Call,
    change: &Change<'_>,
    admitting: &mut Admitting,
) -> Result<(), Status> {
    if is_exempt(call) {
        return Ok(());
    }
    let set = call.cluster.webhooks.get(&call.cluster.id, call.server.storage()).await?;
    if set.of(Sort::Validating).next().is_none() {
        return Ok(());
    }
    if admitting.approved.as_ref().is_some_and(|known| known.is_about(change.old, change.new)) {
        return Ok(());
    }
    let request = Request::new(call, change);
    let facts = Facts::read(&request, set.of(Sort::Validating)).await?;
    let mut matching: Vec<(&Hook, Arc<Resource>)> = Vec::new();
    for hook in set.of(Sort::Validating) {
        if let Some(matched) = facts.matched(hook, &request)? {
            matching.push((hook, matched));
        }
    }
    if matching.is_empty() {
        return Ok(());
    }
    // As upstream: what a policy refuses is shown to no webhook. The write is judged again when it is committed.
    judge(call, change).await?;
    let place = call.cluster.webhooks.place().await?;
    let deadline = admitting.deadline;
    let asking = matching.iter().map(|(hook, matched)| -> Asking<'_> {
        Box::pin(run::call(&request, hook, matched, deadline))
    });
    let heard = all(asking.collect()).await;
    drop(place);
    let mut said = Admitted::default();
    let mut refusal = None;
    for (index, (heard, (hook, _))) in heard.into_iter().zip(&matching).enumerate() {
        let turn = Turn { round: 0, index };
        let passed = heard.and_then(|heard| run::pass(hook, heard, turn, &mut said));
        refusal = refusal.or(passed.err());
    }
    call.notes.admitted(&format!("validating {}/{}", request.namespace, request.name), said);
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    admitting.approved = Some(Asked::new(change.old, change.new, None));
    Ok(())
}

/// What all of them give, in their order; a few at a time.
async fn all(waiting: Vec<Asking<'_>>) -> Vec<Result<Heard, Status>> {
    let mut waiting = waiting.into_iter().enumerate();
    let mut running: Vec<(usize, Asking<'_>)> = waiting.by_ref().take(AT_ONCE).collect();
    let mut heard: Vec<(usize, Result<Heard, Status>)> = Vec::new();
    std::future::poll_fn(|context| {
        loop {
            running.retain_mut(|(index, asking)| match asking.as_mut().poll(context) {
                Poll::Ready(answer) => {
                    heard.push((*index, answer));
                    false
                }
                Poll::Pending => true,
            });
            let polled = running.len();
            running.extend(waiting.by_ref().take(AT_ONCE - polled));
            if running.is_empty() {
                return Poll::Ready(());
            }
            if running.len() == polled {
                return Poll::Pending;
            }
        }
    })
    .await;
    heard.sort_by_key(|(index, _)| *index);
    heard.into_iter().map(|(_, answer)| answer).collect()
}
