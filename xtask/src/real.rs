//! Everything that needs other people's programs: TLC beside our checker, kubectl and kube-rs against our server.

use crate::{compare, interlock, root, say};
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::Command;

/// What installs a kubectl where Debian's packages are.
const INSTALL: &[&str] =
    &["apt-get", "install", "--yes", "--no-install-recommends", "kubernetes-client"];

/// Runs all of it; false if anything failed.
pub(crate) fn run() -> anyhow::Result<bool> {
    // First what may be missing, so that nobody waits for a run that cannot end well.
    let kubectls = kubectls()?;
    let is_same = compare::run("", false)?;
    let is_served = clients(&kubectls)?;
    Ok(is_same && is_served)
}

/// Other people's clients against the release binary.
fn clients(kubectls: &[PathBuf]) -> anyhow::Result<bool> {
    let binary = interlock::build()?;
    let list = std::env::join_paths(kubectls).context("a path of a kubectl has a colon")?;
    for kubectl in kubectls {
        say(&format!("kubectl  {}", kubectl.display()));
    }
    let status = Command::new(env!("CARGO"))
        .args(["test", "--package", "interlock-conformance", "--", "--ignored"])
        .env("INTERLOCK_BINARY", binary)
        .env("INTERLOCK_KUBECTL", list)
        .current_dir(root())
        .status()
        .context("cannot start cargo")?;
    Ok(status.success())
}

/// The kubectls in INTERLOCK_KUBECTL, or the one on the path, which is installed if there is none.
fn kubectls() -> anyhow::Result<Vec<PathBuf>> {
    if let Some(list) = std::env::var_os("INTERLOCK_KUBECTL") {
        let named: Vec<PathBuf> = std::env::split_paths(&list).collect();
        if let Some(missing) = named.iter().find(|kubectl| !kubectl.is_file()) {
            bail!("INTERLOCK_KUBECTL names {}, which is not there", missing.display());
        }
        return Ok(named);
    }
    if let Some(found) = on_the_path("kubectl") {
        return Ok(vec![found]);
    }
    install()?;
    match on_the_path("kubectl") {
        Some(found) => Ok(vec![found]),
        None => bail!("kubernetes-client is installed, but there is still no kubectl on the path"),
    }
}

fn on_the_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Installs Debian's kubectl, as root or with sudo.
fn install() -> anyhow::Result<()> {
    let mut words: Vec<&str> = INSTALL.to_vec();
    if !is_root() {
        words.insert(0, "sudo");
    }
    let line = words.join(" ");
    say(&format!("there is no kubectl: {line}"));
    let status =
        Command::new(words[0]).args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive").status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => bail!(
            "there is no kubectl, and it cannot be installed here: run `{line}`, or name one in INTERLOCK_KUBECTL"
        ),
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
