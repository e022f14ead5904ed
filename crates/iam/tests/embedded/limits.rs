//! AWS's limits and refusals of bad input.

use crate::support::{Scene, allow, closed, code, done, tags};
use interlock_iam::client::{NewPolicy, NewRole};
use interlock_iam::document::size;

fn role(name: &str) -> NewRole {
    NewRole { name: name.to_owned(), trust: closed(), ..NewRole::default() }
}

fn policy(name: &str, document: String) -> NewPolicy {
    NewPolicy { name: name.to_owned(), document, ..NewPolicy::default() }
}

/// A policy of exactly so many characters.
fn sized(most: usize) -> String {
    let short = allow("s3:");
    let fill = "x".repeat(most - size(&short));
    short.replace("s3:", &format!("s3:{fill}"))
}

#[tokio::test]
async fn names_are_unique_regardless_of_case() {
    let scene = Scene::new().await;
    done(scene.client.create_role(&role("Name")).await);
    assert_eq!(code(scene.client.create_role(&role("nAME")).await), "EntityAlreadyExists");
    done(scene.client.create_policy(&policy("Name", allow("*"))).await);
    let again = NewPolicy { path: "/other/".to_owned(), ..policy("name", allow("*")) };
    assert_eq!(code(scene.client.create_policy(&again).await), "EntityAlreadyExists");
}

#[tokio::test]
async fn a_role_has_ten_managed_policies() {
    let scene = Scene::new().await;
    scene.role("role").await;
    for number in 0..10 {
        let arn = scene.policy(&format!("p{number}"), "s3:*").await;
        done(scene.client.attach_role_policy("role", &arn).await);
    }
    let arn = scene.policy("p10", "s3:*").await;
    assert_eq!(code(scene.client.attach_role_policy("role", &arn).await), "LimitExceeded");
}

#[tokio::test]
async fn a_policy_has_five_versions() {
    let scene = Scene::new().await;
    let arn = scene.policy("policy", "s3:*").await;
    for _ in 0..4 {
        done(scene.client.create_policy_version(&arn, &allow("s3:*")).await);
    }
    let sixth = scene.client.create_policy_version(&arn, &allow("s3:*")).await;
    assert_eq!(code(sixth), "LimitExceeded");
    done(scene.client.delete_policy_version(&arn, "v1").await);
    assert_eq!(done(scene.client.create_policy_version(&arn, &allow("s3:*")).await).id, "v6");
}

#[tokio::test]
async fn documents_have_a_greatest_size() {
    let scene = Scene::new().await;
    let client = &scene.client;
    done(client.create_policy(&policy("fits", sized(6_144))).await);
    assert_eq!(code(client.create_policy(&policy("large", sized(6_145))).await), "LimitExceeded");
    scene.role("role").await;
    done(client.put_role_policy("role", "one", &sized(6_000)).await);
    assert_eq!(code(client.put_role_policy("role", "two", &sized(4_241)).await), "LimitExceeded");
    done(client.put_role_policy("role", "two", &sized(4_240)).await);
    let trust = |most: usize| {
        let named = closed().replace("\"Effect\"", "\"Sid\":\"\",\"Effect\"");
        let fill = "x".repeat(most - size(&named));
        named.replace("\"Sid\":\"", &format!("\"Sid\":\"{fill}"))
    };
    done(client.update_assume_role_policy("role", &trust(2_048)).await);
    let large = client.update_assume_role_policy("role", &trust(2_049)).await;
    assert_eq!(code(large), "LimitExceeded");
}

#[tokio::test]
async fn documents_that_are_none_are_refused() {
    let scene = Scene::new().await;
    let client = &scene.client;
    scene.role("role").await;
    let arn = scene.policy("policy", "s3:*").await;
    for bad in ["", "{}", "[]", "{\"Statement\": 1}", "{\"Version\": \"2012-10-17\"", &closed()] {
        let refused = [
            code(client.create_policy(&policy("bad", bad.to_owned())).await),
            code(client.create_policy_version(&arn, bad).await),
            code(client.put_role_policy("role", "bad", bad).await),
        ];
        assert_eq!(refused, ["MalformedPolicyDocument"; 3], "{bad}");
    }
    for bad in ["", "{}", &allow("s3:*")] {
        let bad_role = NewRole { trust: bad.to_owned(), ..role("bad") };
        let refused = [
            code(client.create_role(&bad_role).await),
            code(client.update_assume_role_policy("role", bad).await),
        ];
        assert_eq!(refused, ["MalformedPolicyDocument"; 2], "{bad}");
    }
}

#[tokio::test]
async fn parameters_out_of_bounds_are_refused_and_nothing_is_made() {
    let scene = Scene::new().await;
    let client = &scene.client;
    let none = format!("arn:aws:iam::{}:policy/none", crate::support::ACCOUNT);
    let many: Vec<(String, String)> = (0..51).map(|it| (format!("k{it}"), String::new())).collect();
    for (wrong, expected) in [
        (role(&"a".repeat(65)), "ValidationError"),
        (role("a b"), "ValidationError"),
        (NewRole { path: "a".to_owned(), ..role("x") }, "ValidationError"),
        (NewRole { most_session_seconds: Some(3_599), ..role("x") }, "ValidationError"),
        (NewRole { most_session_seconds: Some(43_201), ..role("x") }, "ValidationError"),
        (NewRole { description: Some("d".repeat(1_001)), ..role("x") }, "ValidationError"),
        (NewRole { boundary: Some(none), ..role("x") }, "NoSuchEntity"),
        (NewRole { boundary: Some("none".to_owned()), ..role("x") }, "InvalidInput"),
        (NewRole { tags: tags(&[("aws:x", "")]), ..role("x") }, "InvalidInput"),
        (NewRole { tags: tags(&[("x*", "")]), ..role("x") }, "ValidationError"),
        (NewRole { tags: many.into_iter().collect(), ..role("x") }, "ValidationError"),
    ] {
        assert_eq!(code(client.create_role(&wrong).await), expected, "{wrong:?}");
    }
    assert_eq!(done(client.list_roles("/").await), []);
}

#[tokio::test]
async fn a_boundary_that_is_used_is_not_deleted() {
    let scene = Scene::new().await;
    let boundary = scene.policy("boundary", "s3:*").await;
    let bounded = NewRole { boundary: Some(boundary.clone()), ..role("role") };
    done(scene.client.create_role(&bounded).await);
    assert_eq!(code(scene.client.delete_policy(&boundary).await), "DeleteConflict");
    done(scene.client.delete_role("role").await);
    done(scene.client.delete_policy(&boundary).await);
}
