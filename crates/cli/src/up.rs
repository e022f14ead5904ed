//! `interlock up`: a whole fleet in one process: server, controllers, workload clusters, agents.

use crate::demo;
use crate::output;
use crate::run::access::{HUB, Who, allow_at_hub, allow_for_cluster};
use crate::run::cluster::{Agent, Runtime, kind};
use crate::run::metrics::page;
use crate::run::wiring::{self, Seats};
use crate::run::{self, install};
use crate::serving::{Reach, Serving, Signals, block_on};
use anyhow::Context;
use clap::Args as ClapArgs;
use interlock_api::placement::{Connection, Ref, WorkloadCluster, WorkloadClusterSpec};
use interlock_kernel::{Kind, Place};
use interlock_outside::processes::Processes;
use interlock_programs::{accounts, list};
use interlock_shell::{NoHands, Runner, Shell};
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Client, ResourceExt};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long processes may take to stop when everything is stopped.
const GRACE: Duration = Duration::from_secs(5);

/// Options of `up`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    reach: Reach,
    /// The workload clusters to have, besides those that are there already
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
    /// Say more: why nothing happened, too
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
            hub: fleet.hub.clone(),
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
    hub: Client,
    shell: Shell,
    runners: Vec<Runner>,
    processes: Vec<Arc<Processes>>,
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
        let mut seats = Seats::new();
        for account in accounts(&list(&run::hub_program(&pace))).into_keys() {
            let controllers = known.acting_as(Who::OfHub(account).client(server, HUB));
            seats.insert(account, [(Place::HUB, controllers)].into());
        }
        let mut runners = wiring::run(&shell, &run::hub_program(&pace), &seats, NoHands)?;
        let mut processes = Vec::new();
        for name in clusters(&hub, &args.clusters).await? {
            let registered = register(&hub, &name).await?;
            let of = Ref::new(&name, registered.uid().unwrap_or_default());
            let folder = serving.directory.join("clusters").join(&of.uid);
            let runtime = run::open_processes(&folder, args.may_be_root())?;
            processes.push(Arc::clone(&runtime));
            let volumes = run::open_volumes(&serving.directory, (&of.uid, &runtime))?;
            let further: Vec<Kind> = registered.spec.resources.iter().map(kind).collect();
            let owner = Who::Owner.client(server, &name);
            install::install_volumes(&owner).await?;
            allow_for_cluster((&hub, &owner), &name, &further).await?;
            let there = Who::Caches.client(server, &name);
            let there = interlock_shell::Server::new(&name, there);
            let agent = Agent {
                of,
                further: registered.spec.resources,
                runtime: Runtime::on_this_machine(runtime, volumes),
                heartbeat_every: pace.heartbeat_every,
            };
            let mut seats = Seats::new();
            for (account, places) in accounts(&list(&agent.program())) {
                let who = Who::OfCluster(account, &name);
                let at = |place| match place {
                    Place::HUB => (place, known.acting_as(who.client(server, HUB))),
                    _ => (place, there.acting_as(who.client(server, &name))),
                };
                seats.insert(account, places.into_iter().map(at).collect());
            }
            runners.extend(agent.run(&shell, &seats)?);
        }
        Ok(Fleet { hub, shell, runners, processes })
    }

    /// Controllers first, so that nothing is started any more; then every process.
    async fn stop(self) {
        self.shell.stop().await;
        drop(self.runners);
        for processes in self.processes {
            let stopped = tokio::task::spawn_blocking(move || processes.stop_all(GRACE)).await;
            match stopped {
                Ok(Ok(left)) if left.is_empty() => {}
                Ok(Ok(left)) => tracing::error!(?left, "these processes will not die"),
                Ok(Err(error)) => tracing::error!(%error, "cannot stop the processes"),
                Err(error) => tracing::error!(%error, "cannot stop the processes"),
            }
        }
    }
}

/// The names of the workload clusters: those that the hub has, and those that are asked for.
async fn clusters(hub: &Client, asked: &[String]) -> anyhow::Result<Vec<String>> {
    let known: Api<WorkloadCluster> = Api::all(hub.clone());
    let known = known.list(&Default::default()).await.context("cannot list the clusters")?;
    let embedded = known.iter().filter_map(|cluster| match &cluster.spec.connection {
        Connection::LogicalCluster(name) => Some(name.clone()),
        Connection::KubeconfigSecret(_) | Connection::InCluster {} => None,
    });
    let mut names: Vec<String> = embedded.collect();
    names.extend(asked.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    names.sort();
    Ok(names)
}

/// Makes a logical cluster and tells the hub of it, unless that was done before.
async fn register(hub: &Client, name: &str) -> anyhow::Result<WorkloadCluster> {
    let kind = GroupVersionKind::gvk("interlock.dev", "v1alpha1", "LogicalCluster");
    let resource = ApiResource::from_gvk_with_plural(&kind, "logicalclusters");
    let logical: Api<DynamicObject> = Api::all_with(hub.clone(), &resource);
    create(&logical, &DynamicObject::new(name, &resource)).await?;
    let clusters: Api<WorkloadCluster> = Api::all(hub.clone());
    let spec = WorkloadClusterSpec {
        connection: Connection::LogicalCluster(name.to_owned()),
        unschedulable: false,
        drain: false,
        resources: Vec::new(),
    };
    let mut cluster = WorkloadCluster::new(name, spec);
    cluster.labels_mut().insert("interlock.dev/embedded".to_owned(), "true".to_owned());
    create(&clusters, &cluster).await?;
    clusters.get(name).await.with_context(|| format!("cannot read cluster {name}"))
}

async fn create<K>(api: &Api<K>, object: &K) -> anyhow::Result<()>
where
    K: kube::Resource + Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let name = object.meta().name.clone().unwrap_or_default();
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot make {name}")),
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
