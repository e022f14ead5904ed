//! Selectors: which objects a list, a watch or a deletecollection is about, by labels and by
//! fields.

mod field;
mod label;
mod label_parse;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;

/// Longer selectors are refused.
const SELECTOR_LIMIT_BYTES: usize = 16 * 1024;

/// Selectors with more requirements, or requirements with more values, are refused.
const REQUIREMENTS_LIMIT: usize = 1_000;
