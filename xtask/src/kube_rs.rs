//! kube-rs' own cluster tests, out of its published crates, against our server.

use crate::serving::Serving;
use crate::{interlock, root, say, scratch};
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that have such tests, and the features that the tests need.
const TESTED: &[(&str, &str)] =
    &[("kube", "derive,runtime"), ("kube-client", "ws,unstable-client"), ("kube-runtime", "")];

/// They use each other, so all come from one place.
const COPIED: &[&str] = &["kube", "kube-client", "kube-core", "kube-derive", "kube-runtime"];

/// Publishing drops dependencies of tests that are a path only.
const STRIPPED: &str = r#"
[dev-dependencies.kube]
path = "../kube"
features = ["client", "derive", "runtime", "ws"]
"#;

/// A server that is no whole Kubernetes has no Service for itself; some tests look for it.
const GIVEN: &str = r#"
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let services: kube::Api<k8s_openapi::api::core::v1::Service> =
        kube::Api::namespaced(kube::Client::try_default().await?, "default");
    let service = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "kubernetes"},
        "spec": {"ports": [{"name": "https", "port": 443}]},
    }))?;
    services.create(&Default::default(), &service).await?;
    Ok(())
}
"#;

const GIVEN_MANIFEST: &str = r#"
[package]
name = "given"
edition = "2024"

[dependencies]
k8s-openapi = { version = "*", features = ["latest"] }
kube = { path = "../kube" }
serde_json = "1"
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
"#;

/// What is not run, and why; everything else must pass.
const LEFT_OUT: &[(&str, &str)] = &[
    ("test::pod_can_await_conditions", "the pod must run"),
    ("test::pod_can_exec_and_write_to_stdin", "runs a command in a pod"),
    ("test::can_get_pod_logs_and_evict", "reads the logs of a pod"),
    ("test::group_discovery_oneshot", "asks for APIServices, which are not served"),
    (
        "events::test::event_recorder_attaches_events_without_namespace",
        "asks for the ComponentStatus of a scheduler",
    ),
    ("client::auth::test::exec_auth_command", "asks no server"),
    ("client::auth::test::exec_token_refresh_does_not_block_runtime", "asks no server"),
    ("client::auth::test::exec_token_refresh_via_to_header", "asks no server"),
];

/// Runs them; false if one fails.
pub(crate) fn run(binary: Option<PathBuf>) -> anyhow::Result<bool> {
    let folder = copied()?;
    let binary = binary.map_or_else(interlock::build, Ok)?;
    let serving = Serving::start(&binary, &scratch().join("kube-rs"))?;
    let given = cargo(&serving, &folder).args(["run", "--quiet", "--package", "given"]).status();
    if !given.context("cannot start cargo")?.success() {
        bail!("cannot make what the tests take for granted");
    }
    let (mut passed, mut failed) = (0, 0);
    for (package, features) in TESTED {
        for (test, has_passed) in tested(&serving, &folder, package, features)? {
            let verdict = if has_passed { "passed" } else { "FAILED" };
            say(&format!("{package:12}  {verdict}  {test}"));
            *if has_passed { &mut passed } else { &mut failed } += 1;
        }
    }
    for (test, because) in LEFT_OUT {
        say(&format!("left out      {test}: {because}"));
    }
    say(&format!("{passed} passed, {failed} failed, {} left out", LEFT_OUT.len()));
    Ok(failed == 0 && passed > 0)
}

/// The published crates with what publishing took from them, as one workspace under the target
/// directory. It is made once for each version, so that it is built once.
fn copied() -> anyhow::Result<PathBuf> {
    let published = published()?;
    let (version, _) = published.get("kube").context("the workspace does not use kube")?;
    let folder = scratch().join("kube-rs").join(version);
    let workspace = folder.join("Cargo.toml");
    if workspace.exists() {
        return Ok(folder);
    }
    let mut text = "[workspace]\nresolver = \"3\"\nmembers = [\"given\"".to_owned();
    for (package, _) in TESTED {
        write!(text, ", \"{package}\"")?;
    }
    text.push_str("]\n[profile.dev]\ndebug = \"line-tables-only\"\n[patch.crates-io]\n");
    for name in COPIED {
        let (_, from) = published.get(*name).with_context(|| format!("no crate {name}"))?;
        copy(from, &folder.join(name))?;
        writeln!(text, "{name} = {{ path = \"{name}\" }}")?;
    }
    for name in ["kube-client", "kube-runtime"] {
        let path = folder.join(name).join("Cargo.toml");
        let manifest = std::fs::read_to_string(&path)?;
        std::fs::write(&path, manifest + STRIPPED)?;
    }
    std::fs::create_dir_all(folder.join("given/src"))?;
    std::fs::write(folder.join("given/Cargo.toml"), GIVEN_MANIFEST)?;
    std::fs::write(folder.join("given/src/main.rs"), GIVEN)?;
    // The versions that we have downloaded anyway.
    std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    std::fs::write(&workspace, text)?;
    Ok(folder)
}

/// Version and folder of each of kube-rs' crates that our workspace uses; cargo downloads them.
fn published() -> anyhow::Result<BTreeMap<String, (String, PathBuf)>> {
    let output = crate::cargo()
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut published = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let field = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let manifest = PathBuf::from(field("manifest_path"));
        if COPIED.contains(&&*field("name"))
            && let Some(folder) = manifest.parent()
        {
            published.insert(field("name"), (field("version"), folder.to_path_buf()));
        }
    }
    Ok(published)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The tests of a crate that are to be run, each with whether it passed.
fn tested(
    serving: &Serving,
    folder: &Path,
    package: &str,
    features: &str,
) -> anyhow::Result<Vec<(String, bool)>> {
    let test = |arguments: &[&str]| {
        let mut command = cargo(serving, folder);
        command.args(["test", "--quiet", "--package", package, "--lib", "--features", features]);
        let output = command.args(["--", "--ignored"]).args(arguments).output();
        output.context("cannot start cargo")
    };
    let listed = test(&["--list", "--format", "terse"])?;
    if !listed.status.success() {
        bail!("cannot build the tests of {package}: {}", String::from_utf8_lossy(&listed.stderr));
    }
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let is_left_out = |test: &str| LEFT_OUT.iter().any(|(name, _)| *name == test);
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let mut outcomes = Vec::new();
    for name in names.filter(|name| !is_left_out(name)) {
        let output = test(&["--exact", name])?;
        if !output.status.success() {
            say(String::from_utf8_lossy(&output.stdout).trim());
        }
        outcomes.push((name.to_owned(), output.status.success()));
    }
    Ok(outcomes)
}

/// Cargo in a folder, whose programs reach the server.
fn cargo(serving: &Serving, folder: &Path) -> Command {
    let mut command = crate::cargo();
    command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("KUBECONFIG", serving.kubeconfig());
    command
}
