//! Who may do what: roles, tokens of service accounts, and questions about rights.

use crate::support::{Answer, Api, MAPS, names, text};
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// A role that lets somebody read config maps in `default`, and its binding.
async fn let_read(api: &Api, subject: Value) {
    let role = json!({
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    });
    api.post(ROLES, &role).await.made();
    let binding = json!({
        "metadata": {"name": "reader"}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
    });
    api.post(BINDINGS, &binding).await.made();
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name})
}

#[tokio::test]
async fn nobody_may_anything_that_no_role_says() {
    let api = Api::new().await;
    let ann = api.as_user("ann", &[]);
    let status = ann.get(MAPS).await.refused(403, "Forbidden");
    assert_eq!(
        status["message"],
        "configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \
         \"\" in the namespace \"default\""
    );
    assert_eq!(status["details"], json!({"kind": "configmaps"}));
    let_read(&api, user("ann")).await;
    ann.get(MAPS).await.ok();
    ann.get(&format!("{MAPS}/kube-root-ca.crt")).await.ok();
    ann.get("/api/v1/configmaps").await.refused(403, "Forbidden");
    ann.get("/api/v1/namespaces/kube-system/configmaps").await.refused(403, "Forbidden");
    let status = ann.delete(&format!("{MAPS}/kube-root-ca.crt")).await.refused(403, "Forbidden");
    assert_eq!(
        status["message"],
        "configmaps \"kube-root-ca.crt\" is forbidden: User \"ann\" cannot delete resource \
         \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    let watch = ann.get(&format!("{MAPS}?watch=true")).await;
    watch.refused(403, "Forbidden");
    api.delete(&format!("{BINDINGS}/reader")).await.ok();
    ann.get(MAPS).await.refused(403, "Forbidden");
}

#[tokio::test]
async fn nobody_gives_what_they_do_not_have() {
    let api = Api::new().await;
    let ann = api.as_user("ann", &[]);
    let role = json!({
        "metadata": {"name": "roles"},
        "rules": [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"],
                   "verbs": ["create", "get"]}],
    });
    api.post(ROLES, &role).await.made();
    let binding = json!({
        "metadata": {"name": "roles"}, "subjects": [user("ann")],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "roles"},
    });
    api.post(BINDINGS, &binding).await.made();
    let more = json!({
        "metadata": {"name": "more"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    });
    let status = ann.post(ROLES, &more).await.refused(403, "Forbidden");
    assert!(text(&status["message"]).contains("attempting to grant RBAC permissions"), "{status}");
    let mut same = role.clone();
    same["metadata"]["name"] = json!("same");
    ann.post(ROLES, &same).await.made();
}

#[tokio::test]
async fn the_roles_that_every_cluster_has_are_there_and_can_be_copied() {
    let api = Api::new().await;
    let roles = format!("{RBAC}/clusterroles");
    let listed = names(&api.get(&roles).await.ok());
    for name in ["admin", "cluster-admin", "edit", "view"] {
        assert!(listed.iter().any(|role| role == name), "{name}");
    }
    api.get(&format!("{roles}/view")).await.ok();
    api.delete(&format!("{roles}/view")).await.refused(403, "Forbidden");
    let body = json!({"metadata": {"name": "view"}, "rules": []});
    api.post(&roles, &body).await.refused(409, "AlreadyExists");
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = api.merge(&format!("{roles}/view"), &patch).await.ok();
    assert_eq!(changed["metadata"]["labels"]["a"], "b");
    assert_eq!(api.get(&format!("{roles}/view")).await.ok()["metadata"]["labels"]["a"], "b");
}

async fn token(api: &Api, account: &str) -> String {
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    });
    let answer = api.post(&format!("{ACCOUNTS}/{account}/token"), &request).await.made();
    assert_eq!(answer["kind"], "TokenRequest");
    assert!(answer["status"]["expirationTimestamp"].is_string());
    text(&answer["status"]["token"])
}

#[tokio::test]
async fn a_service_account_acts_by_its_token_until_it_is_gone() {
    let api = Api::new().await;
    api.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.made();
    let token = token(&api, "robot").await;
    api.with_token(&token, MAPS).await.refused(403, "Forbidden");
    let subject = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "default"});
    let_read(&api, subject).await;
    api.with_token(&token, MAPS).await.ok();
    api.with_token(&format!("{token}x"), MAPS).await.refused(401, "Unauthorized");
    api.with_token("", MAPS).await.refused(401, "Unauthorized");
    let review = json!({"spec": {"token": token}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let known = api.post(reviews, &review).await.made();
    assert_eq!(known["status"]["authenticated"], true);
    assert_eq!(known["status"]["user"]["username"], "system:serviceaccount:default:robot");
    api.delete(&format!("{ACCOUNTS}/robot")).await.ok();
    api.with_token(&token, MAPS).await.refused(401, "Unauthorized");
    let unknown = api.post(reviews, &review).await.made();
    assert!(unknown["status"]["authenticated"] != true, "{unknown}");
    // One of the same name is another one.
    api.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.made();
    api.with_token(&token, MAPS).await.refused(401, "Unauthorized");
    api.post(&format!("{ACCOUNTS}/nobody/token"), &json!({})).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_token_that_is_bound_to_an_object_ends_with_it() {
    let api = Api::new().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = api.post(secrets, &json!({"metadata": {"name": "s"}})).await.made();
    let request = json!({"spec": {"boundObjectRef": {
        "kind": "Secret", "apiVersion": "v1", "name": "s", "uid": secret["metadata"]["uid"],
    }}});
    let answer = api.post(&format!("{ACCOUNTS}/default/token"), &request).await.made();
    let token = text(&answer["status"]["token"]);
    api.with_token(&token, MAPS).await.refused(403, "Forbidden");
    api.delete(&format!("{secrets}/s")).await.ok();
    api.with_token(&token, MAPS).await.refused(401, "Unauthorized");
    api.post(&format!("{ACCOUNTS}/default/token"), &request).await.refused(404, "NotFound");
}

async fn may(api: &Api, verb: &str) -> Value {
    let review = json!({"spec": {"resourceAttributes": {
        "namespace": "default", "verb": verb, "resource": "configmaps",
    }}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    api.post(path, &review).await.made()["status"]["allowed"].clone()
}

#[tokio::test]
async fn rights_can_be_asked_for() {
    let api = Api::new().await;
    let ann = api.as_user("ann", &["friends"]);
    let_read(&api, user("ann")).await;
    assert_eq!((may(&ann, "get").await, may(&ann, "delete").await), (json!(true), json!(false)));
    assert_eq!(may(&api, "delete").await, true);
    let review = json!({"spec": {"user": "ann", "resourceAttributes": {
        "namespace": "default", "verb": "list", "resource": "configmaps",
    }}});
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    assert_eq!(api.post(reviews, &review).await.made()["status"]["allowed"], true);
    ann.post(reviews, &review).await.refused(403, "Forbidden");
    let whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let me = ann.post(whoami, &json!({})).await.made();
    let info = &me["status"]["userInfo"];
    assert_eq!(info["username"], "ann");
    assert_eq!(info["groups"], json!(["friends", "system:authenticated"]));
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let mine = ann.post(rules, &json!({"spec": {"namespace": "default"}})).await.made();
    let found = mine["status"]["resourceRules"]
        .as_array()
        .is_some_and(|list| list.iter().any(|rule| rule["resources"] == json!(["configmaps"])));
    assert!(found, "{mine}");
}

#[tokio::test]
async fn one_may_act_for_another_if_a_role_says_so() {
    let api = Api::new().await;
    let_read(&api, user("ann")).await;
    let as_ann = [("impersonate-user", "ann")];
    let as_bob = [("impersonate-user", "bob")];
    let ask = async |who: &Api, headers: &[(&str, &str)]| -> Answer {
        who.request("GET", MAPS, headers, "").await
    };
    ask(&api, &as_ann).await.ok();
    ask(&api, &as_bob).await.refused(403, "Forbidden");
    ask(&api.as_user("eve", &[]), &as_ann).await.refused(403, "Forbidden");
}
