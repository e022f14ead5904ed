//! Durable files, with the errors of this room.

use super::error::{Error, Result};
use crate::durable;
use std::io;
use std::path::Path;

pub(super) fn make_folder(path: &Path) -> Result<()> {
    durable::make_folder(path).map_err(|source| Error::Prepare { path: path.to_owned(), source })
}

pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    durable::replace(path, bytes).map_err(|source| Error::Write { path: path.to_owned(), source })
}

pub(super) fn remove(path: &Path) -> Result<()> {
    durable::remove(path).map_err(|source| Error::Remove { path: path.to_owned(), source })
}

pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    durable::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    durable::sync_folder_of(path)
}
