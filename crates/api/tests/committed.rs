//! The committed definitions are those that the types give.

use interlock_api::manifest::manifests;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn all_definitions() -> impl Iterator<Item = CustomResourceDefinition> {
    let [own, volumes] = [interlock_api::definitions(), interlock_api::volume_definitions()];
    let further = interlock_api::identity_definitions().into_iter();
    let further = further.chain(interlock_api::node_definitions());
    own.into_iter().chain(volumes).chain(further).chain(interlock_api::tenant_definitions())
}

fn directory() -> PathBuf {
    // Where cargo runs the test, not where it was compiled: clones may share a build cache.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the test");
    PathBuf::from(here).join("crds")
}

#[test]
fn the_committed_definitions_are_up_to_date() {
    let manifests = manifests();
    for manifest in &manifests {
        let path = directory().join(&manifest.file_name);
        let committed = fs::read_to_string(&path).unwrap_or_default();
        let is_same = committed == manifest.text;
        assert!(is_same, "{} is out of date; run: cargo xtask crds", path.display());
    }
    let wanted: BTreeSet<String> = manifests.into_iter().map(|one| one.file_name).collect();
    let found: BTreeSet<String> = fs::read_dir(directory())
        .expect("crds is a directory")
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(found, wanted, "crds holds other files too; run: cargo xtask crds");
}

#[test]
fn somebody_elses_parser_reads_the_same_out_of_them() {
    for (manifest, definition) in manifests().iter().zip(all_definitions()) {
        let read: Value = serde_saphyr::from_str(&manifest.text).expect("it is YAML");
        let meant = serde_json::to_value(&definition).expect("a definition is JSON");
        assert_eq!(read, meant, "{}", manifest.file_name);
    }
}

#[test]
fn every_field_says_what_it_is() {
    for definition in all_definitions() {
        let definition = serde_json::to_value(&definition).expect("a definition is JSON");
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            let name = format!("{} {part}", definition["spec"]["names"]["kind"]);
            described(&schema["properties"][part], &name);
        }
    }
}

/// Fails at the first field below without a description.
fn described(schema: &Value, path: &str) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(field["description"].is_string(), "{path} says nothing");
        described(field, &path);
        described(&field["items"], &path);
    }
}

/// Keywords that Kubernetes takes only at the structural level, never below a junctor.
#[test]
fn every_schema_is_structural() {
    for definition in all_definitions() {
        let definition = serde_json::to_value(&definition).expect("a definition is JSON");
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        structural(schema, &definition["spec"]["names"]["kind"].to_string());
    }
}

fn structural(schema: &Value, path: &str) {
    let has_type = schema["type"].is_string() || schema["x-kubernetes-int-or-string"] == true;
    assert!(has_type, "{path} has no type");
    for keyword in ["$ref", "definitions", "patternProperties", "uniqueItems", "const"] {
        assert!(schema[keyword].is_null(), "{path} uses {keyword}");
    }
    for junctor in ["anyOf", "oneOf", "allOf"] {
        for part in schema[junctor].as_array().into_iter().flatten() {
            for keyword in ["type", "description", "default", "nullable", "additionalProperties"] {
                assert!(part[keyword].is_null(), "{path} uses {keyword} below {junctor}");
            }
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        structural(field, &format!("{path}.{name}"));
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            structural(&schema[below], &format!("{path}.{below}"));
        }
    }
}
