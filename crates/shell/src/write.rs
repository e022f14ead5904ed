//! One write to one API server, and what came of it.

use crate::cache::as_cached;
use crate::feed::Api;
use crate::feed::REQUEST_TIMEOUT;
use crate::server::{Server, resource};
use interlock_kernel::{Address, DryRun, MANAGER, Object, Part, Write};
use kube::Resource;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Request;
use serde_json::{Map, Value, json};
use std::future::Future;
use tokio::time::timeout;

/// What came of a write.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was done; the object as the server has it now, if it still has it.
    Done(Option<Object>),
    /// The object is no longer the version, or the very object, that the decision rests on.
    Conflict,
    /// There is no such object, or no such namespace.
    Gone,
    /// There is one of that name already.
    Exists,
    /// The server has too much to do and did not do it.
    Busy,
    /// The server will not do it, and says why; to ask again is of little use.
    Refused(String),
    /// It may or may not have been done: no answer came, or one that does not say.
    Unknown(String),
}

/// Performs a write on the server that plays its place.
pub async fn perform(server: &Server, write: &Write) -> Outcome {
    let address = write.address();
    if address.kind.is_namespaced != address.name.namespace.is_some() {
        return Outcome::Refused(format!("{address} has the wrong scope"));
    }
    let api = server.api_of(address);
    let name = &*address.name.name;
    match write {
        Write::Create { object, .. } => create(server, address, object).await,
        Write::Patch { seen, part, change, .. } => {
            let guard = json!({"uid": seen.uid, "resourceVersion": seen.resource_version});
            let body = with_metadata(change, guard);
            let params = PatchParams { field_manager: manager(), ..PatchParams::default() };
            let request = PatchRequest { params, patch: Patch::Merge(body) };
            judge(address, send_patch(&api, name, *part, &request)).await
        }
        Write::Apply { part, object, manager, is_forced, uid, resource_version, .. } => {
            let body = guarded(whole(address, object), uid.as_ref(), resource_version.as_ref());
            let params = PatchParams { force: *is_forced, ..PatchParams::apply(manager) };
            let request = PatchRequest { params, patch: Patch::Apply(body) };
            judge(address, send_patch(&api, name, *part, &request)).await
        }
        Write::Delete { uid, resource_version, grace_seconds, .. } => {
            let params = DeleteParams {
                grace_period_seconds: *grace_seconds,
                preconditions: Some(Preconditions {
                    uid: Some(uid.clone()),
                    resource_version: resource_version.clone(),
                }),
                ..DeleteParams::default()
            };
            judge(address, async { Ok(api.delete(name, &params).await?.left()) }).await
        }
    }
}

/// Asks the server what it would make of an apply: the same request, which it does not do.
pub(crate) async fn dry_run(server: &Server, asked: &DryRun) -> kube::Result<DynamicObject> {
    let DryRun { address, object, manager, is_forced, uid, resource_version } = asked;
    let body = guarded(whole(address, object), uid.as_ref(), resource_version.as_ref());
    let params = PatchParams { force: *is_forced, dry_run: true, ..PatchParams::apply(manager) };
    let api = server.api_of(address);
    let patch = Patch::Apply(body);
    let answer = api.patch(&address.name.name, &params, &patch);
    let too_late = |_| kube::Error::Service("the server did not answer in time".into());
    timeout(REQUEST_TIMEOUT, answer).await.map_err(too_late)?
}

/// An object with what an apply of it rests on.
fn guarded(object: Value, uid: Option<&String>, resource_version: Option<&String>) -> Value {
    let guards = [("uid", uid), ("resourceVersion", resource_version)];
    let stated = guards.into_iter().filter_map(|(key, seen)| Some((key, seen?)));
    stated.fold(object, |object, (key, seen)| with_metadata(&object, json!({ key: seen })))
}

fn manager() -> Option<String> {
    Some(MANAGER.to_owned())
}

async fn create(server: &Server, address: &Address, object: &Value) -> Outcome {
    let path = DynamicObject::url_path(&resource(&address.kind), address.name.namespace.as_deref());
    let body = match serde_json::to_vec(&whole(address, object)) {
        Ok(body) => body,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let params = PostParams { field_manager: manager(), ..PostParams::default() };
    let mut request = match Request::new(path).create(&params, body) {
        Ok(request) => request,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    // Tells traces of requests apart, as the typed way of the client does.
    request.extensions_mut().insert("create");
    let reply = async { server.client().request::<DynamicObject>(request).await.map(Some) };
    judge(address, reply).await
}

struct PatchRequest {
    params: PatchParams,
    patch: Patch<Value>,
}

async fn send_patch(
    api: &Api,
    name: &str,
    part: Part,
    request: &PatchRequest,
) -> kube::Result<Option<DynamicObject>> {
    let PatchRequest { params, patch } = request;
    let patched = match part {
        Part::Main => api.patch(name, params, patch).await,
        Part::Status => api.patch_status(name, params, patch).await,
    };
    patched.map(Some)
}

/// What a reply, or the lack of one, says.
async fn judge(
    address: &Address,
    reply: impl Future<Output = kube::Result<Option<DynamicObject>>>,
) -> Outcome {
    match timeout(REQUEST_TIMEOUT, reply).await {
        Ok(Ok(object)) => Outcome::Done(object.map(|object| as_cached(&address.kind, object))),
        Ok(Err(error)) => outcome_of(error),
        Err(_) => Outcome::Unknown("the server did not answer in time".to_owned()),
    }
}

fn outcome_of(error: kube::Error) -> Outcome {
    let status = match error {
        kube::Error::Api(status) => status,
        // These say that no request could be made of it: nothing was sent.
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
            return Outcome::Refused(error.to_string());
        }
        error => return Outcome::Unknown(error.to_string()),
    };
    match (status.code, status.reason.as_str()) {
        (409, "AlreadyExists") => Outcome::Exists,
        // Fields of somebody else: they stay so however often it is asked.
        (409, _) if is_of_another_manager(&status) => Outcome::Refused(status.message),
        (409, _) => Outcome::Conflict,
        (404 | 410, _) => Outcome::Gone,
        (429, _) => Outcome::Busy,
        (400..=499, _) => Outcome::Refused(status.message),
        _ => Outcome::Unknown(status.message),
    }
}

pub(crate) fn is_of_another_manager(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "FieldManagerConflict")
}

/// The fields that a controller states, with those that the address states.
pub(crate) fn whole(address: &Address, object: &Value) -> Value {
    let mut named = json!({"name": &*address.name.name});
    if let Some(namespace) = &address.name.namespace {
        named["namespace"] = json!(&**namespace);
    }
    let mut whole = with_metadata(object, named);
    whole["apiVersion"] = json!(address.kind.api_version());
    whole["kind"] = json!(address.kind.kind);
    whole
}

fn with_metadata(object: &Value, more: Value) -> Value {
    let mut object = object.as_object().cloned().unwrap_or_default();
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let (Some(metadata), Value::Object(more)) = (metadata.as_object_mut(), more) {
        metadata.extend(more);
    }
    Value::Object(object)
}

/// What a write does, in words.
pub(crate) fn in_words(write: &Write) -> String {
    let verb = match write {
        Write::Create { .. } => "create",
        Write::Patch { part: Part::Main, .. } => "patch",
        Write::Patch { part: Part::Status, .. } => "patch the status of",
        Write::Apply { part: Part::Main, .. } => "apply",
        Write::Apply { part: Part::Status, .. } => "apply the status of",
        Write::Delete { .. } => "delete",
    };
    format!("{verb} {}", write.address())
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_kernel::GroupVersion;
    use interlock_kernel::{Kind, Name, Place};
    use kube::core::Status;

    fn outcome(code: u16, reason: &str) -> Outcome {
        let status = Status::failure("no", reason).with_code(code);
        outcome_of(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn only_an_answer_that_says_so_tells_that_nothing_was_done() {
        assert_eq!(outcome(409, "Conflict"), Outcome::Conflict);
        assert_eq!(outcome(409, "AlreadyExists"), Outcome::Exists);
        assert_eq!(outcome(404, "NotFound"), Outcome::Gone);
        assert_eq!(outcome(429, "TooManyRequests"), Outcome::Busy);
        assert_eq!(outcome(422, "Invalid"), Outcome::Refused("no".to_owned()));
        assert_eq!(outcome(500, "InternalError"), Outcome::Unknown("no".to_owned()));
        assert_eq!(outcome(503, ""), Outcome::Unknown("no".to_owned()));
        assert_eq!(outcome(0, ""), Outcome::Unknown("no".to_owned()));
    }

    #[test]
    fn an_object_carries_what_its_address_says() {
        let kind = Kind::namespaced(GroupVersion::new("apps", "v1"), "Deployment", "deployments");
        let address = Address::new(Place::HUB, &kind, Name::within("a", "x"));
        let object = json!({"metadata": {"labels": {"k": "v"}}, "spec": {"replicas": 1}});
        assert_eq!(
            whole(&address, &object),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"namespace": "a", "name": "x", "labels": {"k": "v"}},
                "spec": {"replicas": 1},
            })
        );
    }
}
