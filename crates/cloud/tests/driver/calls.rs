//! Each call does to the account what its name says.

use crate::support::{
    ABOUT, ACCOUNT, Scene, allow, closed, create_policy, create_role, done, place, policy, tags,
};
use interlock_identities::outside::{
    Asked, At, Call, Found, PolicyReading, Process, Request, RoleReading,
};

fn arn(kind: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:{kind}/interlock/f/x")
}

#[tokio::test]
async fn a_policy_is_created_changed_and_deleted() {
    let scene = Scene::new().await;
    assert_eq!(scene.ask(policy(None)).await.found, Found::Absent);
    scene.make([create_policy()]).await;
    let found = scene.policy().await;
    assert_eq!((found.arn, found.tags), (arn("policy"), tags(ABOUT)));
    assert_eq!(found.attached_to, None);
    let found = scene.policy_by(PolicyReading::Attachments).await;
    assert_eq!(found.attached_to, Some(vec![]));
    let second = Call::CreatePolicyVersion { document: allow("s3:PutObject") };
    scene.make([Call::TagPolicy { tags: tags("other") }, second]).await;
    let found = scene.policy().await;
    let versions: Vec<_> = found.versions.into_iter().flatten().map(|it| it.id).collect();
    assert_eq!((versions, found.default_version.as_str()), (vec!["v1".into(), "v2".into()], "v2"));
    assert_eq!(found.tags, tags("other"));
    let first = Call::SetDefaultPolicyVersion { version: "v1".to_owned() };
    scene.make([first, Call::DeletePolicyVersion { version: "v2".to_owned() }]).await;
    let found = scene.policy().await;
    assert_eq!(found.default_version, "v1");
    assert_eq!(found.versions.map(|it| it.len()), Some(1));
    scene.make([Call::DeletePolicy]).await;
    assert_eq!(scene.ask(policy(None)).await.found, Found::Absent);
}

#[tokio::test]
async fn a_role_is_created_changed_and_deleted() {
    let scene = Scene::new().await;
    scene.make([create_policy(), create_role()]).await;
    let found = scene.role().await;
    assert_eq!((found.arn, found.tags, found.boundary), (arn("role"), tags(ABOUT), None));
    let role = done(scene.direct.get_role("x").await);
    assert_eq!((role.path.as_str(), role.most_session_seconds), ("/interlock/f/", Some(3_600)));
    let trust = closed().replace("\"Version\"", "\"Id\":\"changed\",\"Version\"");
    let inline = Call::PutRolePolicy { name: "fence".to_owned(), document: allow("s3:*") };
    scene
        .make([
            Call::UpdateAssumeRolePolicy { trust },
            Call::PutRolePermissionsBoundary { arn: arn("policy") },
            Call::AttachRolePolicy { arn: arn("policy") },
            Call::TagRole { tags: tags("other") },
            inline,
        ])
        .await;
    let found = scene.role().await;
    assert!(found.trust.contains("changed"), "{}", found.trust);
    assert_eq!(found.boundary, Some(arn("policy")));
    assert_eq!((found.attached, found.tags), (vec![arn("policy")], tags("other")));
    let inline = found.inline.into_iter().flatten().map(|it| it.id).collect::<Vec<_>>();
    assert_eq!((inline, found.instance_profiles), (vec!["fence".to_owned()], None));
    let attached_to = scene.policy_by(PolicyReading::Attachments).await.attached_to;
    assert_eq!(attached_to, Some(vec!["x".to_owned()]));
    // A role that is to be deleted: its inline policies are of no interest while a policy is attached.
    let found = scene.role_by(RoleReading::Deletion).await;
    assert_eq!((found.inline, found.instance_profiles), (None, Some(vec![])));
    scene.make([Call::DetachRolePolicy { arn: arn("policy") }]).await;
    let found = scene.role_by(RoleReading::Deletion).await;
    assert_eq!(found.inline.map(|it| it.len()), Some(1));
    scene.make([Call::DeleteRolePolicy { name: "fence".to_owned() }, Call::DeleteRole]).await;
    let gone = scene.ask(Asked::Role { at: place(), reading: RoleReading::Attached }).await;
    assert_eq!(gone.found, Found::Absent);
}

#[tokio::test]
async fn a_provider_is_created_and_deleted() {
    let scene = Scene::new().await;
    let issuer = "https://hub.example.com/issuers/a".to_owned();
    let asked = Asked::Provider { issuer: issuer.clone() };
    assert_eq!(scene.ask(asked.clone()).await.found, Found::Absent);
    let audience = "sts.amazonaws.com".to_owned();
    let call = Call::CreateOpenIdConnectProvider { issuer, audience, tags: tags(ABOUT) };
    scene.make([call]).await;
    let arn = format!("arn:aws:iam::{ACCOUNT}:oidc-provider/hub.example.com/issuers/a");
    let found = scene.ask(asked.clone()).await.found;
    assert_eq!(found, Found::Provider { arn: arn.clone(), tags: tags(ABOUT) });
    let decided = Process { instance: crate::support::ME.to_owned(), uptime: 0 };
    let call = Call::DeleteOpenIdConnectProvider;
    let request = Request { about: ABOUT.to_owned(), decided, at: At::Arn(arn), call };
    scene.driver.send(request).await.unwrap();
    assert_eq!(scene.ask(asked).await.found, Found::Absent);
}

#[tokio::test]
async fn to_delete_what_is_gone_is_done_and_what_is_used_is_not_deleted() {
    let scene = Scene::new().await;
    scene.make([Call::DeleteRole, Call::DeletePolicy]).await;
    scene.make([create_policy(), create_role()]).await;
    scene.make([Call::AttachRolePolicy { arn: arn("policy") }]).await;
    let error = scene.send(Call::DeletePolicy).await.unwrap_err();
    assert!(error.contains("DeleteConflict"), "{error}");
    assert!(matches!(scene.ask(policy(None)).await.found, Found::Policy(_)));
}

#[tokio::test]
async fn nothing_of_another_account_is_asked_about_or_changed() {
    let scene = Scene::new().await;
    scene.make([create_role()]).await;
    let requests = scene.proxy.passed_on();
    let at = At::Arn("arn:aws:iam::999999999999:role/interlock/f/x".to_owned());
    let asked = Asked::Role { at: at.clone(), reading: RoleReading::Attached };
    assert_eq!(scene.ask(asked).await.found, Found::Absent);
    let decided = Process { instance: crate::support::ME.to_owned(), uptime: 0 };
    let request = Request { about: ABOUT.to_owned(), decided, at, call: Call::DeleteRole };
    let error = scene.driver.send(request).await.unwrap_err();
    assert!(error.contains("another account"), "{error}");
    assert_eq!(scene.proxy.passed_on(), requests);
    // A role of that name and account, under another path, is not the one that the ARN names.
    let at = At::Arn(format!("arn:aws:iam::{ACCOUNT}:role/elsewhere/x"));
    let asked = Asked::Role { at, reading: RoleReading::Attached };
    assert_eq!(scene.ask(asked).await.found, Found::Absent);
}
