//! Marks: at this moment a log had so many bytes.
//!
//! They are written without a sync. A crash of the machine may cost the last ones, or leave a part of
//! one: lines then have the time of the next mark, and at the end that of the file's last change.

use crate::durable;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// So many bytes were there at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) bytes: u64,
    pub(super) at_unix_milliseconds: u64,
}

const MARK_BYTES: usize = 16;
/// A log with more marks keeps every other one: the times of its lines become coarser.
pub(super) const MOST_MARKS: usize = 32 * 1024;

impl Mark {
    pub(super) fn new(bytes: u64, at: SystemTime) -> Mark {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_unix_milliseconds = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Mark { bytes, at_unix_milliseconds }
    }

    pub(super) fn at(&self) -> SystemTime {
        let since = Duration::from_millis(self.at_unix_milliseconds);
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    }

    fn encoded(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..8].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[8..].copy_from_slice(&self.at_unix_milliseconds.to_le_bytes());
        bytes
    }

    fn decoded(bytes: &[u8]) -> Option<Mark> {
        let (length, at) = bytes.split_first_chunk::<8>()?;
        let at = at.first_chunk::<8>()?;
        let at_unix_milliseconds = u64::from_le_bytes(*at);
        Some(Mark { bytes: u64::from_le_bytes(*length), at_unix_milliseconds })
    }
}

/// The marks of a log, in order. Whatever cannot be one is left out.
pub(super) fn read(path: &Path) -> Vec<Mark> {
    let bytes = durable::read(path).ok().flatten().unwrap_or_default();
    let mut marks: Vec<Mark> = Vec::with_capacity(bytes.len() / MARK_BYTES);
    for mark in bytes.chunks_exact(MARK_BYTES).filter_map(Mark::decoded) {
        if marks.last().is_none_or(|last| last.bytes < mark.bytes) {
            marks.push(mark);
        }
    }
    marks
}

/// Adds one. A part of one that a crash has left is cut off first.
pub(super) fn append(path: &Path, mark: Mark) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    let odd = length % MARK_BYTES as u64;
    if odd != 0 {
        file.set_len(length - odd)?;
    }
    file.write_all(&mark.encoded())
}

/// Puts these in the place of all.
pub(super) fn replace(path: &Path, marks: &[Mark]) -> io::Result<()> {
    let bytes: Vec<u8> = marks.iter().flat_map(Mark::encoded).collect();
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(&bytes)?;
    std::fs::rename(&new, path)
}

/// When the byte at this offset was seen first; None if no mark says.
pub(super) fn time_of(marks: &[Mark], offset: u64) -> Option<SystemTime> {
    let after = marks.partition_point(|mark| mark.bytes <= offset);
    marks.get(after).map(Mark::at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_a_crash_has_cut_is_no_mark_and_harms_no_other() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("marks");
        let [first, second] = [10, 20].map(|bytes| Mark { bytes, at_unix_milliseconds: bytes });
        append(&path, first).unwrap();
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend([7; 5]);
        std::fs::write(&path, torn).unwrap();
        assert_eq!(read(&path), [first]);
        append(&path, second).unwrap();
        assert_eq!(read(&path), [first, second]);
    }

    #[test]
    fn marks_that_go_back_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("marks");
        for bytes in [5, 5, 3, u64::MAX, 9] {
            append(&path, Mark { bytes, at_unix_milliseconds: 1 }).unwrap();
        }
        let bytes: Vec<u64> = read(&path).iter().map(|mark| mark.bytes).collect();
        assert_eq!(bytes, [5, u64::MAX]);
    }

    #[test]
    fn a_byte_has_the_time_of_the_first_mark_that_has_it() {
        let marks = [(10, 1_000), (20, 2_000)]
            .map(|(bytes, at_unix_milliseconds)| Mark { bytes, at_unix_milliseconds });
        let times = [0, 9, 10, 19, 20].map(|offset| {
            let time = time_of(&marks, offset)?;
            Some(time.duration_since(UNIX_EPOCH).unwrap().as_secs())
        });
        assert_eq!(times, [Some(1), Some(1), Some(2), Some(2), None]);
    }
}
