//! Where a namespace with cloud roles fits, and what a Placement says about waiting for them.

use super::*;

/// Rights of one role, as the identities system writes them.
fn rights() -> Value {
    json!([{"uid": "uid-role", "name": "app", "epoch": 7, "state": "Ready"}])
}

fn with_issuer(name: &str, is_ready: &str) -> Value {
    let mut object = cluster(name, json!({}));
    let conditions = object["status"]["conditions"].as_array_mut().expect("conditions");
    conditions.push(json!({
        "type": "IssuerReady", "status": is_ready, "reason": "Provider", "message": "",
        "lastTransitionTime": "2001-01-01T00:00:00Z",
    }));
    object
}

fn placement(spec: Value) -> Value {
    json!({"kind": "Placement", "metadata": {"name": "p", "uid": "uid-p"}, "spec": spec})
}

fn moving(further: Vec<Value>) -> (TestServers, Run<Nothing>) {
    let grant = granted("shop", "a", json!({"status": {"rights": rights()}}));
    settled(
        vec![asking_for("b"), cluster("a", json!({})), grant].into_iter().chain(further).collect(),
    )
}

#[test]
fn nothing_is_stopped_for_a_move_to_a_cluster_whose_issuer_the_cloud_does_not_know() {
    for b in [cluster("b", json!({})), with_issuer("b", "False"), with_issuer("b", "Unknown")] {
        let (world, run) = moving(vec![b]);
        let status = &grant_in(&world, &grant_of("shop"))["status"];
        assert_eq!((&status["phase"], &status["epoch"]), (&json!("Granted"), &json!(7)));
        let (_, reason, message) = placed(&world);
        assert_eq!(reason, "DesiredClusterDoesNotFit");
        let wanted = "IssuerNotReady, role app of the namespace needs a cluster with condition \
            IssuerReady; the namespace stays on cluster a until then";
        assert!(message.ends_with(wanted), "{message}");
        assert_eq!(run.events[0].reason, "MoveDelayed");
    }
    let (world, _) = moving(vec![with_issuer("b", "True")]);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Revoking");
}

#[test]
fn why_the_issuer_of_a_cluster_is_not_ready_is_said_where_the_namespace_stays() {
    let mut b = with_issuer("b", "False");
    let conditions = b["status"]["conditions"].as_array_mut().expect("conditions");
    let issuer = conditions.last_mut().expect("that of the issuer");
    issuer["message"] = json!("the cluster c reports the issuer https://x, too");
    let said = |b: Value| placed(&moving(vec![b]).0).2;
    issuer["next"] = json!("give each cluster an issuer of its own");
    let wanted = "condition IssuerReady (the cluster c reports the issuer https://x, too: \
        give each cluster an issuer of its own); the namespace stays on cluster a until then";
    let message = said(b.clone());
    assert!(message.ends_with(wanted), "{message}");
    b["status"]["conditions"].as_array_mut().expect("conditions").retain(|it| it["next"].is_null());
    assert!(!said(b).contains('('), "nothing is known");
}

#[test]
fn a_placement_that_does_not_wait_for_rights_needs_no_issuer() {
    let (world, _) =
        moving(vec![cluster("b", json!({})), placement(json!({"awaitRights": false}))]);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(grant["status"]["phase"], "Revoking");
    assert_eq!(grant["spec"]["awaitRights"], false, "it is noted with the target");
    let (world, _) = moving(vec![cluster("b", json!({})), placement(json!({"awaitRights": true}))]);
    assert_eq!(grant_in(&world, &grant_of("shop"))["status"]["phase"], "Granted");
}

#[test]
fn what_a_placement_says_of_rights_reaches_the_grant_and_leaves_it_again() {
    let said = |before: Value, spec: Value| {
        let grant = granted("shop", "a", json!({"spec": before}));
        let (world, _) =
            settled(vec![shop(json!({})), cluster("a", json!({})), placement(spec), grant]);
        grant_in(&world, &grant_of("shop"))["spec"]["awaitRights"].clone()
    };
    assert_eq!(said(json!({}), json!({"awaitRights": false})), false);
    assert_eq!(said(json!({"awaitRights": false}), json!({})), Value::Null);
    assert_eq!(said(json!({"awaitRights": false}), json!({"awaitRights": true})), true);
}

#[test]
fn an_owner_whose_issuer_is_not_ready_any_more_keeps_what_it_has() {
    let grant = granted("shop", "a", json!({"status": {"rights": rights()}}));
    let (world, _) =
        settled(vec![shop(json!({})), with_issuer("a", "False"), with_issuer("b", "True"), grant]);
    let status = &grant_in(&world, &grant_of("shop"))["status"];
    assert_eq!((&status["phase"], &status["owner"]), (&json!("Granted"), &reference("a")));
    assert_eq!(placed(&world).0, "True");
}

#[test]
fn data_is_fetched_from_a_cluster_whose_issuer_is_not_ready() {
    let in_place = pin("data", &json!({"inPlace": {"cluster": reference("a"), "volume": "v"}}));
    let status = json!({
        "phase": "Released", "claims": [listed("data", "Waiting")], "pins": [in_place],
        "rights": rights(),
    });
    let classes = json!({"status": {"storageClasses": [{"name": "c", "isDefault": true, "canSnapshot": true}]}});
    let (world, _) = settled(vec![
        asking_for("b"),
        patched(with_issuer("a", "False"), &classes),
        patched(with_issuer("b", "True"), &classes),
        claim("shop", "data", json!({})),
        granted("shop", "a", json!({"status": status, "spec": {"target": reference("b")}})),
    ]);
    let status = &grant_in(&world, &grant_of("shop"))["status"];
    assert_eq!((&status["owner"], &status["epoch"]), (&reference("a"), &json!(8)));
}

#[test]
fn what_was_said_of_the_rights_of_an_owner_does_not_hold_of_the_next() {
    let said = json!([{
        "type": "RightsReady", "status": "True", "reason": "Trusted", "message": "",
        "lastTransitionTime": "2001-01-01T00:00:00Z",
    }]);
    let status = json!({"phase": "Released", "rights": rights(), "conditions": said});
    let (world, _) = settled(vec![
        shop(json!({})),
        with_issuer("a", "True"),
        granted("shop", "a", json!({"status": status})),
    ]);
    let grant = grant_in(&world, &grant_of("shop"));
    assert_eq!(
        (&grant["status"]["phase"], &grant["status"]["epoch"]),
        (&json!("Granted"), &json!(8))
    );
    assert!(condition(&grant, "RightsReady").is_null());
    assert_eq!(grant["status"]["rights"], rights(), "only the identities system writes them");
}
