//! The etcd of envtest: it answers that it is healthy, and names the directory of the data.

use super::flags::Flags;
use crate::output;
use crate::serving::{Signals, block_on};
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Where the directory of the data is read.
const DIRECTORY: &str = "/interlock/data-directory";
/// A request, and an answer, have no more bytes.
const LIMIT_BYTES: u64 = 64 * 1024;
/// How long a request, or its answer, may take.
const TIMEOUT: Duration = Duration::from_secs(10);

const HELP: &str = "\
Answers for an etcd that envtest starts; `interlock envtest assets` wrote this program.

      --data-dir DIR              Directory of the data of the API server
      --listen-client-urls URL    Where to listen

All other options of etcd have no effect.
";

/// Answers until SIGTERM or SIGINT.
pub(super) fn run(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let flags = Flags::read(words).map_err(anyhow::Error::msg)?;
    if flags.has("help") || flags.has("h") {
        output::say(HELP)?;
        return Ok(ExitCode::SUCCESS);
    }
    let url = flags.last("listen-client-urls").context("--listen-client-urls is not set")?;
    let address = address(url)?.to_owned();
    let directory = PathBuf::from(flags.last("data-dir").context("--data-dir is not set")?);
    let directory = std::path::absolute(&directory)
        .with_context(|| format!("cannot use {}", directory.display()))?;
    block_on(async {
        let mut signals = Signals::new()?;
        let listener = TcpListener::bind(&address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        tokio::select! {
            _ = signals.next() => {}
            () = answer_all(listener, directory) => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The host and port of the first of some URLs.
fn address(urls: &str) -> anyhow::Result<&str> {
    let first = urls.split(',').next().unwrap_or_default();
    let address = first.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    address
        .filter(|address| address.contains(':'))
        .with_context(|| format!("the URL of etcd is {urls:?}: it must be http://HOST:PORT"))
}

async fn answer_all(listener: TcpListener, directory: PathBuf) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let directory = directory.clone();
                tokio::spawn(tokio::time::timeout(TIMEOUT, async move {
                    // A client that has gone away has its answer.
                    let _ = answer(stream, &directory).await;
                }));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Answers one request, and closes the connection.
async fn answer(mut stream: TcpStream, directory: &Path) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 1024];
        let count = stream.read(&mut part).await?;
        if count == 0 || request.len() as u64 > LIMIT_BYTES {
            return Ok(());
        }
        request.extend_from_slice(&part[..count]);
    }
    let request = String::from_utf8_lossy(&request);
    let (code, body) = match request.split(' ').nth(1).unwrap_or_default() {
        "/health" | "/readyz" | "/livez" => ("200 OK", r#"{"health":"true"}"#.to_owned()),
        DIRECTORY => ("200 OK", directory.join("interlock").to_string_lossy().into_owned()),
        _ => ("404 Not Found", String::new()),
    };
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {code}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

/// Asks an etcd of ours for the directory of the data.
pub(super) async fn directory_of(urls: &str) -> anyhow::Result<PathBuf> {
    let address = address(urls)?;
    let asked = tokio::time::timeout(TIMEOUT, async {
        let mut stream = TcpStream::connect(address).await?;
        let request =
            format!("GET {DIRECTORY} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut text = String::new();
        stream.take(LIMIT_BYTES).read_to_string(&mut text).await?;
        std::io::Result::Ok(text)
    });
    let text = asked
        .await
        .with_context(|| format!("the etcd at {address} does not answer"))?
        .with_context(|| format!("cannot reach the etcd at {address}"))?;
    match text.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") && !body.is_empty() => {
            Ok(body.into())
        }
        _ => bail!(
            "the etcd at {address} is not the one of `interlock envtest assets`: set KUBEBUILDER_ASSETS to the \
             directory that has both programs"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_that_of_the_first_url() {
        assert_eq!(address("http://127.0.0.1:2379").expect("it is one"), "127.0.0.1:2379");
        assert_eq!(address("http://[::1]:2379/,http://b:1").expect("it is one"), "[::1]:2379");
        for wrong in ["", "127.0.0.1:2379", "https://127.0.0.1:2379", "http://host"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
