//! etcd as Debian packages it: one member on loopback, with its defaults, so durable before it answers.

use super::process::{Running, free_port};
use crate::scratch;
use anyhow::{Context, bail};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The etcd that was named, or Debian's: unpacked beside the build, nothing is installed.
pub(crate) fn get(named: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.clone());
    }
    let folder = scratch().join("etcd");
    let binary = folder.join("usr/bin/etcd");
    if binary.exists() {
        return Ok(binary);
    }
    std::fs::create_dir_all(&folder)?;
    run(&folder, "apt-get", &["download", "--quiet", "etcd-server"])?;
    let package = std::fs::read_dir(&folder)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get downloaded no package")?;
    run(&folder, "dpkg", &["-x", &package.to_string_lossy(), "."])?;
    Ok(binary)
}

fn run(folder: &Path, program: &str, args: &[&str]) -> anyhow::Result<()> {
    let shown = format!("{program} {}", args.join(" "));
    let output = Command::new(program)
        .args(args)
        .current_dir(folder)
        .output()
        .with_context(|| format!("cannot run: {shown}"))?;
    if !output.status.success() {
        bail!(
            "{shown} failed in {}: {}\nor name an etcd with --etcd FILE",
            folder.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// What it says about its version.
pub(crate) fn version(binary: &Path) -> anyhow::Result<String> {
    let output = Command::new(binary).arg("--version").output().context("cannot start etcd")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.lines().next().and_then(|line| line.rsplit(' ').next());
    Ok(version.unwrap_or("unknown").to_owned())
}

/// One member that runs.
pub(crate) struct Etcd {
    /// The process.
    pub(crate) running: Running,
    /// Where it serves gRPC.
    pub(crate) address: String,
    /// How long it took until it answered that it is healthy, which takes a consistent read.
    pub(crate) start: Duration,
}

impl Etcd {
    /// Starts it on a directory.
    pub(crate) fn start(binary: &Path, directory: &Path) -> anyhow::Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let (client, peer) =
            (format!("http://{address}"), format!("http://127.0.0.1:{}", free_port()?));
        let running = Running::start(
            Command::new(binary)
                .arg("--data-dir")
                .arg(directory)
                .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
                .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                .args(["--initial-cluster", &format!("default={peer}")])
                .args(["--logger", "zap", "--log-level", "error"])
                // Only how much it may hold; the default is 2 GiB.
                .args(["--quota-backend-bytes", "8589934592"]),
        )?;
        let start = running.becomes(|| is_healthy(&address).unwrap_or(false))?;
        Ok(Etcd { running, address, start })
    }
}

fn is_healthy(address: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains("\"health\":\"true\""))
}
