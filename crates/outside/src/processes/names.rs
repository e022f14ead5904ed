//! Names that may become file names: whatever could lead out of a folder is refused.

use super::error::{Error, Result};

/// The longest name that leaves room for an ending such as `.lock` in a file name.
const LONGEST_BYTES: usize = 240;

/// Hands the name back if it can be one file name and nothing else. `what` says whose name it is.
pub(super) fn checked<'a>(what: &'static str, name: &'a str) -> Result<&'a str> {
    match fault(name) {
        None => Ok(name),
        Some(because) => Err(Error::Name { what, name: name.to_owned(), because }),
    }
}

fn fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.starts_with('.') {
        return Some("it begins with a dot");
    }
    if name.contains('/') {
        return Some("it has a slash");
    }
    if name.chars().any(char::is_control) {
        return Some("it has a control character");
    }
    if name.len() > LONGEST_BYTES {
        return Some("it is longer than 240 bytes");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn names_of_kubernetes_objects_are_accepted() {
        for name in ["data", "web-0", "a.b", "3f2b6c1e-7d55-4a6c-9a51-0d5e6f7a8b9c"] {
            assert_eq!(checked("claim", name).unwrap(), name);
        }
    }

    #[test]
    fn names_that_could_leave_their_folder_are_refused() {
        let long = "x".repeat(241);
        for name in ["", ".", "..", "../up", "a/b", "/etc", "a\0b", "a\nb", ".hidden", &long] {
            assert!(checked("claim", name).is_err(), "{name:?} was accepted");
        }
    }
}
