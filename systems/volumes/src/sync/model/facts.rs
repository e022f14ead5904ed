//! The facts of the shipped rules, from what the controller can see.

use super::state::{ATTEMPTS, Attempt, Content, Hand, Image, Record, Shown, State};
use super::{Flaw, Role, Syncs};
use crate::sync::decide::{
    Destination, Facts, Image as Seen, Mover, Next, Picture, Purpose, Said, Side, Slot, Source,
    Sync, Target, Trouble, Verdict,
};

/// What the controller goes by.
pub(super) struct Sight {
    pub(super) record: Record,
    /// Whether a write over it would be taken.
    pub(super) is_current: bool,
    pub(super) is_fresh: bool,
    pub(super) are_images_fresh: bool,
    pub(super) mover: Mover,
    /// Whether the mover brought nothing.
    pub(super) is_outcome_empty: bool,
    pub(super) is_earlier_known: bool,
    /// The image of the intent, and whether there is nothing in it.
    pub(super) image: Shown,
    pub(super) is_image_empty: bool,
    /// Whether somebody holds an image, as far as the cache knows.
    pub(super) has_held_image: bool,
    /// The images that are there.
    pub(super) there: Vec<usize>,
    pub(super) pictures: Vec<Picture>,
}

impl Syncs {
    pub(super) fn sight(&self, state: &State) -> Sight {
        let (record, is_current, answer) = match state.hand {
            Hand::Nothing | Hand::Promised => (state.cached, state.is_cache_current, None),
            Hand::Asked(answer, is_earlier) => {
                (state.cached, state.is_cache_current, Some((answer, is_earlier)))
            }
            Hand::Looked(answer, is_earlier) => {
                (state.looked, state.is_look_current, Some((answer, is_earlier)))
            }
        };
        let is_fresh = matches!(state.hand, Hand::Looked(..));
        let sync = record.intent.map(|intent| usize::from(intent.sync));
        let cached_image = sync.map_or(Shown::Absent, |sync| state.shown[sync]);
        let image = match is_fresh && !self.has(Flaw::BeginsOnOldNews) {
            true => state.looked_image,
            false => cached_image,
        };
        let content = sync.map(|sync| state.images[sync]);
        let is_image_empty = match content {
            Some(Image::Ready(content)) => is_empty(content),
            Some(Image::None | Image::Asked | Image::Gone) | None => true,
        };
        let there: Vec<usize> = (0..usize::from(self.tags))
            .filter(|image| state.shown[*image] != Shown::Absent)
            .collect();
        Sight {
            record,
            is_current,
            is_fresh,
            are_images_fresh: state.is_listed || self.has(Flaw::GoesOnOldNews),
            mover: answer.map_or(Mover::NotAsked, |(answer, _)| mover(answer)),
            is_outcome_empty: answer.is_some_and(|(answer, _)| answer == Attempt::DoneEmpty),
            is_earlier_known: answer.is_some_and(|(_, is_earlier)| is_earlier),
            image,
            is_image_empty,
            has_held_image: !self.has(Flaw::GoesWhileHeld)
                && there.iter().any(|image| state.is_shown_held(*image)),
            pictures: there.iter().map(|image| self.picture(state, &record, *image)).collect(),
            there,
        }
    }

    fn picture(&self, state: &State, record: &Record, image: usize) -> Picture {
        let is = |named: Option<u8>| named.map(usize::from) == Some(image);
        Picture {
            is_held: state.is_shown_held(image),
            is_latest: (is(record.latest) || is(record.named)) && !self.has(Flaw::LatestMayGo),
            is_own: is(record.intent.map(|intent| intent.sync)),
            ..Picture::default()
        }
    }

    /// What the shipped rules go by.
    pub(super) fn facts(&self, sight: &Sight) -> Facts {
        let record = &sight.record;
        Facts {
            is_going: record.is_going,
            is_kept: true,
            has_held_image: sight.has_held_image,
            images: sight.pictures.clone(),
            is_fresh: sight.is_fresh,
            are_images_fresh: sight.are_images_fresh,
            verdict: Verdict::Served,
            next: if is_due(record) { Next::Now } else { Next::Tag },
            said: Said::default(),
            side: self.side(sight),
            sync: record.intent.map(|intent| Sync {
                is_over: record.over == Some(intent.sync),
                backs_off: false,
                is_changed: false,
                is_last_attempt: usize::from(intent.attempt) + 1 == ATTEMPTS,
                image: self.image(sight),
                slot: Slot::NotNeeded,
                mover: sight.mover,
                is_earlier_known: sight.is_earlier_known,
            }),
        }
    }

    fn side(&self, sight: &Sight) -> Side {
        let source = |purpose| {
            Side::Source(Source { is_elsewhere: false, purpose: Some(purpose), is_in_use: false })
        };
        match self.role {
            Role::Images => source(Purpose::Image),
            Role::Backups => source(Purpose::Backup { tidying: None }),
            Role::Destination => {
                let intent = sight.record.intent;
                Side::Destination(Destination {
                    target: Target::Bound,
                    has_temporary_claim: false,
                    is_outcome_usable: !sight.is_outcome_empty || self.has(Flaw::EmptyIsUsable),
                    is_published: sight.record.latest == intent.map(|intent| intent.sync),
                })
            }
        }
    }

    fn image(&self, sight: &Sight) -> Seen {
        let is_full = !sight.is_image_empty || self.has(Flaw::EmptyIsUsable);
        match (sight.image, self.role) {
            (Shown::Absent, _) => Seen::Missing,
            (Shown::Asked, _) if !self.has(Flaw::PublishedBeforeReady) => {
                Seen::NotReady(Trouble::None)
            }
            // What is not ready does not say what is in it.
            (Shown::Asked, Role::Destination) | (_, Role::Backups) => {
                Seen::Ready { is_usable: true }
            }
            (Shown::Asked | Shown::Ready, Role::Images | Role::Destination) => {
                Seen::Ready { is_usable: is_full }
            }
        }
    }
}

fn is_due(record: &Record) -> bool {
    record.tag != record.answered && record.tag != record.given_up
}

pub(super) fn is_empty(content: Content) -> bool {
    match content {
        Content::Nothing => true,
        Content::Part => false,
        Content::Whole { is_empty, .. } => is_empty,
    }
}

fn mover(answer: Attempt) -> Mover {
    match answer {
        Attempt::Unknown => Mover::Unknown,
        Attempt::Runs => Mover::Runs { is_news: false },
        Attempt::Done | Attempt::DoneEmpty => Mover::Done,
        Attempt::FailedForNow => Mover::Failed { may_heal: true },
        Attempt::FailedForGood => Mover::Failed { may_heal: false },
    }
}
