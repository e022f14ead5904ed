//! Files that only we may read: keys, certificates, kubeconfigs. A crash leaves the old file or the
//! new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Two writers of one file in one process must not share a temporary file.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Replaces a file, readable by its owner only (0600): temporary file, sync, rename, sync of the
/// directory.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = temporary_beside(path)?;
    let written = write_synced(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // What is left of a failed write may hold a key; that it cannot be removed changes nothing
        // for the caller.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_directory(path)
}

/// Makes a directory that only we may enter (0700), and tightens one that is there already.
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    tighten(path, 0o700)
}

/// The content of a file, or nothing if there is no such file. A file that others may read is
/// closed to them.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(content) => {
            tighten(path, 0o600)?;
            Ok(Some(content))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "a private file needs a readable name")
    })?;
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    Ok(path.with_file_name(format!(".{name}.{}.{number}.tmp", std::process::id())))
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    // A left-over of a crashed process with our id keeps its mode when it is opened again.
    tighten(path, 0o600)?;
    file.write_all(content)?;
    file.sync_all()
}

fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        Some(_) | None => File::open(".")?.sync_all(),
    }
}

#[cfg(unix)]
fn tighten(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::metadata(path)?;
    if metadata.permissions().mode() & 0o777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn tighten(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
    }

    #[test]
    fn a_replaced_file_is_ours_alone_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("key");
        fs::write(&path, "old").expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("ours");
        replace(&path, b"new").expect("writable");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(read(&path).expect("readable").as_deref(), Some("new"));
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
    }

    #[test]
    fn a_file_that_others_could_read_is_closed_when_it_is_read() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("key");
        fs::write(&path, "secret").expect("writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("ours");
        assert!(read(&path).expect("readable").is_some());
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_directory_is_closed_to_others() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("pki");
        make_directory(&path).expect("writable");
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_file_that_is_not_there_is_nothing() {
        assert_eq!(read(Path::new("/nonexistent/key")).expect("no error"), None);
    }
}
