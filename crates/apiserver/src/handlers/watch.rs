//! Watches: every change after a revision, once and in order, as a stream of lines.
//!
//! A watcher is a cursor into the store's history and a task that follows it. What the client does not take
//! waits in the store, not here: a slow one costs nobody anything, and ends when it falls below the floor.

use super::call::Call;
use super::render::{Form, Rendering};
use super::selection::Reading;
use super::special;
use crate::clusters::Cluster;
use crate::http::{self, Body};
use crate::limits::Permit;
use crate::object;
use crate::request::ListOptions;
use crate::resource::Resource;
use crate::server::patience;
use crate::server::{Server, stopped};
use crate::status::Status;
use crate::storage;
use ::http::Response;
use bytes::Bytes;
use interlock_store::{
    Change, Changes as _, Cursor, KeyRange, ReadError, Revision, Store, Versioned,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How often an idle watcher that wants bookmarks gets one.
const BOOKMARK_SECONDS: u64 = 60;
/// A client that takes nothing for so long is gone.
const STALLED_SECONDS: u64 = 60;
/// How long a watch lasts if the client does not say; up to twice as long.
const DEFAULT_SECONDS: u64 = 30 * 60;
/// No watch lasts longer, or the moment of its end could not be told.
const LONGEST_SECONDS: u64 = 365 * 24 * 60 * 60;
/// Lines are sent together up to this size.
const CHUNK_BYTES: usize = 64 * 1024;

/// One watcher and its cursor.
struct Watcher {
    server: Server,
    reading: Reading,
    parts: mpsc::Sender<Bytes>,
    wants_bookmarks: bool,
    /// Whether the client asked for the state first, and waits for the mark that it is whole.
    wants_initial_mark: bool,
    cluster: Arc<Cluster>,
    resource: Arc<Resource>,
    ends: Instant,
    lines: Vec<u8>,
    has_sent_row: bool,
    _permit: Permit,
}

/// Why a watcher ended.
enum Ended {
    /// The client went away, or time is up.
    Closed,
    /// It cannot go on; the client is told.
    Error(Status),
}

impl Call {
    /// Starts a watch.
    pub(crate) async fn watch(
        &self,
        options: &ListOptions,
        reading: Reading,
        permit: Permit,
    ) -> Result<Response<Body>, Status> {
        let version = options.watch_version(&self.resource.group, &self.resource.kind)?;
        let range = self.range(reading.is_wildcard);
        let seconds = match options.timeout_seconds {
            Some(seconds) if seconds > 0 => {
                u64::try_from(seconds).unwrap_or(DEFAULT_SECONDS).min(LONGEST_SECONDS)
            }
            // Not all watchers at the same moment.
            _ => DEFAULT_SECONDS + u64::from(self.server.random_u32()) % DEFAULT_SECONDS,
        };
        let (parts, receiver) = mpsc::channel(4);
        let wants_state = options.send_initial_events == Some(true);
        let watcher = Watcher {
            server: self.server.clone(),
            wants_bookmarks: options.allow_watch_bookmarks,
            wants_initial_mark: wants_state && options.allow_watch_bookmarks,
            cluster: Arc::clone(&self.cluster),
            resource: Arc::clone(&self.resource),
            ends: Instant::now() + Duration::from_secs(seconds),
            lines: Vec::new(),
            has_sent_row: false,
            _permit: permit,
            reading,
            parts,
        };
        let start = match (version, options.send_initial_events) {
            (_, Some(true)) => Start::State { at_least: version.unwrap_or(0) },
            // What happens once the client has its answer is part of the watch.
            (None, Some(false)) => Start::After(
                self.server.storage().store.newest().await.map_err(storage::read_refused)?,
            ),
            (None | Some(0), _) => Start::State { at_least: 0 },
            (Some(version), _) => Start::After(version),
        };
        let shared = if watcher.reading.is_wildcard {
            Vec::new()
        } else {
            special::shared_objects(&self.resource)
                .iter()
                .filter(|object| watcher.reading.selection.takes_object(object))
                .cloned()
                .collect()
        };
        tokio::spawn(watcher.run(range, start, shared));
        Ok(http::stream("application/json", receiver))
    }
}

/// Where a watch begins.
enum Start {
    /// With what is there, as additions; not older than this.
    State { at_least: Revision },
    /// With the first change after this.
    After(Revision),
}

impl Watcher {
    async fn run(mut self, range: KeyRange, start: Start, shared: Vec<Value>) {
        if let Err(Ended::Error(status)) = self.follow(range, start, shared).await {
            self.line("ERROR", |_, out| object::write_value(out, &status.body()));
            // The client may be gone already: then nobody needs to know.
            let _ = self.flush().await;
        }
    }

    async fn follow(
        &mut self,
        range: KeyRange,
        start: Start,
        shared: Vec<Value>,
    ) -> Result<(), Ended> {
        let after = match start {
            Start::After(version) => {
                // A version from the future means that the store was restored: listing again is right.
                if self.server.wait_for(version).await.is_err() {
                    return Err(Ended::Error(Status::expired(format!(
                        "the resourceVersion {version} is not there yet after {} s; list again",
                        patience().as_secs()
                    ))));
                }
                version
            }
            Start::State { at_least } => self.send_state(&range, at_least, shared).await?,
        };
        let mut changes = self.server.storage().store.watch(range, after).await.map_err(too_old)?;
        let mut bookmark_at = Instant::now() + Duration::from_secs(BOOKMARK_SECONDS);
        let mut stopping = self.server.stopping();
        loop {
            let wake = bookmark_at.min(self.ends);
            tokio::select! {
                // A store that closes because the server stops is no error to anybody.
                biased;
                () = stopped(&mut stopping) => return Err(Ended::Closed),
                () = self.parts.closed() => return Err(Ended::Closed),
                batch = changes.next() => {
                    let batch = batch.map_err(too_old)?;
                    for change in &batch.changes {
                        self.change(change).await?;
                    }
                    self.flush().await?;
                }
                () = tokio::time::sleep_until(wake) => {
                    self.bookmark(&mut changes).await?;
                    if Instant::now() >= self.ends || !self.is_served() {
                        return Err(Ended::Closed);
                    }
                    bookmark_at = Instant::now() + Duration::from_secs(BOOKMARK_SECONDS);
                }
            }
        }
    }

    /// Whether the kind is still there: whoever asks again learns that it is not.
    fn is_served(&self) -> bool {
        let resource = &self.resource;
        let clusters = self.server.clusters();
        let found =
            clusters.find(&self.cluster, &resource.group, &resource.version, &resource.plural);
        found.is_some()
    }

    /// Sends what is there as additions, and returns the revision that it shows.
    async fn send_state(
        &mut self,
        range: &KeyRange,
        at_least: Revision,
        shared: Vec<Value>,
    ) -> Result<Revision, Ended> {
        self.server.wait_for(at_least).await.map_err(Ended::Error)?;
        let page =
            self.server.storage().range(range.clone(), None, usize::MAX).await.map_err(too_old)?;
        for item in &page.items {
            if self.reading.selection.takes(item) {
                self.object_line("ADDED", item, item.modified).await?;
            }
        }
        let is_stored =
            |name: &str| page.items.iter().any(|item| storage::parts(&item.key.row).2 == name);
        for object in shared.into_iter().filter(|object| !is_stored(object::name(object))) {
            let value = self.reading.rendering.value(object);
            self.line("ADDED", |_, out| object::write_value(out, &value));
        }
        if self.wants_initial_mark {
            self.bookmark_line(page.revision, true);
        }
        self.flush().await?;
        Ok(page.revision)
    }

    /// One change as this watcher sees it: an object that comes into the selection is new to it.
    async fn change(&mut self, change: &Change) -> Result<(), Ended> {
        let takes = |version: &Option<Versioned>| {
            version.as_ref().is_some_and(|version| self.reading.selection.takes(version))
        };
        match (takes(&change.before), takes(&change.after)) {
            (false, false) => Ok(()),
            (false, true) => self.versioned_line("ADDED", &change.after, change.revision).await,
            (true, true) => self.versioned_line("MODIFIED", &change.after, change.revision).await,
            // The deletion's revision, not the object's last: a resume would repeat it.
            (true, false) => self.versioned_line("DELETED", &change.before, change.revision).await,
        }
    }

    async fn versioned_line(
        &mut self,
        event: &str,
        version: &Option<Versioned>,
        revision: Revision,
    ) -> Result<(), Ended> {
        match version {
            Some(version) => self.object_line(event, version, revision).await,
            None => Ok(()),
        }
    }

    async fn object_line(
        &mut self,
        event: &str,
        version: &Versioned,
        revision: Revision,
    ) -> Result<(), Ended> {
        let is_first_row = !self.has_sent_row;
        self.has_sent_row = true;
        self.line(event, |rendering, out| {
            if let Form::Table(_) = rendering.form() {
                let whole = rendering.whole(&version.value, &version.key.row, revision);
                object::write_value(out, &rendering.table(&[whole], is_first_row));
            } else {
                rendering.write(out, &version.value, &version.key.row, revision);
            }
        });
        if self.lines.len() >= CHUNK_BYTES { self.flush().await } else { Ok(()) }
    }

    fn line(&mut self, event: &str, write: impl FnOnce(&Rendering, &mut Vec<u8>)) {
        self.lines.extend_from_slice(b"{\"type\":\"");
        self.lines.extend_from_slice(event.as_bytes());
        self.lines.extend_from_slice(b"\",\"object\":");
        write(&self.reading.rendering, &mut self.lines);
        self.lines.extend_from_slice(b"}\n");
    }

    async fn bookmark(&mut self, changes: &mut Cursor) -> Result<(), Ended> {
        if !self.wants_bookmarks {
            return Ok(());
        }
        self.bookmark_line(changes.progress(), false);
        self.flush().await
    }

    fn bookmark_line(&mut self, revision: Revision, ends_state: bool) {
        let mut metadata =
            json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if ends_state {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let bookmark = match self.reading.rendering.form() {
            Form::Json => json!({
                "kind": &*self.resource.kind, "apiVersion": self.resource.api_version(),
                "metadata": metadata,
            }),
            Form::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
            }),
            Form::Table(_) => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "columnDefinitions": [], "rows": [],
            }),
        };
        self.line("BOOKMARK", |_, out| object::write_value(out, &bookmark));
    }

    async fn flush(&mut self) -> Result<(), Ended> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let lines = Bytes::from(std::mem::take(&mut self.lines));
        let stalled = Duration::from_secs(STALLED_SECONDS);
        match tokio::time::timeout(stalled, self.parts.send(lines)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Ended::Closed),
        }
    }
}

/// A watch that is too old is told so inside the stream: clients retry a plain 410 for ever.
fn too_old(error: ReadError) -> Ended {
    Ended::Error(match error {
        ReadError::Compacted { floor } => {
            Status::expired(format!("too old resource version: the oldest kept is {floor}"))
        }
        ReadError::NotYet { .. } | ReadError::Unavailable => storage::read_refused(error),
    })
}
