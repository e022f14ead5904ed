//! Policy documents: how they are written, and when two of them mean the same.
//!
//! The cloud gives a document back as it was written, or URL-encoded, and people edit documents by hand.
//! Documents are compared in one canonical form: statements, actions, resources and values are sets, a
//! single value is a list of one, and actions and condition keys are compared without case.

use interlock_api::identities::{Effect, Statement};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The language version of the documents that are written here.
const LANGUAGE: &str = "2012-10-17";
/// The language version of a document that names none.
const OLD_LANGUAGE: &str = "2008-10-17";
/// The longest document of a managed policy, in characters that are not white space.
pub const LONGEST: usize = 6144;

/// The document of a policy with these statements.
pub fn of_statements(statements: &[Statement]) -> Value {
    let statement = |it: &Statement| {
        let effect = match it.effect {
            Effect::Allow => "Allow",
            Effect::Deny => "Deny",
        };
        let mut made = json!({"Effect": effect, "Action": it.action, "Resource": [it.resource]});
        if let Some(sid) = it.sid.as_ref().filter(|sid| !sid.is_empty()) {
            made["Sid"] = json!(sid);
        }
        if let Some(condition) = it.condition.as_ref().filter(|it| !it.0.is_empty()) {
            made["Condition"] = Value::Object(condition.0.clone());
        }
        made
    };
    let all: Vec<Value> = statements.iter().map(statement).collect();
    json!({"Version": LANGUAGE, "Statement": all})
}

/// Whom a role trusts: one subject of one issuer, by its OIDC provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted<'a> {
    /// The ARN of the OIDC provider.
    pub provider: &'a str,
    /// The subject of the token.
    pub subject: &'a str,
    /// The audience of the token.
    pub audience: &'a str,
}

impl Trusted<'_> {
    /// The trust policy; the statement has this name.
    pub fn document(&self, sid: &str) -> Value {
        let issuer = self.provider.split_once("oidc-provider/").map_or("", |(_, issuer)| issuer);
        let mut condition = Map::new();
        condition.insert(format!("{issuer}:sub"), json!(self.subject));
        condition.insert(format!("{issuer}:aud"), json!(self.audience));
        json!({"Version": LANGUAGE, "Statement": [{
            "Sid": sid, "Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity",
            "Principal": {"Federated": self.provider}, "Condition": {"StringEquals": condition},
        }]})
    }
}

/// A trust policy that nobody is trusted by; the statement has this name.
pub fn closed(sid: &str) -> Value {
    json!({"Version": LANGUAGE, "Statement": [{
        "Sid": sid, "Effect": "Deny", "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": "*",
    }]})
}

/// An inline policy that denies everything to sessions that were issued before a time, by the clock of the cloud.
pub fn fence(before: Timestamp) -> Value {
    json!({"Version": LANGUAGE, "Statement": [{
        "Sid": "Fence", "Effect": "Deny", "Action": "*", "Resource": "*",
        "Condition": {"DateLessThan": {"aws:TokenIssueTime": before.to_string()}},
    }]})
}

/// A document in canonical form, as text; None: it is no document.
pub fn canonical(text: &str) -> Option<String> {
    let plain = if text.trim_start().starts_with('{') { text.to_owned() } else { decoded(text)? };
    let document: Value = serde_json::from_str(&plain).ok()?;
    Some(canonical_value(document.as_object()?).to_string())
}

/// Whether two documents mean the same. One that cannot be read equals none.
pub fn is_same(one: &str, other: &str) -> bool {
    match (canonical(one), canonical(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// The digest of a document in canonical form; that of a text that is no document is empty.
pub fn digest(text: &str) -> String {
    canonical(text).map_or_else(String::new, |canonical| hex(&canonical, 32))
}

/// The first bytes of the SHA-256 of a text, in hexadecimal digits.
pub fn hex(text: &str, bytes: usize) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(text.as_bytes()).iter().take(bytes) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// How long the cloud takes a document to be.
pub fn length(document: &Value) -> usize {
    document.to_string().chars().filter(|character| !character.is_whitespace()).count()
}

/// The one subject that a trust policy trusts by a provider, if that is all that it says.
pub fn only_subject(trust: &str, provider: &str) -> Option<String> {
    let document: Value = serde_json::from_str(&canonical(trust)?).ok()?;
    let [statement] = document["Statement"].as_array()?.as_slice() else { return None };
    let is_allowed = statement["Effect"] == "Allow";
    let is_by_provider = statement["Principal"] == json!({"Federated": [provider]});
    let conditions = statement["Condition"].as_object()?;
    let equals = conditions.get("StringEquals")?.as_object()?;
    let key = equals.keys().find(|key| key.ends_with(":sub"))?;
    let [subject] = equals.get(key)?.as_array()?.as_slice() else { return None };
    let subject = subject.as_str()?.to_owned();
    (is_allowed && is_by_provider && conditions.len() == 1).then_some(subject)
}

fn canonical_value(document: &Map<String, Value>) -> Value {
    let statements = match document.get("Statement") {
        Some(Value::Array(all)) => all.clone(),
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    };
    let mut statements: Vec<Value> = statements.iter().map(statement).collect();
    sort(&mut statements);
    let language = document.get("Version").and_then(Value::as_str).unwrap_or(OLD_LANGUAGE);
    let mut made = json!({"Version": language, "Statement": statements});
    if let Some(id) = document.get("Id") {
        made["Id"] = id.clone();
    }
    made
}

fn statement(statement: &Value) -> Value {
    let Some(fields) = statement.as_object() else { return statement.clone() };
    let mut made = Map::new();
    for (key, value) in fields {
        let value = match key.as_str() {
            "Action" | "NotAction" => values(value, str::to_ascii_lowercase),
            "Resource" | "NotResource" => values(value, str::to_owned),
            "Principal" | "NotPrincipal" => principal(value),
            "Condition" => condition(value),
            _ => value.clone(),
        };
        if !is_nothing(&value) {
            made.insert(key.clone(), value);
        }
    }
    Value::Object(made)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The values of a field as a sorted list without repetitions.
fn values(value: &Value, form: fn(&str) -> String) -> Value {
    let all = match value {
        Value::Array(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let text = |value: &Value| match value {
        Value::String(text) => json!(form(text)),
        // The cloud compares text.
        Value::Bool(_) | Value::Number(_) => json!(form(&value.to_string())),
        other => other.clone(),
    };
    let mut all: Vec<Value> = all.iter().map(text).collect();
    sort(&mut all);
    all.dedup();
    Value::Array(all)
}

fn principal(value: &Value) -> Value {
    let Some(fields) = value.as_object() else {
        return json!({"AWS": values(value, str::to_owned)});
    };
    let each = fields.iter().map(|(key, value)| (key.clone(), values(value, str::to_owned)));
    Value::Object(each.collect())
}

fn condition(value: &Value) -> Value {
    let Some(operators) = value.as_object() else { return value.clone() };
    let operator = |(name, keys): (&String, &Value)| {
        let Some(keys) = keys.as_object() else { return (name.clone(), keys.clone()) };
        let each = keys.iter();
        let each = each.map(|(key, it)| (key.to_ascii_lowercase(), values(it, str::to_owned)));
        (name.clone(), Value::Object(each.collect()))
    };
    Value::Object(operators.iter().map(operator).collect())
}

fn sort(all: &mut [Value]) {
    all.sort_by_cached_key(Value::to_string);
}

/// Undoes a URL encoding; None: it is none.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_mean_the_same_are_the_same() {
        let one = r#"{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Sid": "",
            "Action": "S3:GetObject", "Resource": "arn:aws:s3:::a",
            "Condition": {"Bool": {"AWS:SecureTransport": true}}}}"#;
        let other = r#"{"Statement": [{"Resource": ["arn:aws:s3:::a"], "Effect": "Allow",
            "Action": ["s3:getobject", "s3:GetObject"],
            "Condition": {"Bool": {"aws:SecureTransport": ["true"]}}}], "Version": "2012-10-17"}"#;
        assert!(is_same(one, other));
        let encoded: String = other.bytes().map(|byte| format!("%{byte:02X}")).collect();
        assert!(is_same(one, &encoded));
        assert_eq!(digest(one), digest(other));
        assert_eq!(digest(one).len(), 64);
    }

    #[test]
    fn effect_condition_resource_and_language_make_a_difference() {
        let statement = Statement {
            resource: "arn:aws:s3:::a".to_owned(),
            action: vec!["s3:GetObject".to_owned()],
            ..Statement::default()
        };
        let text =
            |statement: &Statement| of_statements(std::slice::from_ref(statement)).to_string();
        let one = text(&statement);
        assert!(!is_same(&one, &text(&Statement { effect: Effect::Deny, ..statement.clone() })));
        let elsewhere = Statement { resource: "arn:aws:s3:::A".to_owned(), ..statement.clone() };
        assert!(!is_same(&one, &text(&elsewhere)));
        assert!(!is_same(&one, &one.replace("2012", "2008")));
        assert!(!is_same(&one, "no document") && !is_same("%zz", "%zz"));
    }

    #[test]
    fn the_order_of_statements_and_actions_makes_none() {
        let statement = |resource: &str| Statement {
            resource: format!("arn:aws:s3:::{resource}"),
            action: vec!["s3:Put*".to_owned(), "s3:Get*".to_owned()],
            ..Statement::default()
        };
        let one = of_statements(&[statement("a"), statement("b")]).to_string();
        let mut second = statement("a");
        second.action.reverse();
        assert!(is_same(&one, &of_statements(&[statement("b"), second]).to_string()));
    }

    #[test]
    fn trust_is_for_one_subject_and_one_audience() {
        let provider = "arn:aws:iam::1:oidc-provider/issuer.example";
        let trusted = Trusted { provider, subject: "system:serviceaccount:a:b", audience: "sts" };
        let text = trusted.document("Epoch1").to_string();
        assert!(text.contains("issuer.example:sub") && text.contains("issuer.example:aud"));
        assert_eq!(only_subject(&text, provider).as_deref(), Some("system:serviceaccount:a:b"));
        assert_eq!(only_subject(&text, "arn:aws:iam::1:oidc-provider/other"), None);
        assert_eq!(only_subject(&closed("Epoch1").to_string(), provider), None);
    }
}
