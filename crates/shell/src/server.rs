//! One API server as the shell sees it: a client, and caches that all controllers share.

use crate::cache::Cache;
use crate::events::EventSink;
use crate::feed::{self, Api};
use interlock_kernel::{Address, Kind, Object, Selector, Watch};
use kube::Client;
use kube::api::ApiResource;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use tokio::task::AbortHandle;

/// A server that cannot be reached because of what a kubeconfig says.
#[derive(Debug, thiserror::Error)]
#[error("cannot create a client for the server {name}")]
pub struct ConnectError {
    name: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// One API server. There is one watch for each kind and selector, however many controllers look at it.
#[derive(Clone)]
pub struct Server {
    known: Arc<Inner>,
    client: Client,
    events: Arc<OnceLock<EventSink>>,
}

/// A server, for as long as somebody else needs it.
#[derive(Clone)]
pub(crate) struct Remembered(Weak<Inner>);

impl Remembered {
    pub(crate) fn server(&self) -> Option<Server> {
        let known = self.0.upgrade()?;
        Some(Server { client: known.reader.clone(), known, events: Arc::default() })
    }
}

impl fmt::Debug for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Remembered")
    }
}

/// A kind, and which objects of it.
type Selected = (Kind, Selector);

struct Inner {
    name: Arc<str>,
    /// Fills the caches.
    reader: Client,
    caches: RwLock<HashMap<Selected, Arc<Cache>>>,
    feeds: Mutex<HashMap<Selected, AbortHandle>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let feeds = self.feeds.get_mut().unwrap_or_else(PoisonError::into_inner);
        feeds.values().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.known.name).finish_non_exhaustive()
    }
}

impl Server {
    /// A server behind a client; the name is for logs and metrics. The client may call a server in
    /// this process: whatever service it was made of.
    pub fn new(name: &str, client: Client) -> Server {
        let known = Inner {
            name: Arc::from(name),
            reader: client.clone(),
            caches: RwLock::default(),
            feeds: Mutex::default(),
        };
        Server { known: Arc::new(known), client, events: Arc::default() }
    }

    /// The same server with the same caches, for somebody else: whatever is asked of the server
    /// itself, and all that is written, goes through this client.
    #[must_use]
    pub fn acting_as(&self, client: Client) -> Server {
        Server { known: Arc::clone(&self.known), client, events: Arc::default() }
    }

    /// A server that a kubeconfig tells of, by the context of this name or the current one.
    pub async fn from_kubeconfig(
        name: &str,
        kubeconfig: Kubeconfig,
        context: Option<String>,
    ) -> Result<Server, ConnectError> {
        let failed = |source| ConnectError { name: name.to_owned(), source };
        let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let config = config.map_err(|error| failed(Box::new(error)))?;
        let client = Client::try_from(config).map_err(|error| failed(Box::new(error)))?;
        Ok(Server::new(name, client))
    }

    /// Its name, as logs and metrics have it.
    pub fn name(&self) -> &str {
        &self.known.name
    }

    /// Its client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The cache that somebody who selects this of a kind looks at, if anybody does: one of its own,
    /// or that of the whole kind.
    pub fn cache(&self, kind: &Kind, selector: &Selector) -> Option<Arc<Cache>> {
        let caches = self.known.caches.read().unwrap_or_else(PoisonError::into_inner);
        let find = |selector: &Selector| caches.get(&(kind.clone(), selector.clone()));
        find(selector).or_else(|| find(&Selector::All)).cloned()
    }

    /// The caches that an object belongs in.
    fn caches_of<'a>(
        &self,
        kind: &Kind,
        object: &'a Object,
    ) -> impl Iterator<Item = Arc<Cache>> + 'a {
        let is_in = |cache: &Arc<Cache>| cache.selector().selects(object);
        self.caches_of_kind(kind).into_iter().filter(is_in)
    }

    fn caches_of_kind(&self, kind: &Kind) -> Vec<Arc<Cache>> {
        self.caches().into_iter().filter(|cache| cache.kind() == kind).collect()
    }

    /// Whether anybody looks at a kind.
    pub(crate) fn is_watched_kind(&self, kind: &Kind) -> bool {
        self.caches().iter().any(|cache| cache.kind() == kind)
    }

    /// All caches there are.
    pub fn caches(&self) -> Vec<Arc<Cache>> {
        let caches = self.known.caches.read().unwrap_or_else(PoisonError::into_inner);
        caches.values().cloned().collect()
    }

    /// The cache for a watch, filed as it asks; nothing fills it yet. If there is one of the whole
    /// kind, it is that: what is there anyway need not be kept twice.
    pub fn open(&self, watch: &Watch) -> Arc<Cache> {
        let Watch { kind, selector, .. } = watch;
        let cache = self.cache(kind, selector).unwrap_or_else(|| {
            let mut caches = self.known.caches.write().unwrap_or_else(PoisonError::into_inner);
            let new = || Cache::new(kind, selector);
            Arc::clone(caches.entry((kind.clone(), selector.clone())).or_insert_with(new))
        });
        if !watch.indexes.is_empty() {
            let mut objects = cache.change();
            watch.indexes.iter().for_each(|index| objects.file_by(index));
        }
        cache
    }

    /// The same, kept filled by a watch from now on: one, whoever asks and however often.
    pub fn follow(&self, watch: &Watch) -> Arc<Cache> {
        let cache = self.open(watch);
        let mut feeds = self.known.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.entry((cache.kind().clone(), cache.selector().clone())).or_insert_with(|| {
            let name = Arc::clone(&self.known.name);
            let api = api(self.known.reader.clone(), &watch.kind, None);
            tokio::spawn(feed::keep_filled(name, api, Arc::clone(&cache))).abort_handle()
        });
        cache
    }

    /// Ends a watch and drops its cache, unless somebody looks at it: what a process followed once must not pile up.
    /// Whoever follows it again later lists anew. False: somebody does.
    pub fn let_go(&self, kind: &Kind, selector: &Selector) -> bool {
        let key = (kind.clone(), selector.clone());
        let mut feeds = self.known.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut caches = self.known.caches.write().unwrap_or_else(PoisonError::into_inner);
        let Some(cache) = caches.get(&key) else { return true };
        // One of them is here, and one is with whoever fills it.
        let own = 1 + usize::from(feeds.contains_key(&key));
        if Arc::strong_count(cache) > own {
            return false;
        }
        caches.remove(&key);
        if let Some(feed) = feeds.remove(&key) {
            feed.abort();
        }
        true
    }

    /// Lists a kind into its caches once, without a watch: for those who decide themselves when
    /// news comes, such as a simulation.
    pub async fn list_once(&self, kind: &Kind) -> Result<(), String> {
        let (objects, _) = self.list(kind).await?;
        self.show(kind, &objects);
        Ok(())
    }

    /// Everything of a kind as the server has it now, in the form in which caches have it, and the
    /// version at which it was so.
    pub async fn list(&self, kind: &Kind) -> Result<(Vec<Object>, String), String> {
        feed::list(&self.api(kind, None), kind).await
    }

    /// Shows the caches of a kind a list that was made earlier, perhaps by another one: how news
    /// comes late. What a cache knows in a later version stays.
    pub fn show(&self, kind: &Kind, listed: &[Object]) {
        for cache in self.caches_of_kind(kind) {
            let selected = listed.iter().filter(|object| cache.selector().selects(object));
            cache.replace(selected.cloned().collect());
        }
    }

    pub(crate) fn remembered(&self) -> Remembered {
        Remembered(Arc::downgrade(&self.known))
    }

    /// We wrote an object over a version: the caches that it belongs in show it.
    pub(crate) fn wrote(&self, kind: &Kind, over: &str, object: &Object) {
        self.caches_of(kind, object).for_each(|cache| {
            cache.wrote(over, object);
        });
    }

    /// The version of an object that somebody who selects this sees.
    pub(crate) fn version(&self, address: &Address, selector: &Selector) -> Option<String> {
        let cache = self.cache(&address.kind, selector)?;
        let objects = cache.objects();
        objects.get(&address.name)?.metadata.resource_version.clone()
    }

    /// The server itself showed an object.
    pub(crate) fn saw(&self, kind: &Kind, object: &Object) {
        self.caches_of(kind, object).for_each(|cache| cache.saw(Arc::clone(object)));
    }

    pub(crate) fn events(&self) -> &EventSink {
        self.events.get_or_init(|| EventSink::start(self.client.clone()))
    }

    /// The way to a kind, in one namespace or in all.
    pub(crate) fn api(&self, kind: &Kind, namespace: Option<&str>) -> Api {
        api(self.client.clone(), kind, namespace)
    }

    /// The way to one object.
    pub(crate) fn api_of(&self, address: &Address) -> Api {
        self.api(&address.kind, address.name.namespace.as_deref())
    }
}

fn api(client: Client, kind: &Kind, namespace: Option<&str>) -> Api {
    let resource = resource(kind);
    match namespace {
        Some(namespace) if kind.is_namespaced => Api::namespaced_with(client, namespace, &resource),
        _ => Api::all_with(client, &resource),
    }
}

pub(crate) fn resource(kind: &Kind) -> ApiResource {
    ApiResource {
        group: kind.group.to_string(),
        version: kind.version.to_string(),
        api_version: kind.api_version(),
        kind: kind.kind.to_string(),
        plural: kind.plural.to_string(),
    }
}
