//! Lists: selectors, pages that all show one moment, and which moment that is.

use crate::support::{Answer, Api, MAPS, METADATA_LIST, names, text, version};
use interlock_apiserver::Config;
use serde_json::{Value, json};
use std::time::Duration;

/// Config maps `a` to `e`, all labelled, so that what every namespace has is distinguished.
async fn five(api: &Api) {
    for (name, tier) in [("a", "web"), ("b", "db"), ("c", "web"), ("d", "db"), ("e", "web")] {
        let labels = json!({"set": "five", "tier": tier});
        let body = json!({"metadata": {"name": name, "labels": labels}, "data": {"k": "1"}});
        api.post(MAPS, &body).await.made();
    }
}

fn rest(list: &Value) -> String {
    text(&list["metadata"]["continue"])
}

#[tokio::test]
async fn labels_select() {
    let api = Api::new().await;
    five(&api).await;
    for (selector, found) in [
        ("tier%3Dweb", vec!["a", "c", "e"]),
        ("tier%3D%3Ddb", vec!["b", "d"]),
        ("tier!%3Dweb,set", vec!["b", "d"]),
        ("tier%20in%20(web,db),set%3Dfive", vec!["a", "b", "c", "d", "e"]),
        ("tier%20notin%20(db),set", vec!["a", "c", "e"]),
        ("set,!tier", vec![]),
        ("set%3Dother", vec![]),
    ] {
        let list = api.get(&format!("{MAPS}?labelSelector={selector}")).await.ok();
        assert_eq!(names(&list), found, "{selector}");
        assert_eq!(list["kind"], "ConfigMapList");
    }
    let wrong = api.get(&format!("{MAPS}?labelSelector=a%20b")).await;
    wrong.refused(400, "BadRequest");
}

#[tokio::test]
async fn fields_select_where_the_kind_has_them() {
    let api = Api::new().await;
    five(&api).await;
    let list = api.get(&format!("{MAPS}?fieldSelector=metadata.name%3Dc")).await.ok();
    assert_eq!(names(&list), ["c"]);
    let everywhere = "/api/v1/configmaps?labelSelector=set&fieldSelector=";
    let list = api.get(&format!("{everywhere}metadata.namespace%3Ddefault")).await.ok();
    assert_eq!(names(&list).len(), 5);
    let list = api.get(&format!("{everywhere}metadata.namespace!%3Ddefault")).await.ok();
    assert_eq!(names(&list).len(), 0);
    let list = api.get(&format!("{everywhere}metadata.name%3Dc")).await.ok();
    assert_eq!(names(&list), ["c"]);
    let list = api.get("/api/v1/namespaces?fieldSelector=status.phase%3DActive").await.ok();
    assert_eq!(names(&list), ["default", "kube-system"]);
    let list = api.get("/api/v1/namespaces?fieldSelector=status.phase%3DTerminating").await.ok();
    assert_eq!(names(&list).len(), 0);
    let status = api.get(&format!("{MAPS}?fieldSelector=data.k%3D1")).await;
    let status = status.refused(400, "BadRequest");
    assert!(text(&status["message"]).contains("data.k"), "{status}");
}

#[tokio::test]
async fn all_pages_show_the_moment_of_the_first() {
    let api = Api::new().await;
    five(&api).await;
    let query = format!("{MAPS}?labelSelector=set&limit=2");
    let first = api.get(&query).await.ok();
    assert_eq!(names(&first), ["a", "b"]);
    api.delete(&format!("{MAPS}/d")).await.ok();
    api.merge(&format!("{MAPS}/c"), &json!({"data": {"k": "2"}})).await.ok();
    let label = json!({"metadata": {"name": "cc", "labels": {"set": "five"}}});
    api.post(MAPS, &label).await.made();
    let second = api.get(&format!("{query}&continue={}", rest(&first))).await.ok();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["items"][0]["data"]["k"], "1");
    let third = api.get(&format!("{query}&continue={}", rest(&second))).await.ok();
    assert_eq!(names(&third), ["e"]);
    assert_eq!(third["metadata"].get("continue"), None);
    assert_eq!(version(&first), version(&second));
    assert_eq!(version(&first), version(&third));
}

#[tokio::test]
async fn pages_tell_how_many_are_left_where_that_is_known() {
    let api = Api::new().await;
    five(&api).await;
    let page = api.get(&format!("{MAPS}?limit=4")).await.ok();
    assert_eq!(names(&page), ["a", "b", "c", "d"]);
    // The last one, and what every namespace has.
    assert_eq!(page["metadata"]["remainingItemCount"], 2);
    let selected = api.get(&format!("{MAPS}?limit=1&labelSelector=set")).await.ok();
    assert_eq!(selected["metadata"].get("remainingItemCount"), None);
    let exactly = api.get(&format!("{MAPS}?limit=6")).await.ok();
    assert_eq!(exactly["metadata"].get("continue"), None);
    let last = api.get(&format!("{MAPS}?limit=3&labelSelector=tier%3Dweb")).await.ok();
    assert_eq!(names(&last), ["a", "c", "e"]);
}

#[tokio::test]
async fn a_list_of_all_namespaces_is_paged_across_them() {
    let api = Api::new().await;
    for namespace in ["n1", "n2", "n3"] {
        api.namespace(namespace).await;
    }
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/serviceaccounts?limit=2&continue={token}");
        let page = api.get(&path).await.ok();
        for item in page["items"].as_array().expect("it is a list") {
            seen.push(text(&item["metadata"]["namespace"]));
        }
        match page["metadata"].get("continue") {
            Some(next) => token = text(next),
            None => break,
        }
    }
    assert_eq!(seen, ["default", "kube-system", "n1", "n2", "n3"]);
}

#[tokio::test]
async fn a_page_of_a_forgotten_moment_is_expired_and_says_how_to_go_on() {
    let interval = Duration::from_millis(20);
    let api = Api::with(Config { compaction_interval: interval, ..Config::default() }).await;
    five(&api).await;
    let query = format!("{MAPS}?labelSelector=set&limit=2");
    let first = api.get(&query).await.ok();
    api.delete(&format!("{MAPS}/d")).await.ok();
    let path = format!("{query}&continue={}", rest(&first));
    let expired = api.until(&path, |answer| answer.code == 410).await;
    let status = expired.refused(410, "Expired");
    let path = format!("{query}&continue={}", rest(&status));
    let second = api.get(&path).await.ok();
    assert_eq!(names(&second), ["c", "e"]);
    assert!(version(&second) > version(&first));
    let exact = format!("{MAPS}?resourceVersion={}&resourceVersionMatch=Exact", version(&first));
    api.get(&exact).await.refused(410, "Expired");
}

#[tokio::test]
async fn a_token_of_somewhere_else_is_refused() {
    let api = Api::new().await;
    five(&api).await;
    api.namespace("other").await;
    let first = api.get(&format!("{MAPS}?limit=2")).await.ok();
    for token in ["nonsense", "e30", "eyJydiI6MX0", "%F0%9F%92%A9"] {
        let answer = api.get(&format!("{MAPS}?limit=2&continue={token}")).await;
        let status = answer.refused(400, "BadRequest");
        assert!(text(&status["message"]).contains("continue"), "{status}");
    }
    let elsewhere = "/api/v1/namespaces/other/configmaps";
    let foreign = api.get(&format!("{elsewhere}?limit=2&continue={}", rest(&first))).await;
    foreign.refused(400, "BadRequest");
    let path = format!("{MAPS}?limit=2&resourceVersion=5&continue={}", rest(&first));
    api.get(&path).await.refused(400, "BadRequest");
}

async fn at(api: &Api, version: &str, how: &str) -> Answer {
    let how = if how.is_empty() { String::new() } else { format!("&resourceVersionMatch={how}") };
    api.get(&format!("{MAPS}?labelSelector=set&resourceVersion={version}{how}")).await
}

#[tokio::test]
async fn a_list_can_be_of_a_moment() {
    let api = Api::new().await;
    five(&api).await;
    let then = api.get(&format!("{MAPS}?labelSelector=set")).await.ok();
    api.delete(&format!("{MAPS}/a")).await.ok();
    let (then, now) = (version(&then), ["b", "c", "d", "e"]);
    for (asked, how) in [("", ""), ("0", ""), ("0", "NotOlderThan")] {
        let list = at(&api, asked, how).await.ok();
        assert_eq!(names(&list), now, "{asked:?} {how}");
        assert!(version(&list) > then);
    }
    for how in ["", "NotOlderThan"] {
        let list = at(&api, &then.to_string(), how).await.ok();
        assert_eq!(names(&list), now, "{how}");
    }
    let list = at(&api, &then.to_string(), "Exact").await.ok();
    assert_eq!(names(&list), ["a", "b", "c", "d", "e"]);
    assert_eq!(version(&list), then);
    let first = api.get(&format!("{MAPS}?labelSelector=set&limit=1&resourceVersion={then}")).await;
    assert_eq!(names(&first.ok()), ["a"], "with a limit a version is exact");
    let by_name = format!(
        "{MAPS}?fieldSelector=metadata.name%3Da&resourceVersion={then}&resourceVersionMatch=Exact"
    );
    assert_eq!(names(&api.get(&by_name).await.ok()), ["a"]);
}

#[tokio::test]
async fn a_moment_must_be_asked_for_in_a_way_that_makes_sense() {
    let api = Api::new().await;
    at(&api, "abc", "").await.refused(400, "BadRequest");
    at(&api, "-1", "").await.refused(400, "BadRequest");
    at(&api, "0", "Exact").await.refused(422, "Invalid");
    at(&api, "", "Exact").await.refused(422, "Invalid");
    at(&api, "5", "Newest").await.refused(422, "Invalid");
}

#[tokio::test]
async fn a_moment_that_has_not_come_is_waited_for_and_then_refused() {
    let api = Api::new().await;
    let now = version(&api.get(MAPS).await.ok());
    let soon = {
        let api = api.clone();
        tokio::spawn(async move { at(&api, &(now + 1).to_string(), "NotOlderThan").await.ok() })
    };
    five(&api).await;
    let list = soon.await.expect("the list comes");
    assert!(version(&list) > now);
    tokio::time::pause();
    for how in ["", "NotOlderThan", "Exact"] {
        let answer = at(&api, "1000000", how).await;
        assert!(answer.headers.contains_key("retry-after"));
        let status = answer.refused(504, "Timeout");
        let cause = &status["details"]["causes"][0];
        assert_eq!(cause["reason"], "ResourceVersionTooLarge");
        assert_eq!(cause["message"], "Too large resource version");
    }
}

#[tokio::test]
async fn every_answer_to_a_list_has_a_version() {
    let api = Api::new().await;
    let answers = [
        api.get("/api/v1/namespaces/nowhere/configmaps").await,
        api.get("/apis/apps/v1/deployments").await,
        api.get_as("/api/v1/nodes", METADATA_LIST).await,
        api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=1").await,
        api.get(&format!("{MAPS}?fieldSelector=metadata.name%3Dnobody")).await,
    ];
    for answer in answers {
        assert!(version(&answer.ok()) > 0);
    }
}

#[tokio::test]
async fn a_list_of_many_is_whole_however_it_is_cut() {
    let api = Api::new().await;
    for number in 0..60 {
        let label = json!({"third": if number % 3 == 0 { "yes" } else { "no" }});
        let name = format!("m{number:02}");
        api.post(MAPS, &json!({"metadata": {"name": name, "labels": label}})).await.made();
    }
    for limit in [1, 7, 19, 20, 21, 100] {
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let path = format!("{MAPS}?labelSelector=third%3Dyes&limit={limit}&continue={token}");
            let page = api.get(&path).await.ok();
            assert!(names(&page).len() <= limit);
            seen.extend(names(&page));
            match page["metadata"].get("continue") {
                Some(next) => token = text(next),
                None => break,
            }
        }
        let expected: Vec<String> = (0..60).step_by(3).map(|n| format!("m{n:02}")).collect();
        assert_eq!(seen, expected, "limit {limit}");
    }
}
