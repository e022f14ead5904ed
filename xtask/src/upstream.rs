//! Kubernetes' own servers and end-to-end tests, built from its published module.

use crate::{kinds, say, scratch};
use anyhow::{Context, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const VERSION: &str = "1.35.4";
/// Says where the programs are that are to be used instead.
const VARIABLE: &str = "INTERLOCK_KUBERNETES";
const API_SERVER: &str = "kube-apiserver";
pub(crate) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(crate) const E2E_TEST: &str = "e2e.test";

/// The folder with the servers: the one that was named, or one that they are built in, once.
pub(crate) fn servers() -> anyhow::Result<PathBuf> {
    folder(&[API_SERVER, CONTROLLER_MANAGER])
}

/// The folder with the end-to-end tests and the controllers that they need.
pub(crate) fn tests() -> anyhow::Result<PathBuf> {
    folder(&[CONTROLLER_MANAGER, E2E_TEST])
}

fn folder(programs: &[&str]) -> anyhow::Result<PathBuf> {
    let lacks = |folder: &Path| -> Vec<&str> {
        programs.iter().copied().filter(|program| !folder.join(program).is_file()).collect()
    };
    if let Some(named) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        let lacking = lacks(&named);
        if !lacking.is_empty() {
            bail!("{VARIABLE} names {}, which has no {}", named.display(), lacking.join(", no "));
        }
        return Ok(named);
    }
    let folder = scratch().join("kubernetes").join(VERSION);
    for program in lacks(&folder) {
        build(&folder, program)?;
    }
    Ok(folder)
}

/// Where the module has a program, and the words that build it.
fn source(program: &str) -> (String, &'static [&'static str]) {
    match program {
        E2E_TEST => ("k8s.io/kubernetes/test/e2e".to_owned(), &["test", "-c"]),
        _ => (format!("k8s.io/kubernetes/cmd/{program}"), &["build"]),
    }
}

fn build(folder: &Path, program: &str) -> anyhow::Result<()> {
    say(&format!("building {program} of Kubernetes {VERSION}: some ten minutes, once"));
    if !folder.join("go.sum").is_file() {
        prepare(folder)?;
    }
    let (major, minor) = VERSION.split_once('.').unwrap_or_default();
    let minor = minor.split('.').next().unwrap_or_default();
    let stamp = "-X k8s.io/component-base/version.git";
    let flags =
        format!("-s -w {stamp}Version=v{VERSION} {stamp}Major={major} {stamp}Minor={minor}");
    let (package, words) = source(program);
    go(folder, &[words, &["-trimpath", "-ldflags", &flags, "-o", program, &package]].concat())
}

/// A module of ours that needs all of these programs.
fn prepare(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("go.mod"), go_mod()?)?;
    let mut imports = "//go:build tools\n\npackage tools\n\n".to_owned();
    for program in [API_SERVER, CONTROLLER_MANAGER, E2E_TEST] {
        writeln!(imports, "import _ \"{}\"", source(program).0)?;
    }
    std::fs::write(folder.join("tools.go"), imports)?;
    go(folder, &["mod", "tidy", "-e"])
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
