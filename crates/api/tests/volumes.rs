//! VolSync's objects are read as its users write them, and its definitions have no field that ours
//! would drop.

use interlock_api::volume_definitions;
use interlock_api::volumes::{
    Amount, CopyMethod, GROUP, ReplicationDestination, ReplicationSource, VERSION,
};
use serde_json::{Value, json};

/// Every field that VolSync's definitions have, as `<kind> <path> <type> [<words or format>]`.
const FIELDS: &str = include_str!("volsync-fields.txt");

fn schema(kind: &str) -> Value {
    let found = volume_definitions().into_iter().find(|one| one.spec.names.kind == kind);
    let definition = serde_json::to_value(found.expect("the kind is defined")).expect("JSON");
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// What is wrong with a value, by the part of a structural schema that our definitions use.
fn flaw(schema: &Value, value: &Value, path: &str) -> Option<String> {
    if schema["x-kubernetes-int-or-string"] == true {
        let fits = value.is_i64() || value.is_string();
        return (!fits).then(|| format!("{path} is neither a number nor a text"));
    }
    let is_of_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64(),
        other => return Some(format!("{path} has the type {other:?}")),
    };
    if !is_of_type {
        return Some(format!("{path} is not of type {}", schema["type"]));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Some(format!("{path} is none of {words:?}"));
    }
    let items = value.as_array().into_iter().flatten();
    let mut below = items.map(|item| flaw(&schema["items"], item, &format!("{path}[]")));
    if let Some(Some(flaw)) = below.find(Option::is_some) {
        return Some(flaw);
    }
    let mut below = value.as_object().into_iter().flatten().map(|(name, field)| {
        let path = format!("{path}.{name}");
        let (known, others) = (&schema["properties"][name], &schema["additionalProperties"]);
        match (known.is_object(), others.is_object()) {
            (true, _) => flaw(known, field, &path),
            (false, true) => flaw(others, field, &path),
            (false, false) if schema["x-kubernetes-preserve-unknown-fields"] == true => None,
            (false, false) => Some(format!("{path} is not known")),
        }
    });
    below.find_map(|flaw| flaw)
}

fn passes(object: &Value) {
    let kind = object["kind"].as_str().expect("a kind");
    let schema = schema(kind);
    for part in ["spec", "status"] {
        if object[part].is_object() {
            assert_eq!(flaw(&schema["properties"][part], &object[part], part), None);
        }
    }
}

fn hourly_backup() -> Value {
    json!({
        "apiVersion": "volsync.backube/v1alpha1", "kind": "ReplicationSource",
        "metadata": { "name": "ledger", "namespace": "books" },
        "spec": {
            "sourcePVC": "ledger-data",
            "trigger": { "schedule": "*/30 * * * *" },
            "restic": {
                "pruneIntervalDays": 15, "repository": "restic-config", "copyMethod": "Clone",
                "retain": { "hourly": 1, "daily": 2, "weekly": 3, "monthly": 4, "yearly": 5,
                    "within": "7d", "last": "6" },
            },
        },
    })
}

#[test]
fn a_source_as_volsyncs_users_write_it_is_read_and_passes() {
    let object = hourly_backup();
    passes(&object);
    let source: ReplicationSource = serde_json::from_value(object.clone()).expect("it is read");
    assert_eq!(serde_json::to_value(&source).expect("it is written"), object);
    let restic = source.spec.restic.expect("it is a backup");
    assert_eq!(restic.copy_method, Some(CopyMethod::Clone));
    assert_eq!(restic.retain.and_then(|retain| retain.last).as_deref(), Some("6"));
}

#[test]
fn a_destination_as_volsyncs_users_write_it_is_read_and_passes() {
    let object = json!({
        "apiVersion": "volsync.backube/v1alpha1", "kind": "ReplicationDestination",
        "metadata": { "name": "ledger", "namespace": "books" },
        "spec": {
            "trigger": { "manual": "bring-it-back" },
            "restic": { "destinationPVC": "ledger-data", "repository": "restic-config",
                "copyMethod": "Direct", "restoreAsOf": "2026-01-02T03:04:05Z", "previous": 2,
                "enableFileDeletion": true, "cleanupTempPVC": true },
        },
        "status": {
            "lastManualSync": "bring-it-back", "lastSyncDuration": "1m3.5s",
            "lastSyncTime": "2026-01-02T03:04:05Z",
            "latestImage": { "apiGroup": "", "kind": "PersistentVolumeClaim", "name": "ledger-data" },
            "latestMoverStatus": { "result": "Successful", "logs": "restored" },
        },
    });
    passes(&object);
    let read: ReplicationDestination = serde_json::from_value(object.clone()).expect("it is read");
    assert_eq!(serde_json::to_value(&read).expect("it is written"), object);
}

#[test]
fn what_nothing_reads_comes_back_as_it_was() {
    let mut object = hourly_backup();
    let restic = &mut object["spec"]["restic"];
    restic["moverSecurityContext"] = json!({ "runAsUser": 7, "sysctls": [{ "name": "a" }] });
    restic["moverVolumes"] = json!([{ "mountPath": "x", "volumeSource": { "secret": {} } }]);
    restic["cacheCapacity"] = json!(1_000_000);
    restic["capacity"] = json!("2Gi");
    object["spec"]["rsyncTLS"] = json!({ "address": "a", "port": 8000 });
    passes(&object);
    let source: ReplicationSource = serde_json::from_value(object.clone()).expect("it is read");
    assert_eq!(serde_json::to_value(&source).expect("it is written"), object);
    let restic = source.spec.restic.expect("it is a backup");
    assert_eq!(restic.cache_capacity, Some(Amount::Number(1_000_000)));
    assert_eq!(restic.capacity.map(|amount| amount.to_string()).as_deref(), Some("2Gi"));
}

#[test]
fn a_schema_has_every_field_that_volsync_has_and_of_the_same_type() {
    let lines = FIELDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut fields = 0;
    for line in lines {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (kind, path, wanted, detail) = (word(), word(), word(), word());
        let mut found = schema(kind);
        for name in path.split('.') {
            found = found["properties"][name].take();
        }
        let of_type = match found["x-kubernetes-int-or-string"] == true {
            true => "int-or-string",
            false => found["type"].as_str().unwrap_or_default(),
        };
        assert_eq!(of_type, wanted, "{line}");
        if detail.contains('|') {
            let mut words: Vec<&str> = detail.split('|').collect();
            words.sort_unstable();
            let of_ours = found["enum"].as_array().into_iter().flatten();
            let mut ours: Vec<&str> = of_ours.filter_map(Value::as_str).collect();
            ours.sort_unstable();
            assert_eq!(ours, words, "{line}");
        } else if !detail.is_empty() {
            assert_eq!(found["format"], detail, "{line}");
        }
        assert!(found["default"].is_null(), "{path} is not filled in by VolSync");
        fields += 1;
    }
    assert!(fields > 100, "only {fields} fields were compared");
}

#[test]
fn nothing_is_asked_for_that_volsync_does_not_ask_for() {
    for definition in volume_definitions() {
        let schema = schema(&definition.spec.names.kind);
        for part in ["spec", "status"] {
            assert!(schema["properties"][part]["required"].is_null());
        }
        assert_eq!(definition.spec.group, GROUP);
        assert_eq!(definition.spec.scope, "Namespaced");
        let version = &definition.spec.versions[0];
        assert_eq!(version.name, VERSION);
        assert!(version.subresources.as_ref().is_some_and(|all| all.status.is_some()));
        let columns = version.additional_printer_columns.iter().flatten();
        let mut names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        names.retain(|name| *name != "Source");
        assert_eq!(names, ["Last sync", "Duration", "Next sync"]);
    }
}

#[test]
fn the_pattern_of_schedules_is_volsyncs() {
    let schema = schema("ReplicationSource");
    let schedule = &schema["properties"]["spec"]["properties"]["trigger"]["properties"]["schedule"];
    let wanted = r"^(@(annually|yearly|monthly|weekly|daily|hourly))|((((\d+,)*\d+|(\d+(\/|-)\d+)|\*(\/\d+)?)\s?){5})$";
    assert_eq!(schedule["pattern"], wanted);
}
