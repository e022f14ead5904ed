//! `interlock serve`: the API server and its store in the foreground, until it is told to stop.

use crate::output;
use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use interlock_apiserver::{
    Config, ListenError, Listening, Server, StartError, Transport, kubeconfig,
};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The kubeconfig is written at most once in so long.
const KUBECONFIG_PAUSE: Duration = Duration::from_secs(1);

/// Options of `serve`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Where data, keys and the kubeconfig are kept [default: $XDG_DATA_HOME/interlock or ~/.local/share/interlock]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The address to serve on; port 0 lets the machine choose one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// A name or address under which clients reach the server, for its certificate (may be repeated)
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// Where the kubeconfig is written [default: DIR/kubeconfig]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A file of static tokens, one a line: token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Serve without TLS; only on a loopback address
    #[arg(long)]
    insecure_http: bool,
    /// How long history is kept at least, for watches that resume, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    history_seconds: u64,
    /// Say more: why nothing happened, too
    #[arg(long, short)]
    verbose: bool,
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    log(args.verbose);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads that serve")?;
    let code = runtime.block_on(serve(args))?;
    // What still runs has had its time.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(code)
}

async fn serve(args: &Args) -> anyhow::Result<ExitCode> {
    // Before anything is opened: whoever asks early for the end gets a proper one, too.
    let mut signals = Signals::new()?;
    let directory = match &args.data_dir {
        Some(directory) => directory.clone(),
        None => default_directory()?,
    };
    let transport = if args.insecure_http { Transport::InTheClear } else { Transport::Tls };
    let mut names = args.name.clone();
    if !args.listen.ip().is_loopback() && !args.listen.ip().is_unspecified() {
        names.push(args.listen.ip().to_string());
    }
    let config = Config {
        data_directory: Some(directory.clone()),
        names,
        token_file: args.token_file.clone(),
        compaction_interval: Duration::from_secs(args.history_seconds.max(1)),
        ..Config::default()
    };
    let server = match Server::start(config).await {
        Ok(server) => server,
        Err(StartError::Store(interlock_apiserver::OpenError::Locked { holder })) => bail!(
            "the data directory {} is in use by {holder}: stop it, or give another --data-dir",
            directory.display()
        ),
        Err(StartError::TokenFile(error)) => {
            let path = args.token_file.clone().unwrap_or_default();
            return Err(error).context(format!("cannot use --token-file {}", path.display()));
        }
        Err(error) => {
            return Err(error).context(format!("cannot serve from {}", directory.display()));
        }
    };
    report_recovery(&server);
    let listening = match Listening::on(&server, args.listen, transport).await {
        Ok(listening) => listening,
        Err(ListenError::Bind { address, source }) if source.kind() == ErrorKind::AddrInUse => {
            bail!("the address {address} is in use: stop who has it, or give another --listen")
        }
        Err(error) => return Err(error.into()),
    };
    let address = listening.address();
    let path = args.kubeconfig.clone().unwrap_or_else(|| directory.join("kubeconfig"));
    let url = url(address, transport);
    let mut clusters = server.cluster_changes();
    write_kubeconfig(&server, &path, &url)?;
    let serving = tokio::spawn(listening.run());
    tracing::info!(
        %url, kubeconfig = %path.display(), clusters = server.cluster_names().len(), "ready",
    );
    let mut renewals = tokio::time::interval(Duration::from_secs(3600));
    renewals.tick().await;
    let mut pause = tokio::time::interval(KUBECONFIG_PAUSE);
    pause.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let failed = loop {
        tokio::select! {
            signal = signals.next() => {
                tracing::info!(because = signal, "stopping");
                break None;
            }
            why = server.failed() => break Some(why),
            // A thousand clusters made in a row are a few new files, not a thousand.
            changed = async { pause.tick().await; clusters.changed().await } => {
                if changed.is_ok() && let Err(error) = write_kubeconfig(&server, &path, &url) {
                    tracing::warn!(because = format!("{error:#}"), "cannot write the kubeconfig");
                }
            }
            _ = renewals.tick() => {
                let _ = write_kubeconfig(&server, &path, &url);
            }
        }
    };
    if failed.is_none() {
        // Requests that are under way are answered before the store closes, unless there is a hurry.
        server.begin_stop();
        tokio::select! {
            _ = serving => {}
            signal = signals.next() => tracing::info!(because = signal, "stopping at once"),
        }
    }
    server.stop().await;
    match failed {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => {
            output::complain(&format!(
                "error: the store failed: {why}\nnothing that was acknowledged is lost; start again to recover"
            ));
            Ok(ExitCode::FAILURE)
        }
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
            "cut off a write that was never finished: nobody was told that it was done",
        );
    }
    for damaged in &recovery.damaged {
        tracing::warn!(what = damaged, "set aside what could not be read; an older copy is whole");
    }
    tracing::debug!(revision = recovery.revision, frames = recovery.frames, "read the store");
}

/// What asks for the end. Kept for the whole time: a signal that comes between two waits is not lost.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

fn default_directory() -> anyhow::Result<PathBuf> {
    if let Some(home) = std::env::var_os("XDG_DATA_HOME").filter(|home| !home.is_empty()) {
        return Ok(PathBuf::from(home).join("interlock"));
    }
    let home = std::env::var_os("HOME").context("there is no HOME: say where with --data-dir")?;
    Ok(PathBuf::from(home).join(".local/share/interlock"))
}

/// Logs go to standard error, coloured only on a terminal.
fn log(is_verbose: bool) {
    use std::io::IsTerminal;
    let level = if is_verbose { tracing::Level::DEBUG } else { tracing::Level::INFO };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_target(false)
        .init();
}
