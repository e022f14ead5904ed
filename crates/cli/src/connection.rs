//! How a workload cluster is reached, as its WorkloadCluster says.

use anyhow::{Context, bail};
use interlock_api::placement::{Connection, SecretKey, WorkloadCluster};
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};

/// How a cluster is reached, as the hub says.
pub(crate) async fn config_of(
    cluster: &WorkloadCluster,
    hub: &Client,
    hub_config: Config,
) -> anyhow::Result<Config> {
    match &cluster.spec.connection {
        Connection::InCluster {} => bail!(
            "cluster {} can only be reached from within: run its syncer there with --in-cluster, \
             or use --cluster-kubeconfig FILE",
            cluster.name_any()
        ),
        Connection::LogicalCluster(name) => in_logical_cluster(hub_config, name),
        Connection::KubeconfigSecret(key) => from_secret(hub, key).await,
    }
}

/// How a logical cluster of the hub's server is reached.
pub(crate) fn in_logical_cluster(hub_config: Config, name: &str) -> anyhow::Result<Config> {
    let mut config = hub_config;
    let url = config.cluster_url.to_string();
    // The hub itself may be a logical cluster: its neighbour is beside it, not below.
    let root = url.split("/clusters/").next().unwrap_or(&url).trim_end_matches('/');
    let url = format!("{root}/clusters/{name}");
    config.cluster_url = url.parse().with_context(|| format!("{url} is not a URL"))?;
    Ok(config)
}

/// How another API server is reached, as a Secret of the hub says.
pub(crate) async fn from_secret(hub: &Client, key: &SecretKey) -> anyhow::Result<Config> {
    let SecretKey { namespace, name, key } = key;
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), namespace);
    let secret = secrets.get(name).await;
    let secret = secret.with_context(|| format!("cannot read Secret {namespace}/{name}"))?;
    let Some(bytes) = secret.data.as_ref().and_then(|data| data.get(key)) else {
        bail!("Secret {namespace}/{name} has no entry `{key}`");
    };
    let text = std::str::from_utf8(&bytes.0)
        .with_context(|| format!("entry `{key}` of Secret {namespace}/{name} is not text"))?;
    let file = Kubeconfig::from_yaml(text).with_context(|| {
        format!("entry `{key}` of Secret {namespace}/{name} is not a kubeconfig")
    })?;
    from_kubeconfig(file).await
}

/// The same, as a kubeconfig says.
pub(crate) async fn from_kubeconfig(file: Kubeconfig) -> anyhow::Result<Config> {
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    config.context("cannot use the kubeconfig of the cluster")
}
