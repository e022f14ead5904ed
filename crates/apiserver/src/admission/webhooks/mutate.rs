//! Mutating webhooks: one after the other, each sees what the one before made of the object.

use super::review;
use super::rounds::{Admitting, Asked};
use super::run::{self, Facts, Turn};
use crate::admission::is_exempt;
use crate::admission::request::{Change, Operation, Request};
use crate::admission_registration::HookSet;
use crate::admission_registration::hook::{Hook, Sort};
use crate::call::{Admitted, Call, Endpoint, Shown};
use crate::object;
use crate::patch;
use crate::resource::Resource;
use crate::status::Status;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::time::Instant;

/// Webhooks are called, and those that ask for it once more.
const ROUNDS: usize = 2;

/// Shows a write to the mutating webhooks of the cluster. Gives the object that they made of it; none if they changed
/// nothing.
pub(crate) async fn mutate(
    call: &Call,
    change: &Change<'_>,
    admitting: &mut Admitting,
) -> Result<Option<Value>, Status> {
    // What was posted below an object was shown to them before.
    if is_exempt(call) || call.shown.in_place().is_some() {
        return Ok(None);
    }
    let set = call.cluster.webhooks.get(&call.cluster.id, call.server.storage()).await?;
    if set.of(Sort::Mutating).next().is_none() {
        return Ok(None);
    }
    if let Some(known) = &admitting.mutated
        && known.is_about(change.old, change.new)
    {
        return Ok(known.outcome.clone());
    }
    let subject = Subject {
        call,
        operation: change.operation,
        old: change.old,
        new: change.new.cloned(),
        posted: None,
    };
    let mut mutating = Mutating::new(subject, admitting.deadline);
    let is_changed = mutating.run(&set).await?;
    let changed = mutating.subject.new.filter(|_| is_changed);
    admitting.mutated = Some(Asked::new(change.old, change.new, changed.clone()));
    Ok(changed)
}

/// Shows what was posted below an object, an Eviction say, to the mutating webhooks of the cluster. The call shows it
/// to admission from then on.
pub(crate) async fn mutate_posted(call: &mut Call, posted: Value) -> Result<Arc<Value>, Status> {
    mutate_in_place(call, Shown::Posted(Arc::new(posted))).await
}

/// Shows the options of a connection to the mutating webhooks of the cluster, likewise.
pub(crate) async fn mutate_options(call: &mut Call, options: Value) -> Result<Arc<Value>, Status> {
    mutate_in_place(call, Shown::Connection(Arc::new(options))).await
}

async fn mutate_in_place(call: &mut Call, shown: Shown) -> Result<Arc<Value>, Status> {
    call.shown = shown;
    let set = call.cluster.webhooks.get(&call.cluster.id, call.server.storage()).await?;
    if !is_exempt(call) && set.of(Sort::Mutating).next().is_some() {
        let subject = Subject {
            call,
            // The request has the operation of what is shown.
            operation: Operation::Create,
            old: None,
            new: None,
            posted: Some(call.for_name(&call.name, &call.namespace)),
        };
        let mut mutating = Mutating::new(subject, Admitting::new(call).deadline);
        mutating.run(&set).await?;
        if let Some(changed) = mutating.subject.posted {
            call.shown = changed.shown;
        }
    }
    let shown = call.shown.in_place().map(Arc::clone);
    shown.ok_or_else(|| Status::internal("what was posted is lost"))
}

/// What webhooks change.
struct Subject<'c> {
    call: &'c Call,
    operation: Operation,
    old: Option<&'c Value>,
    new: Option<Value>,
    /// The call with what was posted, or with the options of a connection, if that is what they change.
    posted: Option<Call>,
}

impl Subject<'_> {
    fn request(&self) -> Request<'_> {
        let change = Change { operation: self.operation, old: self.old, new: self.new.as_ref() };
        Request::new(self.posted.as_ref().unwrap_or(self.call), &change)
    }

    /// Takes in what a webhook made of what it was shown.
    fn take(&mut self, hook: &Hook, mut patched: Value) -> Result<(), Status> {
        let wrong = |why: String| {
            review::internal(format!("the patch of the admission webhook {:?}: {why}", hook.name))
        };
        if let Some(call) = &mut self.posted {
            if let Some(before) = call.shown.in_place() {
                for field in ["apiVersion", "kind"] {
                    patched[field] = before[field].clone();
                }
            }
            let patched = Arc::new(patched);
            call.shown = match &call.shown {
                Shown::Connection(_) => Shown::Connection(patched),
                Shown::Object | Shown::Scale(_) | Shown::Posted(_) => Shown::Posted(patched),
            };
            return Ok(());
        }
        let Some(new) = &mut self.new else { return Err(unsupported(hook)) };
        match &self.call.shown {
            Shown::Scale(paths) => {
                let replicas = &patched["spec"]["replicas"];
                let count = if replicas.is_null() { Some(0) } else { replicas.as_i64() };
                match count.filter(|count| (0..=i64::from(i32::MAX)).contains(count)) {
                    Some(count) => object::put_at(new, &paths.spec_replicas, json!(count)),
                    None => return Err(wrong(format!("spec.replicas is {replicas}"))),
                }
            }
            // The handler has made exactly the change that the subresource may make.
            Shown::Object if self.call.endpoint == Endpoint::Other => {
                return Err(unsupported(hook));
            }
            Shown::Object | Shown::Posted(_) | Shown::Connection(_) => {
                // Who owns which field is the server's to say.
                let owners = object::metadata(new).get("managedFields").cloned();
                let metadata = object::metadata_mut(&mut patched);
                match owners {
                    Some(owners) => metadata.insert("managedFields".to_owned(), owners),
                    None => metadata.remove("managedFields"),
                };
                *new = self.call.take_changed(patched).map_err(|status| wrong(status.message))?;
            }
        }
        Ok(())
    }
}

/// The refusal of a patch where there is nothing to change.
fn unsupported(hook: &Hook) -> Status {
    review::internal(format!(
        "admission webhook {:?} attempted to modify the object, which is not supported for this \
         operation",
        hook.name
    ))
}

/// A write while webhooks change it.
struct Mutating<'c> {
    subject: Subject<'c>,
    deadline: Instant,
    said: Admitted,
}

impl<'c> Mutating<'c> {
    fn new(subject: Subject<'c>, deadline: Instant) -> Self {
        Mutating { subject, deadline, said: Admitted::default() }
    }

    /// Calls the webhooks. Says whether they changed anything.
    async fn run(&mut self, set: &HookSet) -> Result<bool, Status> {
        let result = self.rounds(set).await;
        let request = self.subject.request();
        let place = format!("mutating {}/{}", request.namespace, request.name);
        request.call.notes.admitted(&place, std::mem::take(&mut self.said));
        result
    }

    async fn rounds(&mut self, set: &HookSet) -> Result<bool, Status> {
        let facts = Facts::read(&self.subject.request(), set.of(Sort::Mutating)).await?;
        let call = self.subject.call;
        let mut place = None;
        // Those that were called and ask to be called again, and those that are called again.
        let (mut called, mut again) = (BTreeSet::new(), BTreeSet::new());
        let mut is_changed = false;
        for round in 0..ROUNDS {
            for (index, hook) in set.of(Sort::Mutating).enumerate() {
                if round > 0 && !again.contains(&index) {
                    continue;
                }
                let matched = facts.matched(hook, &self.subject.request())?;
                let Some(matched) = matched else { continue };
                if place.is_none() {
                    place = Some(call.cluster.webhooks.place().await?);
                }
                if self.by_hook(hook, &matched, Turn { round, index }).await? {
                    is_changed = true;
                    again.extend(called.iter().copied().filter(|other| *other != index));
                }
                if hook.is_reinvoked {
                    called.insert(index);
                }
            }
            if again.is_empty() {
                break;
            }
        }
        Ok(is_changed)
    }

    /// Calls one webhook. Says whether it changed anything.
    async fn by_hook(
        &mut self,
        hook: &Hook,
        matched: &Resource,
        turn: Turn,
    ) -> Result<bool, Status> {
        let patched = {
            let request = self.subject.request();
            let heard = run::call(&request, hook, matched, self.deadline).await?;
            let Some(answer) = run::pass(hook, heard, turn, &mut self.said)? else {
                return Ok(false);
            };
            let patched = match answer.patch.as_slice() {
                [] => None,
                patch => {
                    let (shown, _) = request.as_version(matched);
                    applied(hook, &shown, patch)?
                }
            };
            patched.map(|patched| request.own_version(matched, patched))
        };
        self.annotate(hook, turn, patched.is_some());
        match patched {
            Some(patched) => self.subject.take(hook, patched).map(|()| true),
            None => Ok(false),
        }
    }

    fn annotate(&mut self, hook: &Hook, turn: Turn, is_changed: bool) {
        let Turn { round, index } = turn;
        let key = format!("mutation.webhook.admission.k8s.io/round_{round}_index_{index}");
        let value = json!({
            "configuration": hook.configuration, "webhook": hook.name, "mutated": is_changed,
        });
        self.said.annotations.insert(key, value.to_string());
    }
}

/// The object with a webhook's patch; none if that is the same object.
fn applied(hook: &Hook, shown: &Value, patch: &[u8]) -> Result<Option<Value>, Status> {
    let wrong = |why: String| {
        review::internal(format!("the patch of the admission webhook {:?}: {why}", hook.name))
    };
    let patch: Value = serde_json::from_slice(patch).map_err(|why| wrong(why.to_string()))?;
    if patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    if !shown.is_object() {
        return Err(unsupported(hook));
    }
    let patched = patch::json(shown, &patch).map_err(|status| wrong(status.message))?;
    if !patched.is_object() {
        return Err(wrong("what it makes is no object".to_owned()));
    }
    Ok((patched != *shown).then_some(patched))
}
