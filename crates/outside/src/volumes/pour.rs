//! Pours one tree into another: the clone of a volume or a snapshot, and the copy into one in use.
//!
//! Into a fresh folder everything is made new. Into one that has something already, what is the
//! same stays, what differs is written beside and renamed over the old, and what the source does
//! not have goes: so whoever is killed on the way can begin again and goes on.
//!
//! What has several names is made for the first that comes along. The others are linked to it when
//! all is made; then the folders get their modes and times, the innermost first, for nobody needs
//! to write in them any more.

use super::content::{self, Abilities, Copied, Course, Files};
use super::digest::{Entry, What};
use super::error::Failure;
use super::fault::{Fault, Faults, Purpose};
use super::poured::{Poured, open};
use super::progress::{Cancellation, Counters};
use super::tree::{self, Named, Root};
use super::walk::{Visitor, WalkedFolder, walk};
use super::{attributes, content::target_of};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

const MAKE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What the target has at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Nothing.
    Fresh,
    /// Something that may be the same already, in part.
    InUse,
}

/// What to pour.
pub(super) struct Order<'a> {
    pub(super) source: &'a Path,
    pub(super) into: &'a Path,
    pub(super) target: Target,
    /// Whether bytes that are copied are hashed on the way.
    pub(super) wants_hash: bool,
    pub(super) purpose: &'a Purpose,
    pub(super) counters: &'a Counters,
}

/// Pours all of the source into the target. What it returns is in the page cache, not on the disk.
pub(super) fn pour(order: &Order<'_>, cancellation: &Cancellation) -> Result<Poured, Failure> {
    let opened = |path| Root::open(path).map_err(|error| order.purpose.unopened(&error));
    let pouring = Pouring {
        source: opened(order.source)?,
        target: opened(order.into)?,
        order,
        cancellation,
        abilities: Abilities::default(),
        temporary: AtomicU64::new(0),
        seen: Mutex::default(),
    };
    walk(&pouring.source, cancellation, &pouring).into_result(order.purpose)?;
    let mut faults = Faults::default();
    pouring.link(&mut faults);
    pouring.finish_folders(&mut faults);
    faults.into_result(order.purpose)?;
    Ok(pouring.seen.into_inner().unwrap_or_else(PoisonError::into_inner).poured)
}

struct Pouring<'a> {
    source: Root,
    target: Root,
    order: &'a Order<'a>,
    cancellation: &'a Cancellation,
    abilities: Abilities,
    /// Numbers the names of what is being written beside.
    temporary: AtomicU64,
    seen: Mutex<Seen>,
}

/// Something that the source has in a folder, as it was seen.
#[derive(Clone, Copy)]
struct Found<'a> {
    place: &'a WalkedFolder<OwnedFd>,
    name: &'a CStr,
    stat: &'a Stat,
}

/// What was seen on the way.
#[derive(Default)]
struct Seen {
    poured: Poured,
    folders: Vec<(Vec<u8>, Stat)>,
    /// Files of the source with several names, by device and inode.
    shared: HashMap<(u64, u64), Shared>,
    /// Files of the target with several names that stay.
    kept: HashSet<(u64, u64)>,
}

/// A file with several names.
#[derive(Default)]
struct Shared {
    /// Known once the first name is made.
    entry: Option<Entry>,
    others: Vec<Vec<u8>>,
}

impl Visitor for Pouring<'_> {
    /// The same folder in the target.
    type Beside = OwnedFd;

    fn enter(&self, path: &[u8], folder: &OwnedFd, names: &[Named]) -> Result<OwnedFd, Fault> {
        let stat = rustix::fs::fstat(folder).map_err(|error| Fault::Source(error.into()))?;
        let target = self.open_target(path).map_err(Fault::Target)?;
        if self.order.target == Target::InUse {
            remove_others(&target, names).map_err(Fault::Target)?;
        }
        for named in names.iter().filter(|named| named.is_folder) {
            self.make_folder(&target, &named.name).map_err(Fault::Target)?;
        }
        let mut seen = self.seen();
        if !path.is_empty() {
            let entry = Entry { stat, what: What::Bare, paths: vec![path.to_owned()] };
            seen.poured.lines.add(&entry);
        }
        seen.folders.push((path.to_owned(), stat));
        Ok(target)
    }

    fn visit(
        &self,
        place: &WalkedFolder<OwnedFd>,
        name: &CStr,
        buffer: &mut [u8],
    ) -> Result<(), Fault> {
        let stat = tree::look(&place.folder, name).map_err(Fault::Source)?.ok_or(Fault::Changed)?;
        if tree::kind(&stat) == FileType::Socket {
            // Nobody can connect to a copy of it. One of that name in the target goes, too.
            return self.clear(&place.beside, name).map_err(Fault::Target);
        }
        let path = place.path_of(name);
        let inode = (stat.st_dev, stat.st_ino);
        if stat.st_nlink > 1 {
            let mut seen = self.seen();
            if let Some(shared) = seen.shared.get_mut(&inode) {
                shared.others.push(path);
                return Ok(());
            }
            seen.shared.insert(inode, Shared::default());
        }
        let what = self.bring(Found { place, name, stat: &stat }, buffer)?;
        self.order.counters.add_file();
        let mut seen = self.seen();
        seen.poured.files += 1;
        if tree::kind(&stat) == FileType::RegularFile {
            let (size, on_disk) = (stat.st_size as u64, (stat.st_blocks as u64) * 512);
            seen.poured.bytes += size;
            seen.poured.stored_bytes += size.min(on_disk);
        }
        let entry = Entry { stat, what, paths: vec![path] };
        match seen.shared.get_mut(&inode) {
            Some(shared) => shared.entry = Some(entry),
            None => seen.poured.note(entry),
        }
        Ok(())
    }
}

impl Pouring<'_> {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_target(&self, path: &[u8]) -> std::io::Result<OwnedFd> {
        if self.order.target == Target::Fresh {
            return self.target.folder(path);
        }
        if path.is_empty() {
            return Ok(tree::open_writable(self.target.descriptor(), c".")?);
        }
        let (folder, name) = self.target.folder_of(path)?;
        Ok(tree::open_writable(&folder, &CString::new(name)?)?)
    }

    fn make_folder(&self, target: &OwnedFd, name: &CStr) -> std::io::Result<()> {
        if self.order.target == Target::InUse {
            match tree::look(target, name)? {
                Some(stat) if tree::kind(&stat) == FileType::Directory => return Ok(()),
                Some(_) => tree::remove(target, name)?,
                None => {}
            }
        }
        Ok(rustix::fs::mkdirat(target, name, Mode::RWXU)?)
    }

    /// Brings one thing over, whatever it is, unless the target has it already.
    fn bring(&self, found: Found<'_>, buffer: &mut [u8]) -> Result<What, Fault> {
        let Found { place, name, stat } = found;
        let theirs = match self.order.target {
            Target::Fresh => None,
            Target::InUse => tree::look(&place.beside, name).map_err(Fault::Target)?,
        };
        let theirs = theirs.filter(|theirs| self.may_stay(stat, theirs));
        match tree::kind(stat) {
            FileType::RegularFile => self.file(found, theirs.is_some(), buffer),
            FileType::Symlink => self.symlink(found, theirs.is_some()),
            kind @ (FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice) => {
                self.node(found, kind, theirs.is_some())
            }
            FileType::Directory | FileType::Socket | FileType::Unknown => Err(Fault::Changed),
        }
    }

    /// Whether what the target has looks the same from outside, and may be linked as it is.
    fn may_stay(&self, stat: &Stat, theirs: &Stat) -> bool {
        let looks_same = attributes::are_same(stat, theirs)
            && stat.st_size == theirs.st_size
            && stat.st_rdev == theirs.st_rdev
            && (stat.st_nlink > 1 || theirs.st_nlink == 1);
        // What are two files in the source must not stay one file with two names.
        looks_same
            && (theirs.st_nlink == 1 || self.seen().kept.insert((theirs.st_dev, theirs.st_ino)))
    }

    fn file(&self, found: Found<'_>, may_stay: bool, buffer: &mut [u8]) -> Result<What, Fault> {
        let Found { place, name, stat } = found;
        let (source, opened) = open(&place.folder, name)?;
        if !tree::is_unchanged(stat, &opened) {
            return Err(Fault::Changed);
        }
        if may_stay && let Some(hash) = self.same_content(&source, found, buffer)? {
            return Ok(What::File(hash));
        }
        let written = self.name_to_write(place, name)?;
        let target = rustix::fs::openat(&place.beside, &written, MAKE, Mode::RUSR | Mode::WUSR);
        let target = target.map_err(|error| Fault::Target(error.into()))?;
        let course = Course::new(self.order.counters, self.cancellation, buffer);
        let files = Files { source: &source, stat, target: &target };
        let copied = content::copy(files, &self.abilities, self.order.wants_hash, course)?;
        attributes::give(&target, &source, stat)?;
        let after = rustix::fs::fstat(&source).map_err(|error| Fault::Source(error.into()))?;
        if !tree::is_unchanged(stat, &after) {
            return Err(Fault::Changed);
        }
        self.put(place, &written, name)?;
        Ok(match copied {
            Copied::Hashed(hash) => What::File(hash),
            Copied::Unread => What::Unread,
            Copied::Shared => {
                self.seen().poured.shares_blocks = true;
                What::Unread
            }
        })
    }

    /// The hash of both, if they have the same bytes and the same extended attributes.
    fn same_content(
        &self,
        source: &OwnedFd,
        found: Found<'_>,
        buffer: &mut [u8],
    ) -> Result<Option<[u8; 32]>, Fault> {
        let Found { place, name, stat } = found;
        let Ok((theirs, their_stat)) = open(&place.beside, name) else { return Ok(None) };
        if !attributes::are_same_extended(source, &theirs)? {
            return Ok(None);
        }
        let uncounted = Counters::default();
        let course = Course::new(&uncounted, self.cancellation, buffer);
        let Ok(hash) = content::hash(&theirs, &their_stat, course) else { return Ok(None) };
        let course = Course::new(&uncounted, self.cancellation, buffer);
        let is_same = content::hash(source, stat, course)? == hash;
        if is_same {
            self.order.counters.add_bytes(stat.st_size as u64);
        }
        Ok(is_same.then_some(hash))
    }

    fn symlink(&self, found: Found<'_>, may_stay: bool) -> Result<What, Fault> {
        let Found { place, name, stat } = found;
        let target = target_of(&place.folder, name)?;
        if may_stay && target_of(&place.beside, name).is_ok_and(|theirs| theirs == target) {
            return Ok(What::Link(target));
        }
        let written = self.name_to_write(place, name)?;
        rustix::fs::symlinkat(&target[..], &place.beside, &written)
            .map_err(|error| Fault::Target(error.into()))?;
        attributes::give_by_name(&place.beside, &written, stat)?;
        self.put(place, &written, name)?;
        Ok(What::Link(target))
    }

    fn node(&self, found: Found<'_>, kind: FileType, may_stay: bool) -> Result<What, Fault> {
        let Found { place, name, stat } = found;
        let (what, word) = match kind {
            FileType::Fifo => (What::Bare, "fifo"),
            _ => (What::Device, "device"),
        };
        if may_stay {
            return Ok(what);
        }
        let written = self.name_to_write(place, name)?;
        rustix::fs::mknodat(&place.beside, &written, kind, Mode::RUSR, stat.st_rdev)
            .map_err(|error| Fault::NotKept(word, error.into()))?;
        attributes::give_by_name(&place.beside, &written, stat)?;
        self.put(place, &written, name)?;
        Ok(what)
    }

    /// Under which name something is made: its own, or one that nothing in the source has.
    fn name_to_write(&self, place: &WalkedFolder<OwnedFd>, name: &CStr) -> Result<CString, Fault> {
        match self.order.target {
            Target::Fresh => Ok(name.to_owned()),
            Target::InUse => self.temporary_name(&place.folder),
        }
    }

    fn temporary_name(&self, source: &OwnedFd) -> Result<CString, Fault> {
        loop {
            let number = self.temporary.fetch_add(1, Relaxed);
            let name = CString::new(format!(".interlock-new-{number}")).unwrap_or_default();
            if tree::look(source, &name).map_err(Fault::Source)?.is_none() {
                return Ok(name);
            }
        }
    }

    /// Puts what was written under its name.
    fn put(&self, place: &WalkedFolder<OwnedFd>, written: &CStr, name: &CStr) -> Result<(), Fault> {
        match self.order.target {
            Target::Fresh => Ok(()),
            Target::InUse => put_over(&place.beside, written, name).map_err(Fault::Target),
        }
    }

    /// Removes what a target in use has under this name.
    fn clear(&self, target: &OwnedFd, name: &CStr) -> std::io::Result<()> {
        match self.order.target {
            Target::Fresh => Ok(()),
            Target::InUse => tree::remove(target, name),
        }
    }

    /// Gives files with several names the names that came later.
    fn link(&self, faults: &mut Faults) {
        let shared = std::mem::take(&mut self.seen().shared);
        for Shared { entry, others } in shared.into_values() {
            let Some(mut entry) = entry else { continue };
            for other in others {
                let linked = self
                    .cancellation
                    .check()
                    .and_then(|()| self.link_one(&entry.paths[0], &other).map_err(Fault::Target));
                if let Err(fault) = linked
                    && faults.note(&other, fault)
                {
                    return;
                }
                self.order.counters.add_file();
                self.seen().poured.files += 1;
                entry.paths.push(other);
            }
            self.seen().poured.note(entry);
        }
    }

    fn link_one(&self, first: &[u8], other: &[u8]) -> std::io::Result<()> {
        let (folder, name) = self.target.folder_of(first)?;
        let (other_folder, other_name) = self.target.folder_of(other)?;
        let link = |name: &CStr, as_name: &CStr| {
            rustix::fs::linkat(&folder, name, &other_folder, as_name, AtFlags::empty())
        };
        let (name, other_name) = (CString::new(name)?, CString::new(other_name)?);
        if self.order.target == Target::Fresh {
            return Ok(link(&name, &other_name)?);
        }
        let inode = |stat: Option<Stat>| stat.map(|stat| (stat.st_dev, stat.st_ino));
        let theirs = inode(tree::look(&other_folder, &other_name)?);
        if theirs.is_some() && theirs == inode(tree::look(&folder, &name)?) {
            return Ok(());
        }
        loop {
            let number = self.temporary.fetch_add(1, Relaxed);
            let temporary = CString::new(format!(".interlock-link-{number}"))?;
            match link(&name, &temporary) {
                Ok(()) => return put_over(&other_folder, &temporary, &other_name),
                // The source has something of that name, too.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Gives every folder its attributes. A longer path is never around a shorter one.
    fn finish_folders(&self, faults: &mut Faults) {
        let mut folders = std::mem::take(&mut self.seen().folders);
        folders.sort_unstable_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        for (path, stat) in folders {
            let finished =
                self.cancellation.check().and_then(|()| self.finish_folder(&path, &stat));
            if let Err(fault) = finished
                && faults.note(&path, fault)
            {
                return;
            }
        }
    }

    fn finish_folder(&self, path: &[u8], stat: &Stat) -> Result<(), Fault> {
        let source = self.source.folder(path).map_err(Fault::Source)?;
        let target = self.target.folder(path).map_err(Fault::Target)?;
        let after = rustix::fs::fstat(&source).map_err(|error| Fault::Source(error.into()))?;
        if !tree::is_unchanged(stat, &after) {
            return Err(Fault::Changed);
        }
        if self.order.target == Target::InUse {
            attributes::remove_others(&target, &source)?;
        }
        attributes::give(&target, &source, stat)
    }
}

/// Renames over whatever has the name; a folder goes first, for a rename would refuse it.
fn put_over(folder: &OwnedFd, written: &CStr, name: &CStr) -> std::io::Result<()> {
    match rustix::fs::renameat(folder, written, folder, name) {
        Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
            tree::remove(folder, name)?;
            Ok(rustix::fs::renameat(folder, written, folder, name)?)
        }
        renamed => Ok(renamed?),
    }
}

/// Removes from the target what the source does not have.
fn remove_others(target: &OwnedFd, names: &[Named]) -> std::io::Result<()> {
    let wanted: HashSet<&CStr> = names.iter().map(|named| named.name.as_c_str()).collect();
    for found in tree::list(target)? {
        if !wanted.contains(found.name.as_c_str()) {
            tree::remove(target, &found.name)?;
        }
    }
    Ok(())
}
