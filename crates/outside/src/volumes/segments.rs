//! One hash of one large file, computed by several threads.
//!
//! BLAKE3 hashes a tree: subtrees of a power of two in length can be hashed on their own, and are
//! then merged pair by pair. What comes out is the same as if one thread had read all of it.

use super::crew;
use super::fault::Fault;
use blake3::Hasher;
use blake3::hazmat::{self, ChainingValue, HasherExt, Mode};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A power of two. Large enough to be worth a thread, small enough that all threads end together.
const SEGMENT_BYTES: u64 = 16 * 1024 * 1024;

/// Feeds a hasher with the bytes of a range, with the help of a buffer.
pub(super) trait Feed:
    Fn(Range<u64>, &mut Hasher, &mut [u8]) -> Result<(), Fault> + Sync
{
}

impl<F: Fn(Range<u64>, &mut Hasher, &mut [u8]) -> Result<(), Fault> + Sync> Feed for F {}

/// The hash of so many bytes, which `feed` brings, in any order and by several threads at once.
pub(super) fn hash(size: u64, buffer: &mut [u8], feed: impl Feed) -> Result<[u8; 32], Fault> {
    if size < 2 * SEGMENT_BYTES {
        let mut hasher = Hasher::new();
        feed(0..size, &mut hasher, buffer)?;
        return Ok(*hasher.finalize().as_bytes());
    }
    let segments = Segments {
        size,
        feed: &feed,
        next: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        done: Mutex::new(vec![[0; 32]; size.div_ceil(SEGMENT_BYTES) as usize]),
    };
    let help = |buffer: &mut [u8]| segments.work(buffer);
    let outcomes = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..crew::threads())
            .filter_map(|_| {
                let builder = std::thread::Builder::new().name("volume".to_owned());
                let length = buffer.len();
                // Without help it takes longer, and that is all.
                builder.spawn_scoped(scope, move || help(&mut vec![0; length])).ok()
            })
            .collect();
        let mut outcomes = vec![help(buffer)];
        let panicked = || Err(Fault::Source(std::io::Error::other("a thread panicked")));
        outcomes
            .extend(helpers.into_iter().map(|helper| helper.join().unwrap_or_else(|_| panicked())));
        outcomes
    });
    outcomes.into_iter().collect::<Result<(), Fault>>()?;
    let done = segments.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (left, right) = halves(&done, size);
    let hash = hazmat::merge_subtrees_root(&merged(left), &merged(right), Mode::Hash);
    Ok(*hash.as_bytes())
}

struct Segments<'a, F> {
    size: u64,
    feed: &'a F,
    next: AtomicU64,
    is_over: AtomicBool,
    done: Mutex<Vec<ChainingValue>>,
}

impl<F: Feed> Segments<'_, F> {
    fn work(&self, buffer: &mut [u8]) -> Result<(), Fault> {
        while !self.is_over.load(Relaxed) {
            let number = self.next.fetch_add(1, Relaxed);
            let start = number.saturating_mul(SEGMENT_BYTES);
            if start >= self.size {
                break;
            }
            let mut hasher = Hasher::new();
            hasher.set_input_offset(start);
            let range = start..self.size.min(start + SEGMENT_BYTES);
            let fed = (self.feed)(range, &mut hasher, buffer);
            // The others need not go on for a file that failed.
            fed.inspect_err(|_| self.is_over.store(true, Relaxed))?;
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            done[number as usize] = hasher.finalize_non_root();
        }
        Ok(())
    }
}

/// Some segments, and how many bytes they are.
struct Part<'a> {
    segments: &'a [ChainingValue],
    size: u64,
}

/// The left half is the largest full tree that leaves something for the right one.
fn halves(segments: &[ChainingValue], size: u64) -> (Part<'_>, Part<'_>) {
    let left_size = hazmat::left_subtree_len(size);
    let (left, right) = segments.split_at((left_size / SEGMENT_BYTES) as usize);
    (Part { segments: left, size: left_size }, Part { segments: right, size: size - left_size })
}

/// Calls itself as often as a size can be halved, no more than forty times.
fn merged(part: Part<'_>) -> ChainingValue {
    let Part { segments, size } = part;
    if let [segment] = segments {
        return *segment;
    }
    let (left, right) = halves(segments, size);
    hazmat::merge_subtrees_non_root(&merged(left), &merged(right), Mode::Hash)
}

#[cfg(test)]
mod tests {
    use super::{SEGMENT_BYTES, hash};
    use crate::volumes::fault::Fault;

    #[test]
    fn many_threads_compute_the_same_hash_as_one() {
        let longest = 7 * SEGMENT_BYTES + 12_345;
        let bytes: Vec<u8> = (0..longest).map(|at| ((at * at) >> 7) as u8).collect();
        let one = SEGMENT_BYTES;
        let around = |size| [size - 1, size, size + 1];
        let sizes = [around(2 * one), around(3 * one), around(4 * one), around(5 * one)];
        for size in sizes.into_iter().flatten().chain([0, 1, 1024, one, 7 * one, longest]) {
            let hashed = hash(size, &mut [], |range, hasher, _| {
                hasher.update(&bytes[range.start as usize..range.end as usize]);
                Ok(())
            });
            let expected = blake3::hash(&bytes[..size as usize]);
            assert_eq!(hashed.unwrap(), *expected.as_bytes(), "{size} bytes");
        }
    }

    #[test]
    fn one_bad_segment_is_enough() {
        let failed = hash(5 * SEGMENT_BYTES, &mut [], |range, hasher, _| match range.start {
            0 => Err(Fault::Changed),
            _ => {
                hasher.update(&vec![0; (range.end - range.start) as usize]);
                Ok(())
            }
        });
        assert!(matches!(failed, Err(Fault::Changed)));
    }
}
