//! Watches: each change once and in order, from any moment that is still known.

use crate::support::{Api, MAPS, METADATA, TABLE, Watch, text, version};
use interlock_apiserver::Config;
use serde_json::{Value, json};
use std::future::Future as _;
use std::time::Duration;

async fn labelled(api: &Api, name: &str, label: &str) -> Value {
    let body = json!({"metadata": {"name": name, "labels": {"set": label}}});
    api.post(MAPS, &body).await.made()
}

async fn relabel(api: &Api, name: &str, label: &str) -> Value {
    let patch = json!({"metadata": {"labels": {"set": label}}});
    api.merge(&format!("{MAPS}/{name}"), &patch).await.ok()
}

async fn now(api: &Api) -> u64 {
    version(&api.get(MAPS).await.ok())
}

#[tokio::test]
async fn a_watch_from_a_version_shows_every_change_after_it() {
    let api = Api::new().await;
    labelled(&api, "before", "x").await;
    let from = now(&api).await;
    let made = labelled(&api, "a", "x").await;
    let changed = relabel(&api, "a", "y").await;
    api.delete(&format!("{MAPS}/a")).await.ok();
    let mut watch = api.watch(&format!("{MAPS}?watch=true&resourceVersion={from}")).await;
    assert_eq!(watch.expect("ADDED", "a").await, made);
    assert_eq!(watch.expect("MODIFIED", "a").await, changed);
    let gone = watch.expect("DELETED", "a").await;
    assert_eq!(gone["metadata"]["labels"]["set"], "y");
    assert!(version(&gone) > version(&changed), "a deletion has a version of its own");
    labelled(&api, "b", "x").await;
    watch.expect("ADDED", "b").await;
    // Whoever goes on from the deletion does not see it again.
    let path = format!("{MAPS}?watch=true&resourceVersion={}", version(&gone));
    api.watch(&path).await.expect("ADDED", "b").await;
}

#[tokio::test]
async fn a_watch_from_nothing_or_zero_begins_with_what_is_there() {
    let api = Api::new().await;
    labelled(&api, "a", "x").await;
    labelled(&api, "b", "x").await;
    for from in ["", "&resourceVersion=0", "&resourceVersion="] {
        let path = format!("{MAPS}?watch=true&labelSelector=set{from}");
        let mut watch = api.watch(&path).await;
        watch.expect("ADDED", "a").await;
        watch.expect("ADDED", "b").await;
        relabel(&api, "a", &format!("x{}", from.len())).await;
        watch.expect("MODIFIED", "a").await;
    }
}

#[tokio::test]
async fn who_enters_a_selection_is_added_and_who_leaves_is_deleted() {
    let api = Api::new().await;
    labelled(&api, "a", "in").await;
    labelled(&api, "b", "out").await;
    let from = now(&api).await;
    let path = format!("{MAPS}?watch=true&labelSelector=set%3Din&resourceVersion={from}");
    let mut watch = api.watch(&path).await;
    let entered = relabel(&api, "b", "in").await;
    assert_eq!(watch.expect("ADDED", "b").await, entered);
    let left = relabel(&api, "a", "out").await;
    let seen = watch.expect("DELETED", "a").await;
    assert_eq!(seen["metadata"]["labels"]["set"], "in", "as it was when it was last selected");
    assert_eq!(version(&seen), version(&left));
    relabel(&api, "a", "elsewhere").await;
    api.delete(&format!("{MAPS}/a")).await.ok();
    relabel(&api, "b", "in").await;
    api.merge(&format!("{MAPS}/b"), &json!({"data": {"k": "v"}})).await.ok();
    watch.expect("MODIFIED", "b").await;
}

#[tokio::test]
async fn fields_select_in_watches_too() {
    let api = Api::new().await;
    let from = now(&api).await;
    let query = format!("watch=true&resourceVersion={from}&fieldSelector=");
    let mut one = api.watch(&format!("{MAPS}?{query}metadata.name%3Db")).await;
    let mut phase =
        api.watch(&format!("/api/v1/namespaces?{query}status.phase%3DTerminating")).await;
    labelled(&api, "a", "x").await;
    labelled(&api, "b", "x").await;
    one.expect("ADDED", "b").await;
    api.namespace("n").await;
    api.delete("/api/v1/namespaces/n").await.ok();
    phase.expect("ADDED", "n").await;
}

#[tokio::test]
async fn one_object_can_be_watched_by_its_old_path() {
    let api = Api::new().await;
    labelled(&api, "a", "x").await;
    labelled(&api, "b", "x").await;
    let path = "/api/v1/watch/namespaces/default/configmaps/b";
    api.watch(path).await.expect("ADDED", "b").await;
    let path = "/api/v1/watch/namespaces/default/configmaps?labelSelector=set";
    api.watch(path).await.expect("ADDED", "a").await;
}

#[tokio::test]
async fn all_watchers_see_one_order() {
    let api = Api::new().await;
    let from = now(&api).await;
    let path = format!("/api/v1/configmaps?watch=true&resourceVersion={from}");
    let mut early = api.watch(&path).await;
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let api = api.clone();
            tokio::spawn(async move {
                for number in 0..10 {
                    labelled(&api, &format!("w{writer}-{number}"), "x").await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no writer fails");
    }
    let mut late = api.watch(&path).await;
    let mut last = from;
    for _ in 0..40 {
        let (seen, again) = (early.next().await, late.next().await);
        assert_eq!(seen, again);
        assert!(version(&seen["object"]) > last);
        last = version(&seen["object"]);
    }
}

#[tokio::test]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let api = Api::new().await;
    let from = now(&api).await;
    let query = format!("watch=true&resourceVersion={from}&timeoutSeconds=100");
    let mut silent = api.watch(&format!("{MAPS}?{query}")).await;
    let mut watch = api.watch(&format!("{MAPS}?{query}&allowWatchBookmarks=true")).await;
    // Something elsewhere moves the version on.
    let elsewhere = version(&api.namespace("n").await);
    labelled(&api, "a", "x").await;
    watch.expect("ADDED", "a").await;
    silent.expect("ADDED", "a").await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let mark = watch.read().await.expect("the stream goes on");
    assert_eq!(mark["type"], "BOOKMARK");
    let object = &mark["object"];
    assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    assert!(version(object) > elsewhere);
    assert!((59..=61).contains(&began.elapsed().as_secs()));
    let last = watch.read().await.expect("the stream goes on");
    assert_eq!(last["type"], "BOOKMARK");
    assert_eq!(watch.read().await, None);
    assert!((99..=101).contains(&began.elapsed().as_secs()));
    assert_eq!(silent.read().await, None);
}

#[tokio::test]
async fn the_server_ends_a_watch_when_it_was_asked_to() {
    let api = Api::new().await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let mut watch =
        api.watch(&format!("{MAPS}?watch=true&labelSelector=no&timeoutSeconds=7")).await;
    assert_eq!(watch.read().await, None);
    assert!((7..9).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_gets_an_error_in_the_stream() {
    let interval = Duration::from_millis(20);
    let api = Api::with(Config { compaction_interval: interval, ..Config::default() }).await;
    let from = now(&api).await;
    let exact = format!("{MAPS}?resourceVersion={from}&resourceVersionMatch=Exact");
    labelled(&api, "a", "x").await;
    labelled(&api, "b", "x").await;
    api.until(&exact, |answer| answer.code == 410).await;
    let mut watch = api.watch(&format!("{MAPS}?watch=true&resourceVersion={from}")).await;
    let event = watch.next().await;
    assert_eq!(event["type"], "ERROR");
    let status = &event["object"];
    assert_eq!(status["kind"], "Status");
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")));
    watch.ends().await;
}

#[tokio::test]
async fn a_watch_from_the_future_must_list_again() {
    let api = Api::new().await;
    tokio::time::pause();
    let mut watch = api.watch(&format!("{MAPS}?watch=true&resourceVersion=1000000")).await;
    let event = watch.next().await;
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    watch.ends().await;
}

#[tokio::test]
async fn a_watch_that_makes_no_sense_is_refused() {
    let api = Api::new().await;
    let query = |rest: &str| format!("{MAPS}?watch=true&{rest}");
    api.get(&query("resourceVersion=abc")).await.refused(422, "Invalid");
    api.get(&query("sendInitialEvents=true")).await.refused(422, "Invalid");
    let exact = "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1";
    api.get(&query(exact)).await.refused(422, "Invalid");
    api.get(&query("fieldSelector=data.k%3Dv")).await.refused(400, "BadRequest");
    api.get("/api/v1/nothings?watch=true").await.refused(404, "NotFound");
}

const STATE: &str =
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn ends_state(watch: &mut Watch) -> u64 {
    let mark = watch.next().await;
    assert_eq!(mark["type"], "BOOKMARK");
    let annotations = &mark["object"]["metadata"]["annotations"];
    assert_eq!(annotations, &json!({"k8s.io/initial-events-end": "true"}));
    version(&mark["object"])
}

#[tokio::test]
async fn a_list_can_come_as_a_watch() {
    let api = Api::new().await;
    labelled(&api, "a", "x").await;
    labelled(&api, "gone", "x").await;
    api.delete(&format!("{MAPS}/gone")).await.ok();
    let newest = version(&labelled(&api, "b", "x").await);
    for from in
        [String::new(), "&resourceVersion=0".to_owned(), format!("&resourceVersion={newest}")]
    {
        let mut watch = api.watch(&format!("{MAPS}?{STATE}&labelSelector=set{from}")).await;
        watch.expect("ADDED", "a").await;
        watch.expect("ADDED", "b").await;
        assert!(ends_state(&mut watch).await >= newest);
    }
    let mut watch = api.watch(&format!("{MAPS}?{STATE}&labelSelector=set%3Dnone")).await;
    ends_state(&mut watch).await;
    labelled(&api, "c", "none").await;
    watch.expect("ADDED", "c").await;
    let unwanted = "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut watch = api.watch(&format!("{MAPS}?{unwanted}&labelSelector=set")).await;
    // The watch begins when its task runs, which is before the answer to this read.
    api.until(MAPS, |answer| answer.code == 200).await;
    labelled(&api, "d", "x").await;
    watch.expect("ADDED", "d").await;
}

#[tokio::test]
async fn a_table_has_its_columns_in_the_first_event_only() {
    let api = Api::new().await;
    labelled(&api, "a", "x").await;
    let path = format!("{MAPS}?watch=true&labelSelector=set");
    let mut watch = api.watch_as(&path, TABLE).await;
    let first = watch.next().await;
    assert_eq!(first["type"], "ADDED");
    assert_eq!(first["object"]["kind"], "Table");
    assert_eq!(first["object"]["apiVersion"], "meta.k8s.io/v1");
    let columns = first["object"]["columnDefinitions"].as_array().expect("it has columns");
    let columns: Vec<String> = columns.iter().map(|column| text(&column["name"])).collect();
    assert_eq!(columns, ["Name", "Data", "Age"]);
    let row = &first["object"]["rows"][0];
    assert_eq!((&row["cells"][0], &row["cells"][1]), (&json!("a"), &json!(0)));
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    let changed = relabel(&api, "a", "y").await;
    let second = watch.next().await;
    assert_eq!(second["type"], "MODIFIED");
    assert!(second["object"]["columnDefinitions"].as_array().is_none_or(Vec::is_empty), "{second}");
    assert_eq!(version(&second["object"]["rows"][0]["object"]), version(&changed));
    assert_eq!(version(&second["object"]), version(&changed));
}

#[tokio::test]
async fn metadata_alone_can_be_watched() {
    let api = Api::new().await;
    let from = now(&api).await;
    let path = format!("{MAPS}?{STATE}&labelSelector=set&resourceVersion={from}");
    let mut watch = api.watch_as(&path, METADATA).await;
    ends_state(&mut watch).await;
    let made = labelled(&api, "a", "x").await;
    let seen = watch.expect("ADDED", "a").await;
    assert_eq!(seen["kind"], "PartialObjectMetadata");
    assert_eq!(seen["metadata"], made["metadata"]);
    assert_eq!(seen.get("data"), None);
}

#[tokio::test]
async fn a_watch_ends_with_the_server() {
    let api = Api::new().await;
    let mut watch = api.watch(&format!("{MAPS}?watch=true&labelSelector=set")).await;
    labelled(&api, "a", "x").await;
    watch.expect("ADDED", "a").await;
    api.server.stop().await;
    watch.ends().await;
}

#[tokio::test]
async fn a_stored_copy_of_a_shared_role_is_shown_once() {
    let api = Api::new().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let patch = json!({"metadata": {"labels": {"mine": "yes"}}});
    api.merge(&format!("{roles}/view"), &patch).await.ok();
    let list = api.get(roles).await.ok();
    let listed = crate::support::names(&list).into_iter().filter(|name| name == "view").count();
    assert_eq!(listed, 1);
    let mut watch = api.watch(&format!("{roles}?{STATE}")).await;
    let mut shown = 0;
    loop {
        let event = watch.next().await;
        if event["type"] == "BOOKMARK" {
            break;
        }
        if event["object"]["metadata"]["name"] == "view" {
            shown += 1;
            assert_eq!(event["object"]["metadata"]["labels"]["mine"], "yes");
        }
    }
    assert_eq!(shown, 1);
}

/// Fifty changes, each of which a watcher can take up before the next one comes.
async fn write_one_by_one(api: &Api) {
    for number in 0..50 {
        labelled(api, &format!("m{number}"), "x").await;
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_watcher_that_does_not_read_falls_behind_and_gets_an_error() {
    let interval = Duration::from_millis(20);
    let api = Api::with(Config { compaction_interval: interval, ..Config::default() }).await;
    let from = now(&api).await;
    let mut slow = api.watch(&format!("{MAPS}?watch=true&resourceVersion={from}")).await;
    write_one_by_one(&api).await;
    let newest = now(&api).await;
    let exact = format!("{MAPS}?resourceVersion={}&resourceVersionMatch=Exact", newest - 1);
    labelled(&api, "last", "x").await;
    api.until(&exact, |answer| answer.code == 410).await;
    let mut read = 0;
    let error = loop {
        let event = slow.next().await;
        if event["type"] == "ERROR" {
            break event;
        }
        read += 1;
    };
    assert!(read < 50, "what it did not read waited nowhere");
    assert_eq!(error["object"]["code"], 410);
    slow.ends().await;
}

#[tokio::test]
async fn a_watcher_that_takes_nothing_for_a_minute_is_let_go() {
    let api = Api::new().await;
    let mut stuck = api.watch(&format!("{MAPS}?watch=true&labelSelector=set")).await;
    write_one_by_one(&api).await;
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(90)).await;
    let mut read = 0;
    while stuck.read().await.is_some() {
        read += 1;
    }
    assert!(read < 50, "{read}");
    tokio::time::resume();
    labelled(&api, "more", "x").await;
}

#[tokio::test]
async fn a_clock_that_steps_back_changes_no_order() {
    use std::sync::atomic::{AtomicI64, Ordering};
    let seconds = std::sync::Arc::new(AtomicI64::new(2_000_000_000));
    let clock: interlock_apiserver::Clock = {
        let seconds = seconds.clone();
        std::sync::Arc::new(move || {
            let now = seconds.load(Ordering::Relaxed);
            jiff::Timestamp::from_second(now).expect("the test's times are sane")
        })
    };
    let api = Api::with(Config { clock, ..Config::default() }).await;
    let mut watch = api.watch(&format!("{MAPS}?watch=true&labelSelector=set")).await;
    let first = labelled(&api, "a", "x").await;
    seconds.fetch_sub(86_400, Ordering::Relaxed);
    let second = labelled(&api, "b", "x").await;
    seconds.fetch_add(30 * 86_400, Ordering::Relaxed);
    let third = labelled(&api, "c", "x").await;
    assert!(version(&first) < version(&second) && version(&second) < version(&third));
    let created = |object: &Value| text(&object["metadata"]["creationTimestamp"]);
    assert!(created(&second) < created(&first) && created(&first) < created(&third));
    for name in ["a", "b", "c"] {
        watch.expect("ADDED", name).await;
    }
}

#[tokio::test]
async fn a_client_that_is_being_deleted_away_leaves_a_whole_write_or_none() {
    let api = Api::new().await;
    for number in 0..20 {
        let name = format!("m{number}");
        let body = json!({"metadata": {"name": name}, "data": {"k": "v"}});
        let mut write = Box::pin(api.post(MAPS, &body));
        // It has been sent, and nobody waits for the answer.
        std::future::poll_fn(|context| {
            let _ = write.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
        drop(write);
    }
    // What came in after them is behind them.
    api.config_map("after", json!({})).await;
    for number in 0..20 {
        let answer = api.get(&format!("{MAPS}/m{number}")).await;
        match answer.code {
            200 => assert_eq!(answer.body["data"]["k"], "v"),
            404 => {}
            other => panic!("{other}: {}", answer.body),
        }
    }
}

#[tokio::test]
async fn a_watch_of_a_kind_ends_some_time_after_the_kind() {
    let api = Api::new().await;
    crate::custom::widgets(&api).await;
    let path = format!("{}?watch=true", crate::custom::WIDGETS);
    let mut watch = api.watch(&path).await;
    let definition = format!("{}/widgets.example.com", crate::custom::DEFINITIONS);
    api.delete(&definition).await.ok();
    api.until_gone(&definition).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    assert_eq!(watch.read().await, None);
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
}
