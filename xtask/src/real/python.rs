//! Python packages that tests use, each in a folder of its own outside of the clone.

use crate::{say, scratch};
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::Command;

/// Gets a version of a package once, and says in which folder it is. `module` is what is imported of it.
pub(super) fn package(module: &str, package: &str) -> anyhow::Result<PathBuf> {
    // Tests may need one package in two versions.
    let version = package.rsplit('=').next().unwrap_or_default();
    let folder = scratch().join(format!("{module}-{version}"));
    if folder.join(module).is_dir() {
        return Ok(folder);
    }
    say(&format!("getting {package}"));
    let got = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--target".as_ref(), folder.as_os_str(), package.as_ref()])
        .status()
        .context("cannot start python3: apt-get install --yes python3-pip")?;
    if !got.success() {
        bail!("pip cannot get {package}, which tests need: python3 -m pip install '{package}'");
    }
    Ok(folder)
}
