//! What paths and queries mean.

use super::*;
use serde_json::json;

fn parse(method: &str, target: &str) -> RequestInfo {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    RequestInfo::parse(method, path, query).expect("the test's path is valid")
}

/// The request in one line: cluster, verb, group/version, namespace, resource, name, subresource.
fn line(method: &str, target: &str) -> String {
    let info = parse(method, target);
    let (cluster, verb) = (&info.cluster, info.verb);
    let Some(resource) = info.resource else { return format!("{cluster} {verb} {}", info.path) };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    format!(
        "{cluster} {verb} {}/{} {} {} {} {}",
        resource.group,
        resource.version,
        or_dash(resource.namespace),
        resource.resource,
        or_dash(resource.name),
        or_dash(resource.subresource),
    )
}

#[test]
fn resource_paths_are_read_as_upstream_reads_them() {
    for (method, target, expected) in [
        ("GET", "/api/v1/namespaces", "root list /v1 - namespaces - -"),
        ("GET", "/api/v1/namespaces/a", "root get /v1 a namespaces a -"),
        ("PUT", "/api/v1/namespaces/a/finalize", "root update /v1 a namespaces a finalize"),
        ("PATCH", "/api/v1/namespaces/a/status", "root patch /v1 a namespaces a status"),
        ("GET", "/api/v1/namespaces/a/pods", "root list /v1 a pods - -"),
        ("GET", "/api/v1/namespaces/a/pods/", "root list /v1 a pods - -"),
        ("HEAD", "/api/v1/namespaces/a/pods/b", "root get /v1 a pods b -"),
        ("POST", "/api/v1/namespaces/a/pods", "root create /v1 a pods - -"),
        ("DELETE", "/api/v1/namespaces/a/pods", "root deletecollection /v1 a pods - -"),
        ("DELETE", "/api/v1/namespaces/a/pods/b", "root delete /v1 a pods b -"),
        ("GET", "/api/v1/pods?watch=1", "root watch /v1 - pods - -"),
        ("GET", "/api/v1/pods?watch", "root watch /v1 - pods - -"),
        ("GET", "/api/v1/pods?watch=False", "root list /v1 - pods - -"),
        ("GET", "/api/v1/namespaces/a/pods/b?watch=1", "root get /v1 a pods b -"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx", "root list /v1 - pods x -"),
        ("GET", "/api/v1/watch/pods", "root watch /v1 - pods - -"),
        ("GET", "/api/v1/watch/namespaces/a/pods/b", "root watch /v1 a pods b -"),
        ("GET", "/api/v1/watch/namespaces/a", "root watch /v1 a namespaces a -"),
        ("GET", "/apis/apps/v1/deployments", "root list apps/v1 - deployments - -"),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            "root patch apps/v1 a deployments b scale",
        ),
        (
            "GET",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            "root get rbac.authorization.k8s.io/v1 - clusterroles system:node -",
        ),
    ] {
        assert_eq!(line(method, target), expected, "{method} {target}");
    }
}

#[test]
fn other_paths_are_no_resources() {
    for (target, expected) in [
        ("/", "root get /"),
        ("/api", "root get /api"),
        ("/api/v1", "root get /api/v1"),
        ("/apis/", "root get /apis/"),
        ("/apis/apps/v1", "root get /apis/apps/v1"),
        ("/healthz", "root get /healthz"),
        ("/clusters", "root get /clusters"),
        ("/openapi/v3/apis/apps/v1", "root get /openapi/v3/apis/apps/v1"),
    ] {
        assert_eq!(line("GET", target), expected);
    }
}

#[test]
fn the_cluster_stands_before_everything() {
    assert_eq!(line("GET", "/clusters/a"), "a get /");
    assert_eq!(line("GET", "/clusters/root/version"), "root get /version");
    assert_eq!(line("GET", "/clusters/a-1/api/v1/pods"), "a-1 list /v1 - pods - -");
    assert_eq!(line("GET", "/clusters/a/api/v1/namespaces/b/pods/c/log"), "a get /v1 b pods c log");
    assert_eq!(line("GET", "/clusters/*/api/v1/pods?watch=true"), "* watch /v1 - pods - -");
    assert_eq!(parse("GET", "/clusters/root/version").cluster, ClusterName::Root);
    let refused = RequestInfo::parse("GET", "/clusters/A_B/api", None);
    assert_eq!(refused.expect_err("it is no DNS label").code, 403);
}

#[test]
fn strange_paths_are_refused() {
    let long = format!("/{}", "a".repeat(5_000));
    for (path, code) in [
        ("", 400),
        ("api", 400),
        ("//api", 400),
        ("/api//v1", 400),
        ("/api/../x", 400),
        ("/api/%2e%2e/x", 400),
        ("/api/v1/pods/a%2Fb", 400),
        ("/api/v1/pods/%zz", 400),
        ("/api/v1/pods/%ff", 400),
        ("/api/v1/pods/%00", 400),
        ("/api/v1/pods/%", 400),
        ("/api/v1/watch", 404),
        ("/api/v1/namespaces/a/pods/b/proxy/c", 404),
        (long.as_str(), 414),
    ] {
        let status = RequestInfo::parse("GET", path, None).expect_err("it must be refused");
        assert_eq!(status.code, code, "{path}");
    }
    for (method, path) in [("BREW", "/x"), ("OPTIONS", "/api/v1/pods"), ("PUT", "/api/v1/watch/x")]
    {
        let status = RequestInfo::parse(method, path, None).expect_err("it must be refused");
        assert_eq!(status.code, 405);
    }
}

fn query(text: &str) -> Query {
    Query::parse(Some(text)).expect("the test's query is short")
}

#[test]
fn the_options_of_a_list_are_read() {
    let options = query(
        "labelSelector=a%3Db%2Cc&limit=500&continue=x+y&resourceVersion=7&timeoutSeconds=-1\
         &allowWatchBookmarks=true&unknown=1",
    );
    let options = options.list_options().expect("the options are valid");
    assert_eq!(options.label_selector, "a=b,c");
    assert_eq!(options.limit, 500);
    assert_eq!(options.continue_token, "x y");
    assert_eq!(options.timeout_seconds, Some(-1));
    assert!(options.allow_watch_bookmarks);
    assert_eq!(options.list_version(), Ok(Some(7)));
}

#[test]
fn numbers_that_are_none_are_bad_requests() {
    let status = query("limit=x").list_options().expect_err("x is no number");
    assert_eq!((status.code, status.reason), (400, "BadRequest"));
    assert_eq!(status.message, "strconv.ParseInt: parsing \"x\": invalid syntax");
    let status = query("limit=99999999999999999999").list_options().expect_err("it is too large");
    assert!(status.message.ends_with("value out of range"));
}

#[test]
fn options_that_contradict_each_other_are_invalid() {
    let forbidden = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: ";
    for (text, message) in [
        (
            "resourceVersionMatch=Exact",
            format!(
                "{forbidden}resourceVersionMatch is forbidden unless resourceVersion is provided"
            ),
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            format!(
                "{forbidden}resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""
            ),
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=1&continue=x",
            format!("{forbidden}resourceVersionMatch is forbidden when continue is provided"),
        ),
        (
            "watch=1&sendInitialEvents=true",
            format!(
                "{forbidden}sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            ),
        ),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            format!(
                "{forbidden}resourceVersionMatch is forbidden for watch unless sendInitialEvents \
                 is provided"
            ),
        ),
        (
            "sendInitialEvents=true",
            "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: \
             sendInitialEvents is forbidden for list"
                .to_owned(),
        ),
        (
            "resourceVersion=1&resourceVersionMatch=Near",
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \
             \"Near\": supported values: \"Exact\", \"NotOlderThan\", \"\""
                .to_owned(),
        ),
    ] {
        let status = query(text).list_options().expect_err("it must be refused");
        assert_eq!((status.code, status.message), (422, message), "{text}");
    }
    let fine = query("watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    assert_eq!(fine.list_options().expect("it is valid").send_initial_events, Some(true));
}

#[test]
fn a_version_that_is_no_number_is_400_for_a_list_and_422_for_a_watch() {
    let options = query("resourceVersion=x").list_options().expect("the text is kept");
    let list = options.list_version().expect_err("x is no number");
    assert_eq!(list.code, 400);
    assert_eq!(
        list.message,
        "invalid resource version: resourceVersion: Invalid value: \"x\": strconv.ParseUint: \
         parsing \"x\": invalid syntax"
    );
    let watch = options.watch_version("", "pods").expect_err("x is no number");
    assert_eq!((watch.code, watch.reason), (422, "Invalid"));
    let options = query("resourceVersion=%2B1").list_options().expect("the text is kept");
    assert!(options.list_version().is_err());
    assert_eq!(query("").list_options().expect("nothing is fine").list_version(), Ok(None));
}

#[test]
fn the_options_of_a_write_are_checked_by_what_it_is() {
    let options = query("fieldManager=me&fieldValidation=Strict&dryRun=All&force=true");
    let apply = options.write_options(WriteKind::Apply).expect("it is valid");
    assert!(apply.force && apply.dry_run);
    assert_eq!((apply.field_manager.as_str(), apply.field_validation.as_str()), ("me", "Strict"));
    let patch = options.write_options(WriteKind::Patch).expect_err("force is for apply");
    assert!(patch.message.ends_with("force: Forbidden: may not be specified for non-apply patch"));
    assert!(options.write_options(WriteKind::Create).is_ok());
    let nobody = query("").write_options(WriteKind::Apply).expect_err("somebody must apply");
    assert_eq!(
        nobody.message,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for \
         apply patch"
    );
    for bad in ["dryRun=Some", "fieldValidation=x", "fieldManager=a%0Ab"] {
        let status = query(bad).write_options(WriteKind::Update).expect_err("it must be refused");
        assert_eq!(status.code, 422);
    }
    let long = format!("fieldManager={}", "a".repeat(129));
    let status = query(&long).write_options(WriteKind::Update).expect_err("it is too long");
    assert!(status.message.ends_with("Too long: may not be more than 128 bytes"));
}

#[test]
fn the_options_of_a_delete_come_from_query_or_body() {
    let options = query("propagationPolicy=Orphan&gracePeriodSeconds=0&uid=u&resourceVersion=3");
    let options = options.delete_options().expect("it is valid");
    let body = DeleteOptions::from_body(&json!({
        "propagationPolicy": "Orphan", "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u", "resourceVersion": "3"},
    }));
    assert_eq!(Ok(options), body);
    for bad in ["propagationPolicy=x", "propagationPolicy=Orphan&orphanDependents=1", "dryRun=x"] {
        assert_eq!(query(bad).delete_options().expect_err("it must be refused").code, 422);
    }
    for bad in [
        json!({"dryRun": "All"}),
        json!({"preconditions": 1}),
        json!({"uid": 1, "gracePeriodSeconds": "1"}),
    ] {
        assert_eq!(DeleteOptions::from_body(&bad).expect_err("it must be refused").code, 400);
    }
}

#[test]
fn a_table_carries_metadata_unless_told_otherwise() {
    assert_eq!(query("").include_object(), Ok("Metadata"));
    assert_eq!(query("includeObject=None").include_object(), Ok("None"));
    assert_eq!(query("includeObject=x").include_object().expect_err("unknown").code, 422);
}

#[test]
fn no_path_and_no_query_makes_it_panic() {
    let pieces = [
        "/",
        "api",
        "apis",
        "v1",
        "clusters",
        "*",
        "namespaces",
        "watch",
        "status",
        "%2F",
        "%",
        "..",
        "é",
        "a",
        "?",
        "=",
        "&",
        "watch=1",
        "limit",
        "+",
        ";",
        "fieldSelector=metadata.name",
        "\0",
    ];
    let mut state: u64 = 0x1234_5678_9ABC_DEF1;
    for _ in 0..40_000 {
        let mut target = String::new();
        for _ in 0..(state % 9) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            target.push_str(pieces[(state >> 11) as usize % pieces.len()]);
        }
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15) | 1;
        let (path, text) = target.split_once('?').unwrap_or((&target, ""));
        let _ = RequestInfo::parse("GET", path, Some(text));
        let query = query(text);
        let _ = (query.list_options(), query.delete_options(), query.include_object());
        let _ = (query.write_options(WriteKind::Apply), query.pretty());
    }
}
