//! Files that are there in whole or not at all, also after a crash.

use super::error::{Error, Result};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes the folder and those above it; what a run writes there is for nobody else to read.
pub(super) fn make_folder(path: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| Error::Prepare { path: path.to_owned(), source })
}

/// Puts the bytes at the path. When this returns they are on disk; a reader sees the file as it
/// was before or as it is now, never a part of it.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    write_and_rename(&new, path, bytes)
        .map_err(|source| Error::Write { path: path.to_owned(), source })
}

fn write_and_rename(new: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(new, path)?;
    sync_folder_of(path)
}

/// Removes the file, if it is there. When this returns it stays removed after a crash.
pub(super) fn remove(path: &Path) -> Result<()> {
    let removed = match fs::remove_file(path) {
        Ok(()) => sync_folder_of(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(|source| Error::Remove { path: path.to_owned(), source })
}

/// What the file holds, or nothing if it is not there.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { path: path.to_owned(), source }),
    }
}

/// Makes a rename, a new name or a removal in the folder of this path outlive a loss of power.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
