//! What AWS accepts as a document of a kind, beyond what makes it a document.

use super::{Document, DocumentError, Ordered, Statement};
use crate::arn::Arn;
use std::collections::BTreeSet;

/// What a document is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What a role may do: managed and inline policies.
    Permissions,
    /// Who may assume a role.
    Trust,
}

/// The operators that conditions have, without their prefixes and endings.
const OPERATORS: &[&str] = &[
    "StringEquals",
    "StringNotEquals",
    "StringEqualsIgnoreCase",
    "StringNotEqualsIgnoreCase",
    "StringLike",
    "StringNotLike",
    "NumericEquals",
    "NumericNotEquals",
    "NumericLessThan",
    "NumericLessThanEquals",
    "NumericGreaterThan",
    "NumericGreaterThanEquals",
    "DateEquals",
    "DateNotEquals",
    "DateLessThan",
    "DateLessThanEquals",
    "DateGreaterThan",
    "DateGreaterThanEquals",
    "Bool",
    "BinaryEquals",
    "IpAddress",
    "NotIpAddress",
    "ArnEquals",
    "ArnLike",
    "ArnNotEquals",
    "ArnNotLike",
    "Null",
];

/// An operator without `ForAllValues:`, `ForAnyValue:` and `IfExists`.
pub(crate) fn bare_operator(operator: &str) -> &str {
    let bare = operator.split_once(':').map_or(operator, |(_, bare)| bare);
    bare.strip_suffix("IfExists").unwrap_or(bare)
}

/// How long a document is for a quota: white space does not count.
pub fn size(text: &str) -> usize {
    text.chars().filter(|it| !it.is_whitespace()).count()
}

/// The document in a text, if it may be one of this kind.
pub fn check(text: &str, kind: Kind) -> Result<Document, DocumentError> {
    let document = Ordered::read(text)?;
    if !["2008-10-17", "2012-10-17"].contains(&document.version.as_str()) {
        return Err(DocumentError::Top(format!(
            "there is no Version {}; write 2012-10-17",
            document.version
        )));
    }
    if document.statements.is_empty() {
        return Err(DocumentError::Top("it has no statement".to_owned()));
    }
    let mut sids = BTreeSet::new();
    for (index, statement) in document.statements.iter().enumerate() {
        let wrong = |what| DocumentError::Statement { number: index + 1, what };
        if let Some(sid) = &statement.sid
            && !sids.insert(sid)
        {
            return Err(wrong(format!("another statement has the Sid {sid}")));
        }
        statement_of(statement, kind).map_err(wrong)?;
    }
    Ok(document.into())
}

fn statement_of(statement: &Statement, kind: Kind) -> Result<(), String> {
    for operator in statement.condition.keys() {
        let prefix = operator.split_once(':').map(|(prefix, _)| prefix);
        let is_known = OPERATORS.contains(&bare_operator(operator))
            && matches!(prefix, None | Some("ForAllValues" | "ForAnyValue"));
        if !is_known {
            return Err(format!("there is no condition operator {operator}"));
        }
    }
    for action in &statement.action.any {
        is_action(action)?;
    }
    match kind {
        Kind::Permissions => permissions(statement),
        Kind::Trust => trust(statement),
    }
}

fn permissions(statement: &Statement) -> Result<(), String> {
    if statement.principal.is_some() {
        return Err("a policy of a role has no Principal".to_owned());
    }
    let sid = statement.sid.as_deref().unwrap_or_default();
    if !sid.bytes().all(|it| it.is_ascii_alphanumeric()) {
        return Err(format!("the Sid {sid} may have letters and digits only"));
    }
    let Some(resource) = &statement.resource else {
        return Err("it has no Resource".to_owned());
    };
    for name in resource.any.iter().filter(|name| *name != "*") {
        // A pattern may leave parts open, so only the beginning is certain.
        let parts = name.split(':').count();
        if !name.starts_with("arn:") && !name.starts_with('*') || parts < 6 && !name.contains('*') {
            return Err(format!("the Resource {name} must be an ARN or *"));
        }
    }
    Ok(())
}

fn trust(statement: &Statement) -> Result<(), String> {
    if statement.resource.is_some() {
        return Err("a trust policy has no Resource".to_owned());
    }
    let Some(principal) = &statement.principal else {
        return Err("a trust policy needs a Principal".to_owned());
    };
    if principal.any.values().all(BTreeSet::is_empty) {
        return Err("its Principal names none".to_owned());
    }
    for (sort, names) in &principal.any {
        for name in names.iter().filter(|name| *name != "*") {
            let is_good = match sort.as_str() {
                "AWS" => name.parse::<Arn>().is_ok_and(|arn| arn.service != "s3"),
                "Federated" if name.starts_with("arn:") => name.parse::<Arn>().is_ok_and(|arn| {
                    ["oidc-provider/", "saml-provider/"]
                        .iter()
                        .any(|it| arn.resource.starts_with(it))
                }),
                _ => name.contains('.'),
            };
            if !is_good {
                return Err(format!("{name} is no {sort} principal"));
            }
        }
    }
    let is_sts = |action: &String| action.starts_with("sts:") || action == "*";
    match statement.action.any.iter().find(|action| !is_sts(action)) {
        Some(action) => Err(format!("{action} is no action of STS")),
        None => Ok(()),
    }
}

fn is_action(action: &str) -> Result<(), String> {
    let is_part = |part: &str| {
        let is_allowed = |it: u8| it.is_ascii_alphanumeric() || b"*?-_".contains(&it);
        !part.is_empty() && part.bytes().all(is_allowed)
    };
    let is_good = match action.split_once(':') {
        Some((service, name)) => is_part(service) && !service.contains(['*', '?']) && is_part(name),
        None => action == "*",
    };
    if is_good {
        return Ok(());
    }
    Err(format!("{action:?} is no action: write <service>:<action>"))
}
