//! A thousand logical clusters in one process: what they cost, that they are apart, that all of them can be listed
//! and watched at once, and that no object is left of them when they are gone.
//!
//! There is one test, so that the process whose memory is measured does little else. What is given back is
//! measured on the program itself, which has no clients inside.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use interlock_apiserver::access::Scope;
use interlock_apiserver::{Body, Config, Identity, Server};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tower_service::Service as _;

/// How many clusters; more by `INTERLOCK_CLUSTERS`.
const CLUSTERS: usize = 1000;
const TOGETHER: usize = 32;
const LOGICAL_CLUSTERS: &str = "/apis/interlock.dev/v1alpha1/logicalclusters";
const TIMEOUT: Duration = Duration::from_secs(120);

fn administrator() -> Identity {
    Identity::authenticated("admin", vec!["system:masters".to_owned()], Scope::Hub)
}

/// A kind that the hub serves in every cluster.
fn hub_kind() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "moves.many.example.com"},
        "spec": {
            "group": "many.example.com", "scope": "Namespaced",
            "names": {"plural": "moves", "singular": "move", "kind": "Move"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"to": {"type": "string"}}},
                }}},
            }],
        },
    })
}

async fn next_part(body: &mut Body) -> Option<Bytes> {
    let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
    Some(frame.expect("bodies in memory do not fail").into_data().unwrap_or_default())
}

async fn send(server: &Server, method: &str, path: &str, body: Option<&Value>) -> Response<Body> {
    let body = body.map(ToString::to_string).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::whole(body))
        .expect("the request is well formed");
    server.service(administrator()).call(request).await.expect("it cannot fail")
}

async fn call(server: &Server, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let response = send(server, method, path, body).await;
    let status = response.status().as_u16();
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    while let Some(part) = next_part(&mut body).await {
        bytes.extend_from_slice(&part);
    }
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

async fn must(server: &Server, method: &str, path: &str, body: Option<&Value>) -> Value {
    let (status, answer) = call(server, method, path, body).await;
    assert!(status < 300, "{method} {path}: {status} {answer}");
    answer
}

fn name(index: usize) -> String {
    format!("tenant-{index:05}")
}

/// Does something for each cluster, some at a time.
async fn for_each<W>(server: &Server, count: usize, work: fn(Server, usize) -> W)
where
    W: Future<Output = ()> + Send + 'static,
{
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..count {
        if tasks.len() == TOGETHER {
            tasks.join_next().await.expect("some are left").expect("it does not panic");
        }
        tasks.spawn(work(server.clone(), index));
    }
    tasks.join_all().await;
}

async fn create(server: Server, index: usize) {
    let cluster = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
        "metadata": {"name": name(index)},
    });
    must(&server, "POST", LOGICAL_CLUSTERS, Some(&cluster)).await;
}

async fn delete(server: Server, index: usize) {
    must(&server, "DELETE", &format!("{LOGICAL_CLUSTERS}/{}", name(index)), None).await;
}

/// Waits until the hub is alone.
async fn all_gone(server: &Server) {
    let began = Instant::now();
    let mut changes = server.cluster_changes();
    while server.cluster_names().len() > 1 {
        assert!(began.elapsed() < TIMEOUT, "{} are left", server.cluster_names().len());
        let _ = tokio::time::timeout(TIMEOUT, changes.changed()).await;
    }
}

fn cluster_of(object: &Value) -> String {
    let name = object["metadata"]["annotations"]["kcp.io/cluster"].as_str();
    name.unwrap_or_else(|| panic!("no cluster in {object}")).to_owned()
}

/// Reads a watch of all clusters until each of them was seen in an event of this sort.
async fn watch_all(mut body: Body, sort: &'static str, count: usize) -> HashSet<String> {
    let (mut seen, mut rest) = (HashSet::new(), Vec::new());
    while seen.len() < count {
        let part = tokio::time::timeout(TIMEOUT, next_part(&mut body)).await;
        let part = part.expect("events come").expect("the watch goes on");
        rest.extend_from_slice(&part);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).expect("events are JSON");
            let cluster = cluster_of(&event["object"]);
            if event["type"] == sort && cluster != "root" {
                assert!(cluster.starts_with("tenant-"), "an unknown cluster {cluster}");
                seen.insert(cluster);
            }
        }
    }
    seen
}

async fn start_watch(server: &Server, path: &str) -> Body {
    let response = send(server, "GET", path, None).await;
    assert_eq!(response.status(), 200);
    response.into_body()
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    line.trim().trim_end_matches(" kB").parse().expect("it is a number")
}

/// The memory when everything has calmed down: history is cut off.
async fn resident_at_rest(server: &Server) -> u64 {
    let began = Instant::now();
    loop {
        let (mut body, mut text) =
            (send(server, "GET", "/metrics", None).await.into_body(), String::new());
        while let Some(part) = next_part(&mut body).await {
            text.push_str(&String::from_utf8_lossy(&part));
        }
        if text.lines().any(|line| line == "interlock_store_history_bytes 0") {
            return resident_kib();
        }
        assert!(began.elapsed() < TIMEOUT, "history is not cut off:\n{text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn check_apart(server: &Server) {
    let config = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "same"},
            "data": {"of": value},
        })
    };
    for index in [0, 1, 500] {
        let path = format!("/clusters/{}/api/v1/namespaces/default/configmaps", name(index));
        must(server, "POST", &path, Some(&config(&name(index)))).await;
    }
    for index in [0, 1, 500] {
        let path = format!("/clusters/{}/api/v1/configmaps/", name(index));
        let list = must(server, "GET", path.trim_end_matches('/'), None).await;
        let items = list["items"].as_array().expect("a list has items");
        let ours: Vec<_> = items.iter().filter(|item| item["metadata"]["name"] == "same").collect();
        assert_eq!(ours.len(), 1);
        assert_eq!(ours[0]["data"]["of"], json!(name(index)));
    }
    let elsewhere = format!("/clusters/{}/api/v1/namespaces/default/configmaps/same", name(2));
    assert_eq!(call(server, "GET", &elsewhere, None).await.0, 404);
    let here = "/api/v1/namespaces/default/configmaps/same";
    assert_eq!(call(server, "GET", here, None).await.0, 404);
    for index in [0, 1, 500] {
        let path = format!("/clusters/{}/api/v1/namespaces/default/configmaps/same", name(index));
        must(server, "DELETE", &path, None).await;
    }
}

async fn move_in(server: Server, index: usize) {
    let object = json!({
        "apiVersion": "many.example.com/v1", "kind": "Move", "metadata": {"name": "first"},
        "spec": {"to": name(index)},
    });
    let path =
        format!("/clusters/{}/apis/many.example.com/v1/namespaces/default/moves", name(index));
    must(&server, "POST", &path, Some(&object)).await;
}

fn each_of(duration: Duration, count: usize) -> f64 {
    duration.as_secs_f64() * 1000.0 / count as f64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_clusters_cost_kilobytes_each_and_leave_no_object_behind() {
    let count = std::env::var("INTERLOCK_CLUSTERS").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(CLUSTERS).max(501);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(Config {
        data_directory: Some(directory.path().to_owned()),
        hub_definitions: vec![hub_kind()],
        compaction_interval: Duration::from_millis(300),
        ..Config::default()
    })
    .await
    .expect("it starts");
    // Once, so that what is made on first use is not taken for a cluster's cost.
    for_each(&server, count.min(200), create).await;
    for_each(&server, count.min(200), delete).await;
    all_gone(&server).await;
    let before = resident_at_rest(&server).await;

    let began = Instant::now();
    for_each(&server, count, create).await;
    let created = began.elapsed();
    let during = resident_at_rest(&server).await;
    let each_bytes = during.saturating_sub(before) * 1024 / count as u64;
    println!(
        "{count} clusters: {each_bytes} bytes each ({before} KiB before, {during} KiB with them), created in {:.2} ms each",
        each_of(created, count),
    );

    let list = must(&server, "GET", "/clusters/*/api/v1/namespaces", None).await;
    let listed: HashSet<String> =
        list["items"].as_array().expect("a list has items").iter().map(cluster_of).collect();
    assert_eq!(listed.len(), count + 1, "each has a namespace, and so has the hub");
    let list = must(&server, "GET", LOGICAL_CLUSTERS, None).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(count));
    check_apart(&server).await;

    let state = start_watch(&server, "/clusters/*/api/v1/namespaces?watch=true").await;
    assert_eq!(watch_all(state, "ADDED", count).await.len(), count);
    let moves = "/clusters/*/apis/many.example.com/v1/moves";
    let from = must(&server, "GET", moves, None).await;
    let from = from["metadata"]["resourceVersion"].as_str().expect("a list has a version");
    let watch = start_watch(&server, &format!("{moves}?watch=true&resourceVersion={from}")).await;
    let watching = tokio::spawn(watch_all(watch, "ADDED", count));
    for_each(&server, count, move_in).await;
    assert_eq!(watching.await.expect("it does not panic").len(), count);

    let gone = start_watch(&server, &format!("{moves}?watch=true")).await;
    let watching = tokio::spawn(watch_all(gone, "DELETED", count));
    let began = Instant::now();
    for_each(&server, count, delete).await;
    all_gone(&server).await;
    let deleted = began.elapsed();
    assert_eq!(watching.await.expect("it does not panic").len(), count);
    println!("deleted in {:.2} ms each", each_of(deleted, count));
    let list = must(&server, "GET", "/clusters/*/api/v1/configmaps", None).await;
    let left = list["items"].as_array().expect("a list has items").iter().map(cluster_of);
    assert!(left.collect::<HashSet<_>>().iter().all(|cluster| cluster == "root"));
    assert!(each_bytes < 64 * 1024, "{each_bytes} bytes for each cluster");
    assert!(each_of(created, count) < 50.0, "{created:?} for all");
    server.stop().await;
}
