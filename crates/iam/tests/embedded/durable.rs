//! What was answered is there after a restart.

use crate::support::{Issuer, Scene, allow, code, done, tags, trust};
use interlock_iam::client::{NewProvider, NewRole, WebIdentity};
use interlock_store::{Embedded, Options};

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Embedded::open(folder.path(), Options::default()).unwrap();
    let store = open();
    let scene = Scene::on(store.clone()).await;
    let issuer = Issuer::new("https://hub/issuers/a");
    let arn = scene.policy("policy", "iam:GetRole").await;
    done(scene.client.create_policy_version(&arn, &allow("iam:Get*")).await);
    let new = NewRole {
        name: "role".to_owned(),
        trust: trust(&issuer.url, "sub"),
        tags: tags(&[("k", "v")]),
        ..NewRole::default()
    };
    let role = done(scene.client.create_role(&new).await);
    done(scene.client.attach_role_policy("role", &arn).await);
    done(scene.client.put_role_policy("role", "inline", &allow("s3:*")).await);
    scene.role("gone").await;
    done(scene.client.delete_role("gone").await);
    let provider = NewProvider {
        url: issuer.url.clone(),
        audiences: vec![crate::support::AUDIENCE.to_owned()],
        ..NewProvider::default()
    };
    let provider = done(scene.client.create_open_id_connect_provider(&provider).await);
    scene.issuers.publish(&issuer);
    let identity = WebIdentity {
        role: role.arn.clone(),
        session: "session".to_owned(),
        token: issuer.token("sub", scene.now()),
        seconds: None,
    };
    let session = done(scene.client.assume_role_with_web_identity(&identity).await);
    drop(scene);
    store.close().await;

    let scene = Scene::on(open()).await;
    assert_eq!(done(scene.client.get_role("role").await), role);
    assert_eq!(code(scene.client.get_role("gone").await), "NoSuchEntity");
    assert_eq!(done(scene.client.get_policy(&arn).await).default_version, "v2");
    assert_eq!(done(scene.client.list_attached_role_policies("role").await)[0].id, arn);
    assert_eq!(done(scene.client.get_role_policy("role", "inline").await), allow("s3:*"));
    assert!(done(scene.client.get_open_id_connect_provider(&provider).await).url.ends_with("/a"));
    // A session outlives the process that issued it.
    let pod = scene.client.with(session.credentials);
    assert_eq!(done(pod.get_role("role").await).id, role.id);
}
