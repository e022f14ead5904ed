//! Keeps a cache filled: everything is listed, then watched from there.
//!
//! What the cache had is kept while a connection is down: absence is not deletion, and only a whole
//! list or the word of the server takes an object out.

use crate::backoff::Backoff;
use crate::cache::{Cache, as_cached};
use futures::{FutureExt, StreamExt};
use interlock_kernel::{Kind, Object, Selector};
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tracing::{debug, error, warn};

/// The objects of one kind on one server.
pub(crate) type Api = kube::Api<DynamicObject>;

/// How many objects are asked for at once.
const PAGE: u32 = 500;
/// How long one page may take.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the server is to keep a watch; it may end it sooner.
const WATCH_SECONDS: u32 = 290;
/// A watch that is silent for longer, bookmarks included, is dead without knowing.
const WATCH_SILENCE: Duration = Duration::from_secs(300);

/// Fills a cache and keeps it filled, for ever.
pub(crate) async fn keep_filled(server: Arc<str>, api: Api, cache: Arc<Cache>) {
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
    loop {
        let round = AssertUnwindSafe(list_and_watch(&server, &api, &cache, &mut backoff));
        // An index of a controller runs in here: if it panics, the others still need the cache.
        if round.catch_unwind().await.is_err() {
            error!(server = &*server, kind = %cache.kind(), "the cache cannot store an object");
        }
        backoff.wait().await;
    }
}

/// One whole list, and then watches, for as long as one can follow on the other.
async fn list_and_watch(server: &str, api: &Api, cache: &Arc<Cache>, backoff: &mut Backoff) {
    let kind = cache.kind();
    let is_filled = cache.objects().is_filled();
    let listed = if is_filled { list_again(api, cache).await } else { fill(api, cache).await };
    let mut version = match listed {
        Ok(version) => version,
        Err(reason) => {
            warn!(server, kind = %kind, reason, "cannot list; the cache keeps its objects");
            return;
        }
    };
    debug!(server, kind = %kind, objects = cache.objects().len(), "listed");
    backoff.went_well();
    loop {
        let began = Instant::now();
        match watch(api, cache, &mut version).await {
            Ended::InOrder if began.elapsed() > Duration::from_secs(1) => backoff.went_well(),
            Ended::InOrder => backoff.wait().await,
            Ended::TooOld => {
                debug!(server, kind = %kind, "the watch is too far behind; listing again");
                return;
            }
            Ended::Broken(reason) => {
                debug!(server, kind = %kind, reason, "the watch failed; the cache keeps its \
                    objects");
                backoff.wait().await;
            }
        }
    }
}

/// Lists everything into a cache that nobody looks at yet; the version to watch from.
async fn fill(api: &Api, cache: &Cache) -> Result<String, String> {
    let listed = pages(api, cache.kind(), cache.selector(), |page| match page {
        Page::First(objects) => {
            cache.begin_fill();
            cache.fill(objects);
        }
        Page::Next(objects) => cache.fill(objects),
    });
    let version = listed.await?;
    cache.end_fill();
    Ok(version)
}

/// Lists everything anew; what the cache had stays until the list is whole.
async fn list_again(api: &Api, cache: &Cache) -> Result<String, String> {
    let (objects, version) = list_selected(api, cache.kind(), cache.selector()).await?;
    cache.replace(objects);
    Ok(version)
}

/// Everything there is, and the version to watch from.
pub(crate) async fn list(api: &Api, kind: &Kind) -> Result<(Vec<Object>, String), String> {
    list_selected(api, kind, &Selector::All).await
}

/// The same; a kind that the server does not serve has no objects.
pub(crate) async fn list_if_served(api: &Api, kind: &Kind) -> Result<Vec<Object>, String> {
    let one = ListParams::default().limit(1);
    match timeout(REQUEST_TIMEOUT, api.list(&one)).await {
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(Vec::new()),
        _ => list(api, kind).await.map(|(objects, _)| objects),
    }
}

/// What a selector selects, and the version to watch from.
pub(crate) async fn list_selected(
    api: &Api,
    kind: &Kind,
    selector: &Selector,
) -> Result<(Vec<Object>, String), String> {
    let mut objects = Vec::new();
    let version = pages(api, kind, selector, |page| match page {
        Page::First(first) => objects = first,
        Page::Next(next) => objects.extend(next),
    });
    let version = version.await?;
    Ok((objects, version))
}

/// A piece of a list.
enum Page {
    /// Whatever came before it is void.
    First(Vec<Object>),
    Next(Vec<Object>),
}

/// Everything there is, page by page, by a quorum read; the version to watch from.
async fn pages(
    api: &Api,
    kind: &Kind,
    selector: &Selector,
    mut take: impl FnMut(Page),
) -> Result<String, String> {
    let (label_selector, field_selector) = (selector.labels(), selector.fields());
    let mut params = ListParams { label_selector, field_selector, ..ListParams::default() };
    params = params.limit(PAGE);
    loop {
        let page = match timeout(REQUEST_TIMEOUT, api.list(&params)).await {
            Err(_) => return Err("the server did not answer in time".to_owned()),
            // The rest of a list can expire while it is read: it must be read from the start.
            Ok(Err(kube::Error::Api(status))) if is_too_old(&status) => {
                if params.continue_token.is_none() {
                    return Err(status.message);
                }
                params.continue_token = None;
                continue;
            }
            Ok(Err(error)) => return Err(error.to_string()),
            Ok(Ok(page)) => page,
        };
        let objects = page.items.into_iter().map(|object| as_cached(kind, object)).collect();
        let is_first = params.continue_token.is_none();
        take(if is_first { Page::First(objects) } else { Page::Next(objects) });
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(page.metadata.resource_version.unwrap_or_default()),
        }
    }
}

/// How a watch ended.
enum Ended {
    /// The server ended it, as it may.
    InOrder,
    /// The server no longer knows what came after the version that we have.
    TooOld,
    /// The connection broke or an answer made no sense.
    Broken(String),
}

async fn watch(api: &Api, cache: &Cache, version: &mut String) -> Ended {
    let selector = cache.selector();
    let (label_selector, field_selector) = (selector.labels(), selector.fields());
    let params = WatchParams { label_selector, field_selector, ..WatchParams::default() };
    let params = params.timeout(WATCH_SECONDS);
    let mut events = match timeout(REQUEST_TIMEOUT, api.watch(&params, version)).await {
        Err(_) => return Ended::Broken("the server did not answer in time".to_owned()),
        Ok(Err(kube::Error::Api(status))) if is_too_old(&status) => return Ended::TooOld,
        Ok(Err(error)) => return Ended::Broken(error.to_string()),
        Ok(Ok(events)) => events.boxed(),
    };
    loop {
        let event = match timeout(WATCH_SILENCE, events.next()).await {
            Err(_) => return Ended::Broken("the watch received nothing in time".to_owned()),
            Ok(None) => return Ended::InOrder,
            Ok(Some(Err(error))) => return Ended::Broken(error.to_string()),
            Ok(Some(Ok(event))) => event,
        };
        if let Some(ended) = take_in(event, cache, version) {
            return ended;
        }
    }
}

fn take_in(event: WatchEvent<DynamicObject>, cache: &Cache, version: &mut String) -> Option<Ended> {
    let mut seen = |object: &DynamicObject| {
        if let Some(seen) = &object.metadata.resource_version {
            version.clone_from(seen);
        }
    };
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            seen(&object);
            cache.put(as_cached(cache.kind(), object));
        }
        WatchEvent::Deleted(object) => {
            seen(&object);
            cache.remove(&as_cached(cache.kind(), object));
        }
        WatchEvent::Bookmark(bookmark) => *version = bookmark.metadata.resource_version,
        WatchEvent::Error(status) if is_too_old(&status) => return Some(Ended::TooOld),
        WatchEvent::Error(status) => return Some(Ended::Broken(status.message)),
    }
    None
}

fn is_too_old(status: &kube::core::Status) -> bool {
    status.code == 410 || status.reason == "Expired" || status.reason == "Gone"
}
