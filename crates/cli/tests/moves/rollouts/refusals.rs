//! Requests that are refused, each for its own reason, and leave nothing on the cluster.

use super::super::fleet::{Fleet, GROUP, until};
use super::{
    Asked, UPDATES, about_west, asked, ends_as, has_exactly, map, on_west, story, succeeds, token,
};
use interlock_api::names::{ANNOTATION_GRANT, downstream_namespace};
use serde_json::{Value, json};

/// How a request is to end.
struct End<'a> {
    phase: &'a str,
    reason: &'a str,
    /// What is in the message.
    words: &'a str,
}

/// A request that is checked, and fails before it starts.
fn unfit(words: &str) -> End<'_> {
    End { phase: "Failed", reason: "PreflightFailed", words }
}

fn rejected<'a>(reason: &'a str, words: &'a str) -> End<'a> {
    End { phase: "Rejected", reason, words }
}

fn rolled_back(words: &str) -> End<'_> {
    End { phase: "RolledBack", reason: "RolledBack", words }
}

/// Submits a request, and waits until it has ended as it is to.
fn ends(fleet: &Fleet, asked: &Asked<'_>, end: &End<'_>) {
    asked.submit(fleet);
    let status = ends_as(fleet, asked.name, end.phase);
    assert_eq!(status["reason"], end.reason, "{status:#}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains(end.words), "no {:?}: {status:#}", end.words);
    assert!(status["next"].is_string(), "a person has to know what to do: {status:#}");
}

/// Nothing of the rollouts is on west, and nothing ever was.
fn is_untouched(fleet: &Fleet) {
    has_exactly(fleet, &[]);
    assert_eq!(token(fleet), 0, "{}", story(fleet, &Value::Null));
}

/// A request whose objects are these and one that nothing is wrong with.
fn beside(name: &str, mut objects: Vec<Value>) -> Asked<'_> {
    objects.push(map("beside", name));
    asked(name, objects)
}

fn of_kind(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "default"}})
}

fn within(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

#[test]
fn a_bundle_that_is_not_valid_is_rejected_and_a_folder_with_one_is_not_even_asked_for() {
    let fleet = Fleet::of(&["west"]);
    let folder = fleet.path("bundle");
    std::fs::create_dir_all(&folder).expect("the directory is ours");
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: ConfigMap\n";
    std::fs::write(folder.join("all.yaml"), text).expect("the directory is ours");
    let path = folder.display().to_string();
    let said = fleet.run(&["rollout", "submit", "west", "--directory", &path]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.err.contains("all.yaml:5") && said.err.contains("apiVersion is missing"),
        "{said:?}"
    );
    let requests = fleet.get(UPDATES);
    assert_eq!(requests["items"], json!([]), "{requests:#}");

    let mut nameless = map("a", "a");
    nameless["metadata"] = json!({});
    let words = "ConfigMap: metadata.name is missing";
    ends(&fleet, &beside("nameless", vec![nameless]), &rejected("InvalidBundle", words));
    let twice = vec![map("a", "one"), map("a", "two")];
    let words = "it is in the bundle already";
    ends(&fleet, &beside("twice", twice), &rejected("InvalidBundle", words));

    let from = |name: &'static str| Asked {
        how: json!({"source": {"configMap": {"name": name}}}),
        ..asked(name, Vec::new())
    };
    ends(&fleet, &from("gone"), &rejected("SourceMissing", "default/gone"));
    let files = json!({"metadata": {"name": "torn"}, "data": {"web.yaml": "kind: [ConfigMap\n"}});
    let all = "/api/v1/namespaces/default/configmaps";
    fleet.client().must("POST", all, Some(&files));
    ends(&fleet, &from("torn"), &rejected("InvalidBundle", "web.yaml:"));

    let nowhere = Asked { cluster: "nowhere", ..asked("nowhere", vec![map("a", "a")]) };
    ends(&fleet, &nowhere, &rejected("UnknownCluster", "there is no WorkloadCluster nowhere"));
    is_untouched(&fleet);
    fleet.end(&[]);
}

#[test]
fn what_a_cluster_would_not_take_is_found_before_anything_is_written() {
    let fleet = Fleet::of(&["west"]);
    let widget = of_kind("example.com/v1", "Widget");
    ends(
        &fleet,
        &beside("kind", vec![widget]),
        &unfit("example.com/Widget/default/a: KindNotServed: "),
    );
    let system = within(map("a", "a"), "interlock-system");
    ends(&fleet, &beside("system", vec![system]), &unfit("a: SystemNamespace: "));
    let missing = within(map("a", "a"), "nowhere");
    ends(&fleet, &beside("missing", vec![missing]), &unfit("a: NamespaceMissing: "));

    // A namespace that placement has brought there is written at the hub.
    let uid = fleet.place_empty("shop", "west");
    until("the namespace is on west", || {
        let found = fleet.downstream("west", "shop", &uid);
        match found["metadata"]["annotations"][ANNOTATION_GRANT].is_string() {
            true => Ok(()),
            false => Err(story(&fleet, &fleet.grant("shop", &uid))),
        }
    });
    let placed = within(map("a", "a"), &downstream_namespace("shop", &uid));
    ends(&fleet, &beside("placed", vec![placed]), &unfit("a: NamespaceIsPlaced: "));

    // What only the API server of the cluster knows is found by a dry run.
    let mut wrong = beside("wrong", vec![map("Wrong_Name", "a")]);
    wrong.how = json!({"preflight": "DryRun"});
    ends(&fleet, &wrong, &unfit("/ConfigMap/default/Wrong_Name: "));
    let mut unknown = map("a", "a");
    unknown["dates"] = json!({"version": "a"});
    let mut unknown = beside("unknown", vec![unknown]);
    unknown.how = json!({"preflight": "DryRun"});
    ends(&fleet, &unknown, &unfit(".dates: field not declared in schema"));
    let mut mistyped = map("a", "a");
    mistyped["data"]["version"] = json!(5);
    let mut mistyped = beside("mistyped", vec![mistyped]);
    mistyped.how = json!({"preflight": "DryRun"});
    ends(&fleet, &mistyped, &unfit("/ConfigMap/default/a: BadRequest: "));

    // Whose requests are taken is said in the record.
    let record = about_west(&fleet, "clusterrollouts");
    let record = record["metadata"]["name"].as_str().expect("there was a request").to_owned();
    let path = format!("{GROUP}/clusterrollouts/{record}");
    let allow = json!({"spec": {"allowedNamespaces": {"matchLabels": {"updates": "yes"}}}});
    fleet.client().must("PATCH", &path, Some(&allow));
    let end = rejected("NamespaceNotAllowed", "namespace default is not selected");
    ends(&fleet, &asked("forbidden", vec![map("a", "a")]), &end);
    is_untouched(&fleet);
    let labels = json!({"metadata": {"labels": {"updates": "yes"}}});
    fleet.client().must("PATCH", "/api/v1/namespaces/default", Some(&labels));
    succeeds(&fleet, "allowed", vec![map("a", "a")]);
    has_exactly(&fleet, &[("a", "a")]);
    fleet.end(&["shop"]);
}

/// The data of a ConfigMap of west.
fn data(fleet: &Fleet, name: &str) -> Value {
    fleet.get(&on_west(&format!("configmaps/{name}")))["data"].clone()
}

#[test]
fn what_others_have_stays_theirs_and_the_update_is_taken_back() {
    let fleet = Fleet::of(&["west"]);
    fleet.client().must("POST", &on_west("configmaps"), Some(&map("theirs", "theirs")));
    let words = "/ConfigMap/default/theirs: NotOurs: ";
    ends(&fleet, &beside("taken", vec![map("theirs", "ours")]), &rolled_back(words));
    has_exactly(&fleet, &[]);
    assert_eq!(data(&fleet, "theirs"), json!({"version": "theirs"}));
    // The same bundle is not tried again.
    let again = Asked { name: "again", ..beside("taken", vec![map("theirs", "ours")]) };
    ends(&fleet, &again, &rejected("KnownBad", words));

    // A field of an object that is ours.
    succeeds(&fleet, "v1", vec![map("shared", "v1")]);
    let path = on_west("configmaps/shared");
    fleet.client().must("PATCH", &path, Some(&json!({"data": {"extra": "theirs"}})));
    let both = json!({"version": "v1", "extra": "theirs"});
    let mut shared = map("shared", "v2");
    shared["data"]["extra"] = json!("ours");
    let words = "/ConfigMap/default/shared: FieldManagerConflict: ";
    let mut tried = beside("tried", vec![shared.clone()]);
    tried.how = json!({"preflight": "DryRun"});
    ends(&fleet, &tried, &unfit(words));
    assert_eq!(data(&fleet, "shared"), both);
    has_exactly(&fleet, &[("shared", "v1")]);
    ends(&fleet, &beside("untried", vec![shared.clone()]), &rolled_back(words));
    assert_eq!(data(&fleet, "shared"), both);
    has_exactly(&fleet, &[("shared", "v1")]);

    // Who takes it over has to say so.
    let mut forced = beside("forced", vec![shared]);
    forced.how = json!({"force": true});
    forced.submit(&fleet);
    ends_as(&fleet, "forced", "Succeeded");
    assert_eq!(data(&fleet, "shared"), json!({"version": "v2", "extra": "ours"}));
    fleet.end(&[]);
}
