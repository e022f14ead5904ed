//! What single kinds do on a write beyond their schema: the few whose objects change what the server itself does.

use crate::access::escalation::{self, Write};
use crate::access::validation;
use crate::admission;
use crate::admission_registration;
use crate::call::{Call, Endpoint};
use crate::clusters::{HUB_GROUP, ROOT, definitions_table};
use crate::crd;
use crate::flowcontrol;
use crate::name;
use crate::object;
use crate::resource::Resource;
use crate::server::Server;
use crate::status::{FieldError, Status};
use crate::storage;
use interlock_store::{Guard, Key, Operation, Transaction};
use serde_json::{Value, json};

/// The finalizer that keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// The finalizer that keeps a logical cluster until its objects are gone.
pub(crate) const CONTENTS: &str = "interlock.dev/contents";

/// The kinds that this room knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    Namespace,
    Definition,
    LogicalCluster,
    Rights,
    CertificateRequest,
    Flow,
    Admission,
}

/// What is accepted for those who read it again, and changes nothing, must not look as if it did.
const NOT_BY_FLOW: &str = "this server shares requests out by its own limits: FlowSchemas and \
                           PriorityLevelConfigurations are stored and have no effect";

/// The label of a namespace that says what upstream does with pods that break a standard: `enforce`, `warn`, `audit`.
const POD_SECURITY: &str = "pod-security.kubernetes.io/";

fn special(resource: &Resource) -> Option<Special> {
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => Some(Special::Namespace),
        ("apiextensions.k8s.io", "customresourcedefinitions") => Some(Special::Definition),
        (HUB_GROUP, "logicalclusters") => Some(Special::LogicalCluster),
        ("rbac.authorization.k8s.io", _) => Some(Special::Rights),
        ("certificates.k8s.io", "certificatesigningrequests") => Some(Special::CertificateRequest),
        _ if admission_registration::is_configuration(resource) => Some(Special::Admission),
        (flowcontrol::GROUP, _) => Some(Special::Flow),
        _ => None,
    }
}

/// Makes a new object whole before it is validated.
pub(crate) fn prepare_create(call: &Call, object: &mut Value) -> Result<(), Status> {
    match special(&call.resource) {
        Some(Special::Definition) => {
            crd::defaults(object);
        }
        Some(Special::LogicalCluster) => {
            let id = call.server.new_cluster_id(object::name(object));
            let url = format!("/clusters/{}", object::name(object));
            object["status"] = json!({"phase": "Ready", "id": id, "url": url});
            add_finalizer(object, CONTENTS);
        }
        Some(Special::Rights) => validation::defaults(object),
        Some(Special::CertificateRequest) => name_requester(call, object),
        Some(Special::Flow) => call.warn(NOT_BY_FLOW),
        Some(Special::Admission) => admission::fill_status(call, object),
        Some(Special::Namespace) => warn_of_pod_security(call, object),
        None => {}
    }
    Ok(())
}

/// Labels that would restrict pods elsewhere, and that nothing here goes by, must not look as if they did.
fn warn_of_pod_security(call: &Call, namespace: &Value) {
    let labels = object::metadata(namespace).get("labels").and_then(Value::as_object);
    for mode in ["enforce", "warn", "audit"] {
        let label = format!("{POD_SECURITY}{mode}");
        match labels.and_then(|labels| labels.get(&label)).and_then(Value::as_str) {
            None | Some("privileged") => {}
            Some(level) => call.warn(format!(
                "Interlock's API server does not enforce Pod Security labels: {label}={level} has no \
                 effect; use a ValidatingAdmissionPolicy on pods instead"
            )),
        }
    }
}

/// Whoever approves a certificate goes by who asked for it: that is what the server saw, never what was sent.
fn name_requester(call: &Call, request: &mut Value) {
    let Some(spec) = request["spec"].as_object_mut() else { return };
    let seen = call.identity.user_info();
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
        if let Some(value) = seen.get(field) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
}

/// Makes a changed object whole before it is validated.
pub(crate) async fn prepare_update(
    call: &Call,
    old: &Value,
    new: &mut Value,
) -> Result<(), Status> {
    match special(&call.resource) {
        Some(Special::Definition) => {
            crd::defaults(new);
            if call.endpoint == Endpoint::Main {
                grant_names(call, new).await?;
            }
        }
        Some(Special::Rights) => validation::defaults(new),
        Some(Special::LogicalCluster) => {
            // What is no object is left for the schema to refuse.
            let status = new.get("status").unwrap_or(&Value::Null);
            if status.is_object() || status.is_null() {
                for field in ["id", "url"] {
                    object::put_at(new, &["status", field], old["status"][field].clone());
                }
            }
        }
        Some(Special::CertificateRequest) => date_conditions(call, old, new),
        Some(Special::Flow) if call.endpoint == Endpoint::Main => call.warn(NOT_BY_FLOW),
        Some(Special::Namespace) if call.endpoint == Endpoint::Main => {
            warn_of_pod_security(call, new);
        }
        Some(Special::Admission) => admission::fill_status(call, new),
        Some(Special::Namespace | Special::Flow) | None => {}
    }
    Ok(())
}

/// Says since when a condition of a request for a certificate holds: clients leave that to the server.
fn date_conditions(call: &Call, old: &Value, new: &mut Value) {
    let before = old["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in new["status"]["conditions"].as_array_mut().into_iter().flatten() {
        let held = before.iter().find(|held| {
            held["type"] == condition["type"] && held["status"] == condition["status"]
        });
        for field in ["lastUpdateTime", "lastTransitionTime"] {
            if condition.is_object() && condition[field].is_null() {
                condition[field] = match held.map(|held| &held[field]) {
                    Some(time) if !time.is_null() => time.clone(),
                    _ => json!(call.now_text()),
                };
            }
        }
    }
}

/// Makes an object whole whose deletion is asked for: a definition stays until its objects are gone, and says so.
pub(crate) fn prepare_delete(call: &Call, object: &mut Value) {
    if special(&call.resource) == Some(Special::Definition) {
        add_finalizer(object, CLEANUP);
        crd::terminating(object, &call.now_text());
    }
}

/// What is wrong with an object beyond what its schema says.
pub(crate) fn validate(call: &Call, old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    match special(&call.resource) {
        Some(Special::Definition) => {
            let mut errors = crd::validate(new);
            if let Some(old) = old {
                errors.extend(crd::validate_update(old, new));
            }
            errors
        }
        Some(Special::Rights) => validation::validate(old, new),
        Some(Special::LogicalCluster) => {
            let given = object::name(new);
            // A name that no object may have is refused already.
            let is_name = name::dns1123_subdomain(given).is_empty();
            let mut problems = if is_name { name::dns1123_label(given) } else { Vec::new() };
            if given == ROOT {
                problems.push("the root cluster is there already".to_owned());
            }
            problems
                .into_iter()
                .map(|why| FieldError::invalid("metadata.name", &json!(given), why))
                .collect()
        }
        Some(Special::Admission) => admission::validate(call, old, new),
        Some(Special::Namespace | Special::CertificateRequest | Special::Flow) | None => Vec::new(),
    }
}

/// Whether a new object may come in, and what is committed along with it.
pub(crate) async fn admit_create(call: &Call, object: &mut Value) -> Result<Transaction, Status> {
    if call.cluster.is_terminating() {
        return Err(Status::forbidden(
            &call.resource.group,
            &call.resource.plural,
            object::name(object),
            format!("the cluster {} is being terminated", call.cluster.name),
        ));
    }
    let mut plan = Transaction::default();
    plan.guards.extend(call.namespace_guard(object::name(object)).await?);
    plan.guards.extend(cluster_guard(call).await?);
    plan.guards.extend(definition_guard(call).await?);
    match special(&call.resource) {
        Some(Special::Namespace) => {
            let name = object::name(object).to_owned();
            plan.operations.extend(fill_namespace(call, &call.cluster.id, &name));
        }
        Some(Special::LogicalCluster) => {
            let id = object["status"]["id"].as_str().unwrap_or_default().to_owned();
            let namespace = new_namespace(call, "default");
            plan.operations.push(Operation::Put(
                Key::new(
                    storage::table_of("", "namespaces", "-"),
                    storage::row(&id, "", "default"),
                ),
                object::encode(&namespace),
            ));
            plan.operations.extend(fill_namespace(call, &id, "default"));
        }
        Some(Special::Definition) => {
            admit_definition(call, object)?;
            grant_names(call, object).await?;
        }
        Some(Special::Rights) => admit_rights(call, None, object).await?,
        Some(Special::Admission) => admission::check_param_rights(call, None, object).await?,
        Some(Special::CertificateRequest | Special::Flow) | None => {}
    }
    Ok(plan)
}

/// A new object outside of namespaces must not land in a logical cluster that is on its way out. Those inside
/// of one are guarded by it.
async fn cluster_guard(call: &Call) -> Result<Option<Guard>, Status> {
    if call.cluster.is_root() || call.resource.is_namespaced {
        return Ok(None);
    }
    let table = call.server.clusters().logical_clusters_table();
    let key = Key::new(table, storage::row(ROOT, "", &call.cluster.name));
    match call.server.storage().get(&key).await? {
        Some(versioned) => Ok(Some(Guard::At(key, versioned.modified))),
        None => Err(Status::not_found(HUB_GROUP, "logicalclusters", &call.cluster.name)),
    }
}

/// A new object of a custom kind must not land while its definition is on its way out.
async fn definition_guard(call: &Call) -> Result<Option<Guard>, Status> {
    if !call.resource.is_defined_here() {
        return Ok(None);
    }
    let name = crate::status::qualified(&call.resource.group, &call.resource.plural);
    let key = Key::new(definitions_table(), storage::row(&call.resource.identity, "", &name));
    let Some(versioned) = call.server.storage().get(&key).await? else {
        return Err(Status::no_such_path());
    };
    if object::View::of(&versioned.value).is_deleting() {
        return Err(Status::method_not_allowed(
            "create not allowed while custom resource definition is terminating",
        ));
    }
    Ok(Some(Guard::At(key, versioned.modified)))
}

/// Whether a change may come in.
pub(crate) async fn admit_update(call: &Call, old: &Value, new: &mut Value) -> Result<(), Status> {
    match special(&call.resource) {
        Some(Special::Definition) => admit_definition(call, new),
        Some(Special::Rights) => admit_rights(call, Some(old), new).await,
        Some(Special::Admission) => admission::check_param_rights(call, Some(old), new).await,
        Some(Special::CertificateRequest) => admission::check_signer(call, old, new).await,
        Some(Special::Namespace | Special::LogicalCluster | Special::Flow) | None => Ok(()),
    }
}

/// Whether somebody may delete the object that the call names. The server's own background work does not ask: a logical
/// cluster is deleted with its namespaces.
pub(crate) fn admit_delete(call: &Call) -> Result<(), Status> {
    let refused =
        |why: &str| Status::forbidden(&call.resource.group, &call.resource.plural, &call.name, why);
    let is_namespace = special(&call.resource) == Some(Special::Namespace);
    if is_namespace && matches!(call.name.as_str(), "default" | "kube-system" | "kube-public") {
        return Err(refused("this namespace may not be deleted"));
    }
    // Without its own copy a cluster would see the shared object again, under the same uid, and whoever waits for
    // the deletion would wait for ever.
    if call.shared_object(&call.name).is_some() {
        return Err(refused("it is part of every cluster and cannot be deleted"));
    }
    Ok(())
}

/// Nobody grants what they do not have.
async fn admit_rights(call: &Call, old: Option<&Value>, new: &Value) -> Result<(), Status> {
    if call.identity.is_master() {
        return Ok(());
    }
    let roles = call.cluster.roles(call.server.storage()).await?;
    let resource = &*call.resource.plural;
    escalation::check_write(&Write { set: &roles, identity: &call.identity, resource, old, new })
}

/// Gives a definition the names that it wants, if nobody else has them.
async fn grant_names(call: &Call, object: &mut Value) -> Result<(), Status> {
    let clusters = call.server.clusters();
    // A definition that is gone has no names, also while whoever removed it has not told everybody yet.
    clusters.read_custom(&call.cluster, call.server.storage()).await?;
    if clusters.hub().definition(object::name(object)).is_some() {
        crd::established(object, &call.now_text());
    } else {
        crd::accept_names(object, &clusters.served(&call.cluster), &call.now_text());
    }
    Ok(())
}

/// The hub's kinds may be applied again unchanged; other kinds in the hub's groups are refused.
fn admit_definition(call: &Call, object: &Value) -> Result<(), Status> {
    let hub = call.server.clusters().hub();
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    if !hub.owns_group(group) {
        return Ok(());
    }
    let name = object::name(object);
    let same = hub.definition(name).is_some_and(|definition| {
        let mut definition = definition.clone();
        crd::defaults(&mut definition);
        definition["spec"] == object["spec"]
    });
    if same {
        return Ok(());
    }
    Err(Status::forbidden(
        &call.resource.group,
        &call.resource.plural,
        name,
        format!("the group {group} belongs to the hub, which serves its kinds in every cluster"),
    ))
}

/// What every namespace has: the resource, and the object without what is its own in each.
pub(crate) fn namespace_contents(server: &Server) -> [(&'static str, Value); 2] {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
    });
    let authority = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": {
                "kubernetes.io/description":
                    "The certificates that this cluster's API server can be known by.",
            },
        },
        "data": {"ca.crt": server.authority_pem()},
    });
    [("serviceaccounts", account), ("configmaps", authority)]
}

/// Puts into a new namespace what every namespace has.
fn fill_namespace(call: &Call, cluster: &str, namespace: &str) -> [Operation; 2] {
    namespace_contents(&call.server).map(|(plural, mut object)| {
        let name = object::name(&object).to_owned();
        let metadata = object::metadata_mut(&mut object);
        if let Value::Object(own) = new_metadata(call, &name, namespace) {
            metadata.extend(own);
        }
        let table = storage::table_of("", plural, "-");
        let key = Key::new(table, storage::row(cluster, namespace, &name));
        Operation::Put(key, object::encode(&object))
    })
}

fn new_namespace(call: &Call, name: &str) -> Value {
    let mut metadata = new_metadata(call, name, "");
    metadata["labels"] = json!({"kubernetes.io/metadata.name": name});
    json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": metadata,
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    })
}

fn new_metadata(call: &Call, name: &str, namespace: &str) -> Value {
    let mut metadata = json!({
        "name": name, "uid": call.server.new_uid(), "creationTimestamp": call.now_text(),
    });
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut finalizers: Vec<String> = object::finalizers(object).map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
    object::metadata_mut(object).insert("finalizers".to_owned(), json!(finalizers));
}
