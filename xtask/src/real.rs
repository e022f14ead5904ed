//! Everything that needs other people's programs, or root: TLC beside our checker, kubectl against
//! our server, restic on our repositories, file systems of our own, sqlite3 in a claim.

use crate::{compare, interlock, root, say};
use anyhow::{Context, bail};
use s3::S3;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

mod s3;

/// Programs that are not ours, and the Debian packages that have them.
const PROGRAMS: &[(&str, &str)] = &[
    ("kubectl", "kubernetes-client"),
    ("restic", "restic"),
    ("rclone", "rclone"),
    ("rsync", "rsync"),
    ("sqlite3", "sqlite3"),
    ("b3sum", "b3sum"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
];

/// Tests that `cargo test` leaves out.
struct Suite {
    package: &'static str,
    /// The one file with them; all of the package if that is empty.
    only: &'static str,
    /// A hundred thousand files and gigabytes are a matter of minutes otherwise.
    is_optimised: bool,
}

const SUITES: &[Suite] = &[
    Suite { package: "interlock-conformance", only: "", is_optimised: false },
    Suite { package: "interlock-restic", only: "", is_optimised: true },
    Suite { package: "interlock-outside", only: "volume_file_systems", is_optimised: false },
    Suite { package: "interlock", only: "moves", is_optimised: false },
    Suite { package: "interlock", only: "volumes", is_optimised: false },
];

/// Runs all of it; false if anything failed.
pub(crate) fn run() -> anyhow::Result<bool> {
    // First what may be missing, so that nobody waits for a run that cannot end well.
    install_missing()?;
    let settings = settings()?;
    let s3 = S3::start()?;
    let mut failed = Vec::new();
    if !compare::run("", false)? {
        failed.push("tlc");
    }
    for Suite { package, only, is_optimised } in SUITES {
        say(&format!("\n{package}: what needs other people's programs"));
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--quiet", "--package", package]);
        if !only.is_empty() {
            cargo.args(["--test", only]);
        }
        if *is_optimised {
            cargo.arg("--release");
        }
        cargo.args(["--", "--ignored"]).envs(settings.iter().cloned()).envs(s3.settings());
        let status = cargo.current_dir(root()).status().context("cannot start cargo")?;
        if !status.success() {
            failed.push(package);
        }
    }
    if !failed.is_empty() {
        say(&format!("failed: {}", failed.join(", ")));
    }
    Ok(failed.is_empty())
}

/// What the tests are told: the release binary, and the kubectls to drive it with.
fn settings() -> anyhow::Result<Vec<(&'static str, OsString)>> {
    let kubectls = kubectls()?;
    for kubectl in &kubectls {
        say(&format!("kubectl  {}", kubectl.display()));
    }
    let list = std::env::join_paths(&kubectls).context("a path of a kubectl has a colon")?;
    Ok(vec![("INTERLOCK_BINARY", interlock::build()?.into()), ("INTERLOCK_KUBECTL", list)])
}

/// The kubectls in INTERLOCK_KUBECTL, or the one on the path.
fn kubectls() -> anyhow::Result<Vec<PathBuf>> {
    let Some(list) = std::env::var_os("INTERLOCK_KUBECTL") else {
        return Ok(vec![on_the_path("kubectl").context("there is no kubectl on the path")?]);
    };
    let named: Vec<PathBuf> = std::env::split_paths(&list).collect();
    if let Some(missing) = named.iter().find(|kubectl| !kubectl.is_file()) {
        bail!("INTERLOCK_KUBECTL names {}, which is not there", missing.display());
    }
    Ok(named)
}

fn on_the_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // What makes file systems is not on everybody's path.
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Installs what is not there, as root or with sudo.
fn install_missing() -> anyhow::Result<()> {
    let is_missing = |(program, _): &&(&str, &str)| on_the_path(program).is_none();
    let packages: Vec<&str> = PROGRAMS.iter().filter(is_missing).map(|(_, has)| *has).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let sudo: &[&str] = if is_root() { &[] } else { &["sudo"] };
    let apt = |words: &[&str]| {
        let words = [sudo, &["apt-get"], words].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
        (words.join(" "), command)
    };
    let install = ["install", "--yes", "--quiet", "--no-install-recommends"];
    let (line, mut command) = apt(&[&install[..], &packages].concat());
    say(&format!("not here yet: {line}"));
    // A machine whose lists of packages are fresh needs no update; one without any needs it first.
    if command.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let is_updated = apt(&["update", "--quiet"]).1.status().is_ok_and(|status| status.success());
    if is_updated && command.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    bail!("programs are missing that cannot be installed here: run `{line}`")
}

pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
