//! Kubernetes' own servers, built from its published module.

use crate::{kinds, say, scratch};
use anyhow::{Context, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "1.34.4";
/// Says where the servers are that are to be used instead.
const VARIABLE: &str = "INTERLOCK_KUBERNETES";
const PROGRAMS: [&str; 2] = ["kube-apiserver", "kube-controller-manager"];

/// The folder with the servers: the one that was named, or one that they are built in, once.
pub(super) fn folder() -> anyhow::Result<PathBuf> {
    let has_all = |folder: &Path| PROGRAMS.iter().all(|program| folder.join(program).is_file());
    if let Some(named) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        if !has_all(&named) {
            bail!("{VARIABLE} names {}, which has not {}", named.display(), PROGRAMS.join(" and "));
        }
        return Ok(named);
    }
    let folder = scratch().join("kubernetes").join(VERSION);
    if !has_all(&folder) {
        build(&folder)?;
    }
    Ok(folder)
}

fn build(folder: &Path) -> anyhow::Result<()> {
    say(&format!("building Kubernetes {VERSION}: some ten minutes, once"));
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("go.mod"), go_mod()?)?;
    let mut imports = "//go:build tools\n\npackage tools\n\n".to_owned();
    for program in PROGRAMS {
        writeln!(imports, "import _ \"k8s.io/kubernetes/cmd/{program}\"")?;
    }
    std::fs::write(folder.join("tools.go"), imports)?;
    go(folder, &["mod", "tidy", "-e"])?;
    let (major, minor) = VERSION.split_once('.').unwrap_or_default();
    let minor = minor.split('.').next().unwrap_or_default();
    let stamp = "-X k8s.io/component-base/version.git";
    let flags =
        format!("-s -w {stamp}Version=v{VERSION} {stamp}Major={major} {stamp}Minor={minor}");
    for program in PROGRAMS {
        let package = format!("k8s.io/kubernetes/cmd/{program}");
        go(folder, &["build", "-trimpath", "-ldflags", &flags, "-o", program, &package])?;
    }
    Ok(())
}

/// A module that needs Kubernetes. Its own module takes its parts from folders beside it; they are
/// published as modules of their own, whose versions begin with 0 instead of 1.
fn go_mod() -> anyhow::Result<String> {
    let module = kinds::module(&format!("k8s.io/kubernetes@v{VERSION}"))?;
    let theirs = std::fs::read_to_string(module.join("go.mod"))?;
    let part_version = VERSION.replacen('1', "0", 1);
    let mut ours = "module kubernetes\n\n".to_owned();
    for line in theirs.lines() {
        if line.starts_with("go ") {
            writeln!(ours, "{line}\n\nrequire k8s.io/kubernetes v{VERSION}\n")?;
        } else if let Some((part, _)) = line.trim().split_once(" => ./staging/") {
            let part = part.trim_start_matches("replace ");
            writeln!(ours, "replace {part} => {part} v{part_version}")?;
        }
    }
    Ok(ours)
}

fn go(folder: &Path, words: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("go").args(words).current_dir(folder).status();
    if !status.context("cannot start go")?.success() {
        bail!("`go {}` failed in {}", words.join(" "), folder.display());
    }
    Ok(())
}
