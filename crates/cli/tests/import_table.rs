//! Who may import whom: the table of ARCHITECTURE.md, held against what cargo says.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// For each of our crates, which of our crates it may use. A crate that is not here is an error.
const ALLOWED: &[(&str, &[&str])] = &[
    ("interlock-checker", &[]),
    ("interlock-placement", &["interlock-checker"]),
    ("interlock-volumes", &["interlock-checker"]),
    ("interlock-nodes", &["interlock-checker"]),
    ("interlock-identities", &["interlock-checker"]),
    ("interlock-rollouts", &["interlock-checker"]),
    (
        "interlock",
        &[
            "interlock-checker",
            "interlock-placement",
            "interlock-volumes",
            "interlock-nodes",
            "interlock-identities",
            "interlock-rollouts",
        ],
    ),
    ("xtask", &[]),
];

/// What pure crates must never pull in, directly or not: no clock, no network, no async.
const IMPURE: &[&str] =
    &["tokio", "hyper", "reqwest", "kube-client", "async-std", "chrono", "socket2"];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

#[test]
fn every_crate_imports_only_what_the_table_allows() {
    let metadata = metadata();
    let allowed: BTreeMap<_, BTreeSet<_>> =
        ALLOWED.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let members: BTreeSet<&str> = metadata["workspace_members"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let packages: Vec<&Value> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|package| package["id"].as_str().is_some_and(|id| members.contains(id)))
        .collect();
    assert_eq!(packages.len(), ALLOWED.len(), "the table lists every crate of ours, and no other");
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    for package in packages {
        let name = package["name"].as_str().expect("a package has a name");
        let allowed = allowed.get(name).unwrap_or_else(|| panic!("{name} is not in the table"));
        let used: BTreeSet<&str> = package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|dependency| ours.contains(dependency))
            .collect();
        let forbidden: Vec<_> = used.difference(allowed).collect();
        assert!(forbidden.is_empty(), "{name} may not import {forbidden:?}");
    }
}

#[test]
fn the_systems_are_pure() {
    let metadata = metadata();
    let by_id: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let name_of: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let pure = [
        "interlock-checker",
        "interlock-placement",
        "interlock-volumes",
        "interlock-nodes",
        "interlock-identities",
        "interlock-rollouts",
    ];
    for start in name_of.iter().filter(|(_, name)| pure.contains(name)).map(|(id, _)| *id) {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![start]);
        while let Some(id) = todo.pop() {
            if !seen.insert(id) {
                continue;
            }
            let name = name_of[id];
            assert!(!IMPURE.contains(&name), "{} pulls in {name}", name_of[start]);
            let dependencies = by_id[id]["dependencies"].as_array().into_iter().flatten();
            todo.extend(dependencies.filter_map(Value::as_str));
        }
    }
}
