//! The disk of the machine: a directory, its lock, and its files.

use super::{Disk, DiskFile};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A directory on the machine's file system.
pub(crate) struct RealDisk {
    directory: PathBuf,
    handle: File,
}

impl RealDisk {
    /// Opens the directory, which only its owner may read if it has to be made first.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing: Vec<_> = directory.ancestors().take_while(is_missing).collect();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // The directory itself must survive too. That of an earlier process may not have been made
        // so.
        for made in missing.iter().copied().chain([directory]) {
            sync_parent(made)?;
        }
        Ok(RealDisk { directory: directory.to_path_buf(), handle: File::open(directory)? })
    }
}

/// Makes the name of a directory durable, unless its parent is none of our business.
fn sync_parent(directory: &Path) -> io::Result<()> {
    let parent = match directory.parent() {
        None => return Ok(()),
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    };
    match File::open(parent).and_then(|parent| parent.sync_all()) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

impl Disk for RealDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            // A name that is not UTF-8 is none of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.directory.join(name))?;
        Ok(Box::new(RealFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.directory.join(name))?;
        Ok(Box::new(RealFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let room = rustix::fs::fstatvfs(&self.handle)?;
        Ok(room.f_bavail.saturating_mul(room.f_frsize))
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// Held for as long as a process uses a directory; the kernel lets go of it when the process dies.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

/// Why a directory could not be locked.
pub(crate) enum LockError {
    /// Somebody has it. What the lock file says about them.
    Held(String),
    /// The file system says no.
    Io(io::Error),
}

impl DirectoryLock {
    /// Locks the directory and leaves this process's id in the lock file.
    pub(crate) fn take(directory: &Path) -> Result<Self, LockError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(directory.join("lock"))
            .map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        // On a full disk the name is left out, but the lock holds all the same.
        let _ = leave_name(&mut file);
        Ok(DirectoryLock { _file: file })
    }
}

fn leave_name(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "process {}", std::process::id())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(64).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "a process that left no name".to_owned(),
    }
}
