//! Updates of a cluster of `interlock up`, where what the processes behind a Deployment say in a file outside is what ran; and
//! of a cluster whose agent is a program of its own, which is killed and stopped while it works.

use super::fleet::{Fleet, GROUP, interlock, run, until};
use super::registering::Up;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

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

/// Asks for a version: the exit status, and the request.
fn rollout(up: &Up, folder: &Path, further: &[&str]) -> (Option<i32>, Value) {
    let mut command = interlock();
    command.env("HOME", up.path("home")).args(["rollout", "submit", "west", "--directory"]);
    command.arg(folder).args(["--soak", "1s", "-o", "json"]).args(further);
    command.arg("--kubeconfig").arg(up.path("config"));
    let said = run(command);
    let request = serde_json::from_str(&said.out);
    (said.code, request.unwrap_or_else(|_| panic!("{said:#?}\n{}", up.process.says())))
}

/// Asks for a version and waits until the request has ended: the exit status, and the request.
fn submit(up: &Up, folder: &Path, further: &[&str]) -> (Option<i32>, Value) {
    rollout(up, folder, &[&["--wait"], further].concat())
}

/// Asks for a version: the name of the request.
fn ask(up: &Up, folder: &Path, further: &[&str]) -> String {
    let (code, request) = rollout(up, folder, further);
    assert_eq!(code, Some(0), "{request:#}");
    request["name"].as_str().expect("it has one").to_owned()
}

/// Waits until a request is in a phase.
fn until_phase(up: &Up, name: &str, phase: &str) {
    until(&format!("the request {name} is {phase}"), || {
        let found = up.get(&format!("{UPDATES}/{name}"));
        match found["status"]["phase"] == phase {
            true => Ok(()),
            false => Err(format!("{found:#}\n{}", up.process.says())),
        }
    });
}

fn runs(up: &Up, version: &str) {
    until(&format!("{version} runs"), || {
        let text = fs::read_to_string(up.path("versions")).unwrap_or_default();
        if text.lines().last() == Some(version) { Ok(()) } else { Err(up.process.says()) }
    });
}

#[test]
fn a_bad_version_is_rolled_back_and_remembered_while_the_next_one_waits() {
    let up = Up::start();
    for version in ["v1", "v2"] {
        let (code, request) = submit(&up, &bundle(&up, version, "true"), &[]);
        assert_eq!((code, &request["phase"]), (Some(0), &"Succeeded".into()), "{request:#}");
        runs(&up, version);
    }
    // Something of version 3 is held, so its rollback takes until the test lets go of it.
    let bad = bundle(&up, "v3", "false");
    let held = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: web\n  name: held\n  \
                finalizers: [example.com/hold]\n";
    fs::write(bad.join("held.yaml"), held).expect("the directory is ours");
    let v3 = ask(&up, &bad, &["--deadline", "6s"]);
    until_phase(&up, &v3, "RollingBack");
    runs(&up, "v2");
    let v4 = ask(&up, &bundle(&up, "v4", "true"), &[]);
    until_phase(&up, &v4, "Queued");
    until_phase(&up, &v3, "RollingBack");
    let held = "/clusters/west/api/v1/namespaces/web/configmaps/held";
    let release = json!({"metadata": {"finalizers": null}});
    up.process.client().must("PATCH", held, Some(&release));
    until_phase(&up, &v3, "RolledBack");
    until_phase(&up, &v4, "Succeeded");
    runs(&up, "v4");

    let (code, request) = submit(&up, &bad, &["--deadline", "6s"]);
    assert_eq!((code, &request["phase"]), (Some(1), &"Rejected".into()), "{request:#}");
    assert_eq!(request["reason"], "KnownBad", "{request:#}");
    let history = up.run(&["rollout", "history", "west"]);
    assert!(history.contains("RolledBack") && history.contains("Rejected"), "{history}");
    assert!(up.run(&["rollout", "status", "west"]).contains("version 4"), "{history}");
    // The same once more changes nothing.
    let (code, request) = submit(&up, &bundle(&up, "v4", "true"), &[]);
    assert_eq!((code, &request["phase"]), (Some(0), &"Succeeded".into()), "{request:#}");
    up.end();
}

/// How many objects a bundle of [`update`] has: enough that an agent can be stopped between two of them.
const OBJECTS: usize = 60;
const UPDATES: &str = "/apis/interlock.dev/v1alpha1/namespaces/default/clusterupdates";
const MAPS: &str = "/clusters/west/api/v1/namespaces/default/configmaps";

/// An update of west to a version: every object says which. Those of one version are not named like those of another,
/// but for the first half. With a number of seconds it never becomes healthy, and is rolled back after so many.
fn update(version: &str, fails_after: Option<u64>) -> Value {
    let name = |number: usize| match number < OBJECTS / 2 {
        true => format!("both-{number}"),
        false => format!("{version}-{number}"),
    };
    let map = |number| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"version": version},
            "metadata": {"name": name(number), "namespace": "default"}})
    };
    let mut objects: Vec<Value> = (0..OBJECTS).map(map).collect();
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("gate-{version}"), "namespace": "default"},
        "spec": {"schedulingGates": [{"name": "example.com/never"}], "containers": [{"name": "a", "image": "none"}]}});
    objects.extend(fails_after.map(|_| pod));
    json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "ClusterUpdate",
        "metadata": {"name": version, "namespace": "default"},
        "spec": {"cluster": "west", "soakSeconds": 0, "deadlineSeconds": fails_after.unwrap_or(600),
            "source": {"inline": objects}}})
}

/// Waits until an update has ended; how.
fn ended(fleet: &Fleet, name: &str) -> Value {
    until(&format!("the update {name} ends"), || {
        let found = fleet.get(&format!("{UPDATES}/{name}"));
        let phase = found["status"]["phase"].as_str().unwrap_or_default().to_owned();
        let is_over = ["Succeeded", "RolledBack", "RollbackFailed", "Rejected", "Failed"];
        match is_over.contains(&phase.as_str()) {
            true => Ok(found["status"]["phase"].clone()),
            false => Err(fleet.story(&found)),
        }
    })
}

/// The versions of the ConfigMaps that are the rollouts', by name.
fn maps(fleet: &Fleet) -> Vec<(String, String)> {
    let found = fleet.get(&format!("{MAPS}?labelSelector=interlock.dev/rollout"));
    let word = |map: &Value, pointer: &str| {
        map.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let items = found["items"].as_array().cloned().unwrap_or_default();
    let all = items.iter().map(|map| (word(map, "/metadata/name"), word(map, "/data/version")));
    all.collect()
}

/// Waits until this version has begun to be applied, and is not there yet.
fn begun(fleet: &Fleet, version: &str) {
    until(&format!("{version} begins"), || {
        let there = maps(fleet).iter().filter(|(_, said)| said == version).count();
        if there > 0 { Ok(()) } else { Err(fleet.story(&Value::Null)) }
    });
}

/// Whatever was the rollouts' is of this version, and all of it is there.
fn is_exactly(fleet: &Fleet, version: &str) {
    let all = maps(fleet);
    assert!(all.iter().all(|(_, said)| said == version), "{version}: {all:?}");
    assert_eq!(all.len(), OBJECTS, "{version}: {all:?}");
}

#[test]
fn an_agent_that_is_killed_or_stopped_in_the_middle_leaves_exactly_the_target() {
    let fleet = Fleet::of(&["west"]);
    let submit = |version: &str, fails_after: Option<u64>| {
        fleet.client().must("POST", UPDATES, Some(&update(version, fails_after)));
    };
    submit("v1", None);
    assert_eq!(ended(&fleet, "v1"), "Succeeded");
    is_exactly(&fleet, "v1");
    let report = fleet.get(&format!("{GROUP}/rolloutreports"));
    assert_eq!(report["items"][0]["status"]["fence"]["mode"], "Exact", "{report:#}");

    // Killed while it applies: the next one finishes, under the same token.
    submit("v2", None);
    begun(&fleet, "v2");
    fleet.kill("west");
    fleet.start("west");
    assert_eq!(ended(&fleet, "v2"), "Succeeded");
    is_exactly(&fleet, "v2");

    // Stopped while it applies what never becomes healthy, and woken after another one has rolled that back.
    submit("v3", Some(5));
    begun(&fleet, "v3");
    fleet.freeze("west");
    fleet.start("west");
    assert_eq!(ended(&fleet, "v3"), "RolledBack");
    is_exactly(&fleet, "v2");
    fleet.thaw();
    submit("v4", None);
    assert_eq!(ended(&fleet, "v4"), "Succeeded");
    is_exactly(&fleet, "v4");
    fleet.end(&[]);
}
