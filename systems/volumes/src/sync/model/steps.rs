//! What happens: the controller's one step, and what the world does to it.

use super::facts::Sight;
use super::state::{Attempt, Content, Hand, Image, Intent, Record, Shown, State};
use super::{Flaw, Role, Syncs};
use crate::sync::decide::{Decision, decide};
use interlock_checker::{Action, ActionId, Fairness, Steps};

/// Everything that can happen; its place in [`Syncs::deeds`] is its action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    SetTag,
    Crash,
    MoverDies,
    MoverEnds,
    MoverFails,
    ShowObject,
    ShowImage(u8),
    TakeImage(u8),
    Delete,
    Hold(u8),
    LetGoOfImage(u8),
    Collect(u8),
    Step(What),
}

/// What the controller decided, or did on the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Ask,
    Look,
    Rest,
    WriteIntent,
    AskForImage,
    Begin,
    Forget,
    Retry,
    GiveUp,
    Publish,
    Finish,
    DeleteImage,
    RemoveIntent,
    LetGo,
}

const WHATS: [What; 14] = [
    What::Ask,
    What::Look,
    What::Rest,
    What::WriteIntent,
    What::AskForImage,
    What::Begin,
    What::Forget,
    What::Retry,
    What::GiveUp,
    What::Publish,
    What::Finish,
    What::DeleteImage,
    What::RemoveIntent,
    What::LetGo,
];

/// Adds a step: what happens, and how it changes the state.
type To<'a> = dyn FnMut(Deed, &dyn Fn(&mut State)) + 'a;

impl Deed {
    pub(super) fn action(self) -> Action {
        let (actor, target) = match self {
            Deed::SetTag | Deed::Delete => ("user", Some("object")),
            Deed::Hold(_) | Deed::LetGoOfImage(_) => ("holder", Some("images")),
            Deed::Collect(_) => ("garbage collector", Some("images")),
            Deed::Crash => ("controller", None),
            Deed::MoverDies | Deed::MoverEnds | Deed::MoverFails => ("mover", None),
            Deed::ShowObject | Deed::ShowImage(_) => ("cache", Some("controller")),
            Deed::TakeImage(_) => ("storage", Some("images")),
            Deed::Step(What::Ask | What::Begin | What::Forget) => ("controller", Some("mover")),
            Deed::Step(What::AskForImage | What::DeleteImage) => ("controller", Some("images")),
            Deed::Step(What::Rest) => ("controller", None),
            Deed::Step(_) => ("controller", Some("object")),
        };
        let name = match self {
            Deed::ShowImage(image) => format!("ShowImage(s{image})"),
            Deed::TakeImage(image) => format!("TakeImage(s{image})"),
            Deed::Hold(image) => format!("Hold(s{image})"),
            Deed::LetGoOfImage(image) => format!("LetGoOfImage(s{image})"),
            Deed::Collect(image) => format!("Collect(s{image})"),
            Deed::Step(what) => format!("{what:?}"),
            other => format!("{other:?}"),
        };
        let action = Action::new(name, actor);
        match target {
            Some(target) => action.to(target),
            None => action,
        }
    }
}

impl Syncs {
    pub(super) fn deeds(&self) -> Vec<Deed> {
        let mut deeds = vec![Deed::SetTag, Deed::ShowObject];
        if self.faults > 0 {
            deeds.push(Deed::Crash);
        }
        let has_mover = self.role != Role::Images;
        if has_mover {
            deeds.push(Deed::MoverEnds);
        }
        if has_mover && self.faults > 0 {
            deeds.extend([Deed::MoverDies, Deed::MoverFails]);
        }
        deeds.extend((0..self.tags).map(Deed::ShowImage));
        deeds.extend((0..self.tags).map(Deed::TakeImage));
        if self.has_holds {
            deeds.push(Deed::Delete);
            deeds.extend((0..self.tags).map(Deed::Hold));
            deeds.extend((0..self.tags).map(Deed::LetGoOfImage));
            deeds.extend((0..self.tags).map(Deed::Collect));
        }
        let is_here = |what: &What| match what {
            What::Publish => self.role == Role::Destination,
            What::Ask | What::Begin | What::Forget => has_mover,
            What::Retry => has_mover && self.faults > 0,
            What::LetGo => self.has_holds,
            What::DeleteImage
            | What::Look
            | What::Rest
            | What::WriteIntent
            | What::AskForImage
            | What::GiveUp
            | What::Finish
            | What::RemoveIntent => true,
        };
        deeds.extend(WHATS.into_iter().filter(is_here).map(Deed::Step));
        deeds
    }

    fn id(&self, deed: Deed) -> ActionId {
        let place = self.deeds().iter().position(|known| *known == deed);
        place.expect("every deed that is done is in the list") as ActionId
    }

    pub(super) fn all_fairness(&self) -> Vec<Fairness> {
        let deeds = self.deeds();
        let controller = deeds.iter().filter(|deed| matches!(deed, Deed::Step(_)));
        let mut all = vec![Fairness::weak("Controller", controller.map(|deed| self.id(*deed)))];
        let is_fair = |deed: &&Deed| match deed {
            Deed::ShowObject
            | Deed::ShowImage(_)
            | Deed::TakeImage(_)
            | Deed::MoverEnds
            | Deed::LetGoOfImage(_) => true,
            Deed::SetTag
            | Deed::Delete
            | Deed::Hold(_)
            | Deed::Collect(_)
            | Deed::Crash
            | Deed::MoverDies
            | Deed::MoverFails
            | Deed::Step(_) => false,
        };
        let others = deeds.iter().filter(is_fair);
        all.extend(others.map(|deed| Fairness::weak(deed.action().name, [self.id(*deed)])));
        all
    }

    pub(super) fn steps(&self, state: &State, steps: &mut Steps<State>) {
        let mut to = |deed: Deed, change: &dyn Fn(&mut State)| {
            let mut next = state.clone();
            change(&mut next);
            steps.step(self.id(deed), next);
        };
        if state.is_gone {
            return self.left_behind(state, &mut to);
        }
        if state.record.tag < self.tags && !state.record.is_going {
            to(Deed::SetTag, &|next| write(next, |record| record.tag += 1));
        }
        if !state.is_cache_current {
            to(Deed::ShowObject, &|next| {
                next.cached = next.record;
                next.is_cache_current = true;
            });
        }
        for image in 0..self.tags {
            let place = usize::from(image);
            if !state.is_image_current(place) {
                to(Deed::ShowImage(image), &|next| next.show_image(place));
            }
            if state.image(image) == Image::Asked {
                for content in self.contents(state) {
                    to(Deed::TakeImage(image), &|next| next.images[place] = Image::Ready(content));
                }
            }
        }
        self.mover_steps(state, &mut to);
        if self.has_holds {
            self.holder_steps(state, &mut to);
        }
        if state.faults > 0 && state.hand != Hand::Nothing {
            to(Deed::Crash, &|next| {
                next.faults -= 1;
                drop_hand(next);
            });
        }
        if let Some((what, next)) = self.controller(state) {
            to(Deed::Step(what), &|to| *to = next.clone());
        }
    }

    /// Others take hold of images, and the user deletes the object, which has a finalizer by then.
    fn holder_steps(&self, state: &State, to: &mut To<'_>) {
        if !state.record.is_going && state.started > 0 {
            to(Deed::Delete, &|next| write(next, |record| record.is_going = true));
        }
        for image in 0..self.tags {
            let (place, bit) = (usize::from(image), 1 << image);
            let is_ready = matches!(state.image(image), Image::Ready(_));
            if is_ready && state.ever_held & bit == 0 {
                to(Deed::Hold(image), &|next| {
                    next.held |= bit;
                    next.ever_held |= bit;
                });
            }
            if state.is_held(place) {
                to(Deed::LetGoOfImage(image), &|next| next.held &= !bit);
            }
        }
    }

    /// The object is no more: what it owned goes, whoever holds it.
    fn left_behind(&self, state: &State, to: &mut To<'_>) {
        for image in 0..self.tags {
            let place = usize::from(image);
            if matches!(state.image(image), Image::Asked | Image::Ready(_)) {
                to(Deed::Collect(image), &|next| next.images[place] = Image::Gone);
            }
        }
    }

    /// What an image of the volume would have in it now. The volume of a source is written by others,
    /// and may be empty; that of a destination by the mover.
    fn contents(&self, state: &State) -> Vec<Content> {
        let tag = state.record.tag;
        match self.role {
            Role::Images | Role::Backups => vec![
                Content::Whole { tag, is_empty: false },
                Content::Whole { tag, is_empty: true },
            ],
            Role::Destination => vec![state.volume],
        }
    }

    fn mover_steps(&self, state: &State, to: &mut To<'_>) {
        let mut is_known = false;
        for sync in 0..self.tags {
            for attempt in 0..2_u8 {
                let known = state.movers[usize::from(sync)][usize::from(attempt)];
                is_known |= known != Attempt::Unknown;
                if known != Attempt::Runs {
                    continue;
                }
                for end in self.ends(state, sync) {
                    to(Deed::MoverEnds, &|next| {
                        *next.attempt(sync, attempt) = end;
                        let is_empty = end == Attempt::DoneEmpty;
                        let is_done = matches!(end, Attempt::Done | Attempt::DoneEmpty);
                        if self.role == Role::Destination && is_done {
                            next.volume = Content::Whole { tag: next.reading, is_empty };
                        }
                    });
                }
                if state.faults > 0 {
                    for end in [Attempt::FailedForNow, Attempt::FailedForGood] {
                        to(Deed::MoverFails, &|next| {
                            next.faults -= 1;
                            *next.attempt(sync, attempt) = end;
                        });
                    }
                }
            }
        }
        if is_known && state.faults > 0 {
            to(Deed::MoverDies, &|next| {
                next.faults -= 1;
                next.movers = Default::default();
            });
        }
    }

    /// How a mover ends that nothing befalls. That of a backup says so if the image is empty.
    fn ends(&self, state: &State, sync: u8) -> Vec<Attempt> {
        if self.role == Role::Destination {
            return vec![Attempt::Done, Attempt::DoneEmpty];
        }
        match state.image(sync) {
            Image::Ready(content) if !super::facts::is_empty(content) => vec![Attempt::Done],
            Image::Ready(_) | Image::None | Image::Asked | Image::Gone => {
                vec![Attempt::FailedForGood]
            }
        }
    }

    /// The one step of the controller: one more look, one effect, or rest.
    fn controller(&self, state: &State) -> Option<(What, State)> {
        if state.hand == Hand::Promised {
            return Some((What::WriteIntent, self.keep_promise(state)));
        }
        let sight = self.sight(state);
        let decision = decide(&self.facts(&sight));
        let what = of(decision);
        if what == What::Rest && state.hand == Hand::Nothing {
            return None;
        }
        let mut next = state.clone();
        match what {
            What::Ask => self.ask(&mut next, &sight.record),
            What::Look => self.look(&mut next, &sight.record),
            _ => {
                self.act(&mut next, what, &sight, spare(decision, &sight))?;
                if next.hand != Hand::Promised {
                    drop_hand(&mut next);
                }
            }
        }
        Some((what, next))
    }

    fn ask(&self, next: &mut State, record: &Record) {
        let (answer, is_earlier) = answer(next, record);
        next.hand = Hand::Asked(answer, is_earlier);
    }

    /// The mover first; that it answers is one step, that the object is read is another.
    fn look(&self, next: &mut State, record: &Record) {
        let (answer, is_earlier) = match next.hand {
            Hand::Asked(answer, is_earlier) => (answer, is_earlier),
            Hand::Nothing | Hand::Looked(..) | Hand::Promised => answer(next, record),
        };
        next.hand = Hand::Looked(answer, is_earlier);
        next.looked = next.record;
        next.is_look_current = true;
        let sync = next.looked.intent.map(|intent| intent.sync);
        next.looked_image = sync.map_or(Shown::Absent, |sync| next.image(sync).shown());
        // Where all must be known, all is listed afresh.
        next.is_listed = record.is_going;
        if record.is_going {
            (0..usize::from(self.tags)).for_each(|image| next.show_image(image));
        }
    }

    /// Does to the world what was decided; None: nothing can come of it any more.
    fn act(&self, next: &mut State, what: What, sight: &Sight, spare: Option<usize>) -> Option<()> {
        let seen = sight.record;
        let intent = seen.intent.unwrap_or_default();
        let sync = usize::from(intent.sync);
        match what {
            What::Ask | What::Look | What::Rest => {}
            What::WriteIntent if self.has(Flaw::IntentAfterTheEffect) => {
                if next.started == self.tags {
                    return None;
                }
                self.begin(next, Intent { sync: next.started, tag: seen.tag, attempt: 0 });
                next.started += 1;
                next.hand = Hand::Promised;
            }
            What::WriteIntent => {
                if sight.is_current && next.started < self.tags {
                    let intent = Intent { sync: next.started, tag: seen.tag, attempt: 0 };
                    next.started += 1;
                    write(next, |record| record.intent = Some(intent));
                }
            }
            What::AskForImage => {
                if next.images[sync] == Image::None {
                    next.images[sync] = Image::Asked;
                }
            }
            What::Begin => self.begin(next, intent),
            What::Forget => {
                let earlier = intent.attempt.saturating_sub(1);
                let attempt = if sight.is_earlier_known { earlier } else { intent.attempt };
                *next.attempt(intent.sync, attempt) = Attempt::Unknown;
            }
            What::DeleteImage => {
                let place = spare?;
                // Only the very version that was seen.
                if next.is_image_current(place) || self.has(Flaw::DeletesOnOldNews) {
                    next.images[place] = Image::Gone;
                }
            }
            What::LetGo => {
                if sight.is_current {
                    next.is_gone = true;
                }
            }
            What::Retry | What::GiveUp | What::Publish | What::Finish | What::RemoveIntent => {
                if sight.is_current {
                    self.report(next, what, intent);
                }
            }
        }
        Some(())
    }

    fn begin(&self, next: &mut State, intent: Intent) {
        if *next.attempt(intent.sync, intent.attempt) == Attempt::Unknown {
            *next.attempt(intent.sync, intent.attempt) = Attempt::Runs;
            next.reading = next.record.tag;
            if self.role == Role::Destination {
                next.volume = Content::Part;
            }
        }
    }

    /// A write to the object, over its newest version.
    fn report(&self, next: &mut State, what: What, intent: Intent) {
        let image = next.image(intent.sync);
        let is_late = self.has(Flaw::TagAtTheEnd);
        match what {
            What::Retry => write(next, |record| {
                record.intent = Some(Intent { attempt: intent.attempt + 1, ..intent });
            }),
            What::GiveUp => write(next, |record| {
                record.over = Some(intent.sync);
                record.given_up = intent.tag;
            }),
            What::Publish => write(next, |record| record.latest = Some(intent.sync)),
            What::Finish => {
                next.product = match image {
                    Image::Ready(content) => content,
                    Image::None | Image::Asked | Image::Gone => Content::Nothing,
                };
                let has_image = self.role != Role::Backups;
                write(next, |record| {
                    record.over = Some(intent.sync);
                    record.answered = if is_late { record.tag } else { intent.tag };
                    record.named = has_image.then_some(intent.sync).or(record.named);
                    record.latest = has_image.then_some(intent.sync).or(record.latest);
                });
            }
            What::RemoveIntent => write(next, |record| record.intent = None),
            _ => {}
        }
    }

    /// A flaw: the intent of a sync whose mover has begun.
    fn keep_promise(&self, state: &State) -> State {
        let mut next = state.clone();
        if state.is_cache_current {
            let intent = Intent { sync: state.started - 1, tag: state.cached.tag, attempt: 0 };
            write(&mut next, |record| record.intent = Some(intent));
        }
        drop_hand(&mut next);
        next
    }
}

/// What the mover answers about the sync that a version of the object names.
fn answer(state: &mut State, record: &Record) -> (Attempt, bool) {
    let Some(intent) = record.intent else { return (Attempt::Unknown, false) };
    let is_earlier =
        intent.attempt > 0 && *state.attempt(intent.sync, intent.attempt - 1) != Attempt::Unknown;
    (*state.attempt(intent.sync, intent.attempt), is_earlier)
}

/// A write to the object: whoever saw an older version is behind.
fn write(state: &mut State, change: impl FnOnce(&mut Record)) {
    change(&mut state.record);
    state.is_cache_current = false;
    state.is_look_current = false;
}

fn drop_hand(state: &mut State) {
    state.hand = Hand::Nothing;
    state.looked = Record::default();
    state.is_look_current = false;
    state.looked_image = Shown::Absent;
    state.is_listed = false;
}

/// The image that was chosen to go.
fn spare(decision: Decision, sight: &Sight) -> Option<usize> {
    match decision {
        Decision::DeleteImage(place) => sight.there.get(place).copied(),
        _ => None,
    }
}

fn of(decision: Decision) -> What {
    match decision {
        Decision::Nothing(_) | Decision::Say(_) => What::Rest,
        Decision::AskMover => What::Ask,
        Decision::Look => What::Look,
        Decision::WriteIntent { .. } => What::WriteIntent,
        Decision::TakeImage => What::AskForImage,
        Decision::Begin(_) => What::Begin,
        Decision::ForgetEarlier | Decision::Forget => What::Forget,
        Decision::Retry => What::Retry,
        Decision::GiveUp(_) => What::GiveUp,
        Decision::Publish(_) => What::Publish,
        Decision::Finish(_) => What::Finish,
        Decision::DeleteImage(_) => What::DeleteImage,
        Decision::RemoveIntent => What::RemoveIntent,
        Decision::LetGo => What::LetGo,
        // The volume is there. There are no places in this world, no pauses, no namespaces that
        // leave, and nobody who wants to keep an image.
        Decision::MakeTarget
        | Decision::Renew
        | Decision::DeleteTarget
        | Decision::LeaveImage(_)
        | Decision::TakeSlot
        | Decision::GiveSlotBack => What::Rest,
    }
}
