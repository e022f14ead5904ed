//! Requests for certificates: the status says who signed, and never who approved.

use super::immutable::same;
use super::read::{at, list, list_mut, text};
use crate::status::FieldError;
use serde_json::Value;

const CONDITIONS: &str = "status.conditions";
const CERTIFICATE: &str = "status.certificate";
/// The conditions that only the subresource `approval` sets: it asks for a right of its own.
const APPROVALS: [&str; 2] = ["Approved", "Denied"];

/// A write of the status keeps the approvals as they were, so that clients that drop a field of them may go on.
pub(super) fn keep_approvals(old: &Value, new: &mut Value) {
    for sort in APPROVALS {
        let before = of_sort(old, sort);
        // One more or one less is no lost field: it is refused.
        if before.len() != of_sort(new, sort).len() {
            continue;
        }
        let now =
            list_mut(new, CONDITIONS).iter_mut().filter(|condition| condition["type"] == sort);
        for (now, before) in now.zip(before) {
            *now = before.clone();
        }
    }
}

/// What a write of the status may not change.
pub(super) fn validate_update(old: &Value, new: &Value, errors: &mut Vec<FieldError>) {
    for sort in ["Approved", "Denied", "Failed"] {
        let (before, now) = (of_sort(old, sort).len(), of_sort(new, sort).len());
        if now < before {
            let detail = format!("updates may not remove a condition of type {sort:?}");
            errors.push(FieldError::forbidden(CONDITIONS, detail));
        } else if now > before && APPROVALS.contains(&sort) {
            let detail = format!("updates may not add a condition of type {sort:?}");
            errors.push(FieldError::forbidden(CONDITIONS, detail));
        }
    }
    let before = text(old, CERTIFICATE);
    if !before.is_empty() && before != text(new, CERTIFICATE) {
        let detail = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden(CERTIFICATE, detail));
    }
}

/// Whether a write of the status changes what only a signer says: the certificate or a condition.
pub(crate) fn is_signed_anew(old: &Value, new: &Value) -> bool {
    text(old, CERTIFICATE) != text(new, CERTIFICATE)
        || !same(at(old, CONDITIONS), at(new, CONDITIONS))
}

fn of_sort<'a>(object: &'a Value, sort: &str) -> Vec<&'a Value> {
    list(object, CONDITIONS).iter().filter(|condition| condition["type"] == sort).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(conditions: Value, certificate: &str) -> Value {
        json!({"status": {"conditions": conditions, "certificate": certificate}})
    }

    fn refused(old: &Value, new: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        validate_update(old, new, &mut errors);
        errors.iter().map(|error| format!("{error:?}")).collect()
    }

    #[test]
    fn a_status_neither_adds_nor_removes_an_approval() {
        let none = request(json!([]), "");
        for sort in APPROVALS {
            let approved = request(json!([{"type": sort, "status": "True"}]), "");
            let added = refused(&none, &approved);
            assert!(added.len() == 1 && added[0].contains("may not add"), "{added:?}");
            let removed = refused(&approved, &none);
            assert!(removed.len() == 1 && removed[0].contains("may not remove"), "{removed:?}");
            assert!(refused(&approved, &approved).is_empty());
        }
        let failed = request(json!([{"type": "Failed", "status": "True"}]), "");
        assert!(refused(&none, &failed).is_empty());
        assert_eq!(refused(&failed, &none).len(), 1);
    }

    #[test]
    fn a_certificate_is_written_once() {
        let (none, one, other) =
            (request(json!([]), ""), request(json!([]), "b25l"), request(json!([]), "dHdv"));
        assert!(refused(&none, &one).is_empty());
        assert!(refused(&one, &one).is_empty());
        assert_eq!(refused(&one, &other).len(), 1);
        assert_eq!(refused(&one, &none).len(), 1);
    }

    #[test]
    fn an_approval_that_lost_a_field_gets_it_back() {
        let old = request(json!([{"type": "Approved", "status": "True", "reason": "Fine"}]), "");
        let mut new = request(json!([{"type": "Approved", "status": "True"}]), "b25l");
        keep_approvals(&old, &mut new);
        assert_eq!(new["status"]["conditions"], old["status"]["conditions"]);
        assert!(is_signed_anew(&old, &new));
        assert!(!is_signed_anew(&old, &old));
        assert!(!is_signed_anew(&request(json!([]), ""), &json!({})));
    }
}
