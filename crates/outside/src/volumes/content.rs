//! The bytes of one file: shared where the file system can, else copied, with their holes.

use super::fault::Fault;
use super::progress::{Cancellation, Counters};
use super::segments;
use rustix::fd::OwnedFd;
use rustix::fs::{SeekFrom, Stat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
const HUGE_HOLES_BYTES: u64 = 256 * 1024 * 1024;
/// What one call copies, so that progress shows and nobody waits long for an end.
const ONE_CALL_BYTES: u64 = 64 * 1024 * 1024;

/// What goes along with the work on one file.
pub(super) struct Course<'a> {
    counters: &'a Counters,
    cancellation: &'a Cancellation,
    buffer: &'a mut [u8],
}

impl<'a> Course<'a> {
    pub(super) fn new(
        counters: &'a Counters,
        cancellation: &'a Cancellation,
        buffer: &'a mut [u8],
    ) -> Course<'a> {
        Course { counters, cancellation, buffer }
    }
}

/// A file, as it was when it was opened, and another that its bytes are brought into.
#[derive(Clone, Copy)]
pub(super) struct Files<'a> {
    pub(super) source: &'a OwnedFd,
    pub(super) stat: &'a Stat,
    pub(super) target: &'a OwnedFd,
}

/// What this pair of file systems was found to be able to do.
#[derive(Debug)]
pub(super) struct Abilities {
    shares_blocks: AtomicBool,
    copies_in_kernel: AtomicBool,
}

impl Default for Abilities {
    fn default() -> Abilities {
        Abilities { shares_blocks: AtomicBool::new(true), copies_in_kernel: AtomicBool::new(true) }
    }
}

impl Abilities {
    /// Whether the one can share all blocks of the other.
    pub(super) fn can_share(source: &OwnedFd, target: &OwnedFd) -> bool {
        rustix::fs::ioctl_ficlone(target, source).is_ok()
    }
}

/// What became of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// They are shared with the source, and nobody has read them.
    Shared,
    /// They were copied by the kernel, and nobody has read them.
    Unread,
    /// They were read, and have this hash.
    Hashed([u8; 32]),
}

/// Brings the bytes of one file into another, which is new and empty. They are hashed on the way
/// if that is wanted, unless both files can share them, or most of them are in holes.
pub(super) fn copy(
    files: Files<'_>,
    abilities: &Abilities,
    wants_hash: bool,
    mut course: Course<'_>,
) -> Result<Copied, Fault> {
    let Files { source, stat, target } = files;
    let size = stat.st_size as u64;
    if size == 0 {
        return Ok(Copied::Hashed(*blake3::hash(b"").as_bytes()));
    }
    if abilities.shares_blocks.load(Relaxed) {
        match rustix::fs::ioctl_ficlone(target, source) {
            Ok(()) => {
                course.counters.add_bytes(size);
                return Ok(Copied::Shared);
            }
            Err(Errno::NOSPC) => return Err(Fault::Target(Errno::NOSPC.into())),
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::XDEV | Errno::NOSYS) => {
                abilities.shares_blocks.store(false, Relaxed);
            }
            // Of this file only: a swap file, say.
            Err(_) => {}
        }
    }
    let copied = if wants_hash && !has_huge_holes(stat) {
        let Course { counters, cancellation, buffer } = course;
        Copied::Hashed(segments::hash(size, buffer, |range, hasher, buffer| {
            let mut course = Course { counters, cancellation, buffer };
            for_data(source, stat, range, |hole_bytes, data| {
                counters.add_bytes(hole_bytes);
                hash_zeros(hasher, hole_bytes);
                copy_reading(files, data, Some(&mut *hasher), &mut course)
            })
        })?)
    } else {
        for_data(source, stat, 0..size, |hole_bytes, data| {
            course.counters.add_bytes(hole_bytes);
            copy_range(files, data, abilities, &mut course)
        })?;
        Copied::Unread
    };
    // A hole at the end is made by the length alone.
    if is_sparse(stat) {
        rustix::fs::ftruncate(target, size).map_err(|error| Fault::Target(error.into()))?;
    }
    Ok(copied)
}

/// The hash of a file. Holes are not read.
pub(super) fn hash(file: &OwnedFd, stat: &Stat, course: Course<'_>) -> Result<[u8; 32], Fault> {
    let Course { counters, cancellation, buffer } = course;
    let hash = segments::hash(stat.st_size as u64, buffer, |range, hasher, buffer| {
        let mut course = Course { counters, cancellation, buffer };
        for_data(file, stat, range, |hole_bytes, data| {
            counters.add_bytes(hole_bytes);
            hash_zeros(hasher, hole_bytes);
            let mut at = data.start;
            while at < data.end {
                let bytes = read_some(file, at..data.end, &mut course)?;
                hasher.update(bytes);
                at += bytes.len() as u64;
            }
            Ok(())
        })
    })?;
    let after = rustix::fs::fstat(file).map_err(|error| Fault::Source(error.into()))?;
    if !super::tree::is_unchanged(stat, &after) {
        return Err(Fault::Changed);
    }
    Ok(hash)
}

/// What a link points to.
pub(super) fn target_of(folder: &OwnedFd, name: &CStr) -> Result<Vec<u8>, Fault> {
    let target = rustix::fs::readlinkat(folder, name, Vec::new());
    Ok(target.map_err(|error| Fault::Source(error.into()))?.into_bytes())
}

fn is_sparse(stat: &Stat) -> bool {
    (stat.st_blocks as u64).saturating_mul(512) < stat.st_size as u64
}

/// Whether it would take long to hash zeros that nobody has written. Then those who are kept from
/// writing meanwhile do not wait for it: it is read later.
fn has_huge_holes(stat: &Stat) -> bool {
    (stat.st_size as u64).saturating_sub((stat.st_blocks as u64) * 512) > HUGE_HOLES_BYTES
}

/// Comes by all bytes of a range in order: each time, how many in a hole, then those that are
/// there, which are none if the range ends with a hole.
fn for_data(
    file: &OwnedFd,
    stat: &Stat,
    range: Range<u64>,
    mut each: impl FnMut(u64, Range<u64>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut position = range.start;
    while position < range.end {
        let data = next_data(file, stat, position..range.end)?;
        let (hole_bytes, end) = (data.start - position, data.end);
        each(hole_bytes, data)?;
        position = end;
    }
    Ok(())
}

/// The next bytes of the range that are there; none, at its end, if only a hole is left.
fn next_data(file: &OwnedFd, stat: &Stat, range: Range<u64>) -> Result<Range<u64>, Fault> {
    let end = range.end;
    if !is_sparse(stat) {
        return Ok(range);
    }
    // Several threads may seek at once: each takes what it is reported, and reads by position.
    let start = match rustix::fs::seek(file, SeekFrom::Data(range.start)) {
        Ok(start) if start >= end => return Ok(end..end),
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(end..end),
        // This file system tells nothing about holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(range),
        Err(error) => return Err(Fault::Source(error.into())),
    };
    match rustix::fs::seek(file, SeekFrom::Hole(start)) {
        Ok(hole) if hole <= start => Err(Fault::Changed),
        Ok(hole) => Ok(start..hole.min(end)),
        Err(Errno::NXIO) => Err(Fault::Changed),
        Err(error) => Err(Fault::Source(error.into())),
    }
}

fn hash_zeros(hasher: &mut blake3::Hasher, mut count: u64) {
    while count > 0 {
        let some = count.min(ZEROS.len() as u64);
        hasher.update(&ZEROS[..some as usize]);
        count -= some;
    }
}

/// Reads the next of these bytes into the buffer.
fn read_some<'b>(
    file: &OwnedFd,
    range: Range<u64>,
    course: &'b mut Course<'_>,
) -> Result<&'b [u8], Fault> {
    course.cancellation.check()?;
    let wanted = (range.end - range.start).min(course.buffer.len() as u64) as usize;
    loop {
        match rustix::io::pread(file, &mut course.buffer[..wanted], range.start) {
            // It ends before its length: somebody cut it.
            Ok(0) => return Err(Fault::Changed),
            Ok(count) => {
                course.counters.add_bytes(count as u64);
                return Ok(&course.buffer[..count]);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(Fault::Source(error.into())),
        }
    }
}

fn copy_reading(
    files: Files<'_>,
    range: Range<u64>,
    mut hasher: Option<&mut blake3::Hasher>,
    course: &mut Course<'_>,
) -> Result<(), Fault> {
    let mut at = range.start;
    while at < range.end {
        let bytes = read_some(files.source, at..range.end, course)?;
        if let Some(hasher) = &mut hasher {
            hasher.update(bytes);
        }
        write_all(files.target, bytes, at)?;
        at += bytes.len() as u64;
    }
    Ok(())
}

fn write_all(target: &OwnedFd, mut bytes: &[u8], mut at: u64) -> Result<(), Fault> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(target, bytes, at) {
            Ok(0) => return Err(Fault::Target(Errno::IO.into())),
            Ok(count) => {
                bytes = &bytes[count..];
                at += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(Fault::Target(error.into())),
        }
    }
    Ok(())
}

/// Copies without looking, in the kernel where it can.
fn copy_range(
    files: Files<'_>,
    range: Range<u64>,
    abilities: &Abilities,
    course: &mut Course<'_>,
) -> Result<(), Fault> {
    let Files { source, target, .. } = files;
    let (mut from, mut to) = (range.start, range.start);
    while from < range.end && abilities.copies_in_kernel.load(Relaxed) {
        course.cancellation.check()?;
        let some = (range.end - from).min(ONE_CALL_BYTES) as usize;
        match rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), some) {
            Ok(0) => return Err(Fault::Changed),
            Ok(count) => course.counters.add_bytes(count as u64),
            Err(Errno::INTR) => {}
            Err(error @ (Errno::NOSPC | Errno::DQUOT)) => return Err(Fault::Target(error.into())),
            // Which of the two files it is about is not said; reading and writing says it.
            Err(_) => abilities.copies_in_kernel.store(false, Relaxed),
        }
    }
    copy_reading(files, from..range.end, None, course)
}
