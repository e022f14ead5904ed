//! The calls of the server's own: background work, and what admission reads.

use super::{Call, Endpoint, FieldValidation, Shown};
use crate::access::identity::MASTERS;
use crate::access::{Identity, Scope};
use crate::clusters::Cluster;
use crate::resource::Resource;
use crate::server::Server;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

/// A call of the server's own, with all rights.
pub(crate) fn own_call(
    server: &Server,
    cluster: &Arc<Cluster>,
    group: &str,
    version: &str,
    plural: &str,
) -> Call {
    let resource = server
        .clusters()
        .find(cluster, group, version, plural)
        .expect("the server asks only for kinds that it serves");
    own_call_for(server, cluster, resource)
}

/// A call of the server's own on a resource, with all rights.
pub(crate) fn own_call_for(
    server: &Server,
    cluster: &Arc<Cluster>,
    resource: Arc<Resource>,
) -> Call {
    Call {
        server: server.clone(),
        cluster: Arc::clone(cluster),
        identity: Identity::authenticated("system:apiserver", vec![MASTERS.to_owned()], Scope::Hub),
        resource,
        namespace: String::new(),
        name: String::new(),
        subresource: String::new(),
        endpoint: Endpoint::Main,
        manager: "interlock-apiserver".to_owned(),
        is_apply: false,
        dry_run: false,
        field_validation: FieldValidation::Ignore,
        now: server.now(),
        began: Instant::now(),
        notes: Arc::default(),
        shown: Shown::Object,
        options: Value::Null,
        is_own: true,
    }
}
