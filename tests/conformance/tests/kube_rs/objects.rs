//! Reading and writing built-in kinds: typed, dynamic, metadata only, and through `entry`.

crate::both_ways! {
    typed_objects_are_made_read_changed_and_deleted
    built_in_defaults_are_filled_in
    a_stale_write_is_a_conflict
    an_entry_notices_who_was_first
    lists_can_be_paged_and_selected
    a_dry_run_leaves_nothing
    dynamic_objects_work_as_typed_ones_do
    metadata_can_be_had_alone
    pods_have_their_subresources
    owned_objects_go_with_their_owner
    a_terminating_namespace_takes_nothing_new_and_goes
    only_one_of_two_candidates_takes_the_lease
}

mod scenarios {
    use anyhow::{Context, Result};
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::coordination::v1::Lease;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service};
    use kube::api::{
        DeleteParams, DynamicObject, EvictParams, ListParams, ObjectMeta, Patch, PatchParams,
        PostParams,
    };
    use kube::core::{ApiResource, PartialObjectMetaExt};
    use kube::runtime::wait::{await_condition, conditions, delete::delete_and_finalize};
    use kube::{Api, Client, Error, Resource, ResourceExt};
    use serde_json::{Value, json};

    fn make<K: serde::de::DeserializeOwned>(object: Value) -> Result<K> {
        serde_json::from_value(object).context("the test writes valid objects")
    }

    fn config_map(name: &str, value: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
            data: Some([("key".to_owned(), value.to_owned())].into()),
            ..ConfigMap::default()
        }
    }

    fn code(error: &Error) -> u16 {
        match error {
            Error::Api(status) => status.code,
            other => panic!("not an answer of the API: {other:?}"),
        }
    }

    pub(super) async fn typed_objects_are_made_read_changed_and_deleted(
        client: Client,
    ) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        assert_eq!(maps.get_opt("a").await?, None);
        let made = maps.create(&PostParams::default(), &config_map("a", "1")).await?;
        assert!(made.uid().is_some() && made.creation_timestamp().is_some());
        let again = maps.create(&PostParams::default(), &config_map("a", "1")).await;
        let Err(Error::Api(status)) = again else { panic!("made twice") };
        assert!(status.is_already_exists());
        let mut changed = maps.get("a").await?;
        changed.data.get_or_insert_default().insert("key".into(), "2".into());
        let changed = maps.replace("a", &PostParams::default(), &changed).await?;
        assert_ne!(changed.resource_version(), made.resource_version());
        assert_eq!(changed.uid(), made.uid());
        delete_and_finalize(maps.clone(), "a", &DeleteParams::default()).await?;
        assert!(matches!(maps.get("a").await, Err(Error::Api(s)) if s.is_not_found()));
        let secrets: Api<Secret> = Api::default_namespaced(client);
        let secret: Secret = make(json!({"metadata": {"generateName": "s-"},
            "stringData": {"password": "plain"}}))?;
        let secret = secrets.create(&PostParams::default(), &secret).await?;
        assert!(secret.name_any().len() > 2);
        assert_eq!(secret.data.context("data")?["password"].0, b"plain");
        assert_eq!(secret.type_.as_deref(), Some("Opaque"));
        Ok(())
    }

    pub(super) async fn built_in_defaults_are_filled_in(client: Client) -> Result<()> {
        let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
        let made = deployments.create(&PostParams::default(), &deployment("web")?).await?;
        assert_eq!(made.metadata.generation, Some(1));
        let spec = made.spec.context("a spec")?;
        assert_eq!(spec.replicas, Some(1));
        assert_eq!(spec.strategy.and_then(|s| s.type_).as_deref(), Some("RollingUpdate"));
        let pod = spec.template.spec.context("a pod spec")?;
        assert_eq!(pod.restart_policy.as_deref(), Some("Always"));
        let restarted = deployments.restart("web").await?;
        assert_eq!(restarted.metadata.generation, Some(2));
        let services: Api<Service> = Api::default_namespaced(client);
        let service: Service = make(json!({"metadata": {"name": "web"},
            "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}))?;
        let spec =
            services.create(&PostParams::default(), &service).await?.spec.context("a spec")?;
        assert_eq!(spec.type_.as_deref(), Some("ClusterIP"));
        Ok(())
    }

    fn deployment(name: &str) -> Result<Deployment> {
        make(json!({"metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}}))
    }

    pub(super) async fn a_stale_write_is_a_conflict(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let old = maps.create(&PostParams::default(), &config_map("a", "1")).await?;
        let mut new = old.clone();
        new.labels_mut().insert("a".into(), "b".into());
        maps.replace("a", &PostParams::default(), &new).await?;
        let Err(Error::Api(status)) = maps.replace("a", &PostParams::default(), &new).await else {
            panic!("a stale write was taken");
        };
        assert!(status.is_conflict() && status.code == 409, "{status:?}");
        let preconditions = |of: &ConfigMap| DeleteParams {
            preconditions: Some(kube::api::Preconditions {
                resource_version: of.resource_version(),
                uid: of.uid(),
            }),
            ..DeleteParams::default()
        };
        let refused = maps.delete("a", &preconditions(&old)).await;
        assert_eq!(refused.err().as_ref().map(code), Some(409));
        maps.delete("a", &preconditions(&maps.get("a").await?)).await?;
        Ok(())
    }

    pub(super) async fn an_entry_notices_who_was_first(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let (first, second) = (maps.entry("a").await?, maps.entry("a").await?);
        let mut first = first.or_insert(|| config_map("a", "1"));
        first.commit(&PostParams::default()).await?;
        let mut second = second.or_insert(|| config_map("a", "2"));
        assert!(second.commit(&PostParams::default()).await.is_err());
        let mut again = maps
            .entry("a")
            .await?
            .and_modify(|map| {
                map.data.get_or_insert_default().insert("key".into(), "3".into());
            })
            .or_insert(ConfigMap::default);
        again.commit(&PostParams::default()).await?;
        assert_eq!(maps.get("a").await?.data.context("data")?["key"], "3");
        Ok(())
    }

    pub(super) async fn lists_can_be_paged_and_selected(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        for number in 0..7 {
            let mut map = config_map(&format!("m-{number}"), "x");
            map.labels_mut().insert("odd".into(), (number % 2 == 1).to_string());
            maps.create(&PostParams::default(), &map).await?;
        }
        let (mut seen, mut token) = (Vec::new(), None);
        loop {
            let mut page = ListParams::default().labels("odd").limit(3);
            page.continue_token = token;
            let list = maps.list(&page).await?;
            assert!(list.metadata.resource_version.as_deref().is_some_and(|v| !v.is_empty()));
            token = list.metadata.continue_.clone().filter(|token| !token.is_empty());
            seen.extend(list.items.iter().map(ResourceExt::name_any));
            if token.is_none() {
                break;
            }
            assert_eq!(list.items.len(), 3);
        }
        assert_eq!(seen.len(), 7);
        let odd = maps.list(&ListParams::default().labels("odd=true")).await?;
        assert_eq!(odd.items.len(), 3);
        let one = Api::<ConfigMap>::all(client);
        let one = one.list(&ListParams::default().fields("metadata.name=m-3")).await?;
        assert_eq!(one.items.len(), 1);
        let odd = ListParams::default().labels("odd in (true)");
        maps.delete_collection(&DeleteParams::default(), &odd).await?;
        assert_eq!(maps.list(&ListParams::default().labels("odd")).await?.items.len(), 4);
        Ok(())
    }

    pub(super) async fn a_dry_run_leaves_nothing(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        assert!(maps.create(&dry, &config_map("a", "1")).await?.uid().is_some());
        assert_eq!(maps.get_opt("a").await?, None);
        maps.create(&PostParams::default(), &config_map("a", "1")).await?;
        maps.delete("a", &DeleteParams { dry_run: true, ..DeleteParams::default() }).await?;
        assert!(maps.get_opt("a").await?.is_some());
        Ok(())
    }

    pub(super) async fn dynamic_objects_work_as_typed_ones_do(client: Client) -> Result<()> {
        let kind = ApiResource::erase::<ConfigMap>(&());
        let maps: Api<DynamicObject> = Api::default_namespaced_with(client, &kind);
        let map = DynamicObject::new("a", &kind).data(json!({"data": {"key": "1"}}));
        let made = maps.create(&PostParams::default(), &map).await?;
        assert_eq!(made.data["data"]["key"], "1");
        let typed: ConfigMap = maps.get("a").await?.try_parse()?;
        assert_eq!(typed.data.context("data")?["key"], "1");
        Ok(())
    }

    pub(super) async fn metadata_can_be_had_alone(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.create(&PostParams::default(), &config_map("a", "1")).await?;
        assert_eq!(maps.get_metadata("a").await?.name_any(), "a");
        assert!(
            maps.list_metadata(&ListParams::default()).await?.iter().any(|m| m.name_any() == "a")
        );
        let patch = ObjectMeta {
            annotations: Some([("note".to_owned(), "x".to_owned())].into()),
            ..ObjectMeta::default()
        }
        .into_request_partial::<ConfigMap>();
        let patched =
            maps.patch_metadata("a", &PatchParams::default(), &Patch::Merge(&patch)).await?;
        assert_eq!(patched.annotations()["note"], "x");
        let types = patched.types.context("it says what it is")?;
        assert_eq!(
            (&*types.kind, &*types.api_version),
            ("PartialObjectMetadata", "meta.k8s.io/v1")
        );
        assert_eq!(maps.get("a").await?.data.context("the data stay")?["key"], "1");
        Ok(())
    }

    pub(super) async fn pods_have_their_subresources(client: Client) -> Result<()> {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let pod: Pod = make(json!({"metadata": {"name": "p"},
            "spec": {"containers": [{"name": "main", "image": "busybox"}]}}))?;
        pods.create(&PostParams::default(), &pod).await?;
        let debugger = json!({"spec": {"ephemeralContainers": [{"name": "look", "image": "sh"}]}});
        let with = pods
            .patch_ephemeral_containers("p", &PatchParams::default(), &Patch::Strategic(debugger))
            .await?;
        assert_eq!(with.spec.and_then(|spec| spec.ephemeral_containers).map(|c| c.len()), Some(1));
        let removed = json!({"spec": {"ephemeralContainers": null}});
        let refused = pods
            .patch_ephemeral_containers("p", &PatchParams::default(), &Patch::Merge(removed))
            .await;
        assert_eq!(refused.err().as_ref().map(code), Some(422));
        let more = json!({"spec": {"containers": [
            {"name": "main", "resources": {"requests": {"cpu": "2"}}}]}});
        let resized =
            pods.patch_resize("p", &PatchParams::default(), &Patch::Strategic(more)).await?;
        assert_eq!(resized.metadata.generation, Some(3));
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n"}});
        let bound: kube::core::Status =
            pods.create_subresource("binding", "p", &PostParams::default(), &binding).await?;
        assert!(bound.is_success(), "{bound:?}");
        let on_node = ListParams::default().fields("spec.nodeName=n");
        assert_eq!(pods.list(&on_node).await?.items.len(), 1);
        let running = json!({"status": {"phase": "Running"}});
        pods.patch_status("p", &PatchParams::default(), &Patch::Merge(running)).await?;
        await_condition(pods.clone(), "p", conditions::is_pod_running()).await?;
        let running = ListParams::default().fields("status.phase=Running");
        assert_eq!(pods.list(&running).await?.items.len(), 1);
        let evicted = pods.evict("p", &EvictParams::default()).await?;
        assert!(evicted.is_success() && evicted.code == 201, "{evicted:?}");
        Ok(())
    }

    pub(super) async fn owned_objects_go_with_their_owner(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        for params in
            [DeleteParams::background(), DeleteParams::foreground(), DeleteParams::orphan()]
        {
            let owner = maps.create(&PostParams::default(), &config_map("owner", "1")).await?;
            let mut child = config_map("child", "1");
            let reference = owner.controller_owner_ref(&()).context("it has a uid")?;
            child.owner_references_mut().push(reference);
            let child = maps.create(&PostParams::default(), &child).await?;
            let is_orphan = params.propagation_policy == Some(kube::api::PropagationPolicy::Orphan);
            delete_and_finalize(maps.clone(), "owner", &params).await?;
            if is_orphan {
                assert!(maps.get("child").await?.owner_references().is_empty());
                continue;
            }
            let uid = child.uid().context("a uid")?;
            await_condition(maps.clone(), "child", conditions::is_deleted(&uid)).await?;
        }
        Ok(())
    }

    pub(super) async fn a_terminating_namespace_takes_nothing_new_and_goes(
        client: Client,
    ) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace: Namespace = make(json!({"metadata": {"name": "team"}}))?;
        let namespace = namespaces.create(&PostParams::default(), &namespace).await?;
        let maps: Api<ConfigMap> = Api::namespaced(client, "team");
        let mut held = config_map("held", "1");
        held.finalizers_mut().push("example.com/hold".into());
        maps.create(&PostParams::default(), &held).await?;
        namespaces.delete("team", &DeleteParams::default()).await?;
        let refused = maps.create(&PostParams::default(), &config_map("late", "1")).await;
        assert_eq!(refused.err().as_ref().map(code), Some(403));
        let release = json!({"metadata": {"finalizers": null}});
        maps.patch("held", &PatchParams::default(), &Patch::Merge(release)).await?;
        let uid = namespace.uid().context("a uid")?;
        await_condition(namespaces, "team", conditions::is_deleted(&uid)).await?;
        Ok(())
    }

    pub(super) async fn only_one_of_two_candidates_takes_the_lease(client: Client) -> Result<()> {
        let leases: Api<Lease> = Api::default_namespaced(client);
        let lease: Lease = make(json!({"metadata": {"name": "leader"}, "spec": {
            "holderIdentity": "old", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "renewTime": "2025-01-01T00:00:00.000000Z"}}))?;
        let expired = leases.create(&PostParams::default(), &lease).await?;
        let claim = |holder: &str| {
            let mut claim = expired.clone();
            let spec = claim.spec.get_or_insert_default();
            spec.holder_identity = Some(holder.to_owned());
            spec.lease_transitions = Some(1);
            claim
        };
        let (a, b) = (claim("a"), claim("b"));
        let params = PostParams::default();
        let (a, b) = tokio::join!(
            leases.replace("leader", &params, &a),
            leases.replace("leader", &params, &b)
        );
        assert!(a.is_ok() != b.is_ok(), "exactly one wins");
        let loser = a.err().or(b.err()).context("one loses")?;
        assert_eq!(code(&loser), 409);
        Ok(())
    }
}
