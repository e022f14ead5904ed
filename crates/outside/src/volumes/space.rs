//! Whether there is enough space, before anything is written.

use super::content::Abilities;
use super::error::{Failure, Reason};
use super::fault::{Fault, Purpose};
use super::progress::Cancellation;
use super::tree::{self, Named, Root};
use super::walk::{Visitor, WalkedFolder, walk};
use interlock_quantity::readable;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use std::collections::HashSet;
use std::ffi::CStr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What each file takes besides its bytes, roughly.
const BYTES_A_FILE: u64 = 512;

/// How much there is in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    /// Everything with a name.
    pub(super) names: u64,
    /// The bytes of the files, with their holes.
    pub(super) bytes: u64,
    /// Without.
    pub(super) stored_bytes: u64,
}

/// Counts what is in a tree, without reading any of it.
pub(super) fn measure(
    folder: &Path,
    purpose: &Purpose,
    cancellation: &Cancellation,
) -> Result<Amount, Failure> {
    let root = Root::open(folder).map_err(|error| purpose.unopened(&error))?;
    let measuring = Measuring::default();
    walk(&root, cancellation, &measuring).into_result(purpose)?;
    let counted = measuring.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(counted.amount)
}

#[derive(Default)]
struct Measuring(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    amount: Amount,
    shared: HashSet<(u64, u64)>,
}

impl Visitor for Measuring {
    type Beside = ();

    fn enter(&self, _: &[u8], _: &OwnedFd, _: &[Named]) -> Result<(), Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).amount.names += 1;
        Ok(())
    }

    fn visit(&self, place: &WalkedFolder<()>, name: &CStr, _: &mut [u8]) -> Result<(), Fault> {
        // One that is gone meanwhile takes no space.
        let Some(stat) = tree::look(&place.folder, name).map_err(Fault::Source)? else {
            return Ok(());
        };
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = stat.st_nlink <= 1 || counted.shared.insert((stat.st_dev, stat.st_ino));
        counted.amount.names += 1;
        if is_first && tree::kind(&stat) == FileType::RegularFile {
            let (size, on_disk) = (stat.st_size as u64, (stat.st_blocks as u64) * 512);
            counted.amount.bytes += size;
            counted.amount.stored_bytes += size.min(on_disk);
        }
        Ok(())
    }
}

/// Fails if the file system of this folder has no space for so much and a twentieth more.
pub(super) fn check(folder: &Path, amount: Amount, purpose: &Purpose) -> Result<(), Failure> {
    let bytes = if shares_blocks(folder) { 0 } else { amount.stored_bytes };
    let needs = bytes.saturating_add(amount.names.saturating_mul(BYTES_A_FILE));
    let needs = needs.saturating_add(needs / 20);
    let full = |message: String| {
        let (what, path) = (purpose.what, purpose.path.display());
        let message = format!("cannot {what} {path}: {message}: make room there");
        Err(Failure::new(Reason::TargetFull, message))
    };
    let (free, free_names) =
        free(folder).map_err(|error| purpose.failed("ask for space", &error))?;
    if needs > free {
        return full(format!("it needs {} and {} are free", readable(needs), readable(free)));
    }
    if free_names.is_some_and(|free| amount.names > free) {
        let free = free_names.unwrap_or_default();
        return full(format!("it needs {} files and {free} more can be made", amount.names));
    }
    Ok(())
}

/// What a failure for want of space says about needs and what is left.
pub(super) fn explain(failure: Failure, folder: &Path, amount: Amount) -> Failure {
    if failure.reason != Reason::TargetFull {
        return failure;
    }
    let free = free(folder).map_or_else(|_| "?".to_owned(), |(free, _)| readable(free));
    let needs = readable(amount.stored_bytes);
    let message = format!("{}: it needs {needs} and {free} are free", failure.message);
    Failure { message, ..failure }
}

/// Bytes and, where they are limited, files that can still be made by us.
fn free(folder: &Path) -> std::io::Result<(u64, Option<u64>)> {
    let found = rustix::fs::statvfs(folder)?;
    let names = (found.f_files > 0).then_some(found.f_favail);
    Ok((found.f_bavail.saturating_mul(found.f_frsize), names))
}

/// Whether a file here can share the blocks of another: tried, with two that nobody sees.
fn shares_blocks(folder: &Path) -> bool {
    let make = || {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)
    };
    let (Ok(source), Ok(target)) = (make(), make()) else { return false };
    rustix::io::write(&source, b"interlock").is_ok() && Abilities::can_share(&source, &target)
}
