//! Patches: an object and a change into the changed object. JSON, merge and strategic merge patch.

mod json;
mod list;
mod merge;
mod order;
mod strategic;
#[cfg(test)]
pub(crate) mod strategic_tests;

pub(crate) use json::json;
pub(crate) use merge::merge;
pub(crate) use strategic::strategic;

use crate::status::Status;

/// 422 for a patch that was understood but cannot be applied. Upstream's sentence comes first,
/// because scripts look for it; what went wrong follows. No values of the object are shown: it may
/// be a secret.
fn rejected(why: impl std::fmt::Display) -> Status {
    let sentence = "the server rejected our request due to an error in our request";
    Status::new(422, "Invalid", format!("{sentence}: {why}"))
}
