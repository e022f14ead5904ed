//! A controller as people write them, and what it does to the objects of its kind.

use anyhow::{Context as _, Result};
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event as Recorded;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event as News, EventType, Recorder};
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::runtime::utils::Backoff;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
pub(crate) struct SiteSpec {
    pub(crate) greeting: String,
    #[schemars(range(min = 0, max = 9))]
    pub(crate) replicas: i32,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SiteStatus {
    #[serde(default)]
    observed_generation: i64,
    #[serde(default)]
    ready: bool,
}

const MANAGER: &str = "site-controller";
const FINALIZER: &str = "example.com/registration";

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot talk to the API")]
    Api(#[from] kube::Error),
    #[error("cannot finalize")]
    Finalizer(#[from] Box<finalizer::Error<kube::Error>>),
}

struct Context {
    client: Client,
    recorder: Recorder,
}

/// What is for something outside of the cluster: it has no owner, so only cleaning up removes it.
fn registration(site: &Site) -> String {
    format!("registration-{}", site.name_any())
}

fn children(site: &Site) -> (Value, Value) {
    let (name, owner) = (site.name_any(), site.controller_owner_ref(&()));
    let page = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "data": {"index.html": site.spec.greeting},
    });
    let server = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "replicas": site.spec.replicas,
            "selector": {"matchLabels": {"site": name}},
            "template": {
                "metadata": {"labels": {"site": name}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    });
    (page, server)
}

async fn bring_about(site: Arc<Site>, context: &Context) -> Result<Action, kube::Error> {
    let namespace = site.namespace().unwrap_or_default();
    let (name, params) = (site.name_any(), PatchParams::apply(MANAGER).force());
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    let deployments: Api<Deployment> = Api::namespaced(context.client.clone(), &namespace);
    let sites: Api<Site> = Api::namespaced(context.client.clone(), &namespace);
    let registered = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"site": name}});
    maps.patch(&registration(&site), &params, &Patch::Apply(registered)).await?;
    let (page, server) = children(&site);
    maps.patch(&name, &params, &Patch::Apply(page)).await?;
    deployments.patch(&name, &params, &Patch::Apply(server)).await?;
    let status = json!({
        "apiVersion": "example.com/v1", "kind": "Site",
        "status": {"observedGeneration": site.metadata.generation, "ready": true},
    });
    sites.patch_status(&name, &params, &Patch::Apply(status)).await?;
    if site.status.is_none() {
        let news = News {
            type_: EventType::Normal,
            reason: "Ready".into(),
            note: Some("the site is served".into()),
            action: "Serving".into(),
            secondary: None,
        };
        context.recorder.publish(&news, &site.object_ref(&())).await?;
    }
    Ok(Action::await_change())
}

async fn clean_up(site: Arc<Site>, context: &Context) -> Result<Action, kube::Error> {
    let namespace = site.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    match maps.delete(&registration(&site), &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => return Err(error),
    }
    Ok(Action::await_change())
}

async fn reconcile(site: Arc<Site>, context: Arc<Context>) -> Result<Action, Failure> {
    let namespace = site.namespace().unwrap_or_default();
    let sites: Api<Site> = Api::namespaced(context.client.clone(), &namespace);
    let done = finalizer(&sites, FINALIZER, site, |event| async {
        match event {
            Event::Apply(site) => bring_about(site, &context).await,
            Event::Cleanup(site) => clean_up(site, &context).await,
        }
    });
    Ok(done.await.map_err(Box::new)?)
}

/// Kube-rs' own backoff doubles with each watch that broke: seconds after a restart.
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(20))
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}

/// Installs the kind and runs its controller until the handle is aborted.
pub(crate) async fn run(client: &Client) -> Result<JoinHandle<()>> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply(MANAGER).force();
    definitions.patch(Site::crd_name(), &params, &Patch::Apply(Site::crd())).await?;
    await_condition(definitions, Site::crd_name(), conditions::is_crd_established()).await?;
    let context = Arc::new(Context {
        client: client.clone(),
        recorder: Recorder::new(client.clone(), MANAGER.into()),
    });
    let config = watcher::Config::default().streaming_lists();
    let controller = Controller::new(Api::<Site>::all(client.clone()), config.clone())
        .owns(Api::<ConfigMap>::all(client.clone()), config.clone())
        .owns(Api::<Deployment>::all(client.clone()), config)
        .trigger_backoff(Steady)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), context);
    Ok(tokio::spawn(controller.for_each(|_| futures::future::ready(()))))
}

fn deployment_has(replicas: i32) -> impl Fn(Option<&Deployment>) -> bool {
    move |deployment| {
        let spec = deployment.and_then(|deployment| deployment.spec.as_ref());
        spec.is_some_and(|spec| spec.replicas == Some(replicas))
    }
}

fn page_says(greeting: &str) -> impl Fn(Option<&ConfigMap>) -> bool {
    move |map| {
        let data = map.and_then(|map| map.data.as_ref());
        data.is_some_and(|data| data.get("index.html").is_some_and(|page| page == greeting))
    }
}

fn is_ready_at(generation: i64) -> impl Fn(Option<&Site>) -> bool {
    move |site| {
        let status = site.and_then(|site| site.status.as_ref());
        status.is_some_and(|status| status.ready && status.observed_generation == generation)
    }
}

/// Makes a site and waits until it is served.
pub(crate) async fn make_site(client: &Client, name: &str) -> Result<Site> {
    let sites: Api<Site> = Api::default_namespaced(client.clone());
    let site = Site::new(name, SiteSpec { greeting: "hello".into(), replicas: 2 });
    let site = sites.create(&PostParams::default(), &site).await?;
    await_condition(sites, name, is_ready_at(1)).await?;
    Ok(site)
}

/// What anyone may do to a running controller's objects; it must come out right each time.
pub(crate) async fn is_looked_after(client: &Client, site: &Site) -> Result<()> {
    let name = site.name_any();
    let sites: Api<Site> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let by_hand = PatchParams::default();
    // Drift is repaired.
    let drift = Patch::Merge(json!({"data": {"index.html": "defaced"}}));
    maps.patch(&name, &by_hand, &drift).await?;
    await_condition(maps.clone(), &name, page_says("hello")).await?;
    let drift = Patch::Merge(json!({"spec": {"replicas": 7}}));
    deployments.patch_scale(&name, &by_hand, &drift).await?;
    await_condition(deployments.clone(), &name, deployment_has(2)).await?;
    // A child that was deleted comes back.
    let gone = deployments.get(&name).await?.uid().context("a uid")?;
    deployments.delete(&name, &DeleteParams::background()).await?;
    let is_another = |deployment: Option<&Deployment>| {
        deployment.is_some_and(|deployment| deployment.uid().as_ref() != Some(&gone))
    };
    await_condition(deployments.clone(), &name, is_another).await?;
    // A change is brought about, and what others added stays.
    let label = Patch::Merge(json!({"metadata": {"labels": {"team": "web"}}}));
    maps.patch(&name, &by_hand, &label).await?;
    let change = Patch::Merge(json!({"spec": {"greeting": "good day", "replicas": 3}}));
    let changed = sites.patch(&name, &by_hand, &change).await?;
    let generation = changed.metadata.generation.context("a generation")?;
    await_condition(sites.clone(), &name, is_ready_at(generation)).await?;
    await_condition(deployments.clone(), &name, deployment_has(3)).await?;
    await_condition(maps.clone(), &name, page_says("good day")).await?;
    assert_eq!(maps.get(&name).await?.labels()["team"], "web");
    Ok(())
}

/// Deletes a site: the finalizer cleans up outside, garbage collection inside.
pub(crate) async fn leaves_nothing(client: &Client, site: &Site) -> Result<()> {
    let name = site.name_any();
    let sites: Api<Site> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    assert!(sites.get(&name).await?.finalizers().contains(&FINALIZER.to_owned()));
    sites.delete(&name, &DeleteParams::default()).await?;
    let uid = site.uid().context("a uid")?;
    await_condition(sites, &name, conditions::is_deleted(&uid)).await?;
    assert_eq!(maps.get_opt(&registration(site)).await?, None);
    await_condition(maps, &name, |map: Option<&ConfigMap>| map.is_none()).await?;
    let is_gone = |deployment: Option<&Deployment>| deployment.is_none();
    await_condition(deployments, &name, is_gone).await?;
    Ok(())
}

crate::both_ways! { a_controller_brings_about_repairs_and_cleans_up }

mod scenarios {
    use super::{Client, Result};

    pub(super) async fn a_controller_brings_about_repairs_and_cleans_up(
        client: Client,
    ) -> Result<()> {
        let running = super::run(&client).await?;
        let site = super::make_site(&client, "shop").await?;
        let events = super::Api::<super::Recorded>::default_namespaced(client.clone());
        let ready = super::ListParams::default().fields("reason=Ready");
        let is_reported = |events: &[super::Recorded]| {
            events.iter().any(|event| event.note.as_deref() == Some("the site is served"))
        };
        while !is_reported(&events.list(&ready).await?.items) {
            tokio::task::yield_now().await;
        }
        super::is_looked_after(&client, &site).await?;
        super::leaves_nothing(&client, &site).await?;
        running.abort();
        Ok(())
    }
}
