//! Everything that can happen in the world, by name, and who does it.

use super::World;
use interlock_checker::{Action, ActionId};

pub(super) const DELETE_DESTINATION: ActionId = 0;
pub(super) const DESTINATION_GONE: ActionId = 1;
pub(super) const DESTINATION_AGAIN: ActionId = 2;
const OF_IMAGES: ActionId = 3;

/// What happens to one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfImage {
    Take,
    Ready,
    Publish,
    DeleteOld,
    DeleteLeaving,
    Reap,
    Vandal,
}

const IMAGES: [OfImage; 7] = [
    OfImage::Take,
    OfImage::Ready,
    OfImage::Publish,
    OfImage::DeleteOld,
    OfImage::DeleteLeaving,
    OfImage::Reap,
    OfImage::Vandal,
];

/// What happens to one claim, to its PVC', or to the volumes made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfClaim {
    Create,
    Remove,
    Vanish,
    Collect,
    // The populator.
    Mark,
    Pin,
    Hold,
    Pour,
    Keep,
    HandOver,
    DeletePrime,
    Settle,
    DropHold,
    Touch,
    Unpin,
    Unmark,
    SettleOrphan,
    // A second one.
    TakeOff,
    Land,
    // The storage, for PVC'.
    Protect,
    HoldForPrime,
    Make,
    Record,
    BindPrime,
    ReportPrime,
    LosePrime,
    LetImageGo,
    DeleteMade,
    LetPrimeGo,
    // The storage, for the claim.
    Bind,
    Report,
    Lose,
    LetGo,
    // The storage, for volumes.
    Release,
    Rebind,
    DecideToDelete,
    DeleteVolume,
    DeleteRecord,
    LetRecordGo,
    // The disk.
    Made,
    Fail,
}

const CLAIMS: [OfClaim; 41] = [
    OfClaim::Create,
    OfClaim::Remove,
    OfClaim::Vanish,
    OfClaim::Collect,
    OfClaim::Mark,
    OfClaim::Pin,
    OfClaim::Hold,
    OfClaim::Pour,
    OfClaim::Keep,
    OfClaim::HandOver,
    OfClaim::DeletePrime,
    OfClaim::Settle,
    OfClaim::DropHold,
    OfClaim::Touch,
    OfClaim::Unpin,
    OfClaim::Unmark,
    OfClaim::SettleOrphan,
    OfClaim::TakeOff,
    OfClaim::Land,
    OfClaim::Protect,
    OfClaim::HoldForPrime,
    OfClaim::Make,
    OfClaim::Record,
    OfClaim::BindPrime,
    OfClaim::ReportPrime,
    OfClaim::LosePrime,
    OfClaim::LetImageGo,
    OfClaim::DeleteMade,
    OfClaim::LetPrimeGo,
    OfClaim::Bind,
    OfClaim::Report,
    OfClaim::Lose,
    OfClaim::LetGo,
    OfClaim::Release,
    OfClaim::Rebind,
    OfClaim::DecideToDelete,
    OfClaim::DeleteVolume,
    OfClaim::DeleteRecord,
    OfClaim::LetRecordGo,
    OfClaim::Made,
    OfClaim::Fail,
];

/// Who takes a step about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    User,
    Collector,
    Populator,
    SecondPopulator,
    StorageOfPrime,
    StorageOfClaim,
    StorageOfVolumes,
    Disk,
}

impl OfClaim {
    pub(super) fn actor(self) -> Actor {
        match self {
            OfClaim::Create | OfClaim::Remove => Actor::User,
            OfClaim::Vanish | OfClaim::Collect => Actor::Collector,
            OfClaim::Mark
            | OfClaim::Pin
            | OfClaim::Hold
            | OfClaim::Pour
            | OfClaim::Keep
            | OfClaim::HandOver
            | OfClaim::DeletePrime
            | OfClaim::Settle
            | OfClaim::DropHold
            | OfClaim::Touch
            | OfClaim::Unpin
            | OfClaim::Unmark
            | OfClaim::SettleOrphan => Actor::Populator,
            OfClaim::TakeOff | OfClaim::Land => Actor::SecondPopulator,
            OfClaim::Protect
            | OfClaim::HoldForPrime
            | OfClaim::Make
            | OfClaim::Record
            | OfClaim::BindPrime
            | OfClaim::ReportPrime
            | OfClaim::LosePrime
            | OfClaim::LetImageGo
            | OfClaim::DeleteMade
            | OfClaim::LetPrimeGo => Actor::StorageOfPrime,
            OfClaim::Bind | OfClaim::Report | OfClaim::Lose | OfClaim::LetGo => {
                Actor::StorageOfClaim
            }
            OfClaim::Release
            | OfClaim::Rebind
            | OfClaim::DecideToDelete
            | OfClaim::DeleteVolume
            | OfClaim::DeleteRecord
            | OfClaim::LetRecordGo => Actor::StorageOfVolumes,
            OfClaim::Made | OfClaim::Fail => Actor::Disk,
        }
    }

    fn action(self, name: &str) -> Action {
        let claim = format!("claim {name}");
        let (actor, target) = match self.actor() {
            Actor::User => ("user", claim),
            Actor::Collector => ("API server", claim),
            Actor::Populator => ("populator", claim),
            Actor::SecondPopulator => ("another populator", claim),
            Actor::StorageOfPrime | Actor::StorageOfClaim | Actor::StorageOfVolumes => {
                ("storage", claim)
            }
            Actor::Disk => ("disk", claim),
        };
        Action::new(format!("{self:?}({name})"), actor).to(target)
    }
}

impl World {
    pub(super) fn image_id(&self, what: OfImage, image: u8) -> ActionId {
        OF_IMAGES + (what as usize * self.images) as ActionId + ActionId::from(image)
    }

    pub(super) fn id(&self, what: OfClaim, p: usize) -> ActionId {
        let first = OF_IMAGES + (IMAGES.len() * self.images) as ActionId;
        first + (what as usize * self.claims + p) as ActionId
    }

    /// Everything that somebody does about one claim.
    pub(super) fn ids_of(&self, actor: Actor, p: usize) -> Vec<ActionId> {
        let theirs = CLAIMS.into_iter().filter(|what| what.actor() == actor);
        theirs.map(|what| self.id(what, p)).collect()
    }

    pub(super) fn all_actions(&self) -> Vec<Action> {
        let mut actions = vec![
            Action::new("DeleteDestination", "user").to("destination"),
            Action::new("DestinationGone", "destination"),
            Action::new("DestinationAgain", "user").to("destination"),
        ];
        for what in IMAGES {
            let actor = match what {
                OfImage::Take | OfImage::Publish | OfImage::DeleteOld | OfImage::DeleteLeaving => {
                    "destination"
                }
                OfImage::Ready | OfImage::Reap => "storage",
                OfImage::Vandal => "somebody",
            };
            let names = (1..=self.images).map(|image| format!("{what:?}(s{image})"));
            actions.extend(names.map(|name| Action::new(name, actor).to("images")));
        }
        for what in CLAIMS {
            actions.extend((1..=self.claims).map(|p| what.action(&format!("p{p}"))));
        }
        actions
    }
}
