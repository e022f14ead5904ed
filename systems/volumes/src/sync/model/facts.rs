//! The facts of the shipped rules, from what the controller can see.

use super::state::{ATTEMPTS, Attempt, Content, Hand, Image, Record, Shown, State};
use super::{Flaw, Role, Syncs};
use crate::destination::decide as destination;
use crate::source::decide as source;
use crate::sync::facts::{Album, Mover, Picture, Slot, spare};

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
    /// The image that goes next.
    pub(super) spare: Option<usize>,
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
                && (0..usize::from(self.tags))
                    .any(|image| state.shown[image] != Shown::Absent && state.is_shown_held(image)),
            spare: self.spare(state, &record),
        }
    }

    fn spare(&self, state: &State, record: &Record) -> Option<usize> {
        let own = record.intent.map(|intent| usize::from(intent.sync));
        let album = Album {
            is_going: record.is_going,
            is_over: record.intent.is_none_or(|intent| record.over == Some(intent.sync)),
            is_lasting: self.role != Role::Backups,
        };
        let is_latest = |image: usize| {
            let is = |named: Option<u8>| named.map(usize::from) == Some(image);
            (is(record.latest) || is(record.named)) && !self.has(Flaw::LatestMayGo)
        };
        let there: Vec<usize> = (0..usize::from(self.tags))
            .filter(|image| state.shown[*image] != Shown::Absent)
            .collect();
        let pictures: Vec<Picture> = there
            .iter()
            .map(|image| Picture {
                is_held: state.is_shown_held(*image),
                is_latest: is_latest(*image),
                is_own: own == Some(*image),
                ..Picture::default()
            })
            .collect();
        spare(album, &pictures).map(|place| there[place])
    }

    pub(super) fn source_facts(&self, sight: &Sight) -> source::Facts {
        let record = &sight.record;
        let is_image_only = self.role == Role::Images;
        source::Facts {
            is_going: record.is_going,
            is_kept: true,
            has_held_image: sight.has_held_image,
            has_spare_image: sight.spare.is_some(),
            is_fresh: sight.is_fresh,
            are_images_fresh: sight.are_images_fresh,
            verdict: source::Verdict::Served,
            is_elsewhere: false,
            is_due: is_due(record),
            sync: record.intent.map(|intent| source::Sync {
                is_over: record.over == Some(intent.sync),
                backs_off: false,
                is_changed: false,
                is_last_attempt: usize::from(intent.attempt) + 1 == ATTEMPTS,
                is_image_only,
                image: match sight.image {
                    Shown::Absent => source::Image::Missing,
                    Shown::Asked if !self.has(Flaw::PublishedBeforeReady) => {
                        source::Image::NotReady
                    }
                    Shown::Asked | Shown::Ready => source::Image::Ready {
                        is_usable: !is_image_only
                            || !sight.is_image_empty
                            || self.has(Flaw::EmptyIsUsable),
                    },
                },
                slot: Slot::NotNeeded,
                mover: sight.mover,
                is_earlier_known: sight.is_earlier_known,
            }),
        }
    }

    pub(super) fn destination_facts(&self, sight: &Sight) -> destination::Facts {
        let record = &sight.record;
        let takes_empty = self.has(Flaw::EmptyIsUsable);
        destination::Facts {
            is_going: record.is_going,
            is_kept: true,
            has_held_image: sight.has_held_image,
            has_spare_image: sight.spare.is_some(),
            is_fresh: sight.is_fresh,
            are_images_fresh: sight.are_images_fresh,
            verdict: destination::Verdict::Served,
            is_due: is_due(record),
            sync: record.intent.map(|intent| destination::Sync {
                is_over: record.over == Some(intent.sync),
                backs_off: false,
                is_changed: false,
                is_last_attempt: usize::from(intent.attempt) + 1 == ATTEMPTS,
                image: match sight.image {
                    Shown::Absent => destination::Image::Missing,
                    Shown::Asked if !self.has(Flaw::PublishedBeforeReady) => {
                        destination::Image::NotReady
                    }
                    // What is not ready does not say what is in it.
                    Shown::Asked => destination::Image::Ready { is_usable: true },
                    Shown::Ready => destination::Image::Ready {
                        is_usable: !sight.is_image_empty || takes_empty,
                    },
                },
                target: destination::Target::Bound,
                has_temporary_claim: false,
                slot: Slot::NotNeeded,
                mover: sight.mover,
                is_outcome_usable: !sight.is_outcome_empty || takes_empty,
                is_earlier_known: sight.is_earlier_known,
                is_published: record.latest == Some(intent.sync),
            }),
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
        Attempt::Runs => Mover::Runs,
        Attempt::Done | Attempt::DoneEmpty => Mover::Done,
        Attempt::FailedForNow => Mover::Failed { may_heal: true },
        Attempt::FailedForGood => Mover::Failed { may_heal: false },
    }
}
