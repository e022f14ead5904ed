//! A folder full of volumes or of snapshots: what is whole there, in part, or about to be gone.

use super::error::{Error, Result};
use super::hold::{Hold, To};
use super::progress::Cancellation;
use super::record::{self, Found, Record};
use super::tree;
use crate::{durable, names};
use rustix::fs::{CWD, RenameFlags};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// So that `.deleted-<handle>-<number>` can be a file name.
const LONGEST_HANDLE_BYTES: usize = 200;
const PARTIAL: &str = ".partial-";
const DELETED: &str = ".deleted-";

/// One such folder.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    /// What is on it, in one word.
    what: &'static str,
}

/// What is on disk under a handle.
#[derive(Debug)]
pub(super) enum OnDisk {
    Nothing,
    Whole(Box<Record>),
    /// A folder whose record is missing or damaged: nobody can say what is in it.
    Unknown(String),
}

impl Shelf {
    /// The shelf of a cluster, whether it is there or not.
    pub(super) fn of(root: &Path, what: &'static str, cluster: &str) -> Result<Shelf> {
        let cluster = checked("cluster", cluster)?;
        Ok(Shelf { folder: root.join(format!("{what}s")).join(cluster), what })
    }

    /// Makes the shelf, for good.
    pub(super) fn make(&self) -> Result<()> {
        let failed = |source| Error::Prepare { path: self.folder.clone(), source };
        durable::make_folder(&self.folder).map_err(failed)?;
        for folder in self.folder.ancestors().take(2) {
            durable::sync_folder_of(folder).map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn exists(&self) -> bool {
        self.folder.is_dir()
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn what(&self) -> &'static str {
        self.what
    }

    pub(super) fn path(&self, handle: &str) -> Result<PathBuf> {
        Ok(self.folder.join(checked(self.what, handle)?))
    }

    pub(super) fn partial(&self, handle: &str) -> Result<PathBuf> {
        Ok(self.folder.join(format!("{PARTIAL}{}", checked(self.what, handle)?)))
    }

    pub(super) fn record_path(&self, handle: &str) -> Result<PathBuf> {
        Ok(self.folder.join(format!(".record-{}.json", checked(self.what, handle)?)))
    }

    fn lock_path(&self, handle: &str) -> Result<PathBuf> {
        Ok(self.folder.join(format!(".lock-{}", checked(self.what, handle)?)))
    }

    /// Takes the lock of a handle, if it can be had.
    pub(super) fn hold(&self, handle: &str, to: To) -> Result<Option<Hold>> {
        Hold::take(&self.lock_path(handle)?, to)
    }

    /// The same, for those to whom it is an error that it cannot be had.
    pub(super) fn hold_or_busy(&self, handle: &str, to: To) -> Result<Hold> {
        let busy = || Error::Busy { what: self.what, handle: handle.to_owned() };
        self.hold(handle, to)?.ok_or_else(busy)
    }

    /// Whether another makes it now.
    pub(super) fn is_made_by_another(&self, handle: &str) -> Result<bool> {
        Ok(self.is_there(&self.partial(handle)?)? && Hold::is_written(&self.lock_path(handle)?)?)
    }

    /// What is there under a handle.
    pub(super) fn look(&self, handle: &str) -> Result<OnDisk> {
        let path = self.path(handle)?;
        if !self.is_there(&path)? {
            return Ok(OnDisk::Nothing);
        }
        let what = self.what;
        Ok(match record::read(&self.record_path(handle)?)? {
            Found::Record(record) => OnDisk::Whole(record),
            // It may have been deleted between the two looks, but not made: handles mean one thing.
            Found::Nothing if !self.is_there(&path)? => OnDisk::Nothing,
            Found::Nothing => OnDisk::Unknown(format!(
                "{what} {handle} has a folder at {} but no record, so nobody knows whether it is \
                 whole: delete it, or move the folder away",
                path.display()
            )),
            Found::Damaged(record) => OnDisk::Unknown(format!(
                "the record of {what} {handle} at {} is damaged, so nobody knows whether it is \
                 whole: delete it, or move the folder away",
                record.display()
            )),
        })
    }

    fn is_there(&self, path: &Path) -> Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(found) => Ok(found.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(Error::Read { path: path.to_owned(), source }),
        }
    }

    /// Makes an empty partial, and says whether what the dead left of one was set aside for that.
    /// Only for who holds the handle.
    pub(super) fn begin(&self, handle: &str) -> Result<(PathBuf, bool)> {
        let partial = self.partial(handle)?;
        let is_littered = self.set_aside(&partial, handle)?;
        let made = fs::DirBuilder::new().mode(0o700).create(&partial);
        made.map_err(|source| Error::Prepare { path: partial.clone(), source })?;
        Ok((partial, is_littered))
    }

    /// Gives a partial its name, when everything in it is on the disk.
    pub(super) fn publish(&self, record: &Record) -> io::Result<()> {
        let (partial, path) = (self.partial(&record.handle), self.path(&record.handle));
        let record_path = self.record_path(&record.handle);
        let (Ok(partial), Ok(path), Ok(record_path)) = (partial, path, record_path) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        record.write(&record_path)?;
        rustix::fs::renameat_with(CWD, &partial, CWD, &path, RenameFlags::NOREPLACE)?;
        durable::sync_folder(&self.folder)
    }

    /// Takes away whatever is under a handle, for good. Only for who holds it. What is set aside is
    /// to be swept.
    pub(super) fn delete(&self, handle: &str) -> Result<()> {
        self.set_aside(&self.path(handle)?, handle)?;
        self.set_aside(&self.partial(handle)?, handle)?;
        let failed = |source| Error::Remove { path: self.folder.join(handle), source };
        durable::sync_folder(&self.folder).map_err(failed)?;
        durable::remove(&self.record_path(handle)?).map_err(failed)
    }

    /// Renames to `.deleted-...`; false if there is nothing.
    pub(super) fn set_aside(&self, path: &Path, handle: &str) -> Result<bool> {
        let failed = |source| Error::Remove { path: path.to_owned(), source };
        for number in 0_u32.. {
            let aside = self.folder.join(format!("{DELETED}{handle}-{number}"));
            match rustix::fs::renameat_with(CWD, path, CWD, &aside, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(true),
                Err(rustix::io::Errno::NOENT) => return Ok(false),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(false)
    }

    /// Sets aside every partial whose maker is dead, and returns how many.
    pub(super) fn set_aside_abandoned(&self) -> Result<usize> {
        let mut count = 0;
        for name in self.names_with(PARTIAL)? {
            let Some(handle) = name.to_str().and_then(|name| name.strip_prefix(PARTIAL)) else {
                continue;
            };
            if checked(self.what, handle).is_ok()
                && let Some(_hold) = self.hold(handle, To::Write)?
            {
                self.set_aside(&self.folder.join(&name), handle)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Removes all that was set aside, or a part of it if cancelled. Several may do this at once.
    pub(super) fn sweep(&self, cancellation: &Cancellation) -> Result<()> {
        for name in self.names_with(DELETED)? {
            let path = self.folder.join(&name);
            let failed = |source| Error::Remove { path: path.clone(), source };
            let folder = tree::Root::open(&self.folder).map_err(failed)?;
            let name = CString::new(name.into_encoded_bytes())
                .map_err(|_| failed(io::ErrorKind::InvalidFilename.into()))?;
            tree::remove_unless_cancelled(folder.descriptor(), &name, cancellation)
                .map_err(failed)?;
        }
        Ok(())
    }

    fn names_with(&self, prefix: &str) -> Result<Vec<std::ffi::OsString>> {
        let failed = |source| Error::Read { path: self.folder.clone(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if name.as_encoded_bytes().starts_with(prefix.as_bytes()) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// Returns the name if it can be one file name, with room for what is before and behind.
pub(super) fn checked<'a>(what: &'static str, name: &'a str) -> Result<&'a str> {
    let too_long = (name.len() > LONGEST_HANDLE_BYTES).then_some("it is longer than 200 bytes");
    match names::fault(name).or(too_long) {
        None => Ok(name),
        Some(because) => Err(Error::Name { what, name: name.to_owned(), because }),
    }
}
