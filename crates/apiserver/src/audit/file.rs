//! A file of lines that is set aside when it is full: `audit.log`, `audit.log.1` (the newest),
//! `audit.log.2`, ...

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file that is written now, and the rules for setting it aside.
pub(super) struct RotatingFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
    keep: u32,
    /// The last write failed, and may have left half a line.
    is_torn: bool,
}

impl RotatingFile {
    /// Opens the file at its end.
    pub(super) fn open(path: PathBuf, max_bytes: u64, keep: u32) -> io::Result<Self> {
        let file = append_to(&path)?;
        let bytes = file.metadata()?.len();
        let is_torn = bytes > 0 && !ends_with_newline(&path)?;
        Ok(RotatingFile { path, file, bytes, max_bytes, keep, is_torn })
    }

    /// Writes one line. A line that fails is lost, and those after it are whole again.
    pub(super) fn write_line(&mut self, line: &str) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(line.len() + 2);
        if self.is_torn {
            bytes.push(b'\n');
        }
        bytes.extend(line.as_bytes());
        bytes.push(b'\n');
        let length = bytes.len() as u64;
        if self.bytes > 0 && self.bytes.saturating_add(length) > self.max_bytes {
            // If the file cannot be set aside, it grows: a long log is better than none.
            let _ = self.rotate();
        }
        let written = self.file.write_all(&bytes);
        self.is_torn = written.is_err();
        self.bytes += if written.is_ok() { length } else { 0 };
        written
    }

    /// Makes what was written survive power loss.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.sync()?;
        if self.keep == 0 {
            self.file.set_len(0)?;
        } else {
            for number in (1..self.keep).rev() {
                move_if_there(&numbered(&self.path, number), &numbered(&self.path, number + 1))?;
            }
            fs::rename(&self.path, numbered(&self.path, 1))?;
            self.file = append_to(&self.path)?;
        }
        self.bytes = 0;
        self.is_torn = false;
        Ok(())
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

fn move_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

fn ends_with_newline(path: &Path) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_set_aside_and_the_oldest_forgotten() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("audit.log");
        let mut file = RotatingFile::open(path.clone(), 10, 2).expect("writable");
        for number in 0..9 {
            file.write_line(&format!("line{number}")).expect("writable");
        }
        let read = |path: &Path| fs::read_to_string(path).expect("there");
        assert_eq!(read(&path), "line8\n");
        assert_eq!(read(&numbered(&path, 1)), "line7\n");
        assert_eq!(read(&numbered(&path, 2)), "line6\n");
        assert!(!numbered(&path, 3).exists());
    }

    #[test]
    fn a_file_without_successors_is_emptied() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("audit.log");
        let mut file = RotatingFile::open(path.clone(), 10, 0).expect("writable");
        for number in 0..3 {
            file.write_line(&format!("line{number}")).expect("writable");
        }
        assert_eq!(fs::read_to_string(&path).expect("there"), "line2\n");
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
    }

    #[test]
    fn half_a_line_of_a_crash_does_not_spoil_the_next() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("audit.log");
        fs::write(&path, "whole\nhal").expect("writable");
        let mut file = RotatingFile::open(path.clone(), 1000, 1).expect("writable");
        file.write_line("next").expect("writable");
        file.write_line("last").expect("writable");
        assert_eq!(fs::read_to_string(&path).expect("there"), "whole\nhal\nnext\nlast\n");
    }
}
