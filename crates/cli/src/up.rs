//! `interlock up`: a whole fleet in one process: server, controllers, workload clusters, agents.

use crate::demo;
use crate::output;
use crate::run::access::{HUB, Who, allow_at_hub};
use crate::run::metrics::page;
use crate::run::supervisor::{Ground, Supervisor};
use crate::run::wiring::{self, Seats};
use crate::run::{self, install};
use crate::serving::{Reach, Serving, Signals, block_on};
use anyhow::Context;
use clap::Args as ClapArgs;
use interlock_api::placement::{Connection, WorkloadCluster, WorkloadClusterSpec};
use interlock_kernel::Place;
use interlock_outside::processes::Processes;
use interlock_programs::{accounts, list};
use interlock_shell::{NoHands, Runner, Shell};
use jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How often it is looked which clusters there are, until all are served.
const CLUSTERS_AGAIN: Duration = Duration::from_secs(1);

/// Options of `up`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    reach: Reach,
    /// The workload clusters to register, besides those that are registered already
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "west,east,north")]
    clusters: Vec<String>,
    /// Place a small app that writes without pause, and move it around
    #[arg(long)]
    demo: bool,
    /// With --demo: stop after one round; the exit status says whether every promise was kept
    #[arg(long, requires = "demo")]
    once: bool,
    /// Run pods as processes even if that makes them processes of root
    #[arg(long)]
    allow_root_processes: bool,
    /// Enable debug logging
    #[arg(long, short)]
    verbose: bool,
}

impl Args {
    /// Whether processes may be those of root. The demonstration runs one program, which is this one.
    fn may_be_root(&self) -> bool {
        self.allow_root_processes || self.demo
    }
}

/// Runs the fleet until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match (args.verbose, args.demo) {
        // The demonstration tells its own story.
        (false, true) => crate::serving::log_warnings(),
        (is_verbose, _) => crate::serving::log(is_verbose),
    }
    if !args.may_be_root() {
        // Before anything is made that would be left behind.
        let checked = Processes::refuse_root(&args.reach.directory()?);
        checked.context(run::NO_PROCESSES)?;
    }
    block_on(async {
        let mut signals = Signals::new()?;
        let mut serving = Serving::start(&args.reach).await?;
        let fleet = match Fleet::start(&serving, args).await {
            Ok(fleet) => fleet,
            Err(error) => {
                serving.stop(None, &mut signals).await;
                return Err(error);
            }
        };
        serving.say_ready();
        if !args.demo {
            output::say(&welcome(&serving, args))?;
        }
        let demo = demo::Demo {
            hub: fleet.ground.hub.clone(),
            directory: serving.directory.join("demo"),
            volumes: serving.directory.join("volumes"),
            clusters: args.clusters.clone(),
            is_once: args.once,
        };
        let mut outcome = None;
        let failed = tokio::select! {
            signal = signals.next() => {
                tracing::info!(because = signal, "stopping");
                None
            }
            why = serving.fails() => Some(why),
            ended = demo.run(), if args.demo => {
                outcome = Some(ended);
                None
            }
        };
        fleet.stop().await;
        let code = serving.stop(failed, &mut signals).await;
        match outcome {
            None => Ok(code),
            Some(Ok(true)) => Ok(ExitCode::SUCCESS),
            Some(Ok(false)) => Ok(ExitCode::FAILURE),
            Some(Err(error)) => Err(error),
        }
    })
}

/// Everything of the fleet but its server.
struct Fleet {
    ground: Arc<Ground>,
    /// The hub's controllers.
    runners: Vec<Runner>,
    /// Starts and stops the agents of clusters.
    supervisor: Supervisor,
}

impl Fleet {
    async fn start(serving: &Serving, args: &Args) -> anyhow::Result<Fleet> {
        let server = &serving.server;
        let hub = Who::Owner.client(server, HUB);
        install::install(&hub).await?;
        allow_at_hub(&hub).await?;
        let shell = Shell::new(run::settings());
        let counts = shell.metrics();
        server.metrics().add(move || page(&counts, Timestamp::now()));
        let pace = run::Pace::default();
        let known = interlock_shell::Server::new("hub", Who::Caches.client(server, HUB));
        let program = run::hub_program(&pace);
        let seat = |account| {
            let controllers = known.acting_as(Who::OfHub(account).client(server, HUB));
            (account, [(Place::HUB, controllers)].into())
        };
        let seats: Seats = accounts(&list(&program)).into_keys().map(seat).collect();
        let runners = wiring::run(&shell, &program, &seats, NoHands)?;
        for name in &args.clusters {
            register(&hub, name).await?;
        }
        let ground = Arc::new(Ground {
            server: server.clone(),
            hub,
            known,
            shell,
            directory: serving.directory.clone(),
            may_be_root: args.may_be_root(),
            heartbeat_every: pace.heartbeat_every,
        });
        let supervisor = Supervisor::start(Arc::clone(&ground));
        server.metrics().add(supervisor.metrics());
        let fleet = Fleet { ground, runners, supervisor };
        fleet.begin_to_serve().await?;
        Ok(fleet)
    }

    /// Returns once the start of every agent was tried. One that failed is tried again later: it keeps
    /// nobody else waiting.
    async fn begin_to_serve(&self) -> anyhow::Result<()> {
        loop {
            // A cluster that goes in the meantime is never tried.
            let clusters = clusters(&self.ground.hub).await?;
            if timeout(CLUSTERS_AGAIN, self.supervisor.tried(&clusters)).await.is_ok() {
                return Ok(());
            }
        }
    }

    /// Controllers first, so that nothing is started any more; then every process.
    async fn stop(self) {
        let agents = self.supervisor.stop().await;
        match Arc::into_inner(self.ground) {
            Some(ground) => ground.shell.stop().await,
            // A start that did not end in time has it: the controllers end when they are dropped.
            None => tracing::warn!("the controllers are stopped without waiting for them"),
        }
        drop(self.runners);
        for agent in agents {
            agent.stop_processes().await;
        }
    }
}

/// The uids of all clusters that the hub has.
async fn clusters(hub: &Client) -> anyhow::Result<Vec<String>> {
    let known: Api<WorkloadCluster> = Api::all(hub.clone());
    let known = known.list(&Default::default()).await.context("cannot list the clusters")?;
    Ok(known.iter().filter_map(ResourceExt::uid).collect())
}

/// Tells the hub of a cluster, unless that was done before. The supervisor does the rest, as it does
/// for a cluster that somebody else registers.
async fn register(hub: &Client, name: &str) -> anyhow::Result<()> {
    let clusters: Api<WorkloadCluster> = Api::all(hub.clone());
    let spec = WorkloadClusterSpec {
        connection: Connection::LogicalCluster(name.to_owned()),
        unschedulable: false,
        drain: false,
        resources: Vec::new(),
    };
    let mut cluster = WorkloadCluster::new(name, spec);
    cluster.labels_mut().insert("interlock.dev/embedded".to_owned(), "true".to_owned());
    match clusters.create(&PostParams::default(), &cluster).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot register cluster {name}")),
    }
}

fn welcome(serving: &Serving, args: &Args) -> String {
    let kubeconfig = serving.kubeconfig.display();
    let clusters = args.clusters.join(", ");
    let to = args.clusters.last().map_or("CLUSTER", String::as_str);
    format!(
        "the fleet is up: {clusters}\n\n  export KUBECONFIG={kubeconfig}\n\nthree things to try:\n  \
         kubectl create namespace shop && kubectl label namespace shop interlock.dev/placed=true\n  \
         interlock move shop --to {to} --wait\n  \
         interlock explain shop\n\nCtrl-C stops it; the next start resumes the same fleet\n"
    )
}
