//! Bodies that take long to read, and answers that take long to write.

use crate::{CONFIG_MAPS, Tenants};
use interlock_apiserver::limits::Caps;
use serde_json::json;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_yaml_is_read_beside_and_the_neighbour_is_served() {
    let tenants = Tenants::with(Caps::default()).await;
    let mut yaml = String::from("metadata: {name: NAME}\ndata:\n");
    for number in 0..20_000 {
        yaml.push_str(&format!("  key-{number}: \"value {number}\"\n"));
    }
    let flood: Vec<_> = (0..4)
        .map(|number| {
            let loud = tenants.loud.clone();
            let yaml = yaml.replace("NAME", &format!("yaml-{number}"));
            tokio::spawn(async move {
                loud.ask("POST", CONFIG_MAPS, "application/yaml", yaml.as_bytes()).await.code
            })
        })
        .collect();
    tenants.neighbour_is_served().await;
    for one in flood {
        let code = one.await.expect("it ends");
        assert!(matches!(code, 201 | 429), "{code}");
    }
    let made = tenants.loud.get(CONFIG_MAPS).await;
    assert!(made.names().iter().any(|name| name.starts_with("yaml-")));
}

#[tokio::test]
async fn a_large_question_about_rights_is_refused() {
    let tenants = Tenants::with(Caps::default()).await;
    let question = |bytes: usize| {
        json!({
            "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "y".repeat(bytes)}},
        })
    };
    assert_eq!(tenants.loud.post(REVIEWS, &question(1000)).await.code, 201);
    let refused = tenants.loud.post(REVIEWS, &question(100_000)).await;
    assert_eq!(refused.code, 413, "{}", refused.text());
    assert!(refused.text().contains("the limit is 65536 bytes"), "{}", refused.text());
    tenants.neighbour_is_served().await;
}

#[tokio::test]
async fn a_kind_with_too_many_columns_is_refused() {
    let tenants = Tenants::with(Caps::default()).await;
    let definition = |count: usize| {
        let columns: Vec<_> = (0..count)
            .map(|number| json!({"name": format!("c{number}"), "type": "string", "jsonPath": ".spec"}))
            .collect();
        json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }],
            },
        })
    };
    let refused = tenants.loud.post(DEFINITIONS, &definition(65)).await;
    assert_eq!(refused.code, 422, "{}", refused.text());
    assert!(refused.text().contains("must have at most 64 items"), "{}", refused.text());
    tenants.loud.make(DEFINITIONS, &definition(64)).await;
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    tenants.loud.until(widgets, |answer| answer.code == 200).await;
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "wide"},
        "spec": {"text": "y".repeat(500_000)},
    });
    tenants.loud.make(widgets, &widget).await;
    // A table shows the beginning of a long text, however many columns show it.
    let table =
        tenants.loud.clone().with_header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = table.get(widgets).await;
    assert_eq!(table.json["rows"][0]["cells"].as_array().map(Vec::len), Some(65));
    assert!(table.bytes.len() < 400_000, "{} bytes", table.bytes.len());
    tenants.neighbour_is_served().await;
}
