//! The log: segments of frames, the last of which is written to.
//!
//! A segment is created under a temporary name, so that one with its final name always has a whole
//! header. Room is written ahead as zeros: the sync of a frame then need not wait for the file
//! system's own journal.

use crate::Revision;
use crate::disk::{Disk, DiskFile, is_full, random_id, temporary_name};
use crate::encoding::{Reader, checksum};
use crate::frame::{FrameBuilder, FramePlace};
use std::io;
use std::sync::Arc;

/// The length of a segment's header.
pub(crate) const SEGMENT_HEADER: usize = 48;

const MAGIC: [u8; 8] = *b"ILKLOG01";
const CHECKSUM_AT: usize = 44;
const NAME: &str = "log-";
const LEAST_AHEAD: u64 = 256 << 10;
const MOST_AHEAD: u64 = 4 << 20;

/// What a segment says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Random; all frames carry it.
    pub(crate) segment: u64,
    /// The store it belongs to.
    pub(crate) store: u64,
    /// The revision of its first transaction.
    pub(crate) first_revision: Revision,
    /// The sequence number of its first frame.
    pub(crate) first_sequence: u64,
}

impl SegmentHeader {
    /// As it stands in the file.
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.segment.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.store.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_revision.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_sequence.to_le_bytes());
        let sum = checksum(&[&bytes[..CHECKSUM_AT]]);
        bytes[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// From the beginning of a file; none if it is not a whole and undamaged header.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..SEGMENT_HEADER)?;
        let mut reader = Reader::new(header.strip_prefix(&MAGIC)?);
        let read = SegmentHeader {
            segment: reader.u64()?,
            store: reader.u64()?,
            first_revision: reader.u64()?,
            first_sequence: reader.u64()?,
        };
        (read.encode() == header).then_some(read)
    }
}

/// The name of a segment's file.
pub(crate) fn segment_name(first_revision: Revision) -> String {
    format!("{NAME}{first_revision:020}")
}

/// The first revision of the segment of that name, if it is one.
pub(crate) fn segment_of(name: &str) -> Option<Revision> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// Where the log goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogPosition {
    /// The store's id.
    pub(crate) store: u64,
    /// The revision of the next transaction.
    pub(crate) revision: Revision,
    /// The sequence number of the next frame.
    pub(crate) sequence: u64,
}

/// The segment that is written to.
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    header: SegmentHeader,
    sequence: u64,
    tail: u64,
    // The file is this long; what lies between the tail and here is zero.
    allocated: u64,
    segment_bytes: u64,
}

/// Why a frame was not appended.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// There was no room. Nothing of it is in the log.
    Full,
    /// It may be in the log or not, and nothing can be written any more.
    Broken(String),
}

fn broken(what: &str, error: &io::Error) -> AppendError {
    AppendError::Broken(format!("cannot {what}: {error}"))
}

impl Log {
    /// Starts a new segment.
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        position: LogPosition,
        segment_bytes: u64,
    ) -> io::Result<Self> {
        let header = SegmentHeader {
            segment: random_id(),
            store: position.store,
            first_revision: position.revision,
            first_sequence: position.sequence,
        };
        let name = segment_name(position.revision);
        let temporary = temporary_name(&name);
        let mut file = disk.create(&temporary)?;
        file.write_at(0, &header.encode())?;
        file.sync_all()?;
        disk.rename(&temporary, &name)?;
        // From here on the segment may exist: no failure, not even a full disk, can be taken back.
        disk.sync_directory().map_err(|error| io::Error::other(error.to_string()))?;
        let (sequence, tail) = (position.sequence, SEGMENT_HEADER as u64);
        Ok(Log { disk, file, header, sequence, tail, allocated: tail, segment_bytes })
    }

    /// Goes on in a segment that was read to its end. Whatever lies behind the end is cut off, and
    /// the last frame is written once more: a sync that failed, or that a crash forestalled, may
    /// have left it in memory only, where it looks as if it were on the disk.
    pub(crate) fn resume(
        disk: Arc<dyn Disk>,
        end: SegmentEnd<'_>,
        segment_bytes: u64,
    ) -> io::Result<Self> {
        let mut file = disk.open(&segment_name(end.header.first_revision))?;
        file.truncate(end.tail)?;
        file.write_at(end.tail - end.last_frame.len() as u64, end.last_frame)?;
        file.sync_all()?;
        disk.sync_directory()?;
        let SegmentEnd { header, sequence, tail, .. } = end;
        Ok(Log { disk, file, header, sequence, tail, allocated: tail, segment_bytes })
    }

    /// Whether the next frame of this length will start a new segment.
    pub(crate) fn is_due(&self, length: usize) -> bool {
        self.tail > SEGMENT_HEADER as u64 && self.tail + length as u64 > self.segment_bytes
    }

    /// Leaves this segment, and starts the next one.
    pub(crate) fn rotate(&mut self, revision: Revision) -> Result<(), AppendError> {
        let position = LogPosition { store: self.header.store, revision, sequence: self.sequence };
        let disk = Arc::clone(&self.disk);
        match Log::start(Arc::clone(&disk), position, self.segment_bytes) {
            Ok(log) => {
                *self = log;
                Ok(())
            }
            Err(error) if is_full(&error) => {
                // If it cannot be removed, the next start will.
                let _ = disk.remove(&temporary_name(&segment_name(revision)));
                Err(AppendError::Full)
            }
            Err(error) => Err(broken("start a new segment of the log", &error)),
        }
    }

    /// Writes a frame with one write, and makes it durable with one sync.
    pub(crate) fn append(
        &mut self,
        frame: &mut FrameBuilder,
        first_revision: Revision,
    ) -> Result<(), AppendError> {
        let (segment, sequence) = (self.header.segment, self.sequence);
        let bytes = frame.finish(FramePlace { segment, sequence, first_revision });
        let length = bytes.len();
        let end = self.tail + length as u64;
        if end > self.allocated {
            let ahead = (16 * length as u64).clamp(LEAST_AHEAD, MOST_AHEAD);
            let target = (end + ahead).min(self.segment_bytes).max(end);
            bytes.resize(length + usize::try_from(target - end).unwrap_or(0), 0);
        }
        let written = self.file.write_at(self.tail, bytes);
        let written_to = self.tail + bytes.len() as u64;
        bytes.truncate(length);
        if let Err(error) = written {
            if !is_full(&error) {
                return Err(broken("write to the log", &error));
            }
            return self.cut_back();
        }
        self.file.sync_data().map_err(|error| broken("sync the log", &error))?;
        self.allocated = self.allocated.max(written_to);
        self.tail = end;
        self.sequence += 1;
        Ok(())
    }

    fn cut_back(&mut self) -> Result<(), AppendError> {
        let cut = self.file.truncate(self.tail).and_then(|()| self.file.sync_all());
        cut.map_err(|error| broken("cut the log back after the disk was full", &error))?;
        self.allocated = self.tail;
        Err(AppendError::Full)
    }
}

/// The end of the last segment, as recovery found it.
pub(crate) struct SegmentEnd<'a> {
    /// The segment.
    pub(crate) header: SegmentHeader,
    /// The sequence number of the next frame.
    pub(crate) sequence: u64,
    /// Where the next frame goes.
    pub(crate) tail: u64,
    /// The bytes of the frame before it; empty if there is none.
    pub(crate) last_frame: &'a [u8],
}

/// Removes the segments that hold nothing after a revision, and says how many are left.
pub(crate) fn remove_before(disk: &dyn Disk, needed_after: Revision) -> io::Result<usize> {
    let segments = segments(disk)?;
    // A segment goes to where the next begins; the last one is in use.
    let is_needed = |next: &Revision| *next > needed_after + 1;
    let needless = segments.iter().skip(1).take_while(|next| !is_needed(next)).count();
    for first in &segments[..needless] {
        disk.remove(&segment_name(*first))?;
    }
    disk.sync_directory()?;
    Ok(segments.len() - needless)
}

/// The segments in a directory, oldest first.
pub(crate) fn segments(disk: &dyn Disk) -> io::Result<Vec<Revision>> {
    let mut segments: Vec<_> = disk.list()?.iter().filter_map(|name| segment_of(name)).collect();
    segments.sort_unstable();
    Ok(segments)
}
