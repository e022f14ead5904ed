//! Paths that are about no resource: health, version, discovery, OpenAPI, metrics.

use crate::clusters::Cluster;
use crate::discovery;
use crate::http::{self, Body};
use crate::negotiate::{self, Endpoint, Rendering};
use crate::openapi::second;
use crate::openapi_cache::Document;
use crate::request::{RequestInfo, Verb};
use crate::server::Server;
use crate::status::Status;
use ::http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use ::http::request::Parts;
use ::http::{HeaderValue, Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// The upstream release that this server follows.
const MAJOR: &str = "1";
const MINOR: &str = "35";
const RELEASE: &str = "v1.35.0+interlock";

/// Serves a path that is about no resource, to somebody who may ask.
pub(crate) async fn serve(
    server: &Server,
    cluster: &Arc<Cluster>,
    info: &RequestInfo,
    parts: &Parts,
) -> Result<Response<Body>, Status> {
    if !matches!(info.verb, Verb::Get | Verb::Head) {
        return Err(Status::method_not_allowed("this path can only be read"));
    }
    let segments: Vec<&str> = info.segments.iter().map(String::as_str).collect();
    let served = || server.clusters().served(cluster);
    let third = |group: &str, version: &str| {
        server.openapi().document(server.clusters(), cluster, group, version)
    };
    match segments.as_slice() {
        [] => Ok(http::json(200, &paths(&served()))),
        ["version"] => Ok(http::json(200, &version())),
        ["metrics"] if cluster.is_root() => Ok(metrics(server)),
        ["api"] => discovery_root(parts, &served(), true),
        ["apis"] => discovery_root(parts, &served(), false),
        ["api", version] => found(discovery::group_version(&served(), "", version)),
        ["apis", group] => found(discovery::group(&served(), group)),
        ["apis", group, version] => found(discovery::group_version(&served(), group, version)),
        ["openapi", "v3"] => {
            Ok(document(parts, server.openapi().index(server.clusters(), cluster)))
        }
        ["openapi", "v2"] => Ok(second(server, cluster, parts)),
        ["openapi", "v3", "api", version] => openapi(parts, third("", version)),
        ["openapi", "v3", "apis", group, version] => openapi(parts, third(group, version)),
        [".well-known", "openid-configuration"] => {
            Ok(http::json(200, &server.token_key().discovery(&cluster.id)))
        }
        ["openid", "v1", "jwks"] => Ok(http::json(200, &server.token_key().key_set())),
        _ => Err(Status::no_such_path()),
    }
}

fn found(document: Option<Value>) -> Result<Response<Body>, Status> {
    document.map(|document| http::json(200, &document)).ok_or_else(Status::no_such_path)
}

fn version() -> Value {
    json!({
        "major": MAJOR, "minor": MINOR, "gitVersion": RELEASE,
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform()),
        "emulationMajor": MAJOR, "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR, "minCompatibilityMinor": MINOR,
    })
}

fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn paths(served: &[Arc<crate::resource::Resource>]) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (group, version) in discovery::group_versions(served) {
        if group.is_empty() {
            continue;
        }
        let of_group = format!("/apis/{group}");
        if !paths.contains(&of_group) {
            paths.push(of_group.clone());
        }
        paths.push(format!("{of_group}/{version}"));
    }
    for path in
        ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
    {
        paths.push(path.to_owned());
    }
    json!({"paths": paths})
}

fn discovery_root(
    parts: &Parts,
    served: &[Arc<crate::resource::Resource>],
    is_core: bool,
) -> Result<Response<Body>, Status> {
    let accept = parts.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let accepted = negotiate::negotiate(accept, Endpoint::DiscoveryRoot, false)?;
    let is_aggregated = accepted.rendering == Rendering::AggregatedDiscovery;
    let document = match (is_aggregated, is_core) {
        (true, true) => discovery::aggregated_core(served),
        (true, false) => discovery::aggregated_groups(served),
        (false, true) => {
            let host = parts.headers.get(::http::header::HOST);
            discovery::core_versions(host.and_then(|host| host.to_str().ok()).unwrap_or_default())
        }
        (false, false) => discovery::groups(served),
    };
    let response = http::json(200, &document);
    let mut response = http::dressed(response, accepted.is_pretty, accepted.content_type());
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    if is_aggregated {
        return Ok(with_etag(parts, response, &discovery::etag(&document)));
    }
    Ok(response)
}

/// `/openapi/v3/...`, of a group and version that is served.
fn openapi(parts: &Parts, found: Option<Document>) -> Result<Response<Body>, Status> {
    Ok(document(parts, found.ok_or_else(Status::no_such_path)?))
}

/// `/openapi/v2`, as protobuf for those who ask for it.
fn second(server: &Server, cluster: &Cluster, parts: &Parts) -> Response<Body> {
    let accept = parts.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let mut response = if accept.is_some_and(|accept| accept.contains(second::PROTOBUF)) {
        let made = server.openapi().second_protobuf(server.clusters(), cluster);
        let mut response = document(parts, made);
        let content_type = HeaderValue::from_static(second::PROTOBUF_CONTENT);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    } else {
        document(parts, server.openapi().second_json(server.clusters(), cluster))
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response
}

fn document(parts: &Parts, document: Document) -> Response<Body> {
    with_etag(parts, http::json_bytes(200, document.bytes), &format!("\"{}\"", document.hash))
}

/// Adds the tag, and sends nothing to those who have it already.
fn with_etag(parts: &Parts, mut response: Response<Body>, tag: &str) -> Response<Body> {
    let has_it = parts
        .headers
        .get(IF_NONE_MATCH)
        .and_then(|held| held.to_str().ok())
        .is_some_and(|held| held.split(',').any(|one| one.trim() == tag));
    if has_it {
        *response.body_mut() = Body::default();
        *response.status_mut() = ::http::StatusCode::NOT_MODIFIED;
    }
    if let Ok(value) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(ETAG, value);
    }
    response
}

fn metrics(server: &Server) -> Response<Body> {
    let stats = server.storage().store.stats();
    let gauges = [
        ("interlock_store_revision", stats.revision as f64),
        ("interlock_store_floor", stats.floor as f64),
        ("interlock_store_keys", stats.keys as f64),
        ("interlock_store_live_bytes", stats.live_bytes as f64),
        ("interlock_store_history_bytes", stats.history_bytes as f64),
        ("interlock_store_segments", stats.segments as f64),
        ("interlock_store_syncs_total", stats.syncs as f64),
        ("interlock_store_commits_total", stats.commits as f64),
        ("interlock_unsent_bytes", server.limits().in_flight().unsent_bytes as f64),
        ("interlock_logical_clusters", server.cluster_names().len() as f64),
    ];
    http::text(200, server.metrics().render(&gauges))
}
