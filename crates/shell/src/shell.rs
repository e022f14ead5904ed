//! The controllers of one process, run together and stopped together.

use crate::boxed::Boxed;
use crate::faults::Seam;
use crate::leader::{Campaign, Leadership};
use crate::metrics::Metrics;
use crate::once::{Clock, Wiring};
use crate::outside::Driver;
use crate::poll_backoff::PollBackoff;
use crate::record::Recorder;
use crate::runner::{Running, Settings};
use crate::stop::{Stop, Stopper};
use crate::view::Places;
use crate::work_queue::WorkQueue;
use interlock_kernel::{Controller, Place};
use jiff::Timestamp;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A controller was given too few servers.
#[derive(Debug, thiserror::Error)]
#[error("{controller} watches the {place}, and no API server is configured for it")]
pub struct WiringError {
    controller: &'static str,
    place: Place,
}

/// The controllers of one process.
pub struct Shell {
    settings: Settings,
    seam: Seam,
    clock: Clock,
    campaign: Option<Campaign>,
    recorder: Option<Recorder>,
    metrics: Arc<Metrics>,
    stopper: Stopper,
    /// Each runner holds a sender; when the last is dropped, all have ended.
    alive: (mpsc::Sender<()>, mpsc::Receiver<()>),
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shell").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Default for Shell {
    fn default() -> Self {
        Shell::new(Settings::default())
    }
}

impl Shell {
    /// A shell that runs nothing yet.
    pub fn new(settings: Settings) -> Shell {
        Shell {
            settings,
            seam: Seam::default(),
            clock: Arc::new(Timestamp::now),
            campaign: None,
            recorder: None,
            metrics: Arc::default(),
            stopper: Stopper::new(),
            alive: mpsc::channel(1),
        }
    }

    /// With faults on purpose.
    #[must_use]
    pub fn with_seam(mut self, seam: Seam) -> Shell {
        self.seam = seam;
        self
    }

    /// With another clock than that of this process.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Shell {
        self.clock = clock;
        self
    }

    /// Acts only while it leads.
    #[must_use]
    pub fn with_campaign(mut self, campaign: Campaign) -> Shell {
        self.campaign = Some(campaign);
        self
    }

    /// Records every step of every controller.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Recorder) -> Shell {
        let counted = recorder.counts();
        self.metrics.also(move || counted.render());
        self.recorder = Some(recorder);
        self
    }

    /// What it counts.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Whether it leads; None: it does not ask.
    pub fn leadership(&self) -> Option<Leadership> {
        self.campaign.as_ref().map(Campaign::leadership)
    }

    /// Tells that the end was asked for.
    pub fn stop_signal(&self) -> Stop {
        self.stopper.signal()
    }

    /// Runs a controller on these servers until the runner or the shell is stopped.
    pub fn run<C, H>(
        &self,
        controller: C,
        places: impl Into<Places>,
        driver: H,
    ) -> Result<Runner, WiringError>
    where
        C: Controller,
        H: Driver<C::Outside>,
    {
        let (places, name) = (places.into(), controller.name());
        for watch in controller.watches() {
            let Some(server) = places.server(watch.place) else {
                return Err(WiringError { controller: name, place: watch.place });
            };
            self.metrics.knows(server);
        }
        let (stopper, death) = (Stopper::new(), Stopper::new());
        let counts = self.metrics.counts(name);
        let wiring = Wiring::new(Boxed::new(controller), places, driver);
        let wiring = match &self.recorder {
            None => wiring,
            Some(recorder) => wiring.recorded(recorder.clone()),
        };
        let running = Arc::new(Running {
            wiring: Wiring {
                seam: self.seam.clone(),
                leadership: self.leadership(),
                clock: Arc::clone(&self.clock),
                ..wiring
            },
            settings: self.settings.clone(),
            work_queue: WorkQueue::new(self.settings.limits.clone(), Arc::clone(&counts)),
            poll_backoff: PollBackoff::default(),
            counts,
            stop: stopper.signal().or(&self.stopper.signal()).or(&death.signal()),
            is_ready: AtomicBool::new(false),
            death,
        });
        let watched: Arc<dyn Watchable> = Arc::clone(&running) as _;
        let alive = self.alive.0.clone();
        running.counts.runs(1);
        let task = tokio::spawn(async move {
            Arc::clone(&running).run().await;
            running.counts.runs(-1);
            drop(alive);
        });
        Ok(Runner { name, stopper, task, watched })
    }

    /// Ends all runners, each after the steps that are under way, and then gives the lease back.
    pub async fn stop(self) {
        let Shell { campaign, stopper, alive: (sender, mut receiver), .. } = self;
        stopper.stop();
        drop(sender);
        while receiver.recv().await.is_some() {}
        if let Some(campaign) = campaign {
            campaign.end().await;
        }
    }
}

/// What can be seen of a runner whatever its controller is.
trait Watchable: Send + Sync {
    fn is_ready(&self) -> bool;
    fn is_resting(&self) -> bool;
    fn is_dead(&self) -> bool;
    fn die(&self);
}

impl<C: Controller, H: Driver<C::Outside>> Watchable for Running<C, H> {
    fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::SeqCst)
    }
    fn is_resting(&self) -> bool {
        self.work_queue.is_resting()
    }
    fn is_dead(&self) -> bool {
        self.death.signal().is_asked()
    }
    fn die(&self) {
        self.death.stop();
    }
}

/// One controller that runs. To drop it stops it.
pub struct Runner {
    name: &'static str,
    stopper: Stopper,
    task: JoinHandle<()>,
    watched: Arc<dyn Watchable>,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Runner {
    /// The name of its controller.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether all its caches were filled, so that it takes steps.
    pub fn is_ready(&self) -> bool {
        self.watched.is_ready()
    }

    /// Whether no step is under way and none is due. News may be on its way all the same.
    pub fn is_resting(&self) -> bool {
        self.is_ready() && self.watched.is_resting()
    }

    /// Ends it as a crash of its process would: steps that are under way are given up where they are.
    pub fn kill(&self) {
        self.watched.die();
    }

    /// Whether a fault on purpose, or a kill, has ended it.
    pub fn has_crashed(&self) -> bool {
        self.watched.is_dead()
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it, after the steps that are under way.
    pub async fn stop(self) {
        self.stopper.stop();
        let _ = self.task.await;
    }
}
