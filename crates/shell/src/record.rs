//! Writes down what each step decided, on which facts, and what came of it.
//!
//! A step is never delayed by it: what cannot be written at once is left out, and the log says how much is missing. A
//! step that is the same as the last one about its subject is counted and not written again. No body of a write and
//! no argument of an action is recorded: those may hold secrets, and facts hold none.

mod files;
mod noting;
mod read;

pub use files::LogSettings;
pub(crate) use noting::{About, Noted, Noting, ViewDigest, doing};
pub use read::{Lines, Read};

use files::Files;
use interlock_kernel::{Begins, Decided, End, RecordedEffect};
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How many steps wait for the disk at most.
const MOST_WAITING: usize = 4096;
/// Of how many subjects the last step is known. Beyond, all are forgotten, and their next steps are written again.
const MOST_SUBJECTS: usize = 1 << 16;

/// Where steps are recorded. Clones write to the same log; it is complete once the last is dropped.
#[derive(Clone)]
pub struct Recorder(Arc<Open>);

impl fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Recorder").finish_non_exhaustive()
    }
}

struct Open {
    /// None: it is being closed.
    sender: Option<SyncSender<Box<Entry>>>,
    writer: Option<JoinHandle<()>>,
    last: Mutex<HashMap<u64, Last>>,
    counts: Arc<RecorderCounts>,
}

/// What a recorder counts.
#[derive(Debug, Default)]
pub(crate) struct RecorderCounts {
    written: AtomicU64,
    same: AtomicU64,
    /// Left out, and not said so in the log yet.
    unsaid: AtomicU64,
    missing: AtomicU64,
}

/// The last step about a subject.
struct Last {
    decided: u64,
    same: u64,
}

/// One step, to be written.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) time: Timestamp,
    pub(crate) controller: &'static str,
    pub(crate) at: Arc<BTreeMap<String, String>>,
    pub(crate) subject: Arc<str>,
    pub(crate) view: u64,
    pub(crate) decided: Decided,
    /// How many live reads were asked for before.
    pub(crate) round: usize,
    pub(crate) because: String,
    pub(crate) effect: Option<RecordedEffect>,
    pub(crate) end: End,
    pub(crate) same: u64,
}

impl Recorder {
    /// Begins a log in a directory, which is made if it is not there. `version` is that of the program, and `process`
    /// names this process.
    pub fn open(settings: LogSettings, version: &str, process: &str) -> io::Result<Recorder> {
        let begins = Begins {
            version: version.to_owned(),
            process: process.to_owned(),
            time: Timestamp::now(),
            goes_on: false,
        };
        let files = Files::begin(settings, begins)?;
        let (sender, receiver) = sync_channel(MOST_WAITING);
        let counts = Arc::<RecorderCounts>::default();
        let of_writer = Arc::clone(&counts);
        let writer = std::thread::Builder::new().name("record".to_owned());
        let writer = writer.spawn(move || write(files, &receiver, &of_writer))?;
        Ok(Recorder(Arc::new(Open {
            sender: Some(sender),
            writer: Some(writer),
            last: Mutex::default(),
            counts,
        })))
    }

    /// Writes a step down, unless it is as the last one about its subject.
    pub(crate) fn put(&self, mut entry: Entry) {
        let Open { sender, counts, .. } = &*self.0;
        // One that is under way is recorded once more when it has ended.
        let same = match entry.end {
            End::UnderWay => Some(0),
            _ => self.same_before(&entry),
        };
        let Some(same) = same else {
            counts.same.fetch_add(1, Ordering::Relaxed);
            return;
        };
        entry.same = same;
        let sent = sender.as_ref().map(|sender| sender.try_send(Box::new(entry)));
        match sent {
            Some(Ok(())) => {}
            None | Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_))) => {
                counts.unsaid.fetch_add(1, Ordering::Relaxed);
                counts.missing.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// How many steps before this one were not written, if this one is to be.
    fn same_before(&self, entry: &Entry) -> Option<u64> {
        let about = hash(&(entry.controller, &entry.at, &entry.subject, entry.round));
        let decided = hash(&(&entry.decided.facts, &entry.decided.decision, entry.end as u8));
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= MOST_SUBJECTS && !last.contains_key(&about) {
            last.clear();
        }
        let known = last.entry(about).or_insert(Last { decided: !decided, same: 0 });
        // What was done is written each time: no two effects are one.
        if known.decided == decided && entry.effect.is_none() {
            known.same += 1;
            return None;
        }
        known.decided = decided;
        Some(std::mem::take(&mut known.same))
    }

    /// What it counts. Whoever keeps this does not keep the log open.
    pub(crate) fn counts(&self) -> Arc<RecorderCounts> {
        Arc::clone(&self.0.counts)
    }
}

impl RecorderCounts {
    /// As Prometheus reads it.
    pub(crate) fn render(&self) -> String {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        format!(
            "# HELP interlock_record_steps_total Steps by what was done with their record.\n\
             # TYPE interlock_record_steps_total counter\n\
             interlock_record_steps_total{{record=\"written\"}} {}\n\
             interlock_record_steps_total{{record=\"same_as_before\"}} {}\n\
             interlock_record_steps_total{{record=\"missing\"}} {}\n",
            count(&self.written),
            count(&self.same),
            count(&self.missing)
        )
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Writes what comes until nobody can send any more.
fn write(mut files: Files, receiver: &Receiver<Box<Entry>>, counts: &RecorderCounts) {
    let mut number = 0;
    while let Ok(first) = receiver.recv() {
        let mut next = Some(first);
        while let Some(entry) = next {
            let unsaid = counts.unsaid.swap(0, Ordering::Relaxed);
            if unsaid > 0 {
                files.put(&json!({ "missing": unsaid }).to_string());
            }
            number += 1;
            match files.put(&line_of(&entry, number)) {
                true => counts.written.fetch_add(1, Ordering::Relaxed),
                false => {
                    counts.unsaid.fetch_add(1, Ordering::Relaxed);
                    counts.missing.fetch_add(1, Ordering::Relaxed)
                }
            };
            next = receiver.try_recv().ok();
        }
        files.flush();
    }
}

/// A step as one line. Facts and decision are JSON already.
fn line_of(entry: &Entry, number: u64) -> String {
    let mut head = json!({
        "time": entry.time,
        "number": number,
        "controller": entry.controller,
        "at": &*entry.at,
        "subject": &*entry.subject,
        "view": format!("{:016x}", entry.view),
        "because": entry.because,
        "end": entry.end,
    });
    if entry.same > 0 {
        head["same"] = json!(entry.same);
    }
    if let Some(effect) = &entry.effect {
        head["effect"] = json!(effect);
    }
    let head = head.to_string();
    let Decided { facts, decision } = &entry.decided;
    let head = head.strip_suffix('}').unwrap_or(&head);
    format!("{{\"step\":{head},\"decision\":{decision},\"facts\":{facts}}}}}")
}

#[cfg(test)]
mod tests;
