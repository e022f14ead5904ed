//! Names of runs, locks and volumes, with the errors of this room.

use super::error::{Error, Result};
use crate::names::fault;

/// Returns the name if it can be one file name and nothing else. `what` says whose name it is.
pub(super) fn checked<'a>(what: &'static str, name: &'a str) -> Result<&'a str> {
    match fault(name) {
        None => Ok(name),
        Some(because) => Err(Error::Name { what, name: name.to_owned(), because }),
    }
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
