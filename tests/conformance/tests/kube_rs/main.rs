//! kube-rs against the API server: every scenario runs in process and over TLS, and cannot tell.

mod access;
mod admission;
mod controller;
mod custom;
mod discovery;
mod events;
mod objects;
mod patches;
mod restart;
mod rollouts;
mod servers;
mod watches;

/// Makes two tests of each scenario: one with no socket, one over TLS with the server's kubeconfig.
macro_rules! both_ways {
    ($($scenario:ident)*) => { $(
        mod $scenario {
            #[tokio::test]
            async fn in_process() {
                crate::servers::in_process(super::scenarios::$scenario).await;
            }
            #[tokio::test]
            async fn over_tls() {
                crate::servers::over_tls(super::scenarios::$scenario).await;
            }
        }
    )* };
}
use both_ways;
