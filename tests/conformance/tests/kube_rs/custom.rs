//! Custom resources as kube-rs derives them: schema, defaults, CEL rules, subresources.

crate::both_ways! {
    a_derived_kind_is_served_as_soon_as_it_is_established
    rules_of_the_schema_are_kept
    a_derived_kind_has_status_and_scale
    instances_go_with_their_definition
}

mod scenarios {
    use anyhow::{Context, Result};
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
    use kube::core::GroupVersionKind;
    use kube::runtime::wait::{await_condition, conditions, delete::delete_and_finalize};
    use kube::{
        Api, Client, CustomResource, CustomResourceExt, Error, KubeSchema, ResourceExt, discovery,
    };
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    #[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
    #[kube(
        group = "example.com",
        version = "v1",
        kind = "Queue",
        namespaced,
        status = "QueueStatus",
        shortname = "q",
        category = "all",
        validation = Rule::new("self.metadata.name != 'forbidden'").message("not this name"),
        printcolumn(name = "Workers", type_ = "integer", json_path = ".spec.workers"),
        scale(
            spec_replicas_path = ".spec.workers",
            status_replicas_path = ".status.workers",
            label_selector_path = ".status.selector"
        )
    )]
    #[serde(rename_all = "camelCase")]
    #[x_kube(validation = Rule::new("self.workers <= self.limit").message("too many workers"))]
    struct QueueSpec {
        #[x_kube(validation = Rule::new("self == oldSelf").message("the owner is for life"))]
        owner: String,
        #[serde(default = "one")]
        #[schemars(range(min = 0))]
        workers: i32,
        #[serde(default = "ten")]
        limit: i32,
        #[serde(default)]
        #[x_kube(merge_strategy = ListMerge::Set)]
        topics: Vec<String>,
    }

    #[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
    struct QueueStatus {
        workers: i32,
        selector: String,
    }

    fn one() -> i32 {
        1
    }

    fn ten() -> i32 {
        10
    }

    const NAME: &str = "queues.example.com";

    async fn established(client: &Client) -> Result<Api<Queue>> {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let params = PatchParams::apply("installer").force();
        definitions.patch(NAME, &params, &Patch::Apply(Queue::crd())).await?;
        await_condition(definitions, NAME, conditions::is_crd_established()).await?;
        Ok(Api::default_namespaced(client.clone()))
    }

    fn queue(name: &str, workers: i32) -> Queue {
        let spec = QueueSpec { owner: "a".into(), workers, limit: 10, topics: Vec::new() };
        Queue::new(name, spec)
    }

    pub(super) async fn a_derived_kind_is_served_as_soon_as_it_is_established(
        client: Client,
    ) -> Result<()> {
        let queues = established(&client).await?;
        let kind = GroupVersionKind::gvk("example.com", "v1", "Queue");
        let (resource, capabilities) = discovery::pinned_kind(&client, &kind).await?;
        assert_eq!(resource.plural, "queues");
        assert!(capabilities.supports_operation(discovery::verbs::WATCH));
        assert_eq!(capabilities.subresources.len(), 2);
        let patch = json!({"apiVersion": "example.com/v1", "kind": "Queue",
            "spec": {"owner": "a", "unknown": 1}});
        let refused = queues.patch("q", &PatchParams::apply("me"), &Patch::Apply(patch)).await;
        let refused = refused.expect_err("it is not in the schema").to_string();
        assert!(refused.contains(".spec.unknown: field not declared in schema"), "{refused}");
        let patch =
            json!({"apiVersion": "example.com/v1", "kind": "Queue", "spec": {"owner": "a"}});
        let applied = queues.patch("q", &PatchParams::apply("me"), &Patch::Apply(patch)).await?;
        assert_eq!((applied.spec.workers, applied.spec.limit), (1, 10));
        assert_eq!(applied.metadata.generation, Some(1));
        // Two managers share a set.
        for (manager, topic) in [("red", "r"), ("blue", "b")] {
            let patch = json!({"apiVersion": "example.com/v1", "kind": "Queue",
                "spec": {"topics": [topic]}});
            queues.patch("q", &PatchParams::apply(manager), &Patch::Apply(patch)).await?;
        }
        assert_eq!(queues.get("q").await?.spec.topics, ["r", "b"]);
        Ok(())
    }

    fn message(refused: Result<Queue, Error>) -> Result<String> {
        match refused.err().context("it was taken")? {
            Error::Api(status) if status.code == 422 => Ok(status.message.clone()),
            other => Err(other.into()),
        }
    }

    pub(super) async fn rules_of_the_schema_are_kept(client: Client) -> Result<()> {
        let queues = established(&client).await?;
        let params = PostParams::default();
        let refused = message(queues.create(&params, &queue("a", 11)).await)?;
        assert!(refused.contains("too many workers"), "{refused}");
        let refused = message(queues.create(&params, &queue("a", -1)).await)?;
        assert!(refused.contains("spec.workers"), "{refused}");
        let refused = message(queues.create(&params, &queue("forbidden", 1)).await)?;
        assert!(refused.contains("not this name"), "{refused}");
        queues.create(&params, &queue("a", 10)).await?;
        let patch = Patch::Merge(json!({"spec": {"owner": "b"}}));
        let refused = message(queues.patch("a", &PatchParams::default(), &patch).await)?;
        assert!(refused.contains("the owner is for life"), "{refused}");
        let patch = Patch::Strategic(json!({"spec": {"workers": 3}}));
        let Err(Error::Api(status)) = queues.patch("a", &PatchParams::default(), &patch).await
        else {
            panic!("custom resources have no strategic patch");
        };
        assert_eq!(status.code, 415);
        Ok(())
    }

    pub(super) async fn a_derived_kind_has_status_and_scale(client: Client) -> Result<()> {
        let queues = established(&client).await?;
        let mut with_status = queue("a", 2);
        with_status.status = Some(QueueStatus { workers: 9, selector: "x=y".into() });
        let made = queues.create(&PostParams::default(), &with_status).await?;
        assert_eq!(made.status, None, "a create sets no status");
        let status = json!({"status": {"workers": 1, "selector": "queue=a"}});
        let made = queues.patch_status("a", &PatchParams::default(), &Patch::Merge(status)).await?;
        assert_eq!(made.status.map(|status| status.workers), Some(1));
        let scaled = json!({"spec": {"replicas": 5}});
        let scale = queues.patch_scale("a", &PatchParams::default(), &Patch::Merge(scaled)).await?;
        let status = scale.status.context("a scale has a status")?;
        assert_eq!((status.replicas, status.selector.as_deref()), (1, Some("queue=a")));
        let now = queues.get("a").await?;
        assert_eq!((now.spec.workers, now.metadata.generation), (5, Some(2)));
        let too_many = json!({"spec": {"replicas": 11}});
        let refused =
            queues.patch_scale("a", &PatchParams::default(), &Patch::Merge(too_many)).await;
        assert!(refused.is_err(), "the rules hold for the scale too");
        Ok(())
    }

    pub(super) async fn instances_go_with_their_definition(client: Client) -> Result<()> {
        let queues = established(&client).await?;
        let mut held = queue("a", 1);
        held.finalizers_mut().push("example.com/hold".into());
        queues.create(&PostParams::default(), &held).await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        definitions.delete(NAME, &DeleteParams::default()).await?;
        let is_terminating = |object: Option<&Queue>| {
            object.is_some_and(|queue| queue.metadata.deletion_timestamp.is_some())
        };
        await_condition(queues.clone(), "a", is_terminating).await?;
        assert!(definitions.get(NAME).await?.metadata.deletion_timestamp.is_some());
        let release = Patch::Merge(json!({"metadata": {"finalizers": []}}));
        queues.patch("a", &PatchParams::default(), &release).await?;
        let is_gone = |object: Option<&CustomResourceDefinition>| object.is_none();
        await_condition(definitions, NAME, is_gone).await?;
        assert!(matches!(queues.get("a").await, Err(Error::Api(s)) if s.code == 404));
        // And again, as if it had never been.
        let queues = established(&client).await?;
        queues.create(&PostParams::default(), &queue("a", 1)).await?;
        delete_and_finalize(queues, "a", &DeleteParams::default()).await?;
        Ok(())
    }
}
