//! What filling promises: of every state, and in the end.

use super::Volumes;
use super::state::{Destination, MOST_IMAGES, Phase, Prime, Snapshot, State, VolumeState};
use super::steps::{OfClaim, OfImage, RD_GONE};
use interlock_checker::{Fairness, Formula, Invariant, Property};

pub(super) fn invariants() -> Vec<Invariant<State>> {
    let mut invariants = of_the_text();
    invariants.extend(of_images());
    invariants
}

/// Those that the specification states itself.
fn of_the_text() -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "SourceLives",
            "while PVC' waits, its image lives, unless somebody deletes images by hand",
            |s: &State| {
                s.vandalised > 0
                    || s.claims.iter().all(|claim| match claim.prime {
                        Prime::Pending(image) => {
                            matches!(s.snapshot(image), Snapshot::New | Snapshot::Ready)
                        }
                        Prime::None | Prime::Bound(_) => true,
                    })
            },
        ),
        Invariant::new("LIExists", "the latest image is there", |s: &State| {
            s.latest.is_none_or(|image| s.snapshot(image) != Snapshot::None)
        }),
        Invariant::new(
            "BoundIsPopulated",
            "a bound claim has a volume with the data of an image in it",
            |s: &State| {
                s.claims.iter().all(|claim| {
                    let volume = claim.volume;
                    claim.phase != Phase::Bound
                        || volume.place == VolumeState::Bound && volume.data.is_some()
                })
            },
        ),
        Invariant::new("NeverLost", "no volume is reclaimed on its way", |s: &State| {
            s.claims.iter().all(|claim| {
                !matches!(claim.phase, Phase::Pending | Phase::Bound)
                    || claim.volume.place != VolumeState::Lost
            })
        }),
    ]
}

/// What the text implies and does not say: each rule on its own is needed for one of them.
fn of_images() -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "OneImagePerClaim",
            "at most one image is held for a claim, and PVC' is made of that one",
            |s: &State| {
                s.claims.iter().all(|claim| match claim.prime {
                    Prime::None => claim.holds.count_ones() <= 1,
                    Prime::Pending(image) | Prime::Bound(image) => claim.holds == 1 << image,
                })
            },
        ),
        Invariant::new(
            "VolumeHasItsImage",
            "what PVC' was filled with is the image that it was made of",
            |s: &State| {
                s.claims.iter().all(|claim| match claim.prime {
                    Prime::None | Prime::Pending(_) => true,
                    Prime::Bound(image) => claim.volume.data == Some(image),
                })
            },
        ),
        Invariant::new(
            "HandedOverIsKept",
            "a volume is set to Retain before it changes hands",
            |s: &State| {
                s.claims.iter().all(|claim| {
                    !matches!(claim.volume.place, VolumeState::Claim | VolumeState::Bound)
                        || claim.volume.keep
                })
            },
        ),
        Invariant::new(
            "HeldExists",
            "an image that is held is there, whoever deleted it",
            |s: &State| {
                (0..MOST_IMAGES as u8)
                    .all(|image| !s.is_held(image) || s.snapshot(image) != Snapshot::None)
            },
        ),
        Invariant::new(
            "LatestIsReady",
            "the latest image is whole and not being deleted",
            |s: &State| s.latest.is_none_or(|image| s.snapshot(image) == Snapshot::Ready),
        ),
    ]
}

impl Volumes {
    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        let bound = |p: usize| {
            Formula::leads_to(
                move |s: &State| s.claims[p].phase == Phase::Pending && s.latest.is_some(),
                move |s: &State| {
                    s.claims[p].phase != Phase::Pending || s.destination != Destination::Live
                },
            )
        };
        let dropped = |p: usize| {
            Formula::leads_to(
                move |s: &State| matches!(s.claims[p].phase, Phase::Bound | Phase::Gone),
                move |s: &State| s.claims[p].holds == 0,
            )
        };
        vec![
            Property::for_all(
                "EventuallyBound",
                "a claim is bound once there is an image, unless it or the destination is deleted",
                (0..self.claims).map(bound),
            ),
            Property::for_all(
                "HoldsEnd",
                "a claim that is bound or gone holds no image in the end",
                (0..self.claims).map(dropped),
            ),
            Property::new(
                "RDEnds",
                "a destination that is deleted goes in the end",
                Formula::leads_to(
                    |s: &State| s.destination == Destination::Deleting,
                    |s: &State| s.destination == Destination::Gone,
                ),
            ),
        ]
    }

    pub(super) fn all_fairness(&self) -> Vec<Fairness> {
        let mut fairness = vec![Fairness::weak("RDGone", [RD_GONE])];
        for image in 0..self.images as u8 {
            for what in [OfImage::Ready, OfImage::Reap] {
                let name = format!("{what:?}(s{})", image + 1);
                fairness.push(Fairness::weak(name, [self.of_image(what, image)]));
            }
        }
        for p in 0..self.claims {
            let name = format!("PopStep(p{})", p + 1);
            fairness.push(Fairness::weak(name, self.populator_steps(p)));
            for what in [OfClaim::Provision, OfClaim::Bind] {
                let name = format!("{what:?}(p{})", p + 1);
                fairness.push(Fairness::weak(name, [self.of_claim(what, p)]));
            }
        }
        fairness
    }
}
