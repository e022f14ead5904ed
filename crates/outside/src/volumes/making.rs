//! What a volume or a snapshot is made of.

use super::error::{Error, Failure, Reason};
use super::fault::Purpose;
use super::jobs::Job;
use super::local::Inner;
use super::pour::{self, Order, Target};
use super::poured::Poured;
use super::record::{Origin, Record};
use super::shelf::{OnDisk, Shelf};
use super::space::{self, Amount};
use super::{FromSnapshot, LONGEST_FREEZE, NewVolume};
use interlock_quantity::readable;
use std::path::Path;

/// What goes along with the work on one volume or snapshot.
pub(super) struct Making<'a> {
    pub(super) handle: &'a str,
    pub(super) partial: &'a Path,
    pub(super) job: &'a Job,
}

impl Making<'_> {
    pub(super) fn purpose(&self) -> Purpose {
        Purpose { what: "make", path: self.partial.to_owned() }
    }

    fn order<'a>(&'a self, source: &'a Path, purpose: &'a Purpose) -> Order<'a> {
        Order {
            source,
            into: self.partial,
            target: Target::Fresh,
            wants_hash: true,
            purpose,
            counters: &self.job.counters,
        }
    }
}

impl Inner {
    /// Makes a volume: empty, or as a clone of a snapshot.
    pub(super) fn fill(&self, volume: &NewVolume, making: &Making<'_>) -> Result<Record, Failure> {
        let Some(from) = &volume.from else {
            let record = Record::empty(making.handle, Origin::Nothing);
            return Ok(of_volume(record, volume));
        };
        let snapshot = self.whole_snapshot(&self.snapshots, from)?;
        fits(&snapshot, volume.capacity_bytes)?;
        let source = self.snapshots.folder().join(&from.handle);
        let purpose = Purpose { what: "make a volume from", path: source.clone() };
        let amount = Amount {
            names: snapshot.files,
            bytes: snapshot.bytes,
            stored_bytes: snapshot.stored_bytes,
        };
        space::check(making.partial, amount, &purpose)?;
        making.job.counters.expect_bytes(snapshot.bytes);
        let order = making.order(&source, &purpose);
        let poured = pour::pour(&order, &making.job.cancellation);
        let mut poured =
            poured.map_err(|failure| space::explain(failure, making.partial, amount))?;
        if !poured.shares_blocks {
            poured.read_rest(&order, &making.job.cancellation)?;
        }
        let record = record_of(making.handle, Origin::Snapshot(from.handle.clone()), &poured);
        // What shares the blocks of the snapshot was not read, and is what the snapshot is.
        let digest = poured.digest().unwrap_or_else(|| snapshot.digest.clone());
        if digest != snapshot.digest {
            return Err(damaged(&purpose, &snapshot.digest, &digest));
        }
        Ok(of_volume(Record { digest, ..record }, volume))
    }

    /// Takes a snapshot of a volume, while nobody writes to it.
    pub(super) fn snapshot(&self, volume: &str, making: &Making<'_>) -> Result<Record, Failure> {
        let source = self.volumes.folder().join(volume);
        let purpose = Purpose { what: "take a snapshot of", path: source.clone() };
        let owner = whole(&self.volumes, volume)?.owner;
        let cancellation = &making.job.cancellation;
        let amount = space::measure(&source, &purpose, cancellation)?;
        space::check(making.partial, amount, &purpose)?;
        making.job.counters.expect_bytes(amount.bytes);
        let order = making.order(&source, &purpose);
        let full = |failure| space::explain(failure, making.partial, amount);
        let mut poured = match &self.writers {
            None => pour::pour(&order, cancellation).map_err(full)?,
            Some(writers) => {
                let still = writers.hold_still(&source, LONGEST_FREEZE)?;
                let cancellation = cancellation.until(still.deadline());
                let poured = pour::pour(&order, &cancellation).map_err(full)?;
                still.let_go()?;
                poured
            }
        };
        // Whoever writes goes on meanwhile: what is read now is the snapshot.
        poured.read_rest(&order, cancellation)?;
        let record = record_of(making.handle, Origin::Volume(volume.to_owned()), &poured);
        let unread = || Failure::new(Reason::SnapshotFailed, "something was not read");
        Ok(Record { digest: poured.digest().ok_or_else(unread)?, owner, ..record })
    }

    /// The record of a snapshot that is whole and has the digest that it must have.
    pub(super) fn whole_snapshot(
        &self,
        snapshots: &Shelf,
        from: &FromSnapshot,
    ) -> Result<Record, Failure> {
        let snapshot = whole(snapshots, &from.handle)?;
        if !from.digest.is_empty() && from.digest != snapshot.digest {
            let path = snapshots.folder().join(&from.handle);
            let purpose = Purpose { what: "use", path };
            return Err(damaged(&purpose, &from.digest, &snapshot.digest));
        }
        Ok(snapshot)
    }
}

fn of_volume(record: Record, volume: &NewVolume) -> Record {
    let capacity_bytes = Some(volume.capacity_bytes);
    Record { owner: Some(volume.owner.clone()), capacity_bytes, ..record }
}

fn record_of(handle: &str, made_from: Origin, poured: &Poured) -> Record {
    let Poured { files, bytes, stored_bytes, .. } = *poured;
    Record { files, bytes, stored_bytes, ..Record::empty(handle, made_from) }
}

/// The record of something that must be whole.
pub(super) fn whole(shelf: &Shelf, handle: &str) -> Result<Record, Failure> {
    match shelf.look(handle) {
        Ok(OnDisk::Whole(record)) => Ok(*record),
        Ok(OnDisk::Nothing) => Err(missing(shelf, handle)),
        Ok(OnDisk::Unknown(message)) => Err(Failure::new(Reason::SourceUnreadable, message)),
        Err(error) => Err(Failure::new(Reason::SourceUnreadable, told(&error))),
    }
}

/// What is said of something that is not there, or is somebody else's.
pub(super) fn missing(shelf: &Shelf, handle: &str) -> Failure {
    let (what, folder) = (shelf.what(), shelf.folder().display());
    Failure::new(Reason::SourceMissing, format!("there is no {what} {handle} in {folder}"))
}

/// Fails if a volume is too small for a snapshot.
pub(super) fn fits(snapshot: &Record, capacity_bytes: u64) -> Result<(), Failure> {
    if snapshot.stored_bytes <= capacity_bytes {
        return Ok(());
    }
    let message = format!(
        "snapshot {} needs {} and the volume may hold {}: ask for a larger volume",
        snapshot.handle,
        readable(snapshot.stored_bytes),
        readable(capacity_bytes)
    );
    Err(Failure::new(Reason::SizeMismatch, message))
}

pub(super) fn damaged(purpose: &Purpose, wanted: &str, found: &str) -> Failure {
    let (what, path) = (purpose.what, purpose.path.display());
    let message =
        format!("cannot {what} {path}: its digest is {found} where {wanted} was expected");
    Failure::new(Reason::DigestMismatch, message)
}

/// An error with its cause.
fn told(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
