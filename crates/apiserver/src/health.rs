//! Health: `/healthz`, `/livez` and `/readyz`, as a word, check by check, or one check alone.
//!
//! The checks have upstream's names, since that is what probes ask for. Those of the store look at it now. The others
//! are about what a server does before it is ready; a request is only answered by one that has done all of it.

use crate::http::{self, Body};
use crate::request::{ClusterName, Query, RequestInfo, Verb};
use crate::server::Server;
use ::http::Response;
use std::fmt::Write;

/// What one check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// The process answers.
    Started,
    /// The store takes writes.
    Store,
}

const CHECKS: [(&str, Check); 23] = [
    ("ping", Check::Started),
    ("log", Check::Started),
    ("etcd", Check::Store),
    ("informer-sync", Check::Started),
    ("poststarthook/start-apiserver-admission-initializer", Check::Started),
    ("poststarthook/generic-apiserver-start-informers", Check::Started),
    ("poststarthook/start-apiextensions-informers", Check::Started),
    ("poststarthook/start-apiextensions-controllers", Check::Started),
    ("poststarthook/crd-informer-synced", Check::Started),
    ("poststarthook/bootstrap-controller", Check::Started),
    ("poststarthook/rbac/bootstrap-roles", Check::Started),
    ("poststarthook/start-system-namespaces-controller", Check::Started),
    ("poststarthook/start-service-ip-repair-controllers", Check::Started),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", Check::Started),
    ("poststarthook/start-cluster-authentication-info-controller", Check::Started),
    ("poststarthook/start-kube-aggregator-informers", Check::Started),
    ("poststarthook/apiservice-registration-controller", Check::Started),
    ("poststarthook/apiservice-status-local-available-controller", Check::Started),
    ("poststarthook/apiservice-status-remote-available-controller", Check::Started),
    ("poststarthook/kube-apiserver-autoregistration", Check::Started),
    ("autoregister-completion", Check::Started),
    ("poststarthook/apiservice-openapi-controller", Check::Started),
    ("poststarthook/storage-readiness", Check::Store),
];

/// Serves health to any caller, before the caller is identified.
pub(crate) fn answer(server: &Server, info: &RequestInfo, query: &Query) -> Option<Response<Body>> {
    if info.cluster != ClusterName::Root || !matches!(info.verb, Verb::Get | Verb::Head) {
        return None;
    }
    let path = info.path.trim_matches('/');
    let (endpoint, one) = path.split_once('/').unwrap_or((path, ""));
    if !matches!(endpoint, "healthz" | "livez" | "readyz") {
        return None;
    }
    let readiness = server.readiness();
    // A process whose store has stopped lives: it is restarted by whoever reads why, not by a probe.
    let result = |check: Check| match &readiness {
        Err(why) if check == Check::Store && endpoint != "livez" => Err(why.clone()),
        Ok(()) | Err(_) => Ok(()),
    };
    if !one.is_empty() {
        let (_, check) = CHECKS.iter().find(|(name, _)| *name == one)?;
        return Some(match result(*check) {
            Ok(()) => http::text(200, "ok"),
            Err(why) => http::text(500, format!("internal server error: {why}\n")),
        });
    }
    let excluded = query.all("exclude");
    let chosen = CHECKS.iter().filter(|(name, _)| !excluded.iter().any(|out| out == name));
    let mut text = String::new();
    let mut failed = None;
    for (name, check) in chosen {
        match result(*check) {
            Ok(()) => writeln!(text, "[+]{name} ok"),
            Err(why) => {
                failed = Some(why);
                writeln!(text, "[-]{name} failed: reason withheld")
            }
        }
        .expect("a string takes every text");
    }
    Some(match failed {
        Some(why) => http::text(503, format!("not ready: {why}\n{text}{endpoint} check failed\n")),
        None if query.first("verbose").is_some() => {
            http::text(200, format!("{text}{endpoint} check passed\n"))
        }
        None => http::text(200, "ok"),
    })
}
