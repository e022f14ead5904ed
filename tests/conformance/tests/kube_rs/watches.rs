//! Watchers, reflectors and plain watches: what they see, and in which order.

crate::both_ways! {
    a_watcher_sees_what_was_there_and_what_comes
    a_streaming_list_sees_the_same
    a_paged_list_misses_nothing
    objects_enter_and_leave_a_selector
    metadata_can_be_watched_alone
    a_reflector_keeps_up_with_many_writers
    one_object_can_be_watched
    a_plain_watch_ends_when_it_was_asked_to
    a_watch_from_too_long_ago_says_so
}

mod scenarios {
    use anyhow::{Context, Result, bail};
    use futures::{Stream, StreamExt, TryStreamExt};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{
        DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent,
        WatchParams,
    };
    use kube::core::PartialObjectMeta;
    use kube::runtime::WatchStreamExt;
    use kube::runtime::reflector::{self, ObjectRef};
    use kube::runtime::watcher::{self, Event, watch_object, watcher};
    use kube::{Api, Client, Resource, ResourceExt};
    use serde_json::json;
    use std::fmt::Debug;

    /// The configmaps of these tests; each namespace has one of the server's own.
    fn ours() -> watcher::Config {
        watcher::Config::default().labels("ours=true")
    }

    async fn make(maps: &Api<ConfigMap>, name: &str) -> Result<ConfigMap> {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.into()),
                labels: Some([("ours".to_owned(), "true".to_owned())].into()),
                ..ObjectMeta::default()
            },
            data: Some([("key".to_owned(), "0".to_owned())].into()),
            ..ConfigMap::default()
        };
        Ok(maps.create(&PostParams::default(), &map).await?)
    }

    async fn change(maps: &Api<ConfigMap>, name: &str, patch: serde_json::Value) -> Result<()> {
        maps.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    async fn next<K: Resource + Debug>(
        events: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
    ) -> Result<String> {
        let event = events.try_next().await?.context("a watcher never ends")?;
        Ok(event.to_string())
    }

    async fn lives_through(client: Client, config: watcher::Config) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        for name in ["a", "b", "c"] {
            make(&maps, name).await?;
        }
        let mut events = std::pin::pin!(watcher(maps.clone(), config));
        for expected in ["Init", "InitApply(a)", "InitApply(b)", "InitApply(c)", "InitDone"] {
            assert_eq!(next(&mut events).await?, expected);
        }
        make(&maps, "d").await?;
        change(&maps, "a", json!({"data": {"key": "1"}})).await?;
        maps.delete("b", &DeleteParams::default()).await?;
        for expected in ["Apply(d)", "Apply(a)", "Delete(b)"] {
            assert_eq!(next(&mut events).await?, expected);
        }
        Ok(())
    }

    pub(super) async fn a_watcher_sees_what_was_there_and_what_comes(client: Client) -> Result<()> {
        lives_through(client, ours()).await
    }

    pub(super) async fn a_streaming_list_sees_the_same(client: Client) -> Result<()> {
        lives_through(client, ours().streaming_lists()).await
    }

    pub(super) async fn a_paged_list_misses_nothing(client: Client) -> Result<()> {
        lives_through(client, ours().page_size(2)).await
    }

    pub(super) async fn objects_enter_and_leave_a_selector(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        make(&maps, "a").await?;
        let mut events = std::pin::pin!(watcher(maps.clone(), ours().labels("ours=true,stage=on")));
        assert_eq!(next(&mut events).await?, "Init");
        assert_eq!(next(&mut events).await?, "InitDone");
        for _ in 0..2 {
            change(&maps, "a", json!({"metadata": {"labels": {"stage": "on"}}})).await?;
            change(&maps, "a", json!({"data": {"key": "on"}})).await?;
            change(&maps, "a", json!({"metadata": {"labels": {"stage": "off"}}})).await?;
            change(&maps, "a", json!({"data": {"key": "off"}})).await?;
            for expected in ["Apply(a)", "Apply(a)", "Delete(a)"] {
                assert_eq!(next(&mut events).await?, expected);
            }
        }
        Ok(())
    }

    pub(super) async fn metadata_can_be_watched_alone(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        make(&maps, "a").await?;
        for config in [ours(), ours().streaming_lists()] {
            let metadata: Api<PartialObjectMeta<ConfigMap>> =
                Api::default_namespaced(client.clone());
            let mut events = std::pin::pin!(watcher(metadata, config));
            for expected in ["Init", "InitApply(a)", "InitDone"] {
                assert_eq!(next(&mut events).await?, expected);
            }
            make(&maps, "b").await?;
            let Some(Event::Apply(seen)) = events.try_next().await? else { bail!("no event") };
            assert_eq!(seen.types.context("types")?.kind, "PartialObjectMetadata");
            maps.delete("b", &DeleteParams::default()).await?;
            assert_eq!(next(&mut events).await?, "Delete(b)");
        }
        Ok(())
    }

    pub(super) async fn a_reflector_keeps_up_with_many_writers(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let (reader, writer) = reflector::store();
        let config = ours().streaming_lists();
        let events = watcher(maps.clone(), config).default_backoff().reflect(writer);
        let mirrored = tokio::spawn(events.for_each(|_| futures::future::ready(())));
        reader.wait_until_ready().await?;
        let writers = (0..8).map(|writer| {
            let maps = maps.clone();
            async move {
                let name = format!("w-{writer}");
                make(&maps, &name).await?;
                for number in 1..=10 {
                    change(&maps, &name, json!({"data": {"key": number.to_string()}})).await?;
                }
                if writer % 2 == 0 {
                    maps.delete(&name, &DeleteParams::default()).await?;
                }
                anyhow::Ok(())
            }
        });
        futures::future::try_join_all(writers).await?;
        make(&maps, "last").await?;
        let last = ObjectRef::new("last").within("default");
        while reader.get(&last).is_none() {
            tokio::task::yield_now().await;
        }
        let mut seen: Vec<_> =
            reader.state().iter().map(|map| (map.name_any(), map.resource_version())).collect();
        seen.sort();
        let list = maps.list(&ListParams::default().labels("ours=true")).await?;
        let mut stored: Vec<_> =
            list.iter().map(|map| (map.name_any(), map.resource_version())).collect();
        stored.sort();
        assert_eq!(seen, stored);
        assert_eq!(seen.len(), 5);
        mirrored.abort();
        Ok(())
    }

    pub(super) async fn one_object_can_be_watched(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let mut seen = std::pin::pin!(watch_object(maps.clone(), "a"));
        assert_eq!(seen.try_next().await?, Some(None));
        let made = make(&maps, "a").await?;
        assert_eq!(seen.try_next().await?, Some(Some(made)));
        make(&maps, "b").await?;
        maps.delete("a", &DeleteParams::default()).await?;
        assert_eq!(seen.try_next().await?, Some(None));
        Ok(())
    }

    pub(super) async fn a_plain_watch_ends_when_it_was_asked_to(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        make(&maps, "a").await?;
        let params = WatchParams::default().labels("ours=true").timeout(1);
        let events: Vec<_> = maps.watch(&params, "0").await?.try_collect().await?;
        assert!(matches!(&events[0], WatchEvent::Added(map) if map.name_any() == "a"));
        let Some(WatchEvent::Bookmark(bookmark)) = events.last() else {
            bail!("no bookmark before the end: {events:?}");
        };
        assert_eq!(bookmark.types.kind, "ConfigMap");
        assert!(!bookmark.metadata.resource_version.is_empty());
        Ok(())
    }

    pub(super) async fn a_watch_from_too_long_ago_says_so(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        make(&maps, "a").await?;
        let params = WatchParams::default().timeout(5);
        // No server keeps history from before its first write, and a version from the future means
        // that the store was restored: both are "list again".
        let events: Vec<_> = maps.watch(&params, "9000000000").await?.try_collect().await?;
        assert!(
            matches!(&events[..], [WatchEvent::Error(status)] if status.code == 410),
            "{events:?}"
        );
        Ok(())
    }
}
