//! Servers for scenarios: in memory and called directly, or on a disk and reached over TLS.

use interlock_apiserver::access::identity::{MASTERS, Scope};
use interlock_apiserver::kubeconfig::Kubeconfig;
use interlock_apiserver::{Config, Identity, Listening, Server, Transport};
use kube::Client;
use kube::config::KubeConfigOptions;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinHandle;

/// A scenario that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs a scenario with a client that calls a server in memory.
pub(crate) async fn in_process<F>(scenario: impl FnOnce(Client) -> F)
where
    F: Future<Output = anyhow::Result<()>>,
{
    let server = Server::in_memory().await.expect("a server in memory starts");
    let admin = Identity::authenticated("admin", vec![MASTERS.to_owned()], Scope::Hub);
    judge(scenario(Client::new(server.service(admin), "default"))).await;
    server.stop().await;
}

/// Runs a scenario with a client that has read the server's kubeconfig.
pub(crate) async fn over_tls<F>(scenario: impl FnOnce(Client) -> F)
where
    F: Future<Output = anyhow::Result<()>>,
{
    let directory = tempfile::tempdir().expect("a temporary directory");
    let reached = Reached::start(directory.path(), None).await;
    judge(scenario(reached.client().await)).await;
    reached.stop().await;
}

/// Fails if the scenario fails or hangs.
pub(crate) async fn judge(scenario: impl Future<Output = anyhow::Result<()>>) {
    match tokio::time::timeout(TIMEOUT, scenario).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("{error:?}"),
        Err(_) => panic!("the scenario hangs"),
    }
}

/// A server on the network, as `interlock serve` runs it.
pub(crate) struct Reached {
    server: Server,
    serving: JoinHandle<()>,
    kubeconfig: kube::config::Kubeconfig,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Reached {
    /// Starts it on a data directory, at an address if it had one before.
    pub(crate) async fn start(directory: &Path, address: Option<SocketAddr>) -> Self {
        let config = Config { data_directory: Some(directory.into()), ..Config::default() };
        let server = Server::start(config).await.expect("the server starts");
        let address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        let listening = Listening::on(&server, address, Transport::Tls).await.expect("it listens");
        let address = listening.address();
        let authority = server.authority().expect("a server on a disk has certificates");
        let path = directory.join("kubeconfig");
        Kubeconfig {
            server: &format!("https://{address}"),
            authority_pem: &authority.server_authority_pem().expect("it has an authority"),
            admin: &authority.admin(),
            clusters: &[],
        }
        .write(&path)
        .expect("the kubeconfig can be written");
        let kubeconfig = kube::config::Kubeconfig::read_from(path).expect("kube-rs reads it");
        let serving = tokio::spawn(listening.run());
        Reached { server, serving, kubeconfig, address }
    }

    /// What a client reads from the kubeconfig.
    pub(crate) async fn config(&self) -> kube::Config {
        let options = KubeConfigOptions::default();
        kube::Config::from_custom_kubeconfig(self.kubeconfig.clone(), &options)
            .await
            .expect("kube-rs understands the kubeconfig")
    }

    /// The administrator's client.
    pub(crate) async fn client(&self) -> Client {
        Client::try_from(self.config().await).expect("a client can be made")
    }

    /// Ends it; the data directory and the address are free then.
    pub(crate) async fn stop(self) {
        self.server.stop().await;
        self.serving.await.expect("serving ends in order");
    }
}
