//! Starting: the newest checkpoint that checks, then the log, and what to do with its end.
//!
//! Only one frame is ever unsynced. So a bad frame at the very end is a write that a crash tore: it
//! is cut off before anything is served. A bad frame with a good one behind it, or in a segment
//! that has a successor, is damage: this write was acknowledged, so the store refuses
//! to start without it.

use crate::checkpoint::{self, ReadCheckpointError, checkpoint_name, checkpoint_of};
use crate::disk::{Disk, is_temporary, random_id, read_whole, write_whole};
use crate::frame::{Frame, LoggedOperation, find_frame};
use crate::index::{Index, Planned, Version, shared_value};
use crate::log::{
    Log, LogPosition, SEGMENT_HEADER, SegmentEnd, SegmentHeader, segment_name, segment_of, segments,
};
use crate::{OpenError, Recovery, Revision, TornTail};
use std::io;
use std::sync::Arc;

const STORE_FILE: &str = "store";
const FORMAT: &str = "1";

/// A store as it was found, ready to go on.
pub(crate) struct Recovered {
    /// All that is stored.
    pub(crate) index: Index,
    /// Where the log goes on.
    pub(crate) log: Log,
    /// The store's id.
    pub(crate) store: u64,
    /// The checkpoints that may be relied on, oldest first.
    pub(crate) checkpoints: Vec<Revision>,
    /// How many segments there are.
    pub(crate) segments: usize,
    /// How much was read from the log.
    pub(crate) log_bytes: u64,
    /// What was found.
    pub(crate) report: Recovery,
}

/// What was read of a log.
pub(crate) struct Replayed {
    /// All that is stored.
    pub(crate) index: Index,
    /// The last revision that was read.
    pub(crate) last: Revision,
    sequence: Option<u64>,
    log_bytes: u64,
    report: Recovery,
    // Fresh memory for each segment would take longer than reading it.
    buffer: Vec<u8>,
}

impl Replayed {
    fn from(index: Index, last: Revision, report: Recovery) -> Self {
        Replayed { index, last, sequence: None, log_bytes: 0, report, buffer: Vec::new() }
    }
}

pub(crate) fn failed(doing: impl Into<String>) -> impl FnOnce(io::Error) -> OpenError {
    let doing = doing.into();
    move |source| OpenError::Io { doing, source }
}

/// Reads all there is, and makes the end of the log good. The directory must be locked.
pub(crate) fn recover(disk: &Arc<dyn Disk>, segment_bytes: u64) -> Result<Recovered, OpenError> {
    let names = disk.list().map_err(failed("list the data directory"))?;
    for name in names.iter().filter(|name| is_temporary(name)) {
        disk.remove(name).map_err(failed(format!("remove the unfinished file {name}")))?;
    }
    let store = match read_store_id(disk.as_ref(), &names)? {
        Some(store) => store,
        None => create_store(disk.as_ref(), random_id())?,
    };
    let (mut replayed, checkpoints) = load_checkpoint(disk.as_ref(), store, &names)?;
    let Some(walk) = replay(disk.as_ref(), store, &mut replayed)? else {
        return start_empty(disk, store, segment_bytes);
    };
    let end = SegmentEnd {
        header: walk.header,
        sequence: replayed.sequence.unwrap_or(walk.header.first_sequence),
        tail: walk.end as u64,
        last_frame: &walk.bytes[walk.last_frame..walk.end],
    };
    let doing = format!("make the end of {} durable", segment_name(walk.header.first_revision));
    let log = Log::resume(Arc::clone(disk), end, segment_bytes).map_err(failed(doing))?;
    let segments = segments(disk.as_ref()).map_err(failed("list the log"))?.len();
    let Replayed { index, last, log_bytes, mut report, .. } = replayed;
    index.publish(last);
    report.revision = last;
    Ok(Recovered { index, log, store, checkpoints, segments, log_bytes, report })
}

/// Reads the log since the checkpoint, and changes nothing. What was read before it was found to be
/// damaged is kept. Returns the last segment; none if there is no log yet.
pub(crate) fn replay(
    disk: &dyn Disk,
    store: u64,
    replayed: &mut Replayed,
) -> Result<Option<Walk>, OpenError> {
    let all = segments(disk).map_err(failed("list the log"))?;
    // Earlier segments are kept for the older checkpoint, and not read unless that one is needed.
    let first = all.partition_point(|first| *first <= replayed.last + 1).saturating_sub(1);
    let Some((last, earlier)) = all[first..].split_last() else {
        if replayed.last == 0 && replayed.report.damaged.is_empty() {
            return Ok(None);
        }
        return Err(damaged(
            replayed.last + 1,
            0,
            replayed,
            "the log since the checkpoint is missing",
        ));
    };
    for segment in earlier {
        replay_whole(disk, store, *segment, &mut *replayed)?;
    }
    replay_last(disk, store, *last, replayed).map(Some)
}

fn start_empty(
    disk: &Arc<dyn Disk>,
    store: u64,
    segment_bytes: u64,
) -> Result<Recovered, OpenError> {
    let position = LogPosition { store, revision: 1, sequence: 1 };
    let log = Log::start(Arc::clone(disk), position, segment_bytes);
    Ok(Recovered {
        index: Index::at(0),
        log: log.map_err(failed("start the log"))?,
        store,
        checkpoints: Vec::new(),
        segments: 1,
        log_bytes: 0,
        report: Recovery::default(),
    })
}

/// The store's id, if the directory holds a store of a format that can be read.
pub(crate) fn read_store_id(disk: &dyn Disk, names: &[String]) -> Result<Option<u64>, OpenError> {
    if !names.iter().any(|name| name == STORE_FILE) {
        let is_data = |name: &&String| {
            !is_temporary(name) && (checkpoint_of(name).is_some() || segment_of(name).is_some())
        };
        if let Some(file) = names.iter().find(is_data) {
            return Err(OpenError::Damaged {
                file: STORE_FILE.to_owned(),
                offset: 0,
                last_good: 0,
                what: format!("it is missing, although there is {file}"),
            });
        }
        return Ok(None);
    }
    let bytes = read_whole(disk, STORE_FILE, Vec::new()).map_err(failed("read the store's id"))?;
    let damaged = || OpenError::Damaged {
        file: STORE_FILE.to_owned(),
        offset: 0,
        last_good: 0,
        what: "it does not name a store".to_owned(),
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| damaged())?;
    let words: Vec<_> = text.split_whitespace().collect();
    let ["interlock-store", "format", format, "id", id] = words[..] else { return Err(damaged()) };
    if format != FORMAT {
        return Err(OpenError::Format { found: format.to_owned() });
    }
    u64::from_str_radix(id, 16).map(Some).map_err(|_| damaged())
}

/// Makes a directory a store.
pub(crate) fn create_store(disk: &dyn Disk, id: u64) -> Result<u64, OpenError> {
    let text = format!("interlock-store format {FORMAT} id {id:016x}\n");
    write_whole(disk, STORE_FILE, text.as_bytes()).map_err(failed("write the store's id"))?;
    Ok(id)
}

/// The newest checkpoint that checks, or the empty store.
pub(crate) fn load_checkpoint(
    disk: &dyn Disk,
    store: u64,
    names: &[String],
) -> Result<(Replayed, Vec<Revision>), OpenError> {
    let mut checkpoints: Vec<_> = names.iter().filter_map(|name| checkpoint_of(name)).collect();
    checkpoints.sort_unstable();
    let mut report = Recovery::default();
    while let Some(revision) = checkpoints.last().copied() {
        match checkpoint::load(disk, revision, store) {
            Ok(index) => {
                report.checkpoint = revision;
                return Ok((Replayed::from(index, revision, report), checkpoints));
            }
            Err(ReadCheckpointError::Io(source)) => {
                let doing = format!("read the checkpoint {}", checkpoint_name(revision));
                return Err(OpenError::Io { doing, source });
            }
            Err(ReadCheckpointError::Damaged { offset }) => {
                report.damaged.push(format!("{} at byte {offset}", checkpoint_name(revision)));
                checkpoints.pop();
            }
        }
    }
    // All that is needed is there if the log goes back to the beginning; if not, that is found out
    // below.
    Ok((Replayed::from(Index::at(0), 0, report), checkpoints))
}

/// One segment, read and walked as far as it is good.
pub(crate) struct Walk {
    bytes: Vec<u8>,
    header: SegmentHeader,
    // Where the first thing is that is not a good frame, and where the frame before it began.
    end: usize,
    last_frame: usize,
    // The revision of what would come next.
    revision: Revision,
}

fn replay_whole(
    disk: &dyn Disk,
    store: u64,
    segment: Revision,
    replayed: &mut Replayed,
) -> Result<(), OpenError> {
    let walk = walk(disk, store, segment, replayed)?;
    if walk.bytes[walk.end..].iter().any(|byte| *byte != 0) {
        return Err(damaged(segment, walk.end, replayed, "a write that had succeeded is damaged"));
    }
    replayed.buffer = walk.bytes;
    Ok(())
}

fn replay_last(
    disk: &dyn Disk,
    store: u64,
    segment: Revision,
    replayed: &mut Replayed,
) -> Result<Walk, OpenError> {
    let walk = walk(disk, store, segment, replayed)?;
    if walk.revision <= replayed.last {
        let what = "the log ends before the checkpoint does";
        return Err(damaged(segment, walk.end, replayed, what));
    }
    let rest = &walk.bytes[walk.end..];
    let Some(last) = rest.iter().rposition(|byte| *byte != 0) else { return Ok(walk) };
    let sequence = replayed.sequence.unwrap_or(walk.header.first_sequence);
    if find_frame(&rest[1..], walk.header.segment, sequence).is_some() {
        let what = "a write is damaged, and there are good ones after it";
        return Err(damaged(segment, walk.end, replayed, what));
    }
    replayed.report.torn = Some(TornTail {
        file: segment_name(segment),
        offset: walk.end as u64,
        bytes: last as u64 + 1,
        after: replayed.last,
    });
    Ok(walk)
}

fn damaged(segment: Revision, offset: usize, replayed: &Replayed, what: &str) -> OpenError {
    OpenError::Damaged {
        file: segment_name(segment),
        offset: offset as u64,
        last_good: replayed.last,
        what: match &replayed.report.damaged[..] {
            [] => what.to_owned(),
            checkpoints => format!("{what}; also damaged: {}", checkpoints.join(", ")),
        },
    }
}

/// Replays the good frames of a segment.
fn walk(
    disk: &dyn Disk,
    store: u64,
    segment: Revision,
    replayed: &mut Replayed,
) -> Result<Walk, OpenError> {
    let name = segment_name(segment);
    let buffer = std::mem::take(&mut replayed.buffer);
    let bytes = read_whole(disk, &name, buffer).map_err(failed(format!("read {name}")))?;
    let header = SegmentHeader::read(&bytes)
        .filter(|header| header.store == store && header.first_revision == segment)
        .ok_or_else(|| {
            damaged(segment, 0, replayed, "its header is damaged or not this store's")
        })?;
    let is_next = replayed.sequence.is_none_or(|next| next == header.first_sequence);
    // The first segment may begin before the checkpoint; none may begin after what is known.
    let is_behind = replayed.sequence.is_none() && segment <= replayed.last + 1;
    if !is_next || !(is_behind || segment == replayed.last + 1) {
        return Err(damaged(segment, 0, replayed, "the log before it is missing or cut short"));
    }
    let (mut end, mut last_frame) = (SEGMENT_HEADER, SEGMENT_HEADER);
    let (mut sequence, mut revision) = (header.first_sequence, segment);
    while let Some(frame) = Frame::read(&bytes[end..], header.segment) {
        if frame.place.sequence != sequence || frame.place.first_revision != revision {
            return Err(damaged(segment, end, replayed, "a write is out of order"));
        }
        let operations = frame.decode();
        let Some(operations) = operations else {
            return Err(damaged(segment, end, replayed, "a write cannot be understood"));
        };
        apply(replayed, revision, operations);
        revision += u64::from(frame.transactions);
        sequence += 1;
        last_frame = end;
        end += frame.length;
    }
    replayed.sequence = Some(sequence);
    replayed.log_bytes += end as u64;
    Ok(Walk { bytes, header, end, last_frame, revision })
}

fn apply(replayed: &mut Replayed, first: Revision, frame: Vec<Vec<LoggedOperation<'_>>>) {
    let mut planned = Vec::new();
    for (revision, operations) in (first..).zip(frame) {
        if revision <= replayed.last {
            continue;
        }
        replayed.last = revision;
        replayed.report.transactions += 1;
        for operation in operations {
            planned.push(plan(&replayed.index, revision, operation));
        }
        // Each transaction by itself: the next one may build on it.
        replayed.index.apply(std::mem::take(&mut planned));
    }
    replayed.report.frames += 1;
}

fn plan(index: &Index, revision: Revision, operation: LoggedOperation<'_>) -> Planned {
    let table = index.table(operation.table);
    let value = operation.value.map(shared_value);
    let state = table.read();
    let before = state.rows.get(operation.row);
    let created = before.filter(|entry| entry.newest.value.is_some());
    let created = created.map_or(revision, |entry| entry.newest.created);
    let row = before.map_or_else(|| Arc::from(operation.row), |entry| Arc::clone(&entry.row));
    drop(state);
    Planned { table, row, version: Version { created, modified: revision, value } }
}
