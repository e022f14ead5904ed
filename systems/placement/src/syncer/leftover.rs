//! What is left on a cluster of a namespace that moved on, or is being deleted: marked, kept, and at last
//! deleted part by part.

pub(super) mod act;
pub mod decide;
pub(super) mod observe;
