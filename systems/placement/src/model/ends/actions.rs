//! Everything that can happen, by name, and who does it.

use super::World;
use crate::spec::name_of;
use interlock_checker::{Action, ActionId};

/// What an action is about, beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Nothing,
    Namespace,
    Cluster,
    Both,
}

/// Who acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    User,
    Scheduler,
    Fencing,
    Clusters,
    Departed,
    Claims,
    SchedulerCache,
    Cache,
    Syncer,
    World,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    DeleteNamespace,
    MakeNamespaceAgain,
    StripNamespace,
    DeleteCluster,
    RegisterCluster,
    StripCluster,
    ShutDown,
    AskToForget,
    AskForce,
    PutNamespaceFinalizer,
    LookForGrant,
    TakeNamespaceFinalizerOff,
    CreateGrant,
    Target,
    Untarget,
    LookAtCluster,
    Grant,
    Revoke,
    RevokeToDelete,
    BeginDeleting,
    DeleteGrant,
    Fence,
    PutClusterFinalizer,
    LookForGrants,
    TakeClusterFinalizerOff,
    ForgetForAPerson,
    TakeWishOff,
    TakeDepartedOff,
    MirrorNamespace,
    MirrorClaim,
    Hear,
    Observe,
    Withdraw,
    StopOne,
    Close,
    CreateClosed,
    Acknowledge,
    SettleCopy,
    TakeFinalizerOff,
    DeleteLeftover,
    ForgetCopy,
    PutFinalizer,
    CreateHere,
    NoteEpoch,
    CreateClaim,
    ReportFilled,
    Permit,
    ApplyOne,
    Settle,
    Crash,
    PowerOff,
    PowerOn,
}

const ALL: [Deed; 52] = [
    Deed::DeleteNamespace,
    Deed::MakeNamespaceAgain,
    Deed::StripNamespace,
    Deed::DeleteCluster,
    Deed::RegisterCluster,
    Deed::StripCluster,
    Deed::ShutDown,
    Deed::AskToForget,
    Deed::AskForce,
    Deed::PutNamespaceFinalizer,
    Deed::LookForGrant,
    Deed::TakeNamespaceFinalizerOff,
    Deed::CreateGrant,
    Deed::Target,
    Deed::Untarget,
    Deed::LookAtCluster,
    Deed::Grant,
    Deed::Revoke,
    Deed::RevokeToDelete,
    Deed::BeginDeleting,
    Deed::DeleteGrant,
    Deed::Fence,
    Deed::PutClusterFinalizer,
    Deed::LookForGrants,
    Deed::TakeClusterFinalizerOff,
    Deed::ForgetForAPerson,
    Deed::TakeWishOff,
    Deed::TakeDepartedOff,
    Deed::MirrorNamespace,
    Deed::MirrorClaim,
    Deed::Hear,
    Deed::Observe,
    Deed::Withdraw,
    Deed::StopOne,
    Deed::Close,
    Deed::CreateClosed,
    Deed::Acknowledge,
    Deed::SettleCopy,
    Deed::TakeFinalizerOff,
    Deed::DeleteLeftover,
    Deed::ForgetCopy,
    Deed::PutFinalizer,
    Deed::CreateHere,
    Deed::NoteEpoch,
    Deed::CreateClaim,
    Deed::ReportFilled,
    Deed::Permit,
    Deed::ApplyOne,
    Deed::Settle,
    Deed::Crash,
    Deed::PowerOff,
    Deed::PowerOn,
];

impl Deed {
    pub(super) fn actor(self) -> Actor {
        match self {
            Deed::DeleteNamespace
            | Deed::MakeNamespaceAgain
            | Deed::StripNamespace
            | Deed::DeleteCluster
            | Deed::RegisterCluster
            | Deed::StripCluster
            | Deed::ShutDown
            | Deed::AskToForget
            | Deed::AskForce => Actor::User,
            Deed::PutNamespaceFinalizer
            | Deed::LookForGrant
            | Deed::TakeNamespaceFinalizerOff
            | Deed::CreateGrant
            | Deed::Target
            | Deed::Untarget
            | Deed::LookAtCluster
            | Deed::Grant
            | Deed::Revoke
            | Deed::RevokeToDelete
            | Deed::BeginDeleting
            | Deed::DeleteGrant => Actor::Scheduler,
            Deed::Fence => Actor::Fencing,
            Deed::PutClusterFinalizer
            | Deed::LookForGrants
            | Deed::TakeClusterFinalizerOff
            | Deed::ForgetForAPerson
            | Deed::TakeWishOff => Actor::Clusters,
            Deed::TakeDepartedOff => Actor::Departed,
            Deed::MirrorNamespace | Deed::MirrorClaim => Actor::Claims,
            Deed::Hear => Actor::SchedulerCache,
            Deed::Observe => Actor::Cache,
            Deed::Withdraw
            | Deed::StopOne
            | Deed::Close
            | Deed::CreateClosed
            | Deed::Acknowledge
            | Deed::SettleCopy
            | Deed::TakeFinalizerOff
            | Deed::DeleteLeftover
            | Deed::ForgetCopy
            | Deed::PutFinalizer
            | Deed::CreateHere
            | Deed::NoteEpoch
            | Deed::CreateClaim
            | Deed::ReportFilled
            | Deed::Permit
            | Deed::ApplyOne => Actor::Syncer,
            Deed::Settle | Deed::Crash | Deed::PowerOff | Deed::PowerOn => Actor::World,
        }
    }

    fn about(self) -> About {
        match self {
            Deed::MirrorNamespace | Deed::MirrorClaim => About::Nothing,
            Deed::DeleteCluster
            | Deed::RegisterCluster
            | Deed::StripCluster
            | Deed::ShutDown
            | Deed::TakeDepartedOff
            | Deed::Hear
            | Deed::PutClusterFinalizer
            | Deed::LookForGrants
            | Deed::TakeClusterFinalizerOff
            | Deed::TakeWishOff
            | Deed::Crash
            | Deed::PowerOff
            | Deed::PowerOn => About::Cluster,
            Deed::AskToForget
            | Deed::ForgetForAPerson
            | Deed::Target
            | Deed::LookAtCluster
            | Deed::Grant => About::Both,
            _ if self.actor() == Actor::Syncer || self.actor() == Actor::Cache => About::Both,
            _ => About::Namespace,
        }
    }
}

/// Where the ids of each deed begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offsets([ActionId; ALL.len()]);

impl Default for Offsets {
    fn default() -> Self {
        Offsets([0; ALL.len()])
    }
}

impl Offsets {
    pub(super) fn of(clusters: usize, namespaces: usize) -> Offsets {
        let mut next = 0;
        Offsets(ALL.map(|deed| {
            let offset = next;
            next += match deed.about() {
                About::Nothing => 1,
                About::Namespace => namespaces,
                About::Cluster => clusters,
                About::Both => clusters * namespaces,
            } as ActionId;
            offset
        }))
    }
}

impl World {
    /// The id of a deed about a cluster and the namespace of a place, as far as it is about them.
    pub(super) fn id(&self, deed: Deed, c: usize, place: usize) -> ActionId {
        let within = match deed.about() {
            About::Nothing => 0,
            About::Namespace => place,
            About::Cluster => c,
            About::Both => c * self.namespaces + place,
        };
        self.offsets.0[deed as usize] + within as ActionId
    }

    fn action(&self, deed: Deed, c: usize, place: usize) -> Action {
        let (cluster, number) = (name_of(c), place + 1);
        let name = match deed.about() {
            About::Nothing => format!("{deed:?}"),
            About::Namespace => format!("{deed:?}({number})"),
            About::Cluster => format!("{deed:?}({cluster})"),
            About::Both => format!("{deed:?}({cluster}, {number})"),
        };
        let on_cluster = format!("cluster {cluster}");
        match deed.actor() {
            Actor::User => Action::new(name, "user").to("hub"),
            Actor::Scheduler | Actor::SchedulerCache => Action::new(name, "scheduler").to("hub"),
            Actor::Fencing => Action::new(name, "fencing").to("hub"),
            Actor::Clusters => Action::new(name, "clusters").to("hub"),
            Actor::Departed => Action::new(name, "departed").to("hub"),
            Actor::Claims => Action::new(name, "claims").to("hub"),
            Actor::Cache => Action::new(name, format!("syncer {cluster}")).to("hub"),
            Actor::Syncer => {
                let target = match deed {
                    Deed::Acknowledge
                    | Deed::SettleCopy
                    | Deed::TakeFinalizerOff
                    | Deed::ForgetCopy
                    | Deed::PutFinalizer
                    | Deed::ReportFilled => "hub".to_owned(),
                    _ => on_cluster,
                };
                Action::new(name, format!("syncer {cluster}")).to(target)
            }
            Actor::World if deed == Deed::Settle => Action::new(name, "hub"),
            Actor::World => Action::new(name, on_cluster),
        }
    }

    /// Every deed with all that it can be about, in the order of the ids.
    fn each_deed(&self, mut see: impl FnMut(Deed, usize, usize)) {
        for deed in ALL {
            let (clusters, places) = match deed.about() {
                About::Nothing => (1, 1),
                About::Namespace => (1, self.namespaces),
                About::Cluster => (self.clusters, 1),
                About::Both => (self.clusters, self.namespaces),
            };
            for c in 0..clusters {
                for place in 0..places {
                    see(deed, c, place);
                }
            }
        }
    }

    pub(super) fn all_actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        self.each_deed(|deed, c, place| actions.push(self.action(deed, c, place)));
        actions
    }

    /// The ids of all that an actor does about a namespace, at a cluster or anywhere.
    pub(super) fn ids_of(&self, actor: Actor, of: Option<usize>, place: usize) -> Vec<ActionId> {
        let mut ids = Vec::new();
        self.each_deed(|deed, c, about| {
            let is_there = of.is_none_or(|of| of == c);
            let is_about = match deed.about() {
                About::Nothing | About::Cluster => true,
                About::Namespace | About::Both => about == place,
            };
            if deed.actor() == actor && is_there && is_about {
                ids.push(self.id(deed, c, about));
            }
        });
        ids
    }
}
