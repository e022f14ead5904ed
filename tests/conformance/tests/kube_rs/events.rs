//! Events as kube-rs' recorder writes them, and as `kubectl describe` reads them.

crate::both_ways! {
    a_repeated_event_becomes_a_series
    events_of_cluster_scoped_objects_are_in_default
}

mod scenarios {
    use anyhow::{Context, Result};
    use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent, Namespace};
    use k8s_openapi::api::events::v1::Event;
    use kube::api::{ListParams, PostParams};
    use kube::runtime::events::{Event as News, EventType, Recorder};
    use kube::{Api, Client, Resource};
    use serde_json::json;

    fn news(reason: &str) -> News {
        News {
            type_: EventType::Normal,
            reason: reason.into(),
            note: Some("all is well".into()),
            action: "Testing".into(),
            secondary: None,
        }
    }

    pub(super) async fn a_repeated_event_becomes_a_series(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let map = serde_json::from_value(json!({"metadata": {"name": "a"}}))?;
        let about = maps.create(&PostParams::default(), &map).await?.object_ref(&());
        let recorder = Recorder::new(client.clone(), "conformance".into());
        for _ in 0..3 {
            recorder.publish(&news("Tested"), &about).await?;
        }
        let events: Api<Event> = Api::default_namespaced(client.clone());
        let list = events.list(&ListParams::default().fields("reason=Tested")).await?;
        assert_eq!(list.items.len(), 1, "one event, not three");
        let event = &list.items[0];
        assert_eq!(event.note.as_deref(), Some("all is well"));
        assert_eq!(event.series.as_ref().map(|series| series.count), Some(3));
        let core: Api<CoreEvent> = Api::default_namespaced(client);
        let uid = about.uid.context("a uid")?;
        let selector = format!("involvedObject.name=a,involvedObject.uid={uid}");
        let list = core.list(&ListParams::default().fields(&selector)).await?;
        assert_eq!(list.items.len(), 1);
        assert_eq!(list.items[0].message.as_deref(), Some("all is well"));
        assert_eq!(list.items[0].reporting_component.as_deref(), Some("conformance"));
        Ok(())
    }

    pub(super) async fn events_of_cluster_scoped_objects_are_in_default(
        client: Client,
    ) -> Result<()> {
        let namespace = Api::<Namespace>::all(client.clone()).get("kube-system").await?;
        let recorder = Recorder::new(client.clone(), "conformance".into());
        recorder.publish(&news("Seen"), &namespace.object_ref(&())).await?;
        let events: Api<Event> = Api::namespaced(client, "default");
        assert_eq!(events.list(&ListParams::default().fields("reason=Seen")).await?.items.len(), 1);
        Ok(())
    }
}
