//! A repository in a folder of the machine, in restic's default layout.

use super::{File, Kind, Store, StoreError, is_name};
use bytes::Bytes;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A repository in a folder.
pub(super) struct Local {
    folder: PathBuf,
}

/// Tells the temporary files of this process apart.
static WRITES: AtomicU64 = AtomicU64::new(0);

impl Local {
    pub(super) fn new(folder: PathBuf) -> Self {
        Local { folder }
    }

    fn path(&self, file: File<'_>) -> PathBuf {
        self.folder.join(file.path())
    }

    /// Names and sizes in one folder, and the folders in it.
    fn scan(
        &self,
        folder: &Path,
        found: &mut Vec<(String, u64)>,
    ) -> Result<Vec<PathBuf>, StoreError> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| trouble(folder, &error))? {
            let entry = entry.map_err(|error| trouble(folder, &error))?;
            let kind = entry.file_type().map_err(|error| trouble(&entry.path(), &error))?;
            if kind.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| is_name(name)) else { continue };
            match entry.metadata() {
                Ok(metadata) => found.push((name.to_owned(), metadata.len())),
                // Removed while we looked, as if we had looked later.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(trouble(&entry.path(), &error)),
            }
        }
        Ok(folders)
    }

    fn write_beside(&self, target: &Path, parts: &[Bytes]) -> Result<PathBuf, StoreError> {
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!("-tmp-{}-{number}", std::process::id()));
        let beside = target.with_file_name(name);
        let written = (|| {
            let mut file =
                fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            for part in parts {
                file.write_all(part)?;
            }
            file.sync_all()
        })();
        if let Err(error) = written {
            let _ = fs::remove_file(&beside);
            return Err(trouble(target, &error));
        }
        Ok(beside)
    }
}

impl Store for Local {
    fn has_config(&self) -> Result<bool, StoreError> {
        let path = self.path(File::CONFIG);
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(trouble(&path, &error)),
        }
    }

    fn list(&self, kind: Kind) -> Result<Vec<(String, u64)>, StoreError> {
        let mut found = Vec::new();
        let folders = match self.scan(&self.folder.join(kind.folder()), &mut found) {
            // Not everybody who makes repositories makes this folder.
            Err(StoreError::Missing(_)) if kind == Kind::Lock => return Ok(found),
            folders => folders?,
        };
        if kind == Kind::Pack {
            for folder in folders {
                self.scan(&folder, &mut found)?;
            }
        }
        Ok(found)
    }

    fn read(&self, file: File<'_>) -> Result<Bytes, StoreError> {
        let path = self.path(file);
        fs::read(&path).map(Bytes::from).map_err(|error| trouble(&path, &error))
    }

    fn read_part(&self, file: File<'_>, from: u64, bytes: usize) -> Result<Bytes, StoreError> {
        let path = self.path(file);
        let mut part = vec![0; bytes];
        fs::File::open(&path).and_then(|open| open.read_exact_at(&mut part, from)).map_err(
            |error| match error.kind() {
                ErrorKind::UnexpectedEof => {
                    StoreError::Damaged(format!("{} is shorter than its index says", file.title()))
                }
                _ => trouble(&path, &error),
            },
        )?;
        Ok(part.into())
    }

    fn write(&self, file: File<'_>, parts: &[Bytes]) -> Result<(), StoreError> {
        let path = self.path(file);
        let folder = path.parent().unwrap_or(&self.folder);
        let beside = match self.write_beside(&path, parts) {
            Err(StoreError::Missing(_)) => {
                make_folder(folder)?;
                self.write_beside(&path, parts)?
            }
            written => written?,
        };
        let renamed = match file.kind {
            Kind::Config => rename_where_nothing_is(&beside, &path),
            _ => fs::rename(&beside, &path),
        };
        if let Err(error) = renamed {
            let _ = fs::remove_file(&beside);
            return Err(trouble(&path, &error));
        }
        fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| trouble(folder, &error))
    }

    fn remove(&self, file: File<'_>) -> Result<(), StoreError> {
        let path = self.path(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(trouble(&path, &error)),
            _ => Ok(()),
        }
    }

    fn prepare(&self) -> Result<(), StoreError> {
        for kind in Kind::FOLDERS {
            make_folder(&self.folder.join(kind.folder()))?;
        }
        for byte in 0..=u8::MAX {
            make_folder(&self.folder.join("data").join(format!("{byte:02x}")))?;
        }
        Ok(())
    }

    fn is_far(&self) -> bool {
        false
    }
}

fn make_folder(folder: &Path) -> Result<(), StoreError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| trouble(folder, &error))
}

fn rename_where_nothing_is(from: &Path, to: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A filesystem that cannot: the next best thing, and whoever initialises checks again.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(Errno::EXIST.into());
            }
            fs::rename(from, to)
        }
        renamed => Ok(renamed?),
    }
}

fn trouble(path: &Path, error: &std::io::Error) -> StoreError {
    let path = path.display();
    match error.kind() {
        ErrorKind::NotFound => StoreError::Missing(path.to_string()),
        ErrorKind::AlreadyExists => StoreError::Exists(path.to_string()),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full(path.to_string()),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            StoreError::Denied(format!("{path}: {error}"))
        }
        _ => StoreError::Unreachable(format!("{path}: {error}")),
    }
}
