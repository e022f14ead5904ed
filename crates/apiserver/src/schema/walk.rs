//! Walks over an object beside its schema: what is dropped, what is filled in, what is refused.

mod constraints;
mod decode;
mod defaults;
mod lists;
mod prune;
mod validate;

#[cfg(test)]
mod tests;

pub(crate) use decode::decode_check;
pub(crate) use defaults::apply_defaults;
pub(crate) use prune::prune;
pub(crate) use validate::{validate, validate_at};

pub(crate) use lists::{correlate, old_items};

/// At most so many errors, or dropped fields, are reported: who has more will come back.
pub(crate) const MAX_REPORTED: usize = 100;
