//! `interlock dpu-agent`: the agent of one DPU, as a process of its own.

use crate::agents::connect;
use crate::location::Location;
use crate::node::dpu;
use crate::run::machines::{Device, Elsewhere, Machines, Planes, Reach};
use crate::run::{audit, instance, page, settings};
use crate::serving::{Signals, block_on, default_directory, log};
use anyhow::{Context, bail};
use clap::{Args as ClapArgs, ValueEnum};
use interlock_api::nodes::{DpuName, Rack};
use interlock_dpu::{Namespaces, Wiring};
use interlock_programs::served::Serves;
use interlock_shell::{Server, Shell};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Options of `dpu-agent`.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXPLAINED)]
#[group(skip)]
pub(crate) struct Args {
    /// The DPU
    #[arg(value_name = "RACK/DPU", value_parser = dpu)]
    here: DpuName,
    #[command(flatten)]
    location: Location,
    /// The folder with a kubeconfig for the control plane of each tenant, in a file of the name of the tenant [default: what the Tenants name]
    #[arg(long, value_name = "DIR")]
    tenants_dir: Option<PathBuf>,
    /// The same as entries of a Secret of the hub, in namespace interlock-system
    #[arg(long, value_name = "SECRET", conflicts_with = "tenants_dir")]
    tenants_secret: Option<String>,
    /// What the ports are
    #[arg(long, value_enum, default_value_t = Hardware::Local)]
    driver: Hardware,
    /// With --driver linux: an interface that is a port; may be given several times
    #[arg(long = "port", value_name = "INTERFACE")]
    ports: Vec<String>,
    /// With --driver linux: the address of this DPU in the network between DPUs [default: that of the Rack]
    #[arg(long, value_name = "IP")]
    vtep: Option<IpAddr>,
    /// With --driver linux: the program nft
    #[arg(long, value_name = "FILE", default_value = "nft")]
    nft: PathBuf,
    /// With --driver linux: enter this network namespace first
    #[arg(long, value_name = "FILE")]
    network_namespace: Option<PathBuf>,
    /// With --driver linux: enter this user namespace first
    #[arg(long, value_name = "FILE")]
    user_namespace: Option<PathBuf>,
    /// The folder of the records of the ports, on a local disk [default: below the data directory]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    page: page::Args,
    #[command(flatten)]
    recording: audit::Recording,
    /// Enable debug logging
    #[arg(long, short)]
    verbose: bool,
}

/// What the ports of a DPU are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Hardware {
    /// Files of the state folder: to try it, and for tests
    Local,
    /// Interfaces of this kernel, with nftables
    Linux,
}

const EXPLAINED: &str = "\
The agent reads the hub, and for each tenant that has a machine at this DPU the control plane of the tenant. It opens a port only
where both agree, and reports what it reads back. It writes its DpuReport and its Lease at the hub, and nothing else there.
Several agents of one DPU may run at once if they share the state folder. Without --tenants-dir and --tenants-secret it enters the
control planes of tenants as the controllers do, by the Secrets that the Tenants name.

  interlock dpu-agent r1/d1 --driver linux --port p1 --port p2
  interlock manifests dpu r1/d1                         # an account at the hub with these rights and no others
  interlock manifests tenant blue --dpu r1/d1           # and one on the control plane of a tenant";

/// Runs the agent until SIGTERM or SIGINT. Its ports stay as they are.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // Before there is a second thread, which could not follow.
    if args.driver == Hardware::Linux {
        let (user, network) = (args.user_namespace.clone(), args.network_namespace.clone());
        if user.is_some() || network.is_some() {
            let entered = Namespaces { user, network }.enter();
            entered
                .map_err(|failure| anyhow::anyhow!("{}: {}", failure.reason, failure.message))?;
        }
    }
    log(args.verbose);
    block_on(async {
        let mut signals = Signals::new()?;
        let recorder = args.recording.begin(&instance())?;
        let (client, config) = connect(&args.location).await?;
        let vtep = vtep(args, &client).await?;
        let folder = match &args.state_dir {
            Some(folder) => folder.clone(),
            None => default_directory()?.join("dpus").join(args.here.to_string()),
        };
        let device = match args.driver {
            Hardware::Local => Device::Local(folder),
            Hardware::Linux if args.ports.is_empty() => {
                bail!("name the interfaces that are ports: --port INTERFACE")
            }
            Hardware::Linux => {
                let (ports, nft) = (args.ports.clone(), args.nft.clone());
                Device::Linux(folder, Wiring { ports, vtep, nft })
            }
        };
        let shell = Arc::new(audit::recorded(Shell::new(settings()), recorder));
        args.page.serve(&shell).await?;
        let hub = Server::new("hub", client);
        let (own, installs) = (Arc::clone(&shell), false);
        let there = Elsewhere { hub, config, shell: own, installs, planes: planes(args) };
        let serves = Serves::Dpu(args.here.clone());
        let machines = Machines::start(Reach::Elsewhere(Box::new(there)), serves, device);
        tracing::info!("ready");
        let signal = signals.next().await;
        tracing::info!(because = signal, "stopping");
        machines.stop().await;
        if let Some(shell) = Arc::into_inner(shell) {
            shell.stop().await;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// With whose credentials the agent enters the control planes of tenants.
fn planes(args: &Args) -> Planes {
    match (&args.tenants_dir, &args.tenants_secret) {
        (Some(folder), _) => Planes::Folder(folder.clone()),
        (None, Some(name)) => Planes::Secret(name.clone()),
        (None, None) => Planes::OfTenants,
    }
}

/// The address of the DPU in the network between DPUs: the one that was given, or that of its Rack.
async fn vtep(args: &Args, hub: &kube::Client) -> anyhow::Result<IpAddr> {
    let racks: Api<Rack> = Api::all(hub.clone());
    let rack = racks.get_opt(&args.here.rack).await.context("cannot read the Rack")?;
    let known = rack.as_ref().and_then(|rack| rack.spec.dpu(&args.here.dpu));
    match (args.vtep.or(known.map(|dpu| dpu.vtep)), rack) {
        (Some(vtep), _) => Ok(vtep),
        (None, Some(rack)) => {
            let names: Vec<&str> = rack.spec.dpus.iter().map(|dpu| dpu.name.as_str()).collect();
            bail!(
                "rack {} has no DPU `{}`: it has {}",
                args.here.rack,
                args.here.dpu,
                names.join(", ")
            )
        }
        (None, None) => {
            let all = racks.list(&ListParams::default()).await.context("cannot list racks")?;
            let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
            bail!("the hub has no Rack `{}`: it has {}", args.here.rack, names.join(", "))
        }
    }
}
