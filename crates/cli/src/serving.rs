//! An API server that clients reach: its socket, its kubeconfig, its end.

use crate::output;
use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use interlock_apiserver::access::certificates::ServingFiles;
use interlock_apiserver::{
    Config, ListenError, Listening, Server, StartError, Transport, WebhookReach, kubeconfig,
};
use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// The kubeconfig is written at most once in so long.
const KUBECONFIG_PAUSE: Duration = Duration::from_secs(1);
const RENEWALS: Duration = Duration::from_secs(3600);

/// Where a server keeps its data, and how it is reached.
#[derive(Debug, ClapArgs)]
pub(crate) struct Reach {
    /// Directory of data, keys and the kubeconfig [default: $XDG_DATA_HOME/interlock or ~/.local/share/interlock]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The address to listen on; with port 0 a free port is chosen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// A DNS name or IP address for the certificate of the server (may be repeated)
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// PEM file with a certificate to serve with, and those between it and its authority, instead of one of the server's own
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_private_key_file",
        conflicts_with = "insecure_http"
    )]
    tls_cert_file: Option<PathBuf>,
    /// PEM file with the key of --tls-cert-file; both files are read again every hour
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// PEM file with the authority of --tls-cert-file, for kubeconfigs and kube-root-ca.crt [default: what is in --tls-cert-file]
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_ca_file: Option<PathBuf>,
    /// PEM file with authorities whose client certificates are accepted, too: CN is the user, O are the groups (may be repeated)
    #[arg(long, value_name = "FILE")]
    client_ca_file: Vec<PathBuf>,
    /// The URL of the server for token verifiers; the issuer of each cluster begins with it [default: https://ADDR]
    #[arg(long, value_name = "URL", value_parser = external_url)]
    external_url: Option<String>,
    /// File to write the kubeconfig to [default: DIR/kubeconfig]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A file of static tokens, one per line: token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Serve without TLS; only on a loopback address
    #[arg(long)]
    insecure_http: bool,
    /// Minimum time in seconds to keep history for watches that resume
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    history_seconds: u64,
    /// Where admission webhooks of the root cluster may be: anywhere, nowhere, or networks such as 10.0.0.0/8,fd00::/8
    #[arg(long, value_name = "WHERE", default_value = "anywhere")]
    root_webhooks: WebhookReach,
    /// The same for all other logical clusters; nowhere refuses webhooks that must be called
    #[arg(long, value_name = "WHERE", default_value = "nowhere")]
    tenant_webhooks: WebhookReach,
}

impl Reach {
    /// The directory that everything is kept in.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        match &self.data_dir {
            Some(directory) => Ok(directory.clone()),
            None => default_directory(),
        }
    }

    fn transport(&self) -> Transport {
        if self.insecure_http { Transport::InTheClear } else { Transport::Tls }
    }

    /// The certificate that was given, if one was.
    fn serving_certificate(&self) -> Option<ServingFiles> {
        Some(ServingFiles {
            certificate: self.tls_cert_file.clone()?,
            key: self.tls_private_key_file.clone()?,
            authority: self.tls_ca_file.clone(),
        })
    }

    fn config(&self, directory: &Path) -> Config {
        let mut names = self.name.clone();
        if !self.listen.ip().is_loopback() && !self.listen.ip().is_unspecified() {
            names.push(self.listen.ip().to_string());
        }
        Config {
            data_directory: Some(directory.to_owned()),
            names,
            serving_certificate: self.serving_certificate(),
            client_authorities: self.client_ca_file.clone(),
            token_file: self.token_file.clone(),
            compaction_interval: Duration::from_secs(self.history_seconds.max(1)),
            hub_definitions: own_kinds(),
            root_webhooks: self.root_webhooks.clone(),
            tenant_webhooks: self.tenant_webhooks.clone(),
            ..Config::default()
        }
    }
}

/// A URL that issuers can begin with: a query or a fragment would end up in the middle of them.
fn external_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split('/').next()).filter(|host| !host.is_empty());
    let is_plain =
        text.chars().all(|letter| letter.is_ascii_graphic() && !"?#\"\\".contains(letter));
    if host.is_none() || !is_plain {
        return Err("it must begin with https:// and a host, and have no query: https://hub.example.com:6443".into());
    }
    Ok(text.to_owned())
}

/// Interlock's own kinds: this server has them from the first start, in every logical cluster.
fn own_kinds() -> Vec<serde_json::Value> {
    let definitions = interlock_api::definitions().into_iter();
    let of_nodes = interlock_api::node_definitions().into_iter();
    let definitions = definitions.chain(of_nodes).chain(interlock_api::tenant_definitions());
    definitions
        .map(|definition| {
            serde_json::to_value(definition).expect("a definition has string keys only")
        })
        .collect()
}

/// A server that clients reach.
pub(crate) struct Serving {
    pub(crate) server: Server,
    pub(crate) directory: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) url: String,
    /// What the issuers of all logical clusters begin with.
    pub(crate) issuers: String,
    task: JoinHandle<()>,
    clusters: watch::Receiver<u64>,
    renewals: Interval,
    pause: Interval,
}

impl Serving {
    /// Opens the store, listens, and writes the kubeconfig.
    pub(crate) async fn start(reach: &Reach) -> anyhow::Result<Serving> {
        let directory = reach.directory()?;
        let server = open(reach, &directory).await?;
        report_recovery(&server);
        match Serving::reach(server.clone(), directory, reach).await {
            Ok(serving) => Ok(serving),
            Err(error) => {
                server.stop().await;
                Err(error)
            }
        }
    }

    async fn reach(server: Server, directory: PathBuf, reach: &Reach) -> anyhow::Result<Serving> {
        let transport = reach.transport();
        let listening = match Listening::on(&server, reach.listen, transport).await {
            Ok(listening) => listening,
            Err(ListenError::Bind { address, source }) if source.kind() == ErrorKind::AddrInUse => {
                bail!(
                    "the address {address} is in use: stop the process that uses it, or set \
                     another --listen"
                )
            }
            Err(error) => return Err(error.into()),
        };
        let url = url(listening.address(), transport);
        let issuers = reach.external_url.clone().unwrap_or_else(|| url.clone());
        server.reached_at(&issuers);
        let kubeconfig = reach.kubeconfig.clone().unwrap_or_else(|| directory.join("kubeconfig"));
        let clusters = server.cluster_changes();
        write_kubeconfig(&server, &kubeconfig, &url)?;
        let task = tokio::spawn(listening.run());
        let mut renewals = interval(RENEWALS);
        renewals.tick().await;
        let mut pause = interval(KUBECONFIG_PAUSE);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Serving { server, directory, kubeconfig, url, issuers, task, clusters, renewals, pause })
    }

    /// Logs that it is ready.
    pub(crate) fn say_ready(&self) {
        tracing::info!(
            url = %self.url, kubeconfig = %self.kubeconfig.display(),
            clusters = self.server.cluster_names().len(), "ready",
        );
    }

    /// Keeps the kubeconfig up until the store fails, and says why it did. May be given up and
    /// called again.
    pub(crate) async fn fails(&mut self) -> String {
        loop {
            tokio::select! {
                why = self.server.failed() => return why,
                // A thousand clusters made in a row are a few new files, not a thousand.
                changed = async { self.pause.tick().await; self.clusters.changed().await } => {
                    if changed.is_ok() && let Err(error) = self.write_kubeconfig() {
                        tracing::warn!(because = format!("{error:#}"), "cannot write the kubeconfig");
                    }
                }
                _ = self.renewals.tick() => {
                    let _ = self.write_kubeconfig();
                }
            }
        }
    }

    fn write_kubeconfig(&self) -> anyhow::Result<()> {
        write_kubeconfig(&self.server, &self.kubeconfig, &self.url)
    }

    /// Ends it, after the requests that are under way, unless there is a hurry.
    pub(crate) async fn stop(self, failed: Option<String>, signals: &mut Signals) -> ExitCode {
        if failed.is_none() {
            self.server.begin_stop();
            tokio::select! {
                _ = self.task => {}
                signal = signals.next() => tracing::info!(because = signal, "stopping at once"),
            }
        }
        self.server.stop().await;
        let Some(why) = failed else { return ExitCode::SUCCESS };
        output::complain(&format!(
            "error: the store failed: {why}\nnothing that was acknowledged is lost; start again to recover"
        ));
        ExitCode::FAILURE
    }
}

/// Runs something that waits, on all cores; what still runs at the end has had its time.
pub(crate) fn block_on(
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads that serve")?;
    let code = runtime.block_on(work)?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(code)
}

async fn open(reach: &Reach, directory: &Path) -> anyhow::Result<Server> {
    match Server::start(reach.config(directory)).await {
        Ok(server) => Ok(server),
        Err(StartError::Store(interlock_apiserver::OpenError::Locked { holder })) => bail!(
            "the data directory {} is in use by {holder}: stop that process, or set another \
             --data-dir",
            directory.display()
        ),
        Err(StartError::TokenFile(error)) => {
            let path = reach.token_file.clone().unwrap_or_default();
            Err(error).context(format!("cannot use --token-file {}", path.display()))
        }
        Err(error) => Err(error).context(format!("cannot serve from {}", directory.display())),
    }
}

fn url(address: SocketAddr, transport: Transport) -> String {
    let scheme = match transport {
        Transport::Tls => "https",
        Transport::InTheClear => "http",
    };
    // Clients on this machine reach a server that listens everywhere by loopback.
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    format!("{scheme}://{address}")
}

fn write_kubeconfig(server: &Server, path: &Path, url: &str) -> anyhow::Result<()> {
    let authority = server.authority().context("the server has no certificates")?;
    let names: Vec<String> = server.cluster_names().iter().map(ToString::to_string).collect();
    let file = kubeconfig::Kubeconfig {
        server: url,
        authority_pem: &authority.server_authority_pem()?,
        admin: &authority.admin(),
        clusters: &names,
    };
    file.write(path).with_context(|| format!("cannot write the kubeconfig {}", path.display()))
}

fn report_recovery(server: &Server) {
    let recovery = server.recovery();
    if let Some(torn) = &recovery.torn {
        tracing::warn!(
            file = torn.file,
            offset = torn.offset,
            bytes = torn.bytes,
            last_revision = torn.after,
            "removed an unfinished write at the end of the log; it was never acknowledged",
        );
    }
    for damaged in &recovery.damaged {
        tracing::warn!(what = damaged, "moved a damaged file away; an older copy is complete");
    }
    tracing::debug!(revision = recovery.revision, frames = recovery.frames, "read the store");
}

/// What asks for the end. Kept for the whole time: a signal that comes between two waits is not lost.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn new() -> anyhow::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
        })
    }

    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

pub(crate) fn default_directory() -> anyhow::Result<PathBuf> {
    if let Some(home) = std::env::var_os("XDG_DATA_HOME").filter(|home| !home.is_empty()) {
        return Ok(PathBuf::from(home).join("interlock"));
    }
    let home = std::env::var_os("HOME").context("HOME is not set: set --data-dir")?;
    Ok(PathBuf::from(home).join(".local/share/interlock"))
}

/// Logs every change; with `is_verbose` also why a step changed nothing.
pub(crate) fn log(is_verbose: bool) {
    log_from(if is_verbose { tracing::Level::DEBUG } else { tracing::Level::INFO });
}

/// Logs to standard error from this level on, in colour on a terminal. Dependencies log warnings only,
/// whatever the level: a client that logs every request would hide the lines of Interlock.
pub(crate) fn log_from(level: tracing::Level) {
    use std::io::IsTerminal;
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    let ours = Targets::new().with_default(LevelFilter::WARN).with_target("interlock", level);
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| output::Lines)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_target(false)
        .finish()
        .with(ours)
        .init();
}
