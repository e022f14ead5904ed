//! A server that is stopped and started again on its data: clients go on as if nothing had been.

use crate::controller;
use crate::servers::{Reached, judge};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use serde_json::json;

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).expect("a ConfigMap")
}

#[tokio::test]
async fn a_watch_goes_on_after_a_restart_without_listing_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = Reached::start(directory.path(), None).await;
    judge(async {
        let client = first.client().await;
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.create(&PostParams::default(), &config_map("before")).await?;
        let mut events =
            std::pin::pin!(watcher(maps.clone(), watcher::Config::default()).default_backoff());
        while !matches!(events.next().await, Some(Ok(Event::InitDone))) {}
        let address = first.address;
        first.stop().await;
        let second = Reached::start(directory.path(), Some(address)).await;
        let maps: Api<ConfigMap> = Api::default_namespaced(second.client().await);
        assert_eq!(maps.get("before").await?.name_any(), "before");
        maps.create(&PostParams::default(), &config_map("after")).await?;
        loop {
            match events.next().await {
                Some(Ok(Event::Apply(map))) => {
                    assert_eq!(map.name_any(), "after");
                    break;
                }
                // The connection was lost: the watcher tries again.
                Some(Err(_)) => {}
                other => panic!("it had to list again: {other:?}"),
            }
        }
        second.stop().await;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_controller_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = Reached::start(directory.path(), None).await;
    judge(async {
        let client = first.client().await;
        let running = controller::run(&client).await?;
        let site = controller::make_site(&client, "shop").await?;
        let address = first.address;
        first.stop().await;
        let second = Reached::start(directory.path(), Some(address)).await;
        let client = second.client().await;
        let site = Api::default_namespaced(client.clone()).get(&site.name_any()).await?;
        controller::is_looked_after(&client, &site).await?;
        let other = controller::make_site(&client, "blog").await?;
        controller::leaves_nothing(&client, &site).await?;
        controller::leaves_nothing(&client, &other).await?;
        running.abort();
        second.stop().await;
        Ok(())
    })
    .await;
}
