//! TokenRequest: what a token of a ServiceAccount is to be, and the answer that carries it.

use super::identity::ServiceAccount;
use super::tokens::{Bound, BoundKind, Reference, TokenSpec};
use crate::status::{FieldError, Status};
use crate::timestamp;
use serde_json::{Value, json};

const GROUP: &str = "authentication.k8s.io";
const DEFAULT_SECONDS: i64 = 3600;
const LEAST_SECONDS: i64 = 600;
/// Upstream's limit.
const MOST_SECONDS: i64 = 1 << 32;
/// What we give at most, whatever is asked for: a token that outlives a year is a password.
const GIVEN_SECONDS: i64 = 365 * 86_400;

/// What a request asks for. If the token is to be bound, [`bind`] must look at the object first:
/// the uid in the specification is only what the client believes.
pub fn specification(
    request: &Value,
    account: &ServiceAccount<'_>,
    cluster_id: &str,
) -> Result<TokenSpec, Status> {
    check_metadata(request, account)?;
    let empty = json!({});
    let spec = request.get("spec").filter(|spec| !spec.is_null()).unwrap_or(&empty);
    let asked = match spec.get("expirationSeconds").filter(|seconds| !seconds.is_null()) {
        None => DEFAULT_SECONDS,
        Some(seconds) => seconds.as_i64().unwrap_or_default(),
    };
    let outside = if asked < LEAST_SECONDS {
        Some("may not specify a duration less than 10 minutes")
    } else if asked > MOST_SECONDS {
        Some("may not specify a duration larger than 2^32 seconds")
    } else {
        None
    };
    if let Some(detail) = outside {
        let error = FieldError::invalid("spec.expirationSeconds", &json!(asked), detail);
        return Err(Status::invalid(GROUP, "TokenRequest", "", &[error]));
    }
    let audiences = spec.get("audiences").and_then(Value::as_array);
    let audiences = audiences.into_iter().flatten().filter_map(Value::as_str);
    Ok(TokenSpec {
        cluster: cluster_id.to_owned(),
        namespace: account.namespace.to_owned(),
        name: account.name.to_owned(),
        uid: account.uid.to_owned(),
        audiences: audiences.filter(|one| !one.is_empty()).map(str::to_owned).collect(),
        lifetime_seconds: asked.min(GIVEN_SECONDS),
        bound: bound(spec)?,
        node: None,
        warn_after_seconds: None,
    })
}

/// What the request says about itself must be about the account in the path.
fn check_metadata(request: &Value, account: &ServiceAccount<'_>) -> Result<(), Status> {
    let given = |field: &str| {
        let value = request.get("metadata").and_then(|metadata| metadata.get(field));
        value.and_then(Value::as_str).filter(|text| !text.is_empty())
    };
    for (field, own) in [("name", account.name), ("namespace", account.namespace)] {
        if let Some(other) = given(field).filter(|other| *other != own) {
            let detail = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(format!("metadata.{field}"), &json!(other), detail);
            return Err(Status::invalid(GROUP, "TokenRequest", account.name, &[error]));
        }
    }
    if let Some(other) = given("uid").filter(|other| *other != account.uid) {
        let why = format!(
            "the UID in the token request ({other}) does not match the UID of the service account ({})",
            account.uid
        );
        return Err(Status::conflict(GROUP, "TokenRequest", account.name, why));
    }
    Ok(())
}

fn bound(spec: &Value) -> Result<Option<Bound>, Status> {
    let Some(reference) = spec.get("boundObjectRef").filter(|reference| !reference.is_null())
    else {
        return Ok(None);
    };
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let kind = match (text("apiVersion"), text("kind")) {
        ("" | "v1", "Pod") => BoundKind::Pod,
        ("" | "v1", "Secret") => BoundKind::Secret,
        ("" | "v1", "Node") => BoundKind::Node,
        (version, kind) => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    if text("name").is_empty() {
        let error = FieldError::required("spec.boundObjectRef.name", "");
        return Err(Status::invalid(GROUP, "TokenRequest", "", &[error]));
    }
    let object = Reference { name: text("name").to_owned(), uid: text("uid").to_owned() };
    Ok(Some(Bound { kind, object }))
}

/// Binds the token to the object as it is stored: fills in its uid, and refuses another one, and a
/// pod of another account. Whoever calls this has looked the object up and answered 404 if it was
/// not there.
pub fn bind(spec: &mut TokenSpec, object: &Value) -> Result<(), Status> {
    let Some(bound) = &mut spec.bound else { return Ok(()) };
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    if bound.kind == BoundKind::Pod {
        let account = object.pointer("/spec/serviceAccountName").and_then(Value::as_str);
        if account.unwrap_or_default() != spec.name {
            return Err(Status::bad_request(format!(
                "cannot bind token for serviceaccount {:?} to pod running with different \
                 serviceaccount name.",
                spec.name
            )));
        }
        let node = object.pointer("/spec/nodeName").and_then(Value::as_str);
        spec.node = node
            .filter(|name| !name.is_empty())
            .map(|name| Reference { name: name.to_owned(), uid: String::new() });
    }
    if !bound.object.uid.is_empty() && bound.object.uid != uid {
        let kind = match bound.kind {
            BoundKind::Pod => "Pod",
            BoundKind::Secret => "Secret",
            BoundKind::Node => "Node",
        };
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. \
             The object might have been deleted and then recreated",
            bound.object.uid
        );
        return Err(Status::conflict("", kind, &bound.object.name, why));
    }
    bound.object.uid = uid.to_owned();
    Ok(())
}

/// The answer: the request made whole, with the token. It is the only place that shows a token.
pub fn answer(request: &Value, spec: &TokenSpec, token: &str, now_seconds: i64) -> Value {
    let mut asked = json!({
        "audiences": spec.audiences,
        "expirationSeconds": spec.lifetime_seconds,
        "boundObjectRef": null,
    });
    if let Some(reference) = request.pointer("/spec/boundObjectRef") {
        asked["boundObjectRef"] = reference.clone();
    }
    json!({
        "kind": "TokenRequest",
        "apiVersion": format!("{GROUP}/v1"),
        "metadata": {
            "name": spec.name,
            "namespace": spec.namespace,
            "uid": spec.uid,
            "creationTimestamp": timestamp::seconds(now_seconds),
        },
        "spec": asked,
        "status": {
            "token": token,
            "expirationTimestamp":
                timestamp::seconds(now_seconds.saturating_add(spec.lifetime_seconds)),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: ServiceAccount<'_> =
        ServiceAccount { namespace: "ci", name: "builder", uid: "u1" };

    fn asked(request: Value) -> Result<TokenSpec, Status> {
        specification(&request, &ACCOUNT, "c1")
    }

    #[test]
    fn an_empty_request_gets_an_hour() {
        let spec = asked(json!({})).expect("fine");
        assert_eq!(spec.lifetime_seconds, 3600);
        assert_eq!((spec.cluster.as_str(), spec.uid.as_str()), ("c1", "u1"));
        assert!(spec.audiences.is_empty() && spec.bound.is_none());
    }

    #[test]
    fn times_outside_the_limits_are_refused_and_long_ones_shortened() {
        let with = |seconds: i64| asked(json!({"spec": {"expirationSeconds": seconds}}));
        assert_eq!(
            with(599).expect_err("too short").message,
            r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"#
        );
        assert_eq!(with(600).expect("allowed").lifetime_seconds, 600);
        assert_eq!(with(1 << 32).expect("allowed").lifetime_seconds, GIVEN_SECONDS);
        assert_eq!(with((1 << 32) + 1).expect_err("too long").code, 422);
        assert!(asked(json!({"spec": {"expirationSeconds": "x"}})).is_err());
    }

    #[test]
    fn a_request_must_be_about_the_account_in_the_path() {
        let with = |field: &str, value: &str| asked(json!({"metadata": {field: value}}));
        assert!(with("name", "builder").is_ok());
        assert_eq!(with("name", "other").expect_err("another").code, 422);
        assert_eq!(with("namespace", "other").expect_err("another").code, 422);
        assert_eq!(with("uid", "u2").expect_err("another").code, 409);
    }

    #[test]
    fn a_token_is_bound_to_the_object_that_is_there() {
        let request = json!({"spec": {"boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p1",
        }}});
        let pod = |uid: &str, account: &str| {
            json!({"metadata": {"uid": uid},
                   "spec": {"serviceAccountName": account, "nodeName": "n"}})
        };
        let mut spec = asked(request.clone()).expect("fine");
        bind(&mut spec, &pod("p1", "builder")).expect("the same pod");
        assert_eq!(spec.node, Some(Reference { name: "n".into(), uid: String::new() }));
        let mut spec = asked(request).expect("fine");
        assert_eq!(bind(&mut spec, &pod("p2", "builder")).expect_err("another").code, 409);
        assert_eq!(bind(&mut spec, &pod("p1", "other")).expect_err("not its own").code, 400);
        let secret = json!({"spec": {"boundObjectRef": {"kind": "Secret", "name": "s"}}});
        let mut spec = asked(secret).expect("fine");
        bind(&mut spec, &json!({"metadata": {"uid": "s1"}})).expect("no uid was asked for");
        assert_eq!(spec.bound.expect("bound").object.uid, "s1");
    }

    #[test]
    fn a_token_cannot_be_bound_to_anything_else() {
        let with = |reference: Value| asked(json!({"spec": {"boundObjectRef": reference}}));
        let refused = with(json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}));
        assert_eq!(
            refused.expect_err("no such binding").message,
            "cannot bind token to object of type apps/v1, Kind=Deployment"
        );
        assert_eq!(with(json!({"kind": "Pod"})).expect_err("no name").code, 422);
        for odd in [json!(7), json!([]), json!("x"), json!({"kind": 7})] {
            assert!(with(odd).is_err());
        }
    }

    #[test]
    fn the_answer_is_whole() {
        let spec = asked(json!({"spec": {"audiences": ["a", "", 7]}})).expect("fine");
        let answer = answer(&json!({}), &spec, "tok", 0);
        assert_eq!(answer["status"]["token"], "tok");
        assert_eq!(answer["status"]["expirationTimestamp"], "1970-01-01T01:00:00Z");
        assert_eq!(answer["spec"]["audiences"], json!(["a"]));
        assert_eq!(answer["metadata"]["name"], "builder");
    }
}
