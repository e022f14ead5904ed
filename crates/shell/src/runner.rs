//! Runs one controller: what changed becomes a turn in the queue, a turn becomes a step, and what
//! came of the step says when the next turn is.

use crate::backoff::jittered;
use crate::cache::{Cache, Change, Subscription};
use crate::metrics::Counts;
use crate::once::{Ended, News, Wiring, step_once, words_of};
use crate::outside::Driver;
use crate::poll_backoff::PollBackoff;
use crate::stop::{Stop, Stopper};
use crate::work_queue::WorkQueue;
use interlock_kernel::{Controller, Limits, Name, Object, Subject, Watch};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tracing::{debug, error, info, warn};

/// If the watch does not bring what we wrote by then, the subject has its turn anyway.
const ECHO: Duration = Duration::from_secs(1);
/// A wait before another try that says that it went wrong many times.
const LONG: Duration = Duration::from_secs(1);

/// How a controller is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many subjects have their turn at once.
    pub workers: usize,
    /// How often every subject has a turn although nothing changed, unless its controller asks for
    /// fewer turns.
    pub resync: Duration,
    /// How failures are slowed down.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { workers: 4, resync: Duration::from_secs(600), limits: Limits::default() }
    }
}

/// One controller at work.
pub(crate) struct Running<C: Controller, H> {
    pub(crate) wiring: Wiring<C, H>,
    pub(crate) settings: Settings,
    pub(crate) work_queue: WorkQueue,
    pub(crate) poll_backoff: PollBackoff,
    pub(crate) counts: Arc<Counts>,
    pub(crate) stop: Stop,
    /// Whether all caches were filled. Before that, news is not worth a turn.
    pub(crate) is_ready: AtomicBool,
    /// A fault on purpose ends it, as if the process had died.
    pub(crate) death: Stopper,
}

impl<C, H> Running<C, H>
where
    C: Controller,
    H: Driver<C::Outside>,
{
    /// Runs it until it is asked to stop; then ends what is under way.
    pub(crate) async fn run(self: Arc<Self>) {
        let name = self.wiring.controller.name();
        let watched = self.follow();
        tokio::select! {
            () = self.stop.asked() => return,
            () = filled(&watched) => {}
        }
        // First ready, then a turn for everything: what changes in between is not missed.
        self.is_ready.store(true, Ordering::SeqCst);
        self.for_every_subject(&watched, |subject| self.work_queue.add(subject));
        info!(controller = name, "controller started");
        let mut workers = JoinSet::new();
        for _ in 0..self.settings.workers.max(1) {
            workers.spawn(Arc::clone(&self).work());
        }
        tokio::select! {
            () = self.resync_for_ever(&watched) => {}
            () = async { while workers.join_next().await.is_some() {} } => {}
        }
        debug!(controller = name, "stopped");
    }

    /// Begins to watch all that the controller watches, and passes changes to it.
    fn follow(self: &Arc<Self>) -> Vec<Watched> {
        let watches = self.wiring.controller.watches().into_iter();
        let watched = watches.filter_map(|watch| {
            let server = self.wiring.places.server(watch.place)?;
            let cache = server.follow(&watch);
            let (listener, of) = (Arc::downgrade(self), watch.clone());
            let subscription = cache.subscribe(Arc::new(move |change: &Change| {
                let listener = listener.upgrade();
                if let Some(running) = listener.filter(|r| r.is_ready.load(Ordering::SeqCst)) {
                    running.hear(&of, change);
                }
            }));
            Some(Watched { watch, cache, _subscription: subscription })
        });
        watched.collect()
    }

    /// A turn for all that a change is about, as the object was and as it is: it may be about
    /// something else now.
    fn hear(&self, watch: &Watch, change: &Change) {
        let Change { before, now } = change;
        if let (Some(is_same), Some(before)) = (watch.is_same, before)
            && is_same(before, now)
        {
            return;
        }
        for object in before.iter().chain([now]) {
            self.subjects(watch, object)
                .into_iter()
                .for_each(|subject| self.work_queue.add(subject));
        }
    }

    fn subjects(&self, watch: &Watch, object: &Object) -> Vec<Subject> {
        let controller = &self.wiring.controller;
        let view = self.wiring.view();
        let about = || controller.subjects(watch, object, &view);
        match catch_unwind(AssertUnwindSafe(about)) {
            Ok(subjects) => subjects,
            Err(panic) => {
                let (because, kind) = (words_of(&*panic), &watch.kind);
                error!(controller = controller.name(), %kind, because, "cannot find the subject \
                    of an object");
                Vec::new()
            }
        }
    }

    fn for_every_subject(&self, watched: &[Watched], mut add: impl FnMut(Subject)) {
        if let Some(everything) = self.everything() {
            return everything.into_iter().for_each(add);
        }
        for Watched { watch, cache, .. } in watched {
            // One at a time: all at once, decoded, would take more room than all caches do.
            let names: Vec<Name> = cache.objects().names().cloned().collect();
            for name in names {
                let object = cache.objects().get(&name);
                object.iter().flat_map(|object| self.subjects(watch, object)).for_each(&mut add);
            }
        }
    }

    fn everything(&self) -> Option<Vec<Subject>> {
        let controller = &self.wiring.controller;
        let view = self.wiring.view();
        match catch_unwind(AssertUnwindSafe(|| controller.everything(&view))) {
            Ok(everything) => everything,
            Err(panic) => {
                let because = words_of(&*panic);
                error!(controller = controller.name(), because, "cannot list all subjects");
                None
            }
        }
    }

    /// A turn for every subject now and then, spread over a tenth of the time in between. Whoever
    /// has one before the next round anyway needs none.
    async fn resync_for_ever(&self, watched: &[Watched]) {
        let asked = self.wiring.controller.resync().unwrap_or_default();
        let between = self.settings.resync.max(asked);
        loop {
            sleep(jittered(between)).await;
            self.for_every_subject(watched, |subject| {
                let wait = share_of(between / 10, &subject);
                self.work_queue.add_unless_due(subject, wait, between);
            });
        }
    }

    async fn work(self: Arc<Self>) {
        while !self.stop.is_asked() {
            let Some(subject) = self.next().await else { continue };
            let began = Instant::now();
            let Some(ended) = self.step(&subject).await else {
                // Given up where it was, as if we had crashed: that is a state like any other.
                self.work_queue.add(Arc::clone(&subject));
                self.work_queue.done(&subject);
                continue;
            };
            self.counts.stepped(&ended, began.elapsed());
            self.settle(&subject, ended);
            self.work_queue.done(&subject);
        }
    }

    /// The next subject, if we lead.
    async fn next(&self) -> Option<Subject> {
        if let Some(leadership) = &self.wiring.leadership {
            tokio::select! {
                biased;
                () = self.stop.asked() => return None,
                () = leadership.gained() => {}
            }
        }
        tokio::select! {
            biased;
            () = self.stop.asked() => None,
            () = self.lost(), if self.wiring.leadership.is_some() => None,
            subject = self.work_queue.next() => Some(subject),
        }
    }

    async fn lost(&self) {
        match &self.wiring.leadership {
            Some(leadership) => leadership.lost().await,
            None => std::future::pending().await,
        }
    }

    /// One step, to its end, unless we no longer lead: then it is given up where it is, before
    /// another one can lead.
    async fn step(&self, subject: &Subject) -> Option<Ended> {
        let death = self.death.signal();
        tokio::select! {
            biased;
            () = death.asked() => None,
            () = self.lost(), if self.wiring.leadership.is_some() => None,
            ended = step_once(&self.wiring, subject) => Some(ended),
        }
    }

    /// When the subject has its next turn.
    fn settle(&self, subject: &Subject, ended: Ended) {
        let controller = self.wiring.controller.name();
        let about = &**subject;
        if !matches!(ended, Ended::Waits(_)) {
            self.poll_backoff.ends(subject);
        }
        match ended {
            Ended::Rests => self.work_queue.succeeded(subject),
            Ended::Waits(at_most) => {
                self.work_queue.succeeded(subject);
                let wait = self.poll_backoff.wait(subject, at_most.max(Duration::from_millis(1)));
                self.work_queue.add_after(Arc::clone(subject), wait);
            }
            Ended::Acted { event, news, then } => {
                if let Some(event) = event {
                    self.tell(*event);
                }
                self.turns_after(subject, news, then);
            }
            Ended::WriteConflict(by) => {
                debug!(controller, subject = about, ?by, "write conflict; requeued");
                self.again(subject);
            }
            Ended::Refused(reason) => {
                let wait = self.again(subject);
                warn!(
                    controller,
                    subject = about,
                    reason,
                    ?wait,
                    "an action was refused; requeued"
                );
            }
            // A connection that is lost for a moment is lost for all subjects: only one that stays
            // so is worth a person's time.
            Ended::Unknown(reason) | Ended::Unreachable(reason) => {
                let wait = self.again(subject);
                if wait < LONG {
                    debug!(
                        controller,
                        subject = about,
                        reason,
                        ?wait,
                        "the API server did not answer; requeued"
                    );
                } else {
                    warn!(
                        controller,
                        subject = about,
                        reason,
                        ?wait,
                        "the API server did not answer; requeued"
                    );
                }
            }
            Ended::Broken(reason) => {
                let wait = self.again(subject);
                error!(controller, subject = about, reason, ?wait, "a step failed; requeued");
            }
            Ended::NotLeading => self.work_queue.add(Arc::clone(subject)),
            Ended::Crashed => self.death.stop(),
        }
    }

    fn turns_after(&self, subject: &Subject, news: News, then: Option<Duration>) {
        match (news, then) {
            // Whether what was written is worth a turn, the watch says, as of any other change.
            (News::Seen | News::Coming, Some(at_most)) => {
                self.work_queue.succeeded(subject);
                self.work_queue.add_after(Arc::clone(subject), at_most);
            }
            (News::Seen, None) => {
                self.work_queue.succeeded(subject);
                self.work_queue.add(Arc::clone(subject));
            }
            (News::Coming, None) => {
                self.work_queue.succeeded(subject);
                self.work_queue.add_after(Arc::clone(subject), ECHO);
            }
            // A controller that goes on to write what is there already must not do so at full speed.
            (News::NoneAtAll, _) => {
                self.again(subject);
            }
        }
    }

    /// Has it tried again, later each time. The wait.
    fn again(&self, subject: &Subject) -> Duration {
        self.counts.retried();
        self.work_queue.failed(subject)
    }

    fn tell(&self, event: interlock_kernel::Event) {
        if let Some(server) = self.wiring.places.server(event.about.place) {
            let reason = event.reason;
            let is_taken = server.events().put(self.wiring.controller.name(), event);
            self.counts.told(reason, is_taken);
        }
    }
}

/// A watch of the controller with the cache that is behind it.
struct Watched {
    watch: Watch,
    cache: Arc<Cache>,
    _subscription: Subscription,
}

async fn filled(watched: &[Watched]) {
    for Watched { cache, .. } in watched {
        cache.filled().await;
    }
}

/// A point within a time that is the subject's own, so that not all have it at once.
fn share_of(time: Duration, subject: &Subject) -> Duration {
    let mut hasher = DefaultHasher::new();
    subject.hash(&mut hasher);
    let share = (hasher.finish() % 1024) as u32;
    time * share / 1024
}
