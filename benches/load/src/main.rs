//! Load on our store, on etcd and on our API server: one measurement for each run of the program.
//!
//! `cargo xtask bench store` and `cargo xtask bench apiserver` start it again and again, in turn for each
//! peer. Each run prints one JSON object.

mod api;
mod clusters;
mod disk;
mod etcd;
mod fan_out;
mod fleet;
mod grpc;
mod https;
mod measure;
mod protobuf;
mod store;
mod widget;

use clap::{Args, Parser, Subcommand};
use https::Protocol;
use std::path::PathBuf;
use widget::Homes;

#[derive(Debug, Parser)]
struct Cli {
    /// The server has no logical clusters: namespaces take their place
    #[arg(long, global = true)]
    plain: bool,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// How long the disk takes to make a small write durable
    Disk { directory: PathBuf },
    /// Our store as a library: guarded puts of 1 KiB into a new directory
    StorePuts {
        directory: PathBuf,
        #[command(flatten)]
        load: Load,
    },
    /// Our store as a library: open it, fill it up to so many keys of 2 KiB, close it
    StoreFill { directory: PathBuf, keys: usize },
    /// Our store as a library: open it, read ranges, and say what it takes
    StoreReads { directory: PathBuf },
    /// etcd: guarded puts
    EtcdPuts {
        address: String,
        #[command(flatten)]
        load: Load,
    },
    /// etcd: keys of 2 KiB from one number up to another
    EtcdFill { address: String, from: usize, keys: usize },
    /// etcd: ranges
    EtcdReads { address: String },
    /// The API server: logical clusters (or namespaces) `bench-0` and so on, and the kind that is used
    ApiPrepare { kubeconfig: PathBuf },
    /// The API server: one operation again and again
    ApiWrites {
        kubeconfig: PathBuf,
        operation: api::Operation,
        protocol: Protocol,
        #[command(flatten)]
        load: Load,
    },
    /// The API server: objects from one number up to another, in all prepared clusters
    ApiFill { kubeconfig: PathBuf, from: usize, objects: usize },
    /// The API server: lists
    ApiLists { kubeconfig: PathBuf, pid: u32 },
    /// The API server: one writer, many watchers
    ApiWatches { kubeconfig: PathBuf, watchers: usize, rounds: usize, pids: Vec<u32> },
    /// The API server: create and delete empty logical clusters
    ApiClusters { kubeconfig: PathBuf, clusters: usize, pid: u32 },
    /// A fleet: placed namespaces from one number up to another
    FleetPlace { kubeconfig: PathBuf, from: usize, namespaces: usize, pid: u32 },
    /// A fleet: move so many namespaces at once to one cluster
    FleetMove { kubeconfig: PathBuf, moves: usize, to: String, pid: u32 },
    /// A fleet: what it writes and costs while nothing happens
    FleetRest { kubeconfig: PathBuf, pid: u32 },
    /// A fleet that has just started: how long until the first decision
    FleetDecide { kubeconfig: PathBuf, to: String },
}

/// How hard, for how long, and whose processor time counts.
#[derive(Debug, Clone, Args)]
struct Load {
    /// How many writers at once
    #[arg(long)]
    writers: usize,
    /// For how long
    #[arg(long)]
    seconds: f64,
    /// How large a value is; an object of the API always has 2 KiB
    #[arg(long, default_value_t = 1024)]
    bytes: usize,
    /// The processes that do the work; this one if none is named
    #[arg(long)]
    pid: Vec<u32>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Cli { plain, what } = Cli::parse();
    let homes = if plain { Homes::Namespaces } else { Homes::Clusters };
    let answer = match what {
        What::Disk { directory } => disk::sync_latency(&directory)?,
        What::StorePuts { directory, load } => store::puts(&directory, load).await?,
        What::StoreFill { directory, keys } => store::fill(&directory, keys).await?,
        What::StoreReads { directory } => store::reads(&directory).await?,
        What::EtcdPuts { address, load } => etcd::puts(&address, load).await?,
        What::EtcdFill { address, from, keys } => etcd::fill(&address, from, keys).await?,
        What::EtcdReads { address } => etcd::reads(&address).await?,
        What::ApiPrepare { kubeconfig } => api::prepare(&kubeconfig, homes).await?,
        What::ApiWrites { kubeconfig, operation, protocol, load } => {
            api::writes(&kubeconfig, homes, operation, protocol, load).await?
        }
        What::ApiFill { kubeconfig, from, objects } => {
            api::fill(&kubeconfig, homes, from, objects).await?
        }
        What::ApiLists { kubeconfig, pid } => api::lists(&kubeconfig, homes, pid).await?,
        What::ApiWatches { kubeconfig, watchers, rounds, pids } => {
            fan_out::run(&kubeconfig, homes, watchers, rounds, &pids).await?
        }
        What::ApiClusters { kubeconfig, clusters, pid } => {
            clusters::run(&kubeconfig, clusters, pid).await?
        }
        What::FleetPlace { kubeconfig, from, namespaces, pid } => {
            fleet::place(&kubeconfig, from, namespaces, pid).await?
        }
        What::FleetMove { kubeconfig, moves, to, pid } => {
            fleet::shift(&kubeconfig, moves, &to, pid).await?
        }
        What::FleetRest { kubeconfig, pid } => fleet::rest(&kubeconfig, pid).await?,
        What::FleetDecide { kubeconfig, to } => fleet::decide(&kubeconfig, &to).await?,
    };
    println!("{answer}");
    Ok(())
}
