//! Whether each API server of a cluster refuses a write that is older than the fence.
//!
//! A kube-apiserver learns of a new token by its own watch, and each of them at its own time. So each is asked, by its own
//! address: an answer from behind a load balancer says nothing of the others.

use anyhow::{Context, anyhow, bail};
use interlock_rollouts::applier::outside::Probe;
use interlock_rollouts::fence::{PROBE_NAMESPACE, is_refusal, probe};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, Config};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The EndpointSlices that name all API servers of a cluster.
const OF_API_SERVERS: &str = "kubernetes.io/service-name=kubernetes";
/// How long one API server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Said only of a server that does not say that its policies are exact.
const NO_ADDRESSES: &str = "the API server of the cluster does not say that its policies are exact (condition \
    interlock.dev/Exact of ValidatingAdmissionPolicy interlock-rollout-fence), and this agent reaches it \
    within the process, where there are no addresses to probe";

/// How the API servers of a cluster are reached one by one, as the applier.
#[derive(Clone, Default)]
pub(crate) struct ApiServers {
    /// None: the one API server is in this process.
    config: Option<Config>,
}

impl ApiServers {
    /// Those of a cluster that is reached like this. Each of them shows a certificate for the same name.
    pub(crate) fn reached_by(config: &Config) -> ApiServers {
        let mut config = config.clone();
        if config.tls_server_name.is_none() {
            let host = config.cluster_url.host().unwrap_or_default();
            config.tls_server_name = Some(host.trim_matches(['[', ']']).to_owned());
        }
        config.connect_timeout = Some(TIMEOUT);
        config.read_timeout = Some(TIMEOUT);
        ApiServers { config: Some(config) }
    }

    /// What they say to a write under this token, which must be older than the fence.
    pub(super) async fn refuse(&self, cluster: Option<&Client>, token: i64) -> Probe {
        let (Some(config), Some(cluster)) = (&self.config, cluster) else {
            return Probe::Unreachable(NO_ADDRESSES.to_owned());
        };
        let addresses = match addresses(cluster).await {
            Ok(addresses) => addresses,
            Err(error) => return Probe::Unreachable(format!("{error:#}")),
        };
        for address in addresses {
            match asked(config, address, token).await {
                Ok(true) => {}
                Ok(false) => {
                    return Probe::Taken(format!("API server {address} takes older writes"));
                }
                Err(error) => {
                    return Probe::Unreachable(format!("API server {address}: {error:#}"));
                }
            }
        }
        Probe::Refused
    }
}

/// Where the API servers of a cluster are, as the cluster itself says.
async fn addresses(cluster: &Client) -> anyhow::Result<BTreeSet<SocketAddr>> {
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.clone(), "default");
    let params = ListParams::default().labels(OF_API_SERVERS);
    let slices = slices.list(&params).await.context("cannot read where the API servers are")?;
    let mut found = BTreeSet::new();
    for slice in slices {
        let ports = slice.ports.iter().flatten().filter_map(|port| port.port);
        for port in ports {
            let port = u16::try_from(port).with_context(|| format!("{port} is no port"))?;
            for address in slice.endpoints.iter().flat_map(|it| &it.addresses) {
                let address: IpAddr = address
                    .parse()
                    .map_err(|_| anyhow!("API server `{address}` is no IP address"))?;
                found.insert(SocketAddr::new(address, port));
            }
        }
    }
    if found.is_empty() {
        bail!("no EndpointSlice of Service default/kubernetes names an API server");
    }
    Ok(found)
}

/// Whether one API server refuses a write by the fence. One that refuses it for another reason proves nothing.
async fn asked(config: &Config, address: SocketAddr, token: i64) -> anyhow::Result<bool> {
    let mut config = config.clone();
    let scheme = config.cluster_url.scheme_str().unwrap_or("https");
    let url = format!("{scheme}://{address}");
    config.cluster_url = url.parse().with_context(|| format!("{url} is not a URL"))?;
    let client = Client::try_from(config).context("cannot make a client")?;
    let maps: Api<ConfigMap> = Api::namespaced(client, PROBE_NAMESPACE);
    let object = serde_json::from_value(probe(token)).context("the probe")?;
    let params = PostParams { dry_run: true, field_manager: None };
    let create = maps.create(&params, &object);
    match tokio::time::timeout(TIMEOUT, create).await.context("it does not answer")? {
        Ok(_) => Ok(false),
        Err(kube::Error::Api(status)) if is_refusal(&status.message) => Ok(true),
        Err(error) => Err(anyhow!(super::super::driver::in_words(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_servers_are_asked_under_the_name_of_the_one_that_is_known() {
        let known = |url: &str| ApiServers::reached_by(&Config::new(url.parse().unwrap()));
        let name = |servers: ApiServers| servers.config.unwrap().tls_server_name.unwrap();
        assert_eq!(name(known("https://api.example.com:6443")), "api.example.com");
        assert_eq!(name(known("https://[fd00::1]:6443")), "fd00::1");
        let mut config = Config::new("https://10.0.0.1".parse().unwrap());
        config.tls_server_name = Some("kubernetes".to_owned());
        assert_eq!(name(ApiServers::reached_by(&config)), "kubernetes");
    }
}
