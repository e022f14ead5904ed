//! `/metrics` of a program that serves nothing else: one page, in the clear, to whoever asks.

use super::metrics::page;
use anyhow::Context;
use interlock_shell::Shell;
use jiff::Timestamp;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// More who ask at once wait.
const AT_ONCE: usize = 8;
/// Whoever has not asked, or not listened to the answer, in so long is cut off.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long nobody is let in after that has failed: most likely too many files are open.
const BREATH: Duration = Duration::from_secs(1);
/// No request that is meant for this page is longer.
const LONGEST_REQUEST: usize = 8 * 1024;

/// Where what is counted is served.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The address to serve /metrics on, without TLS; port 0 selects a free port [default: none]
    #[arg(long, value_name = "ADDR")]
    metrics_listen: Option<SocketAddr>,
}

impl Args {
    /// Serves what a shell counts until the program ends, if that is asked for.
    pub(crate) async fn serve(&self, shell: &Shell) -> anyhow::Result<()> {
        let Some(address) = self.metrics_listen else { return Ok(()) };
        let counts = shell.metrics();
        let served = serve(address, move || page(&counts, Timestamp::now())).await?;
        tracing::info!(url = %format!("http://{served}/metrics"), "serving metrics");
        Ok(())
    }
}

async fn serve(
    address: SocketAddr,
    page: impl Fn() -> String + Send + Sync + 'static,
) -> anyhow::Result<SocketAddr> {
    let failed = || format!("cannot serve metrics on {address}: set another --metrics-listen");
    let listener = TcpListener::bind(address).await.with_context(failed)?;
    let served = listener.local_addr().with_context(failed)?;
    let (page, places) = (Arc::new(page), Arc::new(Semaphore::new(AT_ONCE)));
    tokio::spawn(async move {
        // Nobody closes the places, so that there is always another one, sooner or later.
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let page = Arc::clone(&page);
                    tokio::spawn(async move {
                        // Whoever goes away without an answer has not waited for it.
                        let _ = timeout(TIMEOUT, answer(stream, &*page)).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the metrics endpoint has stopped");
                    sleep(BREATH).await;
                }
            }
        }
    });
    Ok(served)
}

async fn answer(mut stream: TcpStream, page: &(impl Fn() -> String + Sync)) -> std::io::Result<()> {
    let request = head(&mut stream).await?;
    let (code, text) = match asked(&request) {
        Some("/metrics") => ("200 OK", page()),
        Some(_) => ("404 Not Found", "only /metrics is served\n".to_owned()),
        None => ("400 Bad Request", "only GET is supported\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

/// The head of a request, or as much of it as there is room for.
async fn head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while head.len() < LONGEST_REQUEST && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part).await? {
            0 => break,
            count => head.extend_from_slice(&part[..count]),
        }
    }
    Ok(head)
}

/// The path that a request asks for.
fn asked(head: &[u8]) -> Option<&str> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let is_http = method == "GET" && version.starts_with("HTTP/1.");
    is_http.then(|| path.split('?').next().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it is read");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_page_is_served_and_nothing_else() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let served = serve(any, || "count 7\n".to_owned()).await.expect("a port is free");
        let asks =
            move |request: &'static str| tokio::task::spawn_blocking(move || ask(served, request));
        let found = asks("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("no panic");
        assert!(found.starts_with("HTTP/1.1 200 OK\r\n"), "{found}");
        assert!(found.ends_with("\r\n\r\ncount 7\n"), "{found}");
        for (request, code) in [
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "400"),
            ("\r\n\r\n", "400"),
        ] {
            let found = asks(request).await.expect("no panic");
            assert!(found.starts_with(&format!("HTTP/1.1 {code} ")), "{request:?}: {found}");
        }
        assert!(serve(served, String::new).await.is_err(), "two cannot have one address");
    }
}
