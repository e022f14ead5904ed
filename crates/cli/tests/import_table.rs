//! Who may import whom: the table of ARCHITECTURE.md, held against what cargo says.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// For each of our crates, which of our crates it may use. A crate that is not here is an error.
const ALLOWED: &[(&str, &[&str])] = &[
    ("interlock-api", &["interlock-kernel"]),
    ("interlock-aws", &["interlock-iam"]),
    ("interlock-checker", &[]),
    (
        "interlock-cloud",
        &["interlock-iam", "interlock-identities", "interlock-kernel", "interlock-shell"],
    ),
    ("interlock-dpu", &["interlock-kernel", "interlock-nodes", "interlock-shell"]),
    ("interlock-iam", &["interlock-kernel", "interlock-store"]),
    // With the feature `model` only, for the models of the queue and the bucket.
    ("interlock-kernel", &["interlock-checker"]),
    ("interlock-outside", &["interlock-quantity"]),
    ("interlock-quantity", &[]),
    ("interlock-restic", &[]),
    ("interlock-schedule", &[]),
    // In place of the published one, by which rustic_core knows it.
    ("rustic_cdc", &[]),
    ("interlock-shell", &["interlock-kernel"]),
    ("interlock-store", &[]),
    ("interlock-apiserver", &["interlock-quantity", "interlock-store"]),
    ("interlock-world", &["interlock-checker", "interlock-kernel"]),
    (
        "interlock-placement",
        &["interlock-api", "interlock-checker", "interlock-kernel", "interlock-world"],
    ),
    (
        "interlock-volumes",
        &[
            "interlock-api",
            "interlock-checker",
            "interlock-kernel",
            "interlock-quantity",
            "interlock-schedule",
            "interlock-world",
        ],
    ),
    (
        "interlock-turns",
        &["interlock-api", "interlock-checker", "interlock-kernel", "interlock-world"],
    ),
    (
        "interlock-nodes",
        &["interlock-api", "interlock-checker", "interlock-kernel", "interlock-world"],
    ),
    (
        "interlock-identities",
        &["interlock-api", "interlock-checker", "interlock-kernel", "interlock-world"],
    ),
    (
        "interlock-rollouts",
        &["interlock-api", "interlock-checker", "interlock-kernel", "interlock-world"],
    ),
    (
        "interlock-workloads",
        &[
            "interlock-api",
            "interlock-checker",
            "interlock-kernel",
            "interlock-quantity",
            "interlock-schedule",
            "interlock-world",
        ],
    ),
    (
        "interlock-programs",
        &[
            "interlock-api",
            "interlock-checker",
            "interlock-identities",
            "interlock-kernel",
            "interlock-nodes",
            "interlock-placement",
            "interlock-rollouts",
            "interlock-turns",
            "interlock-volumes",
            "interlock-workloads",
            "interlock-world",
        ],
    ),
    (
        "interlock",
        &[
            "interlock-api",
            "interlock-apiserver",
            "interlock-aws",
            "interlock-checker",
            "interlock-cloud",
            "interlock-dpu",
            "interlock-iam",
            "interlock-kernel",
            "interlock-outside",
            "interlock-placement",
            "interlock-programs",
            "interlock-quantity",
            "interlock-restic",
            "interlock-shell",
            "interlock-volumes",
            "interlock-nodes",
            "interlock-identities",
            "interlock-rollouts",
            "interlock-turns",
            "interlock-workloads",
        ],
    ),
    ("interlock-conformance", &["interlock-api", "interlock-apiserver"]),
    (
        "interlock-simulation",
        &[
            "interlock-api",
            "interlock-apiserver",
            "interlock-identities",
            "interlock-kernel",
            "interlock-nodes",
            "interlock-placement",
            "interlock-programs",
            "interlock-rollouts",
            "interlock-shell",
            "interlock-volumes",
        ],
    ),
    ("xtask", &["interlock-api"]),
];

/// What pure crates must never pull in, directly or not: no clock, no network, no async.
const IMPURE: &[&str] =
    &["tokio", "hyper", "reqwest", "kube-client", "async-std", "chrono", "socket2"];

/// What cargo prints; it reads what is on disk and asks no network.
fn cargo(args: &[&str]) -> Vec<u8> {
    // Where cargo runs the test, not where it was compiled: clones may share a build cache.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the test");
    let output = Command::new(env!("CARGO"))
        .args(args)
        .arg("--offline")
        .current_dir(here)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn every_crate_imports_only_what_the_table_allows() {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Value = serde_json::from_slice(&metadata).expect("cargo prints JSON");
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
    let io = [
        "interlock",
        "interlock-apiserver",
        "interlock-aws",
        "interlock-cloud",
        "interlock-conformance",
        "interlock-dpu",
        "interlock-iam",
        "interlock-outside",
        "interlock-restic",
        "interlock-shell",
        "interlock-simulation",
        "interlock-store",
        "xtask",
    ];
    let pure = ALLOWED.iter().filter(|(name, _)| !io.contains(name));
    for (name, _) in pure {
        let tree = cargo(&["tree", "--package", name, "--edges", "normal", "--prefix", "none"]);
        for line in String::from_utf8_lossy(&tree).lines() {
            let used = line.split_whitespace().next().unwrap_or_default();
            assert!(!IMPURE.contains(&used), "{name} pulls in {used}");
        }
    }
}
