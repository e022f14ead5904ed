//! What the applier may do on its cluster, as the API server of the cluster says itself.

use interlock_rollouts::applier::outside::Scope;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use std::collections::BTreeMap;

/// What an object takes that is applied, and pruned later.
const VERBS: [&str; 4] = ["get", "create", "patch", "delete"];
/// What it takes to see which objects there are: those of all namespaces are read by one list.
const LIST: &str = "list";
const ALL: &str = "*";

/// The verbs that are not allowed, for each scope in which there are any. Who may do everything everywhere is asked about
/// nothing else. An API server that answers no reviews proves nothing: what is not allowed is refused when it is written.
pub(super) async fn lacks(
    cluster: &Client,
    scopes: Vec<Scope>,
) -> Result<BTreeMap<Scope, Vec<String>>, String> {
    let api: Api<SelfSubjectAccessReview> = Api::all(cluster.clone());
    let mut open = Vec::new();
    for verb in VERBS.into_iter().chain([LIST]) {
        if !allows(&api, Asked { verb, group: ALL, resource: ALL, namespace: None }).await? {
            open.push(verb);
        }
    }
    let mut lacking: BTreeMap<Scope, Vec<String>> = BTreeMap::new();
    for scope in scopes {
        for verb in &open {
            let (group, resource) = (&*scope.kind.group, &*scope.kind.plural);
            let namespace = scope.namespace.as_deref().filter(|_| *verb != LIST);
            if !allows(&api, Asked { verb, group, resource, namespace }).await? {
                lacking.entry(scope.clone()).or_default().push((*verb).to_owned());
            }
        }
    }
    Ok(lacking)
}

/// A request that the applier may or may not make.
struct Asked<'a> {
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
    namespace: Option<&'a str>,
}

async fn allows(api: &Api<SelfSubjectAccessReview>, asked: Asked<'_>) -> Result<bool, String> {
    let attributes = ResourceAttributes {
        verb: Some(asked.verb.to_owned()),
        group: Some(asked.group.to_owned()),
        resource: Some(asked.resource.to_owned()),
        namespace: asked.namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        non_resource_attributes: None,
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    match api.create(&PostParams::default(), &review).await {
        Ok(review) => Ok(review.status.is_none_or(|status| status.allowed)),
        Err(kube::Error::Api(status)) if matches!(status.code, 403..=405) => Ok(true),
        Err(error) => Err(format!("cannot ask what the applier may do: {error}")),
    }
}
