//! The folder that is written. Everything is done from the folder that it belongs in and never through
//! a link, so that nothing that was in the volume, or is in the snapshot, can lead out of it.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, linkat, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a folder in a folder, and makes it first if need be. Tells whether it was there.
pub(super) fn folder(parent: &OwnedFd, name: &CStr) -> Result<(OwnedFd, bool), Errno> {
    let made = match mkdirat(parent, name, Mode::RWXU) {
        Ok(()) => false,
        Err(Errno::EXIST) => true,
        Err(error) => return Err(error),
    };
    match openat(parent, name, FOLDER, Mode::empty()) {
        // A file or a link in its place.
        Err(Errno::NOTDIR | Errno::LOOP) => {
            clear(parent, name)?;
            mkdirat(parent, name, Mode::RWXU)?;
            Ok((openat(parent, name, FOLDER, Mode::empty())?, false))
        }
        opened => Ok((opened?, made)),
    }
}

/// Makes something that must not be there yet, after clearing away what is.
pub(super) fn replacing<T>(
    parent: &OwnedFd,
    name: &CStr,
    make: impl Fn() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match make() {
        Err(Errno::EXIST) => {
            clear(parent, name)?;
            make()
        }
        made => made,
    }
}

/// A new file.
pub(super) fn file(parent: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    replacing(parent, name, || openat(parent, name, flags, Mode::RUSR | Mode::WUSR))
}

/// One more name for a file that is elsewhere below the root.
pub(super) fn link(root: &OwnedFd, to: &Path, parent: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let (Some(folder), Some(file)) = (to.parent(), to.file_name()) else {
        return Err(Errno::INVAL);
    };
    let folder = below(root, folder)?;
    replacing(parent, name, || linkat(&folder, file, parent, name, AtFlags::empty()))
}

/// A folder below another, step by step.
fn below(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut folder = openat(root, ".", FOLDER, Mode::empty())?;
    for step in path.components() {
        let Component::Normal(step) = step else { return Err(Errno::INVAL) };
        folder = openat(&folder, step, FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// Removes whatever has this name, with all that is in it.
pub(super) fn clear(parent: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(Errno::PERM);
    }
    let folder = openat(parent, name, FOLDER, Mode::empty())?;
    for inner in names(&folder)? {
        clear(&folder, &inner)?;
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Removes everything in a folder but what is named; tells how much.
pub(super) fn clear_others(folder: &OwnedFd, kept: &BTreeSet<CString>) -> Result<u64, Errno> {
    let mut cleared = 0;
    for name in names(folder)?.into_iter().filter(|name| !kept.contains(name)) {
        clear(folder, &name)?;
        cleared += 1;
    }
    Ok(cleared)
}

fn names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// The name of a node, if it is one that a folder can have.
pub(super) fn name(name: &OsStr) -> Option<CString> {
    let bytes = name.as_bytes();
    let is_good = !bytes.is_empty() && !bytes.contains(&b'/') && !matches!(bytes, b"." | b"..");
    CString::new(bytes).ok().filter(|_| is_good)
}
