//! The audit log: one JSON line for each request, in the form of `audit.k8s.io/v1`, level Metadata,
//! without bodies.
//!
//! Recording never waits for the disk: lines go to a writer thread. If that falls behind, lines
//! about reads are the first to be left out; lines about writes have eight times the room, which is
//! more than can be in flight. Refusals of one caller are left out beyond a few each second. What was left out is counted, and the log itself says that there is
//! a gap. Lines are not synced one by one: after power loss the last seconds may be missing (the
//! store's own history has each change).

mod file;
mod refusals;

use self::file::RotatingFile;
use self::refusals::Refusals;
use crate::access::Identity;
use crate::request::ResourceRequest;
use crate::timestamp;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer texts of a client are cut.
const MAX_TEXT_BYTES: usize = 2048;
/// The annotation of the line that says how many lines are missing before it.
const DROPPED: &str = "interlock.dev/dropped-events";

/// How the log is kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// A file that would grow beyond this is set aside.
    pub max_bytes: u64,
    /// How many files that were set aside are kept.
    pub keep: u32,
    /// How many lines about reads may wait for the disk.
    pub waiting_lines: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { max_bytes: 100 * 1024 * 1024, keep: 5, waiting_lines: 8192 }
    }
}

/// When in the life of a request a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The answer has begun and goes on: watches.
    ResponseStarted,
    /// The answer is complete.
    ResponseComplete,
}

impl Stage {
    fn text(self) -> &'static str {
        match self {
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
        }
    }
}

/// What is written down about one request.
#[derive(Debug, Clone)]
pub(crate) struct AuditEvent<'a> {
    /// When in its life.
    pub(crate) stage: Stage,
    /// Its own id, for whoever joins logs.
    pub(crate) id: String,
    /// What was asked for: `create`.
    pub(crate) verb: &'a str,
    /// Path and query. Credentials in the query are taken out.
    pub(crate) uri: String,
    /// Who asked.
    pub(crate) identity: &'a Identity,
    /// For whom they acted, if not for themselves.
    pub(crate) impersonated: Option<&'a Identity>,
    /// From where.
    pub(crate) source: Option<IpAddr>,
    /// With what.
    pub(crate) user_agent: &'a str,
    /// About which object; none for a path that is about no resource.
    pub(crate) resource: Option<&'a ResourceRequest>,
    /// The HTTP code of the answer.
    pub(crate) code: u16,
    /// The name of the logical cluster.
    pub(crate) cluster: &'a str,
    /// When the request came.
    pub(crate) received: Timestamp,
    /// How long it took.
    pub(crate) took: Duration,
    /// What admission policies say about it.
    pub(crate) annotations: BTreeMap<String, String>,
}

/// How the log is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Lines on disk, or at least handed to the system.
    pub written: u64,
    /// Lines that were left out because too many were waiting.
    pub dropped: u64,
    /// Lines that could not be written.
    pub failed: u64,
}

/// The audit log. Closed when it is dropped.
pub struct AuditLog {
    shared: Arc<Shared>,
    refusals: Mutex<Refusals>,
    waiting_lines: usize,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuditLog").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Something is waiting, or the log is closing.
    has_work: Condvar,
    /// A batch has been dealt with.
    has_progress: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: Vec<String>,
    /// Lines taken in, ever; those that have been dealt with, ever.
    taken: u64,
    done: u64,
    /// Left out since the log last said so.
    gap: u64,
    stats: Stats,
    is_closing: bool,
}

impl AuditLog {
    /// Opens or creates the log, readable by its owner only, and begins its writer thread.
    pub fn open(path: PathBuf, options: Options) -> io::Result<Self> {
        let file = RotatingFile::open(path, options.max_bytes, options.keep)?;
        let shared = Arc::new(Shared::default());
        let writer = std::thread::Builder::new().name("audit".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || write_lines(&shared, file)
        })?;
        Ok(AuditLog {
            shared,
            refusals: Mutex::default(),
            waiting_lines: options.waiting_lines,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Writes a request down. Returns at once.
    pub(crate) fn record(&self, event: &AuditEvent<'_>) {
        if self.is_one_refusal_too_many(event) {
            let mut queue = self.shared.lock();
            queue.gap += 1;
            queue.stats.dropped += 1;
            return;
        }
        let room = if is_write(event.verb) { 8 * self.waiting_lines } else { self.waiting_lines };
        let line = line_of(event);
        let mut queue = self.shared.lock();
        if queue.lines.len() >= room || queue.is_closing {
            queue.gap += 1;
            queue.stats.dropped += 1;
            return;
        }
        queue.lines.push(line);
        queue.taken += 1;
        self.shared.has_work.notify_one();
    }

    fn is_one_refusal_too_many(&self, event: &AuditEvent<'_>) -> bool {
        if event.code < 400 {
            return false;
        }
        let second = event.received.as_second();
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        !refusals.takes(event.cluster, &event.identity.user, second)
    }

    /// How the log is doing.
    pub fn stats(&self) -> Stats {
        self.shared.lock().stats
    }

    /// Waits until what was recorded so far has been handed to the system, for at most a few
    /// seconds. For tests and for the end; a request never calls this.
    pub fn flush(&self) {
        let queue = self.shared.lock();
        let taken = queue.taken;
        let is_waiting = |queue: &mut Queue| queue.done < taken;
        let limit = Duration::from_secs(5);
        drop(self.shared.has_progress.wait_timeout_while(queue, limit, is_waiting));
    }

    /// Writes what waits, syncs the file and ends the thread. What is recorded later is left out.
    pub fn close(&self) {
        self.shared.lock().is_closing = true;
        self.shared.has_work.notify_all();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A writer that panicked has nothing more to say.
            let _ = writer.join();
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer thread.
fn write_lines(shared: &Shared, mut file: RotatingFile) {
    loop {
        let queue = shared.lock();
        let mut queue = shared
            .has_work
            .wait_while(queue, |queue| queue.lines.is_empty() && !queue.is_closing)
            .unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut queue.lines);
        let gap = std::mem::take(&mut queue.gap);
        let is_last = queue.is_closing;
        drop(queue);
        let mut failed = 0;
        if gap > 0 && file.write_line(&gap_line(gap)).is_err() {
            failed += 1;
        }
        for line in &lines {
            failed += u64::from(file.write_line(line).is_err());
        }
        let mut queue = shared.lock();
        let count = lines.len() as u64;
        queue.done += count;
        queue.stats.failed += failed;
        queue.stats.written += count.saturating_sub(failed);
        drop(queue);
        shared.has_progress.notify_all();
        if is_last {
            // The log is closing: there is nobody left to tell.
            let _ = file.sync();
            return;
        }
    }
}

fn is_write(verb: &str) -> bool {
    !matches!(verb, "get" | "list" | "watch" | "head" | "options")
}

/// A line, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: &'static str,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: User<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<User<'a>>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Option::is_none")]
    source_ips: Option<[IpAddr; 1]>,
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<Reference<'a>>,
    response_status: ResponseStatus,
    request_received_timestamp: String,
    stage_timestamp: String,
    annotations: Annotations<'a>,
}

#[derive(Serialize)]
struct User<'a> {
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
}

impl<'a> User<'a> {
    fn of(identity: &'a Identity) -> Self {
        User {
            username: &identity.user,
            uid: &identity.uid,
            groups: &identity.groups,
            extra: &identity.extra,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
}

#[derive(Serialize)]
struct ResponseStatus {
    metadata: Nothing,
    code: u16,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Annotations<'a> {
    #[serde(rename = "interlock.dev/cluster")]
    cluster: &'a str,
    #[serde(flatten)]
    of_policies: &'a BTreeMap<String, String>,
}

fn line_of(event: &AuditEvent<'_>) -> String {
    let received = event.received.as_microsecond();
    let took = i64::try_from(event.took.as_micros()).unwrap_or(i64::MAX);
    let uri = without_credentials(&event.uri);
    let line = Line {
        kind: "Event",
        api_version: "audit.k8s.io/v1",
        level: "Metadata",
        audit_id: &event.id,
        stage: event.stage.text(),
        request_uri: cut(&uri),
        verb: event.verb,
        user: User::of(event.identity),
        impersonated_user: event.impersonated.map(User::of),
        source_ips: event.source.map(|source| [source]),
        user_agent: cut(event.user_agent),
        object_ref: event.resource.map(reference),
        response_status: ResponseStatus { metadata: Nothing {}, code: event.code },
        request_received_timestamp: timestamp::micros(received),
        stage_timestamp: timestamp::micros(received.saturating_add(took)),
        annotations: Annotations { cluster: event.cluster, of_policies: &event.annotations },
    };
    serde_json::to_string(&line).expect("all of its keys are texts")
}

fn reference(resource: &ResourceRequest) -> Reference<'_> {
    Reference {
        resource: cut(&resource.resource),
        namespace: resource.namespace.as_deref().map_or("", cut),
        name: resource.name.as_deref().map_or("", cut),
        api_group: cut(&resource.group),
        api_version: cut(&resource.version),
        subresource: resource.subresource.as_deref().map_or("", cut),
    }
}

fn gap_line(dropped: u64) -> String {
    json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": Stage::ResponseComplete.text(),
        "annotations": {DROPPED: dropped.to_string()},
    })
    .to_string()
}

fn cut(text: &str) -> &str {
    let end = (0..=MAX_TEXT_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Path and query without what could be a credential: user and password before the host, and values
/// of parameters that are called so.
fn without_credentials(uri: &str) -> String {
    let path = match uri.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => {
            rest.find(['/', '?']).map_or("/", |start| &rest[start..])
        }
        Some(_) | None => uri,
    };
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if is_credential(name) => format!("{name}=removed"),
            Some(_) | None => parameter.to_owned(),
        })
        .collect();
    format!("{path}?{}", parameters.join("&"))
}

fn is_credential(name: &str) -> bool {
    // An encoded letter could hide the name; names of ours have none.
    let name = name.to_ascii_lowercase();
    name.contains('%')
        || ["token", "password", "secret", "authorization", "bearer", "credential", "apikey"]
            .iter()
            .any(|word| name.replace(['_', '-', '.'], "").contains(word))
}

#[cfg(test)]
mod tests;
