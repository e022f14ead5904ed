//! `interlock controllers` and `interlock syncer`: the same code as in `up`, on servers that are
//! somewhere else.

use crate::connection::{config_of, from_kubeconfig};
use crate::location::{Found, Location};
use crate::run::access;
use crate::run::applier::ApiServers;
use crate::run::cluster::{Agent, Runtime};
use crate::run::machines::{self, Elsewhere, Machines, Planes, PowerCommand, Reach};
use crate::run::wiring::{self, Seats};
use crate::run::{
    CONTROLLERS_LEASE, Intervals, Lease, audit, hub_program, identities, install, instance, page,
    shell_that_leads, syncer_lease,
};
use crate::serving::{Signals, block_on, default_directory, log};
use anyhow::{Context, bail};
use clap::{Args as ClapArgs, ValueEnum};
use interlock_api::placement::{Connection, Ref, WorkloadCluster};
use interlock_kernel::Place;
use interlock_placement::runtime::Scope;
use interlock_programs::served::Serves;
use interlock_programs::{Account, Rollouts, accounts, roles};
use interlock_shell::{NoDriver, Places, Runner, Server, Shell};
use kube::api::Api;
use kube::config::Kubeconfig;
use kube::{Client, Config, ResourceExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Options of `controllers`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ControllersArgs {
    #[command(flatten)]
    location: Location,
    /// Do not install or update the CRDs of Interlock at the hub
    #[arg(long)]
    no_install: bool,
    #[command(flatten)]
    page: page::Args,
    #[command(flatten)]
    recording: audit::Recording,
    #[command(flatten)]
    intervals: Intervals,
    #[command(flatten)]
    identities: identities::Args,
    /// Also run the controllers of machines, and those of each tenant on its control plane
    #[arg(long)]
    machines: bool,
    /// With --machines: the program that says whether a DPU has power, for Racks with fencing.power: Command
    #[arg(long, value_name = "PROGRAM", requires = "machines")]
    power_command: Option<PathBuf>,
    /// Print what the controllers of cloud identities would do, write nothing to the hub or the cloud, and exit
    #[arg(long)]
    dry_run: bool,
    /// Enable debug logging
    #[arg(long, short)]
    verbose: bool,
}

/// Runs the hub's controllers, and those of cloud identities if these are asked for, until SIGTERM or SIGINT. Several may run: one of them leads.
pub(crate) fn controllers(args: &ControllersArgs) -> anyhow::Result<ExitCode> {
    log(args.verbose);
    block_on(async {
        let mut signals = Signals::new()?;
        let power = PowerCommand::of(args.power_command.clone())?;
        if args.dry_run {
            let (client, _) = connect(&args.location).await?;
            return crate::identity::dry_run(client, &args.identities).await;
        }
        let instance = instance();
        let recorder = args.recording.begin(&instance)?;
        let cloud = match args.identities.is_asked_for() {
            true => Some(args.identities.account_of_environment().await?),
            false => None,
        };
        let (client, config) = connect(&args.location).await?;
        if !args.no_install {
            let install = || async {
                install::install(&client).await?;
                if args.machines {
                    install::install_machines(&client).await?;
                }
                if cloud.is_some() { install::install_identities(&client).await } else { Ok(()) }
            };
            tokio::select! {
                _ = signals.next() => return Ok(ExitCode::SUCCESS),
                installed = retried(install) => installed?,
            }
        }
        let server = Server::new("hub", client.clone());
        let lease = Lease { name: CONTROLLERS_LEASE, instance: &instance };
        let shell = shell_that_leads(&server, lease, &args.intervals);
        let shell = audit::recorded(shell, recorder);
        args.page.serve(&shell).await?;
        let places: Places = [(Place::HUB, server.clone())].into();
        let accounts =
            [Account::Controllers, Account::Identities, Account::Machines, Account::Rollouts];
        let seats: Seats = accounts.map(|account| (account, places.clone())).into();
        let mut runners = wiring::run(&shell, &hub_program(&args.intervals), &seats, NoDriver)?;
        runners.extend(wiring::run(&shell, &Rollouts, &seats, NoDriver)?);
        if let Some(cloud) = cloud {
            let ground = identities::Ground {
                hub: &client,
                shell: &shell,
                seats: &seats,
                instance: &instance,
            };
            runners.extend(args.identities.run(&ground, cloud).await?);
        }
        let shell = Arc::new(shell);
        let mut tenants = None;
        if args.machines {
            runners.extend(machines::at_hub(&shell, &seats, power)?);
            let (own, installs) = (Arc::clone(&shell), !args.no_install);
            let planes = Planes::OfTenants;
            let there = Elsewhere { hub: server, config, shell: own, installs, planes };
            let reach = Reach::Elsewhere(Box::new(there));
            // No DPU is served here, so nothing is ever kept in this folder.
            let device = machines::Device::Local(default_directory()?.join("dpus"));
            tenants = Some(Machines::start(reach, Serves::Tenants, device));
        }
        until_stopped(shell, Running { runners, tenants }, &mut signals).await
    })
}

/// Options of `syncer`.
#[derive(Debug, ClapArgs)]
pub(crate) struct SyncerArgs {
    /// The WorkloadCluster to serve
    cluster: String,
    #[command(flatten)]
    location: Location,
    /// The kubeconfig of the cluster [default: the connection of the WorkloadCluster]
    #[arg(long, value_name = "FILE")]
    cluster_kubeconfig: Option<PathBuf>,
    /// Do not install or update CRDs and storage classes on the cluster
    #[arg(long)]
    no_install: bool,
    /// Also bring the cluster to what ClusterUpdates ask for, as user system:interlock:applier:CLUSTER
    #[arg(long)]
    updates: bool,
    /// Use the service account of this pod: the syncer runs in the cluster that it serves
    #[arg(long, conflicts_with = "cluster_kubeconfig")]
    in_cluster: bool,
    /// What runs the pods of the cluster
    #[arg(long, value_enum, default_value_t = RunsPods::Cluster)]
    runtime: RunsPods,
    /// Directory of processes and their volumes [default: the data directory]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Allow pods to run as processes of root
    #[arg(long)]
    allow_root_processes: bool,
    #[command(flatten)]
    page: page::Args,
    #[command(flatten)]
    recording: audit::Recording,
    #[command(flatten)]
    intervals: Intervals,
    /// Enable debug logging
    #[arg(long, short)]
    verbose: bool,
}

/// What runs the pods of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RunsPods {
    /// The cluster itself: it has nodes
    Cluster,
    /// This program, as processes of this machine (runtimeClassName: interlock-process)
    Process,
}

/// Serves one workload cluster until SIGTERM or SIGINT.
pub(crate) fn syncer(args: &SyncerArgs) -> anyhow::Result<ExitCode> {
    log(args.verbose);
    block_on(async {
        let mut signals = Signals::new()?;
        let recorder = args.recording.begin(&instance())?;
        let (shell, agent, seats) = tokio::select! {
            _ = signals.next() => return Ok(ExitCode::SUCCESS),
            agent = retried(|| agent_of(args)) => agent?,
        };
        let shell = audit::recorded(shell, recorder);
        args.page.serve(&shell).await?;
        let runners = agent.run(&shell, &seats)?;
        until_stopped(Arc::new(shell), Running { runners, tenants: None }, &mut signals).await
    })
}

/// How long a server that does not answer is waited for at the start: it may be starting, too.
const TIMEOUT: Duration = Duration::from_secs(20);
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// Asks again while the server does not answer at all. Whatever it answers is final.
async fn retried<T, F: Future<Output = anyhow::Result<T>>>(
    ask: impl Fn() -> F,
) -> anyhow::Result<T> {
    let began = Instant::now();
    loop {
        match ask().await {
            Err(error) if is_silence(&error) && began.elapsed() < TIMEOUT => {
                tracing::warn!("{error:#}; trying again");
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            answer => return answer,
        }
    }
}

fn is_silence(error: &anyhow::Error) -> bool {
    let silent =
        |error: &kube::Error| matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_));
    error.chain().filter_map(|cause| cause.downcast_ref()).any(silent)
}

/// The agent of the cluster that is asked for, the shell that is to run it, and on which servers.
async fn agent_of(args: &SyncerArgs) -> anyhow::Result<(Shell, Agent, Seats)> {
    let (client, hub_config) = connect(&args.location).await?;
    let clusters: Api<WorkloadCluster> = Api::all(client.clone());
    let found = clusters.get_opt(&args.cluster).await;
    let Some(cluster) = found.context("cannot ask the hub for the cluster")? else {
        bail!(
            "the hub has no WorkloadCluster `{}`: see kubectl get workloadclusters",
            args.cluster
        );
    };
    let uid = cluster.uid().unwrap_or_default();
    let of = Ref::new(&args.cluster, &uid);
    let config = match &args.cluster_kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            from_kubeconfig(file).await?
        }
        None if args.in_cluster => {
            Config::incluster().context("this program does not run in a cluster, as a pod")?
        }
        None => config_of(&cluster, &client, hub_config).await?,
    };
    let client_of = |config: &Config| {
        let client = Client::try_from(config.clone());
        client.with_context(|| format!("cannot make a client for cluster {}", args.cluster))
    };
    let reached = client_of(&config)?;
    let applier = args.updates.then(|| as_applier(&config, &args.cluster));
    let runtime = runtime(args, &uid)?;
    if !args.no_install && runtime.processes().is_some() {
        install::install_volumes(&reached).await?;
    }
    if !args.no_install && args.updates {
        let user = Account::Applier.user(Some(&args.cluster));
        install::install_fence(&reached, &user).await?;
        access::grant(&reached, &[roles::of_applier_on_cluster(&args.cluster)]).await?;
    }
    let hub = Server::new("hub", client);
    let (name, instance) = (syncer_lease(&args.cluster), instance());
    let lease = Lease { name: &name, instance: &instance };
    let shell = shell_that_leads(&hub, lease, &args.intervals);
    let served = Server::new(&args.cluster, reached);
    let agent = Agent {
        of,
        further: cluster.spec.resources.clone(),
        runtime,
        heartbeat_every: args.intervals.heartbeat_every,
        scope: match cluster.spec.connection {
            Connection::LogicalCluster(_) => Scope::All,
            Connection::KubeconfigSecret(_) | Connection::InCluster {} => Scope::Synced,
        },
        updates: applier.as_ref().map(ApiServers::reached_by),
    };
    // One kubeconfig for each server: whoever gave it decides who this program is.
    let places = Places::from([(Place::HUB, hub.clone()), (Place::CLUSTER, served)]);
    let accounts = accounts(&agent.rooms());
    let mut seats: Seats = accounts.into_keys().map(|account| (account, places.clone())).collect();
    if let Some(config) = applier {
        // What is counted goes by the names of servers, and this one has caches of its own.
        let there = Server::new(&format!("{}:applier", args.cluster), client_of(&config)?);
        seats.insert(Account::Applier, [(Place::HUB, hub), (Place::CLUSTER, there)].into());
    }
    Ok((shell, agent, seats))
}

/// How the applier of a cluster reaches it: as a user of its own, since the fence is for that user and for nobody else.
fn as_applier(config: &Config, cluster: &str) -> Config {
    let mut config = config.clone();
    config.auth_info.impersonate = Some(Account::Applier.user(Some(cluster)));
    config
}

pub(crate) async fn connect(location: &Location) -> anyhow::Result<(Client, Config)> {
    let Found { source, config, .. } = location.find().await?;
    let client = Client::try_from(config.clone());
    Ok((client.with_context(|| format!("cannot make a client of {source}"))?, config))
}

fn runtime(args: &SyncerArgs, uid: &str) -> anyhow::Result<Runtime> {
    if args.runtime == RunsPods::Cluster {
        let boot_id =
            std::fs::read_to_string(BOOT_ID).with_context(|| format!("cannot read {BOOT_ID}"))?;
        return Ok(Runtime::OfTheCluster { boot_id: boot_id.trim().to_owned() });
    }
    let folder = match &args.state_dir {
        Some(folder) => folder.clone(),
        None => default_directory()?,
    };
    let own = folder.join("clusters").join(uid);
    let processes = crate::run::open_processes(&own, args.allow_root_processes)?;
    let volumes = crate::run::open_volumes(&folder, uid, &processes)?;
    Ok(Runtime::on_this_machine(processes, volumes))
}

/// What runs until it is stopped.
struct Running {
    runners: Vec<Runner>,
    /// What starts and stops the controllers of tenants.
    tenants: Option<Machines>,
}

/// Processes go on without us: who comes next finds them.
async fn until_stopped(
    shell: Arc<Shell>,
    running: Running,
    signals: &mut Signals,
) -> anyhow::Result<ExitCode> {
    tracing::info!("ready");
    let signal = signals.next().await;
    tracing::info!(because = signal, "stopping");
    let Running { runners, tenants } = running;
    if let Some(tenants) = tenants {
        tenants.stop().await;
    }
    if let Some(shell) = Arc::into_inner(shell) {
        shell.stop().await;
    }
    drop(runners);
    Ok(ExitCode::SUCCESS)
}
