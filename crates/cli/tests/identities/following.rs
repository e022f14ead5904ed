//! A namespace moves, and its role with it: the same role, which trusts the cluster that has the namespace.

use super::cloud::token;
use super::up::{Up, cloud_name, example, identities, until};
use interlock_api::names::downstream_namespace;
use interlock_iam::Outcome;
use serde_json::{Value, json};

pub(crate) const NAME: &str = "s3put";

/// The id of the role that a token opens, or why it does not.
fn assumes(up: &Up, arn: &str, token: &str) -> Result<String, String> {
    let caller = up.caller();
    match caller.assume(arn, token) {
        Outcome::Done(session) => Ok(session.assumed_role_id),
        Outcome::Refused(refusal) => Err(refusal.code),
        Outcome::Unknown(why) => panic!("{why}"),
    }
}

/// Waits until a cluster has the namespace, runs it, and the role trusts that cluster.
pub(crate) fn runs_on(up: &Up, cluster: &str, epoch: i64) {
    until(&format!("the namespace runs on {cluster}"), || {
        let grants = up.get("/apis/interlock.dev/v1alpha1/grants");
        let status = &grants["items"][0]["status"];
        let right = &status["rights"][0];
        let is_there = status["owner"]["name"] == cluster && status["phase"] == "Granted";
        let is_trusted = right["state"] == "Ready" && right["epoch"] == epoch;
        match is_there && is_trusted && super::up::is(&grants["items"][0], "Running", "True") {
            true => Ok(()),
            false => Err(format!("{status:#}\n{}", up.says())),
        }
    });
}

pub(crate) fn desire(up: &Up, cluster: &str) {
    let change = json!({"metadata": {"annotations": {"interlock.dev/cluster": cluster}}});
    up.client().must("PATCH", "/api/v1/namespaces/shop", Some(&change));
}

#[test]
fn the_role_stays_the_same_and_trusts_the_cluster_that_has_the_namespace() {
    let up = Up::of("west,east");
    let shop = json!({"metadata": {"name": "shop", "labels": {"interlock.dev/placed": "true"},
        "annotations": {"interlock.dev/cluster": "west"}}});
    let made = up.client().must("POST", "/api/v1/namespaces", Some(&shop));
    let uid = made["metadata"]["uid"].as_str().expect("a uid");
    let below = downstream_namespace("shop", uid);
    up.client().must("POST", &identities("shop"), Some(&example(NAME)));
    runs_on(&up, "west", 1);
    let declared = up.created(&format!("{}/{NAME}", identities("shop")));
    let arn = declared["status"]["roleARN"].as_str().expect("an ARN").to_owned();
    let carried = format!("/clusters/west/api/v1/namespaces/{below}/serviceaccounts/{NAME}");
    until("the annotated account is carried down", || {
        let account = up.get(&carried);
        let annotated = &account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"];
        if *annotated == *arn { Ok(()) } else { Err(format!("{account:#}")) }
    });
    let of_west = token(&mut up.client(), "west", &below, NAME);
    let id = assumes(&up, &arn, &of_west).expect("the owner may assume the role");

    // The same names on another cluster are another account.
    let there = json!({"metadata": {"name": &below}});
    up.client().must("POST", "/clusters/east/api/v1/namespaces", Some(&there));
    let accounts = format!("/clusters/east/api/v1/namespaces/{below}/serviceaccounts");
    up.client().must("POST", &accounts, Some(&json!({"metadata": {"name": NAME}})));
    let of_nobody = token(&mut up.client(), "east", &below, NAME);
    assert_eq!(assumes(&up, &arn, &of_nobody), Err("AccessDenied".to_owned()));
    up.client().must("DELETE", &format!("/clusters/east/api/v1/namespaces/{below}"), None);
    up.gone(&format!("/clusters/east/api/v1/namespaces/{below}"));

    desire(&up, "east");
    runs_on(&up, "east", 2);
    until("the account is carried down", || match up.get(&format!("{accounts}/{NAME}")) {
        Value::Null => Err("not yet".to_owned()),
        _ => Ok(()),
    });
    let of_east = token(&mut up.client(), "east", &below, NAME);
    assert_eq!(assumes(&up, &arn, &of_east), Ok(id), "the same role, by its id");
    assert_eq!(assumes(&up, &arn, &of_west), Err("AccessDenied".to_owned()));

    // What the command says of it.
    let (code, said) = up.run(&["identity", "explain", &format!("shop/{NAME}"), "-o", "json"]);
    assert_eq!(code, Some(0), "{said}");
    let said: Value = serde_json::from_str(&said).expect("it is JSON");
    let row = |object: &str| {
        let mut rows = said["objects"].as_array().expect("rows").iter();
        rows.find(|row| row["object"] == object).unwrap_or_else(|| panic!("{object}: {said:#}"))
    };
    assert_eq!(row("Role")["arn"], arn, "{said:#}");
    assert_eq!(row("OIDC provider")["ready"], "True", "that of the owner: {said:#}");
    for row in said["objects"].as_array().expect("rows") {
        assert_ne!(row["next"]["does"], "call", "all is as declared: {said:#}");
    }
    let (_, said) = up.run(&["identity", "orphans"]);
    assert_eq!(said, "nothing is left over\n");
    assert!(up.in_the_cloud().0 == [cloud_name("shop", NAME)]);
}
