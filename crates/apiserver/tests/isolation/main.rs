//! Tenants: what the credentials of one logical cluster are worth in another, and that nothing of one is seen
//! or changed from another.

#[path = "../support/asking.rs"]
mod asking;
mod borders;
mod contents;
mod rights;

use asking::Asker;
use interlock_apiserver::{Config, Server};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

/// Two tenants and the hub, with one of each sort of credential.
pub(crate) struct Tenants {
    pub(crate) server: Server,
    pub(crate) admin: Asker,
    pub(crate) east_id: String,
    _directory: tempfile::TempDir,
}

/// A token file: the hub's admin, one user who may enter `east`, one who may enter nothing.
const TOKENS: &str =
    "hub-admin,root-admin,1,system:masters\nalice-token,alice,2\nbob-token,bob,3\n";

pub(crate) async fn world() -> Tenants {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let token_file = directory.path().join("tokens");
    std::fs::write(&token_file, TOKENS).expect("a file in it");
    let config = Config {
        data_directory: Some(directory.path().join("data")),
        token_file: Some(token_file),
        hub_definitions: vec![definition(
            "apps.hub.example.com",
            "App",
            &json!({"type": "string"}),
        )],
        ..Config::default()
    };
    let server = Server::start(config).await.expect("a server");
    let admin = Asker::admin(&server);
    let east_id = make_cluster(&admin, "east").await;
    make_cluster(&admin, "west").await;
    let role = json!({
        "metadata": {"name": "enter-east"},
        "rules": [{"apiGroups": ["interlock.dev"], "resources": ["logicalclusters"],
                   "resourceNames": ["east"], "verbs": ["access"]}],
    });
    admin.make(&rbac("clusterroles"), &role).await;
    bind(&admin, "enter-east", "enter-east", &json!({"kind": "User", "name": "alice"})).await;
    Tenants { server, admin, east_id, _directory: directory }
}

impl Tenants {
    pub(crate) fn alice(&self) -> Asker {
        Asker::with_token(&self.server, "alice-token")
    }

    pub(crate) fn bob(&self) -> Asker {
        Asker::with_token(&self.server, "bob-token")
    }

    pub(crate) fn admin_in(&self, cluster: &str) -> Asker {
        self.admin.clone().in_cluster(cluster)
    }

    /// A token of a new account that may do anything in its cluster.
    pub(crate) async fn account_token(&self, cluster: &str, name: &str) -> String {
        let admin = self.admin_in(cluster);
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        admin.make(accounts, &json!({"metadata": {"name": name}})).await;
        let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": "default"});
        bind(&admin, &format!("{name}-admin"), "cluster-admin", &subject).await;
        token_of(&admin, name).await
    }

    /// A certificate that names a cluster.
    pub(crate) fn certificate(&self, user: &str, groups: &[&str], cluster_id: &str) -> Vec<u8> {
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let authority = self.server.authority().expect("there is a data directory");
        let now = jiff::Timestamp::now().as_second();
        let pair = authority.client_certificate(user, &groups, Some(cluster_id), now);
        let pem = pair.expect("a certificate").certificate_pem;
        CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is PEM").to_vec()
    }
}

pub(crate) async fn token_of(admin: &Asker, account: &str) -> String {
    let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
    let answer = admin.make(&path, &json!({})).await;
    answer["status"]["token"].as_str().expect("a token").to_owned()
}

/// Makes a logical cluster, and returns its id.
pub(crate) async fn make_cluster(admin: &Asker, name: &str) -> String {
    let clusters = "/apis/interlock.dev/v1alpha1/logicalclusters";
    let made = admin.make(clusters, &json!({"metadata": {"name": name}})).await;
    made["status"]["id"].as_str().expect("an id").to_owned()
}

pub(crate) fn rbac(plural: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/{plural}")
}

pub(crate) fn rbac_in(namespace: &str, plural: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{plural}")
}

/// Binds a cluster role to a subject.
pub(crate) async fn bind(admin: &Asker, name: &str, role: &str, subject: &Value) {
    let binding = json!({
        "metadata": {"name": name}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
    });
    admin.make(&rbac("clusterrolebindings"), &binding).await;
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"test": "yes"}}, "data": {"value": value}})
}

/// A definition of a namespaced kind whose `spec` is of this type.
pub(crate) fn definition(name: &str, kind: &str, spec: &Value) -> Value {
    let (plural, group) = name.split_once('.').expect("a plural and a group");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                      "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// One of each sort of request. `{}` and names are such that each would succeed for somebody who may.
pub(crate) fn requests() -> Vec<(&'static str, String, &'static str, Value)> {
    let json = "application/json";
    let one = format!("{CONFIG_MAPS}/kube-root-ca.crt");
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"},
                                 "user": "alice", "token": "x"}});
    let mut all = vec![
        ("GET", CONFIG_MAPS.to_owned(), "", Value::Null),
        ("GET", one.clone(), "", Value::Null),
        ("HEAD", one.clone(), "", Value::Null),
        ("GET", format!("{CONFIG_MAPS}?watch=true"), "", Value::Null),
        ("GET", "/api/v1/watch/configmaps".to_owned(), "", Value::Null),
        ("POST", CONFIG_MAPS.to_owned(), json, config_map("planted", "x")),
        ("PUT", one.clone(), json, config_map("kube-root-ca.crt", "x")),
        ("PATCH", one.clone(), "application/merge-patch+json", json!({"data": {"x": "y"}})),
        ("PATCH", one.clone(), "application/apply-patch+yaml", config_map("planted", "x")),
        ("DELETE", one, "", Value::Null),
        ("DELETE", CONFIG_MAPS.to_owned(), "", Value::Null),
        ("GET", "/api/v1/secrets".to_owned(), "", Value::Null),
        ("GET", DEFINITIONS.to_owned(), "", Value::Null),
        (
            "POST",
            DEFINITIONS.to_owned(),
            json,
            definition("a.example.com", "A", &json!({"type": "object"})),
        ),
        ("GET", "/apis/interlock.dev/v1alpha1/logicalclusters".to_owned(), "", Value::Null),
        ("POST", rbac("clusterroles"), json, json!({"metadata": {"name": "planted"}, "rules": []})),
        (
            "POST",
            "/api/v1/namespaces/default/serviceaccounts/default/token".to_owned(),
            json,
            json!({}),
        ),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews".to_owned(),
            json,
            review.clone(),
        ),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
            json,
            review.clone(),
        ),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews".to_owned(), json, review),
        ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned(), json, json!({})),
    ];
    let plain =
        ["/", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v3", "/metrics", "/version"];
    all.extend(plain.map(|path| ("GET", path.to_owned(), "", Value::Null)));
    all
}

/// Sends one of those requests.
pub(crate) async fn send(
    who: &Asker,
    (method, path, content_type, body): &(&'static str, String, &'static str, Value),
) -> asking::Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let path = match *content_type {
        "application/apply-patch+yaml" => format!("{path}?fieldManager=test"),
        _ => path.clone(),
    };
    who.ask(method, &path, content_type, body.as_bytes()).await
}
