//! Tests in Go, which drive our server with other people's clients: the module `tests/conformance/go`.

use crate::{root, say, scratch};
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parts, and the package of the module that each of them is.
pub(super) const PARTS: &[(&str, &str)] = &[
    ("with_go_oidc", "issuers"),
    ("with_client_go", "clients"),
    ("with_controller_runtime", "controllers"),
    (HELM_PART, HELM_PACKAGE),
];

/// A part of its own: Helm takes longer to compile than everything else together.
const HELM_PART: &str = "with_helm";
const HELM_PACKAGE: &str = "charts";
/// Names the Helms to test with, separated by colons, instead of those of the module.
const HELM_VARIABLE: &str = "INTERLOCK_HELM";
/// The programs of Helm, in the versions of `go.mod`.
const HELMS: &[(&str, &str)] =
    &[("helm3", "helm.sh/helm/v3/cmd/helm"), ("helm4", "helm.sh/helm/v4/cmd/helm")];

/// Go must be there. An older one gets the version that the module asks for by itself.
pub(super) fn check() -> anyhow::Result<()> {
    let said = Command::new("go").arg("version").output();
    if !said.is_ok_and(|said| said.status.success()) {
        bail!(
            "Go is missing: run `apt-get install --yes golang-go`, or see https://go.dev/doc/install"
        );
    }
    Ok(())
}

/// Runs the tests of a package; false if one fails.
pub(super) fn run(package: &str, binary: &Path) -> anyhow::Result<bool> {
    let mut tests = go(&["test", "-vet=off", "-count=1", "-timeout=10m"]);
    tests.arg(format!("./{package}")).env("INTERLOCK_BINARY", binary);
    if package == HELM_PACKAGE {
        tests.env(HELM_VARIABLE, helms()?);
    }
    Ok(tests.status().context("cannot start go")?.success())
}

/// Go in the module. What it compiles is kept in its own caches, outside of the clone.
fn go(words: &[&str]) -> Command {
    let mut go = Command::new("go");
    // Without a C compiler, and without what a C library on this machine would change.
    go.args(words).env("CGO_ENABLED", "0").current_dir(root().join("tests/conformance/go"));
    go
}

/// The Helms to test with, built once.
fn helms() -> anyhow::Result<OsString> {
    if let Some(named) = std::env::var_os(HELM_VARIABLE) {
        return Ok(named);
    }
    let folder = scratch().join("helm");
    let mut programs: Vec<PathBuf> = Vec::new();
    for (name, package) in HELMS {
        let program = folder.join(name);
        if !program.is_file() {
            say(&format!("building {package}: some minutes, once"));
        }
        let built = go(&["build", "-ldflags=-s -w", "-o"])
            .arg(&program)
            .arg(package)
            .status()
            .context("cannot start go")?;
        if !built.success() {
            bail!("`go build {package}` failed in tests/conformance/go");
        }
        programs.push(program);
    }
    std::env::join_paths(programs).context("the path of the build has a colon")
}
