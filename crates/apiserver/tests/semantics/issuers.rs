//! Every logical cluster issues tokens of its own, and publishes the keys that verify them.

use crate::clusters::{CLUSTERS, cluster};
use crate::support::{Api, text};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

const DISCOVERY: &str = ".well-known/openid-configuration";
const URL: &str = "https://hub.example.com:6443";
const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/default";

/// A server that is reached under a name, and the path of the issuer of one of its clusters.
async fn server() -> Api {
    let api = Api::new().await;
    api.server.reached_at(URL);
    api
}

async fn issuer_path(api: &Api, name: &str) -> String {
    let found = api.get(&format!("{CLUSTERS}/{name}")).await.ok();
    format!("/issuers/{}", text(&found["status"]["id"]))
}

async fn claims(api: &Api, audiences: &[&str]) -> Value {
    let request = json!({"spec": {"audiences": audiences}});
    let answer = api.post(&format!("{ACCOUNT}/token"), &request).await.made();
    let token = text(&answer["status"]["token"]);
    let payload = token.split('.').nth(1).expect("three parts");
    serde_json::from_slice(&BASE64.decode(payload).expect("base64")).expect("JSON")
}

#[tokio::test]
async fn each_cluster_is_an_issuer_of_its_own() {
    let api = server().await;
    let (one, two) = (cluster(&api, "t1").await, cluster(&api, "t2").await);
    let mut issuers = Vec::new();
    for (cluster, name) in [(&one, "t1"), (&two, "t2")] {
        let path = issuer_path(&api, name).await;
        // Whoever verifies tokens has no account here.
        let document = api.anonymous(&format!("{path}/{DISCOVERY}")).await.ok();
        assert_eq!(document["issuer"], format!("{URL}{path}"));
        assert_eq!(document["jwks_uri"], format!("{URL}{path}/openid/v1/jwks"));
        let keys = api.anonymous(&format!("{path}/openid/v1/jwks")).await.ok();
        assert_eq!(keys["keys"][0]["alg"], "ES256");
        let claims = claims(cluster, &["sts.amazonaws.com"]).await;
        assert_eq!(claims["iss"], document["issuer"]);
        assert_eq!(claims["aud"], json!(["sts.amazonaws.com"]));
        // By its name the cluster tells the same, to those who may enter it.
        assert_eq!(cluster.get(&format!("/{DISCOVERY}")).await.ok(), document);
        issuers.push(text(&document["issuer"]));
    }
    assert_ne!(issuers[0], issuers[1]);
    let root = api.anonymous(&format!("/issuers/root/{DISCOVERY}")).await.ok();
    assert_eq!(root["issuer"], format!("{URL}/issuers/root"));
    assert_eq!(claims(&api, &[]).await["iss"], root["issuer"]);
}

#[tokio::test]
async fn a_cluster_made_anew_under_its_name_is_another_issuer() {
    let api = server().await;
    cluster(&api, "t1").await;
    let before = issuer_path(&api, "t1").await;
    api.delete(&format!("{CLUSTERS}/t1")).await.ok();
    api.until_gone(&format!("{CLUSTERS}/t1")).await;
    api.anonymous(&format!("{before}/{DISCOVERY}")).await.refused(401, "Unauthorized");
    cluster(&api, "t1").await;
    assert_ne!(issuer_path(&api, "t1").await, before);
    api.anonymous(&format!("{before}/{DISCOVERY}")).await.refused(401, "Unauthorized");
}

#[tokio::test]
async fn a_cluster_says_who_reads_its_documents() {
    let api = server().await;
    let (one, two) = (cluster(&api, "t1").await, cluster(&api, "t2").await);
    let path = format!("{}/{DISCOVERY}", issuer_path(&api, "t1").await);
    let token = async |api: &Api| {
        let answer = api.post(&format!("{ACCOUNT}/token"), &json!({})).await.made();
        text(&answer["status"]["token"])
    };
    let (own, foreign) = (token(&one).await, token(&two).await);
    api.with_token(&foreign, &path).await.ok();
    let binding =
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/interlock:issuer-discovery";
    one.merge(binding, &json!({"subjects": null})).await.ok();
    // Its own service accounts still may; those of others are nobody there.
    api.anonymous(&path).await.refused(401, "Unauthorized");
    api.with_token(&foreign, &path).await.refused(401, "Unauthorized");
    api.with_token(&own, &path).await.ok();
    api.get(&path).await.ok();
    let other = format!("{}/{DISCOVERY}", issuer_path(&api, "t2").await);
    api.anonymous(&other).await.ok();
}

#[tokio::test]
async fn nothing_else_of_a_cluster_is_reached_by_its_issuer() {
    let api = server().await;
    cluster(&api, "t1").await;
    let path = issuer_path(&api, "t1").await;
    for rest in
        ["", "/", "/api", "/api/v1/namespaces", "/version", "/healthz", "/openid/v1", "/metrics"]
    {
        api.anonymous(&format!("{path}{rest}")).await.refused(404, "NotFound");
        api.get(&format!("{path}{rest}")).await.refused(404, "NotFound");
    }
    api.anonymous("/issuers").await.refused(401, "Unauthorized");
    let post = api.post(&format!("{path}/{DISCOVERY}"), &json!({})).await;
    post.refused(405, "MethodNotAllowed");
}

#[tokio::test]
async fn a_token_for_somebody_else_does_not_open_the_server() {
    let api = server().await;
    let one = cluster(&api, "t1").await;
    for audience in ["sts.amazonaws.com", "https://evil.example.com/issuers/root", URL] {
        let request = json!({"spec": {"audiences": [audience]}});
        let answer = one.post(&format!("{ACCOUNT}/token"), &request).await.made();
        let token = text(&answer["status"]["token"]);
        api.with_token(&token, "/clusters/t1/api").await.refused(401, "Unauthorized");
    }
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let answer = one.post(&format!("{ACCOUNT}/token"), &json!({})).await.made();
    let token = text(&answer["status"]["token"]);
    api.with_token(&token, "/clusters/t1/api").await.ok();
    let review = |audiences: Value| json!({"spec": {"token": token, "audiences": audiences}});
    let known = one.post(reviews, &review(json!([]))).await.made();
    assert_eq!(known["status"]["authenticated"], true);
    let issuer = format!("{URL}{}", issuer_path(&api, "t1").await);
    let known = one.post(reviews, &review(json!([issuer]))).await.made();
    assert_eq!(known["status"]["audiences"], json!([issuer]));
    let unknown = one.post(reviews, &review(json!(["vault"]))).await.made();
    assert!(unknown["status"]["authenticated"] != true, "{unknown}");
}
