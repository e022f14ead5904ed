//! Reads a log of steps, also while it is written.

use super::files::list;
use interlock_kernel::Line;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// What a log has next.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// A line.
    Line(Box<Line>),
    /// The last line of a file is not whole: its process was ended while it wrote.
    Torn(PathBuf),
    /// A line that no recorder writes.
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Why it cannot be read.
        because: String,
    },
}

/// The lines of a log, in the order in which they were written.
#[derive(Debug)]
pub struct Lines {
    directory: PathBuf,
    /// Those that were read, or are left out.
    done: BTreeSet<PathBuf>,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    path: PathBuf,
    file: BufReader<File>,
    /// How many whole lines were read.
    lines: u64,
    /// Where the next line begins.
    position: u64,
}

impl Lines {
    /// All that the log has, and will have.
    pub fn all(directory: &Path) -> io::Result<Lines> {
        list(directory)?;
        let directory = directory.to_owned();
        Ok(Lines { directory, done: BTreeSet::new(), current: None })
    }

    /// What a log has from the files on that are there next: none of those that are there now, but for the newest.
    pub fn from_newest(directory: &Path) -> io::Result<Lines> {
        let mut done: BTreeSet<PathBuf> = list(directory)?.into_iter().collect();
        done.pop_last();
        Ok(Lines { directory: directory.to_owned(), done, current: None })
    }

    /// The next line, if there is one yet.
    pub fn read_next(&mut self) -> io::Result<Option<Read>> {
        loop {
            if self.current.is_none() && !self.begin_next()? {
                return Ok(None);
            }
            let Some(current) = &mut self.current else { return Ok(None) };
            if let Some(read) = current.next()? {
                return Ok(Some(read));
            }
            // It is at its end: that is final once another one has begun.
            let files = list(&self.directory)?;
            let is_last = files.last().is_none_or(|last| *last <= current.path);
            if is_last {
                return Ok(None);
            }
            // What was written between the end that was seen and the beginning of the other.
            if let Some(read) = current.next()? {
                return Ok(Some(read));
            }
            let is_torn = current.has_rest()?;
            let path = current.path.clone();
            self.done.insert(path.clone());
            self.current = None;
            if is_torn {
                return Ok(Some(Read::Torn(path)));
            }
        }
    }

    fn begin_next(&mut self) -> io::Result<bool> {
        let files = list(&self.directory)?;
        self.done.retain(|path| files.contains(path) || files.is_empty());
        let newest_done = self.done.last();
        let is_next = |path: &&PathBuf| newest_done.is_none_or(|done| done < *path);
        let Some(path) = files.iter().find(is_next) else { return Ok(false) };
        let file = match File::open(path) {
            Ok(file) => BufReader::new(file),
            // It was the oldest, and is removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        self.current = Some(Current { path: path.clone(), file, lines: 0, position: 0 });
        Ok(true)
    }
}

impl Current {
    fn next(&mut self) -> io::Result<Option<Read>> {
        let mut line = Vec::new();
        self.file.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            // It is not whole yet, and is read again from its beginning.
            self.file.seek(SeekFrom::Start(self.position))?;
            return Ok(None);
        }
        self.position += line.len() as u64;
        self.lines += 1;
        Ok(Some(match serde_json::from_slice(&line) {
            Ok(line) => Read::Line(Box::new(line)),
            Err(error) => Read::Unreadable {
                file: self.path.clone(),
                line: self.lines,
                because: error.to_string(),
            },
        }))
    }

    fn has_rest(&mut self) -> io::Result<bool> {
        let length = self.file.get_ref().metadata()?.len();
        Ok(length > self.position)
    }
}
