//! What a request asks for: the logical cluster, the resource, the object and the verb, read from
//! path and query.
//!
//! This is the one place that takes a path apart. Whoever authorizes, audits or serves a request
//! looks at the same [`RequestInfo`], so that nobody can be talked into two readings of one path.

mod options;
mod query;
#[cfg(test)]
mod tests;

pub(crate) use options::{DeleteOptions, ListOptions, WriteKind};
pub(crate) use query::Query;

/// A text from a path or a header without its percent encoding, if that is whole.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    query::percent_decode(text, query::Plus::IsPlus)
}

use crate::access::tokens::ISSUERS;
use crate::status::Status;
use std::fmt;

/// Longer paths are refused.
const PATH_LIMIT_BYTES: usize = 4 * 1024;

/// The segment after which a logical cluster's name stands.
const CLUSTERS: &str = "clusters";

/// The name of the hub's own cluster; a path without a cluster means the same.
const ROOT: &str = "root";

/// Which logical cluster a request is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ClusterName {
    /// The hub itself: no prefix, or `/clusters/root`.
    Root,
    /// `/clusters/<name>`.
    Named(String),
    /// `/clusters/*`: all of them, for list and watch.
    Wildcard,
    /// `/issuers/<id>`: the cluster with this id as an issuer of tokens, for whoever verifies them.
    Issuer(String),
}

impl fmt::Display for ClusterName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ClusterName::Root => ROOT,
            ClusterName::Named(name) => name,
            ClusterName::Wildcard => "*",
            ClusterName::Issuer(id) => id,
        })
    }
}

/// What is to be done, in the words of RBAC rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    /// Read one object, or any path that is no resource.
    Get,
    /// Read many objects.
    List,
    /// Follow changes.
    Watch,
    /// Make an object.
    Create,
    /// Replace an object.
    Update,
    /// Change parts of an object.
    Patch,
    /// Remove one object, or `DELETE` of a path that is no resource.
    Delete,
    /// Remove many objects.
    DeleteCollection,
    /// `POST` to a path that is no resource.
    Post,
    /// `PUT` to a path that is no resource.
    Put,
    /// `HEAD` of a path that is no resource; of a resource it is a read like any other.
    Head,
    /// `OPTIONS` of a path that is no resource.
    Options,
}

impl Verb {
    /// The word that stands in RBAC rules.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Post => "post",
            Verb::Put => "put",
            Verb::Head => "head",
            Verb::Options => "options",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    /// The logical cluster.
    pub(crate) cluster: ClusterName,
    /// The path without the cluster, decoded: what the `nonResourceURLs` of RBAC are compared with.
    pub(crate) path: String,
    /// The segments of that path, decoded: `["apis", "apps", "v1"]`.
    pub(crate) segments: Vec<String>,
    /// What is to be done.
    pub(crate) verb: Verb,
    /// The resource; none for discovery, health and everything else.
    pub(crate) resource: Option<ResourceRequest>,
}

/// Which resource and which object of it a request is for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourceRequest {
    /// The API group; empty for core.
    pub(crate) group: String,
    /// The API version.
    pub(crate) version: String,
    /// The resource's name in paths: `deployments`.
    pub(crate) resource: String,
    /// The namespace. A single namespace is inside itself: `/api/v1/namespaces/a` has name and
    /// namespace `a`.
    pub(crate) namespace: Option<String>,
    /// The object's name. For list and watch it comes from the field selector `metadata.name=a`, so
    /// that rules with `resourceNames` can allow them.
    pub(crate) name: Option<String>,
    /// `status`, `scale`, `finalize`.
    pub(crate) subresource: Option<String>,
    /// Whether it came by one of the old `/watch/` paths. Then `name` is from the path even for a
    /// watch.
    pub(crate) is_watch_path: bool,
}

impl RequestInfo {
    /// Takes a request line apart.
    pub(crate) fn parse(
        method: &str,
        path: &str,
        query: Option<&str>,
    ) -> Result<RequestInfo, Status> {
        let mut segments = segments(path)?;
        let cluster = take_cluster(&mut segments)?;
        let is_slash_kept = path.len() > 1 && path.ends_with('/') && !segments.is_empty();
        let path = format!("/{}{}", segments.join("/"), if is_slash_kept { "/" } else { "" });
        let (verb, resource) = match split_group_version(&segments) {
            None => (plain_verb(method)?, None),
            Some((group, version, rest)) => {
                let (verb, mut resource) = resource_request(method, rest, query)?;
                resource.group = group.to_owned();
                resource.version = version.to_owned();
                (verb, Some(resource))
            }
        };
        Ok(RequestInfo { cluster, path, segments, verb, resource })
    }
}

/// The decoded segments of a path. One slash at the end is ignored, as upstream's router does.
fn segments(path: &str) -> Result<Vec<String>, Status> {
    if path.len() > PATH_LIMIT_BYTES {
        return Err(Status::new(
            414,
            "BadRequest",
            format!("the path is longer than {PATH_LIMIT_BYTES} bytes"),
        ));
    }
    let Some(relative) = path.strip_prefix('/') else {
        return Err(Status::bad_request("the path does not start with a slash"));
    };
    let relative = relative.strip_suffix('/').unwrap_or(relative);
    if relative.is_empty() {
        return Ok(Vec::new());
    }
    relative.split('/').map(segment).collect()
}

fn segment(encoded: &str) -> Result<String, Status> {
    let Some(segment) = query::percent_decode(encoded, query::Plus::IsPlus) else {
        return Err(Status::bad_request("the path has a broken percent encoding"));
    };
    if segment.is_empty() || segment == "." || segment == ".." {
        return Err(Status::bad_request("the path has an empty segment, or one of dots only"));
    }
    // Upstream decodes first and splits then, so that an encoded slash is a slash. No valid name
    // has one.
    if segment.contains(|character: char| character == '/' || character.is_control()) {
        return Err(Status::bad_request(
            "the path has a slash or a control character in a segment",
        ));
    }
    Ok(segment)
}

fn take_cluster(segments: &mut Vec<String>) -> Result<ClusterName, Status> {
    let is_issuer = segments.first().is_some_and(|first| first == ISSUERS);
    let is_cluster = segments.first().is_some_and(|first| first == CLUSTERS);
    if segments.len() < 2 || !is_issuer && !is_cluster {
        return Ok(ClusterName::Root);
    }
    let rest = segments.split_off(2);
    let name = std::mem::replace(segments, rest).swap_remove(1);
    if !is_issuer {
        return cluster_name(name);
    }
    // An issuer has two documents, and nothing else of its cluster is reached by this way.
    let path: Vec<&str> = segments.iter().map(String::as_str).collect();
    match path.as_slice() {
        [".well-known", "openid-configuration"] | ["openid", "v1", "jwks"] => {
            Ok(ClusterName::Issuer(name))
        }
        _ => Err(Status::no_such_path()),
    }
}

fn cluster_name(name: String) -> Result<ClusterName, Status> {
    match name.as_str() {
        "*" => Ok(ClusterName::Wildcard),
        ROOT => Ok(ClusterName::Root),
        _ if is_dns_label(&name) => Ok(ClusterName::Named(name)),
        // A cluster that is not there and one that nobody may enter look the same.
        _ => Err(Status::new(403, "Forbidden", "access to this logical cluster is forbidden")),
    }
}

fn is_dns_label(name: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= 63
        && is_alphanumeric(first)
        && is_alphanumeric(last)
        && bytes.iter().all(|&byte| is_alphanumeric(byte) || byte == b'-')
}

/// Group, version and what follows, if something follows: `/apis/apps/v1` itself is discovery.
fn split_group_version(segments: &[String]) -> Option<(&str, &str, &[String])> {
    match segments {
        [prefix, version, rest @ ..] if prefix == "api" && !rest.is_empty() => {
            Some(("", version, rest))
        }
        [prefix, group, version, rest @ ..] if prefix == "apis" && !rest.is_empty() => {
            Some((group, version, rest))
        }
        _ => None,
    }
}

fn plain_verb(method: &str) -> Result<Verb, Status> {
    match method {
        "GET" => Ok(Verb::Get),
        "HEAD" => Ok(Verb::Head),
        "POST" => Ok(Verb::Post),
        "PUT" => Ok(Verb::Put),
        "PATCH" => Ok(Verb::Patch),
        "DELETE" => Ok(Verb::Delete),
        "OPTIONS" => Ok(Verb::Options),
        _ => Err(method_refused()),
    }
}

fn method_refused() -> Status {
    Status::method_not_allowed("the server does not allow this method on the requested resource")
}

fn resource_request(
    method: &str,
    parts: &[String],
    query: Option<&str>,
) -> Result<(Verb, ResourceRequest), Status> {
    let (is_watch_path, parts) = match parts {
        [first] if first == "watch" => return Err(Status::no_such_path()),
        [first, rest @ ..] if first == "watch" => (true, rest),
        _ => (false, parts),
    };
    let mut request = located(parts)?;
    request.is_watch_path = is_watch_path;
    let has_name = request.name.is_some();
    let verb = match method {
        "GET" | "HEAD" if is_watch_path => Verb::Watch,
        _ if is_watch_path => return Err(method_refused()),
        "GET" | "HEAD" if has_name => Verb::Get,
        "GET" | "HEAD" if query::asks_for_watch(query) => Verb::Watch,
        "GET" | "HEAD" => Verb::List,
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" if has_name => Verb::Delete,
        "DELETE" => Verb::DeleteCollection,
        _ => return Err(method_refused()),
    };
    if !has_name && matches!(verb, Verb::List | Verb::Watch) {
        request.name = query::selected_name(query);
    }
    Ok((verb, request))
}

/// Namespace, resource, name and subresource from what follows the version.
fn located(parts: &[String]) -> Result<ResourceRequest, Status> {
    let mut request = ResourceRequest::default();
    let mut parts = parts;
    if let [first, namespace, rest @ ..] = parts
        && first == "namespaces"
    {
        request.namespace = Some(namespace.clone());
        // `status` and `finalize` belong to the namespace itself; anything else is a resource
        // inside it.
        if let [inner, ..] = rest
            && inner != "status"
            && inner != "finalize"
        {
            parts = rest;
        }
    }
    let mut parts = parts.iter().cloned();
    request.resource = parts.next().unwrap_or_default();
    request.name = parts.next();
    request.subresource = parts.next();
    if parts.next().is_some() {
        return Err(Status::no_such_path());
    }
    Ok(request)
}
