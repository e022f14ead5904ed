//! What is refused before anybody is asked.

use crate::wire::{Reached, V5};
use crate::{PODS, Scene};
use serde_json::json;

#[tokio::test]
async fn pods_that_nobody_runs_say_so() {
    let mut scene = Scene::new().await;
    scene.nobody_runs_pods_any_more();
    for subresource in ["log", "exec", "attach", "portforward"] {
        let answer = scene.admin.get(&format!("{PODS}/web/{subresource}")).await;
        assert_eq!(answer.code, 404, "{subresource}: {}", answer.text());
        let why = "pod web does not run: this server keeps pods, but runs none";
        assert_eq!(answer.json["message"], why);
    }
    // Nor does whoever runs the pods of one cluster run those of another.
    let answer = crate::Asker::admin(&scene.admin.server).get(&format!("{PODS}/web/log")).await;
    assert_eq!(answer.code, 404);
}

#[tokio::test]
async fn pods_that_do_not_run_yet_say_why() {
    let scene = Scene::new().await;
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "it failed"}});
    let status = json!({
        "phase": "Running",
        "containerStatuses": [{
            "name": "web", "image": "web:1", "imageID": "", "ready": false, "restartCount": 0,
            "state": waiting,
        }],
    });
    scene.pod("failing", &status).await;
    scene.pod("new", &json!({"phase": "Pending"})).await;
    scene.pod("over", &json!({"phase": "Succeeded"})).await;
    for (path, code, why) in [
        ("new/log", 400, "container \"web\" in pod \"new\" is waiting to start: ContainerCreating"),
        ("failing/log", 400, "is waiting to start: CrashLoopBackOff"),
        (
            "web/log?previous=true",
            400,
            "previous terminated container \"web\" in pod \"web\" not found",
        ),
        ("web/log?container=db", 400, "container db is not valid for pod web"),
        ("web/log?tailLines=-1", 422, "tailLines: Invalid value: -1"),
        ("nobody/log", 404, "pods \"nobody\" not found"),
    ] {
        let answer = scene.admin.get(&format!("{PODS}/{path}")).await;
        let message = answer.json["message"].as_str().unwrap_or_default().to_owned();
        assert!(answer.code == code && message.contains(why), "{path}: {}", answer.text());
    }
    assert!(scene.fake.logs.lock().expect("no panic").is_empty());
    let answer = scene.admin.post(&format!("{PODS}/web/log"), &json!({})).await;
    assert_eq!(answer.code, 405, "{}", answer.text());
}

#[tokio::test]
async fn whoever_may_read_pods_may_not_read_their_logs() {
    let scene = Scene::new().await;
    let user = scene.user("reader", &[("get", "pods"), ("get", "pods/exec")]).await;
    let answer = user.get(&format!("{PODS}/web/log")).await;
    assert_eq!(answer.code, 403, "{}", answer.text());
    let why = answer.json["message"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("cannot get resource \"pods/log\""), "{why}");
}

#[tokio::test]
async fn what_is_read_and_done_in_pods_is_written_down() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_directory = Some(directory.path().to_owned());
    let config = interlock_apiserver::Config { data_directory, ..Default::default() };
    let scene = Scene::with(config).await;
    scene.admin.get(&format!("{PODS}/web")).await;
    scene.admin.get(&format!("{PODS}/web/log")).await;
    scene.admin.get(&format!("{PODS}/web/exec?command=cat&stdout=true")).await;
    scene.admin.server.stop().await;
    let log = std::fs::read_to_string(directory.path().join("audit.log")).expect("a log");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let reads: Vec<(&str, &str, i64)> = lines
        .iter()
        .filter(|line| line["verb"] == "get")
        .map(|line| {
            let subresource = line["objectRef"]["subresource"].as_str().unwrap_or_default();
            let stage = line["stage"].as_str().unwrap_or_default();
            (subresource, stage, line["responseStatus"]["code"].as_i64().unwrap_or_default())
        })
        .collect();
    assert_eq!(reads, [("log", "ResponseStarted", 200), ("exec", "ResponseComplete", 400)]);
}

#[tokio::test]
async fn a_policy_refuses_a_command_before_there_is_a_connection() {
    let reached = Reached::new().await;
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"metadata": {"name": "no-shell"}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec"],
            "operations": ["CONNECT"],
        }]},
        "validations": [{"expression": "object.command[0] != 'sh'"}],
    }});
    let admin = &reached.scene.admin;
    admin.make(&format!("{admission}/validatingadmissionpolicies"), &policy).await;
    let binding = json!({"metadata": {"name": "no-shell"},
        "spec": {"policyName": "no-shell", "validationActions": ["Deny"]}});
    admin.make(&format!("{admission}/validatingadmissionpolicybindings"), &binding).await;
    let shell = "web/exec?command=sh&stdout=true";
    let (head, _) = reached.websocket_as("admin-token", shell, V5).await;
    assert!(head.starts_with("HTTP/1.1 422 "), "{head}");
    assert!(reached.scene.fake.commands.lock().expect("no panic").is_empty());
    let mut client = reached.websocket("web/exec?command=cat&stdout=true", V5).await;
    assert_eq!(client.next().await.as_deref(), Some(&[1][..]), "it runs");
}
