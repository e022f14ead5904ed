//! The texts that people read, word for word.

mod explaining;
mod following;
mod judging;
mod showing;

/// Compares a text line by line, so that a difference is seen where it is.
fn same(actual: &str, expected: &str) {
    assert_eq!(actual, expected, "\n--- is\n{actual}\n--- should be\n{expected}");
}
