//! The files of a log: a few of them, each up to a size, and the oldest removed.

use interlock_kernel::{Begins, Line};
use jiff::Timestamp;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracing::warn;

/// What the name of a file of a log ends with.
pub(super) const ENDING: &str = ".steps.jsonl";

/// Where a log is, and how large it may become.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// The directory. It has nothing else in it, and one process writes to it.
    pub directory: PathBuf,
    /// How large a file may become.
    pub file_bytes: u64,
    /// How many full files there are at most. Sixteen that were ended early may be in the place of one.
    pub files: usize,
}

impl LogSettings {
    /// Eight files of 16 MiB.
    pub fn new(directory: impl Into<PathBuf>) -> LogSettings {
        LogSettings { directory: directory.into(), file_bytes: 16 << 20, files: 8 }
    }
}

/// The files that a process writes.
pub(super) struct Files {
    settings: LogSettings,
    begins: Begins,
    /// How many files this process has begun.
    begun: u64,
    /// None: the disk does not take any.
    current: Option<BufWriter<File>>,
    bytes: u64,
    /// When the disk is tried again after it took nothing.
    tried_again: Option<Instant>,
}

/// Into how many parts a full file is divided when the files of a log are counted.
const PARTS: u64 = 16;

/// How long a disk that takes nothing is left alone.
const DISK_AGAIN: Duration = Duration::from_secs(5);

impl Files {
    /// Begins the first file.
    pub(super) fn begin(settings: LogSettings, begins: Begins) -> io::Result<Files> {
        DirBuilder::new().recursive(true).mode(0o700).create(&settings.directory)?;
        let mut files =
            Files { settings, begins, begun: 0, current: None, bytes: 0, tried_again: None };
        files.next()?;
        Ok(files)
    }

    /// Writes a line. Whether it was.
    pub(super) fn put(&mut self, line: &str) -> bool {
        let bytes = line.len() as u64 + 1;
        let is_full = self.bytes + bytes > self.settings.file_bytes;
        if is_full || self.current.is_none() {
            if self.tried_again.is_some_and(|at| Instant::now() < at) {
                return false;
            }
            self.flush();
            if let Err(error) = self.next() {
                self.fails(&error);
                return false;
            }
        }
        let Some(current) = &mut self.current else { return false };
        match writeln!(current, "{line}") {
            Ok(()) => {
                self.bytes += bytes;
                true
            }
            Err(error) => {
                self.fails(&error);
                false
            }
        }
    }

    /// Has all that was put on its way to the disk.
    pub(super) fn flush(&mut self) {
        if let Some(current) = &mut self.current
            && let Err(error) = current.flush()
        {
            self.fails(&error);
        }
    }

    /// A file that may end in half a line is left as it is: the next one says that it goes on after a gap.
    fn fails(&mut self, error: &io::Error) {
        if self.tried_again.is_none() {
            let directory = self.settings.directory.display();
            warn!("cannot record steps in {directory}: {error}; they are missing in the audit");
        }
        self.tried_again = Some(Instant::now() + DISK_AGAIN);
        if let Some(current) = self.current.take() {
            // What is still in its buffer would be tried again when it is dropped.
            let _ = current.into_parts();
        }
    }

    fn next(&mut self) -> io::Result<()> {
        self.begun += 1;
        let goes_on = self.begun > 1 && self.current.is_some();
        let begins = Begins { time: Timestamp::now(), goes_on, ..self.begins.clone() };
        self.current = None;
        let name = format!(
            "{:014}-{}-{:06}{ENDING}",
            self.begins.time.as_millisecond(),
            std::process::id(),
            self.begun
        );
        let path = self.settings.directory.join(name);
        let line = serde_json::to_string(&Line::Begins(begins))?;
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&path)?;
        if let Err(error) = writeln!(&file, "{line}") {
            // Half a line is worth nothing, and a full disk would get another such file each time.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        self.current = Some(BufWriter::new(file));
        (self.bytes, self.tried_again) = (line.len() as u64 + 1, None);
        self.remove_oldest();
        Ok(())
    }

    /// A program that is started again and again keeps what it recorded before: a file that was ended early counts by
    /// its size.
    fn remove_oldest(&self) {
        let all = list(&self.settings.directory).unwrap_or_default();
        let room = self.settings.files.max(1) as u64 * PARTS;
        // The newest was just begun, and may become full.
        let mut taken = PARTS;
        for path in all.iter().rev().skip(1) {
            taken += self.parts(path);
            if taken > room
                && let Err(error) = std::fs::remove_file(path)
            {
                warn!("cannot remove {}: {error}", path.display());
            }
        }
    }

    /// How many parts of a full file a file counts for.
    fn parts(&self, path: &Path) -> u64 {
        let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let full = self.settings.file_bytes.max(1);
        if bytes.saturating_mul(2) >= full { PARTS } else { (bytes * PARTS).div_ceil(full).max(1) }
    }
}

/// The files of a log, the oldest first.
pub(super) fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ENDING)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
