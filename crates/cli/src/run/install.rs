//! Brings the hub to know Interlock's own kinds.

use super::SOON;
use anyhow::{Context, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The namespace for leases and for what is ours alone.
pub(crate) const NAMESPACE: &str = "interlock-system";

/// Installs or updates the definitions and the namespace that everything else relies on, and waits
/// until the kinds are served. Our own server has the kinds from the start.
pub(crate) async fn install(hub: &Client) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(hub.clone());
    let params = PatchParams::apply("interlock").force();
    for definition in interlock_api::definitions() {
        let name = definition.name_any();
        let found = definitions.get_opt(&name).await;
        let found = found.with_context(|| format!("cannot read the kind {name}"))?;
        if found.is_none() && is_served(hub, &definition.spec.names.plural).await? {
            continue;
        }
        definitions
            .patch(&name, &params, &Patch::Apply(&definition))
            .await
            .with_context(|| format!("cannot install the kind {name} at the hub"))?;
        established(&definitions, &name).await?;
    }
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(hub.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))
        .context("a namespace is made of a name")?;
    match namespaces.create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).context(format!("cannot make the namespace {NAMESPACE}")),
    }
}

/// Whether the hub serves a kind of ours.
async fn is_served(hub: &Client, plural: &str) -> anyhow::Result<bool> {
    let version = format!("{}/{}", interlock_api::GROUP, interlock_api::VERSION);
    match hub.list_api_group_resources(&version).await {
        Ok(served) => Ok(served.resources.iter().any(|resource| resource.name == plural)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error).context("cannot ask the hub which kinds it serves"),
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
            bail!("the hub does not serve the kind {name}: see kubectl get crd {name} -o yaml");
        }
        sleep(Duration::from_millis(100)).await;
    }
}
