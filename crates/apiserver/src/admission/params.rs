//! The parameters of a policy, read from the store, with guards that they are still the same at the commit.

use super::matching::is_selected;
use super::request::Request;
use crate::admission_registration::policy::{ParamKind, ParamRef};
use crate::call::own_call_for;
use crate::object;
use crate::resource::Resource;
use crate::status::Status;
use crate::storage::{self, Owner};
use interlock_store::{Guard, Key, KeyRange};
use serde_json::Value;
use std::sync::Arc;

/// What a binding is evaluated with, each on its own; a policy without parameters once, with none.
pub(super) struct Params {
    pub(super) objects: Vec<Value>,
    pub(super) guards: Vec<Guard>,
}

/// Why there are no parameters.
pub(super) enum NoParams {
    /// The policy or the binding does not fit.
    Misconfigured(String),
    /// The store cannot be read.
    Refused(Status),
}

impl From<Status> for NoParams {
    fn from(status: Status) -> Self {
        NoParams::Refused(status)
    }
}

fn misconfigured<T>(why: impl Into<String>) -> Result<T, NoParams> {
    Err(NoParams::Misconfigured(why.into()))
}

/// The resource that a policy's parameters are of.
pub(super) fn resource(request: &Request<'_>, kind: &ParamKind) -> Result<Arc<Resource>, String> {
    let clusters = request.call.server.clusters();
    clusters.find_kind(&request.call.cluster, &kind.api_version, &kind.kind).ok_or_else(|| {
        format!(
            "failed to find resource referenced by paramKind: '{}, Kind={}'",
            kind.api_version, kind.kind
        )
    })
}

/// Reads the parameters of a binding.
pub(super) async fn read(
    request: &Request<'_>,
    resource: &Arc<Resource>,
    wanted: &ParamRef,
) -> Result<Params, NoParams> {
    let namespace = if resource.is_namespaced {
        match (wanted.namespace.as_str(), &*request.namespace) {
            ("", "") => {
                return misconfigured(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped \
                     resources",
                );
            }
            ("", own) => own,
            (given, _) => given,
        }
    } else if wanted.namespace.is_empty() {
        ""
    } else {
        return misconfigured(
            "paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        );
    };
    let params = match &wanted.selector {
        _ if !wanted.name.is_empty() => named(request, resource, namespace, &wanted.name).await?,
        Some(Ok(selector)) => {
            let all = all(request, resource, namespace).await?;
            let mut params = Params { objects: Vec::new(), guards: Vec::new() };
            for (object, guard) in all {
                if is_selected(selector, &object) {
                    params.objects.push(object);
                    params.guards.push(guard);
                }
            }
            // Whoever writes such a parameter waits for the writes under way (`Held::Alone`).
            params.guards.truncate(super::MOST_GUARDS);
            params
        }
        Some(Err(why)) => return misconfigured(why.clone()),
        None => return misconfigured("one of name or selector must be provided"),
    };
    if params.objects.is_empty() && wanted.denies_without {
        return misconfigured(
            "no params found for policy binding with `Deny` parameterNotFoundAction",
        );
    }
    Ok(params)
}

async fn named(
    request: &Request<'_>,
    resource: &Arc<Resource>,
    namespace: &str,
    name: &str,
) -> Result<Params, Status> {
    let call = own_call_for(&request.call.server, &request.call.cluster, Arc::clone(resource))
        .for_name(name, namespace);
    let live = call.live().await?;
    let guard = storage::guard(&call.key(), live.as_ref().and_then(|live| live.modified));
    let objects = live.map(|live| live.object).into_iter().collect();
    Ok(Params { objects, guards: vec![guard] })
}

/// All objects of a kind in a namespace, or outside of namespaces.
async fn all(
    request: &Request<'_>,
    resource: &Arc<Resource>,
    namespace: &str,
) -> Result<Vec<(Value, Guard)>, Status> {
    let call = own_call_for(&request.call.server, &request.call.cluster, Arc::clone(resource));
    let namespace = (!namespace.is_empty()).then_some(namespace);
    let prefix = storage::prefix(Owner::Cluster(&request.call.cluster.id), namespace);
    let range = KeyRange::prefix(storage::table(resource), prefix);
    let page = request.call.server.storage().range(range, None, usize::MAX).await;
    let page = page.map_err(storage::read_refused)?;
    Ok(page
        .items
        .iter()
        .map(|item| {
            let mut param = object::decode(item);
            call.after_reading(&mut param);
            let key = Key::new(item.key.table.clone(), item.key.row.clone());
            (param, Guard::At(key, item.modified))
        })
        .collect())
}
