//! The shell on our API server in memory.

mod crashes;
mod driver;
mod leaders;
mod line;
mod mirror;
mod runs;
mod steps;

use interlock_apiserver::Server;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What takes longer than this hangs, also on a machine that is busy with other things.
const TIMEOUT: Duration = Duration::from_secs(180);

/// A server in memory.
async fn server() -> Server {
    Server::in_memory().await.expect("a server in memory starts")
}

/// Returns once something is so; fails if it never is.
async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < TIMEOUT, "never: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

async fn make_original(client: &Client, name: &str, label: &str) {
    let original = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"mirror": label}}, "data": {"value": "one"},
    }));
    let original = original.expect("a ConfigMap");
    config_maps(client).create(&PostParams::default(), &original).await.expect("it is made");
}

async fn set_value(client: &Client, name: &str, value: &str) {
    let patch = Patch::Merge(json!({"data": {"value": value}}));
    let params = PatchParams::default();
    config_maps(client).patch(name, &params, &patch).await.expect("it is changed");
}

/// Whether the copy is right and the original says so.
async fn is_mirrored(client: &Client, name: &str, value: &str) -> bool {
    let get = async |name: &str| config_maps(client).get_opt(name).await.expect("it answers");
    let (original, copy) = (get(name).await, get(&format!("{name}-copy")).await);
    let Some((original, copy)) = original.zip(copy) else { return false };
    let noted = original.metadata.annotations.and_then(|notes| notes.get("copied").cloned());
    let copied = copy.data.and_then(|data| data.get("value").cloned());
    noted.as_deref() == Some(value) && copied.as_deref() == Some(value)
}
