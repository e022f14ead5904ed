//! Background controllers: what the server does by itself.
//!
//! Garbage is collected by owner references, namespaces, definitions and logical clusters that are being deleted
//! are emptied, namespaces keep what they come with, old events are deleted, and history is compacted. Everything here works on
//! what is stored: a controller that was interrupted finds its work again after a restart.

mod contents;
mod expiry;
mod garbage;
mod purge;
mod quotas;
mod terminating;

use crate::server::{Server, stopped};
use std::future::Future;
use std::time::Duration;

/// Begins all background work. It ends with the server.
pub(crate) fn begin(server: &Server) {
    spawn(server, garbage::run(server.clone()));
    spawn(server, terminating::run(server.clone()));
    spawn(server, contents::run(server.clone()));
    spawn(server, expiry::run(server.clone()));
    spawn(server, quotas::run(server.clone()));
    spawn(server, compaction(server.clone()));
    spawn(server, renewal(server.clone()));
}

/// One round of what is due, in one order and with nothing left running.
pub(crate) async fn round(server: &Server) {
    terminating::round_of_all(server).await;
    quotas::round(server).await;
}

fn spawn(server: &Server, controller: impl Future<Output = ()> + Send + 'static) {
    let mut stopping = server.stopping();
    tokio::spawn(async move {
        tokio::select! {
            () = controller => {}
            () = stopped(&mut stopping) => {}
        }
    });
}

/// Cuts off history that is older than one interval, so that every watcher has at least one to catch up.
async fn compaction(server: Server) {
    use interlock_store::Store;
    let interval = server.config().compaction_interval.max(Duration::from_millis(10));
    let mut floor = None;
    loop {
        tokio::time::sleep(interval).await;
        let Ok(newest) = server.storage().store.newest().await else { return };
        if let Some(floor) = floor
            && let Err(error) = server.storage().store.compact(floor).await
        {
            tracing::warn!(floor, because = %error, "cannot cut off history");
        }
        floor = Some(newest);
    }
}

/// Renews certificates that come near their end.
async fn renewal(server: Server) {
    const HOUR: Duration = Duration::from_secs(3600);
    loop {
        tokio::time::sleep(HOUR).await;
        let Some(authority) = server.authority() else { return };
        match authority.renew(server.now().as_second()) {
            Ok(renewed) if renewed.serving || renewed.admin => {
                tracing::info!(
                    serving = renewed.serving,
                    admin = renewed.admin,
                    "renewed certificates"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(because = %error, "cannot renew certificates"),
        }
    }
}
