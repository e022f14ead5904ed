//! A client that goes away in the middle of its request, and a process that ends in the middle of its background work:
//! nothing is left by halves.

use http::Request;
use interlock_apiserver::access::Scope;
use interlock_apiserver::{Body, Config, Identity, Server};
use interlock_store::{Embedded, Key, Operation, Options, Store, Transaction};
use serde_json::{Value, json};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use tower_service::Service as _;

fn request(method: &str, path: &str, body: &Value) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::whole(body.to_string()))
        .expect("the request is well formed")
}

fn administrator() -> Identity {
    Identity::authenticated("admin", vec!["system:masters".to_owned()], Scope::Hub)
}

/// Begins a request, and leaves as soon as it has to wait for something.
async fn begin_and_leave(server: &Server, request: Request<Body>) {
    let mut answer = pin!(server.service(administrator()).call(request));
    std::future::poll_fn(|context| {
        let _ = answer.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

async fn status(server: &Server, method: &str, path: &str) -> u16 {
    let request = request(method, path, &Value::Null);
    let answer = server.service(administrator()).call(request).await.expect("it cannot fail");
    answer.status().as_u16()
}

async fn becomes(server: &Server, path: &str, wanted: u16) {
    let began = Instant::now();
    loop {
        let found = status(server, "GET", path).await;
        if found == wanted {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(180), "{path} stays {found}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_cluster_whose_creator_has_gone_can_be_entered_and_deleted() {
    let server = Server::in_memory().await.expect("it starts");
    let clusters = "/apis/interlock.dev/v1alpha1/logicalclusters";
    let cluster = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
        "metadata": {"name": "left"},
    });
    begin_and_leave(&server, request("POST", clusters, &cluster)).await;
    becomes(&server, &format!("{clusters}/left"), 200).await;
    becomes(&server, "/clusters/left/api/v1/namespaces/default", 200).await;
    begin_and_leave(&server, request("DELETE", &format!("{clusters}/left"), &Value::Null)).await;
    becomes(&server, &format!("{clusters}/left"), 404).await;
    becomes(&server, "/clusters/left/api/v1/namespaces/default", 403).await;
}

#[tokio::test]
async fn a_kind_whose_definer_has_gone_is_served() {
    let server = Server::in_memory().await.expect("it starts");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.gone.example.com"},
        "spec": {
            "group": "gone.example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    begin_and_leave(&server, request("POST", path, &definition)).await;
    becomes(&server, "/apis/gone.example.com/v1/widgets", 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_comes_again_at_once_goes_again_at_once() {
    let server = Server::in_memory().await.expect("it starts");
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "again"},
    });
    for _ in 0..200 {
        let made = request("POST", "/api/v1/namespaces", &namespace);
        let made = server.service(administrator()).call(made).await.expect("it cannot fail");
        assert_eq!(made.status(), 201);
        assert_eq!(status(&server, "DELETE", "/api/v1/namespaces/again").await, 200);
        becomes(&server, "/api/v1/namespaces/again", 404).await;
    }
}

#[tokio::test]
async fn what_every_namespace_has_is_put_back_by_the_next_start_if_need_be() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_directory = Some(directory.path().to_owned());
    let config = Config { data_directory, ..Config::default() };
    let server = Server::start(config.clone()).await.expect("it starts");
    server.stop().await;
    // As if the process had died right after the deletion.
    let store = Embedded::open(directory.path().join("store"), Options::default());
    let store = store.expect("nobody else has it");
    let key = Key::new("core/serviceaccounts/-", "root/default/default");
    let gone = Transaction { operations: vec![Operation::Delete(key)], ..Transaction::default() };
    store.commit(gone).await.expect("there is room");
    store.close().await;
    let server = Server::start(config).await.expect("it starts");
    becomes(&server, "/api/v1/namespaces/default/serviceaccounts/default", 200).await;
}
