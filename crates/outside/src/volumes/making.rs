//! What a volume or an image is made of.

use super::error::{Error, Failure, Reason};
use super::fault::Purpose;
use super::jobs::Job;
use super::local::Inner;
use super::pour::{self, Order, Target};
use super::poured::Poured;
use super::record::{Origin, Record};
use super::shelf::{OnDisk, Shelf};
use super::space::{self, Amount};
use super::{FromImage, LONGEST_FREEZE, NewVolume};
use interlock_quantity::readable;
use std::path::Path;

/// What goes along with the work on one volume or image.
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
    /// Makes a volume: empty, or as a clone of an image.
    pub(super) fn fill(&self, volume: &NewVolume, making: &Making<'_>) -> Result<Record, Failure> {
        let Some(from) = &volume.from else {
            let record = Record::empty(making.handle, Origin::Nothing);
            return Ok(of_volume(record, volume));
        };
        let image = self.whole_image(&self.images, from)?;
        fits(&image, volume.capacity_bytes)?;
        let source = self.images.folder().join(&from.handle);
        let purpose = Purpose { what: "make a volume from", path: source.clone() };
        let amount =
            Amount { names: image.files, bytes: image.bytes, stored_bytes: image.stored_bytes };
        space::check(making.partial, amount, &purpose)?;
        making.job.counters.expect_bytes(image.bytes);
        let order = making.order(&source, &purpose);
        let poured = pour::pour(&order, &making.job.patience);
        let mut poured =
            poured.map_err(|failure| space::explain(failure, making.partial, amount))?;
        if !poured.shares_blocks {
            poured.read_rest(&order, &making.job.patience)?;
        }
        let record = record_of(making.handle, Origin::Image(from.handle.clone()), &poured);
        // What shares the blocks of the image was not read, and is what the image is.
        let digest = poured.digest().unwrap_or_else(|| image.digest.clone());
        if digest != image.digest {
            return Err(damaged(&purpose, &image.digest, &digest));
        }
        Ok(of_volume(Record { digest, ..record }, volume))
    }

    /// Takes an image of a volume, while nobody writes to it.
    pub(super) fn image(&self, volume: &str, making: &Making<'_>) -> Result<Record, Failure> {
        let source = self.volumes.folder().join(volume);
        let purpose = Purpose { what: "take an image of", path: source.clone() };
        let owner = whole(&self.volumes, volume)?.owner;
        let patience = &making.job.patience;
        let amount = space::measure(&source, &purpose, patience)?;
        space::check(making.partial, amount, &purpose)?;
        making.job.counters.expect_bytes(amount.bytes);
        let order = making.order(&source, &purpose);
        let full = |failure| space::explain(failure, making.partial, amount);
        let mut poured = match &self.writers {
            None => pour::pour(&order, patience).map_err(full)?,
            Some(writers) => {
                let still = writers.hold_still(&source, LONGEST_FREEZE)?;
                let patience = patience.until(still.deadline());
                let poured = pour::pour(&order, &patience).map_err(full)?;
                still.let_go()?;
                poured
            }
        };
        // Whoever writes goes on meanwhile: what is read now is the image.
        poured.read_rest(&order, patience)?;
        let record = record_of(making.handle, Origin::Volume(volume.to_owned()), &poured);
        let unread = || Failure::new(Reason::SnapshotFailed, "something was not read");
        Ok(Record { digest: poured.digest().ok_or_else(unread)?, owner, ..record })
    }

    /// The record of an image that is whole and has the digest that it must have.
    pub(super) fn whole_image(&self, images: &Shelf, from: &FromImage) -> Result<Record, Failure> {
        let image = whole(images, &from.handle)?;
        if !from.digest.is_empty() && from.digest != image.digest {
            let path = images.folder().join(&from.handle);
            let purpose = Purpose { what: "use", path };
            return Err(damaged(&purpose, &from.digest, &image.digest));
        }
        Ok(image)
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

/// Fails if a volume is too small for an image.
pub(super) fn fits(image: &Record, capacity_bytes: u64) -> Result<(), Failure> {
    if image.stored_bytes <= capacity_bytes {
        return Ok(());
    }
    let message = format!(
        "image {} needs {} and the volume may hold {}: ask for a larger volume",
        image.handle,
        readable(image.stored_bytes),
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
