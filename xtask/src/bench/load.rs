//! The program that makes the load: `benches/load`.

use super::build_peer;
use anyhow::{Context, bail};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, built.
pub(crate) struct Load(PathBuf);

impl Load {
    /// Builds it.
    pub(crate) fn build() -> anyhow::Result<Self> {
        Ok(Load(build_peer("load", "load-bench")?))
    }

    /// One measurement: what, on what, and how.
    pub(crate) fn run(
        &self,
        what: &str,
        on: impl AsRef<OsStr>,
        args: &[&str],
    ) -> anyhow::Result<Value> {
        let output = Command::new(&self.0)
            .arg(what)
            .arg(on)
            .args(args)
            .output()
            .context("cannot start the load")?;
        if !output.status.success() {
            bail!("{what} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout).with_context(|| format!("{what} printed no JSON"))
    }

    /// What the disk takes to make a small write durable, as a sentence.
    pub(crate) fn disk(&self, directory: &Path) -> anyhow::Result<String> {
        let disk = self.run("disk", directory, &[])?;
        let (p50, p99) = (super::number(&disk, "p50_us"), super::number(&disk, "p99_us"));
        Ok(format!("write of 1,100 bytes and fdatasync: p50 {p50:.0} us, p99 {p99:.0} us"))
    }
}
