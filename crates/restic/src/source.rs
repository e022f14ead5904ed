//! What is backed up: a folder, walked so that nothing in it is passed over in silence.
//!
//! rustic_core skips what its source calls an error and goes on. This source therefore counts: every
//! name that it gave out, and every walk, open and read that failed. A snapshot is only written when
//! the one is all there and the other is zero.
//!
//! Everything is opened from the folder that it was found in and never through a link, so that whoever
//! writes to the volume meanwhile cannot make us read what is outside of it.

use crate::bridge::Bridge;
use crate::failure::{Failure, Reason};
use crate::modes;
use crate::watch::Watch;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use rustic_core::repofile::{Metadata, Node, NodeType};
use rustic_core::{
    ErrorKind, ReadSource, ReadSourceEntry, ReadSourceOpen, RusticError, RusticResult,
};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many paths a failure names.
const NAMED: usize = 10;

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A snapshot: a clone that nobody writes to. All of it is read every time, since a clone has new
    /// numbers and times of change for old content. For the same reason they are not written down:
    /// folders that did not change are then the same in every snapshot, and stored once.
    Snapshot,
    /// The volume itself. A file whose size, time of writing, time of change and number are those of
    /// the last snapshot is not read again.
    Volume,
}

/// What was given out, and what went wrong.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Everything that has a name, but for the folders.
    pub(crate) files: AtomicU64,
    pub(crate) folders: AtomicU64,
    unreadable: AtomicU64,
    named: Mutex<Vec<String>>,
}

impl Tally {
    fn count(&self, path: &Path, error: impl std::fmt::Display) -> Box<RusticError> {
        self.unreadable.fetch_add(1, Ordering::SeqCst);
        let sentence = format!("{}: {error}", path.display());
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() < NAMED {
            named.push(sentence.clone());
        }
        RusticError::new(ErrorKind::InputOutput, sentence)
    }

    /// Nothing, if everything was read.
    pub(crate) fn all_was_read(&self) -> Result<(), Failure> {
        let count = self.unreadable.load(Ordering::SeqCst);
        if count == 0 {
            return Ok(());
        }
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = count.saturating_sub(named.len() as u64);
        let rest = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        Err(Failure::new(
            Reason::SourceUnreadable,
            format!(
                "no snapshot was made, since {count} could not be read: {}{rest}",
                named.join("; ")
            ),
        ))
    }
}

/// A folder to be backed up.
pub(crate) struct Source {
    root: Arc<OwnedFd>,
    sort: Sort,
    pub(crate) tally: Arc<Tally>,
    watch: Watch,
    bridge: Arc<Bridge>,
}

impl Source {
    /// Opens the folder.
    pub(crate) fn open(folder: &Path) -> Result<OwnedFd, Failure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| {
            let reason = match error {
                Errno::NOENT | Errno::NOTDIR => Reason::SourceMissing,
                _ => Reason::SourceUnreadable,
            };
            Failure::new(reason, format!("{}: {error}", folder.display()))
        })
    }

    pub(crate) fn new(root: OwnedFd, sort: Sort, watch: &Watch, bridge: &Arc<Bridge>) -> Self {
        Source {
            root: Arc::new(root),
            sort,
            tally: Arc::default(),
            watch: watch.clone(),
            bridge: bridge.clone(),
        }
    }
}

/// Whether there is anything in a folder but folders. What cannot be read counts as something: it is
/// not this question that says so.
pub(crate) fn has_something(root: &OwnedFd) -> bool {
    let mut folders = match again(root) {
        Ok(root) => vec![(root, true)],
        Err(_) => return true,
    };
    while let Some((folder, is_root)) = folders.pop() {
        let Ok(names) = names_in(&folder, is_root) else { return true };
        for name in names {
            match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    match open_folder(&folder, &name) {
                        Ok(inner) => folders.push((inner, false)),
                        Err(_) => return true,
                    }
                }
                _ => return true,
            }
        }
    }
    false
}

fn again(folder: &OwnedFd) -> Result<OwnedFd, Errno> {
    openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn open_folder(parent: &OwnedFd, name: &CString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name.as_c_str(), flags, Mode::empty())
}

/// The names in a folder in the order that restic wants. What a filesystem check left at the top is not
/// the tenant's.
fn names_in(folder: &OwnedFd, is_root: bool) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_skipped = matches!(name.to_bytes(), b"." | b"..")
            || (is_root && name.to_bytes() == b"lost+found");
        if !is_skipped {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

impl ReadSource for Source {
    type Open = Opening;
    type Iter = Walk;

    fn size(&self) -> RusticResult<Option<u64>> {
        Ok(None)
    }

    fn entries(&self) -> Walk {
        let mut walk = Walk {
            levels: Vec::new(),
            sort: self.sort,
            tally: self.tally.clone(),
            watch: self.watch.clone(),
            bridge: self.bridge.clone(),
            has_attributes: Arc::new(AtomicBool::new(true)),
            links: BTreeMap::new(),
            unread_root: None,
        };
        match again(&self.root).and_then(|root| Ok((names_in(&root, true)?, root))) {
            Ok((names, root)) => walk.levels.push(Level {
                names: names.into_iter(),
                folder: Arc::new(root),
                path: PathBuf::new(),
            }),
            Err(error) => walk.unread_root = Some(self.tally.count(Path::new("."), error)),
        }
        walk
    }
}

/// One folder on the way.
struct Level {
    names: std::vec::IntoIter<CString>,
    folder: Arc<OwnedFd>,
    path: PathBuf,
}

/// Goes through a folder and all in it.
pub(crate) struct Walk {
    levels: Vec<Level>,
    sort: Sort,
    tally: Arc<Tally>,
    watch: Watch,
    bridge: Arc<Bridge>,
    /// Whether the filesystem has extended attributes, as far as is known.
    has_attributes: Arc<AtomicBool>,
    /// Numbers for files with several names, in the order in which they are met.
    links: BTreeMap<(u64, u64), u64>,
    unread_root: Option<Box<RusticError>>,
}

impl Iterator for Walk {
    type Item = RusticResult<ReadSourceEntry<Opening>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.unread_root.take() {
            return Some(Err(error));
        }
        if self.watch.is_cancelled() || self.bridge.is_broken() {
            return None;
        }
        let (name, folder, path) = loop {
            let level = self.levels.last_mut()?;
            match level.names.next() {
                Some(name) => {
                    let path = level.path.join(OsStr::from_bytes(name.to_bytes()));
                    break (name, level.folder.clone(), path);
                }
                None => {
                    self.levels.pop();
                }
            }
        };
        Some(self.entry(&name, folder, &path).map_err(|error| self.tally.count(&path, error)))
    }
}

impl Walk {
    fn entry(
        &mut self,
        name: &CString,
        folder: Arc<OwnedFd>,
        path: &Path,
    ) -> Result<ReadSourceEntry<Opening>, Trouble> {
        let stat = statat(&*folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let node_type = match kind {
            FileType::RegularFile => NodeType::File,
            FileType::Directory => NodeType::Dir,
            FileType::Symlink => {
                let target = readlinkat(&*folder, name, Vec::new())?;
                NodeType::from_link(Path::new(OsStr::from_bytes(target.to_bytes())))
            }
            FileType::BlockDevice => NodeType::Dev { device: stat.st_rdev },
            FileType::CharacterDevice => NodeType::Chardev { device: stat.st_rdev },
            FileType::Fifo => NodeType::Fifo,
            FileType::Socket => NodeType::Socket,
            FileType::Unknown => return Err(Trouble::Said("of no known sort")),
        };
        let mut metadata = self.metadata(&stat, kind);
        if self.has_attributes.load(Ordering::Relaxed) {
            let attributes = self.attributes(&folder, name)?;
            if !attributes.is_empty() {
                let unstorable = Trouble::Said("has extended attributes that cannot be stored");
                metadata.extended_attributes = stored(attributes).ok_or(unstorable)?;
            }
        }
        let os_name = OsStr::from_bytes(name.to_bytes());
        let node = Node::new_node(os_name, node_type, metadata);
        let mut open = None;
        match kind {
            FileType::Directory => {
                let inner = open_folder(&folder, name)?;
                let names = names_in(&inner, false)?.into_iter();
                self.levels.push(Level { names, folder: Arc::new(inner), path: path.to_owned() });
                self.tally.folders.fetch_add(1, Ordering::SeqCst);
            }
            _ => {
                self.tally.files.fetch_add(1, Ordering::SeqCst);
                self.watch.add_file();
            }
        }
        if kind == FileType::RegularFile {
            open = Some(Opening {
                folder,
                name: name.clone(),
                path: path.to_owned(),
                is_what: (stat.st_dev, stat.st_ino),
                size: node.meta.size,
                tally: self.tally.clone(),
                watch: self.watch.clone(),
            });
        }
        Ok(ReadSourceEntry { path: path.to_owned(), node, open })
    }

    fn metadata(&mut self, stat: &Stat, kind: FileType) -> Metadata {
        let is_folder = kind == FileType::Directory;
        let has_several_names = stat.st_nlink > 1 && !is_folder;
        let mtime = time(stat.st_mtime, stat.st_mtime_nsec);
        let (inode, ctime) = match self.sort {
            Sort::Volume => (stat.st_ino, time(stat.st_ctime, stat.st_ctime_nsec)),
            Sort::Snapshot if has_several_names => {
                let next = self.links.len() as u64 + 1;
                let number = *self.links.entry((stat.st_dev, stat.st_ino)).or_insert(next);
                (number, Timestamp::UNIX_EPOCH)
            }
            // No real file ever has this time of change: nobody takes it for an unchanged one.
            Sort::Snapshot => (0, Timestamp::UNIX_EPOCH),
        };
        let device_id = match self.sort {
            Sort::Volume => stat.st_dev,
            Sort::Snapshot => 1,
        };
        Metadata {
            mode: Some(modes::to_restic(stat.st_mode)),
            mtime: Some(mtime),
            atime: Some(mtime),
            ctime: Some(ctime),
            uid: Some(stat.st_uid),
            gid: Some(stat.st_gid),
            user: None,
            group: None,
            inode,
            device_id: if has_several_names { device_id } else { 0 },
            size: if kind == FileType::RegularFile {
                stat.st_size.max(0).cast_unsigned()
            } else {
                0
            },
            links: if is_folder { 0 } else { stat.st_nlink },
            extended_attributes: Vec::new(),
        }
    }

    /// The extended attributes of whatever has this name, links not followed.
    fn attributes(
        &self,
        folder: &OwnedFd,
        name: &CString,
    ) -> Result<Vec<(String, Vec<u8>)>, Trouble> {
        let mut path = format!("/proc/self/fd/{}/", folder.as_raw_fd()).into_bytes();
        path.extend_from_slice(name.to_bytes());
        let list = match grown(|buffer| rustix::fs::llistxattr(&*path, buffer)) {
            Err(Errno::NOTSUP) => {
                self.has_attributes.store(false, Ordering::Relaxed);
                return Ok(Vec::new());
            }
            list => list?,
        };
        let mut attributes = Vec::new();
        for attribute in list.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let value = match grown(|buffer| rustix::fs::lgetxattr(&*path, attribute, buffer)) {
                // Removed since.
                Err(Errno::NODATA) => continue,
                value => value?,
            };
            let name = std::str::from_utf8(attribute)
                .map_err(|_| Trouble::Said("an extended attribute has a name that is no UTF-8"))?;
            attributes.push((name.to_owned(), value));
        }
        Ok(attributes)
    }
}

/// Reads into a buffer that is large enough.
fn grown(read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 256];
    loop {
        match read(&mut buffer) {
            Err(Errno::RANGE) if buffer.len() < 1 << 20 => buffer = vec![0; buffer.len() * 4],
            length => {
                buffer.truncate(length?);
                return Ok(buffer);
            }
        }
    }
}

/// rustic_core's attributes, whose type has no name outside of it, by way of the form in which they are
/// stored.
fn stored<T: DeserializeOwned>(attributes: Vec<(String, Vec<u8>)>) -> Option<T> {
    let attributes = attributes
        .into_iter()
        .map(|(name, value)| json!({ "name": name, "value": BASE64.encode(value) }));
    serde_json::from_value(attributes.collect()).ok()
}

fn time(seconds: i64, nanoseconds: u64) -> Timestamp {
    let nanoseconds = i32::try_from(nanoseconds).unwrap_or_default();
    let limit = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::new(seconds, nanoseconds).unwrap_or(limit)
}

/// Why something could not be given out.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    System(#[from] Errno),
    #[error("{0}")]
    Said(&'static str),
}

/// A file, to be opened when its turn comes.
pub(crate) struct Opening {
    folder: Arc<OwnedFd>,
    name: CString,
    path: PathBuf,
    is_what: (u64, u64),
    size: u64,
    tally: Arc<Tally>,
    watch: Watch,
}

impl Opening {
    fn file(&self) -> Result<File, Trouble> {
        // Without waiting: it may have become a pipe since.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let quiet = openat(&*self.folder, &self.name, flags | OFlags::NOATIME, Mode::empty());
        let file = match quiet {
            // Only the owner may read without a trace.
            Err(Errno::PERM) => openat(&*self.folder, &self.name, flags, Mode::empty())?,
            file => file?,
        };
        let stat = fstat(&file)?;
        if (stat.st_dev, stat.st_ino) != self.is_what {
            return Err(Trouble::Said("was replaced while it was read"));
        }
        Ok(File::from(file))
    }
}

impl ReadSourceOpen for Opening {
    type Reader = Reading;

    fn open(self) -> RusticResult<Reading> {
        let file = self.file().map_err(|error| self.tally.count(&self.path, error))?;
        Ok(Reading { file, left: self.size, path: self.path, tally: self.tally, watch: self.watch })
    }
}

/// A file that is read, as far as it went when it was found.
pub(crate) struct Reading {
    file: File,
    left: u64,
    path: PathBuf,
    tally: Arc<Tally>,
    watch: Watch,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.watch.is_cancelled() {
            return Err(std::io::Error::other("cancelled"));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let outcome = match self.file.read(&mut buffer[..most]) {
            Ok(0) => Err(std::io::Error::other("became shorter while it was read")),
            outcome => outcome,
        };
        match outcome {
            Ok(read) => {
                self.left -= read as u64;
                Ok(read)
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.tally.count(&self.path, &error);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn source(folder: &Path) -> Source {
        let keys = BTreeMap::from([
            ("RESTIC_REPOSITORY".to_owned(), "/nowhere".to_owned()),
            ("RESTIC_PASSWORD".to_owned(), "x".to_owned()),
        ]);
        let store = crate::store::open(&Settings::from_secret(&keys, None).unwrap()).unwrap();
        let bridge = Arc::new(Bridge::new(store, String::new(), None));
        let root = Source::open(folder).unwrap();
        Source::new(root, Sort::Snapshot, &Watch::default(), &bridge)
    }

    fn read(opening: Opening) -> RusticResult<Vec<u8>> {
        let mut content = Vec::new();
        let read = opening.open()?.read_to_end(&mut content);
        read.map_err(|error| RusticError::new(ErrorKind::InputOutput, error.to_string()))?;
        Ok(content)
    }

    #[test]
    fn files_that_vanish_or_are_replaced_or_shortened_are_counted_and_named() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", "d"] {
            std::fs::write(folder.path().join(name), b"content").unwrap();
        }
        let source = source(folder.path());
        let found: Vec<_> = source.entries().map(|entry| entry.unwrap().open.unwrap()).collect();
        source.tally.all_was_read().unwrap();
        std::fs::remove_file(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("new"), b"another").unwrap();
        std::fs::rename(folder.path().join("new"), folder.path().join("b")).unwrap();
        std::fs::File::options()
            .write(true)
            .open(folder.path().join("c"))
            .and_then(|file| file.set_len(3))
            .unwrap();
        let outcomes: Vec<bool> = found.into_iter().map(|opening| read(opening).is_ok()).collect();
        assert_eq!(outcomes, [false, false, false, true]);
        let failure = source.tally.all_was_read().unwrap_err();
        assert_eq!(failure.reason, Reason::SourceUnreadable);
        for word in ["3 could not be read", "a: ", "b: was replaced", "c: became shorter"] {
            assert!(failure.message.contains(word), "{failure}");
        }
    }

    #[test]
    fn a_folder_that_vanishes_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("x/y")).unwrap();
        let source = source(folder.path());
        let mut entries = source.entries();
        entries.next().unwrap().unwrap();
        std::fs::remove_dir(folder.path().join("x/y")).unwrap();
        assert!(entries.next().unwrap().is_err());
        assert!(source.tally.all_was_read().unwrap_err().message.contains("x/y"));
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), b"content").unwrap();
        let source = source(folder.path());
        let opening = source.entries().next().unwrap().unwrap().open.unwrap();
        std::fs::remove_file(folder.path().join("file")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("file")).unwrap();
        assert!(read(opening).is_err());
        assert!(source.tally.all_was_read().is_err());
    }
}
