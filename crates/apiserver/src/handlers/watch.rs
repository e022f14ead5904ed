//! Watches: every change after a revision, once and in order, as a stream of lines.
//!
//! A watcher is a cursor into the store's history and a task that follows it. What the client does not take
//! waits in the store, not here: the next message is made when the last one was taken, and what is made counts as
//! bytes that the client has not read. A client that takes nothing for too long gets 410, as one that falls below the floor.

use super::read::is_row_of;
use super::render::{Form, Rendering};
use super::selection::Reading;
use crate::body::{STALL, time_for};
use crate::brought::Lasting;
use crate::call::Call;
use crate::clusters::Cluster;
use crate::http::{self, Body};
use crate::limits::{Permit, Unsent};
use crate::negotiate::{Encoding, PROTOBUF_WATCH};
use crate::object;
use crate::pipe;
use crate::protobuf;
use crate::request::ListOptions;
use crate::resource::Resource;
use crate::server::wait_timeout;
use crate::server::{Server, stopped};
use crate::standing::Standing;
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
use tokio::time::Instant;

/// How often an idle watcher that wants bookmarks gets one.
const BOOKMARK_SECONDS: u64 = 60;
/// How long a watch lasts if the client does not say; up to twice as long.
const DEFAULT_SECONDS: u64 = 30 * 60;
/// No watch lasts longer, whatever the client says: whoever asks again is let in again, or not.
const LONGEST_SECONDS: u64 = 60 * 60;
/// How often it is checked whether the client would still be let in.
const RECHECK: Duration = Duration::from_secs(60);
/// Lines are sent together up to this size.
const CHUNK_BYTES: usize = 64 * 1024;
/// Smaller messages are not counted: the number of watches limits them well enough.
const SMALL_BYTES: usize = 4 * 1024;
/// How often a watcher whose budget is used up tries again.
const RETRY: Duration = Duration::from_millis(50);

/// One watcher and its cursor.
struct Watcher {
    server: Server,
    reading: Reading,
    parts: pipe::Writer,
    wants_bookmarks: bool,
    /// Whether the client asked for the state first, and waits for the mark that it is whole.
    wants_initial_mark: bool,
    cluster: Arc<Cluster>,
    resource: Arc<Resource>,
    ends: Instant,
    lines: Vec<u8>,
    /// The share of the budgets that the lines take.
    unsent: Vec<Unsent>,
    /// When the last message that counts was left for the client, if it may still wait there.
    left_at: Option<Instant>,
    /// What the state takes while it is sent; its lines are not counted again.
    state: Option<Unsent>,
    has_sent_row: bool,
    standing: Standing,
    recheck_at: Instant,
    permit: Permit,
}

/// Lines, and their share of the budgets until they were sent.
struct Message {
    lines: Vec<u8>,
    _unsent: Vec<Unsent>,
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.lines
    }
}

/// Why a watcher ended.
enum Ended {
    /// The client went away, or time is up.
    Closed,
    /// The client does not take what is sent.
    Slow,
    /// It cannot go on; the client is informed.
    Error(Status),
}

impl Call {
    /// Starts a watch.
    pub(crate) async fn watch(
        &self,
        options: &ListOptions,
        reading: Reading,
        lasting: Lasting,
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
        let (parts, reader) = pipe::pipe();
        let wants_state = options.send_initial_events == Some(true);
        let watcher = Watcher {
            server: self.server.clone(),
            wants_bookmarks: options.allow_watch_bookmarks,
            wants_initial_mark: wants_state && options.allow_watch_bookmarks,
            cluster: Arc::clone(&self.cluster),
            resource: Arc::clone(&self.resource),
            ends: Instant::now() + Duration::from_secs(seconds),
            lines: Vec::new(),
            unsent: Vec::new(),
            left_at: None,
            state: None,
            has_sent_row: false,
            standing: lasting.standing,
            recheck_at: Instant::now() + RECHECK,
            permit: lasting.permit,
            reading,
            parts,
        };
        let start = match (version, options.send_initial_events) {
            (_, Some(true)) => Start::State { at_least: version.unwrap_or(0) },
            // What happens once the client has its answer is part of the watch.
            (None | Some(0), Some(false)) => Start::After(
                self.server.storage().store.newest().await.map_err(storage::read_refused)?,
            ),
            (None | Some(0), _) => Start::State { at_least: 0 },
            (Some(version), _) => Start::After(version),
        };
        let shared = if watcher.reading.is_wildcard {
            Vec::new()
        } else {
            let mut shared = self.shared_objects();
            shared.retain(|object| watcher.reading.selection.takes_object(object));
            shared
        };
        let content_type = match watcher.reading.rendering.encoding() {
            Encoding::Json | Encoding::Yaml => "application/json",
            Encoding::Protobuf => PROTOBUF_WATCH,
        };
        tokio::spawn(watcher.run(range, start, shared));
        Ok(http::stream(content_type, reader))
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
        let status = match self.follow(range, start, shared).await {
            Ok(()) | Err(Ended::Closed) => return,
            Err(Ended::Slow) => too_slow(),
            Err(Ended::Error(status)) => {
                self.error_line(&status);
                match self.flush().await {
                    Err(Ended::Slow) => status,
                    // The client may be gone already: then nobody needs to know.
                    Ok(()) | Err(Ended::Closed | Ended::Error(_)) => return,
                }
            }
        };
        // What the client did not take is freed, and the error waits in its place.
        self.lines.clear();
        self.unsent.clear();
        self.error_line(&status);
        self.parts.put(std::mem::take(&mut self.lines).into());
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
                        wait_timeout().as_secs()
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
            // A watch that has something to send all the time is checked, too.
            self.recheck().await?;
            self.check_taken()?;
            let stalls_at = self.left_at.map_or(self.ends, |at| at + STALL);
            let wake = bookmark_at.min(self.ends).min(self.recheck_at).min(stalls_at);
            tokio::select! {
                // A store that closes because the server stops is no error to anybody.
                biased;
                () = stopped(&mut stopping) => return Err(Ended::Closed),
                () = self.parts.reader_gone() => return Err(Ended::Closed),
                batch = changes.next() => {
                    let batch = batch.map_err(too_old)?;
                    for change in &batch.changes {
                        self.change(change).await?;
                    }
                    self.flush().await?;
                }
                () = tokio::time::sleep_until(wake) => {
                    let is_over = Instant::now() >= self.ends || !self.is_served();
                    if is_over || Instant::now() >= bookmark_at {
                        self.bookmark(&mut changes).await?;
                        bookmark_at = Instant::now() + Duration::from_secs(BOOKMARK_SECONDS);
                    }
                    if is_over {
                        return Err(Ended::Closed);
                    }
                }
            }
        }
    }

    /// Ends the watch of a client whose account, token or right is gone.
    async fn recheck(&mut self) -> Result<(), Ended> {
        if Instant::now() < self.recheck_at {
            return Ok(());
        }
        self.recheck_at = Instant::now() + RECHECK;
        match self.server.still_stands(&self.standing).await {
            Err(status) if matches!(status.code, 401 | 403) => Err(Ended::Error(status)),
            // A store that does not answer is nobody's fault: it is asked again in a while.
            Ok(()) | Err(_) => Ok(()),
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
        // What is read here cannot be forgotten by the store before it was sent.
        let bytes = page.items.iter().map(|item| item.value.bytes().len() as u64).sum();
        self.state = Some(self.permit.unsent(bytes).map_err(Ended::Error)?);
        let ends = Instant::now() + time_for(bytes);
        for item in &page.items {
            if self.reading.selection.takes(item) {
                self.object_line("ADDED", item, item.modified).await?;
                if Instant::now() >= ends {
                    return Err(Ended::Slow);
                }
            }
        }
        let is_stored =
            |object: &Value| page.items.iter().any(|item| is_row_of(&item.key.row, object));
        for object in shared.into_iter().filter(|object| !is_stored(object)) {
            self.value_line("ADDED", object)?;
        }
        if self.wants_initial_mark {
            self.bookmark_line(page.revision, true)?;
        }
        self.flush().await?;
        self.state = None;
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
        self.make_room(version.value.bytes().len()).await?;
        let is_first_row = !self.has_sent_row;
        self.has_sent_row = true;
        self.line(event, |rendering, out| {
            if let Form::Table(_) = rendering.form() {
                let whole = rendering.whole(&version.value, &version.key.row, revision);
                object::write_value(out, &rendering.table(&[whole], is_first_row));
            } else {
                rendering.write(out, &version.value, &version.key.row, revision);
            }
        })?;
        if self.lines.len() >= CHUNK_BYTES { self.flush().await } else { Ok(()) }
    }

    /// A line with an object that is not stored as it is shown.
    fn value_line(&mut self, event: &str, mut object: Value) -> Result<(), Ended> {
        let is_first_row = !self.has_sent_row;
        self.has_sent_row = true;
        self.line(event, |rendering, out| {
            if let Form::Table(_) = rendering.form() {
                object::write_value(out, &rendering.table(&[object], is_first_row));
            } else {
                rendering.face(&mut object);
                object::write_value(out, &rendering.value(object));
            }
        })
    }

    /// One event. A watch that cannot show one ends: who follows it must not miss a change without knowing.
    fn line(
        &mut self,
        event: &str,
        write: impl FnOnce(&Rendering, &mut Vec<u8>),
    ) -> Result<(), Ended> {
        if self.reading.rendering.encoding() == Encoding::Protobuf {
            let mut object = Vec::new();
            write(&self.reading.rendering, &mut object);
            let frame = protobuf::watch_frame(event, &object).ok_or_else(|| {
                Ended::Error(Status::internal("the object cannot be encoded as protobuf"))
            })?;
            self.lines.extend(frame);
            return Ok(());
        }
        self.lines.extend_from_slice(b"{\"type\":\"");
        self.lines.extend_from_slice(event.as_bytes());
        self.lines.extend_from_slice(b"\",\"object\":");
        write(&self.reading.rendering, &mut self.lines);
        self.lines.extend_from_slice(b"}\n");
        Ok(())
    }

    /// The last event of a watch that cannot go on. Every status can be encoded.
    fn error_line(&mut self, status: &Status) {
        let _ = self.line("ERROR", |_, out| object::write_value(out, &status.body()));
    }

    async fn bookmark(&mut self, changes: &mut Cursor) -> Result<(), Ended> {
        if !self.wants_bookmarks {
            return Ok(());
        }
        self.bookmark_line(changes.progress(), false)?;
        self.flush().await
    }

    fn bookmark_line(&mut self, revision: Revision, ends_state: bool) -> Result<(), Ended> {
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
                "kind": "PartialObjectMetadata",
                "apiVersion": self.reading.rendering.meta_version().api_version(),
                "metadata": metadata,
            }),
            // A bookmark is a row like any other: its object has the mark.
            Form::Table(_) => {
                let with_columns = !self.has_sent_row;
                self.has_sent_row = true;
                let object = json!({
                    "kind": &*self.resource.kind, "apiVersion": self.resource.api_version(),
                    "metadata": metadata,
                });
                self.reading.rendering.bookmark(object, with_columns)
            }
        };
        self.line("BOOKMARK", |_, out| object::write_value(out, &bookmark))
    }

    /// Waits until the last message was taken, and until there is room in the budgets for an object of this
    /// size. Nothing is made before.
    async fn make_room(&mut self, bytes: usize) -> Result<(), Ended> {
        if self.lines.is_empty() {
            self.last_was_taken().await?;
        }
        if self.state.is_some() || bytes.max(self.lines.len()) <= SMALL_BYTES {
            return Ok(());
        }
        let gives_up = Instant::now() + STALL;
        loop {
            match self.permit.unsent(bytes as u64) {
                Ok(unsent) => {
                    self.unsent.push(unsent);
                    return Ok(());
                }
                Err(_) if Instant::now() >= gives_up => return Err(Ended::Slow),
                // Other answers to this client wait to be read, and are ended if they are not.
                Err(_) => tokio::time::sleep(RETRY).await,
            }
            // What is made already can be sent meanwhile.
            self.flush().await?;
        }
    }

    /// A large message that waits while nothing else happens is not kept for ever, either.
    fn check_taken(&mut self) -> Result<(), Ended> {
        let Some(left_at) = self.left_at else { return Ok(()) };
        if self.parts.has_room() {
            self.left_at = None;
            return Ok(());
        }
        if Instant::now() >= left_at + STALL { Err(Ended::Slow) } else { Ok(()) }
    }

    async fn last_was_taken(&self) -> Result<(), Ended> {
        match tokio::time::timeout(STALL, self.parts.room()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(pipe::ReaderGone)) => Err(Ended::Closed),
            Err(_) => Err(Ended::Slow),
        }
    }

    async fn flush(&mut self) -> Result<(), Ended> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.last_was_taken().await?;
        let lines = std::mem::take(&mut self.lines);
        let unsent = std::mem::take(&mut self.unsent);
        self.left_at = (!unsent.is_empty()).then(Instant::now);
        self.parts.put(match unsent.is_empty() {
            true => Bytes::from(lines),
            false => Bytes::from_owner(Message { lines, _unsent: unsent }),
        });
        Ok(())
    }
}

/// A client that does not take what is sent lists again, if it ever reads on.
fn too_slow() -> Status {
    Status::expired(format!(
        "the watch was closed because its client took nothing for {} s; list again",
        STALL.as_secs()
    ))
}

/// A watch that is too old gets an error inside the stream: clients retry a plain 410 for ever.
fn too_old(error: ReadError) -> Ended {
    Ended::Error(match error {
        ReadError::Compacted { floor } => {
            Status::expired(format!("too old resource version: the oldest kept is {floor}"))
        }
        ReadError::NotYet { .. } | ReadError::Unavailable => storage::read_refused(error),
    })
}
