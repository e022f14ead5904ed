//! One step of one controller about one subject: observe, decide, look if asked to, act at most
//! once. No task runs in the background and nothing is kept, so that a simulation can call it.

use crate::faults::{Fault, Seam};
use crate::leader::Leadership;
use crate::live_reads;
use crate::outside::Driver;
use crate::record::{About, Noted, Noting, Recorder, ViewDigest, doing};
use crate::server::Server;
use crate::view::{Caches, Places};
use crate::write::{self, Outcome};
use futures::FutureExt;
use interlock_kernel::{
    Action, Controller, Effect, End, Event, LiveReads, MOST_LIVE_READS, Narrowed, Object,
    Selections, Selector, Step, Subject, View, Write,
};
use jiff::Timestamp;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info};

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How often one step may ask for live reads on real servers. What the servers and the caches have may change while it reads,
/// and then it asks for what it needs now: that is no mistake. It is not the bound of the kernel, which is for worlds and
/// tests: nothing changes there while a step reads, so half of it has to be enough, and a chain that grows is seen there first.
pub const MOST_ROUNDS: usize = 2 * MOST_LIVE_READS;

/// A controller with all that it works on.
pub struct Wiring<C: Controller, H> {
    /// The controller.
    pub controller: C,
    /// What of each kind it is shown.
    pub selections: Selections,
    /// Which servers it works on.
    pub places: Places,
    /// What it does outside of the API with.
    pub driver: H,
    /// Faults on purpose.
    pub seam: Seam,
    /// Only who leads may act; None: nobody else is there.
    pub leadership: Option<Leadership>,
    /// What time it is.
    pub clock: Clock,
    /// Where its steps are recorded.
    pub(crate) noting: Option<Noting>,
}

impl<C: Controller, H> Wiring<C, H> {
    /// A controller on its servers, on the clock of this process, alone and without faults.
    pub fn new(controller: C, places: Places, driver: H) -> Self {
        Wiring {
            selections: Selections::of(&controller.watches()),
            controller,
            places,
            driver,
            seam: Seam::default(),
            leadership: None,
            clock: Arc::new(Timestamp::now),
            noting: None,
        }
    }

    /// With all its steps recorded.
    #[must_use]
    pub fn recorded(mut self, recorder: Recorder) -> Self {
        let at = Arc::new(self.places.names());
        self.noting = Some(Noting { recorder, at });
        self
    }

    /// What the controller sees now.
    pub fn view(&self) -> Narrowed<'_, Caches<'_>> {
        self.places.view(&self.selections, (self.clock)())
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// Nothing is to be done until something changes.
    Rests,
    /// Nothing is to be done until something changes or this time has passed.
    Waits(Duration),
    /// The effect was done.
    Acted {
        /// The event for the owner of an object.
        event: Option<Box<Event>>,
        /// Whether the next step sees it.
        news: News,
        /// Nothing is to be done until something else changes or this time has passed; None: who knows.
        then: Option<Duration>,
    },
    /// Somebody else was faster: what the decision rests on is no longer so.
    WriteConflict(Outcome),
    /// The server or the world outside would not do it. The sentence says who, and why.
    Refused(String),
    /// It may or may not have been done. The cache shows what the server has now, if that could be
    /// found out.
    Unknown(String),
    /// The server could not be read, or asks to be left alone for a while.
    Unreachable(String),
    /// A mistake in the controller.
    Broken(String),
    /// Another one leads: nothing was done.
    NotLeading,
    /// A fault on purpose: the runner is to do nothing more.
    Crashed,
}

/// When the next step sees what was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It does.
    Seen,
    /// Once the watch has brought it.
    Coming,
    /// The write changed nothing, so nothing will come.
    NoneAtAll,
}

/// Takes one step about a subject.
pub async fn step_once<C, H>(wiring: &Wiring<C, H>, subject: &Subject) -> Ended
where
    C: Controller,
    H: Driver<C::Outside>,
{
    // Drivers are somebody else's code, like the step itself.
    match AssertUnwindSafe(observe_decide_act(wiring, subject)).catch_unwind().await {
        Ok(ended) => ended,
        Err(panic) => Ended::Broken(words_of(&*panic)),
    }
}

async fn observe_decide_act<C, H>(wiring: &Wiring<C, H>, subject: &Subject) -> Ended
where
    C: Controller,
    H: Driver<C::Outside>,
{
    let controller = wiring.controller.name();
    let mut live_reads = LiveReads::default();
    for round in 0..=MOST_ROUNDS {
        let decide = || take_step(wiring, subject, &live_reads, round);
        let (step, noted) = match catch_unwind(AssertUnwindSafe(decide)) {
            Ok(decided) => decided,
            Err(panic) => return Ended::Broken(words_of(&*panic)),
        };
        match step {
            Step::Rest { because } => {
                debug!(controller, subject = &**subject, because, "rests");
                noted.into_iter().for_each(|noted| noted.ends(End::Rests, &because));
                return Ended::Rests;
            }
            Step::Wait { because, at_most } => {
                debug!(controller, subject = &**subject, because, ?at_most, "waits");
                noted.into_iter().for_each(|noted| noted.ends(End::Waits, &because));
                return Ended::Waits(at_most);
            }
            Step::Act(effect) => return act(wiring, subject, *effect, noted).await,
            Step::LiveRead { reads, because } => {
                debug!(controller, subject = &**subject, because, "looks");
                noted.into_iter().for_each(|noted| noted.ends(End::Reads, &because));
                let seen =
                    live_reads::read_live(&wiring.places, &wiring.driver, reads, &mut live_reads)
                        .await;
                if let Err(reason) = seen {
                    return Ended::Unreachable(reason);
                }
            }
        }
    }
    Ended::Broken(format!("the step asked for live reads more than {MOST_ROUNDS} times"))
}

/// One call of the controller, with the beginning of its record if it is to be recorded.
fn take_step<C: Controller, H>(
    wiring: &Wiring<C, H>,
    subject: &Subject,
    live_reads: &LiveReads<C::Outside>,
    round: usize,
) -> (Step<C::Outside>, Option<Noted>) {
    let (controller, view) = (&wiring.controller, wiring.view());
    let Some(noting) = &wiring.noting else {
        return (controller.step(subject, &view, live_reads), None);
    };
    let time = view.now();
    let view = ViewDigest::new(view);
    let (step, decided) = controller.step_on_record(subject, &view, live_reads);
    let noted = decided.map(|decided| {
        let view = view.with(live_reads);
        noting.begin(controller.name(), About { subject, round, view, time, decided })
    });
    (step, noted)
}

async fn act<C, H>(
    wiring: &Wiring<C, H>,
    subject: &Subject,
    effect: Effect<C::Outside>,
    mut noted: Option<Noted>,
) -> Ended
where
    C: Controller,
    H: Driver<C::Outside>,
{
    let words = match &effect.action {
        Action::Write(write) => write::in_words(write),
        Action::Outside(action) => name_of(action),
    };
    if let Some(noted) = &mut noted {
        noted.does(doing(&effect, &words), &effect.because);
    }
    let (ended, now) = act_in_words(wiring, subject, effect, &words).await;
    if let Some(noted) = noted {
        noted.done(end_of(&ended), now);
    }
    ended
}

/// How a record says that a step with an effect ended.
fn end_of(ended: &Ended) -> End {
    match ended {
        Ended::Rests => End::Rests,
        Ended::Waits(_) => End::Waits,
        Ended::Acted { .. } => End::Done,
        Ended::WriteConflict(_) => End::Conflict,
        Ended::Refused(_) => End::Refused,
        Ended::Unknown(_) | Ended::Crashed => End::Unknown,
        Ended::Unreachable(_) => End::Unreachable,
        Ended::Broken(_) => End::Broken,
        Ended::NotLeading => End::NotLeading,
    }
}

/// Acts; and which version the object has since, if the server said so.
async fn act_in_words<C, H>(
    wiring: &Wiring<C, H>,
    subject: &Subject,
    effect: Effect<C::Outside>,
    words: &str,
) -> (Ended, Option<String>)
where
    C: Controller,
    H: Driver<C::Outside>,
{
    let controller = wiring.controller.name();
    // To look may have taken long; what leads now may no longer be us.
    if wiring.leadership.as_ref().is_some_and(|leadership| !leadership.holds()) {
        return (Ended::NotLeading, None);
    }
    let Effect { action, because, event, then } = effect;
    let afterwards = Afterwards { event: event.map(Box::new), then };
    info!(controller, subject = &**subject, because, action = words, "performing an action");
    let (number, fault) = wiring.seam.before(controller, subject, words);
    match fault {
        Fault::None | Fault::LoseReply => {}
        Fault::Crash => return (Ended::Crashed, None),
        Fault::LoseRequest => return (lost(wiring, &action).await, None),
    }
    let performed = perform(wiring, &action, afterwards).await;
    match wiring.seam.after(number, controller, subject, words) {
        Fault::Crash => return (Ended::Crashed, None),
        Fault::LoseReply => return (lost(wiring, &action).await, None),
        Fault::None | Fault::LoseRequest => {}
    }
    if fault == Fault::LoseReply {
        return (lost(wiring, &action).await, None);
    }
    performed
}

/// What follows an effect that was done.
struct Afterwards {
    event: Option<Box<Event>>,
    then: Option<Duration>,
}

async fn perform<C, H>(
    wiring: &Wiring<C, H>,
    action: &Action<C::Outside>,
    Afterwards { event, then }: Afterwards,
) -> (Ended, Option<String>)
where
    C: Controller,
    H: Driver<C::Outside>,
{
    let write = match action {
        Action::Outside(action) => {
            let ended = match wiring.driver.perform(action.clone()).await {
                Ok(()) => Ended::Acted { event, news: News::Seen, then },
                Err(reason) => Ended::Refused(reason),
            };
            return (ended, None);
        }
        Action::Write(write) => write,
    };
    let address = write.address();
    let Some(server) = wiring.places.server(address.place) else {
        let reason = format!("no API server is configured for the {}", address.place);
        return (Ended::Broken(reason), None);
    };
    let selector = wiring.selections.at(address.place, &address.kind);
    let watched = Watched { server, selector };
    let before = server.version(address, selector);
    let ended = match write::perform(server, write).await {
        Outcome::Done(object) => {
            let now = object.as_ref().and_then(|object| object.metadata.resource_version.clone());
            let news =
                object.map_or(News::Coming, |object| take_in(watched, write, before, object));
            return (Ended::Acted { event, news, then }, now);
        }
        Outcome::Refused(reason) => {
            Ended::Refused(format!("the API server refuses the write: {reason}"))
        }
        Outcome::Unknown(reason) => {
            refresh(wiring, write).await;
            Ended::Unknown(reason)
        }
        Outcome::Busy => Ended::Unreachable("the API server is overloaded".to_owned()),
        outcome @ (Outcome::Conflict | Outcome::Gone | Outcome::Exists) => {
            Ended::WriteConflict(outcome)
        }
    };
    (ended, None)
}

/// A server, and what is watched of a kind there.
#[derive(Clone, Copy)]
struct Watched<'a> {
    server: &'a Server,
    selector: &'a Selector,
}

/// Shows the cache what a write made of an object, where that is surely news; whether the next
/// step sees it.
fn take_in(watched: Watched<'_>, write: &Write, before: Option<String>, object: Object) -> News {
    let Watched { server, selector } = watched;
    let address = write.address();
    let version = object.metadata.resource_version.clone();
    let over = match write {
        Write::Patch { seen, .. } => Some(seen.resource_version.clone()),
        Write::Create { .. } | Write::Apply { .. } | Write::Delete { .. } => before,
    };
    if over == version {
        return News::NoneAtAll;
    }
    if !server.is_watched_kind(&address.kind) || !selector.selects(&object) {
        // No watch will bring it: whoever writes what it does not watch looks at it afresh.
        return News::Seen;
    }
    match write {
        Write::Patch { seen, .. } => {
            server.wrote(&address.kind, &seen.resource_version, &object);
        }
        Write::Apply { .. } | Write::Delete { .. } => server.saw(&address.kind, &object),
        Write::Create { .. } => {}
    }
    if server.version(address, selector) == version { News::Seen } else { News::Coming }
}

/// A request or a reply was lost on purpose.
async fn lost<C: Controller, H>(wiring: &Wiring<C, H>, action: &Action<C::Outside>) -> Ended {
    if let Action::Write(write) = action {
        refresh(wiring, write).await;
    }
    Ended::Unknown("lost on purpose".to_owned())
}

/// Nobody knows what came of a write: the server is asked for the object itself, so that the next
/// step does not rest on what the cache had before.
async fn refresh<C: Controller, H>(wiring: &Wiring<C, H>, write: &Write) {
    let address = write.address();
    let Some(server) = wiring.places.server(address.place) else { return };
    match live_reads::get(server, address).await {
        Ok(Some(object)) => server.saw(&address.kind, &object),
        // That it is not there is for the watch to say: absence is not deletion.
        Ok(None) => {}
        Err(reason) => debug!(%address, reason, "cannot find out whether a write was made"),
    }
}

/// What a action outside is called. The rest of it, such as the environment of a process, may hold
/// secrets, and does not belong in a log.
fn name_of(action: &impl fmt::Debug) -> String {
    let words = format!("{action:?}");
    let end = words.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(words.len());
    format!("{} outside", &words[..end])
}

pub(crate) fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
    words.unwrap_or_else(|| "the step panicked without a message".to_owned())
}
