//! A claim of a namespace on one cluster: which volume is there, whose data it has, and how that
//! arrives and leaves.
//!
//! A volume is used for an epoch only if the pin of that epoch says that it may: a `fresh` claim
//! gets an empty one, an `inPlace` claim takes the very volume that was left here, and one whose data
//! is in a snapshot of another cluster or in a repository gets a new volume that is filled from it.
//! Whatever is not as it should be stops the arrival and says so; no volume is made in place of one
//! that is missing.
//!
//! Each epoch fills a volume of its own. The volume that an earlier epoch left here is not written
//! over: its claim makes room, and the volume itself stays until the copy that it belongs to may go.
//!
//! The last snapshot of an epoch is asked for once the epoch is closed. The tag of the trigger says
//! which epoch a snapshot is of. The source confirms a tag only for a snapshot that it began after it saw
//! the tag, so a snapshot that is confirmed for `final-<epoch>` was taken after that epoch was closed,
//! and has all that was written in it.

pub(super) mod act;
pub mod arrive;
pub mod facts;
pub mod leave;
pub(super) mod objects;
pub(super) mod observe;
