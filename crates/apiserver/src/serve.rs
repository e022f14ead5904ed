//! Serving over the network: TLS, HTTP/1.1 and HTTP/2 by ALPN, and a stop that lets requests end.

use crate::gate::Caller;
use crate::peers::{Peers, raise_open_files};
use crate::server::{Server, stopped};
use crate::stall::WithTimeout;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// More connections wait.
const CONNECTIONS: usize = 16 * 1024;
/// More connections of one address are closed at once: an address must not have all of them.
const CONNECTIONS_OF_ONE_PEER: usize = CONNECTIONS / 4;
/// A client that does not finish its handshake, or the head of its request, in time is cut off.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// client-go puts everything on one connection.
const STREAMS: u32 = 1000;
/// How long requests may go on after a stop was asked for.
const LAST_REQUESTS: Duration = Duration::from_secs(10);

/// Why the server cannot be reached over the network.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address.
    #[error("cannot listen on {address}")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Without TLS anybody on the way could read and change everything.
    #[error(
        "refusing to listen on {0} without TLS: only loopback addresses may be served in the clear"
    )]
    InTheClear(SocketAddr),
    /// Certificates.
    #[error("cannot prepare TLS")]
    Tls(#[source] crate::access::certificates::CertificateError),
    /// There are no certificates.
    #[error(
        "a server in memory has no certificates: give it a data directory, or serve in the clear"
    )]
    NoCertificates,
}

/// Whether connections are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// As they should be.
    Tls,
    /// In the clear, on loopback only.
    InTheClear,
}

/// A listener that is ready to be run.
pub struct Listening {
    server: Server,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    address: SocketAddr,
}

impl Listening {
    /// Takes an address.
    pub async fn on(
        server: &Server,
        address: SocketAddr,
        transport: Transport,
    ) -> Result<Listening, ListenError> {
        let tls = match transport {
            Transport::Tls => {
                let authority = server.authority().ok_or(ListenError::NoCertificates)?;
                Some(TlsAcceptor::from(authority.server_config().map_err(ListenError::Tls)?))
            }
            Transport::InTheClear if address.ip().is_loopback() => None,
            Transport::InTheClear => return Err(ListenError::InTheClear(address)),
        };
        let bind = |source| ListenError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        server.advertise(address);
        Ok(Listening { server: server.clone(), listener, tls, address })
    }

    /// The address that was taken: with port 0, the machine has chosen one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the server stops, and then until the last requests have ended, or for ten seconds.
    pub async fn run(self) {
        let mut stopping = self.server.stops();
        raise_open_files();
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let peers = Peers::new(CONNECTIONS_OF_ONE_PEER);
        let graceful = hyper_util::server::graceful::GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stopped(&mut stopping) => break,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Too many open files, mostly: those who are served go on.
                    tracing::warn!(because = %error, "cannot take a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Some(connected) = peers.enter(peer.ip()) else { continue };
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
            // Small answers must not wait for the next packet.
            let _ = stream.set_nodelay(true);
            let caller = Caller { address: Some(peer.ip()), ..Caller::default() };
            let (server, tls, watcher) =
                (self.server.clone(), self.tls.clone(), graceful.watcher());
            tokio::spawn(async move {
                match tls {
                    None => connection(server, stream, caller, watcher).await,
                    Some(tls) => {
                        let shaken = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await;
                        let Ok(Ok(stream)) = shaken else { return };
                        let certificates = stream.get_ref().1.peer_certificates();
                        let certificate = certificates
                            .and_then(|chain| chain.first())
                            .map(|first| first.to_vec());
                        connection(server, stream, Caller { certificate, ..caller }, watcher).await;
                    }
                }
                drop((place, connected));
            });
        }
        drop(self.listener);
        let _ = tokio::time::timeout(LAST_REQUESTS, graceful.shutdown()).await;
    }
}

async fn connection<S>(
    server: Server,
    stream: S,
    caller: Caller,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let caller = Arc::new(caller);
    let (asked, mut has_asked) = tokio::sync::watch::channel(false);
    let service = service_fn(move |request| {
        asked.send_replace(true);
        let (server, caller) = (server.clone(), Arc::clone(&caller));
        async move { Ok::<_, Infallible>(server.handle(request, &caller).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HANDSHAKE).max_headers(100);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(64 * 1024)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let stream = TokioIo::new(WithTimeout::new(stream));
    let connection = builder.serve_connection_with_upgrades(stream, service).into_owned();
    let mut connection = std::pin::pin!(watcher.watch(connection));
    // HTTP's own timeouts begin once it is known which version is spoken. Whoever says nothing, or too little to
    // tell, is cut off here.
    let first_request = tokio::time::timeout(HANDSHAKE, has_asked.wait_for(|asked| *asked));
    tokio::select! {
        _ = &mut connection => return,
        asked = first_request => if asked.is_err() { return },
    }
    // A connection that breaks is the client's business.
    let _ = connection.await;
}
