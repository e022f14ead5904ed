//! What is another's stays as it is.

use super::up::{PATH, Up, cloud_name, example, identities, is, reason, until};
use interlock_iam::client::NewRole;
use serde_json::{Value, json};

const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::000000000000:root"},"Action":"sts:AssumeRole"}]}"#;

fn stalled(up: &Up, path: &str) -> Value {
    until("the identity is stalled", || {
        let found = up.get(path);
        if is(&found, "Stalled", "True") {
            Ok(found)
        } else {
            Err(format!("{found:#}\n{}", up.says()))
        }
    })
}

#[test]
fn a_role_of_another_is_a_conflict_and_is_not_touched() {
    let up = Up::start();
    up.namespace("shop");
    let (name, iam) = (cloud_name("shop", "taken"), up.iam());
    let role = NewRole {
        path: PATH.to_owned(),
        name: name.clone(),
        trust: TRUST.to_owned(),
        ..NewRole::default()
    };
    let before = up.done(iam.create_role(&role));
    let path = format!("{}/taken", identities("shop"));
    up.client().must("POST", &identities("shop"), Some(&example("taken")));
    let found = stalled(&up, &path);
    assert_eq!(reason(&found, "Stalled"), "Conflict", "{found:#}");
    let account = up.get("/api/v1/namespaces/shop/serviceaccounts/taken");
    assert_eq!(account, Value::Null, "no account names a role of another");
    up.client().must("DELETE", &path, None);
    up.gone(&path);
    assert_eq!(up.done(iam.get_role(&name)), before);
    assert_eq!(up.done(iam.list_attached_role_policies(&name)), []);
    assert_eq!(up.in_the_cloud(), (vec![name], vec![]));
}

#[test]
fn a_service_account_of_another_is_a_conflict_and_nothing_is_made_in_the_cloud() {
    let up = Up::start();
    up.namespace("shop");
    let account = json!({"metadata": {"name": "theirs", "annotations": {"a": "b"}}});
    let accounts = "/api/v1/namespaces/shop/serviceaccounts";
    let before = up.client().must("POST", accounts, Some(&account));
    let path = format!("{}/theirs", identities("shop"));
    up.client().must("POST", &identities("shop"), Some(&example("theirs")));
    let found = stalled(&up, &path);
    assert_eq!(found["status"]["condition"], "saNameConflict");
    assert_eq!(up.in_the_cloud(), (vec![], vec![]));
    up.client().must("DELETE", &path, None);
    up.gone(&path);
    let after = up.get(&format!("{accounts}/theirs"));
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
}
