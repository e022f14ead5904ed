//! What the cloud would refuse, found before anything is sent.

use crate::document;
use crate::settings::Settings;
use interlock_api::identities::Statement;

/// Whether a text is an ARN: `arn:` and at least five colons.
pub(crate) fn is_arn(text: &str) -> bool {
    text.starts_with("arn:") && text.matches(':').count() >= 5
}

/// What is wrong with statements, the statement named; None: nothing.
pub(crate) fn invalid_statements(statements: &[Statement]) -> Option<String> {
    if statements.is_empty() {
        return Some("spec: there is no statement".to_owned());
    }
    for (number, statement) in statements.iter().enumerate() {
        let wrong = |what: &str| Some(format!("statement[{number}]: {what}"));
        if !is_arn(&statement.resource) {
            return wrong(&format!("resource {:?} is not an ARN", statement.resource));
        }
        if statement.action.is_empty() {
            return wrong("there is no action");
        }
        if statement.action.iter().any(String::is_empty) {
            return wrong("an action is empty");
        }
    }
    let length = document::length(&document::of_statements(statements));
    let longest = document::LONGEST;
    (length > longest)
        .then(|| format!("statement: the policy has {length} characters, of {longest} allowed"))
}

/// What is wrong with the permissions boundary that an object asks for; None: nothing.
pub(crate) fn invalid_boundary(asked: Option<&str>, settings: &Settings) -> Option<String> {
    let asked = asked.filter(|arn| !arn.is_empty())?;
    if !is_arn(asked) {
        return Some(format!("spec.permissionsBoundariesPolicyARN: {asked:?} is not an ARN"));
    }
    let own = settings.boundary_arn.as_ref().filter(|own| *own != asked)?;
    Some(format!("spec.permissionsBoundariesPolicyARN: only {own} is allowed"))
}
