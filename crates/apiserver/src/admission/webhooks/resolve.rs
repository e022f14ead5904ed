//! At which addresses a webhook is: by its URL, or by the service of the logical cluster that it names.

use super::{flag_of, reach_of};
use crate::admission_registration::target::{Address, ServiceName};
use crate::behaviour::read::{at, integer, list, text};
use crate::call::Call;
use crate::object;
use crate::storage::{self, Owner};
use interlock_store::{Key, KeyRange};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use tokio::sync::Semaphore;

/// So many addresses of one webhook are tried.
const MOST_ADDRESSES: usize = 4;
/// So many EndpointSlices of a namespace are read.
const MOST_SLICES: usize = 1000;

/// So many names are looked up at once, for all clusters together.
static LOOKUPS: Semaphore = Semaphore::const_new(16);

/// The addresses of a webhook at which it may be called, in the order in which they are tried.
pub(super) async fn addresses(call: &Call, address: &Address) -> Result<Vec<SocketAddr>, String> {
    let mut found = match &address.service {
        None => of_host(&address.host, address.port).await?,
        Some(service) => of_service(call, service, address.port).await?,
    };
    let reach = reach_of(&call.server, &call.cluster);
    // The address is checked, not the name: a name can stand for another address at the next question.
    if let Some(refused) = found.iter().find(|found| !reach.allows(found.ip())) {
        return Err(format!(
            "the address {} is outside of the networks in which webhooks of the cluster {:?} may \
             be called ({reach}): ask the operator to add it to {}",
            refused.ip(),
            call.cluster.name,
            flag_of(&call.cluster)
        ));
    }
    found.truncate(MOST_ADDRESSES);
    Ok(found)
}

async fn of_host(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let name = host.to_owned();
    // A lookup takes a thread until it ends, also if nobody waits for it any more: so does its place.
    let found = tokio::spawn(async move {
        let _place = LOOKUPS.acquire().await;
        let found = tokio::net::lookup_host((name, port)).await;
        found.map(|found| found.collect::<Vec<SocketAddr>>())
    });
    match found.await {
        Ok(Ok(found)) if !found.is_empty() => Ok(found),
        Ok(Ok(_)) | Err(_) => Err(format!("lookup {host}: no such host")),
        Ok(Err(why)) => Err(format!("lookup {host}: {why}")),
    }
}

async fn of_service(
    call: &Call,
    service: &ServiceName,
    port: u16,
) -> Result<Vec<SocketAddr>, String> {
    let name = &service.name;
    if (service.namespace.as_str(), name.as_str()) == ("default", "kubernetes") {
        return Err("the service \"kubernetes\" is this API server, which is no webhook".to_owned());
    }
    let stored = read(call, "services", service).await?;
    let stored = stored.ok_or_else(|| format!("service {name:?} not found"))?;
    let is_wanted = |one: &&Value| integer(one, "port") == Some(i64::from(port));
    let Some(wanted) = list(&stored, "spec.ports").iter().find(is_wanted) else {
        return Err(format!("no service port {port} found for service {name:?}"));
    };
    if text(&stored, "spec.type") == "ExternalName" {
        return of_host(text(&stored, "spec.externalName"), port).await;
    }
    let mut found = in_slices(call, service, text(wanted, "name")).await?;
    if found.is_empty()
        && let Some(endpoints) = read(call, "endpoints", service).await?
    {
        for subset in list(&endpoints, "subsets") {
            let addresses = list(subset, "addresses").iter().map(|address| text(address, "ip"));
            found.extend(sockets(addresses, list(subset, "ports"), text(wanted, "name")));
        }
    }
    if found.is_empty()
        && let Ok(address) = text(&stored, "spec.clusterIP").parse::<IpAddr>()
    {
        found.push(SocketAddr::new(address, port));
    }
    if found.is_empty() {
        return Err(format!("no endpoints available for service {name:?}"));
    }
    Ok(found)
}

/// The ready endpoints of a service.
async fn in_slices(
    call: &Call,
    service: &ServiceName,
    port_name: &str,
) -> Result<Vec<SocketAddr>, String> {
    let prefix = storage::prefix(Owner::Cluster(&call.cluster.id), Some(&service.namespace));
    let table = storage::table_of("discovery.k8s.io", "endpointslices", "-");
    let page = call.server.storage().range(KeyRange::prefix(table, prefix), None, MOST_SLICES);
    let page = page.await.map_err(|_| "the store cannot be read".to_owned())?;
    let mut found = Vec::new();
    for slice in page.items.iter().map(object::decode) {
        let labels = at(&slice, "metadata.labels");
        if labels.get("kubernetes.io/service-name").and_then(Value::as_str) != Some(&service.name) {
            continue;
        }
        let is_ready = |endpoint: &&Value| at(endpoint, "conditions.ready") != &Value::Bool(false);
        for endpoint in list(&slice, "endpoints").iter().filter(is_ready) {
            let addresses = list(endpoint, "addresses").iter().filter_map(Value::as_str);
            found.extend(sockets(addresses, list(&slice, "ports"), port_name));
        }
    }
    Ok(found)
}

/// The addresses with the port of a name.
fn sockets<'a>(
    addresses: impl Iterator<Item = &'a str>,
    ports: &[Value],
    port_name: &str,
) -> Vec<SocketAddr> {
    let port = ports.iter().find(|port| text(port, "name") == port_name);
    let port = port.and_then(|port| integer(port, "port"));
    let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else { return Vec::new() };
    let addresses = addresses.filter_map(|address| address.parse::<IpAddr>().ok());
    addresses.map(|address| SocketAddr::new(address, port)).collect()
}

async fn read(call: &Call, plural: &str, service: &ServiceName) -> Result<Option<Value>, String> {
    let row = storage::row(&call.cluster.id, &service.namespace, &service.name);
    let key = Key::new(storage::table_of("", plural, "-"), row);
    let found = call.server.storage().get(&key).await.map_err(|status| status.message)?;
    Ok(found.as_ref().map(object::decode))
}
