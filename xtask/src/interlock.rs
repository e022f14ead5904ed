//! Our own binary, built and run as a user would.

use crate::root;
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Builds the release binary and tells where it is.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let status = crate::cargo()
        .args(["build", "--release", "--quiet", "--package", "interlock"])
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the release build failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(target.unwrap_or_else(|| root().join("target")).join("release").join("interlock"))
}

/// Runs it with `-o json` and reads the answer; exit status 0 and 1 are both answers.
pub(crate) fn ask(binary: &PathBuf, args: &[&str]) -> anyhow::Result<Value> {
    let output = Command::new(binary)
        .args(args)
        .args(["-o", "json"])
        .output()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        bail!("interlock {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("interlock {} printed no JSON", args.join(" ")))
}
