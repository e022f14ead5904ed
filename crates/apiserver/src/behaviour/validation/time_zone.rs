//! The names of time zones: those of the IANA database, whatever the machine has installed.

use crate::status::{FieldError, Path};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::LazyLock;

static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let text = include_str!("../../../kinds/timezones.txt");
    text.lines().filter(|line| !line.starts_with('#')).collect()
});

const PART_LIMIT_BYTES: usize = 14;

/// What is wrong with a time zone; nothing said is fine.
pub(super) fn validate(zone: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(zone) = zone.as_str() else { return };
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path, &json!(zone), detail));
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    let is_part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= PART_LIMIT_BYTES
            && part.bytes().all(is_allowed)
    };
    if zone.is_empty() {
        refuse("timeZone must be nil or non-empty string".to_owned());
    } else if !zone.split('/').all(is_part) {
        refuse(format!("unknown time zone {zone}"));
    } else if zone.eq_ignore_ascii_case("local") {
        refuse(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
    } else if !NAMES.contains(zone) {
        refuse(format!("unknown time zone {zone}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zones_of_the_database_are_taken() {
        let problems = |zone: Value| {
            let mut errors = Vec::new();
            validate(&zone, &Path::Root.field("timeZone"), &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for fine in ["UTC", "Etc/UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "GMT+0"] {
            assert_eq!(problems(json!(fine)), [""; 0], "{fine}");
        }
        assert_eq!(problems(Value::Null), [""; 0]);
        for (wrong, detail) in [
            ("bad-time-zone", "unknown time zone bad-time-zone"),
            ("europe/berlin", "unknown time zone"),
            ("../etc/passwd", "unknown time zone"),
            ("a//b", "unknown time zone"),
            ("Local", "must be an explicit time zone"),
            ("", "must be nil or non-empty"),
        ] {
            let found = problems(json!(wrong));
            assert!(found.len() == 1 && found[0].contains(detail), "{wrong}: {found:?}");
        }
    }
}
