//! Updates of a cluster of `interlock up`: what the processes behind a Deployment say in a file outside is what ran.

use super::fleet::{interlock, run, until};
use super::registering::Up;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A folder with a bundle whose process says which version it is.
fn bundle(up: &Up, version: &str, readiness: &str) -> PathBuf {
    let folder = up.path(version);
    fs::create_dir_all(&folder).expect("the directory is ours");
    let log = up.path("versions");
    let text = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: web}}\n---\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata: {{namespace: web, name: web}}\nspec:\n  replicas: 1\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
         terminationGracePeriodSeconds: 1\n      containers:\n      - name: web\n        image: none\n        \
         command: [sh, -c, \"while :; do echo {version} >> {}; sleep 0.1; done\"]\n        \
         readinessProbe: {{exec: {{command: [\"{readiness}\"]}}, periodSeconds: 1}}\n",
        log.display()
    );
    fs::write(folder.join("web.yaml"), text).expect("the directory is ours");
    folder
}

/// Asks for a version and waits until the request has ended: the exit status, and the request.
fn submit(up: &Up, folder: &PathBuf, further: &[&str]) -> (Option<i32>, Value) {
    let mut command = interlock();
    command.env("HOME", up.path("home")).args(["rollout", "submit", "west", "--directory"]);
    command.arg(folder).args(["--soak", "1s", "--wait", "-o", "json"]).args(further);
    command.arg("--kubeconfig").arg(up.path("config"));
    let said = run(command);
    let request = serde_json::from_str(&said.out);
    (said.code, request.unwrap_or_else(|_| panic!("{said:#?}\n{}", up.process.says())))
}

fn runs(up: &Up, version: &str) {
    until(&format!("{version} runs"), || {
        let text = fs::read_to_string(up.path("versions")).unwrap_or_default();
        if text.lines().last() == Some(version) { Ok(()) } else { Err(up.process.says()) }
    });
}

#[test]
fn a_bad_version_is_rolled_back_and_remembered() {
    let up = Up::start();
    for version in ["v1", "v2"] {
        let (code, request) = submit(&up, &bundle(&up, version, "true"), &[]);
        assert_eq!((code, &request["phase"]), (Some(0), &"Succeeded".into()), "{request:#}");
        runs(&up, version);
    }
    let bad = bundle(&up, "v3", "false");
    let (code, request) = submit(&up, &bad, &["--deadline", "6s"]);
    assert_eq!((code, &request["phase"]), (Some(1), &"RolledBack".into()), "{request:#}");
    runs(&up, "v2");
    let (code, request) = submit(&up, &bad, &["--deadline", "6s"]);
    assert_eq!((code, &request["phase"]), (Some(1), &"Rejected".into()), "{request:#}");
    assert_eq!(request["reason"], "KnownBad", "{request:#}");
    let history = up.run(&["rollout", "history", "west"]);
    assert!(history.contains("RolledBack") && history.contains("Rejected"), "{history}");
    assert!(up.run(&["rollout", "status", "west"]).contains("version 2"), "{history}");
    // The same once more changes nothing.
    let (code, request) = submit(&up, &bundle(&up, "v2", "true"), &[]);
    assert_eq!((code, &request["phase"]), (Some(0), &"Succeeded".into()), "{request:#}");
    up.end();
}
