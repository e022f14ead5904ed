//! The hub, as the commands of an operator need it: a few questions, three writes, and news.

use super::picture::{Picture, Subject};
use crate::audit::NAME as AUDIT;
use crate::location::{Found, Location};
use crate::words::did_you_mean;
use anyhow::{Context, anyhow, bail};
use futures::StreamExt;
use futures::channel::mpsc;
use interlock_api::names;
use interlock_api::placement::{ForceRelease, Grant, Placement, WorkloadCluster};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, PersistentVolumeClaim, Secret};
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
    WatchEvent, WatchParams,
};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::Duration;

/// How many objects are asked for at a time.
const PAGE: u32 = 500;
/// How long to wait before asking again for news that broke off.
const PAUSE: Duration = Duration::from_millis(500);
/// A hub that does not answer is not waited for.
const CONNECT: Duration = Duration::from_secs(5);
/// How often a write that met another one is tried again.
const ATTEMPTS: usize = 5;

/// The hub.
#[derive(Clone)]
pub(crate) struct Fleet {
    client: Client,
    config: kube::Config,
    source: String,
    url: String,
    /// Who asks, for the record.
    pub(crate) user: String,
}

impl Fleet {
    /// Finds the fleet. Nothing is asked yet.
    pub(crate) async fn open(location: &Location) -> anyhow::Result<Self> {
        let Found { source, mut config, user } = location.find().await?;
        config.connect_timeout = Some(CONNECT);
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = Client::try_from(config.clone())
            .with_context(|| format!("cannot use {source} to reach {url}"))?;
        Ok(Self { client, config, source, url, user })
    }

    fn all<K: Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>>(
        &self,
    ) -> Api<K> {
        Api::all(self.client.clone())
    }

    /// What went wrong, for people.
    fn told(&self, error: kube::Error, what: &str) -> anyhow::Error {
        match error {
            kube::Error::Api(status) if status.code == 404 && is_missing_kind(&status.message) => {
                anyhow!(
                    "placement is not installed at {}: the API server does not serve its \
                        kinds\nnext: interlock up",
                    self.url
                )
            }
            kube::Error::Api(status) => anyhow!("cannot {what}: {}", status.message),
            other => anyhow!(
                "the hub at {} does not answer ({}): {}\nnext: interlock up, or name another one \
                 with --kubeconfig FILE",
                self.url,
                self.source,
                root(&other)
            ),
        }
    }

    /// Whether a Secret is certainly not there. Nobody needs its content for that; who may not look
    /// does not know.
    pub(crate) async fn lacks_secret(&self, namespace: &str, name: &str) -> anyhow::Result<bool> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        match secrets.get_metadata_opt(name).await {
            Ok(found) => Ok(found.is_none()),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(false),
            Err(error) => Err(self.told(error, &format!("read Secret {name}"))),
        }
    }

    /// What the fleet's audit of itself says; None: nothing is audited, or the user may not know.
    pub(crate) async fn audit(&self) -> anyhow::Result<Option<ConfigMap>> {
        let maps: Api<ConfigMap> =
            Api::namespaced(self.client.clone(), interlock_api::rollouts::SYSTEM_NAMESPACE);
        match maps.get_opt(AUDIT).await {
            Ok(found) => Ok(found),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(None),
            Err(error) => Err(self.told(error, &format!("read ConfigMap {AUDIT}"))),
        }
    }

    async fn list<K>(&self, api: &Api<K>, what: &str, only: &ListParams) -> anyhow::Result<Vec<K>>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let mut params = only.clone().limit(PAGE);
        let mut items = Vec::new();
        loop {
            let page = api.list(&params).await;
            let page = page.map_err(|error| self.told(error, &format!("list {what}")))?;
            items.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                None => return Ok(items),
                Some(token) => params = params.continue_token(&token),
            }
        }
    }

    /// All clusters, by name.
    pub(crate) async fn clusters(&self) -> anyhow::Result<Vec<WorkloadCluster>> {
        let api = self.all::<WorkloadCluster>();
        let mut clusters = self.list(&api, "clusters", &ListParams::default()).await?;
        clusters.sort_by_key(ResourceExt::name_any);
        Ok(clusters)
    }

    /// A client of a workload cluster, by what the hub says of how it is reached.
    pub(crate) async fn within(&self, cluster: &WorkloadCluster) -> anyhow::Result<Client> {
        let hub_config = self.config.clone();
        let mut config = crate::connection::config_of(cluster, &self.client, hub_config).await?;
        config.connect_timeout = Some(CONNECT);
        Client::try_from(config).context("cannot make a client for it")
    }

    /// All objects of a kind on a workload cluster; none if it does not know the kind.
    pub(crate) async fn list_within(
        &self,
        cluster: &Client,
        kind: &GroupVersionKind,
        plural: &str,
    ) -> anyhow::Result<Vec<DynamicObject>> {
        let resource = ApiResource::from_gvk_with_plural(kind, plural);
        let api: Api<DynamicObject> = Api::all_with(cluster.clone(), &resource);
        let mut params = ListParams::default().limit(PAGE);
        let mut items = Vec::new();
        loop {
            let page = match api.list(&params).await {
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(items),
                page => page.with_context(|| format!("cannot list {plural}"))?,
            };
            items.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                None => return Ok(items),
                Some(token) => params = params.continue_token(&token),
            }
        }
    }

    async fn placements(&self) -> anyhow::Result<Vec<Placement>> {
        let api = self.all::<Placement>();
        let mut placements = self.list(&api, "Placements", &ListParams::default()).await?;
        placements.sort_by_key(ResourceExt::name_any);
        Ok(placements)
    }

    /// All objects of a kind, of all namespaces; none if the hub is older than the kind.
    pub(crate) async fn list_if_known<K: OurKind>(&self) -> anyhow::Result<Vec<K>> {
        let kind = GroupVersionKind::gvk(&K::group(&()), &K::version(&()), &K::kind(&()));
        let found = self.list_within(&self.client, &kind, &K::plural(&())).await?;
        found.into_iter().map(|object| Ok(object.try_parse()?)).collect()
    }

    /// All grants.
    pub(crate) async fn grants(&self) -> anyhow::Result<Vec<Grant>> {
        self.list(&self.all::<Grant>(), "grants", &ListParams::default()).await
    }

    /// One grant.
    pub(crate) async fn grant(&self, name: &str) -> anyhow::Result<Option<Grant>> {
        let found = self.all::<Grant>().get_opt(name).await;
        found.map_err(|error| self.told(error, &format!("read grant {name}")))
    }

    /// The whole fleet: every placed namespace, and every grant.
    pub(crate) async fn picture(&self) -> anyhow::Result<Picture> {
        let placed = format!("{}={}", names::LABEL_PLACED, names::PLACED_TRUE);
        let placed = ListParams::default().labels(&placed);
        let grants = self.grants().await?;
        let mut namespaces = self.list(&self.all::<Namespace>(), "namespaces", &placed).await?;
        // A namespace that asks no more to be placed is still where its grant says.
        let known = |namespace: &Namespace| namespace.uid().unwrap_or_default();
        let seen: std::collections::BTreeSet<String> = namespaces.iter().map(known).collect();
        let others = grants.iter().filter(|grant| !seen.contains(&grant.spec.namespace.uid));
        for grant in others {
            if let Some(namespace) = self.namespace(&grant.spec.namespace.name).await?
                && known(&namespace) == grant.spec.namespace.uid
            {
                namespaces.push(namespace);
            }
        }
        Ok(Picture {
            now: Timestamp::now(),
            clusters: self.clusters().await?,
            placements: self.placements().await?,
            turns: self.list_if_known().await?,
            subjects: Picture::pair(namespaces, grants),
        })
    }

    /// One namespace with all that is known of it, and the clusters.
    pub(crate) async fn picture_of(&self, name: &str) -> anyhow::Result<Picture> {
        let subject = self.subject(name).await?;
        Ok(Picture {
            now: Timestamp::now(),
            clusters: self.clusters().await?,
            placements: self.placements().await?,
            turns: Vec::new(),
            subjects: vec![subject],
        })
    }

    async fn namespace(&self, name: &str) -> anyhow::Result<Option<Namespace>> {
        let found = self.all::<Namespace>().get_opt(name).await;
        found.map_err(|error| self.told(error, &format!("read namespace {name}")))
    }

    async fn subject(&self, name: &str) -> anyhow::Result<Subject> {
        let namespace = self.namespace(name).await?;
        let grant = match &namespace {
            Some(namespace) => self.grant_of(namespace).await?,
            None => {
                let mut grants = self.grants().await?;
                grants.retain(|grant| grant.spec.namespace.name == name);
                grants.pop()
            }
        };
        if namespace.is_none() && grant.is_none() {
            let all = self.all::<Namespace>();
            let known = self.list(&all, "namespaces", &ListParams::default()).await?;
            let known: Vec<String> = known.iter().map(ResourceExt::name_any).collect();
            bail!("namespace `{name}` does not exist{}", did_you_mean(name, &known));
        }
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), name);
        let claims = self.list(&claims, "claims", &ListParams::default()).await?;
        let events = self.events(name, grant.as_ref()).await?;
        Ok(Subject { name: name.to_owned(), namespace, grant, claims, events })
    }

    /// The grant of a namespace, which is named after it; the whole uid decides.
    pub(crate) async fn grant_of(&self, namespace: &Namespace) -> anyhow::Result<Option<Grant>> {
        let uid = namespace.uid().unwrap_or_default();
        let grant = self.grant(&names::grant_name(&namespace.name_any(), &uid)).await?;
        Ok(grant.filter(|grant| grant.spec.namespace.uid == uid))
    }

    /// What was reported about a namespace or its grant: in the namespace itself, or where events about
    /// objects without a namespace go.
    async fn events(&self, name: &str, grant: Option<&Grant>) -> anyhow::Result<Vec<Event>> {
        let grant = grant.map(ResourceExt::name_any);
        let about = |event: &Event| {
            let object = &event.involved_object;
            match object.kind.as_deref() {
                Some("Namespace") => object.name.as_deref() == Some(name),
                Some("Grant") => object.name == grant,
                _ => false,
            }
        };
        let mut found = Vec::new();
        let mut homes = vec![name, "default"];
        homes.dedup();
        for home in homes {
            let api: Api<Event> = Api::namespaced(self.client.clone(), home);
            let events = self.list(&api, "events", &ListParams::default()).await?;
            found.extend(events.into_iter().filter(about));
        }
        found.sort_by_key(super::picture::event_time);
        Ok(found)
    }

    /// Sets or takes away an annotation of a namespace, if it still is the one that was seen. What
    /// others write meanwhile stays.
    pub(crate) async fn annotate(
        &self,
        seen: &Namespace,
        key: &str,
        value: Option<&str>,
    ) -> anyhow::Result<()> {
        let (api, name) = (self.all::<Namespace>(), seen.name_any());
        let mut now = seen.clone();
        for _ in 0..ATTEMPTS {
            let patch = json!({"metadata": {
                "uid": now.metadata.uid,
                "resourceVersion": now.metadata.resource_version,
                "annotations": {key: value},
            }});
            match self.patch(&api, &name, &patch).await {
                Ok(()) => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => {
                    return Err(self.told(error, &format!("write to namespace {name}")));
                }
            }
            let Some(again) = self.namespace(&name).await? else {
                bail!("namespace {name} was deleted just now");
            };
            if again.metadata.uid != seen.metadata.uid {
                bail!("namespace {name} was deleted and made again just now");
            }
            now = again;
        }
        bail!("namespace {name} had too many write conflicts: try again")
    }

    /// Marks a cluster to be emptied, if it still is the one that was seen.
    pub(crate) async fn drain(&self, cluster: &WorkloadCluster) -> anyhow::Result<()> {
        let name = cluster.name_any();
        let patch = json!({"metadata": {"uid": cluster.metadata.uid}, "spec": {"drain": true}});
        let written = self.patch(&self.all::<WorkloadCluster>(), &name, &patch).await;
        written.map_err(|error| self.told(error, &format!("write to cluster {name}")))
    }

    async fn patch<K>(&self, api: &Api<K>, name: &str, patch: &Value) -> kube::Result<()>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let params = PatchParams { field_manager: Some(manager()), ..PatchParams::default() };
        api.patch(name, &params, &Patch::Merge(patch)).await.map(|_| ())
    }

    /// Declares an owner gone.
    pub(crate) async fn force(&self, force: &ForceRelease) -> anyhow::Result<ForceRelease> {
        let params = PostParams { field_manager: Some(manager()), ..PostParams::default() };
        let created = self.all::<ForceRelease>().create(&params, force).await;
        created.map_err(|error| self.told(error, "create the ForceRelease"))
    }

    /// What happens to one ForceRelease.
    pub(crate) fn follow_force(&self, name: &str) -> News<ForceRelease> {
        News::of(self.all(), Some(name))
    }

    /// What happens to a grant, or of all.
    pub(crate) fn follow_grants(&self, name: Option<&str>) -> News<Grant> {
        News::of(self.all(), name)
    }

    /// What happens to all objects of a kind.
    pub(crate) fn follow_all<K: OurKind>(&self) -> News<K> {
        News::of(Api::all(self.client.clone()), None)
    }
}

/// A kind of ours at the hub.
pub(crate) trait OurKind:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

impl OurKind for WorkloadCluster {}
impl OurKind for interlock_api::turns::MaintenanceTurn {}
impl OurKind for interlock_api::nodes::PhysicalNode {}
impl OurKind for interlock_api::identities::Role {}
impl OurKind for interlock_api::rollouts::ClusterRollout {}
impl OurKind for interlock_api::rollouts::RolloutReport {}

/// Who writes the fields that a person asked for.
fn manager() -> String {
    "interlock-cli".to_owned()
}

/// Whether a 404 is about the kind and not about an object of it.
fn is_missing_kind(message: &str) -> bool {
    !message.contains(" \"") || message.contains("could not find the requested resource")
}

/// The innermost reason: the others only say that there is one.
fn root(error: &kube::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Something new about objects of a kind.
#[derive(Debug)]
pub(crate) enum New<K> {
    /// It is there, like this.
    Is(K),
    /// It is gone.
    Gone(K),
}

/// News about objects of a kind, gathered by a task of its own: whoever waits for the next one may
/// give up waiting at any time and misses nothing.
///
/// When the stream breaks off it is taken up again: nothing that lasts is missed, what was only
/// for a moment may be.
pub(crate) struct News<K> {
    heard: mpsc::UnboundedReceiver<New<K>>,
}

impl<K> News<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    fn of(api: Api<K>, name: Option<&str>) -> Self {
        let only = name.map(|name| format!("metadata.name={name}")).unwrap_or_default();
        let (tell, heard) = mpsc::unbounded();
        tokio::spawn(async move {
            while !tell.is_closed() {
                // The hub may be away for a while: it is asked again.
                let _ = gather(&api, &only, &tell).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { heard }
    }

    /// The next news. It never ends; a hub that does not answer is asked again and again.
    pub(crate) async fn next(&mut self) -> New<K> {
        match self.heard.next().await {
            Some(new) => new,
            None => std::future::pending().await,
        }
    }
}

/// Lists, and watches from there on until the stream breaks off or nobody listens.
async fn gather<K>(
    api: &Api<K>,
    only: &str,
    tell: &mpsc::UnboundedSender<New<K>>,
) -> kube::Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let list = api.list(&ListParams::default().fields(only)).await?;
    let version = list.metadata.resource_version.clone().unwrap_or_default();
    for object in list.items {
        let _ = tell.unbounded_send(New::Is(object));
    }
    let stream = api.watch(&WatchParams::default().fields(only), &version).await?;
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.next().await {
        let new = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => New::Is(object),
            WatchEvent::Deleted(object) => New::Gone(object),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(_) => return Ok(()),
        };
        if tell.unbounded_send(new).is_err() {
            return Ok(());
        }
    }
    Ok(())
}
