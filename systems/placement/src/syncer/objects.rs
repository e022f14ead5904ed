//! The objects of a namespace: down to the cluster one by one, their status up.

pub(super) mod act;
pub mod compare;
pub mod decide;
pub mod desired;
pub mod kinds;
pub(super) mod observe;
pub(super) mod status;
