//! Rights inside of one cluster: no grant beyond what the granter holds, and each change at once.

use crate::asking::Asker;
use crate::{CONFIG_MAPS, bind, config_map, rbac, rbac_in, world};
use http::Request;
use interlock_apiserver::Body;
use serde_json::{Value, json};
use std::future::Future;
use std::task::{Context, Waker};

fn user(name: &str) -> Value {
    json!({"kind": "User", "name": name})
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

fn role(name: &str, rules: &[Value]) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

/// Gives a user a cluster role with these rules.
async fn give(admin: &Asker, name: &str, rules: &[Value]) {
    admin.make(&rbac("clusterroles"), &role(&format!("of-{name}"), rules)).await;
    bind(admin, &format!("of-{name}"), &format!("of-{name}"), &user(name)).await;
}

#[tokio::test]
async fn nobody_grants_more_than_they_hold() {
    let world = world().await;
    let all = ["create", "update", "patch", "delete", "get", "list"];
    let rules =
        [rule("rbac.authorization.k8s.io", "*", &all), rule("", "configmaps", &["get", "list"])];
    give(&world.admin, "bob", &rules).await;
    let bob = world.bob();
    let held = role("held", &[rule("", "configmaps", &["get"])]);
    assert_eq!(bob.post(&rbac("clusterroles"), &held).await.code, 201);
    let beyond = [
        rule("", "secrets", &["get"]),
        rule("", "configmaps", &["*"]),
        rule("*", "*", &["*"]),
        json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}),
    ];
    for rule in beyond {
        let rules = std::slice::from_ref(&rule);
        let wanted = role("beyond", rules);
        for path in [rbac("clusterroles"), rbac_in("default", "roles")] {
            let code = bob.post(&path, &wanted).await.code;
            // A role in a namespace cannot name paths at all.
            assert!(code == 403 || (code == 422 && rule["resources"].is_null()), "{path} {rule}");
        }
        let held = format!("{}/held", rbac("clusterroles"));
        let patch = json!({"rules": [rule]});
        assert_eq!(bob.merge(&held, &patch).await.code, 403, "{rule}");
        assert_eq!(bob.put(&held, &role("held", rules)).await.code, 403, "{rule}");
        let mut applied = role("held", rules);
        applied["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
        applied["kind"] = json!("ClusterRole");
        let path = format!("{held}?fieldManager=bob&force=true");
        assert_eq!(bob.apply(&path, &applied).await.code, 403, "{rule}");
    }
    // Nor by a role that gathers, nor by the label of one that is gathered.
    let gathering = json!({"metadata": {"name": "gathering"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}});
    assert_eq!(bob.post(&rbac("clusterroles"), &gathering).await.code, 403);
    // Nor by binding a role that holds more; what they hold they may bind.
    for (name, code) in [("cluster-admin", 403), ("admin", 403), ("held", 201)] {
        let binding = json!({"metadata": {"name": format!("bob-{name}")}, "subjects": [user("bob")],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
        for path in [rbac("clusterrolebindings"), rbac_in("default", "rolebindings")] {
            assert_eq!(bob.post(&path, &binding).await.code, code, "{path} {name}");
        }
    }
    // The shared roles are changed under the same rule.
    let path = format!("{}/view", rbac("clusterroles"));
    let patch = json!({"rules": [rule("*", "*", &["*"])]});
    assert_eq!(bob.merge(&path, &patch).await.code, 403);
    let path = format!("{}/cluster-admin", rbac("clusterrolebindings"));
    let subjects = json!({"subjects": [user("bob")]});
    assert_eq!(bob.merge(&path, &subjects).await.code, 403);
}

#[tokio::test]
async fn aggregated_roles_follow_the_roles_that_they_gather() {
    let world = world().await;
    let east = world.admin_in("east");
    bind(&east, "alice-views", "view", &user("alice")).await;
    let alice = world.alice().in_cluster("east");
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    assert_eq!(alice.get(leases).await.code, 403);
    let mut more = role("more", &[rule("coordination.k8s.io", "leases", &["list"])]);
    more["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    east.make(&rbac("clusterroles"), &more).await;
    assert_eq!(alice.get(leases).await.code, 200);
    let path = format!("{}/more", rbac("clusterroles"));
    let label =
        json!({"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": null}}});
    assert_eq!(east.merge(&path, &label).await.code, 200);
    assert_eq!(alice.get(leases).await.code, 403);
}

#[tokio::test]
async fn each_change_of_rights_counts_from_the_moment_it_is_acknowledged() {
    let world = world().await;
    let east = world.admin_in("east");
    let alice = world.alice().in_cluster("east");
    for round in 0..50 {
        bind(&east, "alice-views", "view", &user("alice")).await;
        assert_eq!(alice.get(CONFIG_MAPS).await.code, 200, "round {round}");
        east.delete(&format!("{}/alice-views", rbac("clusterrolebindings"))).await;
        assert_eq!(alice.get(CONFIG_MAPS).await.code, 403, "round {round}");
    }
    let entry = format!("{}/enter-east", rbac("clusterrolebindings"));
    bind(&east, "alice-views", "view", &user("alice")).await;
    assert_eq!(alice.get(CONFIG_MAPS).await.code, 200);
    world.admin.delete(&entry).await;
    let refused = alice.get(CONFIG_MAPS).await;
    assert_eq!(refused.code, 403);
    assert!(refused.text().contains("cannot enter"), "{}", refused.text());
}

/// Polls a request until it waits for something, and lets go of it: the client hung up.
async fn abandon(who: &Asker, request: Request<Body>) {
    let mut asked = Box::pin(who.server.handle(request, &who.caller));
    let mut context = Context::from_waker(Waker::noop());
    // Whatever has to be read first is there: the first wait is for the commit.
    let _ = asked.as_mut().poll(&mut context);
}

#[tokio::test]
async fn a_binding_deleted_by_a_client_that_hung_up_gives_nothing() {
    let world = world().await;
    let east = world.admin_in("east");
    let alice = world.alice().in_cluster("east");
    let path = format!("{}/alice-views", rbac("clusterrolebindings"));
    for round in 0..20 {
        bind(&east, "alice-views", "view", &user("alice")).await;
        assert_eq!(alice.get(CONFIG_MAPS).await.code, 200, "round {round}");
        abandon(&east, east.request("DELETE", &path, "", b"")).await;
        east.until(&path, |answer| answer.code == 404).await;
        alice.until(CONFIG_MAPS, |answer| answer.code == 403).await;
    }
}

#[tokio::test]
async fn a_cluster_made_by_a_client_that_hung_up_can_be_entered() {
    let world = world().await;
    let clusters = "/apis/interlock.dev/v1alpha1/logicalclusters";
    let body = json!({"metadata": {"name": "north"}}).to_string();
    let request = world.admin.request("POST", clusters, "application/json", body.as_bytes());
    abandon(&world.admin, request).await;
    world.admin.until(&format!("{clusters}/north"), |answer| answer.code == 200).await;
    world.admin_in("north").until(CONFIG_MAPS, |answer| answer.code == 200).await;
    let crd = crate::definition("things.example.com", "Thing", &json!({"type": "string"}));
    let north = world.admin_in("north");
    let request =
        north.request("POST", crate::DEFINITIONS, "application/json", crd.to_string().as_bytes());
    abandon(&north, request).await;
    north.until("/apis/example.com/v1/things", |answer| answer.code == 200).await;
}

#[tokio::test]
async fn the_right_to_patch_is_no_right_to_create() {
    let world = world().await;
    let rules = [
        rule("", "configmaps", &["patch", "update", "get"]),
        rule("", "endpoints", &["patch", "update", "get"]),
    ];
    give(&world.admin, "bob", &rules).await;
    let bob = world.bob();
    let mut applied = config_map("new", "x");
    applied["apiVersion"] = json!("v1");
    applied["kind"] = json!("ConfigMap");
    let path = format!("{CONFIG_MAPS}/new?fieldManager=bob");
    let answer = bob.apply(&path, &applied).await;
    assert_eq!(answer.code, 403, "{}", answer.text());
    assert!(answer.text().contains("cannot create"), "{}", answer.text());
    let endpoints = json!({"metadata": {"name": "new"}});
    let answer = bob.put("/api/v1/namespaces/default/endpoints/new", &endpoints).await;
    assert_eq!(answer.code, 403, "{}", answer.text());
    assert_eq!(world.admin.apply(&path, &applied).await.code, 201);
    assert_eq!(bob.apply(&path, &applied).await.code, 200);
}

#[tokio::test]
async fn a_right_on_one_name_is_no_right_on_others() {
    let world = world().await;
    let rules = [json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"],
                        "verbs": ["create", "update", "patch", "get", "list", "watch", "deletecollection"]})];
    give(&world.admin, "bob", &rules).await;
    world.admin.make(CONFIG_MAPS, &config_map("mine", "x")).await;
    world.admin.make(CONFIG_MAPS, &config_map("other", "x")).await;
    let bob = world.bob();
    let by_name = format!("{CONFIG_MAPS}?fieldSelector=metadata.name=mine");
    assert_eq!(bob.get(&by_name).await.names(), ["mine"]);
    // A path with the name that is allowed, and something else in the body.
    let path = format!("{CONFIG_MAPS}/mine");
    for body in [config_map("third", "x"), json!({"metadata": {"generateName": "any-"}})] {
        let answer = bob.post(&path, &body).await;
        assert!(matches!(answer.code, 400 | 405), "{}", answer.text());
    }
    for request in [
        format!("{CONFIG_MAPS}?fieldSelector=metadata.name=mine,metadata.name=other"),
        format!("{CONFIG_MAPS}?fieldSelector=metadata.name!=mine"),
        format!("{CONFIG_MAPS}?fieldSelector=metadata.name=other&fieldSelector=metadata.name=mine"),
        format!("{CONFIG_MAPS}?fieldSelector=metadata.name==mine&continue=x"),
        CONFIG_MAPS.to_owned(),
    ] {
        let answer = bob.get(&request).await;
        assert!(answer.code != 200 || !answer.names().contains(&"other".to_owned()), "{request}");
    }
    // A collection's deletion has no name, whatever its selector says.
    assert_eq!(bob.delete(&by_name).await.code, 403);
    assert_eq!(world.admin.get(&format!("{CONFIG_MAPS}/other")).await.code, 200);
}

#[tokio::test]
async fn a_collection_cannot_be_replaced_or_patched() {
    let world = world().await;
    let mut applied = config_map("new", "x");
    applied["apiVersion"] = json!("v1");
    applied["kind"] = json!("ConfigMap");
    let path = format!("{CONFIG_MAPS}?fieldManager=test");
    assert_eq!(world.admin.apply(&path, &applied).await.code, 405);
    assert_eq!(world.admin.merge(&path, &applied).await.code, 405);
    assert_eq!(world.admin.put(CONFIG_MAPS, &applied).await.code, 405);
    assert_eq!(world.admin.post(&format!("{CONFIG_MAPS}/new"), &applied).await.code, 405);
    assert_eq!(world.admin.get(&format!("{CONFIG_MAPS}/new")).await.code, 404);
}
