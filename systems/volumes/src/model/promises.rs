//! What filling promises: of every state, and in the end.

use super::World;
use super::actions::{Actor, DESTINATION_GONE, OfClaim, OfImage};
use super::state::{Destination, Folder, Life, MOST_IMAGES, Phase, Stage, State, Volume};
use interlock_checker::{Fairness, Formula, Invariant, Property, Reachable};

impl World {
    pub(super) fn why(&self, name: &str) -> Option<&'static str> {
        let family = name.split('(').next().unwrap_or(name);
        match family {
            "DeleteDestination" | "DestinationGone" | "DestinationAgain" | "DeleteLeaving"
                if !self.leave =>
            {
                Some("in this size nobody deletes the destination")
            }
            "LetGo" if !self.leave => Some("in this size nobody deletes a claim that is bound"),
            "TakeOff" | "Land" | "Collect" | "SettleOrphan" | "Touch" if !self.two_populators => {
                Some("this is about what a second populator does")
            }
            "Rebind" if !self.two_populators => Some("this is about what a second populator does"),
            "Vandal" | "Unpin" | "Reap" | "Rebind" if self.vandals == 0 || self.images == 1 => {
                Some(
                    "nobody deletes a held image unless by hand, and never the latest: ask for \
                 vandals=1,images=2",
                )
            }
            "DeleteOld" if self.images == 1 => Some("the only image is the latest, which stays"),
            "Fail" if self.faults == 0 => Some("in this size nothing fails"),
            "Lose" => Some("no volume of a claim is ever handed to another"),
            _ => None,
        }
    }

    pub(super) fn all_invariants(&self) -> Vec<Invariant<State>> {
        let mut invariants = invariants_of_images(!self.two_populators);
        invariants.extend(invariants_of_volumes());
        invariants
    }

    pub(super) fn all_reachable(&self) -> Vec<Reachable<State>> {
        let mut reachable = vec![Reachable::new(
            "Filled",
            "a claim is filled, and nothing is left of what was needed for it",
            |s: &State| {
                s.claims.iter().enumerate().any(|(p, claim)| {
                    claim.is_filled() && claim.prime.is_none() && s.held_for(p).is_none()
                })
            },
        )];
        if self.vandals > 0 && self.images > 1 {
            reachable.push(Reachable::new(
                "Healed",
                "a claim whose image was deleted by hand is filled from another",
                |s: &State| {
                    s.claims.iter().any(|claim| claim.is_filled() && claim.poured >= 2)
                        && s.vandalised > 0
                },
            ));
        }
        if self.claims > 1 && self.one_name {
            reachable.push(Reachable::new(
                "Again",
                "a claim that was made again under its name is filled",
                |s: &State| s.claims[0].is_gone() && s.claims[1].is_filled(),
            ));
        }
        reachable
    }

    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        let claims = || 0..self.claims;
        let bound = |p: usize| {
            Formula::leads_to(
                move |s: &State| {
                    s.claims[p].is_alive()
                        && s.latest.is_some()
                        && s.destination == Destination::Live
                },
                move |s: &State| {
                    s.claims[p].phase == Phase::Bound
                        || !s.claims[p].is_alive()
                        || s.destination != Destination::Live
                },
            )
        };
        let is_over = move |s: &State, p: usize| {
            s.claims[p].is_gone() || s.claims[p].is_alive() && s.claims[p].phase == Phase::Bound
        };
        let dropped = |p: usize| {
            Formula::leads_to(
                move |s: &State| is_over(s, p),
                move |s: &State| s.held_for(p).is_none() && is_over(s, p) || !is_over(s, p),
            )
        };
        let left = |p: usize| {
            Formula::leads_to(
                move |s: &State| s.claims[p].is_gone(),
                move |s: &State| {
                    s.claims[p].prime.is_none()
                        && s.volumes[p].iter().all(|volume| *volume == Volume::default())
                },
            )
        };
        let mut properties = vec![
            Property::for_all(
                "EventuallyBound",
                "a claim is bound once there is an image, unless it or the destination is deleted",
                claims().map(bound),
            ),
            Property::for_all(
                "HoldsEnd",
                "a claim that is bound or gone holds no image in the end",
                claims().map(dropped),
            ),
            Property::for_all(
                "NothingIsLeft",
                "of a claim that is gone no volume and no other claim is left in the end",
                claims().map(left),
            ),
        ];
        if self.leave {
            properties.push(Property::new(
                "DestinationEnds",
                "a destination that is deleted goes in the end",
                Formula::leads_to(
                    |s: &State| s.destination == Destination::Deleting,
                    |s: &State| s.destination != Destination::Deleting,
                ),
            ));
        }
        properties
    }

    /// Each controller goes on with each object, and so do the disk and the garbage collector.
    pub(super) fn all_fairness(&self) -> Vec<Fairness> {
        let leaving = (0..self.images as u8).map(|i| self.image_id(OfImage::DeleteLeaving, i));
        let mut fairness = vec![Fairness::weak("Destination", leaving.chain([DESTINATION_GONE]))];
        for image in 0..self.images as u8 {
            for what in [OfImage::Ready, OfImage::Reap] {
                let name = format!("{what:?}(s{})", image + 1);
                fairness.push(Fairness::weak(name, [self.image_id(what, image)]));
            }
        }
        for p in 0..self.claims {
            for actor in [
                Actor::Populator,
                Actor::StorageOfPrime,
                Actor::StorageOfClaim,
                Actor::StorageOfVolumes,
                Actor::Collector,
            ] {
                let name = format!("{actor:?}(p{})", p + 1);
                fairness.push(Fairness::weak(name, self.ids_of(actor, p)));
            }
            let name = format!("Made(p{})", p + 1);
            fairness.push(Fairness::weak(name, [self.id(OfClaim::Made, p)]));
        }
        fairness
    }
}

fn invariants_of_images(one_populator: bool) -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "LatestImageExists",
            "the latest image is there, whole, and not being deleted",
            |s: &State| {
                s.destination != Destination::Live
                    || s.latest.is_none_or(|latest| s.image(latest).stage == Stage::Ready)
            },
        ),
        Invariant::new(
            "OneImagePerClaim",
            "at most one image is held for a claim, and what is kept for it is made of its pin",
            move |s: &State| {
                (0..s.claims.len()).all(|p| {
                    let claim = &s.claims[p];
                    let held = s.images.iter().filter(|image| image.holds >> p & 1 == 1).count();
                    let is_of_pin = |volume: &Volume| {
                        !volume.record || !volume.noted || volume.data == claim.pin
                    };
                    let is_poured_of_pin = claim.prime.is_none_or(|prime| {
                        !one_populator || prime.deleting || Some(prime.source) == claim.pin
                    });
                    held <= 1
                        && (!claim.is_alive()
                            || s.volumes[p].iter().all(is_of_pin) && is_poured_of_pin)
                })
            },
        ),
        Invariant::new(
            "ImageInUseExists",
            "while PVC' waits, its image lives, unless somebody deleted it by hand",
            |s: &State| {
                s.claims.iter().all(|claim| {
                    let Some(prime) = claim.prime else { return true };
                    let waits = prime.phase == Phase::Pending
                        && !prime.deleting
                        && claim.is_alive()
                        && claim.named.is_none()
                        && claim.pin == Some(prime.source);
                    let image = s.image(prime.source);
                    !waits || image.by_hand || matches!(image.stage, Stage::New | Stage::Ready)
                })
            },
        ),
        Invariant::new(
            "HeldExists",
            "an image that is held is there, whoever deleted it",
            |s: &State| {
                (0..MOST_IMAGES as u8).all(|image| {
                    let image = s.image(image);
                    !image.is_held() || !matches!(image.stage, Stage::Never | Stage::Gone)
                })
            },
        ),
    ]
}

fn invariants_of_volumes() -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "BoundIsPopulated",
            "a bound claim has a volume of its own, whole, made of its pin",
            |s: &State| {
                s.claims.iter().enumerate().all(|(p, claim)| {
                    if claim.life != Life::There || claim.phase != Phase::Bound {
                        return true;
                    }
                    claim.named.is_some_and(|id| {
                        let volume = s.volume(id);
                        usize::from(id.0) == p
                            && volume.record
                            && volume.handed
                            && volume.folder == Folder::Whole
                            && volume.data.is_some()
                            && volume.data == claim.pin
                    })
                })
            },
        ),
        Invariant::new("OnePVPerClaim", "a claim is handed one volume", |s: &State| {
            s.volumes.iter().enumerate().all(|(p, volumes)| {
                let handed = volumes.iter().filter(|volume| volume.record && volume.handed);
                !s.claims[p].is_alive() || handed.count() <= 1
            })
        }),
        Invariant::new(
            "NeverLost",
            "no volume is reclaimed on its way, unless its image was deleted by hand",
            |s: &State| {
                s.claims.iter().enumerate().all(|(p, claim)| {
                    let is_safe = |volume: &Volume| {
                        let is_given_up = volume.data.is_some_and(|data| s.image(data).by_hand);
                        let is_on_its_way =
                            volume.filled && claim.named.is_none() && !volume.handed;
                        let is_promised = volume.record && (volume.noted || volume.handed);
                        let is_needed = is_promised || is_on_its_way && !is_given_up;
                        !is_needed || volume.folder == Folder::Whole
                    };
                    !claim.is_alive()
                        || claim.phase != Phase::Lost && s.volumes[p].iter().all(is_safe)
                })
            },
        ),
    ]
}
