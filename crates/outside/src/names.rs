//! Names that may become file names: whatever could lead out of a folder is refused.

/// The longest name that leaves room for an ending such as `.lock` in a file name.
const LONGEST_BYTES: usize = 240;

/// Why this name cannot be one file name and nothing else; nothing if it can.
pub(crate) fn fault(name: &str) -> Option<&'static str> {
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
