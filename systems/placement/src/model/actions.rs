//! Everything that can happen in the world, by name, and who does it.

use super::World;
use crate::spec::name_of;
use interlock_checker::{Action, ActionId};

pub(super) const LIST_CLAIMS: ActionId = 0;
const OF_EPOCHS: ActionId = 1;

/// What happens to the ForceRelease of one epoch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Force {
    Ask,
    Fence,
    Answer,
}

const FORCES: [Force; 3] = [Force::Ask, Force::Fence, Force::Answer];

/// What happens at, or to, one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Wish,
    Target,
    Grant,
    Revoke,
    Observe,
    Relist,
    Withdraw,
    StopOne,
    LookWhetherStill,
    Close,
    CreateClosed,
    AskLastImage,
    KeepInPlace,
    HoldLastImage,
    Acknowledge,
    SettleCopy,
    CreateHere,
    NoteEpoch,
    CreateClaim,
    ReportFilled,
    LookWhetherGranted,
    Permit,
    ApplyOne,
    FillEnd,
    BeginCopy,
    Replicate,
    LastImageMade,
    TakeLock,
    LookAtPermit,
    Start,
    LetGo,
    Terminate,
    ConfirmGone,
    Write,
    Exit,
    Crash,
    RuntimeCrash,
    PowerOff,
    PowerOn,
}

/// All of them, in the order of their ids.
const ALL: [At; 39] = [
    At::Wish,
    At::Target,
    At::Grant,
    At::Revoke,
    At::Observe,
    At::Relist,
    At::Withdraw,
    At::StopOne,
    At::LookWhetherStill,
    At::Close,
    At::CreateClosed,
    At::AskLastImage,
    At::KeepInPlace,
    At::HoldLastImage,
    At::Acknowledge,
    At::SettleCopy,
    At::CreateHere,
    At::NoteEpoch,
    At::CreateClaim,
    At::ReportFilled,
    At::LookWhetherGranted,
    At::Permit,
    At::ApplyOne,
    At::FillEnd,
    At::BeginCopy,
    At::Replicate,
    At::LastImageMade,
    At::TakeLock,
    At::LookAtPermit,
    At::Start,
    At::LetGo,
    At::Terminate,
    At::ConfirmGone,
    At::Write,
    At::Exit,
    At::Crash,
    At::RuntimeCrash,
    At::PowerOff,
    At::PowerOn,
];

/// Who takes a step at a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    User,
    Scheduler,
    Cache,
    Syncer,
    Mover,
    Runtime,
    Workload,
    World,
}

impl At {
    pub(super) fn actor(self) -> Actor {
        match self {
            At::Wish => Actor::User,
            At::Target | At::Grant | At::Revoke => Actor::Scheduler,
            At::Observe => Actor::Cache,
            At::Withdraw
            | At::StopOne
            | At::LookWhetherStill
            | At::Close
            | At::CreateClosed
            | At::AskLastImage
            | At::KeepInPlace
            | At::HoldLastImage
            | At::Acknowledge
            | At::SettleCopy
            | At::CreateHere
            | At::NoteEpoch
            | At::CreateClaim
            | At::ReportFilled
            | At::LookWhetherGranted
            | At::Permit
            | At::ApplyOne => Actor::Syncer,
            At::FillEnd | At::BeginCopy | At::Replicate | At::LastImageMade => Actor::Mover,
            At::TakeLock
            | At::LookAtPermit
            | At::Start
            | At::LetGo
            | At::Terminate
            | At::ConfirmGone => Actor::Runtime,
            At::Write | At::Exit => Actor::Workload,
            At::Relist | At::Crash | At::RuntimeCrash | At::PowerOff | At::PowerOn => Actor::World,
        }
    }

    fn action(self, c: &str) -> Action {
        let name = format!("{self:?}({c})");
        let (syncer, cluster) = (format!("syncer {c}"), format!("cluster {c}"));
        let runtime = format!("runtime {c}");
        match self {
            At::Observe
            | At::Relist
            | At::LookWhetherGranted
            | At::KeepInPlace
            | At::HoldLastImage
            | At::Acknowledge
            | At::SettleCopy
            | At::ReportFilled => Action::new(name, syncer).to("hub"),
            At::Crash => Action::new(name, syncer),
            At::RuntimeCrash => Action::new(name, runtime),
            _ => match self.actor() {
                Actor::User => Action::new(name, "user").to("hub"),
                Actor::Scheduler => Action::new(name, "scheduler").to("hub"),
                Actor::Cache | Actor::Syncer => Action::new(name, syncer).to(cluster),
                Actor::Runtime => Action::new(name, runtime).to(cluster),
                Actor::Mover => Action::new(name, cluster).to("images"),
                Actor::Workload | Actor::World => Action::new(name, cluster),
            },
        }
    }
}

impl World {
    pub(super) fn id(&self, at: At, c: usize) -> ActionId {
        let of_clusters = FORCES.len() * usize::from(self.extent.epochs);
        OF_EPOCHS + (of_clusters + at as usize * self.extent.clusters + c) as ActionId
    }

    pub(super) fn force_id(&self, force: Force, epoch: u8) -> ActionId {
        let place = force as u8 * self.extent.epochs + epoch - 1;
        OF_EPOCHS + ActionId::from(place)
    }

    pub(super) fn all_actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::new("ListClaims", "scheduler").to("hub")];
        for force in FORCES {
            for epoch in 1..=self.extent.epochs {
                let name = format!("{force:?}({epoch})");
                actions.push(match force {
                    Force::Ask => Action::new(format!("AskForce({epoch})"), "operator").to("hub"),
                    Force::Fence | Force::Answer => Action::new(name, "fencing").to("hub"),
                });
            }
        }
        for at in ALL {
            actions.extend((0..self.extent.clusters).map(|c| at.action(name_of(c))));
        }
        actions
    }

    /// The ids of all that an actor does at a cluster.
    pub(super) fn ids_of(&self, actor: Actor, c: usize) -> Vec<ActionId> {
        ALL.iter().filter(|at| at.actor() == actor).map(|at| self.id(*at, c)).collect()
    }

    /// The ids of what fencing does about the ForceRelease of an epoch.
    pub(super) fn ids_of_force(&self, epoch: u8) -> [ActionId; 2] {
        [Force::Fence, Force::Answer].map(|force| self.force_id(force, epoch))
    }
}
