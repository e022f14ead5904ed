//! Updates of clusters: what a bundle brings is read from the clusters, object by object.

use super::client::Client;
use super::fleet::CLUSTERS;
use serde_json::{Value, json};

/// Where requests are made.
pub(crate) const UPDATES: &str = "/apis/interlock.dev/v1alpha1/namespaces/default/clusterupdates";
/// How many objects a bundle has: enough that an agent can be killed between two of them.
const OBJECTS: usize = 24;
/// How long a version that never becomes healthy is waited for.
const BAD_SECONDS: u64 = 6;
const FINAL: [&str; 7] =
    ["Succeeded", "RolledBack", "RollbackFailed", "Rejected", "Superseded", "Cancelled", "Failed"];

/// A request for a version of a cluster: every object says which. Half of them are named alike in all versions. One that
/// is not good never becomes healthy, and is rolled back.
pub(crate) fn update(cluster: &str, version: u64, is_good: bool) -> Value {
    let of = format!("{cluster}-{version}");
    let name = |number: usize| match number < OBJECTS / 2 {
        true => format!("both-{number}"),
        false => format!("v{version}-{number}"),
    };
    let map = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"version": of},
            "metadata": {"name": name(number), "namespace": "default"},
        })
    };
    let mut objects: Vec<Value> = (0..OBJECTS).map(map).collect();
    if !is_good {
        objects.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("gate-v{version}"), "namespace": "default"},
            "spec": {
                "schedulingGates": [{"name": "example.com/never"}],
                "containers": [{"name": "a", "image": "none"}],
            },
        }));
    }
    let deadline = if is_good { 600 } else { BAD_SECONDS };
    json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "ClusterUpdate",
        "metadata": {"name": of, "namespace": "default"},
        "spec": {
            "cluster": cluster, "soakSeconds": 0, "deadlineSeconds": deadline,
            "source": {"inline": objects},
        },
    })
}

/// What is missing until every request has ended, and each cluster has exactly its last good version.
pub(crate) fn waits(client: &Client) -> Vec<String> {
    match compare(client) {
        Ok(waits) => waits,
        Err(error) => vec![format!("{error:#}")],
    }
}

fn compare(client: &Client) -> anyhow::Result<Vec<String>> {
    let found = client.get(UPDATES)?;
    let all: Vec<&Value> = found["items"].as_array().into_iter().flatten().collect();
    let mut waits = Vec::new();
    for request in &all {
        let status = &request["status"];
        if !status["phase"].as_str().is_some_and(|phase| FINAL.contains(&phase)) {
            waits.push(format!("update {} ends: {status}", request["metadata"]["name"]));
        }
    }
    for cluster in CLUSTERS {
        let good = all.iter().filter(|request| {
            request["spec"]["cluster"] == cluster && request["status"]["phase"] == "Succeeded"
        });
        let last = good.max_by_key(|request| request["status"]["version"].as_u64());
        let version = last.and_then(|request| request["metadata"]["name"].as_str());
        waits.extend(differs(client, cluster, version)?);
    }
    Ok(waits)
}

/// How the objects of rollouts on a cluster differ from those of a version, or from none.
fn differs(
    client: &Client,
    cluster: &str,
    version: Option<&str>,
) -> anyhow::Result<Option<String>> {
    let maps = format!("/clusters/{cluster}/api/v1/namespaces/default/configmaps");
    let found = client.get(&format!("{maps}?labelSelector=interlock.dev/rollout"))?;
    let said: Vec<Option<&str>> = found["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|map| map["data"]["version"].as_str())
        .collect();
    let expected = if version.is_some() { OBJECTS } else { 0 };
    let is_exact = said.len() == expected && said.iter().all(|it| *it == version);
    Ok((!is_exact).then(|| format!("{cluster} is at {version:?}: {said:?}")))
}

/// How the requests ended.
pub(crate) fn ends(client: &Client) -> Vec<String> {
    let Ok(found) = client.get(UPDATES) else { return Vec::new() };
    let phases = found["items"].as_array().into_iter().flatten();
    let phases: Vec<&str> = phases.filter_map(|it| it["status"]["phase"].as_str()).collect();
    let counted =
        FINAL.iter().map(|phase| (phase, phases.iter().filter(|it| *it == phase).count()));
    let counted = counted.filter(|(_, count)| *count > 0);
    counted.map(|(phase, count)| format!("updates: {count} {phase}")).collect()
}
