//! The files of a driver, all in one folder: replaced as a whole, never reached through a link, for the agent alone.

use crate::calls::Calls;
use crate::failures;
use interlock_nodes::outside::Failure;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long an action waits for the one before it. A program that is stopped holds its lock for as long as it is
/// stopped, and who waits takes a thread.
const LOCK_SECONDS: u64 = 20;

const OURS_ALONE: Mode = Mode::from_raw_mode(0o600);

/// The folder.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: OwnedFd,
    calls: Calls,
}

/// A lock on a file of its own: what it protects is replaced by a rename, and a lock goes with the file.
///
/// It is never unlocked, only closed. A child process that has inherited it holds it until it ends, though the agent
/// was killed or gave up the step: nobody else acts on the port while nft still may.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Folder {
    /// Opens the folder, and makes it if need be.
    pub(crate) fn open(path: &Path, calls: Calls) -> Result<Folder, Failure> {
        let open = || -> io::Result<OwnedFd> {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = rustix::fs::open(path, flags, Mode::empty())?;
            let mode = rustix::fs::fstat(&folder)?.st_mode;
            if mode & 0o022 != 0 {
                return Err(io::Error::other("others may write in it: chmod 700"));
            }
            Ok(folder)
        };
        let failed = |error| failures::storage(&path.display().to_string(), &error);
        Ok(Folder { folder: open().map_err(failed)?, calls })
    }

    /// What runs before each call.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// What a file has; none if it is not there, or is not a file.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        // Not blocked by a pipe that somebody put there.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.folder, name, flags, Mode::empty());
        let read = |file: OwnedFd| -> io::Result<Option<Vec<u8>>> {
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
            let mut bytes = Vec::new();
            if kind == FileType::RegularFile {
                File::from(file).read_to_end(&mut bytes)?;
                return Ok(Some(bytes));
            }
            Ok(None)
        };
        match opened {
            Ok(file) => read(file).map_err(|error| failures::storage(name, &error)),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => Ok(None),
            Err(error) => Err(failures::storage(name, &error.into())),
        }
    }

    /// Puts the bytes there. When this returns they are on disk; a crash leaves the file as it was, or as it is now.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let new = format!("{name}.new");
        let write = || -> io::Result<()> {
            // What a crash left. Whatever it is, it is not written through.
            match rustix::fs::unlinkat(&self.folder, &new, AtFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            self.calls.before("create");
            let file =
                rustix::fs::openat(&self.folder, &new, flags | OFlags::NOFOLLOW, OURS_ALONE)?;
            let mut file = File::from(file);
            self.calls.before("write");
            file.write_all(bytes)?;
            self.calls.before("sync");
            file.sync_all()?;
            self.calls.before("rename");
            rustix::fs::renameat(&self.folder, &new, &self.folder, name)?;
            self.calls.before("sync of the folder");
            rustix::fs::fsync(&self.folder)?;
            Ok(())
        };
        write().map_err(|error| failures::storage(name, &error))
    }

    /// Removes a file, if it is there; it stays removed.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Failure> {
        self.calls.before("unlink");
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(failures::storage(name, &error.into())),
        }
        self.calls.before("sync of the folder");
        rustix::fs::fsync(&self.folder).map_err(|error| failures::storage(name, &error.into()))
    }

    /// The files that end so, without that ending, sorted.
    pub(crate) fn ending(&self, end: &str) -> Result<Vec<String>, Failure> {
        let list = || -> io::Result<Vec<String>> {
            let mut found = Vec::new();
            for entry in rustix::fs::Dir::read_from(&self.folder)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy();
                found.extend(name.strip_suffix(end).map(str::to_owned));
            }
            found.sort();
            Ok(found)
        };
        list().map_err(|error| failures::storage("the folder", &error))
    }

    /// Takes a lock, once it is free. Held by the open file: by this, and by the children it is handed to.
    pub(crate) fn lock(&self, name: &str) -> Result<Lock, Failure> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, name, flags | OFlags::NONBLOCK, OURS_ALONE);
        let file = file.map_err(|error| failures::storage(name, &error.into()))?;
        let began = Instant::now();
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(File::from(file))),
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(failures::storage(name, &error.into())),
            }
            if began.elapsed() > Duration::from_secs(LOCK_SECONDS) {
                return Err(failures::busy(name, LOCK_SECONDS));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Lock {
    /// The lock as the input of a child, which holds it from then on, too. What the child is to read is put into the
    /// file first, so that it needs no other way, and can be read there afterwards.
    pub(crate) fn as_input(&self, text: &str) -> io::Result<Stdio> {
        let mut file = self.0.try_clone()?;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Stdio::from(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_holds_the_lock_that_it_was_handed_until_it_ends() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::open(&path.path().join("a"), Calls::default()).unwrap();
        let lock = folder.lock("p0.lock").unwrap();
        let input = lock.as_input("what it is to read").unwrap();
        let mut child = Command::new("sleep").arg("600").stdin(input).spawn().unwrap();
        drop(lock);
        let file = File::open(path.path().join("a/p0.lock")).unwrap();
        let again = || rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(again(), Err(rustix::io::Errno::WOULDBLOCK));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(again(), Ok(()));
    }

    #[test]
    fn a_child_reads_what_it_was_given_and_not_what_was_there() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::open(&path.path().join("a"), Calls::default()).unwrap();
        let lock = folder.lock("p0.lock").unwrap();
        for text in ["a long text of the batch before", "short"] {
            let input = lock.as_input(text).unwrap();
            let output = Command::new("cat").stdin(input).output().unwrap();
            assert_eq!(output.stdout, text.as_bytes());
        }
    }
}
