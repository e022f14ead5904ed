//! Which tokens a pod wants, when one is asked for, and what a whole run with them looks like.

use super::*;
use crate::kinds::{NAMESPACE, POD};
use crate::runtime::Runtime;
use crate::runtime::outside::{Action as MachineAction, FailedRequest};
use crate::syncer::tests::world::{BOOT, TestFleet};
use interlock_kernel::{Action, Step};
use serde_json::json;

const ROLE: &str = "arn:aws:iam::000000000000:role/app";

fn file(path: &str, seconds: u64) -> TokenFile {
    TokenFile { volume: "v".into(), path: path.into(), audience: None, seconds, mode: 0o600 }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn holding(files: &[(&TokenFile, i64)]) -> TokenFiles {
    let held = files.iter().map(|(file, issued)| HeldToken {
        asked: (*file).clone(),
        issued: at(*issued),
        life: Duration::from_secs(file.seconds),
    });
    TokenFiles { is_there: true, held: held.collect(), failed: None }
}

#[test]
fn a_token_is_renewed_when_four_fifths_of_its_life_are_over() {
    let wanted = [file("a", 600)];
    let held = holding(&[(&wanted[0], 1000)]);
    for (now, expected) in [
        (1000, Tokens::Good),
        (1479, Tokens::Good),
        (1480, Tokens::Due),
        (1600, Tokens::Due),
        (9999, Tokens::Due),
        // The clock was set back.
        (999, Tokens::Due),
    ] {
        assert_eq!(judge(&wanted, &held, at(now)).0, expected, "{now}");
    }
}

#[test]
fn the_life_that_the_server_gave_counts_and_not_the_one_that_was_asked_for() {
    let wanted = [file("a", 3600)];
    let mut held = holding(&[(&wanted[0], 1000)]);
    held.held[0].life = Duration::from_secs(600);
    assert_eq!(judge(&wanted, &held, at(1479)).0, Tokens::Good);
    assert_eq!(judge(&wanted, &held, at(1480)).0, Tokens::Due);
}

#[test]
fn a_token_that_is_missing_comes_before_one_that_is_old() {
    let wanted = [file("old", 600), file("new", 600)];
    let held = holding(&[(&wanted[0], 0)]);
    assert_eq!(judge(&wanted, &held, at(1000)), (Tokens::Due, Some(&wanted[1])));
    let both = holding(&[(&wanted[0], 0), (&wanted[1], 1000)]);
    assert_eq!(judge(&wanted, &both, at(1000)), (Tokens::Due, Some(&wanted[0])));
    assert_eq!(judge(&[], &both, at(1000)), (Tokens::None, None));
    let other = [TokenFile { audience: Some("vault".into()), ..file("old", 600) }];
    assert_eq!(judge(&other, &both, at(1000)).0, Tokens::Due, "it is for somebody else");
}

#[test]
fn a_request_that_came_to_nothing_is_made_again_after_a_while() {
    let wanted = [file("a", 600)];
    for (held, is_missing) in [(holding(&[]), true), (holding(&[(&wanted[0], 0)]), false)] {
        let failed = Some(FailedRequest { at: at(1000), because: "no".into() });
        let held = TokenFiles { failed, ..held };
        for (now, is_over) in [(1000, false), (1009, false), (1010, true), (999, true)] {
            let expected = if is_over { Tokens::Due } else { Tokens::Failing { is_missing } };
            assert_eq!(judge(&wanted, &held, at(now)).0, expected, "{now}");
        }
    }
}

/// A world with a pod of this spec, a permit, and a service account of a role.
fn world(spec: Value, role: Option<&str>) -> TestFleet {
    let mut world = TestFleet::new(&["a"]);
    let running = format!("1@{BOOT}");
    let namespace = json!({"metadata": {"annotations": {
        "interlock.dev/grant": "g-uid", "interlock.dev/running": running,
    }}});
    world.put(&NAMESPACE, Name::cluster_wide("g"), "a", namespace);
    let mut pod = json!({
        "metadata": {"uid": "p-uid", "labels": {"interlock.dev/grant": "g"},
            "finalizers": ["interlock.dev/process"]},
        "spec": {"runtimeClassName": "interlock-process", "serviceAccountName": "app",
            "containers": [{"name": "main", "command": ["x", "$(AWS_ROLE_ARN)"]}]},
    });
    json_patch(&mut pod["spec"], spec);
    world.put(&POD, Name::within("g", "p"), "a", pod);
    if let Some(role) = role {
        let account = match role {
            "" => json!({}),
            role => json!({"metadata": {"annotations": {ANNOTATION_ROLE: role}}}),
        };
        world.put(&SERVICE_ACCOUNT, Name::within("g", "app"), "a", account);
    }
    world
}

fn json_patch(spec: &mut Value, patch: Value) {
    for (key, value) in patch.as_object().cloned().unwrap_or_default() {
        spec[key] = value;
    }
}

fn with_volume() -> Value {
    json!({
        "containers": [{"name": "main", "command": ["x"], "volumeMounts": [
            {"name": "vault", "mountPath": "/var/run/vault", "readOnly": true}]}],
        "volumes": [{"name": "vault", "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"audience": "vault", "expirationSeconds": 600, "path": "t"}},
            {"serviceAccountToken": {"path": "api/t"}},
        ]}}],
    })
}

fn runtime() -> Runtime {
    let sts_endpoint = Some("http://127.0.0.1:1".to_owned());
    Runtime::new(BOOT).reaching(Cloud { sts_endpoint, ..Cloud::default() })
}

fn settle(world: &mut TestFleet) -> String {
    for _ in 0..20 {
        if !world.turn(&runtime(), "a") {
            break;
        }
    }
    match world.step(&runtime(), "a", "g/p") {
        Step::Rest { because } | Step::Wait { because, .. } => because,
        step => panic!("it does not come to rest: {step:?}"),
    }
}

fn action(world: &TestFleet) -> MachineAction {
    match world.step(&runtime(), "a", "g/p") {
        Step::Act(effect) => match effect.action {
            Action::Outside(action) => action,
            Action::Write(write) => panic!("a write: {write:?}"),
        },
        step => panic!("nothing is done: {step:?}"),
    }
}

fn pass(world: &mut TestFleet, seconds: i64) {
    world.now = Timestamp::from_second(world.now.as_second() + seconds).unwrap();
}

#[test]
fn a_projected_volume_of_tokens_is_filled_before_the_pod_starts() {
    let mut world = world(with_volume(), Some(""));
    let MachineAction::WriteToken(request) = action(&world) else { panic!("no token") };
    assert_eq!((&*request.namespace, &*request.service_account), ("g", "app"));
    assert_eq!((&*request.pod_name, &*request.pod_uid), ("p", "p-uid"));
    let vault = TokenFile {
        volume: "vault".into(),
        path: "t".into(),
        audience: Some("vault".into()),
        seconds: 600,
        mode: 0o644,
    };
    assert_eq!(request.file, vault);
    assert_eq!(settle(&mut world), "it runs");
    let machine = &world.machines["a"];
    let held: Vec<&TokenFile> =
        machine.tokens["p-uid"].held.iter().map(|held| &held.asked).collect();
    let api = TokenFile { path: "api/t".into(), audience: None, seconds: 3600, ..vault.clone() };
    assert_eq!(held, [&vault, &api]);
    let run = &machine.runs[0];
    let mount = TokenMount { name: "vault".into(), path: "/var/run/vault".into(), variable: None };
    assert_eq!((&run.mounts.len(), &run.token_mounts), (&0, &vec![mount]));
    assert!(!run.env.contains_key(ROLE_ARN));
}

#[test]
fn a_pod_whose_account_has_a_role_finds_its_token_by_the_environment() {
    let mut world = world(json!({}), Some(ROLE));
    assert_eq!(settle(&mut world), "it runs");
    let machine = &world.machines["a"];
    let asked = &machine.tokens["p-uid"].held[0].asked;
    assert_eq!(asked.audience.as_deref(), Some("sts.amazonaws.com"));
    assert_eq!((asked.seconds, asked.mode), (3600, 0o600));
    let run = &machine.runs[0];
    assert_eq!(run.env[ROLE_ARN], ROLE);
    assert_eq!(run.command, ["x", ROLE], "it is a variable like others");
    assert_eq!(run.env["AWS_ENDPOINT_URL_STS"], "http://127.0.0.1:1");
    assert!(!run.env.contains_key("AWS_REGION"), "this runtime has none");
    let variable = run.token_mounts[0].variable.as_ref().unwrap();
    assert_eq!((&*variable.name, &*variable.file), (TOKEN_FILE, "token"));
    assert_eq!(run.token_mounts[0].path, ROLE_PATH);
}

#[test]
fn what_the_pod_says_itself_is_not_said_over() {
    let env = json!([{"name": ROLE_ARN, "value": "mine"}, {"name": TOKEN_FILE, "value": "/t"}]);
    let spec = json!({"containers": [{"name": "main", "command": ["x"], "env": env}]});
    let mut world = world(spec, Some(ROLE));
    assert_eq!(settle(&mut world), "it runs");
    let run = &world.machines["a"].runs[0];
    assert_eq!((&*run.env[ROLE_ARN], &*run.env[TOKEN_FILE]), ("mine", "/t"));
    assert!(run.token_mounts.is_empty() && !world.machines["a"].tokens.contains_key("p-uid"));
}

#[test]
fn a_living_pod_gets_the_next_token_in_time_and_its_files_go_with_it() {
    let mut world = world(json!({}), Some(ROLE));
    settle(&mut world);
    let issued = |world: &TestFleet| world.machines["a"].tokens["p-uid"].held[0].issued;
    let first = issued(&world);
    pass(&mut world, 2879);
    assert_eq!(settle(&mut world), "it runs");
    assert_eq!(issued(&world), first);
    pass(&mut world, 1);
    assert_eq!(settle(&mut world), "it runs");
    assert_eq!(issued(&world), world.now, "renewed at 80 % of an hour");

    world.delete("a", &POD, &Name::within("g", "p"));
    assert!(matches!(action(&world), MachineAction::Terminate(_)), "{:?}", action(&world));
    settle(&mut world);
    assert!(!world.machines["a"].tokens.contains_key("p-uid"));
    assert_eq!(world.get("a", &POD, &Name::within("g", "p")), None);
}

#[test]
fn a_renewal_that_is_refused_does_not_keep_an_end_from_being_seen() {
    let mut world = world(json!({}), Some(ROLE));
    settle(&mut world);
    world.machines.get_mut("a").unwrap().no_tokens = Some("no such account".into());
    pass(&mut world, 3000);
    assert_eq!(settle(&mut world), "it runs");
    assert!(world.machines["a"].tokens["p-uid"].failed.is_some());
    pass(&mut world, 10);
    assert!(matches!(action(&world), MachineAction::WriteToken(_)), "it is tried again");
}

#[test]
fn a_pod_without_its_token_is_not_started_and_says_why() {
    let mut world = world(json!({}), Some(ROLE));
    world.machines.get_mut("a").unwrap().no_tokens = Some("no such account".into());
    let waits = "a token that the pod needs was not issued; it is asked for again";
    assert_eq!(settle(&mut world), waits);
    let pod = world.get("a", &POD, &Name::within("g", "p")).unwrap();
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["message"], "a token was not issued: no such account", "{pod}");
    world.machines.get_mut("a").unwrap().no_tokens = None;
    pass(&mut world, 10);
    assert_eq!(settle(&mut world), "it runs");
}

#[test]
fn an_account_that_is_not_there_yet_is_waited_for() {
    let mut world = world(json!({}), None);
    let missing = "ServiceAccount app does not exist on this cluster";
    assert_eq!(settle(&mut world), missing);
    let account = json!({"metadata": {"annotations": {ANNOTATION_ROLE: ROLE}}});
    world.put(&SERVICE_ACCOUNT, Name::within("g", "app"), "a", account);
    assert_eq!(settle(&mut world), "it runs");
    assert_eq!(world.machines["a"].runs[0].env[ROLE_ARN], ROLE);
}

#[test]
fn a_projected_volume_may_have_files_beside_its_tokens_and_nothing_else() {
    let with = |source: Value| {
        let mut spec = with_volume();
        let sources = spec["volumes"][0]["projected"]["sources"].as_array_mut().unwrap();
        sources.push(source);
        world(spec, Some(""))
    };
    let mut mixed = with(json!({"configMap": {"name": "c"}}));
    let config = json!({"data": {"a": "1"}});
    mixed.put(&crate::kinds::CONFIG_MAP, Name::within("g", "c"), "a", config);
    assert_eq!(settle(&mut mixed), "it runs");
    let files = &mixed.machines["a"].runs[0].files[0];
    assert!(files.has_tokens && files.files.as_ref().is_some_and(|files| files[0].path == "a"));
    let mut other = with(json!({"clusterTrustBundle": {"name": "c"}}));
    assert!(settle(&mut other).contains("a projected volume of clusterTrustBundle"));
}
