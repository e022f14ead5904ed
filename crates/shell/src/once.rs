//! One step of one controller about one subject: observe, decide, look if asked to, act at most
//! once. No task runs in the background and nothing is kept, so that a simulation can call it.

use crate::faults::{Fault, Seam};
use crate::leader::Leadership;
use crate::live_reads;
use crate::outside::Driver;
use crate::server::Server;
use crate::view::{Caches, Places};
use crate::write::{self, Outcome};
use futures::FutureExt;
use interlock_kernel::{
    Action, Controller, Effect, Event, LiveReads, MOST_LIVE_READS, Narrowed, Object, Selections,
    Selector, Step, Subject, Write,
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
        }
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
    for _ in 0..=MOST_LIVE_READS {
        let view = wiring.view();
        let decide = || wiring.controller.step(subject, &view, &live_reads);
        let step = match catch_unwind(AssertUnwindSafe(decide)) {
            Ok(step) => step,
            Err(panic) => return Ended::Broken(words_of(&*panic)),
        };
        match step {
            Step::Rest { because } => {
                debug!(controller, subject = &**subject, because, "rests");
                return Ended::Rests;
            }
            Step::Wait { because, at_most } => {
                debug!(controller, subject = &**subject, because, ?at_most, "waits");
                return Ended::Waits(at_most);
            }
            Step::Act(effect) => return act(wiring, subject, *effect).await,
            Step::LiveRead { reads, because } => {
                debug!(controller, subject = &**subject, because, "looks");
                let seen =
                    live_reads::read_live(&wiring.places, &wiring.driver, reads, &mut live_reads)
                        .await;
                if let Err(reason) = seen {
                    return Ended::Unreachable(reason);
                }
            }
        }
    }
    Ended::Broken(format!("the step asked for live reads more than {MOST_LIVE_READS} times"))
}

async fn act<C, H>(wiring: &Wiring<C, H>, subject: &Subject, effect: Effect<C::Outside>) -> Ended
where
    C: Controller,
    H: Driver<C::Outside>,
{
    let controller = wiring.controller.name();
    // To look may have taken long; what leads now may no longer be us.
    if wiring.leadership.as_ref().is_some_and(|leadership| !leadership.holds()) {
        return Ended::NotLeading;
    }
    let Effect { action, because, event, then } = effect;
    let afterwards = Afterwards { event: event.map(Box::new), then };
    let words = match &action {
        Action::Write(write) => write::in_words(write),
        Action::Outside(action) => name_of(action),
    };
    info!(controller, subject = &**subject, because, action = words, "performing an action");
    let (number, fault) = wiring.seam.before(controller, subject, &words);
    match fault {
        Fault::None | Fault::LoseReply => {}
        Fault::Crash => return Ended::Crashed,
        Fault::LoseRequest => return lost(wiring, &action).await,
    }
    let ended = perform(wiring, &action, afterwards).await;
    match wiring.seam.after(number, controller, subject, &words) {
        Fault::Crash => return Ended::Crashed,
        Fault::LoseReply => return lost(wiring, &action).await,
        Fault::None | Fault::LoseRequest => {}
    }
    if fault == Fault::LoseReply {
        return lost(wiring, &action).await;
    }
    ended
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
) -> Ended
where
    C: Controller,
    H: Driver<C::Outside>,
{
    let write = match action {
        Action::Outside(action) => {
            return match wiring.driver.perform(action.clone()).await {
                Ok(()) => Ended::Acted { event, news: News::Seen, then },
                Err(reason) => Ended::Refused(reason),
            };
        }
        Action::Write(write) => write,
    };
    let address = write.address();
    let Some(server) = wiring.places.server(address.place) else {
        return Ended::Broken(format!("no API server is configured for the {}", address.place));
    };
    let selector = wiring.selections.at(address.place, &address.kind);
    let watched = Watched { server, selector };
    let before = server.version(address, selector);
    match write::perform(server, write).await {
        Outcome::Done(object) => {
            let news =
                object.map_or(News::Coming, |object| take_in(watched, write, before, object));
            Ended::Acted { event, news, then }
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
    }
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
