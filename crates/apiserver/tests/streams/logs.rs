//! Logs: what is asked for arrives, and what comes is passed on while somebody takes it.

use crate::asking::DEADLINE;
use crate::{PODS, Scene};
use bytes::Bytes;
use interlock_apiserver::Config;
use interlock_apiserver::limits::Caps;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

#[tokio::test]
async fn a_log_is_text_and_is_asked_for_as_the_client_says() {
    let scene = Scene::new().await;
    let path = format!("{PODS}/web/log?tailLines=5&timestamps=true&limitBytes=100");
    let answer = scene.admin.get(&path).await;
    assert_eq!((answer.code, answer.text().as_str()), (200, "\"one\"\n\"two\"\n"));
    assert_eq!(answer.headers["content-type"], "text/plain");
    let asked = scene.fake.logs.lock().expect("no panic").clone();
    let [(of, options)] = asked.as_slice() else { panic!("asked {} times", asked.len()) };
    assert_eq!(
        (of.namespace.as_str(), of.pod.as_str(), of.container.as_str()),
        ("default", "web", "web")
    );
    let pod = scene.admin.get(&format!("{PODS}/web")).await.json;
    assert_eq!(json!(of.uid), pod["metadata"]["uid"]);
    assert_eq!((options.tail_lines, options.limit_bytes), (Some(5), Some(100)));
    assert!(options.timestamps && !options.follow && !options.previous);
}

#[tokio::test]
async fn a_log_that_is_followed_comes_as_it_is_written_and_ends_with_it() {
    let scene = Scene::new().await;
    let (sender, receiver) = mpsc::channel(1);
    *scene.fake.followed.lock().expect("no panic") = Some(receiver);
    let (code, mut lines) = scene.admin.watch(&format!("{PODS}/web/log?follow=true")).await;
    assert_eq!(code, 200);
    for line in ["1", "2"] {
        sender.send(Bytes::from(format!("{line}\n"))).await.expect("somebody reads");
        assert_eq!(lines.next().await.expect("a line").to_string(), line);
    }
    drop(sender);
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn a_reader_who_takes_nothing_makes_nobody_write_and_one_who_goes_is_noticed() {
    let scene = Scene::new().await;
    let (sender, receiver) = mpsc::channel(1);
    *scene.fake.followed.lock().expect("no panic") = Some(receiver);
    let (_, lines) = scene.admin.watch(&format!("{PODS}/web/log?follow=true")).await;
    let mut taken = 0;
    // One waits in the channel, one in the pipe, one is being passed on.
    while tokio::time::timeout(Duration::from_millis(200), sender.send("1\n".into())).await.is_ok()
    {
        taken += 1;
        assert!(taken < 10, "what nobody reads is kept");
    }
    drop(lines);
    tokio::time::timeout(DEADLINE, sender.closed()).await.expect("it is noticed");
}

#[tokio::test]
async fn logs_count_as_watches_do_and_leave_their_places() {
    let caps = Caps { watches_per_caller: 1, ..Caps::default() };
    let scene = Scene::with(Config { limits: caps, ..Config::default() }).await;
    let user = scene.user("reader", &[("get", "pods/log")]).await;
    let (_sender, receiver) = mpsc::channel(1);
    *scene.fake.followed.lock().expect("no panic") = Some(receiver);
    let path = format!("{PODS}/web/log?follow=true");
    let (code, first) = user.watch(&path).await;
    assert_eq!(code, 200);
    // Whom the wiring vouches for has twice the share.
    let (_other, receiver) = mpsc::channel(1);
    *scene.fake.followed.lock().expect("no panic") = Some(receiver);
    let (code, _second) = user.watch(&path).await;
    assert_eq!(code, 200);
    let (code, _) = user.watch(&path).await;
    assert_eq!(code, 429);
    drop(first);
    let began = Instant::now();
    while user.watch(&format!("{PODS}/web/log")).await.0 == 429 {
        assert!(began.elapsed() < DEADLINE, "the place is never left");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_follower_ends_when_the_server_stops() {
    let scene = Scene::new().await;
    let (sender, receiver) = mpsc::channel(1);
    *scene.fake.followed.lock().expect("no panic") = Some(receiver);
    let (_, mut lines) = scene.admin.watch(&format!("{PODS}/web/log?follow=true")).await;
    scene.admin.server.begin_stop();
    assert_eq!(lines.next().await, None);
    sender.closed().await;
}

#[tokio::test]
async fn a_follower_ends_when_the_right_to_the_log_does() {
    let scene = Scene::new().await;
    let user = scene.user("reader", &[("get", "pods/log")]).await;
    let (_sender, receiver) = mpsc::channel(1);
    *scene.fake.followed.lock().expect("no panic") = Some(receiver);
    let (code, mut lines) = user.watch(&format!("{PODS}/web/log?follow=true")).await;
    assert_eq!(code, 200);
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/reader";
    assert_eq!(scene.admin.delete(bindings).await.code, 200);
    // The task that passes the log on has begun to wait when it has been polled once.
    tokio::task::yield_now().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    assert_eq!(lines.next().await, None);
}
