//! Owner, mode, attributes and times, each set and then checked.

use crate::modes;
use jiff::Timestamp;
use rustic_core::repofile::Metadata;
use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags, chmodat, chownat, fchmod,
    fchown, flistxattr, fremovexattr, fsetxattr, fstat, futimens, lsetxattr, statat, utimensat,
};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Why something is not as the snapshot has it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undressed {
    #[error("its {0} cannot be set: {1}")]
    Refused(&'static str, Errno),
    #[error("its extended attribute {0} cannot be set: {1}")]
    Attribute(String, Errno),
    #[error("its {0} was set, but is another")]
    Other(&'static str),
    #[error(transparent)]
    System(#[from] Errno),
}

/// What a node is to look like.
#[derive(Debug, Clone)]
pub(super) struct Dress {
    uid: Option<u32>,
    gid: Option<u32>,
    permissions: Option<u32>,
    mtime: Option<Timespec>,
    atime: Option<Timespec>,
    attributes: Vec<(String, Vec<u8>)>,
}

impl Dress {
    pub(super) fn new(meta: Metadata) -> Self {
        let attributes = meta.extended_attributes.into_iter();
        Dress {
            uid: meta.uid,
            gid: meta.gid,
            permissions: meta.mode.map(modes::permissions),
            mtime: meta.mtime.map(timespec),
            atime: meta.atime.or(meta.mtime).map(timespec),
            attributes: attributes.map(|a| (a.name, a.value.unwrap_or_default())).collect(),
        }
    }

    /// Puts it on what is open. The owner comes first, since a change of it takes bits off the mode
    /// and attributes away; the times come last, since everything else changes them.
    pub(super) fn put_on(&self, what: &OwnedFd, had_other: bool) -> Result<(), Undressed> {
        let before = fstat(what)?;
        if self.owner_differs(&before) {
            fchown(what, self.uid.map(Uid::from_raw), self.gid.map(Gid::from_raw))
                .map_err(|error| Undressed::Refused("owner", error))?;
        }
        if had_other {
            self.take_off_others(what)?;
        }
        for (name, value) in &self.attributes {
            let set = fsetxattr(what, name.as_str(), value, XattrFlags::empty());
            attribute(name, set)?;
        }
        if let Some(permissions) = self.permissions {
            fchmod(what, Mode::from_raw_mode(permissions))
                .map_err(|error| Undressed::Refused("mode", error))?;
        }
        if let Some(times) = self.times() {
            futimens(what, &times).map_err(|error| Undressed::Refused("time", error))?;
        }
        self.fits(&fstat(what)?, true)
    }

    /// Puts it on what has a name but cannot be opened: links, devices, pipes.
    pub(super) fn put_on_name(
        &self,
        folder: &OwnedFd,
        name: &CStr,
        is_link: bool,
    ) -> Result<(), Undressed> {
        let before = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if self.owner_differs(&before) {
            let (uid, gid) = (self.uid.map(Uid::from_raw), self.gid.map(Gid::from_raw));
            chownat(folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| Undressed::Refused("owner", error))?;
        }
        let mut path = format!("/proc/self/fd/{}/", folder.as_raw_fd()).into_bytes();
        path.extend_from_slice(name.to_bytes());
        for (attribute_name, value) in &self.attributes {
            let set = lsetxattr(&*path, attribute_name.as_str(), value, XattrFlags::empty());
            attribute(attribute_name, set)?;
        }
        // Links have no mode of their own.
        if let (false, Some(permissions)) = (is_link, self.permissions) {
            chmodat(folder, name, Mode::from_raw_mode(permissions), AtFlags::empty())
                .map_err(|error| Undressed::Refused("mode", error))?;
        }
        if let Some(times) = self.times() {
            utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| Undressed::Refused("time", error))?;
        }
        self.fits(&statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?, !is_link)
    }

    fn owner_differs(&self, stat: &Stat) -> bool {
        self.uid.is_some_and(|uid| uid != stat.st_uid)
            || self.gid.is_some_and(|gid| gid != stat.st_gid)
    }

    fn times(&self) -> Option<Timestamps> {
        let last_modification = self.mtime?;
        let last_access = self.atime.unwrap_or(last_modification);
        Some(Timestamps { last_access, last_modification })
    }

    fn fits(&self, stat: &Stat, has_mode: bool) -> Result<(), Undressed> {
        if self.owner_differs(stat) {
            return Err(Undressed::Other("owner"));
        }
        if has_mode && self.permissions.is_some_and(|mode| mode != stat.st_mode & 0o7777) {
            return Err(Undressed::Other("mode"));
        }
        // Some filesystems keep times in steps of up to two seconds.
        if self.mtime.is_some_and(|time| (time.tv_sec - stat.st_mtime).abs() > 2) {
            return Err(Undressed::Other("time"));
        }
        Ok(())
    }

    /// Removes attributes that the snapshot does not have.
    fn take_off_others(&self, what: &OwnedFd) -> Result<(), Undressed> {
        let mut list = vec![0; 64 << 10];
        let length = match flistxattr(what, &mut list[..]) {
            Err(Errno::NOTSUP) => return Ok(()),
            length => length?,
        };
        for name in list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let is_ours = self.attributes.iter().any(|(ours, _)| ours.as_bytes() == name);
            let is_the_systems = name.starts_with(b"security.");
            if !is_ours && !is_the_systems {
                fremovexattr(what, name).map_err(|error| {
                    Undressed::Attribute(String::from_utf8_lossy(name).into_owned(), error)
                })?;
            }
        }
        Ok(())
    }
}

/// Labels of the security of one machine mean nothing on another, and may not be settable there. A
/// capability does: without it the program in the file does not work.
fn attribute(name: &str, set: Result<(), Errno>) -> Result<(), Undressed> {
    let may_fail = name.starts_with("security.") && name != "security.capability";
    match set {
        Err(_) if may_fail => Ok(()),
        set => set.map_err(|error| Undressed::Attribute(name.to_owned(), error)),
    }
}

fn timespec(time: Timestamp) -> Timespec {
    let nanoseconds = time.as_nanosecond();
    let (second, rest) =
        (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
    Timespec {
        tv_sec: i64::try_from(second).unwrap_or_default(),
        tv_nsec: i64::try_from(rest).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_come_back() {
        let time = timespec("1969-12-31T23:59:58.75Z".parse().unwrap());
        assert_eq!((time.tv_sec, time.tv_nsec), (-2, 750_000_000));
    }
}
