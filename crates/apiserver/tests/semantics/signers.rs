//! Requests for certificates: who approves one and who signs one needs a right on its signer.

use crate::support::{Api, fields, text};
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// Any bytes of the right form: nobody checks a signature here.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQg==";
const CERTIFICATE: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUI=";

async fn request(api: &Api, name: &str, signer: &str) -> String {
    let request = json!({"metadata": {"name": name}, "spec": {
        "request": REQUEST, "signerName": signer, "usages": ["client auth"]}});
    api.post(REQUESTS, &request).await.made();
    format!("{REQUESTS}/{name}")
}

/// Lets a user write the status and the approval of requests, and do this on these signers.
async fn let_write(api: &Api, user: &str, on_signers: &[(&str, &str)]) -> Api {
    let plural = "certificatesigningrequests";
    let mut rules = vec![json!({
        "apiGroups": [GROUP], "verbs": ["get", "update", "patch"],
        "resources": [plural, format!("{plural}/status"), format!("{plural}/approval")],
    })];
    rules.extend(on_signers.iter().map(|(verb, signer)| {
        json!({"apiGroups": [GROUP], "resources": ["signers"], "verbs": [verb],
            "resourceNames": [signer]})
    }));
    let role = json!({"metadata": {"name": user}, "rules": rules});
    api.post(&format!("{RBAC}/clusterroles"), &role).await.made();
    let binding = json!({
        "metadata": {"name": user},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
    });
    api.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.made();
    api.as_user(user, &[])
}

fn condition(sort: &str) -> Value {
    json!({"type": sort, "status": "True", "reason": "Test", "message": "as asked"})
}

fn with_condition(sort: &str) -> Value {
    json!({"status": {"conditions": [condition(sort)]}})
}

fn signed() -> Value {
    json!({"status": {"certificate": CERTIFICATE}})
}

#[tokio::test]
async fn whoever_writes_a_certificate_needs_the_right_to_sign_for_the_signer() {
    let api = Api::new().await;
    let one = request(&api, "one", "example.com/one").await;
    let status = format!("{one}/status");
    let approver = let_write(&api, "approver", &[("approve", "example.com/one")]).await;
    let refused = approver.merge(&status, &signed()).await.refused(403, "Forbidden");
    assert_eq!(
        refused["message"],
        "certificatesigningrequests.certificates.k8s.io \"one\" is forbidden: user not permitted to \
         sign requests with signerName \"example.com/one\""
    );
    approver.merge(&status, &with_condition("Failed")).await.refused(403, "Forbidden");
    let other = let_write(&api, "other", &[("sign", "example.com/two")]).await;
    other.merge(&status, &signed()).await.refused(403, "Forbidden");
    // A status in which nothing of this changes needs no right on the signer.
    approver.merge(&status, &json!({"metadata": {"labels": {"seen": "yes"}}})).await.ok();
    let signer = let_write(&api, "signer", &[("sign", "example.com/one")]).await;
    let written = signer.merge(&status, &signed()).await.ok();
    assert_eq!(written["status"]["certificate"], CERTIFICATE);
    let again = json!({"status": {"certificate": REQUEST}});
    let refused = signer.merge(&status, &again).await.refused(422, "Invalid");
    assert_eq!(fields(&refused), ["status.certificate"]);
}

#[tokio::test]
async fn the_right_to_sign_may_be_for_all_signers_of_a_domain() {
    let api = Api::new().await;
    let inside = request(&api, "inside", "example.com/any").await;
    let outside = request(&api, "outside", "example.org/any").await;
    let signer = let_write(&api, "signer", &[("sign", "example.com/*")]).await;
    signer.merge(&format!("{inside}/status"), &signed()).await.ok();
    signer.merge(&format!("{inside}/status"), &with_condition("Failed")).await.ok();
    let refused = signer.merge(&format!("{outside}/status"), &signed()).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(text(&refused["message"]).contains("example.org/any"), "{refused}");
}

#[tokio::test]
async fn an_approval_does_not_come_by_the_status() {
    let api = Api::new().await;
    let one = request(&api, "one", "example.com/one").await;
    let signer = let_write(&api, "signer", &[("sign", "example.com/*")]).await;
    let status = format!("{one}/status");
    for sort in ["Approved", "Denied"] {
        let refused = signer.merge(&status, &with_condition(sort)).await.refused(422, "Invalid");
        assert_eq!(fields(&refused), ["status.conditions"]);
        let why = format!("updates may not add a condition of type \"{sort}\"");
        assert!(text(&refused["message"]).contains(&why), "{refused}");
    }
    let approval = format!("{one}/approval");
    let refused = signer.merge(&approval, &with_condition("Approved")).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(text(&refused["message"]).contains("not permitted to approve"), "{refused}");
    let approver = let_write(&api, "approver", &[("approve", "example.com/*")]).await;
    approver.merge(&approval, &with_condition("Approved")).await.ok();
    // Nor does the status take it away.
    let none = json!({"status": {"conditions": []}});
    let refused = signer.merge(&status, &none).await.refused(422, "Invalid");
    assert_eq!(fields(&refused), ["status.conditions"]);
    let written = signer.merge(&status, &signed()).await.ok();
    assert_eq!(written["status"]["conditions"][0]["type"], "Approved");
}
