//! Heavy requests: large bodies and large answers are worked on beside the threads that serve everybody, a few at a time
//! for each logical cluster.
//!
//! Reading a large YAML text takes a second of processor time, compiling the patterns of a kind or patching a large object
//! a tenth, making a part of a large table some milliseconds. On the threads that serve all requests, a handful of them would keep everybody waiting.

use crate::body::{Beside, Made};
use crate::request::Verb;
use crate::resource::Resource;
use crate::status::Status;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bodies up to here are worked on at once. YAML, which takes longest, has a lower limit.
const LIGHT_BYTES: usize = 256 * 1024;
const LIGHT_YAML_BYTES: usize = 16 * 1024;
/// How many heavy requests of one cluster are worked on at the same time.
const OF_ONE_CLUSTER: usize = 1;
/// How long a heavy request waits for its turn.
const WAIT: Duration = Duration::from_secs(30);

/// Whether a body is worked on beside.
pub(crate) fn is_heavy(content_type: &str, body: &[u8]) -> bool {
    let most = if content_type.contains("yaml") { LIGHT_YAML_BYTES } else { LIGHT_BYTES };
    body.len() > most
}

/// Whether an object of so many bytes is worked on beside.
pub(crate) fn is_large(bytes: usize) -> bool {
    bytes > LIGHT_BYTES
}

/// Whether a write has many patterns compiled: those of a definition, or those of a kind that were forgotten.
pub(crate) fn compiles_much(resource: &Resource, verb: Verb) -> bool {
    let is_definition = (&*resource.group, &*resource.plural)
        == ("apiextensions.k8s.io", "customresourcedefinitions");
    let is_cold = || resource.is_custom() && resource.schema.is_cold();
    matches!(verb, Verb::Create | Verb::Update | Verb::Patch) && (is_definition || is_cold())
}

/// The places for heavy requests, and for parts of large answers.
#[derive(Default)]
pub(crate) struct Heavy {
    requests: Line,
    /// A line of their own: a part takes milliseconds, and must not wait for a body that takes a second.
    parts: Arc<Line>,
}

/// Where work waits for its turn.
struct Line {
    places: Arc<Semaphore>,
    of_clusters: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

impl Default for Line {
    fn default() -> Self {
        // One processor stays free for everybody else, if there is more than one.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Line {
            places: Arc::new(Semaphore::new((processors - 1).max(1))),
            of_clusters: Mutex::default(),
        }
    }
}

/// What heavy work holds while it is under way.
struct HeavyPermit {
    _of_cluster: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Heavy {
    /// Does something on a thread of its own, when it is the cluster's turn. It goes on if nobody waits for it any
    /// more: a write that has begun is not left by halves.
    pub(crate) async fn run<T, F>(&self, cluster: &Arc<str>, work: F) -> Result<T, Status>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Status>> + Send + 'static,
    {
        let waited = tokio::time::timeout(WAIT, self.requests.place(cluster)).await;
        let place = waited.ok().flatten().ok_or_else(|| {
            let message = "too many large requests in this cluster, please try again later";
            Status::too_many_requests(message, 5)
        })?;
        let runtime = Handle::current();
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            runtime.block_on(work)
        });
        done.await.unwrap_or_else(|_| Err(Status::internal("a large request failed")))
    }

    /// Makes the parts of a large answer, each when it is the cluster's turn.
    pub(crate) fn parts(&self, cluster: &Arc<str>) -> Beside {
        let (line, cluster) = (Arc::clone(&self.parts), Arc::clone(cluster));
        Box::new(move |mut parts| {
            let (line, cluster) = (Arc::clone(&line), Arc::clone(&cluster));
            tokio::spawn(async move {
                let place = line.place(&cluster).await?;
                let made = tokio::task::spawn_blocking(move || {
                    let _place = place;
                    Made { part: parts(), parts }
                });
                made.await.ok()
            })
        })
    }
}

impl Line {
    /// First the cluster's own turn, then a place: so a cluster with many heavy requests stands in line once.
    async fn place(&self, cluster: &Arc<str>) -> Option<HeavyPermit> {
        let of_cluster = self.of_cluster(cluster).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some(HeavyPermit { _of_cluster: of_cluster, _of_all: of_all })
    }

    fn of_cluster(&self, cluster: &Arc<str>) -> Arc<Semaphore> {
        let mut clusters = self.lock();
        // Those that nobody uses leave nothing behind.
        if clusters.len() > 1024 {
            clusters.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let new = || Arc::new(Semaphore::new(OF_ONE_CLUSTER));
        Arc::clone(clusters.entry(Arc::clone(cluster)).or_insert_with(new))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Semaphore>>> {
        self.of_clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[test]
    fn yaml_is_heavy_earlier() {
        let body = vec![b' '; LIGHT_YAML_BYTES + 1];
        assert!(is_heavy("application/yaml", &body));
        assert!(is_heavy("application/apply-patch+yaml", &body));
        assert!(!is_heavy("application/json", &body));
        assert!(is_heavy("application/json", &vec![b' '; LIGHT_BYTES + 1]));
    }

    #[tokio::test]
    async fn a_part_does_not_wait_for_a_heavy_request() {
        let requests = Line { places: Arc::new(Semaphore::new(0)), ..Line::default() };
        let heavy = Heavy { requests, ..Heavy::default() };
        let made = heavy.parts(&"east".into())(Box::new(|| Some(vec![7])));
        let made = made.await.expect("it does not panic").expect("it is made");
        assert_eq!(made.part, Some(vec![7]));
    }

    #[tokio::test]
    async fn one_cluster_has_one_turn_at_a_time_and_others_go_on() {
        let requests = Line { places: Arc::new(Semaphore::new(2)), ..Line::default() };
        let heavy = Arc::new(Heavy { requests, ..Heavy::default() });
        let (release, released) = oneshot::channel::<()>();
        let (begun, has_begun) = oneshot::channel::<()>();
        let (east, west): (Arc<str>, Arc<str>) = ("east".into(), "west".into());
        let first = {
            let (heavy, east) = (Arc::clone(&heavy), Arc::clone(&east));
            let work = async move {
                begun.send(()).expect("somebody waits");
                released.await.map_err(|_| Status::internal("nobody releases it"))
            };
            tokio::spawn(async move { heavy.run(&east, work).await })
        };
        has_begun.await.expect("it begins");
        // The second of the same cluster waits, and gives up in the end; the neighbour does not.
        assert_eq!(heavy.run(&west, async { Ok(7) }).await.expect("it has its turn"), 7);
        tokio::time::pause();
        let waits = heavy.run(&east, async { Ok(7) });
        // The clock does not jump by itself while a thread works.
        let (refused, ()) = tokio::join!(waits, tokio::time::advance(WAIT * 2));
        let refused = refused.expect_err("it is not its turn");
        assert_eq!((refused.code, refused.retry_after_seconds), (429, Some(5)));
        tokio::time::resume();
        release.send(()).expect("it waits");
        first.await.expect("it does not panic").expect("it is done");
        assert_eq!(heavy.run(&east, async { Ok(7) }).await.expect("it has its turn"), 7);
    }
}
