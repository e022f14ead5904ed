//! The disk as the store sees it: one flat directory of files, and nothing that cannot be
//! simulated.

mod memory;
mod real;
#[cfg(test)]
pub(crate) mod simulated;

pub(crate) use memory::MemoryDisk;
pub(crate) use real::{DirectoryLock, LockError, RealDisk};

use std::hash::{BuildHasher, RandomState};
use std::io;

/// A directory. Its entries are durable only after `sync_directory`.
pub(crate) trait Disk: Send + Sync + 'static {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// A new and empty file; what had the name is gone.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// An existing file.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file another name, in place of whatever had that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_directory(&self) -> io::Result<()>;
    /// How much may still be written.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// An open file. It stays open under whatever name it gets.
pub(crate) trait DiskFile: Send {
    /// How long it is.
    fn size(&self) -> io::Result<u64>;
    /// Fills the buffer as far as the file goes, and says how far that was.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// Writes all the bytes.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts it off.
    fn truncate(&mut self, size: u64) -> io::Result<()>;
    /// Makes what was written durable, and of the metadata only what reading it needs.
    fn sync_data(&mut self) -> io::Result<()>;
    /// Makes all of it durable.
    fn sync_all(&mut self) -> io::Result<()>;
}

/// Whether an error says that there is no room, which is the one kind of failure that can pass.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The whole of a file, in a buffer whose memory may have been used before.
pub(crate) fn read_whole(disk: &dyn Disk, name: &str, mut buffer: Vec<u8>) -> io::Result<Vec<u8>> {
    let file = disk.open(name)?;
    let size = usize::try_from(file.size()?).map_err(io::Error::other)?;
    buffer.resize(size, 0);
    let read = file.read_at(0, &mut buffer)?;
    buffer.truncate(read);
    Ok(buffer)
}

/// Writes a small file so that after a crash it is there in whole or not at all.
pub(crate) fn write_whole(disk: &dyn Disk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_name(name);
    let mut file = disk.create(&temporary)?;
    file.write_at(0, bytes)?;
    file.sync_all()?;
    disk.rename(&temporary, name)?;
    disk.sync_directory()
}

const TEMPORARY: &str = ".new";

/// What a file is called until it is complete.
pub(crate) fn temporary_name(name: &str) -> String {
    format!("{name}{TEMPORARY}")
}

/// Whether a file was never completed, and may be removed.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.ends_with(TEMPORARY)
}

/// A number that nobody outside the process can foresee: the standard library keys its hash maps
/// so.
pub(crate) fn random_id() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
