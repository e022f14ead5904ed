//! One step of one controller about one subject: observe, decide, look if asked to, act at most
//! once. No task runs in the background and nothing is kept, so that a simulation can call it.

use crate::faults::{Fault, Seam};
use crate::leader::Leadership;
use crate::looks;
use crate::outside::Hands;
use crate::server::Server;
use crate::view::{Caches, Places};
use crate::write::{self, Outcome};
use futures::FutureExt;
use interlock_kernel::{
    Controller, Deed, Effect, Event, Looks, Narrowed, Object, Selections, Selector, Step, Subject,
    Write,
};
use jiff::Timestamp;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info};

/// How often one step may ask to look.
const MOST_LOOKS: usize = 3;

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
    pub hands: H,
    /// Faults on purpose.
    pub seam: Seam,
    /// Only who leads may act; None: nobody else is there.
    pub leadership: Option<Leadership>,
    /// What time it is.
    pub clock: Clock,
}

impl<C: Controller, H> Wiring<C, H> {
    /// A controller on its servers, on the clock of this process, alone and without faults.
    pub fn new(controller: C, places: Places, hands: H) -> Self {
        Wiring {
            selections: Selections::of(&controller.watches()),
            controller,
            places,
            hands,
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
        /// What the owner of an object is to be told.
        event: Option<Event>,
        /// Whether the next step sees it.
        news: News,
    },
    /// Somebody else was faster: what the decision rests on is no longer so.
    Overtaken(Outcome),
    /// The server or the world outside would not do it, and said why.
    Refused(String),
    /// It may or may not have been done. The cache shows what the server has now, if that could be
    /// found out.
    Unknown(String),
    /// The server could not be looked at, or asks to be left alone for a while.
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
    H: Hands<C::Outside>,
{
    // Hands are somebody else's code, like the step itself.
    match AssertUnwindSafe(observe_decide_act(wiring, subject)).catch_unwind().await {
        Ok(ended) => ended,
        Err(panic) => Ended::Broken(words_of(&*panic)),
    }
}

async fn observe_decide_act<C, H>(wiring: &Wiring<C, H>, subject: &Subject) -> Ended
where
    C: Controller,
    H: Hands<C::Outside>,
{
    let controller = wiring.controller.name();
    let mut looks = Looks::default();
    for _ in 0..=MOST_LOOKS {
        let view = wiring.view();
        let decide = || wiring.controller.step(subject, &view, &looks);
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
            Step::Look { reads, because } => {
                debug!(controller, subject = &**subject, because, "looks");
                let seen = looks::look(&wiring.places, &wiring.hands, reads, &mut looks).await;
                if let Err(reason) = seen {
                    return Ended::Unreachable(reason);
                }
            }
        }
    }
    Ended::Broken(format!("it asked to look more than {MOST_LOOKS} times"))
}

async fn act<C, H>(wiring: &Wiring<C, H>, subject: &Subject, effect: Effect<C::Outside>) -> Ended
where
    C: Controller,
    H: Hands<C::Outside>,
{
    let controller = wiring.controller.name();
    // To look may have taken long; what leads now may no longer be us.
    if wiring.leadership.as_ref().is_some_and(|leadership| !leadership.holds()) {
        return Ended::NotLeading;
    }
    let Effect { deed, because, event } = effect;
    let words = match &deed {
        Deed::Write(write) => write::in_words(write),
        Deed::Outside(deed) => name_of(deed),
    };
    info!(controller, subject = &**subject, because, deed = words, "acts");
    let whose = (controller, &**subject);
    let (number, fault) = wiring.seam.before(whose, &words);
    match fault {
        Fault::None | Fault::LoseReply => {}
        Fault::Crash => return Ended::Crashed,
        Fault::LoseRequest => return lost(wiring, &deed).await,
    }
    let ended = perform(wiring, &deed, event).await;
    match wiring.seam.after(number, whose, &words) {
        Fault::Crash => return Ended::Crashed,
        Fault::LoseReply => return lost(wiring, &deed).await,
        Fault::None | Fault::LoseRequest => {}
    }
    if fault == Fault::LoseReply {
        return lost(wiring, &deed).await;
    }
    ended
}

async fn perform<C, H>(
    wiring: &Wiring<C, H>,
    deed: &Deed<C::Outside>,
    event: Option<Event>,
) -> Ended
where
    C: Controller,
    H: Hands<C::Outside>,
{
    let write = match deed {
        Deed::Outside(deed) => {
            return match wiring.hands.perform(deed.clone()).await {
                Ok(()) => Ended::Acted { event, news: News::Seen },
                Err(reason) => Ended::Refused(reason),
            };
        }
        Deed::Write(write) => write,
    };
    let address = write.address();
    let Some(server) = wiring.places.server(address.place) else {
        return Ended::Broken(format!("no server plays the {}", address.place));
    };
    let selector = wiring.selections.at(address.place, &address.kind);
    let before = server.version(address, selector);
    match write::perform(server, write).await {
        Outcome::Done(object) => {
            let news = object
                .map_or(News::Coming, |object| take_in((server, selector), write, before, object));
            Ended::Acted { event, news }
        }
        Outcome::Refused(reason) => Ended::Refused(reason),
        Outcome::Unknown(reason) => {
            refresh(wiring, write).await;
            Ended::Unknown(reason)
        }
        Outcome::Busy => Ended::Unreachable("the server has too much to do".to_owned()),
        outcome @ (Outcome::Conflict | Outcome::Gone | Outcome::Exists) => {
            Ended::Overtaken(outcome)
        }
    }
}

/// Shows the cache what a write made of an object, where that is surely news; whether the next
/// step sees it.
fn take_in(
    (server, selector): (&Server, &Selector),
    write: &Write,
    before: Option<String>,
    object: Object,
) -> News {
    let address = write.address();
    let version = object.metadata.resource_version.clone();
    let over = match write {
        Write::Patch { seen, .. } => Some(seen.resource_version.clone()),
        Write::Create { .. } | Write::Apply { .. } | Write::Delete { .. } => before,
    };
    if over == version {
        return News::NoneAtAll;
    }
    if !server.is_looked_at(&address.kind) || !selector.selects(&object) {
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
async fn lost<C: Controller, H>(wiring: &Wiring<C, H>, deed: &Deed<C::Outside>) -> Ended {
    if let Deed::Write(write) = deed {
        refresh(wiring, write).await;
    }
    Ended::Unknown("lost on purpose".to_owned())
}

/// Nobody knows what came of a write: the server is asked for the object itself, so that the next
/// step does not rest on what the cache had before.
async fn refresh<C: Controller, H>(wiring: &Wiring<C, H>, write: &Write) {
    let address = write.address();
    let Some(server) = wiring.places.server(address.place) else { return };
    match looks::get(server, address).await {
        Ok(Some(object)) => server.saw(&address.kind, &object),
        // That it is not there is for the watch to say: absence is not deletion.
        Ok(None) => {}
        Err(reason) => debug!(%address, reason, "cannot find out what came of a write"),
    }
}

/// What a deed outside is called. The rest of it, such as the environment of a process, may hold
/// secrets, and does not belong in a log.
fn name_of(deed: &impl fmt::Debug) -> String {
    let words = format!("{deed:?}");
    let end = words.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(words.len());
    format!("{} outside", &words[..end])
}

pub(crate) fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
    words.unwrap_or_else(|| "it panicked without a word".to_owned())
}
