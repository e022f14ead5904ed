//! Who may enter where.

use crate::asking::Asker;
use crate::{CONFIG_MAPS, bind, config_map, make_cluster, rbac, requests, send, token_of, world};
use serde_json::json;

#[tokio::test]
async fn the_credentials_of_one_cluster_are_worth_nothing_anywhere_else() {
    let world = world().await;
    let token = world.account_token("east", "builder").await;
    let masters = world.certificate("carol", &["system:masters"], &world.east_id);
    let with_token = Asker::with_token(&world.server, &token);
    let with_certificate = Asker::with_certificate(&world.server, masters);
    let askers = [
        with_token.clone(),
        with_certificate.clone(),
        with_token.clone().with_header("impersonate-user", "root-admin"),
        with_certificate
            .clone()
            .with_header("impersonate-user", "root-admin")
            .with_header("impersonate-group", "system:masters"),
    ];
    for asker in &askers {
        // `north` is not there: that must not be reported either.
        for place in ["", "/clusters/root", "/clusters/west", "/clusters/north", "/clusters/*"] {
            let elsewhere = Asker { prefix: place.to_owned(), ..asker.clone() };
            for request in requests() {
                let answer = send(&elsewhere, &request).await;
                assert_eq!(answer.code, 401, "{place} {request:?}: {}", answer.text());
                assert_eq!(answer.json["message"], "Unauthorized", "{place} {request:?}");
            }
        }
    }
    for (asker, user) in
        [(with_token, "system:serviceaccount:default:builder"), (with_certificate, "carol")]
    {
        let at_home = asker.in_cluster("east");
        assert_eq!(at_home.get("/api/v1/secrets").await.code, 200);
        let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let who = at_home.make(review, &json!({})).await;
        assert_eq!(who["status"]["userInfo"]["username"], user);
    }
}

#[tokio::test]
async fn a_cluster_that_is_not_there_and_one_that_may_not_be_entered_look_the_same() {
    let world = world().await;
    // Bob may even list logical clusters at the hub; that does not let him in.
    for (who, code) in
        [(world.bob(), 403), (world.alice(), 403), (Asker::nobody(&world.server), 401)]
    {
        for request in requests() {
            let there = send(&who.clone().in_cluster("west"), &request).await;
            let not_there = send(&who.clone().in_cluster("nowt"), &request).await;
            assert_eq!(there.code, code, "{request:?}: {}", there.text());
            assert_eq!(there.code, not_there.code, "{request:?}");
            assert_eq!(there.text().replace("west", "nowt"), not_there.text(), "{request:?}");
            assert_eq!(there.headers, not_there.headers, "{request:?}");
        }
    }
}

#[tokio::test]
async fn nobody_gets_version_and_health_of_the_hub_and_nothing_else() {
    let world = world().await;
    let nobody = Asker::nobody(&world.server);
    for path in ["/version", "/healthz", "/livez", "/readyz"] {
        assert_eq!(nobody.get(path).await.code, 200, "{path}");
    }
    for request in requests().iter().filter(|request| request.1 != "/version") {
        assert_eq!(send(&nobody, request).await.code, 401, "{request:?}");
    }
    for cluster in ["east", "nowt", "*"] {
        for path in ["/healthz", "/livez", "/readyz"] {
            let answer = nobody.clone().in_cluster(cluster).get(path).await;
            assert_eq!(answer.code, 401, "{cluster} {path}");
        }
    }
    for value in
        ["Bearer x", "Bearer ", "Basic YTpi", "bearer alice-token", "Bearer alice-token x", ""]
    {
        let garbled = nobody.clone().with_header("authorization", value);
        assert_eq!(garbled.get("/api").await.code, 401, "{value:?}");
    }
}

#[tokio::test]
async fn a_user_of_the_hub_has_inside_a_cluster_what_that_cluster_gives() {
    let world = world().await;
    let alice = world.alice();
    let subject = json!({"kind": "User", "name": "alice"});
    bind(&world.admin, "alice-views-the-hub", "view", &subject).await;
    assert_eq!(alice.get(CONFIG_MAPS).await.code, 200);
    let inside = alice.clone().in_cluster("east");
    assert_eq!(inside.get(CONFIG_MAPS).await.code, 403, "the hub's rights stay at the hub");
    bind(&world.admin_in("east"), "alice-views", "view", &subject).await;
    assert_eq!(inside.get(CONFIG_MAPS).await.code, 200);
    assert_eq!(alice.clone().in_cluster("west").get(CONFIG_MAPS).await.code, 403);
    // A tenant can name anybody in its bindings, but not let them in.
    let bob = json!({"kind": "User", "name": "bob"});
    bind(&world.admin_in("east"), "bob-admin", "cluster-admin", &bob).await;
    assert_eq!(world.bob().in_cluster("east").get(CONFIG_MAPS).await.code, 403);
    assert_eq!(world.bob().get(CONFIG_MAPS).await.code, 403);
    let admin = Asker::with_token(&world.server, "hub-admin");
    for cluster in ["root", "east", "west"] {
        assert_eq!(admin.clone().in_cluster(cluster).get("/api/v1/secrets").await.code, 200);
    }
}

#[tokio::test]
async fn whoever_impersonates_a_master_in_a_tenant_is_one_there_only() {
    let world = world().await;
    let admin = world.admin_in("east");
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin.make(accounts, &json!({"metadata": {"name": "actor"}})).await;
    let token = token_of(&admin, "actor").await;
    let actor = Asker::with_token(&world.server, &token);
    let as_master = actor
        .clone()
        .with_header("impersonate-user", "anybody")
        .with_header("impersonate-group", "system:masters");
    assert_eq!(as_master.clone().in_cluster("east").get(CONFIG_MAPS).await.code, 403);
    let role = json!({"metadata": {"name": "actor"}, "rules": [
        {"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]}]});
    admin.make(&rbac("clusterroles"), &role).await;
    let subject = json!({"kind": "ServiceAccount", "name": "actor", "namespace": "default"});
    bind(&admin, "actor", "actor", &subject).await;
    assert_eq!(as_master.clone().in_cluster("east").get("/api/v1/secrets").await.code, 200);
    for elsewhere in ["root", "west", "nowt", "*"] {
        let answer = as_master.clone().in_cluster(elsewhere).get(CONFIG_MAPS).await;
        assert_eq!(answer.code, 401, "{elsewhere}");
    }
    // The same for a user of the hub who may act for others inside `east` only.
    let alice = json!({"kind": "User", "name": "alice"});
    bind(&admin, "alice", "actor", &alice).await;
    let alice = world
        .alice()
        .with_header("impersonate-user", "root-admin")
        .with_header("impersonate-group", "system:masters");
    assert_eq!(alice.clone().in_cluster("east").get("/api/v1/secrets").await.code, 200);
    for elsewhere in ["root", "west", "nowt", "*"] {
        let answer = alice.clone().in_cluster(elsewhere).get(CONFIG_MAPS).await;
        assert_eq!(answer.code, 403, "{elsewhere}");
    }
}

#[tokio::test]
async fn impersonation_takes_each_right_that_it_needs() {
    let world = world().await;
    let role = json!({"metadata": {"name": "actor"}, "rules": [
        {"apiGroups": [""], "resources": ["users"], "resourceNames": ["dave", "system:anonymous"],
         "verbs": ["impersonate"]}]});
    world.admin.make(&rbac("clusterroles"), &role).await;
    bind(&world.admin, "actor", "actor", &json!({"kind": "User", "name": "bob"})).await;
    let as_dave = world.bob().with_header("impersonate-user", "dave");
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = as_dave.make(review, &json!({})).await;
    assert_eq!(who["status"]["userInfo"]["username"], "dave");
    for (name, value) in [
        ("impersonate-group", "system:masters"),
        ("impersonate-uid", "17"),
        ("impersonate-extra-scopes", "all"),
        ("impersonate-extra-%2f", "all"),
    ] {
        let asked = as_dave.clone().with_header(name, value);
        assert_eq!(asked.post(review, &json!({})).await.code, 403, "{name}");
    }
    for other in ["erin", "system:serviceaccount:default:default", "system:masters"] {
        let asked = world.bob().with_header("impersonate-user", other);
        assert_eq!(asked.get(CONFIG_MAPS).await.code, 403, "{other}");
    }
    for lonely in ["impersonate-group", "impersonate-uid", "impersonate-extra-x"] {
        for user in [None, Some("")] {
            let mut asked = world.bob().with_header(lonely, "system:masters");
            if let Some(user) = user {
                asked = asked.with_header("impersonate-user", user);
            }
            assert_eq!(asked.get(CONFIG_MAPS).await.code, 400, "{lonely} {user:?}");
        }
    }
    // Whoever is impersonated as nobody is nobody, not an authenticated user of that name.
    let as_nobody = world.bob().with_header("impersonate-user", "system:anonymous");
    assert_eq!(as_nobody.get("/api").await.code, 401);
}

#[tokio::test]
async fn all_clusters_are_shown_only_to_those_who_hold_the_verb_for_it() {
    let world = world().await;
    for cluster in ["root", "east", "west"] {
        let mut map = config_map("mine", cluster);
        // What tenants say about where they are counts for nothing.
        map["metadata"]["annotations"] = json!({"kcp.io/cluster": "root"});
        world.admin_in(cluster).make(CONFIG_MAPS, &map).await;
    }
    let all = "/clusters/*/api/v1/configmaps?labelSelector=test";
    let seen = world.admin.get(all).await;
    let mut seen: Vec<(String, String)> = seen.json["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| {
            (
                item["metadata"]["annotations"]["kcp.io/cluster"].to_string(),
                item["data"]["value"].to_string(),
            )
        })
        .collect();
    seen.sort();
    let expected = ["east", "root", "west"].map(|name| (format!("{name:?}"), format!("{name:?}")));
    assert_eq!(seen, expected);
    let subject = json!({"kind": "User", "name": "bob"});
    bind(&world.admin, "bob-views", "view", &subject).await;
    assert_eq!(world.bob().get(all).await.code, 403, "to view the hub is not to view all");
    // A right in one namespace of the hub is no right in the namespaces of that name elsewhere.
    let role = json!({"metadata": {"name": "wild"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch", "wildcard"]}]});
    let roles = crate::rbac_in("default", "roles");
    world.admin.make(&roles, &role).await;
    let binding = json!({"metadata": {"name": "wild"}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "wild"}});
    world.admin.make(&crate::rbac_in("default", "rolebindings"), &binding).await;
    for path in
        [all, &format!("/clusters/*{CONFIG_MAPS}"), &format!("/clusters/*{CONFIG_MAPS}?watch=1")]
    {
        assert_eq!(world.bob().get(path).await.code, 403, "{path}");
    }
    world.admin.make(&rbac("clusterroles"), &role).await;
    bind(&world.admin, "wild", "wild", &subject).await;
    assert_eq!(world.bob().get(all).await.names(), ["mine"; 3]);
    assert_eq!(world.bob().get("/clusters/*/api/v1/secrets").await.code, 403);
    // A namespace in the path is kept to.
    let east = world.admin_in("east");
    east.make("/api/v1/namespaces", &json!({"metadata": {"name": "other"}})).await;
    east.make("/api/v1/namespaces/other/configmaps", &config_map("elsewhere", "x")).await;
    let in_other = world.bob().get("/clusters/*/api/v1/namespaces/other/configmaps").await;
    assert_eq!(
        in_other.names(),
        ["kube-root-ca.crt", "elsewhere"]
            .map(str::to_owned)
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
    let in_default = world.bob().get(&format!("/clusters/*{CONFIG_MAPS}?labelSelector=test")).await;
    assert_eq!(in_default.names(), ["mine"; 3]);
    for (method, body) in [("POST", config_map("x", "x").to_string()), ("DELETE", String::new())] {
        let path = format!("/clusters/*{CONFIG_MAPS}");
        let answer = world.admin.ask(method, &path, "application/json", body.as_bytes()).await;
        assert_eq!(answer.code, 405, "{method}");
    }
}

#[tokio::test]
async fn a_cluster_made_again_starts_empty_and_knows_no_old_credential() {
    let world = world().await;
    let token = world.account_token("east", "builder").await;
    let old = Asker::with_token(&world.server, &token).in_cluster("east");
    let certificate = world.certificate("carol", &["system:masters"], &world.east_id);
    let old_certificate = Asker::with_certificate(&world.server, certificate).in_cluster("east");
    old.make(CONFIG_MAPS, &config_map("mine", "old")).await;
    let thing = crate::definition("things.example.com", "Thing", &json!({"type": "string"}));
    old.make(crate::DEFINITIONS, &thing).await;
    let path = "/apis/interlock.dev/v1alpha1/logicalclusters/east";
    assert_eq!(world.admin.delete(path).await.code, 200);
    world.admin.until(path, |answer| answer.code == 404).await;
    assert_eq!(old.get(CONFIG_MAPS).await.code, 401);
    let id = make_cluster(&world.admin, "east").await;
    assert_ne!(id, world.east_id);
    assert_eq!(old.get(CONFIG_MAPS).await.code, 401);
    assert_eq!(old_certificate.get(CONFIG_MAPS).await.code, 401);
    let admin = world.admin_in("east");
    assert_eq!(admin.get(CONFIG_MAPS).await.names(), ["kube-root-ca.crt"]);
    assert_eq!(admin.get(crate::DEFINITIONS).await.names(), Vec::<String>::new());
    assert_eq!(admin.get("/apis/example.com/v1/namespaces/default/things").await.code, 404);
    assert_eq!(admin.get("/api/v1/serviceaccounts").await.names(), ["default"]);
    assert_eq!(admin.get("/api/v1/namespaces").await.names(), ["default"]);
    // An account of the same name is another account.
    let new = world.account_token("east", "builder").await;
    assert_eq!(old.get(CONFIG_MAPS).await.code, 401);
    let new = Asker::with_token(&world.server, &new).in_cluster("east");
    assert_eq!(new.get(CONFIG_MAPS).await.code, 200);
}

#[tokio::test]
async fn a_token_ends_with_its_account_and_with_what_it_is_bound_to() {
    let world = world().await;
    let token = world.account_token("east", "builder").await;
    let admin = world.admin_in("east");
    let old = Asker::with_token(&world.server, &token).in_cluster("east");
    let account = "/api/v1/namespaces/default/serviceaccounts/builder";
    let secrets = "/api/v1/namespaces/default/secrets";
    admin.make(secrets, &json!({"metadata": {"name": "bound"}})).await;
    let request = json!({"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "bound"}}});
    let bound = admin.make(&format!("{account}/token"), &request).await["status"]["token"].clone();
    let bound =
        Asker::with_token(&world.server, bound.as_str().expect("a token")).in_cluster("east");
    assert_eq!((old.get(CONFIG_MAPS).await.code, bound.get(CONFIG_MAPS).await.code), (200, 200));
    admin.delete(&format!("{secrets}/bound")).await;
    assert_eq!((old.get(CONFIG_MAPS).await.code, bound.get(CONFIG_MAPS).await.code), (200, 401));
    admin.make(secrets, &json!({"metadata": {"name": "bound"}})).await;
    assert_eq!(bound.get(CONFIG_MAPS).await.code, 401, "one of the same name is another one");
    admin.delete(account).await;
    assert_eq!(old.get(CONFIG_MAPS).await.code, 401);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin.make(accounts, &json!({"metadata": {"name": "builder"}})).await;
    assert_eq!(old.get(CONFIG_MAPS).await.code, 401, "one of the same name is another one");
    // Nobody makes a token for an account of another cluster or namespace.
    for path in [
        "/api/v1/namespaces/default/serviceaccounts/nobody/token",
        "/api/v1/namespaces/other/serviceaccounts/builder/token",
    ] {
        assert_eq!(admin.post(path, &json!({})).await.code, 404, "{path}");
    }
}
