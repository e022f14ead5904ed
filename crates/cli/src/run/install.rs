//! Brings the hub to know Interlock's own kinds, and clusters to know those of volumes.

use super::SOON;
use anyhow::{Context, bail};
use interlock_api::names::{LOCAL_CLASS, LOCAL_DRIVER, NODE_LABEL, RUNTIME_CLASS};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Marks the class of claims that name none.
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// The namespace for leases and for what is ours alone.
pub(crate) const NAMESPACE: &str = "interlock-system";

/// Installs or updates the definitions and the namespace that everything else relies on, and waits
/// until the kinds are served. Our own server has the kinds from the start.
pub(crate) async fn install(hub: &Client) -> anyhow::Result<()> {
    for definition in interlock_api::definitions() {
        install_kind(hub, &definition).await?;
    }
    make_namespace(hub, NAMESPACE).await?;
    make_runtime_class(hub).await
}

/// Installs or updates the kinds of cloud identities at the hub.
pub(crate) async fn install_identities(hub: &Client) -> anyhow::Result<()> {
    for definition in interlock_api::identity_definitions() {
        install_kind(hub, &definition).await?;
    }
    Ok(())
}

/// Installs or updates the kinds of machines at the hub.
pub(crate) async fn install_machines(hub: &Client) -> anyhow::Result<()> {
    for definition in interlock_api::node_definitions() {
        install_kind(hub, &definition).await?;
    }
    Ok(())
}

/// Installs or updates the kinds of machines on the control plane of a tenant.
pub(crate) async fn install_for_tenant(plane: &Client) -> anyhow::Result<()> {
    for definition in interlock_api::tenant_definitions() {
        install_kind(plane, &definition).await?;
    }
    Ok(())
}

/// Brings a cluster what refuses the late writes of an applier. A fence that is there keeps its token.
pub(crate) async fn install_fence(at: &Client, user: &str) -> anyhow::Result<()> {
    for object in interlock_rollouts::fence::manifests(user) {
        let object: DynamicObject = serde_json::from_value(object).context("the fence")?;
        let kind = object.types.clone().unwrap_or_default();
        let kind = GroupVersionKind::try_from(&kind).context("the kind of a part of the fence")?;
        let resource = ApiResource::from_gvk(&kind);
        let namespace = object.namespace();
        let api: Api<DynamicObject> = match &namespace {
            Some(namespace) => Api::namespaced_with(at.clone(), namespace, &resource),
            None => Api::all_with(at.clone(), &resource),
        };
        let what = format!("{} {}", kind.kind, object.name_any());
        match kind.kind.as_str() {
            "ConfigMap" | "Namespace" => {
                made(api.create(&PostParams::default(), &object).await, &what)?;
            }
            _ => {
                let params = PatchParams::apply("interlock").force();
                let applied = api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await;
                applied.with_context(|| format!("cannot create {what}"))?;
            }
        }
    }
    Ok(())
}

async fn make_namespace(at: &Client, name: &str) -> anyhow::Result<()> {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(at.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))
        .context("a namespace is made of a name")?;
    made(namespaces.create(&PostParams::default(), &namespace).await, &format!("namespace {name}"))
}

/// A pod that names a runtime class which is not there is refused, at the hub and on the cluster.
async fn make_runtime_class(at: &Client) -> anyhow::Result<()> {
    let classes: Api<RuntimeClass> = Api::all(at.clone());
    let class = serde_json::from_value(runtime_class()).context("a runtime class")?;
    let created = classes.create(&PostParams::default(), &class).await;
    made(created, &format!("runtime class {RUNTIME_CLASS}"))
}

/// Installs what processes and volumes of this machine need on a workload cluster: VolSync's kinds, unless somebody
/// has brought them already, and a class for volumes and one for their snapshots. Claims that name no
/// class get ours, unless the cluster has another default.
pub(crate) async fn install_volumes(cluster: &Client) -> anyhow::Result<()> {
    for definition in interlock_api::volume_definitions() {
        if !is_served(cluster, &definition).await? {
            install_kind(cluster, &definition).await?;
        }
    }
    // Places at repositories are Leases there.
    make_namespace(cluster, NAMESPACE).await?;
    make_runtime_class(cluster).await?;
    let classes: Api<StorageClass> = Api::all(cluster.clone());
    let known =
        classes.list(&ListParams::default()).await.context("cannot list storage classes")?;
    let is_default = |class: &StorageClass| {
        let mark = class.annotations().get(IS_DEFAULT).is_some_and(|mark| mark == "true");
        mark && class.name_any() != LOCAL_CLASS
    };
    let class = storage_class(!known.iter().any(is_default));
    let class: StorageClass = serde_json::from_value(class).context("a storage class")?;
    made(
        classes.create(&PostParams::default(), &class).await,
        &format!("storage class {LOCAL_CLASS}"),
    )?;
    let kind = GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass");
    let resource = ApiResource::from_gvk_with_plural(&kind, "volumesnapshotclasses");
    let snapshots: Api<DynamicObject> = Api::all_with(cluster.clone(), &resource);
    let class: DynamicObject =
        serde_json::from_value(snapshot_class()).context("a snapshot class")?;
    made(
        snapshots.create(&PostParams::default(), &class).await,
        &format!("snapshot class {LOCAL_CLASS}"),
    )
}

/// The class of volumes of this machine.
pub(crate) fn storage_class(is_default: bool) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": LOCAL_CLASS, "annotations": {IS_DEFAULT: is_default.to_string()}},
        "provisioner": LOCAL_DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
    })
}

/// The class of their snapshots.
pub(crate) fn snapshot_class() -> Value {
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
        "metadata": {"name": LOCAL_CLASS}, "driver": LOCAL_DRIVER, "deletionPolicy": "Delete",
    })
}

/// The class of pods that are processes. A hub or a cluster with nodes of its own must not run them
/// a second time, so it selects nodes that there are none of.
pub(crate) fn runtime_class() -> Value {
    json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
        "metadata": {"name": RUNTIME_CLASS}, "handler": RUNTIME_CLASS,
        "scheduling": {"nodeSelector": {NODE_LABEL: "true"}},
    })
}

/// Whether something was made, or was there already.
fn made<K>(created: kube::Result<K>, what: &str) -> anyhow::Result<()> {
    match created {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 403 => bail!(
            "cannot create the {what}: {}; ask an administrator to apply the output of `interlock \
             manifests`, and start with --no-install",
            status.message
        ),
        Err(kube::Error::Api(status)) if status.code == 404 => bail!(
            "cannot create the {what}: the API server does not serve its kind; install the CRDs \
             of the CSI snapshotter first (docs/deploying.md)"
        ),
        Err(error) => Err(error).context(format!("cannot create the {what}")),
    }
}

/// Installs or updates a kind, and waits until it is served.
async fn install_kind(at: &Client, definition: &CustomResourceDefinition) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(at.clone());
    let params = PatchParams::apply("interlock").force();
    let name = definition.name_any();
    let found = definitions.get_opt(&name).await;
    let found = found.with_context(|| format!("cannot read the kind {name}"))?;
    if found.is_none() && is_served(at, definition).await? {
        return Ok(());
    }
    definitions
        .patch(&name, &params, &Patch::Apply(definition))
        .await
        .with_context(|| format!("cannot install the kind {name}"))?;
    established(&definitions, &name).await
}

/// Whether a kind is served.
async fn is_served(at: &Client, definition: &CustomResourceDefinition) -> anyhow::Result<bool> {
    let plural = &definition.spec.names.plural;
    let first = definition.spec.versions.first().map_or("", |version| version.name.as_str());
    let version = format!("{}/{first}", definition.spec.group);
    match at.list_api_group_resources(&version).await {
        Ok(served) => Ok(served.resources.iter().any(|resource| resource.name == *plural)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error).context("cannot read which kinds the API server serves"),
    }
}

/// Waits until a kind is served.
async fn established(
    definitions: &Api<CustomResourceDefinition>,
    name: &str,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + SOON;
    loop {
        let definition = definitions.get(name).await;
        let definition = definition.with_context(|| format!("cannot read the kind {name}"))?;
        let conditions = definition.status.and_then(|status| status.conditions);
        let is_established = conditions
            .iter()
            .flatten()
            .any(|condition| condition.type_ == "Established" && condition.status == "True");
        if is_established {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the kind {name} is not served: see kubectl get crd {name} -o yaml");
        }
        sleep(Duration::from_millis(100)).await;
    }
}
