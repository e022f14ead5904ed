//! VolSync's kinds, `volsync.backube/v1alpha1`, as its users write them.
//!
//! The wire format is VolSync's own: each of its fields is accepted, and what Interlock writes into a
//! status is written where VolSync writes it. Fields that nothing here ever reads are taken as they
//! are. Which fields have an effect, and which are refused, is the business of the system volumes.

#![allow(
    unreachable_pub,
    reason = "the derived schemas hold a copy of each struct inside of a function, with its pub"
)]
#![allow(
    clippy::duplicated_attributes,
    reason = "every printer column has a type, and several have the same"
)]

mod amount;
pub mod condition;
mod destination;
mod mover;
mod source;

pub use amount::{Amount, Anything};
pub use destination::{
    ReplicationDestination, ReplicationDestinationRestic, ReplicationDestinationSpec,
    ReplicationDestinationStatus,
};
pub use mover::{CopyMethod, CustomAuthority, External, MoverStatus, Trigger};
pub use source::{
    ReplicationSource, ReplicationSourceRestic, ReplicationSourceSpec, ReplicationSourceStatus,
    ResticStatus, Retain,
};

/// The API group of VolSync's kinds.
pub const GROUP: &str = "volsync.backube";

/// The version of VolSync's kinds.
pub const VERSION: &str = "v1alpha1";
