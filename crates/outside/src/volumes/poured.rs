//! What came of pouring: how much it was, and its digest once all of it was read.

use super::content::{self, Course};
use super::crew::Crew;
use super::digest::{Entry, Lines, What};
use super::error::Failure;
use super::fault::{Fault, Faults};
use super::pour::Order;
use super::progress::{Cancellation, Counters};
use super::tree::Root;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use std::sync::{Mutex, PoisonError};

const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// What was poured.
#[derive(Debug, Default)]
pub(super) struct Poured {
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// What the files take on the disk, without their holes.
    pub(super) stored_bytes: u64,
    /// Whether any file shares its blocks with the source.
    pub(super) shares_blocks: bool,
    pub(super) lines: Lines,
    /// Files that nobody has read.
    unread: Vec<Entry>,
}

impl Poured {
    /// The digest of what was poured, if all of it was read.
    pub(super) fn digest(self) -> Option<String> {
        self.unread.is_empty().then(|| self.lines.digest())
    }

    /// Reads what was not read on the way, from where it was poured to.
    pub(super) fn read_rest(
        &mut self,
        order: &Order<'_>,
        cancellation: &Cancellation,
    ) -> Result<(), Failure> {
        if self.unread.is_empty() {
            return Ok(());
        }
        let root = Root::open(order.into).map_err(|error| order.purpose.unopened(&error))?;
        let (lines, faults) = (Mutex::new(&mut self.lines), Mutex::new(Faults::default()));
        let counters = Counters::default();
        let unread = std::mem::take(&mut self.unread);
        Crew::work(unread, |mut entry, crew, buffer| {
            let course = Course::new(&counters, cancellation, buffer);
            match cancellation.check().and_then(|()| hash_at(&root, &entry.paths[0], course)) {
                Ok(hash) => {
                    entry.what = What::File(hash);
                    lines.lock().unwrap_or_else(PoisonError::into_inner).add(&entry);
                }
                Err(fault) => {
                    faults
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .note(&entry.paths[0], fault);
                    crew.stop();
                }
            }
        });
        faults.into_inner().unwrap_or_else(PoisonError::into_inner).into_result(order.purpose)
    }
}

fn hash_at(root: &Root, path: &[u8], course: Course<'_>) -> Result<[u8; 32], Fault> {
    let (folder, name) = root.folder_of(path).map_err(Fault::Source)?;
    let (file, stat) = open(&folder, name)?;
    content::hash(&file, &stat, course)
}

/// Opens a file to be read.
pub(super) fn open(
    folder: &OwnedFd,
    name: impl rustix::path::Arg,
) -> Result<(OwnedFd, Stat), Fault> {
    let failed = |error: Errno| Fault::Source(error.into());
    let file = rustix::fs::openat(folder, name, READ, Mode::empty()).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    Ok((file, stat))
}

impl Poured {
    /// Notes one entry.
    pub(super) fn note(&mut self, entry: Entry) {
        match entry.what {
            What::Unread => self.unread.push(entry),
            What::File(_) | What::Link(_) | What::Device | What::Bare => self.lines.add(&entry),
        }
    }
}
