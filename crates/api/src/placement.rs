//! Which cluster runs a namespace: the kinds of the system placement.
//!
//! The [`Grant`] is the single record that decides; everything else is desired state, a mirror or a report.

#![allow(
    unreachable_pub,
    reason = "the derived schemas hold a copy of each struct inside of a function, with its pub"
)]
#![allow(
    clippy::duplicated_attributes,
    reason = "every printer column has a type, and several have the same"
)]

mod cluster;
pub mod condition;
mod force;
mod grant;
mod policy;
mod rules;

pub use cluster::{
    Connection, Drain, FurtherKind, Heartbeat, Machine, SecretKey, StorageClass, Syncer,
    WorkloadCluster, WorkloadClusterSpec, WorkloadClusterStatus,
};
pub use force::{Attestation, ForceOutcome, ForceRelease, ForceReleaseSpec, ForceReleaseStatus};
pub use grant::{
    Claim, CopyState, DataCopy, Fill, Grant, GrantSpec, GrantStatus, Phase, Pin, Progress,
    RevokedBecause, RightsState, RoleRights, Snapshot,
};
pub use policy::{OnUnreachable, Transport, VolumePolicy};
pub use rules::{Placement, PlacementSpec, PlacementStatus};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An object by name and uid. The uid decides, the name is for reading: an object that was deleted
/// and made again under its name is another one.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Ref {
    /// The name, for reading.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The uid, which decides.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
}

impl Ref {
    /// A reference to the object with this name and uid.
    pub fn new(name: impl Into<String>, uid: impl Into<String>) -> Self {
        Self { name: name.into(), uid: uid.into() }
    }

    /// Whether both mean the same object, whatever they call it.
    pub fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// Shows an enum as the word that stands on the wire.
macro_rules! displayed_as_on_the_wire {
    ($name:ident { $($variant:ident),+ }) => {
        impl $name {
            /// Its word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}
pub(crate) use displayed_as_on_the_wire;
