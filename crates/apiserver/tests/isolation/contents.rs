//! What is inside of one cluster is neither seen nor touched from another.

use crate::asking::{Asker, Numbers};
use crate::{CONFIG_MAPS, DEFINITIONS, config_map, definition, rbac, world};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

#[tokio::test]
async fn objects_of_one_name_in_two_clusters_are_two_objects() {
    let world = world().await;
    let clusters = ["root", "east", "west"];
    for cluster in clusters {
        world.admin_in(cluster).make(CONFIG_MAPS, &config_map("same", cluster)).await;
    }
    let (code, mut events) =
        world.admin_in("east").watch("/api/v1/configmaps?watch=1&labelSelector=test").await;
    assert_eq!(code, 200);
    assert_eq!(events.next().await.expect("the state")["object"]["data"]["value"], "east");
    let path = format!("{CONFIG_MAPS}/same");
    let changed = world.admin_in("west").merge(&path, &json!({"data": {"value": "new"}})).await;
    assert_eq!(changed.code, 200);
    for (cluster, value) in [("root", "root"), ("east", "east"), ("west", "new")] {
        let admin = world.admin_in(cluster);
        assert_eq!(admin.get(&path).await.json["data"]["value"], value);
        let list = admin.get("/api/v1/configmaps?labelSelector=test").await;
        assert_eq!(list.names(), ["same"]);
        let by_name = admin.get("/api/v1/configmaps?fieldSelector=metadata.name=same").await;
        assert_eq!(by_name.json["items"][0]["data"]["value"], value);
    }
    let gone = world.admin_in("west").delete(&format!("{CONFIG_MAPS}?labelSelector=test")).await;
    assert_eq!(gone.names(), ["same"]);
    assert_eq!(world.admin_in("west").get(&path).await.code, 404);
    assert_eq!(world.admin_in("root").get(&path).await.code, 200);
    world.admin_in("east").delete(&path).await;
    // The first that the watcher hears of is its own deletion.
    let event = events.next().await.expect("an event");
    assert_eq!(
        (&event["type"], &event["object"]["data"]["value"]),
        (&json!("DELETED"), &json!("east"))
    );
}

#[tokio::test]
async fn a_kind_of_one_cluster_is_unknown_in_another() {
    let world = world().await;
    let (east, west) = (world.admin_in("east"), world.admin_in("west"));
    let things = "/apis/tenant.test/v1/namespaces/default/things";
    let text = definition("things.tenant.test", "Thing", &json!({"type": "string"}));
    let number = definition("things.tenant.test", "Thing", &json!({"type": "integer"}));
    east.make(DEFINITIONS, &text).await;
    let thing = |spec: Value| {
        json!({"apiVersion": "tenant.test/v1", "kind": "Thing", "metadata": {"name": "a"},
               "spec": spec})
    };
    east.make(things, &thing(json!("text"))).await;
    for other in [&west, &world.admin] {
        assert_eq!(other.get(things).await.code, 404);
        assert_eq!(other.post(things, &thing(json!("text"))).await.code, 404);
        assert_eq!(other.get("/apis/tenant.test/v1").await.code, 404);
        assert_eq!(other.get("/openapi/v3/apis/tenant.test/v1").await.code, 404);
        for path in ["/apis", "/openapi/v3", "/"] {
            assert!(!other.get(path).await.text().contains("tenant.test"), "{path}");
        }
        let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let answer = (*other).clone().with_header("accept", aggregated).get("/apis").await;
        assert!(!answer.text().contains("things"), "{}", answer.text());
    }
    west.make(DEFINITIONS, &number).await;
    assert_eq!(west.get(things).await.names(), Vec::<String>::new());
    assert_eq!(west.post(things, &thing(json!("text"))).await.code, 422);
    west.make(things, &thing(json!(7))).await;
    assert_eq!(east.get(&format!("{things}/a")).await.json["spec"], "text");
    east.delete(&format!("{DEFINITIONS}/things.tenant.test")).await;
    east.until(things, |answer| answer.code == 404).await;
    assert_eq!(west.get(&format!("{things}/a")).await.json["spec"], 7);
    // The hub's wildcard is for its own kinds, never for those of tenants.
    assert_eq!(world.admin.get("/clusters/*/apis/tenant.test/v1/things").await.code, 404);
}

#[tokio::test]
async fn a_tenant_cannot_put_a_kind_into_the_hubs_groups() {
    let world = world().await;
    let east = world.admin_in("east");
    let object = json!({"type": "object"});
    for name in [
        "apps.hub.example.com",
        "mine.hub.example.com",
        "logicalclusters.interlock.dev",
        "mine.interlock.dev",
    ] {
        let forged = definition(name, "Forged", &object);
        let path = format!("{DEFINITIONS}/{name}?fieldManager=test");
        assert_eq!(east.post(DEFINITIONS, &forged).await.code, 403, "{name}");
        assert_eq!(east.apply(&path, &forged).await.code, 403, "{name}");
        assert_eq!(east.get(&format!("{DEFINITIONS}/{name}")).await.code, 404, "{name}");
    }
    let same = definition("apps.hub.example.com", "App", &json!({"type": "string"}));
    east.make(DEFINITIONS, &same).await;
    let path = format!("{DEFINITIONS}/apps.hub.example.com");
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/type";
    let patch = json!([{"op": "replace", "path": schema, "value": "integer"}]).to_string();
    let answer = east.ask("PATCH", &path, "application/json-patch+json", patch.as_bytes()).await;
    assert_eq!(answer.code, 403, "{}", answer.text());
    // And deleting its copy takes nothing from anybody.
    assert_eq!(east.delete(&path).await.code, 200);
    for cluster in ["root", "east", "west"] {
        let apps = "/apis/hub.example.com/v1/namespaces/default/apps";
        let app = json!({"metadata": {"name": "a"}, "spec": "text"});
        world.admin_in(cluster).make(apps, &app).await;
    }
    assert_eq!(world.admin.get("/clusters/*/apis/hub.example.com/v1/apps").await.names(), ["a"; 3]);
}

#[tokio::test]
async fn a_foreign_token_is_nobodys_in_a_review() {
    let world = world().await;
    let token = world.account_token("east", "builder").await;
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review =
        |token: &str, audiences: &[&str]| json!({"spec": {"token": token, "audiences": audiences}});
    let at_home = world.admin_in("east").make(path, &review(&token, &[])).await;
    assert_eq!(at_home["status"]["authenticated"], true);
    for elsewhere in ["root", "west"] {
        let answer = world.admin_in(elsewhere).make(path, &review(&token, &[])).await;
        assert_eq!(answer["status"]["authenticated"], Value::Null, "{elsewhere}");
        assert_eq!(answer["status"]["user"], json!({}), "{elsewhere}");
    }
    // Users of the hub are known where they may enter.
    for (token, cluster, is_known) in [
        ("alice-token", "root", true),
        ("alice-token", "east", true),
        ("alice-token", "west", false),
        ("bob-token", "east", false),
        ("hub-admin", "west", true),
    ] {
        let answer = world.admin_in(cluster).make(path, &review(token, &[])).await;
        let found = answer["status"]["authenticated"] == true;
        assert_eq!(found, is_known, "{token} in {cluster}: {answer}");
    }
}

#[tokio::test]
async fn a_review_names_only_the_audiences_that_a_token_has() {
    let world = world().await;
    world.account_token("east", "builder").await;
    let admin = world.admin_in("east");
    let request = json!({"spec": {"audiences": ["vault", "registry"]}});
    let account = "/api/v1/namespaces/default/serviceaccounts/builder/token";
    let token = admin.make(account, &request).await["status"]["token"].clone();
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let ask = async |token: &Value, audiences: Value| {
        admin.make(path, &json!({"spec": {"token": token, "audiences": audiences}})).await
    };
    let answer = ask(&token, json!(["other", "vault"])).await;
    assert_eq!(answer["status"]["audiences"], json!(["vault"]));
    assert_eq!(ask(&token, json!(["other"])).await["status"]["authenticated"], Value::Null);
    assert_eq!(ask(&token, json!([])).await["status"]["authenticated"], Value::Null);
    // It is no token for this server.
    let asker = Asker::with_token(&world.server, token.as_str().expect("a token"));
    assert_eq!(asker.in_cluster("east").get(CONFIG_MAPS).await.code, 401);
    // A static token is for this server and nobody else.
    let answer = ask(&json!("alice-token"), json!(["vault"])).await;
    assert_eq!(answer["status"]["authenticated"], Value::Null);
}

#[tokio::test]
async fn a_continue_token_of_another_cluster_is_refused() {
    let world = world().await;
    for cluster in ["east", "west"] {
        for name in ["a", "b", "c"] {
            let secret = json!({"metadata": {"name": name}, "stringData": {"of": cluster}});
            world.admin_in(cluster).make("/api/v1/namespaces/default/secrets", &secret).await;
        }
    }
    let page = world.admin_in("east").get("/api/v1/secrets?limit=1").await;
    let token = page.json["metadata"]["continue"].as_str().expect("more is to come").to_owned();
    assert!(!token.is_empty());
    let next = format!("/api/v1/secrets?limit=1&continue={token}");
    assert_eq!(world.admin_in("east").get(&next).await.names(), ["b"]);
    for elsewhere in ["west", "root"] {
        let answer = world.admin_in(elsewhere).get(&next).await;
        assert_eq!(answer.code, 400, "{elsewhere}: {}", answer.text());
    }
    // A token of one's own making shows nothing that is not one's own.
    let of_west = world.admin_in("west").get("/api/v1/secrets").await;
    let version = of_west.json["metadata"]["resourceVersion"].as_str().expect("a version");
    let mut numbers = Numbers::new(1);
    let mut forged = vec![
        "".to_owned(),
        "/".to_owned(),
        "0".to_owned(),
        "zzz".to_owned(),
        format!("{}/", world.east_id),
    ];
    forged.extend((0..200).map(|_| format!("{:016x}/default/a", numbers.next())));
    for after in forged {
        let token = json!({"rv": version.parse::<u64>().expect("a number"), "after": after});
        let token = URL_SAFE_NO_PAD.encode(token.to_string());
        let answer =
            world.admin_in("west").get(&format!("/api/v1/secrets?limit=5&continue={token}")).await;
        assert!([200, 400].contains(&answer.code), "{after}: {}", answer.text());
        for item in answer.json["items"].as_array().into_iter().flatten() {
            assert_eq!(item["data"]["of"], "d2VzdA==", "{after}");
        }
    }
}

#[tokio::test]
async fn an_owner_in_another_cluster_is_no_owner_and_holds_nothing_up() {
    let world = world().await;
    let (east, west) = (world.admin_in("east"), world.admin_in("west"));
    for policy in ["Orphan", "Foreground"] {
        let owner = east.make(CONFIG_MAPS, &config_map("owner", "east")).await;
        let mut dependent = config_map("dependent", "west");
        dependent["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
        }]);
        dependent["metadata"]["finalizers"] = json!(["example.com/held"]);
        west.make(CONFIG_MAPS, &dependent).await;
        // In `east` there is something of the same name, which must stay as it is.
        east.make(CONFIG_MAPS, &config_map("dependent", "east")).await;
        let body = json!({"propagationPolicy": policy}).to_string();
        let path = format!("{CONFIG_MAPS}/owner");
        let answer = east.ask("DELETE", &path, "application/json", body.as_bytes()).await;
        assert_eq!(answer.code, 200, "{policy}: {}", answer.text());
        east.until(&path, |answer| answer.code == 404).await;
        let bystander = east.get(&format!("{CONFIG_MAPS}/dependent")).await;
        assert_eq!(bystander.json["data"]["value"], "east", "{policy}");
        assert_eq!(bystander.json["metadata"]["ownerReferences"], Value::Null, "{policy}");
        // In its own cluster the owner was never there, so the dependent goes.
        let path = format!("{CONFIG_MAPS}/dependent");
        let is_terminating = |answer: &crate::asking::Answer| {
            !answer.json["metadata"]["deletionTimestamp"].is_null()
        };
        west.until(&path, is_terminating).await;
        west.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
        west.until(&path, |answer| answer.code == 404).await;
        east.delete(&path).await;
    }
}

#[tokio::test]
async fn no_name_leads_out_of_its_cluster() {
    let world = world().await;
    world.admin_in("west").make(CONFIG_MAPS, &config_map("secret", "west")).await;
    let east = world.admin_in("east");
    let names =
        ["../west", "a/b", "..", ".", "", "%2e%2e", "a\u{0}b", "_", "*", "a%2fb", "/", "A b"];
    for name in names {
        let mut object = config_map(name, "x");
        let answer = east.post(CONFIG_MAPS, &object).await;
        assert_eq!(answer.code, 422, "{name:?}: {}", answer.text());
        object["metadata"] = json!({"name": "fine", "namespace": name});
        let answer = east.post(CONFIG_MAPS, &object).await;
        assert!(matches!(answer.code, 201 | 400), "{name:?}: {}", answer.text());
        east.delete(&format!("{CONFIG_MAPS}/fine")).await;
        object["metadata"] = json!({"generateName": name});
        let answer = east.post(CONFIG_MAPS, &object).await;
        assert_eq!(answer.code, 422, "{name:?}: {}", answer.text());
    }
    for path in [
        "/api/v1/namespaces/default/configmaps/..%2f..%2fsecret",
        "/api/v1/namespaces/..%2f..%2fwest/configmaps",
        "/api/v1/namespaces/../configmaps",
        "/../west/api/v1/configmaps",
        "/%2e%2e/west/api/v1/configmaps",
        "/api/v1/namespaces/default%2fconfigmaps",
        "/clusters/west/api/v1/configmaps",
        "//api/v1/configmaps",
        "/api/v1/namespaces/_/configmaps",
        "/api/v1/namespaces/%2a/configmaps",
        "/api/v1/configmaps?fieldSelector=metadata.namespace=..%2f..%2fwest",
        "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name=..%2f..%2fsecret",
    ] {
        let answer = east.get(path).await;
        assert!(matches!(answer.code, 200 | 400 | 404), "{path}: {}", answer.text());
        assert!(!answer.text().contains("secret\""), "{path}: {}", answer.text());
    }
    let made = east.make(CONFIG_MAPS, &json!({"metadata": {"generateName": "x-"}})).await;
    let name = made["metadata"]["name"].as_str().expect("a name").to_owned();
    assert_eq!(east.get(&format!("{CONFIG_MAPS}/{name}")).await.code, 200);
    assert_eq!(world.admin_in("west").get(&format!("{CONFIG_MAPS}/{name}")).await.code, 404);
    // Roles may have nearly any name, but not one with a slash.
    for name in ["a/b", "..", "."] {
        let role = json!({"metadata": {"name": name}, "rules": []});
        assert_eq!(east.post(&rbac("clusterroles"), &role).await.code, 422, "{name}");
    }
}

#[tokio::test]
async fn what_a_tenant_may_read_of_the_server_is_its_own() {
    let world = world().await;
    let token = world.account_token("east", "builder").await;
    let east = Asker::with_token(&world.server, &token).in_cluster("east");
    assert_eq!(east.get("/metrics").await.code, 404);
    assert_eq!(east.get("/apis/interlock.dev/v1alpha1/logicalclusters").await.code, 404);
    for path in ["/", "/api", "/apis", "/openapi/v3", "/openid/v1/jwks", "/version"] {
        let answer = east.get(path).await;
        assert_eq!(answer.code, 200, "{path}");
        assert!(!answer.text().contains("logicalcluster"), "{path}");
        assert!(!answer.text().contains("west"), "{path}");
    }
    let map = east.get(&format!("{CONFIG_MAPS}/kube-root-ca.crt")).await;
    assert!(!map.text().contains("PRIVATE"));
}
