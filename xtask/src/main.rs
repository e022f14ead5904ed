//! What the project does to itself: `cargo xtask --help`.

mod bench;
mod chaos;
mod compare;
mod conformance;
mod counts;
mod crds;
mod differential;
mod evidence;
mod interlock;
mod kinds;
mod kube_rs;
mod kubernetes;
mod program;
mod real;
mod record;
mod serving;
mod tlc;
mod upstream;

use clap::{Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Tests against other people's programs, and benchmarks.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything that needs other people's programs; installs what it needs, fails when it cannot
    TestReal(real::Run),
    /// Run TLC on specs/ beside our checker and compare states, depth and verdicts
    Tlc {
        /// Only runs whose id contains this
        #[arg(long, default_value = "")]
        id: String,
        /// The long runs too, and TLC runs anew even where specs/tlc.json has what it says of these files
        #[arg(long)]
        all: bool,
    },
    /// Check every model in its default size, and compare its states, promises and mutants with specs/counts.json
    Counts {
        /// Write the record anew, and the table of docs/evidence.md
        #[arg(long)]
        write: bool,
    },
    /// Write the tables of built-in kinds anew from upstream's published modules (needs Go and the network)
    Kinds,
    /// Write the definitions of our own kinds anew from their types
    Crds,
    /// Run kube-rs' own cluster tests, out of its published crates, against `interlock serve`
    KubeRs {
        /// The binary to serve with, instead of a fresh release build
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
    },
    /// Run upstream's end-to-end tests, which are built once, against `interlock serve` (needs Go)
    Conformance(conformance::Run),
    /// Send the same requests to a kube-apiserver, which is built once, and to ours, and compare (needs Go)
    Differential(differential::Run),
    /// Placement and updates on API servers of Kubernetes itself, which are built once (needs Go and kubectl)
    Kubernetes(kubernetes::Run),
    /// A fleet of separate processes that are killed and stopped while namespaces move, judged from outside and by its audit
    Chaos(chaos::Run),
    /// Measure, with a peer beside us in the same run
    Bench {
        /// What to measure
        #[command(subcommand)]
        subject: bench::Subject,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::TestReal(run) => real::run(run),
        Command::Tlc { id, all } => compare::run(&id, all),
        Command::Counts { write } => counts::run(write),
        Command::Kinds => kinds::run(&root().join("crates/apiserver/kinds")).map(|()| true),
        Command::Crds => crds::run(&root().join("crates/api/crds")).map(|()| true),
        Command::KubeRs { binary } => kube_rs::run(binary),
        Command::Conformance(run) => conformance::run(&run),
        Command::Differential(run) => differential::run(&run),
        Command::Kubernetes(run) => kubernetes::run(run),
        Command::Chaos(run) => chaos::run(&run),
        Command::Bench { subject } => bench::run(&subject),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// One line to the person or the log, at once.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// Cargo, in the workspace, as a person would start it: by its name, so that rustup says which toolchain is meant,
/// also to a compiler that runs in the folder of a dependency. What started us tells of *our* package; a build
/// script of a dependency that looks at that would be run again, and all that rests on it built anew, by
/// each of us in turn.
fn cargo() -> std::process::Command {
    let mut cargo = std::process::Command::new("cargo");
    let is_ours =
        |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_ours) {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(root());
    cargo
}

/// The root of the workspace.
fn root() -> PathBuf {
    // Cargo says where it runs us from. That is not always where we were compiled: clones of one
    // repository may share a build cache.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// Where downloads and working files go: beside the build, never into the tree.
fn scratch() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| root().join("target")).join("xtask")
}
