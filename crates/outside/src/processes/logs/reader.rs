//! Reads a log in small parts, from where it was asked to begin, whatever is cut off meanwhile.

use super::marks::{Mark, time_of};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

/// So much is read at once.
const PART_BYTES: usize = 32 * 1024;
/// The same, if each line gets its time: a line may be one byte.
const STAMPED_PART_BYTES: usize = 4 * 1024;

/// How the time of a line is written before it.
pub type Stamp = fn(SystemTime) -> String;

/// Which part of a log is read.
#[derive(Clone, Copy, Default)]
pub struct LogWindow {
    /// So many lines at the end of what is there now, and what follows.
    pub tail_lines: Option<u64>,
    /// Lines that were not written before this moment.
    pub since: Option<SystemTime>,
    /// So many bytes, with the times of the lines.
    pub limit_bytes: Option<u64>,
    /// Puts the time before each line.
    pub stamp: Option<Stamp>,
}

impl fmt::Debug for LogWindow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LogWindow")
            .field("tail_lines", &self.tail_lines)
            .field("since", &self.since)
            .field("limit_bytes", &self.limit_bytes)
            .field("stamp", &self.stamp.is_some())
            .finish()
    }
}

/// A log that is being read. It holds the file, so that it goes on with the same log when the run is
/// started again.
#[derive(Debug)]
pub struct LogReader {
    file: File,
    marks: Vec<Mark>,
    /// The next byte to read.
    at: u64,
    line: Line,
    stamp: Option<Stamp>,
    left_bytes: Option<u64>,
}

/// Where in a line the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Begins,
    GoesOn,
    /// Its beginning is not shown, so the rest is not either.
    IsSkipped,
}

impl LogReader {
    pub(super) fn open(file: File, marks: Vec<Mark>, window: &LogWindow) -> io::Result<LogReader> {
        let metadata = file.metadata()?;
        let size = metadata.len();
        let mut at = first_kept(&file, 0)?.min(size);
        let mut line = if at > 0 { Line::IsSkipped } else { Line::Begins };
        if let Some(lines) = window.tail_lines
            && let Some(tail) = tail_start(&file, at..size, lines)?
        {
            (at, line) = (tail, Line::Begins);
        }
        if let Some(since) = window.since {
            let modified = metadata.modified().unwrap_or_else(|_| SystemTime::now());
            let start = since_start(&marks, since, End { size, modified });
            if start > at {
                (at, line) = (start, line_at(&file, start)?);
            }
        }
        let (stamp, left_bytes) = (window.stamp, window.limit_bytes);
        Ok(LogReader { file, marks, at, line, stamp, left_bytes })
    }

    /// The next part; None if there is no more now.
    #[allow(clippy::should_implement_trait, reason = "after None there may be more")]
    pub fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        while !self.is_at_limit() {
            let size = match self.stamp {
                Some(_) => STAMPED_PART_BYTES,
                None => PART_BYTES,
            };
            let mut part = vec![0; size];
            let count = self.file.read_at(&mut part, self.at)?;
            if count == 0 {
                if self.file.metadata()?.len() >= self.at {
                    return Ok(None);
                }
                // It was emptied.
                (self.at, self.line) = (0, Line::Begins);
                self.marks.clear();
                continue;
            }
            // Asked after it was read: what was cut off before that reads as zeros.
            let kept = first_kept(&self.file, self.at)?;
            if kept > self.at {
                (self.at, self.line) = (kept, Line::IsSkipped);
                continue;
            }
            part.truncate(count);
            let part = self.shown(part)?;
            if !part.is_empty() {
                return Ok(Some(part));
            }
        }
        Ok(None)
    }

    /// Whether as many bytes were shown as were asked for.
    #[must_use]
    pub fn is_at_limit(&self) -> bool {
        self.left_bytes == Some(0)
    }

    /// What is to be shown of what was read.
    fn shown(&mut self, part: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut from = 0;
        if self.line == Line::IsSkipped {
            match part.iter().position(|byte| *byte == b'\n') {
                Some(end) => (from, self.line) = (end + 1, Line::Begins),
                None => from = part.len(),
            }
        }
        let read = part.len() as u64;
        let mut shown = match self.stamp {
            Some(stamp) => self.stamped(&part[from..], self.at + from as u64, stamp)?,
            None if from == 0 => part,
            None => part[from..].to_vec(),
        };
        self.at += read;
        if let Some(left) = &mut self.left_bytes {
            shown.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= shown.len() as u64;
        }
        Ok(shown)
    }

    fn stamped(&mut self, bytes: &[u8], mut at: u64, stamp: Stamp) -> io::Result<Vec<u8>> {
        let mut shown = Vec::with_capacity(bytes.len() + 64);
        let mut last: Option<(SystemTime, String)> = None;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line == Line::Begins {
                let time = match time_of(&self.marks, at) {
                    Some(time) => time,
                    // Nobody has marked it yet: it was written not long before the last change.
                    None => self.file.metadata()?.modified()?,
                };
                if last.as_ref().is_none_or(|(known, _)| *known != time) {
                    last = Some((time, stamp(time)));
                }
                if let Some((_, text)) = &last {
                    shown.extend_from_slice(text.as_bytes());
                    shown.push(b' ');
                }
            }
            shown.extend_from_slice(line);
            self.line = if line.ends_with(b"\n") { Line::Begins } else { Line::GoesOn };
            at += line.len() as u64;
        }
        Ok(shown)
    }
}

/// The first byte from there on that was not freed. Where the file system does not say: that one.
fn first_kept(file: &File, from: u64) -> io::Result<u64> {
    match seek(file, SeekFrom::Data(from)) {
        Ok(kept) => Ok(kept),
        // There is none after it; or it cannot be asked.
        Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => Ok(from),
        Err(error) => Err(error.into()),
    }
}

/// How a log ends now.
#[derive(Clone, Copy)]
struct End {
    size: u64,
    modified: SystemTime,
}

/// Where what was written since then begins.
fn since_start(marks: &[Mark], since: SystemTime, end: End) -> u64 {
    let mut before = 0;
    for mark in marks {
        if mark.at() >= since {
            return before;
        }
        before = mark.bytes;
    }
    // What nobody has marked yet was written until the last change.
    if end.modified >= since { before.min(end.size) } else { end.size }
}

/// Whether a line begins at this offset.
fn line_at(file: &File, offset: u64) -> io::Result<Line> {
    let mut before = [0];
    let Some(at) = offset.checked_sub(1) else { return Ok(Line::Begins) };
    let count = file.read_at(&mut before, at)?;
    Ok(if count == 1 && before == [b'\n'] { Line::Begins } else { Line::IsSkipped })
}

/// Where the last lines of a part of a file begin; None if it has fewer, or no more.
fn tail_start(file: &File, part: std::ops::Range<u64>, lines: u64) -> io::Result<Option<u64>> {
    if lines == 0 {
        return Ok(Some(part.end));
    }
    let mut found = 0;
    let mut end = part.end;
    while end > part.start {
        let start = end.saturating_sub(PART_BYTES as u64).max(part.start);
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(PART_BYTES)];
        let count = file.read_at(&mut bytes, start)?;
        for place in (0..count).rev().filter(|place| bytes[*place] == b'\n') {
            let next = start + place as u64 + 1;
            // The one at the end ends the last line.
            if next == part.end {
                continue;
            }
            found += 1;
            if found == lines {
                return Ok(Some(next));
            }
        }
        end = start;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::{Duration, UNIX_EPOCH};

    fn moment(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// A log that was written at these moments.
    fn log(parts: &[(&str, u64)]) -> (File, Vec<Mark>) {
        let mut file = tempfile::tempfile().unwrap();
        let (mut bytes, mut marks) = (0, Vec::new());
        for (part, seconds) in parts {
            file.write_all(part.as_bytes()).unwrap();
            bytes += part.len() as u64;
            marks.push(Mark::new(bytes, moment(*seconds)));
            file.set_modified(moment(*seconds)).unwrap();
        }
        (file, marks)
    }

    fn all(reader: &mut LogReader) -> String {
        let mut all = Vec::new();
        while let Some(part) = reader.next().unwrap() {
            all.extend(part);
        }
        String::from_utf8(all).unwrap()
    }

    fn read(parts: &[(&str, u64)], window: LogWindow) -> String {
        let (file, marks) = log(parts);
        all(&mut LogReader::open(file, marks, &window).unwrap())
    }

    const PARTS: &[(&str, u64)] = &[("one\ntwo\n", 10), ("three\nfo", 20), ("ur\nfive\n", 30)];

    fn stamp(time: SystemTime) -> String {
        time.duration_since(UNIX_EPOCH).unwrap().as_secs().to_string()
    }

    #[test]
    fn the_last_lines_are_counted_from_the_end() {
        let tail = |lines| read(PARTS, LogWindow { tail_lines: Some(lines), ..Default::default() });
        assert_eq!(tail(0), "");
        assert_eq!(tail(1), "five\n");
        assert_eq!(tail(2), "four\nfive\n");
        assert_eq!(tail(100), "one\ntwo\nthree\nfour\nfive\n");
        let open_end = LogWindow { tail_lines: Some(1), ..Default::default() };
        assert_eq!(read(&[("one\ntw", 1)], open_end), "tw");
    }

    #[test]
    fn tails_reach_over_many_parts() {
        let text: String = (0..30_000).map(|number| format!("{number}\n")).collect();
        let window = LogWindow { tail_lines: Some(20_000), ..Default::default() };
        assert!(read(&[(&text, 1)], window).starts_with("10000\n10001\n"));
    }

    #[test]
    fn lines_since_a_moment_begin_with_a_whole_line() {
        let since =
            |seconds| read(PARTS, LogWindow { since: Some(moment(seconds)), ..Default::default() });
        assert_eq!(since(5), "one\ntwo\nthree\nfour\nfive\n");
        assert_eq!(since(15), "three\nfour\nfive\n");
        assert_eq!(since(25), "five\n", "the line before was begun earlier");
        assert_eq!(since(35), "");
        let both = LogWindow { since: Some(moment(15)), tail_lines: Some(1), ..Default::default() };
        assert_eq!(read(PARTS, both), "five\n");
    }

    #[test]
    fn what_nobody_has_marked_has_the_time_of_the_last_change() {
        let (file, mut marks) = log(PARTS);
        marks.truncate(1);
        let window = LogWindow { since: Some(moment(25)), ..Default::default() };
        let mut reader = LogReader::open(file, marks, &window).unwrap();
        assert_eq!(all(&mut reader), "three\nfour\nfive\n");
    }

    #[test]
    fn each_line_has_the_time_at_which_it_began() {
        let window = LogWindow { stamp: Some(stamp), ..Default::default() };
        assert_eq!(read(PARTS, window), "10 one\n10 two\n20 three\n20 four\n30 five\n");
    }

    #[test]
    fn no_more_bytes_are_shown_than_were_asked_for() {
        let window = LogWindow { limit_bytes: Some(9), stamp: Some(stamp), ..Default::default() };
        let (file, marks) = log(PARTS);
        let mut reader = LogReader::open(file, marks, &window).unwrap();
        assert_eq!(all(&mut reader), "10 one\n10");
        assert!(reader.is_at_limit());
    }

    #[test]
    fn a_reader_behind_a_cut_goes_on_with_a_whole_line() {
        use rustix::fs::{FallocateFlags, fallocate};
        let text: String = (0..40_000).map(|number| format!("line {number}\n")).collect();
        let (file, marks) = log(&[(&text, 1)]);
        let ours = file.try_clone().unwrap();
        let mut reader = LogReader::open(file, marks, &LogWindow::default()).unwrap();
        assert!(reader.next().unwrap().unwrap().starts_with(b"line 0\n"));
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&ours, flags, 0, 256 * 1024).unwrap();
        let rest = all(&mut reader);
        let first = rest.lines().next().unwrap();
        let place = text.find(&format!("{first}\n")).expect("it is a whole line of the text");
        assert!((256 * 1024..256 * 1024 + 20).contains(&place), "{first:?} is at {place}");
        assert!(text.ends_with(&rest) && !rest.contains('\0'));
    }

    #[test]
    fn more_can_be_read_once_there_is_more() {
        let (file, marks) = log(&[("one\n", 1)]);
        let ours = file.try_clone().unwrap();
        let mut reader = LogReader::open(ours, marks, &LogWindow::default()).unwrap();
        assert_eq!(all(&mut reader), "one\n");
        file.write_at(b"two\n", 4).unwrap();
        assert_eq!(all(&mut reader), "two\n");
        file.set_len(0).unwrap();
        file.write_at(b"3\n", 0).unwrap();
        assert_eq!(all(&mut reader), "3\n", "an emptied log begins anew");
    }
}
