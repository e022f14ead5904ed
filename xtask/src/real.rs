//! Everything that needs other people's programs, or root: TLC beside our checker, kubectl against
//! our server, restic on our repositories, file systems of our own, sqlite3 in a claim, boto3 and moto
//! beside our IAM, clients in Go and Helm against our server, the kernel's bridges and packet filter below the driver
//! of a DPU, and below a fleet with machines.

use crate::{compare, interlock, say};
use anyhow::{Context, bail};
use s3::S3;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

mod go;
mod python;
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
    ("nft", "nftables"),
    ("ip", "iproute2"),
    ("ping", "iputils-ping"),
];

/// The part that is TLC beside our checker.
const TLC: &str = "tlc";

/// Tests that `cargo test` leaves out: the file that they are in, and how it is built. As part of the
/// workspace most of it has been built already, by whoever ran `cargo test`; a package by itself would
/// have other features, and everything beneath it would be built once more.
const SUITES: &[(&str, &[&str])] = &[
    ("kubectl", &["--workspace"]),
    // A hundred thousand files and gigabytes are a matter of minutes without optimisation.
    ("with_restic", &["--workspace", "--release"]),
    ("volume_file_systems", &["--workspace"]),
    ("moves", &["--workspace"]),
    ("volumes", &["--workspace"]),
    ("docs", &["--workspace"]),
    ("with_boto3", &["--workspace"]),
    ("with_moto", &["--workspace"]),
    ("dpu_kernel", &["--workspace"]),
    ("dpu_namespaces", &["--workspace"]),
    ("machines_in_namespaces", &["--workspace"]),
];

/// Of these, the ones that need the kernel only: no kubectl, no package of Python, no server of S3.
const OF_THE_KERNEL: &[&str] = &["dpu_kernel", "dpu_namespaces", "machines_in_namespaces"];
/// Of these, the ones that do not need our binary either.
const OF_THE_DRIVER: &[&str] = &["dpu_kernel", "dpu_namespaces"];

/// What is run.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Only this part of it
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Not this part; may be given several times
    #[arg(long, value_name = "PART")]
    without: Vec<String>,
    /// TLC runs anew, its long runs too, even where specs/tlc.json has what it says of these files
    #[arg(long)]
    all: bool,
    /// The binary to test, instead of a fresh release build
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Runs all of it, or one part; false if anything failed.
pub(crate) fn run(run: Run) -> anyhow::Result<bool> {
    let Run { only, without, all, binary } = run;
    let is_chosen = |name: &str| {
        only.as_ref().is_none_or(|only| only == name)
            && !without.iter().any(|left_out| left_out == name)
    };
    let suites: Vec<_> = SUITES.iter().filter(|(name, _)| is_chosen(name)).collect();
    let packages: Vec<_> = go::PARTS.iter().filter(|(name, _)| is_chosen(name)).collect();
    if suites.is_empty() && packages.is_empty() && !is_chosen(TLC) {
        let names =
            SUITES.iter().map(|(name, _)| *name).chain(go::PARTS.iter().map(|(name, _)| *name));
        bail!("there is no such part; there are {TLC}, {}", names.collect::<Vec<_>>().join(", "));
    }
    // First what may be missing, so that nobody waits for a run that cannot end well.
    install_missing()?;
    if !packages.is_empty() {
        go::check()?;
    }
    let mut failed = Vec::new();
    let are_of_the_kernel = suites.iter().all(|(name, _)| OF_THE_KERNEL.contains(name));
    let are_of_the_driver = suites.iter().all(|(name, _)| OF_THE_DRIVER.contains(name));
    let binary = match binary {
        Some(named) => Some(std::path::absolute(named).context("--binary names no file")?),
        None if !are_of_the_driver || !packages.is_empty() => Some(interlock::build()?),
        None => None,
    };
    let given = if are_of_the_kernel { None } else { Some((settings()?, S3::start()?)) };
    if is_chosen(TLC) && !compare::run("", all)? {
        failed.push(TLC);
    }
    for (name, built) in suites {
        say(&format!("\n{name}: what needs other people's programs"));
        let mut command = crate::cargo();
        command.args(["test", "--quiet", "--test", name]).args(*built).args(["--", "--ignored"]);
        if let Some(binary) = &binary {
            command.env("INTERLOCK_BINARY", binary);
        }
        if let Some((settings, s3)) = &given {
            command.envs(settings.iter().cloned()).envs(s3.settings());
        }
        let status = command.status().context("cannot start cargo")?;
        if !status.success() {
            failed.push(name);
        }
    }
    for (name, package) in packages {
        say(&format!("\n{name}: other people's clients in Go"));
        let Some(binary) = &binary else { continue };
        if !go::run(package, binary)? {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        say(&format!("failed: {}", failed.join(", ")));
    }
    Ok(failed.is_empty())
}

/// What the tests are reported: the kubectls to drive the server with, and packages of Python.
fn settings() -> anyhow::Result<Vec<(&'static str, OsString)>> {
    let kubectls = kubectls()?;
    for kubectl in &kubectls {
        say(&format!("kubectl  {}", kubectl.display()));
    }
    let list = std::env::join_paths(&kubectls).context("a path of a kubectl has a colon")?;
    let verifier = python::package("jwt", "PyJWT[crypto]==2.10.1")?;
    // It brings boto3 with it.
    let cloud = python::package("moto", "moto[server]==5.2.5")?;
    Ok(vec![
        ("INTERLOCK_KUBECTL", list),
        ("INTERLOCK_PYJWT", verifier.into()),
        ("INTERLOCK_MOTO", cloud.into()),
    ])
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
