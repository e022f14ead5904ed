//! Patches, server-side apply, `/status`, `/scale`.

crate::both_ways! {
    merge_patches_remove_what_is_null
    strategic_patches_merge_containers_by_name
    appliers_own_what_they_applied
    status_and_scale_are_places_of_their_own
    unknown_fields_are_refused_when_asked_to
}

mod scenarios {
    use anyhow::{Context, Result};
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Patch, PatchParams, PostParams, ValidationDirective};
    use kube::{Api, Client, Error, ResourceExt};
    use serde_json::{Value, json};

    fn web() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}})
    }

    async fn made(client: Client) -> Result<Api<Deployment>> {
        let deployments: Api<Deployment> = Api::default_namespaced(client);
        let params = PatchParams::apply("setup");
        deployments.patch("web", &params, &Patch::Apply(web())).await?;
        Ok(deployments)
    }

    pub(super) async fn merge_patches_remove_what_is_null(client: Client) -> Result<()> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let map = serde_json::from_value(
            json!({"metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}}),
        )?;
        maps.create(&PostParams::default(), &map).await?;
        let patch = json!({"data": {"x": null, "z": "3"}});
        let data = maps.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await?.data;
        let data = data.context("data")?;
        assert_eq!(data.keys().collect::<Vec<_>>(), ["y", "z"]);
        Ok(())
    }

    pub(super) async fn strategic_patches_merge_containers_by_name(client: Client) -> Result<()> {
        let deployments = made(client).await?;
        let patch = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "side", "image": "envoy"}, {"name": "main", "imagePullPolicy": "Never"}]}}}});
        let patched =
            deployments.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await?;
        let pod = patched.spec.and_then(|spec| spec.template.spec).context("a pod spec")?;
        let main = pod.containers.iter().find(|c| c.name == "main").context("it stays")?;
        assert_eq!(pod.containers.len(), 2);
        assert_eq!(main.image.as_deref(), Some("nginx"));
        assert_eq!(main.image_pull_policy.as_deref(), Some("Never"));
        Ok(())
    }

    pub(super) async fn appliers_own_what_they_applied(client: Client) -> Result<()> {
        let deployments = made(client).await?;
        let scaled =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5}});
        let other = PatchParams::apply("autoscaler");
        let refused = deployments.patch("web", &other, &Patch::Apply(&scaled)).await;
        let Err(Error::Api(status)) = refused else { panic!("a foreign field was taken") };
        assert!(status.is_conflict(), "{status:?}");
        let causes = status.details.context("it says which field")?.causes;
        assert_eq!(causes[0].field, ".spec.replicas");
        assert_eq!(causes[0].reason, "FieldManagerConflict");
        let forced = deployments.patch("web", &other.force(), &Patch::Apply(&scaled)).await?;
        assert_eq!(forced.spec.as_ref().and_then(|spec| spec.replicas), Some(5));
        let managers: Vec<_> =
            forced.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
        assert!(managers.contains(&"autoscaler".into()) && managers.contains(&"setup".into()));
        // What nobody applies any more goes.
        let mut without = web();
        without["spec"]["replicas"].take();
        let map = without["spec"].as_object_mut().context("an object")?;
        map.remove("replicas");
        map.insert("paused".into(), true.into());
        let setup = PatchParams::apply("setup");
        let applied = deployments.patch("web", &setup, &Patch::Apply(&without)).await?;
        assert_eq!(applied.spec.as_ref().and_then(|spec| spec.replicas), Some(5));
        without["spec"].as_object_mut().context("an object")?.remove("paused");
        let applied = deployments.patch("web", &setup, &Patch::Apply(&without)).await?;
        assert_eq!(applied.spec.and_then(|spec| spec.paused), None);
        let unchanged = deployments.patch("web", &setup, &Patch::Apply(&without)).await?;
        assert_eq!(applied.metadata.resource_version, unchanged.metadata.resource_version);
        Ok(())
    }

    pub(super) async fn status_and_scale_are_places_of_their_own(client: Client) -> Result<()> {
        let deployments = made(client).await?;
        let scale = deployments.get_scale("web").await?;
        assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(2));
        let patch = json!({"spec": {"replicas": 4}});
        let scale =
            deployments.patch_scale("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
        assert_eq!(scale.spec.as_ref().and_then(|spec| spec.replicas), Some(4));
        let mut scale = deployments.get_scale("web").await?;
        scale.spec.get_or_insert_default().replicas = Some(3);
        deployments.replace_scale("web", &PostParams::default(), &scale).await?;
        let status = json!({"spec": {"replicas": 9}, "status": {"readyReplicas": 3}});
        let patched =
            deployments.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await?;
        assert_eq!(patched.spec.as_ref().and_then(|spec| spec.replicas), Some(3));
        assert_eq!(patched.status.and_then(|status| status.ready_replicas), Some(3));
        // 1: made. 2 and 3: scaled twice. Status changes do not count.
        assert_eq!(patched.metadata.generation, Some(3));
        let mut whole = deployments.get_status("web").await?;
        whole.status.get_or_insert_default().ready_replicas = Some(1);
        deployments.replace_status("web", &PostParams::default(), &whole).await?;
        let sneaked = json!({"status": {"readyReplicas": 8}});
        let patched =
            deployments.patch("web", &PatchParams::default(), &Patch::Merge(sneaked)).await?;
        assert_eq!(patched.status.and_then(|status| status.ready_replicas), Some(1));
        Ok(())
    }

    pub(super) async fn unknown_fields_are_refused_when_asked_to(client: Client) -> Result<()> {
        let deployments = made(client).await?;
        let mut typo = web();
        typo["spec"]["replica"] = json!(1);
        let mut strict = PatchParams::apply("setup");
        strict.field_validation = Some(ValidationDirective::Strict);
        assert!(deployments.patch("web", &strict, &Patch::Apply(&typo)).await.is_err());
        Ok(())
    }
}
