//! `interlock envtest`: the programs that controller-runtime's envtest starts, with this API server in them.
//!
//! envtest starts a program named `etcd` and one named `kube-apiserver`, with the options of those two. Here `etcd` keeps no
//! data: it names the directory in which `kube-apiserver` keeps them. So the data outlive an API server that a test stops
//! and starts again, and are deleted with the directory that envtest made for etcd.

mod assets;
mod etcd;
mod flags;
mod kube_apiserver;

use clap::{Args as ClapArgs, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `envtest`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Write the programs that envtest starts into a directory, and print the setting that makes envtest use them
    Assets {
        /// The directory; it is made if it is not there
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Serve with the options of kube-apiserver
    #[command(hide = true, disable_help_flag = true)]
    KubeApiserver(Words),
    /// Answer for an etcd, with the options of etcd
    #[command(hide = true, disable_help_flag = true)]
    Etcd(Words),
}

/// The options of another program.
#[derive(Debug, ClapArgs)]
struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Runs one of the programs, or writes them.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.part {
        Part::Assets { directory } => assets::write(directory),
        Part::KubeApiserver(given) => kube_apiserver::run(&given.words),
        Part::Etcd(given) => etcd::run(&given.words),
    }
}
