//! Trees of folders, walked by open folders: nothing that changes on the way leads out of them.
//!
//! A folder is opened by its path below the root, in one call that follows no link. Only the root
//! and the folders at work are open, so that neither the depth nor the width of a tree counts
//! against the limit of open files; and nothing here calls itself, so that no stack runs over.

use super::progress::Cancellation;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io;
use std::path::Path;

/// What one call may be given, less than the kernel takes.
const LONGEST_PATH_BYTES: usize = 4000;
const LISTING_BYTES: usize = 64 * 1024;
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder that a tree begins with.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

impl Root {
    /// Opens the folder. One that is a link is refused.
    pub(super) fn open(path: &Path) -> io::Result<Root> {
        Ok(Root(rustix::fs::open(path, FOLDER, Mode::empty())?))
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Opens a folder below; the root itself if the path is empty.
    pub(super) fn folder(&self, below: &[u8]) -> io::Result<OwnedFd> {
        let mut rest = if below.is_empty() { b"." } else { below };
        let mut at: Option<OwnedFd> = None;
        while rest.len() > LONGEST_PATH_BYTES {
            let cut = rest[..LONGEST_PATH_BYTES].iter().rposition(|byte| *byte == b'/');
            // A name is much shorter than that, so there is a slash.
            let cut = cut.ok_or(Errno::NAMETOOLONG)?;
            at = Some(open_folder(at.as_ref().unwrap_or(&self.0), &rest[..cut])?);
            rest = &rest[cut + 1..];
        }
        open_folder(at.as_ref().unwrap_or(&self.0), rest)
    }

    /// Opens the folder that this path is in, and says how it is named there.
    pub(super) fn folder_of<'a>(&self, path: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
        let (folder, name) = split(path);
        Ok((self.folder(folder)?, name))
    }
}

fn open_folder(at: &OwnedFd, path: &[u8]) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(at, path, FOLDER, Mode::empty(), resolve) {
        // Kernels before 5.6 do not have the call, and some containers forbid it.
        Err(Errno::NOSYS | Errno::PERM) => open_name_by_name(at, path),
        opened => Ok(opened?),
    }
}

fn open_name_by_name(at: &OwnedFd, path: &[u8]) -> io::Result<OwnedFd> {
    let mut folder = rustix::fs::openat(at, ".", FOLDER, Mode::empty())?;
    for name in path.split(|byte| *byte == b'/') {
        folder = rustix::fs::openat(&folder, name, FOLDER, Mode::empty())?;
    }
    Ok(folder)
}

/// A path as the path of its folder and its name there.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

/// The path of what has this name in a folder.
pub(super) fn join(folder: &[u8], name: &CStr) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.count_bytes());
    path.extend_from_slice(folder);
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.to_bytes());
    path
}

/// A name in a folder.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: CString,
    pub(super) is_folder: bool,
}

/// What is in a folder just opened, in the order in which the disk likes to be read.
pub(super) fn list(folder: &OwnedFd) -> io::Result<Vec<Named>> {
    let mut buffer = Vec::with_capacity(LISTING_BYTES);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let is_folder = match entry.file_type() {
            FileType::Directory => true,
            // Some file systems do not say it here.
            FileType::Unknown => {
                look(folder, name)?.is_some_and(|stat| kind(&stat) == FileType::Directory)
            }
            _ => false,
        };
        found.push((entry.ino(), Named { name: name.to_owned(), is_folder }));
    }
    found.sort_unstable_by_key(|(inode, _)| *inode);
    Ok(found.into_iter().map(|(_, named)| named).collect())
}

/// What this name is, or None if there is nothing of that name. Links are not followed.
pub(super) fn look(folder: impl AsFd, name: &CStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether it is the same file in the same state: nobody wrote to it, renamed or changed it.
pub(super) fn is_unchanged(before: &Stat, after: &Stat) -> bool {
    let state = |stat: &Stat| {
        let modified = (stat.st_mtime, stat.st_mtime_nsec);
        let changed = (stat.st_ctime, stat.st_ctime_nsec);
        (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size, modified, changed)
    };
    state(before) == state(after)
}

/// Removes what has this name, with all that is in it. That it is not there is no error, so two
/// may do this at once.
pub(super) fn remove(folder: &OwnedFd, name: &CStr) -> io::Result<()> {
    remove_unless_cancelled(folder, name, &Cancellation::never())
}

/// The same, but the rest is left once it is cancelled.
pub(super) fn remove_unless_cancelled(
    folder: &OwnedFd,
    name: &CStr,
    cancellation: &Cancellation,
) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        Err(error) => return Err(error.into()),
    }
    match open_writable(folder, name) {
        Ok(root) => remove_all_in(&Root(root), cancellation)?,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    if cancellation.is_over() {
        return Ok(());
    }
    gone_is_fine(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR))
}

fn remove_all_in(root: &Root, cancellation: &Cancellation) -> io::Result<()> {
    // A folder is on the stack twice: to be emptied, then to be removed after those in it.
    let mut stack = vec![(Vec::new(), false)];
    while let Some((path, is_empty)) = stack.pop() {
        if cancellation.is_over() {
            return Ok(());
        }
        if is_empty {
            let (folder, name) = root.folder_of(&path)?;
            gone_is_fine(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR))?;
            continue;
        }
        let folder = match root.folder(&path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if !path.is_empty() {
            stack.push((path.clone(), true));
        }
        for Named { name, .. } in list(&folder)? {
            match rustix::fs::unlinkat(&folder, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR) => {
                    // Opened once here for its rights; the number of open files stays small.
                    match open_writable(&folder, &name) {
                        Ok(_) => stack.push((join(&path, &name), false)),
                        Err(Errno::NOENT) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Opens a folder with the right to change what is in it, which its owner can always have.
pub(super) fn open_writable(at: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let all = Mode::RWXU;
    let folder = match rustix::fs::openat(at, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let seen = rustix::fs::openat(at, name, FOLDER | OFlags::PATH, Mode::empty())?;
            // By its descriptor, so that it is this folder and nothing that took its name since.
            rustix::fs::chmod(format!("/proc/self/fd/{}", seen.as_raw_fd()), all)?;
            rustix::fs::openat(at, name, FOLDER, Mode::empty())?
        }
        opened => opened?,
    };
    let mode = rustix::fs::fstat(&folder)?.st_mode;
    if mode & all.as_raw_mode() != all.as_raw_mode() {
        rustix::fs::fchmod(&folder, Mode::from_raw_mode(mode & 0o7777) | all)?;
    }
    Ok(folder)
}

fn gone_is_fine(removed: rustix::io::Result<()>) -> io::Result<()> {
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
