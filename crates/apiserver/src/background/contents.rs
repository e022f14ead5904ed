//! What every namespace has, its `default` account and the server's certificates, comes back when somebody takes it.

use crate::call::own_call;
use crate::handlers::special::namespace_contents;
use crate::object;
use crate::server::Server;
use crate::status::Status;
use crate::storage;
use interlock_store::{Changes as _, Key, KeyRange, Store};
use serde_json::Value;

/// Keeps namespaces whole, for as long as the server runs.
pub(super) async fn run(server: Server) {
    let mut followers = tokio::task::JoinSet::new();
    for (plural, object) in namespace_contents(&server) {
        followers.spawn(Keeper { server: server.clone(), plural, object }.follow());
    }
    // One that was cancelled is no mistake: the runtime that it ran on is ending.
    while followers.join_next().await.is_some() {}
}

/// Keeps one object in every namespace.
struct Keeper {
    server: Server,
    plural: &'static str,
    /// As it must be, without what is its own in each namespace.
    object: Value,
}

impl Keeper {
    async fn follow(self) {
        let range = KeyRange::prefix(storage::table_of("", self.plural, "-"), "");
        loop {
            let Ok(newest) = self.server.storage().store.newest().await else { return };
            let Ok(mut changes) = self.server.storage().store.watch(range.clone(), newest).await
            else {
                continue;
            };
            self.look_everywhere().await;
            while let Ok(batch) = changes.next().await {
                for change in &batch.changes {
                    let (cluster, namespace, name) = storage::parts(&change.key.row);
                    if name != object::name(&self.object) {
                        continue;
                    }
                    let is_right =
                        change.after.as_ref().is_some_and(|it| self.is_right(&object::decode(it)));
                    if !is_right {
                        self.restore(cluster, namespace).await;
                    }
                }
            }
            if self.server.readiness().is_err() {
                return;
            }
        }
    }

    /// What was taken while not read.
    async fn look_everywhere(&self) {
        let namespaces = KeyRange::prefix(storage::table_of("", "namespaces", "-"), "");
        let Ok(page) = self.server.storage().range(namespaces, None, usize::MAX).await else {
            return;
        };
        for item in page.items {
            let (cluster, _, namespace) = storage::parts(&item.key.row);
            let row = storage::row(cluster, namespace, object::name(&self.object));
            let key = Key::new(storage::table_of("", self.plural, "-"), row);
            let found = self.server.storage().get(&key).await;
            if found.is_ok_and(|found| !found.is_some_and(|it| self.is_right(&object::decode(&it))))
            {
                self.restore(cluster, namespace).await;
            }
        }
    }

    fn is_right(&self, found: &Value) -> bool {
        found.get("data") == self.object.get("data")
    }

    async fn restore(&self, cluster: &str, namespace: &str) {
        match self.put(cluster, namespace).await {
            Ok(()) => {}
            // The namespace is being deleted or is gone, or somebody was faster.
            Err(status) if matches!(status.code, 403 | 404 | 409) => {}
            Err(status) => tracing::warn!(
                namespace, name = object::name(&self.object), because = %status.message,
                "cannot put back what every namespace has",
            ),
        }
    }

    async fn put(&self, cluster: &str, namespace: &str) -> Result<(), Status> {
        let Some(cluster) = self.server.clusters().with_id(cluster) else { return Ok(()) };
        let call = own_call(&self.server, &cluster, "", "v1", self.plural)
            .for_name(object::name(&self.object), namespace);
        let done = call
            .change(true, |live| {
                let mut object = match live {
                    Some(live) => live.object.clone(),
                    None => return call.take(self.object.clone(), &[], 400),
                };
                if let Some(data) = self.object.get("data") {
                    object["data"] = data.clone();
                }
                Ok(object)
            })
            .await;
        done.map(|_| ())
    }
}
