//! Owner, mode, times and extended attributes: what a file has besides its bytes.

use super::fault::Fault;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

/// Most files have no attributes, and those that have have few.
const NAMES_BYTES: usize = 1024;

/// Extended attributes by name.
type Attributes = BTreeMap<CString, Vec<u8>>;

/// Gives an open file or folder all that another one has. The order matters: a new owner clears
/// some bits of the mode, a mode without the right to write keeps its owner from setting `user.*`,
/// and everything changes the times.
pub(super) fn give(target: &OwnedFd, source: &OwnedFd, stat: &Stat) -> Result<(), Fault> {
    let attributes = read(source).map_err(|error| Fault::Source(error.into()))?;
    let (of_users, others): (Vec<_>, Vec<_>) =
        attributes.iter().partition(|(name, _)| name.to_bytes().starts_with(b"user."));
    let owner = rustix::fs::fchown(target, Some(uid(stat)), Some(gid(stat)));
    owner.map_err(|error| Fault::NotKept("owner", error.into()))?;
    for (name, value) in of_users {
        set(target, name, value)?;
    }
    let mode = rustix::fs::fchmod(target, mode(stat));
    mode.map_err(|error| Fault::NotKept("mode", error.into()))?;
    for (name, value) in others {
        set(target, name, value)?;
    }
    let times = rustix::fs::futimens(target, &times(stat));
    times.map_err(|error| Fault::NotKept("times", error.into()))
}

/// The same for what cannot be opened: links, fifos and devices. They have no `user.*` attributes.
pub(super) fn give_by_name(folder: &OwnedFd, name: &CStr, stat: &Stat) -> Result<(), Fault> {
    let itself = AtFlags::SYMLINK_NOFOLLOW;
    let owner = rustix::fs::chownat(folder, name, Some(uid(stat)), Some(gid(stat)), itself);
    owner.map_err(|error| Fault::NotKept("owner", error.into()))?;
    if super::tree::kind(stat) != rustix::fs::FileType::Symlink {
        let mode = rustix::fs::chmodat(folder, name, mode(stat), AtFlags::empty());
        mode.map_err(|error| Fault::NotKept("mode", error.into()))?;
    }
    let times = rustix::fs::utimensat(folder, name, &times(stat), itself);
    times.map_err(|error| Fault::NotKept("times", error.into()))
}

/// Whether mode, owner and time of the last change are the same; not when it was last read.
pub(super) fn are_same(one: &Stat, other: &Stat) -> bool {
    let of =
        |stat: &Stat| (stat.st_mode, stat.st_uid, stat.st_gid, stat.st_mtime, stat.st_mtime_nsec);
    of(one) == of(other)
}

/// Whether both have the same extended attributes, of those that are always kept.
pub(super) fn are_same_extended(one: &OwnedFd, other: &OwnedFd) -> Result<bool, Fault> {
    let kept = |file| -> rustix::io::Result<Attributes> {
        let mut attributes = read(file)?;
        attributes.retain(|name, _| is_always_kept(name));
        Ok(attributes)
    };
    let one = kept(one).map_err(|error| Fault::Source(error.into()))?;
    Ok(one == kept(other).map_err(|error| Fault::Target(error.into()))?)
}

/// Removes those of the target that the source does not have.
pub(super) fn remove_others(target: &OwnedFd, source: &OwnedFd) -> Result<(), Fault> {
    let wanted = read(source).map_err(|error| Fault::Source(error.into()))?;
    let found = read(target).map_err(|error| Fault::Target(error.into()))?;
    for name in found.keys().filter(|name| is_always_kept(name) && !wanted.contains_key(*name)) {
        rustix::fs::fremovexattr(target, name.as_c_str())
            .map_err(|error| Fault::Target(error.into()))?;
    }
    Ok(())
}

/// What people and access lists say is kept or the whole fails. Marks of the machine, such as
/// security labels, are kept where that is allowed.
fn is_always_kept(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_")
}

fn set(target: &OwnedFd, name: &CStr, value: &[u8]) -> Result<(), Fault> {
    match rustix::fs::fsetxattr(target, name, value, XattrFlags::empty()) {
        Ok(()) => Ok(()),
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::ACCESS) if !is_always_kept(name) => Ok(()),
        Err(error @ (Errno::NOSPC | Errno::DQUOT)) => Err(Fault::Target(error.into())),
        Err(error) => Err(Fault::NotKept("extended attributes", error.into())),
    }
}

fn read(file: &OwnedFd) -> rustix::io::Result<Attributes> {
    let mut names = vec![0; NAMES_BYTES];
    let count = loop {
        match rustix::fs::flistxattr(file, &mut names[..]) {
            Ok(count) => break count,
            Err(Errno::RANGE) => names.resize(names.len() * 4, 0),
            Err(Errno::OPNOTSUPP) => return Ok(Attributes::new()),
            Err(error) => return Err(error),
        }
    };
    let mut attributes = Attributes::new();
    for name in names[..count].split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        match value(file, name) {
            Ok(value) => drop(attributes.insert(name.to_owned(), value)),
            Err(Errno::NODATA) => {}
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::ACCESS) if !is_always_kept(name) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(attributes)
}

fn value(file: &OwnedFd, name: &CStr) -> rustix::io::Result<Vec<u8>> {
    let mut value = vec![0; 256];
    loop {
        match rustix::fs::fgetxattr(file, name, &mut value[..]) {
            Ok(count) => {
                value.truncate(count);
                return Ok(value);
            }
            Err(Errno::RANGE) => value.resize(value.len() * 4, 0),
            Err(error) => return Err(error),
        }
    }
}

fn uid(stat: &Stat) -> Uid {
    Uid::from_raw(stat.st_uid)
}

fn gid(stat: &Stat) -> Gid {
    Gid::from_raw(stat.st_gid)
}

fn mode(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o7777)
}

fn times(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime, tv_nsec: stat.st_atime_nsec as i64 },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as i64 },
    }
}
