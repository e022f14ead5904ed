//! An identity from the first apply to the last trace of it.

use super::harness::mode;
use super::up::{ACCOUNT, ISSUER, Up, cloud_name, example, identities, until};
use interlock_iam::client::{NewProvider, WebIdentity};
use interlock_iam::document::is_same;
use serde_json::{Value, json};

const NAME: &str = "s3put";
const CLOSED: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"sts:AssumeRoleWithWebIdentity"}]}"#;
const OTHER: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;

fn policy_arn() -> String {
    format!("arn:aws:iam::{ACCOUNT}:policy/interlock/test-fleet/{}", cloud_name("shop", NAME))
}

/// The document of the default version of the policy.
fn document(up: &Up) -> String {
    let (iam, arn) = (up.iam(), policy_arn());
    let policy = up.done(iam.get_policy(&arn));
    up.done(iam.get_policy_version(&arn, &policy.default_version)).document.unwrap_or_default()
}

/// A session for a token of the service account.
fn assumes(up: &Up) -> Result<String, String> {
    let path = format!("/api/v1/namespaces/shop/serviceaccounts/{NAME}/token");
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": ["sts.amazonaws.com"]},
    });
    let token = up.client().must("POST", &path, Some(&body));
    let identity = WebIdentity {
        role: format!(
            "arn:aws:iam::{ACCOUNT}:role/interlock/test-fleet/{}",
            cloud_name("shop", NAME)
        ),
        session: "test".to_owned(),
        token: token["status"]["token"].as_str().expect("a token").to_owned(),
        seconds: None,
    };
    let iam = up.iam();
    let session = up.call(iam.assume_role_with_web_identity(&identity));
    match session {
        interlock_iam::Outcome::Done(session) => Ok(session.subject),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn an_identity_is_made_used_repaired_updated_and_deleted() {
    let up = Up::start();
    assert_eq!(mode(&up.config()), 0o600);
    assert_eq!(up.in_the_cloud(), (vec![], vec![]));
    up.namespace("shop");
    let path = format!("{}/{NAME}", identities("shop"));
    up.client().must("POST", &identities("shop"), Some(&example(NAME)));
    let made = up.created(&path);

    // What there is: a policy, a role that trusts exactly this account, the attachment, the annotation.
    let (name, iam) = (cloud_name("shop", NAME), up.iam());
    assert_eq!(up.in_the_cloud(), (vec![name.clone()], vec![name.clone()]));
    let role = up.done(iam.get_role(&name));
    assert_eq!(made["status"]["roleARN"], role.arn);
    assert!(role.trust.contains("system:serviceaccount:shop:s3put"), "{}", role.trust);
    assert_eq!(role.tags["interlock.dev/owner"], format!("role/shop/{NAME}"));
    let attached = || -> Vec<String> {
        let attached = up.done(iam.list_attached_role_policies(&name));
        attached.into_iter().map(|policy| policy.id).collect()
    };
    assert_eq!(attached(), [policy_arn()]);
    assert!(document(&up).contains("s3:List*"), "{}", document(&up));
    let account = up.get(&format!("/api/v1/namespaces/shop/serviceaccounts/{NAME}"));
    assert_eq!(account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"], role.arn);

    // A token of the account opens the role, by keys that are read within the process.
    let provider = NewProvider {
        url: ISSUER.to_owned(),
        audiences: vec!["sts.amazonaws.com".to_owned()],
        ..NewProvider::default()
    };
    up.done(iam.create_open_id_connect_provider(&provider));
    assert_eq!(assumes(&up).as_deref(), Ok("system:serviceaccount:shop:s3put"));

    // Whatever somebody else changes is changed back.
    up.done(iam.detach_role_policy(&name, &policy_arn()));
    up.done(iam.update_assume_role_policy(&name, CLOSED));
    up.done(iam.create_policy_version(&policy_arn(), OTHER));
    until("drift is repaired", || {
        let trust = up.done(iam.get_role(&name)).trust;
        let is_repaired = attached() == [policy_arn()]
            && is_same(&trust, &role.trust)
            && document(&up).contains("s3:List*");
        if is_repaired { Ok(()) } else { Err(format!("{trust} {}\n{}", document(&up), up.says())) }
    });
    assert!(assumes(&up).is_ok());

    // Seven updates are more than there are versions.
    for number in 1..=7 {
        let action = format!("s3:Update{number}");
        let statement = json!([{"resource": "arn:aws:s3:::b/*", "action": [action]}]);
        let change = json!({"spec": {"policy": {"statement": statement}}});
        up.client().must("PATCH", &path, Some(&change));
        until("the policy is updated", || {
            let document = document(&up);
            if document.contains(&action) { Ok(()) } else { Err(document) }
        });
    }
    assert!(up.done(iam.list_policy_versions(&policy_arn())).len() <= 5);
    // Still the same role: others know it by its id.
    assert_eq!(up.done(iam.get_role(&name)).id, role.id);

    up.client().must("DELETE", &path, None);
    up.gone(&path);
    assert_eq!(up.in_the_cloud(), (vec![], vec![]), "{}", up.says());
    for kind in ["policies", "roles"] {
        let list = up.get(&format!("{}/namespaces/shop/{kind}", super::up::KINDS));
        assert_eq!(list["items"], json!([]), "{kind}");
    }
    let account = up.get(&format!("/api/v1/namespaces/shop/serviceaccounts/{NAME}"));
    assert_eq!(account, Value::Null);
}
