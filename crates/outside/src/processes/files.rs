//! Volumes of files that are made for a run before it starts.
//!
//! They are not in the folder of the run, which is made anew with each start: what a run writes to a volume
//! that began empty is there for its next start, too.

use super::error::{Error, Result};
use super::tokens::below;
use super::{Processes, durable, names};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder of all of them.
pub(super) const FILES: &str = "files";

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeFile {
    /// Where in the volume.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Who may read it, as in `chmod`.
    pub mode: u32,
}

impl Processes {
    /// The folder of a volume of files of a Pod.
    pub fn files_folder(&self, id: &str, volume: &str) -> Result<PathBuf> {
        Ok(self.files_of(id)?.join(names::checked("volume", volume)?))
    }

    /// Makes a volume that begins empty, if it is not there.
    pub fn make_empty_volume(&self, id: &str, volume: &str) -> Result<PathBuf> {
        let folder = self.files_folder(id, volume)?;
        durable::make_folder(&folder)?;
        Ok(folder)
    }

    /// Makes a volume of files anew.
    pub fn make_files(&self, id: &str, volume: &str, files: &[VolumeFile]) -> Result<PathBuf> {
        let folder = self.files_folder(id, volume)?;
        remove(&folder)?;
        durable::make_folder(&folder)?;
        self.put_files(id, &folder, files)?;
        Ok(folder)
    }

    /// Puts files beside the tokens of a volume.
    pub fn put_beside_tokens(&self, id: &str, volume: &str, files: &[VolumeFile]) -> Result<()> {
        let folder = self.token_folder(id, volume)?;
        self.put_files(id, &folder, files)
    }

    fn put_files(&self, id: &str, folder: &Path, files: &[VolumeFile]) -> Result<()> {
        for file in files {
            let path = folder.join(below(id, &file.path)?);
            if let Some(folder) = path.parent() {
                durable::make_folder(folder)?;
            }
            write(&path, file).map_err(|source| Error::Write { path, source })?;
        }
        Ok(())
    }

    /// The part of a volume that a path in it names; a folder that is not there is made.
    pub fn part_of_volume(&self, id: &str, volume: &Path, part: &str) -> Result<PathBuf> {
        if part.is_empty() {
            return Ok(volume.to_owned());
        }
        let path = volume.join(below(id, part)?);
        if !path.exists() {
            durable::make_folder(&path)?;
        }
        Ok(path)
    }

    /// Whether any files were made for a Pod.
    pub fn has_files(&self, id: &str) -> Result<bool> {
        Ok(self.files_of(id)?.is_dir())
    }

    /// Removes all volumes of files of a Pod, with what is in them.
    pub fn remove_files(&self, id: &str) -> Result<()> {
        remove(&self.files_of(id)?)
    }

    fn files_of(&self, id: &str) -> Result<PathBuf> {
        Ok(self.directory.join(FILES).join(names::checked("run", id)?))
    }
}

fn write(path: &Path, VolumeFile { bytes, mode, .. }: &VolumeFile) -> io::Result<()> {
    // One that an earlier start made may be for reading only.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode & 0o777))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(Error::Remove { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
