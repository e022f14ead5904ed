//! `interlock up`: a whole fleet in one process: server, controllers, workload clusters, agents, tenants and machines.

mod rack;

use crate::demo;
use crate::fleet::keep;
use crate::output;
use crate::run::access::{HUB, Who, allow_at_hub};
use crate::run::audit::{self, Auditing};
use crate::run::iam::{self, EmbeddedIam};
use crate::run::machines::{self, Machines, PowerCommand};
use crate::run::metrics::page;
use crate::run::supervisor::{Ground, Supervisor};
use crate::run::wiring::{self, Seats};
use crate::run::{self, identities, install, tokens};
use crate::serving::{Reach, Serving, Signals, block_on};
use anyhow::Context;
use clap::Args as ClapArgs;
use interlock_api::placement::{Connection, WorkloadCluster, WorkloadClusterSpec};
use interlock_kernel::Place;
use interlock_outside::processes::Processes;
use interlock_placement::runtime::Scope;
use interlock_programs::served::Serves;
use interlock_programs::{Account, Rollouts, accounts, list};
use interlock_shell::{NoDriver, Runner, Shell};
use jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use rack::Holds;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tracing::Level;

/// How often the clusters are listed, until all are served.
const CLUSTERS_AGAIN: Duration = Duration::from_secs(1);

/// Where the drivers of embedded DPUs keep their records, below the data directory.
const DPUS: &str = "dpus";
/// How often the demonstration compares the cloud with its declarations: it has no time to wait ten minutes.
const DEMO_RESYNC: Duration = Duration::from_secs(2);

/// Options of `up`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    reach: Reach,
    /// Workload clusters to register, in addition to registered ones
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "west,east,north")]
    clusters: Vec<String>,
    /// At the first start, make no tenants and no rack with machines
    #[arg(long)]
    no_machines: bool,
    /// The program that says whether a DPU has power, for Racks with fencing.power: Command
    #[arg(long, value_name = "PROGRAM")]
    power_command: Option<PathBuf>,
    /// Show one story through all systems, each promise checked from outside; then move a namespace until stopped
    #[arg(long)]
    demo: bool,
    /// With --demo: stop at the end of the story; exit status 0 if every promise was kept
    #[arg(long, requires = "demo")]
    once: bool,
    /// On a terminal: show no picture of the fleet below the log
    #[arg(long)]
    no_picture: bool,
    /// Allow pods to run as processes of root
    #[arg(long)]
    allow_root_processes: bool,
    /// Run only pods with runtimeClassName interlock-process; by default pods with a command and no runtimeClassName run, too
    #[arg(long)]
    no_default_runtime_class: bool,
    /// The loopback address of the embedded IAM and STS; with port 0 a free port is chosen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    iam_listen: SocketAddr,
    #[command(flatten)]
    identities: identities::Args,
    #[command(flatten)]
    audit: audit::Args,
    /// Log every change and not only warnings; twice (-vv): enable debug logging
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl Args {
    /// Whether processes may be those of root. The demonstration runs one program, which is this one.
    fn may_be_root(&self) -> bool {
        self.allow_root_processes || self.demo
    }

    /// Whether the first start makes tenants and a rack with machines. The demonstration makes machines of its own.
    fn makes_machines(&self) -> bool {
        !(self.no_machines || self.demo)
    }

    /// Which pods of the clusters are processes of this machine.
    fn scope(&self) -> Scope {
        if self.no_default_runtime_class { Scope::OfClass } else { Scope::All }
    }

    /// The options of identities.
    fn identities(&self) -> identities::Args {
        match self.demo {
            true => self.identities.clone().comparing_every(DEMO_RESYNC),
            false => self.identities.clone(),
        }
    }

    /// The lowest level that is logged. A person at a terminal gets the banner and what needs a
    /// person; a file or a log collector also gets every change. The demonstration prints the changes
    /// that it makes.
    fn log_level(&self, is_terminal: bool) -> Level {
        let is_quiet = is_terminal || self.demo;
        match self.verbose.saturating_add(u8::from(!is_quiet)) {
            0 => Level::WARN,
            1 => Level::INFO,
            _ => Level::DEBUG,
        }
    }
}

/// Runs the fleet until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    crate::serving::log_from(args.log_level(io::stderr().is_terminal()));
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
            output::say(&welcome(&serving, &fleet, args))?;
        }
        let kubeconfig = serving.kubeconfig.clone();
        let stage = demo::Stage {
            hub: fleet.ground.hub.clone(),
            server: serving.server.clone(),
            directory: serving.directory.join("demo"),
            volumes: serving.directory.join("volumes"),
            dpus: serving.directory.join(DPUS),
            cloud: fleet.cloud.clone(),
            clusters: args.clusters.clone(),
            killer: fleet.supervisor.killer(),
            is_once: args.once,
        };
        let screen = if args.no_picture { None } else { output::Screen::begin() };
        let picture = async {
            match &screen {
                Some(screen) => keep(screen, &kubeconfig).await,
                None => std::future::pending().await,
            }
        };
        let mut outcome = None;
        let failed = tokio::select! {
            signal = signals.next() => {
                tracing::info!(because = signal, "stopping");
                None
            }
            why = serving.fails() => Some(why),
            ended = stage.run(), if args.demo => {
                outcome = Some(ended);
                None
            }
            Err(error) = picture => {
                outcome = Some(Err(error));
                None
            }
        };
        drop(screen);
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
    /// The hub's controllers, those of cloud identities, of updates and of machines.
    runners: Vec<Runner>,
    /// Starts and stops the agents of clusters.
    supervisor: Supervisor,
    /// Starts and stops what serves tenants and DPUs.
    machines: Machines,
    /// The embedded IAM, unless the cloud account of the fleet is somewhere else.
    iam: Option<EmbeddedIam>,
    /// The cloud account of the fleet.
    cloud: identities::Account,
    /// Judges what is recorded, unless nobody wants it.
    auditing: Option<Auditing>,
    /// The tenants and machines at the start.
    holds: Holds,
}

impl Fleet {
    async fn start(serving: &Serving, args: &Args) -> anyhow::Result<Fleet> {
        let server = &serving.server;
        let hub = Who::Owner.client(server, HUB);
        install::install(&hub).await?;
        install::install_identities(&hub).await?;
        install::install_machines(&hub).await?;
        allow_at_hub(&hub).await?;
        let iam = match args.identities.has_endpoint() {
            true => None,
            false => Some(embedded_iam(serving, args).await?),
        };
        let mut auditing = args.audit.begin(&serving.directory, &run::instance())?;
        let shell = audit::recording(Shell::new(run::settings()), auditing.as_ref());
        if let Some(auditing) = &mut auditing {
            auditing.judge(&hub)?;
            server.metrics().add(auditing.metrics());
        }
        let counts = shell.metrics();
        server.metrics().add(move || page(&counts, Timestamp::now()));
        let intervals = run::Intervals::default();
        let known = interlock_shell::Server::new("hub", Who::Caches.client(server, HUB));
        let program = run::hub_program(&intervals);
        let seat = |account| {
            let controllers = known.acting_as(Who::OfHub(account).client(server, HUB));
            (account, [(Place::HUB, controllers)].into())
        };
        let others = [Account::Identities, Account::Machines, Account::Rollouts];
        let used = accounts(&list(&program)).into_keys().chain(others);
        let seats: Seats = used.map(seat).collect();
        let mut runners = wiring::run(&shell, &program, &seats, NoDriver)?;
        let power = PowerCommand::of(args.power_command.clone())?;
        runners.extend(machines::at_hub(&shell, &seats, power)?);
        runners.extend(wiring::run(&shell, &Rollouts, &seats, NoDriver)?);
        let cloud = match &iam {
            Some(iam) => iam.account(),
            None => args.identities.account_of_environment().await?,
        };
        let (instance, shell_of) = (run::instance(), &shell);
        let at =
            identities::Ground { hub: &hub, shell: shell_of, seats: &seats, instance: &instance };
        runners.extend(args.identities().run(&at, cloud.clone()).await?);
        let holds = populate(&hub, args).await?;
        let ground = Arc::new(Ground {
            server: server.clone(),
            hub,
            known,
            shell,
            directory: serving.directory.clone(),
            may_be_root: args.may_be_root(),
            scope: args.scope(),
            heartbeat_every: intervals.heartbeat_every,
            cloud: iam.as_ref().map_or_else(tokens::cloud_of_environment, EmbeddedIam::for_pods),
        });
        let supervisor = Supervisor::start(Arc::clone(&ground));
        server.metrics().add(supervisor.metrics());
        let dpus = machines::Device::Local(serving.directory.join(DPUS));
        let reach = machines::Reach::Here(Arc::clone(&ground));
        let machines = Machines::start(reach, Serves::Fleet, dpus);
        let fleet = Fleet { ground, runners, supervisor, machines, iam, cloud, auditing, holds };
        fleet.begin_to_serve().await?;
        Ok(fleet)
    }

    /// Returns once the start of every agent was tried. A start that failed is tried again later: no
    /// other cluster waits for it.
    async fn begin_to_serve(&self) -> anyhow::Result<()> {
        loop {
            // A cluster that is deleted in the meantime is never tried.
            let clusters = clusters(&self.ground.hub).await?;
            if timeout(CLUSTERS_AGAIN, self.supervisor.tried(&clusters)).await.is_ok() {
                return Ok(());
            }
        }
    }

    /// Controllers first, so that nothing is started any more; then every process.
    async fn stop(self) {
        self.machines.stop().await;
        let agents = self.supervisor.stop().await;
        match Arc::into_inner(self.ground) {
            Some(ground) => ground.shell.stop().await,
            // A start that did not end in time has it: the controllers end when they are dropped.
            None => tracing::warn!(
                "the controllers were stopped without waiting for their current steps"
            ),
        }
        drop(self.runners);
        if let Some(auditing) = self.auditing {
            auditing.stop();
        }
        if let Some(iam) = self.iam {
            iam.stop().await;
        }
        for agent in agents {
            agent.stop_processes().await;
        }
    }
}

/// An IAM and STS on the store of the hub.
async fn embedded_iam(serving: &Serving, args: &Args) -> anyhow::Result<EmbeddedIam> {
    let options = iam::Options {
        server: &serving.server,
        issuers: &serving.issuers,
        directory: &serving.directory,
        listen: args.iam_listen,
    };
    EmbeddedIam::start(&options).await
}

/// Makes what a fleet begins with; the tenants and machines that it has then.
async fn populate(hub: &Client, args: &Args) -> anyhow::Result<Holds> {
    // A fleet without clusters was never started. Later, a machine or a tenant that a person deleted stays deleted.
    let is_first = clusters(hub).await?.is_empty();
    if is_first && args.makes_machines() {
        rack::make(hub).await?;
    }
    for name in &args.clusters {
        register(hub, name).await?;
    }
    Holds::read(hub).await
}

/// The uids of all clusters that the hub has.
async fn clusters(hub: &Client) -> anyhow::Result<Vec<String>> {
    let known: Api<WorkloadCluster> = Api::all(hub.clone());
    let known = known.list(&Default::default()).await.context("cannot list the clusters")?;
    Ok(known.iter().filter_map(ResourceExt::uid).collect())
}

/// Registers a cluster at the hub, unless it is registered. The supervisor starts its agent, as for
/// every other WorkloadCluster.
async fn register(hub: &Client, name: &str) -> anyhow::Result<()> {
    let clusters: Api<WorkloadCluster> = Api::all(hub.clone());
    let spec = WorkloadClusterSpec {
        connection: Connection::LogicalCluster(name.to_owned()),
        unschedulable: false,
        drain: false,
        resources: Vec::new(),
        machines: Vec::new(),
        drains: Vec::new(),
    };
    let mut cluster = WorkloadCluster::new(name, spec);
    cluster.labels_mut().insert("interlock.dev/embedded".to_owned(), "true".to_owned());
    match clusters.create(&PostParams::default(), &cluster).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot register cluster {name}")),
    }
}

fn welcome(serving: &Serving, fleet: &Fleet, args: &Args) -> String {
    let kubeconfig = serving.kubeconfig.display();
    let clusters = args.clusters.join(", ");
    let to = args.clusters.last().map_or("CLUSTER", String::as_str);
    let logs = match args.log_level(io::stderr().is_terminal()) {
        Level::WARN => "Only warnings are logged; start with -v to log every change.\n",
        _ => "",
    };
    let iam = match &fleet.iam {
        Some(EmbeddedIam { url, config, .. }) => {
            format!("IAM and STS: {url} (export AWS_CONFIG_FILE={})\n\n", config.display())
        }
        None => String::new(),
    };
    let (machines, assign) = fleet.holds.words();
    format!(
        "the fleet is ready; workload clusters: {clusters}{machines}\n\n\
         In another terminal:\n  export KUBECONFIG={kubeconfig}\n  \
         kubectl create namespace shop && kubectl label namespace shop interlock.dev/placed=true\n  \
         interlock move shop --to {to} --wait\n  \
         interlock explain shop\n{assign}\n\
         {iam}{logs}Ctrl-C stops the fleet; the next start resumes it.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Up {
        #[command(flatten)]
        args: Args,
    }

    fn level(is_terminal: bool, options: &[&str]) -> Level {
        let words = ["up"].iter().chain(options);
        Up::parse_from(words).args.log_level(is_terminal)
    }

    #[test]
    fn a_terminal_shows_warnings_only_unless_more_is_asked_for() {
        assert_eq!(level(true, &[]), Level::WARN);
        assert_eq!(level(true, &["-v"]), Level::INFO);
        assert_eq!(level(true, &["-vv"]), Level::DEBUG);
        assert_eq!(level(true, &["-vvv"]), Level::DEBUG);
    }

    #[test]
    fn the_first_start_makes_machines_unless_an_option_says_no_or_there_is_a_story_to_tell() {
        let makes = |options: &[&str]| {
            let words = ["up"].iter().chain(options);
            Up::parse_from(words).args.makes_machines()
        };
        assert!(makes(&[]));
        assert!(!makes(&["--no-machines"]));
        assert!(!makes(&["--demo"]));
    }

    #[test]
    fn a_log_file_has_every_change_and_the_demonstration_only_warnings() {
        assert_eq!(level(false, &[]), Level::INFO);
        assert_eq!(level(false, &["--verbose"]), Level::DEBUG);
        assert_eq!(level(false, &["--demo"]), Level::WARN);
        assert_eq!(level(false, &["--demo", "-v"]), Level::INFO);
    }
}
