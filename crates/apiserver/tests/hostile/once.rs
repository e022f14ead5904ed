//! What once broke the server: each has its own test, beside those that are made by chance.

use crate::asking::{Asker, Numbers};
use crate::bodies;
use crate::values::any;
use interlock_apiserver::Server;
use serde_json::{Value, json};

async fn admin() -> Asker {
    Asker::admin(&Server::in_memory().await.expect("a server"))
}

#[tokio::test]
async fn a_watch_may_ask_for_more_time_than_there_is() {
    let admin = admin().await;
    for seconds in ["9223372036854775807", "9223372036854775806", "31536000000"] {
        let path = format!("/api/v1/namespaces?watch=1&timeoutSeconds={seconds}");
        let (code, mut events) = admin.watch(&path).await;
        assert_eq!(code, 200);
        assert!(events.next().await.is_some());
    }
}

#[tokio::test]
async fn a_status_of_the_wrong_type_is_refused() {
    let admin = admin().await;
    let clusters = "/apis/interlock.dev/v1alpha1/logicalclusters";
    let made = admin.make(clusters, &json!({"metadata": {"name": "east"}})).await;
    for status in [json!("x"), json!(7), json!([]), json!(true), json!({"id": 7})] {
        let body = json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "LogicalCluster",
                          "metadata": {"name": "east"}, "status": status});
        for path in [format!("{clusters}/east/status"), format!("{clusters}/east")] {
            for answer in [admin.put(&path, &body).await, admin.merge(&path, &body).await] {
                assert!(matches!(answer.code, 200 | 422), "{path} {status}: {}", answer.text());
            }
        }
    }
    // Whatever was tried, the cluster keeps its id.
    let now = admin.get(&format!("{clusters}/east")).await;
    assert_eq!(now.json["status"]["id"], made["status"]["id"]);
    assert_eq!(admin.in_cluster("east").get("/api/v1/namespaces").await.code, 200);
}

#[tokio::test]
async fn parts_of_the_wrong_type_do_not_come_in_through_subresources() {
    let admin = admin().await;
    admin.make("/api/v1/namespaces", &json!({"metadata": {"name": "play"}})).await;
    for finalizers in [json!("x"), json!({"a": 1}), json!([7]), json!([[]])] {
        let body = json!({"metadata": {"name": "play"}, "spec": {"finalizers": finalizers}});
        let answer = admin.put("/api/v1/namespaces/play/finalize", &body).await;
        assert_eq!(answer.code, 400, "{finalizers}: {}", answer.text());
    }
    let namespace = admin.get("/api/v1/namespaces/play").await;
    assert_eq!(namespace.json["spec"]["finalizers"], json!(["kubernetes"]));
}

/// Definitions with random schemas, and objects of all sorts under those that are taken.
#[tokio::test]
async fn no_definition_and_no_object_of_it_breaks_anything() {
    crate::record_panics();
    let admin = admin().await;
    let seed = crate::setting("INTERLOCK_SEED", 1);
    let cases = crate::setting("INTERLOCK_CASES", 8000) / 40;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut taken = 0;
    for case in 0..cases {
        let mut numbers = Numbers::new(seed.wrapping_mul(7_000_003).wrapping_add(case));
        let definition = bodies::definition(&mut numbers);
        let told = || format!("INTERLOCK_SEED={seed}, case {case}: {definition}");
        let answer = admin.post(definitions, &definition).await;
        assert!(matches!(answer.code, 201 | 400 | 422), "{} {}", answer.text(), told());
        if answer.code != 201 {
            continue;
        }
        taken += 1;
        let plural = definition["spec"]["names"]["plural"].as_str().expect("a plural");
        let namespace = if plural == "wholes" { "" } else { "/namespaces/default" };
        let path = format!("/apis/example.com/v1{namespace}/{plural}");
        for round in 0..6 {
            let mut object = json!({
                "apiVersion": "example.com/v1", "kind": definition["spec"]["names"]["kind"],
                "metadata": {"name": format!("o{round}")},
            });
            for name in ["a", "b", "c", "spec", "status"] {
                if numbers.one_in(2) {
                    object[name] = fields(&mut numbers);
                }
            }
            let made = admin.post(&path, &object).await;
            assert!(matches!(made.code, 201 | 400 | 422), "{} {object} {}", made.text(), told());
            let one = format!("{path}/o{round}?fieldManager=test&force=true");
            for answer in [
                admin.apply(&one, &object).await,
                admin
                    .apply(&format!("{path}/o{round}/status?fieldManager=s&force=true"), &object)
                    .await,
                admin.merge(&format!("{path}/o{round}"), &json!({"a": fields(&mut numbers)})).await,
                admin
                    .merge(&format!("{path}/o{round}/scale"), &json!({"spec": {"replicas": 3}}))
                    .await,
                admin.get(&format!("{path}/o{round}/scale")).await,
            ] {
                let is_broken = answer.code == 500 && !crate::is_upstreams_own(&answer);
                assert!(!is_broken, "{} {object} {}", answer.text(), told());
            }
        }
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let table = admin.clone().with_header("accept", table).get(&path).await;
        assert_eq!(table.code, 200, "{} {}", table.text(), told());
        assert_eq!(admin.get("/openapi/v3/apis/example.com/v1").await.code, 200, "{}", told());
        let name = format!("{definitions}/{plural}.example.com");
        assert_eq!(admin.delete(&name).await.code, 200, "{}", told());
        admin.until(&name, |answer| answer.code == 404).await;
        let panics = crate::panics();
        assert!(panics.is_empty(), "{panics:?} {}", told());
    }
    eprintln!("of {cases} definitions {taken} were taken");
    assert!(taken > cases / 20, "only {taken} of {cases} were taken");
}

fn fields(numbers: &mut Numbers) -> Value {
    let mut value = any(numbers, 2);
    if numbers.one_in(2) {
        value = json!({"a": any(numbers, 2), "b": value, "c": any(numbers, 1)});
    }
    value
}
