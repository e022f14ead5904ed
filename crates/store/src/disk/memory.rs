//! A disk in memory, for tests of what is above the store.

use super::{Disk, DiskFile};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Bytes = Arc<Mutex<Vec<u8>>>;

/// A directory that is gone with the process.
#[derive(Default)]
pub(crate) struct MemoryDisk {
    files: Mutex<BTreeMap<String, Bytes>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, name.to_owned())
}

impl Disk for MemoryDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(locked(&self.files).keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let bytes = Bytes::default();
        locked(&self.files).insert(name.to_owned(), Arc::clone(&bytes));
        Ok(Box::new(MemoryFile(bytes)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let bytes = locked(&self.files).get(name).cloned().ok_or_else(|| missing(name))?;
        Ok(Box::new(MemoryFile(bytes)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = locked(&self.files);
        let bytes = files.remove(from).ok_or_else(|| missing(from))?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        locked(&self.files).remove(name).map(drop).ok_or_else(|| missing(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

struct MemoryFile(Bytes);

impl DiskFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(locked(&self.0).len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = locked(&self.0);
        let from = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        let read = buffer.len().min(bytes.len() - from);
        buffer[..read].copy_from_slice(&bytes[from..from + read]);
        Ok(read)
    }

    fn write_at(&mut self, offset: u64, new: &[u8]) -> io::Result<()> {
        let mut bytes = locked(&self.0);
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let to = from + new.len();
        if bytes.len() < to {
            bytes.resize(to, 0);
        }
        bytes[from..to].copy_from_slice(new);
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        locked(&self.0).resize(usize::try_from(size).map_err(io::Error::other)?, 0);
        Ok(())
    }

    fn sync_data(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&mut self) -> io::Result<()> {
        Ok(())
    }
}
