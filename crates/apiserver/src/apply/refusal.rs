//! Why an apply was refused, in upstream's words.

use crate::status::{Cause, FieldError, Status};

/// Why an apply was refused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ApplyError {
    /// Others own fields that would change.
    Conflicts(Vec<Conflict>),
    /// The configuration does not fit the schema, or names an element twice.
    Invalid(Vec<FieldError>),
    /// The configuration makes no sense.
    BadRequest(String),
}

/// One field that somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The owner as it is shown: `"kubectl-edit" using apps/v1`.
    pub(crate) manager: String,
    /// The field: `.spec.replicas`.
    pub(crate) field: String,
}

impl ApplyError {
    /// The refusal that the client gets.
    pub(crate) fn into_status(self, group: &str, resource: &str, kind: &str, name: &str) -> Status {
        match self {
            ApplyError::Conflicts(conflicts) => conflict_status(conflicts),
            ApplyError::Invalid(errors) => Status::invalid(group, kind, name, &errors),
            ApplyError::BadRequest(message) => {
                Status::bad_request(message).about(group, resource, name)
            }
        }
    }
}

fn conflict_status(conflicts: Vec<Conflict>) -> Status {
    let message = match &conflicts[..] {
        [only] => {
            format!("1 conflict: conflict with {}: {}", only.manager, only.field)
        }
        many => {
            let mut lines = Vec::new();
            for by_one in many.chunk_by(|left, right| left.manager == right.manager) {
                lines.push(format!("conflicts with {}:", by_one[0].manager));
                lines.extend(by_one.iter().map(|conflict| format!("- {}", conflict.field)));
            }
            format!("{} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    let mut status = Status::new(409, "Conflict", format!("Apply failed with {message}"));
    let cause = |conflict: Conflict| Cause {
        reason: "FieldManagerConflict",
        message: format!("conflict with {}", conflict.manager),
        field: conflict.field,
    };
    status.details.causes = conflicts.into_iter().map(cause).collect();
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflict(manager: &str, field: &str) -> Conflict {
        Conflict { manager: manager.to_owned(), field: field.to_owned() }
    }

    #[test]
    fn one_conflict_is_one_sentence() {
        let refused = ApplyError::Conflicts(vec![conflict("\"edit\" using v1", ".spec.a")]);
        let status = refused.into_status("", "pods", "Pod", "a");
        assert_eq!((status.code, status.reason), (409, "Conflict"));
        let message = "Apply failed with 1 conflict: conflict with \"edit\" using v1: .spec.a";
        assert_eq!(status.message, message);
        assert_eq!(status.details.causes[0].reason, "FieldManagerConflict");
        assert_eq!(status.details.causes[0].message, "conflict with \"edit\" using v1");
        assert_eq!(status.details.causes[0].field, ".spec.a");
    }

    #[test]
    fn several_conflicts_are_listed_by_owner() {
        let refused = ApplyError::Conflicts(vec![
            conflict("\"a\"", ".x"),
            conflict("\"a\"", ".y"),
            conflict("\"b\"", ".z"),
        ]);
        let message = "Apply failed with 3 conflicts: \
                       conflicts with \"a\":\n- .x\n- .y\nconflicts with \"b\":\n- .z";
        assert_eq!(refused.into_status("", "pods", "Pod", "a").message, message);
    }
}
