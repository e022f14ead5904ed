//! The mistakes that a controller could make, and what each would break.

use super::World;
use interlock_checker::Mutant;

/// One mistake: something wrong in the facts, or another effect than the one that was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The populator pours before it holds.
    HoldAssumed,
    /// The destination deletes images that are held.
    HoldIgnored,
    /// The destination deletes the latest image.
    LatestDeleted,
    /// The destination goes while an image of it is held.
    GoesWhileHeld,
    /// PVC' is deleted as soon as it is bound.
    DropsBeforeBound,
    /// The volume is not set to Retain.
    NotRetained,
    /// The populator does not see that its image dies.
    NoSecondChoice,
    /// A claim that is deleted does not drop its hold.
    HoldForgotten,
    /// A claim that is deleted does not touch the image that it might be about to hold.
    NotTouched,
    /// PVC' is taken whatever it is made of.
    SourceNotLookedAt,
    /// The volume names its claim by name alone.
    HandedByName,
    /// Images are published, and used, before they are ready.
    NotReadyUsed,
}

/// What a mistake needs in order to show: images, claims, vandals, populators, leave.
type Need = (usize, usize, u8, bool, bool);

type Row = (&'static str, &'static str, &'static [&'static str], &'static [Flaw], Need);

const ROWS: &[Row] = &[
    (
        "hold-late",
        "PVC' is made of an image that is not held yet",
        &["ImageInUseExists"],
        &[Flaw::HoldAssumed],
        (2, 1, 0, false, false),
    ),
    (
        "hold-ignored",
        "old images are deleted although a claim is being filled from them",
        &["ImageInUseExists"],
        &[Flaw::HoldIgnored],
        (2, 1, 0, false, false),
    ),
    (
        "latest-deleted",
        "the image that is published is deleted as an old one",
        &["LatestImageExists"],
        &[Flaw::LatestDeleted],
        (2, 1, 0, false, false),
    ),
    (
        "destination-goes-early",
        "the destination goes, and its images with it, while one is held",
        &["ImageInUseExists"],
        &[Flaw::GoesWhileHeld],
        (1, 1, 0, false, true),
    ),
    (
        "prime-dropped-early",
        "PVC' is deleted before its volume is the claim's",
        &["NeverLost"],
        &[Flaw::DropsBeforeBound],
        (1, 1, 0, false, false),
    ),
    (
        "no-retain",
        "the volume changes hands while it would be deleted with PVC'",
        &["NeverLost"],
        &[Flaw::NotRetained],
        (2, 1, 1, true, false),
    ),
    (
        "no-second-choice",
        "when somebody deletes the image by hand, the claim waits for it for ever",
        &["EventuallyBound"],
        &[Flaw::NoSecondChoice],
        (2, 1, 1, false, false),
    ),
    (
        "hold-kept-on-delete",
        "a claim that is deleted leaves its hold behind",
        &["HoldsEnd"],
        &[Flaw::HoldForgotten],
        (1, 1, 0, false, false),
    ),
    (
        "image-not-touched",
        "a hold comes after the claim that it was decided for is gone",
        &["HoldsEnd"],
        &[Flaw::NotTouched],
        (1, 1, 0, true, false),
    ),
    (
        "source-not-looked-at",
        "a PVC' that another populator made of an image of before is waited for",
        &["EventuallyBound", "BoundIsPopulated", "OneImagePerClaim"],
        &[Flaw::SourceNotLookedAt],
        (2, 1, 1, true, false),
    ),
    (
        "handed-by-name",
        "a claim that was made again under its name is bound to the volume of the one before",
        &["BoundIsPopulated"],
        &[Flaw::HandedByName],
        (1, 2, 0, false, true),
    ),
    (
        "use-before-ready",
        "an image is published and poured before it is ready to use",
        &["BoundIsPopulated"],
        &[Flaw::NotReadyUsed],
        (1, 1, 0, false, false),
    ),
];

impl World {
    /// The least world in which a mistake shows: what it does not need only hides it.
    pub(super) fn flawed(&self) -> Vec<Mutant<World>> {
        let mutant = |(name, sentence, breaks, flaws, need): &Row| {
            let (images, claims, vandals, two_populators, leave) = *need;
            let world = World {
                images,
                claims,
                one_name: true,
                vandals,
                two_populators,
                faults: 0,
                leave,
                flaws,
            };
            Mutant::new(*name, *sentence, breaks, world)
        };
        ROWS.iter().map(mutant).collect()
    }
}
