//! Each call, and what it answers.

use crate::support::{ACCOUNT, Scene, allow, closed, code, done, tags, trust};
use interlock_iam::client::{Attached, NewPolicy, NewProvider, NewRole};
use interlock_iam::document::is_same;

#[tokio::test]
async fn a_role_is_read_as_it_was_made() {
    let scene = Scene::new().await;
    let boundary = scene.policy("boundary", "s3:*").await;
    let new = NewRole {
        path: "/interlock/fleet/".to_owned(),
        name: "role".to_owned(),
        trust: trust("https://hub:6443/issuers/a", "system:serviceaccount:ns:sa"),
        description: Some("<for> & \"against\"".to_owned()),
        most_session_seconds: Some(7_200),
        boundary: Some(boundary.clone()),
        tags: tags(&[("interlock.dev/owner", "role/ns/name"), ("empty", "")]),
    };
    let made = done(scene.client.create_role(&new).await);
    assert_eq!(done(scene.client.get_role("role").await), made);
    assert_eq!(made.arn, format!("arn:aws:iam::{ACCOUNT}:role/interlock/fleet/role"));
    assert!(made.id.starts_with("AROA") && made.id.len() == 21, "{}", made.id);
    assert!(is_same(&made.trust, &new.trust));
    assert_eq!(made.description, new.description);
    assert_eq!(made.most_session_seconds, new.most_session_seconds);
    assert_eq!(made.boundary, new.boundary);
    assert_eq!(made.tags, new.tags);
    assert_eq!(made.created_seconds, scene.now());
    assert_eq!(scene.client.cloud_seconds().map(|it| it - scene.now() <= 60), Some(true));
    // Lists leave tags and boundary out, as AWS does.
    let listed = done(scene.client.list_roles("/interlock/").await);
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].id, listed[0].tags.len()), (&made.id, 0));
    assert_eq!(done(scene.client.list_roles("/other/").await), []);
}

#[tokio::test]
async fn a_role_made_anew_has_another_id() {
    let scene = Scene::new().await;
    scene.role("role").await;
    let first = done(scene.client.get_role("role").await).id;
    done(scene.client.delete_role("role").await);
    assert_eq!(code(scene.client.get_role("role").await), "NoSuchEntity");
    assert_eq!(code(scene.client.delete_role("role").await), "NoSuchEntity");
    scene.role("role").await;
    assert_ne!(done(scene.client.get_role("role").await).id, first);
}

#[tokio::test]
async fn trust_boundary_and_tags_are_changed_in_place() {
    let scene = Scene::new().await;
    scene.role("role").await;
    let client = &scene.client;
    let before = done(client.get_role("role").await);
    let new = trust("https://hub/issuers/b", "system:serviceaccount:ns:sa");
    done(client.update_assume_role_policy("role", &new).await);
    let boundary = scene.policy("boundary", "s3:*").await;
    done(client.put_role_permissions_boundary("role", &boundary).await);
    done(client.tag_role("role", &tags(&[("a", "1")])).await);
    done(client.tag_role("role", &tags(&[("A", "2"), ("b", "3")])).await);
    let after = done(client.get_role("role").await);
    assert!(is_same(&after.trust, &new));
    assert_eq!((after.id, after.boundary), (before.id, Some(boundary)));
    assert_eq!(after.tags, tags(&[("A", "2"), ("b", "3")]));
}

#[tokio::test]
async fn policies_are_attached_and_detached() {
    let scene = Scene::new().await;
    let client = &scene.client;
    scene.role("role").await;
    let arn = scene.policy("policy", "s3:*").await;
    done(client.attach_role_policy("role", &arn).await);
    // Attaching again changes nothing.
    done(client.attach_role_policy("role", &arn).await);
    let expected = [Attached { name: "policy".to_owned(), id: arn.clone() }];
    assert_eq!(done(client.list_attached_role_policies("role").await), expected);
    let id = done(client.get_role("role").await).id;
    let entities = done(client.list_entities_for_policy(&arn).await);
    assert_eq!(entities, [Attached { name: "role".to_owned(), id }]);
    assert_eq!(done(client.get_policy(&arn).await).attachments, 1);
    assert_eq!(code(client.delete_role("role").await), "DeleteConflict");
    assert_eq!(code(client.delete_policy(&arn).await), "DeleteConflict");
    done(client.detach_role_policy("role", &arn).await);
    assert_eq!(code(client.detach_role_policy("role", &arn).await), "NoSuchEntity");
    done(client.delete_role("role").await);
    done(client.delete_policy(&arn).await);
    assert_eq!(code(client.get_policy(&arn).await), "NoSuchEntity");
}

#[tokio::test]
async fn inline_policies_are_written_read_and_removed() {
    let scene = Scene::new().await;
    let client = &scene.client;
    scene.role("role").await;
    done(client.put_role_policy("role", "interlock-fence-1", &allow("s3:*")).await);
    done(client.put_role_policy("role", "interlock-fence-2", &allow("s3:Get*")).await);
    let names = done(client.list_role_policies("role").await);
    assert_eq!(names, ["interlock-fence-1", "interlock-fence-2"]);
    let document = done(client.get_role_policy("role", "interlock-fence-2").await);
    assert_eq!(document, allow("s3:Get*"));
    assert_eq!(code(client.delete_role("role").await), "DeleteConflict");
    for name in names {
        done(client.delete_role_policy("role", &name).await);
        assert_eq!(code(client.delete_role_policy("role", &name).await), "NoSuchEntity");
    }
    assert_eq!(done(client.list_instance_profiles_for_role("role").await), Vec::<String>::new());
    done(client.delete_role("role").await);
}

#[tokio::test]
async fn versions_are_added_made_default_and_deleted() {
    let scene = Scene::new().await;
    let client = &scene.client;
    let arn = scene.policy("policy", "s3:*").await;
    let second = done(client.create_policy_version(&arn, &allow("s3:Get*")).await);
    assert_eq!((second.id.as_str(), second.is_default), ("v2", true));
    assert_eq!(done(client.get_policy(&arn).await).default_version, "v2");
    let first = done(client.get_policy_version(&arn, "v1").await);
    assert_eq!((first.document, first.is_default), (Some(allow("s3:*")), false));
    assert_eq!(code(client.delete_policy(&arn).await), "DeleteConflict");
    assert_eq!(code(client.delete_policy_version(&arn, "v2").await), "DeleteConflict");
    done(client.set_default_policy_version(&arn, "v1").await);
    done(client.delete_policy_version(&arn, "v2").await);
    assert_eq!(code(client.set_default_policy_version(&arn, "v2").await), "NoSuchEntity");
    // A number is never used again.
    assert_eq!(done(client.create_policy_version(&arn, &allow("s3:Put*")).await).id, "v3");
    let versions = done(client.list_policy_versions(&arn).await);
    let ids: Vec<&str> = versions.iter().map(|version| version.id.as_str()).collect();
    assert_eq!(ids, ["v3", "v1"]);
    done(client.tag_policy(&arn, &tags(&[("k", "v")])).await);
    assert_eq!(done(client.get_policy(&arn).await).tags, tags(&[("k", "v")]));
}

#[tokio::test]
async fn providers_are_made_read_and_deleted() {
    let scene = Scene::new().await;
    let client = &scene.client;
    let new = NewProvider {
        url: "https://hub:6443/issuers/a".to_owned(),
        audiences: vec!["sts.amazonaws.com".to_owned()],
        thumbprints: vec!["a".repeat(40)],
        tags: tags(&[("k", "v")]),
    };
    let arn = done(client.create_open_id_connect_provider(&new).await);
    assert_eq!(arn, format!("arn:aws:iam::{ACCOUNT}:oidc-provider/hub:6443/issuers/a"));
    assert_eq!(code(client.create_open_id_connect_provider(&new).await), "EntityAlreadyExists");
    let read = done(client.get_open_id_connect_provider(&arn).await);
    assert_eq!(read.url, "hub:6443/issuers/a");
    assert_eq!(
        (read.audiences, read.thumbprints, read.tags),
        (new.audiences, new.thumbprints, new.tags)
    );
    done(client.delete_open_id_connect_provider(&arn).await);
    assert_eq!(code(client.get_open_id_connect_provider(&arn).await), "NoSuchEntity");
    // This call alone is documented to succeed when there is nothing to delete.
    done(client.delete_open_id_connect_provider(&arn).await);
    let http = NewProvider { url: "http://hub/issuers/a".to_owned(), ..NewProvider::default() };
    assert_eq!(code(client.create_open_id_connect_provider(&http).await), "ValidationError");
}

#[tokio::test]
async fn lists_are_read_to_their_end() {
    let scene = Scene::new().await;
    let names: Vec<String> = (0..1_100).map(|number| format!("role-{number:04}")).collect();
    for name in &names {
        let role = NewRole { name: name.clone(), trust: closed(), ..NewRole::default() };
        done(scene.client.create_role(&role).await);
    }
    let listed = done(scene.client.list_roles("/").await);
    assert_eq!(listed.into_iter().map(|role| role.name).collect::<Vec<_>>(), names);
}

#[tokio::test]
async fn the_caller_is_known_by_the_key() {
    let scene = Scene::new().await;
    let identity = done(scene.client.get_caller_identity().await);
    assert_eq!(identity.account, ACCOUNT);
    assert_eq!(identity.arn, format!("arn:aws:iam::{ACCOUNT}:root"));
    let wrong = interlock_iam::Credentials::lasting("AKIAROOT", "another secret");
    let client = scene.client.with(wrong);
    assert_eq!(code(client.get_caller_identity().await), "SignatureDoesNotMatch");
    let unknown = interlock_iam::Credentials::lasting("AKIANOBODY", "root's secret");
    let client = scene.client.with(unknown);
    assert_eq!(code(client.get_role("x").await), "InvalidClientTokenId");
}

#[tokio::test]
async fn a_request_with_a_clock_that_differs_too_much_is_refused() {
    let scene = Scene::new().await;
    let late = scene.now() - 301;
    let client = crate::support::client(scene.address, interlock_iam::Clock::new(move || late));
    assert_eq!(code(client.get_role("x").await), "SignatureDoesNotMatch");
}

#[tokio::test]
async fn what_is_not_there_is_said_so() {
    let scene = Scene::new().await;
    let client = &scene.client;
    let policy = format!("arn:aws:iam::{ACCOUNT}:policy/none");
    scene.role("role").await;
    for refused in [
        code(client.get_role("none").await),
        code(client.update_assume_role_policy("none", &closed()).await),
        code(client.put_role_policy("none", "p", &allow("*")).await),
        code(client.get_role_policy("role", "none").await),
        code(client.attach_role_policy("role", &policy).await),
        code(client.attach_role_policy("none", &policy).await),
        code(client.put_role_permissions_boundary("role", &policy).await),
        code(client.list_attached_role_policies("none").await),
        code(client.list_role_policies("none").await),
        code(client.list_instance_profiles_for_role("none").await),
        code(client.list_entities_for_policy(&policy).await),
        code(client.get_policy_version(&policy, "v1").await),
        code(client.list_policy_versions(&policy).await),
        code(client.create_policy_version(&policy, &allow("*")).await),
        code(client.tag_role("none", &tags(&[("k", "v")])).await),
        code(client.tag_policy(&policy, &tags(&[("k", "v")])).await),
    ] {
        assert_eq!(refused, "NoSuchEntity");
    }
    // The path is part of the name in an ARN.
    let new = NewPolicy {
        path: "/a/".to_owned(),
        name: "p".to_owned(),
        document: allow("*"),
        ..NewPolicy::default()
    };
    let arn = done(client.create_policy(&new).await).arn;
    assert_eq!(code(client.get_policy(&arn.replace("/a/", "/")).await), "NoSuchEntity");
}
