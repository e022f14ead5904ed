//! Where the packed states are kept: exact, in the order they were found, a few bytes over their width.
//!
//! The store is split into shards by hash. A shard is a list of states in the order of their discovery
//! and an open-addressing table of places in that list. No parent is kept: levels are contiguous, so a
//! trace is found by expanding the level before, and only a violation pays for it.

use crate::word::Word;

/// Shards of the store: more than the cores of any machine this is meant for.
pub(crate) const SHARDS: usize = 32;
const CHUNK_BITS: u32 = 12;
const CHUNK: usize = 1 << CHUNK_BITS;
const PLACE_BITS: u32 = 27;
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;
/// The most states that one shard can number.
pub(crate) const SHARD_MOST: usize = PLACE_MASK as usize - 1;
const FIRST_SLOTS: usize = 256;

/// Which shard keeps states of this hash.
#[inline]
pub(crate) fn shard_of(hash: u64) -> usize {
    hash as usize % SHARDS
}

/// One part of the store.
#[derive(Debug)]
pub(crate) struct Shard<W> {
    chunks: Vec<Vec<W>>,
    len: usize,
    /// 0 is empty; else the place plus one, under a five-bit tag of the hash that spares most
    /// comparisons with other states.
    slots: Vec<u32>,
    /// Fingerprints of all states, when the states themselves are not kept; 0 is empty.
    prints: Option<Vec<u64>>,
    /// `levels[n]` is how many states there were before level n + 1 began.
    levels: Vec<u32>,
}

impl<W: Word> Shard<W> {
    pub(crate) fn new() -> Self {
        let slots = vec![0; FIRST_SLOTS];
        Shard { chunks: vec![Vec::new()], len: 0, slots, prints: None, levels: vec![0] }
    }

    /// A shard that knows its states by 64-bit fingerprints and keeps only those yet to be expanded.
    pub(crate) fn forgetful() -> Self {
        Shard { slots: Vec::new(), prints: Some(vec![0; FIRST_SLOTS]), ..Shard::new() }
    }

    /// Drops the states of all levels before this one, which nobody will ask for again.
    pub(crate) fn forget_before(&mut self, level: u32) {
        if self.prints.is_none() {
            return;
        }
        let whole = self.level(level).start as usize >> CHUNK_BITS;
        self.chunks[..whole].iter_mut().for_each(|chunk| *chunk = Vec::new());
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_full(&self, more: usize) -> bool {
        self.len + more > SHARD_MOST
    }

    /// Bytes held, and those the next growth of the table will hold.
    pub(crate) fn bytes(&self) -> usize {
        let states: usize = self.chunks.iter().map(|chunk| chunk.capacity() * W::BYTES).sum();
        let prints = self.prints.as_ref().map_or(0, |prints| prints.len() * 8);
        states + prints + self.slots.len() * 4 + self.levels.len() * 4
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> W {
        self.chunks[(index >> CHUNK_BITS) as usize][index as usize & (CHUNK - 1)]
    }

    #[inline]
    fn peek(&self, index: u32) -> Option<&W> {
        self.chunks[(index >> CHUNK_BITS) as usize].get(index as usize & (CHUNK - 1))
    }

    /// The states of one level, counted from 1.
    pub(crate) fn level(&self, level: u32) -> std::ops::Range<u32> {
        let level = level as usize;
        let end = self.levels.get(level).copied().unwrap_or(self.len as u32);
        self.levels.get(level - 1).copied().unwrap_or(end)..end
    }

    /// Ends the present level.
    pub(crate) fn end_level(&mut self) {
        self.levels.push(self.len as u32);
    }

    pub(crate) fn levels(&self) -> &[u32] {
        &self.levels
    }

    pub(crate) fn set_levels(&mut self, levels: Vec<u32>) {
        self.levels = levels;
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        (((hash >> 32) * self.slots.len() as u64) >> 32) as usize
    }

    /// The slot after this one.
    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    #[inline]
    fn tag(hash: u64) -> u32 {
        (hash as u32 >> 5) << PLACE_BITS
    }

    /// Where a state is, if it was seen.
    pub(crate) fn find(&self, word: &W) -> Option<u32> {
        let hash = word.mix();
        let (tag, mut at) = (Self::tag(hash), self.home(hash));
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            let index = (slot & PLACE_MASK) - 1;
            if slot & !PLACE_MASK == tag && self.get(index) == *word {
                return Some(index);
            }
            at = self.after(at);
        }
    }

    /// Adds those of `words` that are new, in order.
    pub(crate) fn insert_all(&mut self, words: &[W]) {
        self.insert_noting(words, |_| {});
    }

    /// The same, and tells for each word in turn where it is.
    ///
    /// The looks at the table, and at the state that is probably the same, are done for a whole group
    /// before any is judged, so that the processor waits for many cache misses at once instead of one
    /// after the other.
    #[inline]
    pub(crate) fn insert_noting(&mut self, words: &[W], mut note: impl FnMut(u32)) {
        const GROUP: usize = 32;
        if self.prints.is_some() {
            words.iter().for_each(|word| self.insert_print(word));
            return;
        }
        let mut hashes = [0_u64; GROUP];
        let mut firsts = [0_u32; GROUP];
        let mut places = [0_usize; GROUP];
        for group in words.chunks(GROUP) {
            self.reserve(GROUP);
            for (i, word) in group.iter().enumerate() {
                hashes[i] = word.mix();
                places[i] = self.home(hashes[i]);
                firsts[i] = self.slots[places[i]];
            }
            for i in 0..group.len() {
                let tag = Self::tag(hashes[i]);
                while firsts[i] != 0 && firsts[i] & !PLACE_MASK != tag {
                    places[i] = self.after(places[i]);
                    firsts[i] = self.slots[places[i]];
                }
            }
            // Without a branch that could be guessed wrongly, or the processor would not run ahead.
            let mut same = 0_u32;
            for (i, word) in group.iter().enumerate() {
                let index = (firsts[i] & PLACE_MASK).saturating_sub(1);
                let is_same = (firsts[i] != 0) & (self.peek(index) == Some(word));
                same |= u32::from(is_same) << i;
            }
            for (i, word) in group.iter().enumerate() {
                note(if same & (1 << i) == 0 {
                    self.insert_from(word, hashes[i], places[i])
                } else {
                    (firsts[i] & PLACE_MASK) - 1
                });
            }
        }
    }

    /// Adds a state unless one with the same fingerprint is known.
    fn insert_print(&mut self, word: &W) {
        let Some(prints) = &mut self.prints else { return };
        if (self.len + 1) * 5 > prints.len() * 4 {
            let mut larger = vec![0; prints.len() + prints.len() / 2];
            for print in prints.iter().filter(|print| **print != 0) {
                put_print(&mut larger, *print);
            }
            *prints = larger;
        }
        if put_print(prints, word.mix().max(1)) {
            self.push(*word);
        }
    }

    /// Looks from this slot on, and adds the state if it is not there.
    fn insert_from(&mut self, word: &W, hash: u64, mut at: usize) -> u32 {
        let tag = Self::tag(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let index = (slot & PLACE_MASK).wrapping_sub(1);
            if slot & !PLACE_MASK == tag && self.get(index) == *word {
                return index;
            }
            at = self.after(at);
        }
        self.slots[at] = tag | (self.len as u32 + 1);
        self.push(*word);
        self.len as u32 - 1
    }

    /// Adds a state that is known to be new, as from a checkpoint; [`Shard::rebuild`] must follow.
    pub(crate) fn push(&mut self, word: W) {
        let last = self.chunks.len() - 1;
        if self.chunks[last].len() == CHUNK {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let last = self.chunks.len() - 1;
        self.chunks[last].push(word);
        self.len += 1;
    }

    /// The table is kept at most four fifths full, and grows by half: states far outnumber the slots
    /// that doubling would waste.
    fn reserve(&mut self, more: usize) {
        let slots = self.slots.len();
        if (self.len + more) * 5 > slots * 4 {
            self.rebuild(slots + slots / 2);
        }
    }

    /// Makes the table anew from the states.
    pub(crate) fn rebuild(&mut self, slots: usize) {
        let slots = slots.max(FIRST_SLOTS).max(self.len * 5 / 4 + 1);
        self.slots = Vec::new();
        self.slots = vec![0; slots];
        for index in 0..self.len as u32 {
            let hash = self.get(index).mix();
            let mut at = self.home(hash);
            while self.slots[at] != 0 {
                at = self.after(at);
            }
            self.slots[at] = Self::tag(hash) | (index + 1);
        }
    }
}

/// Puts a fingerprint into a table that has room; false if it was there.
fn put_print(prints: &mut [u64], print: u64) -> bool {
    let mut at = (((print >> 32) * prints.len() as u64) >> 32) as usize;
    loop {
        match prints[at] {
            0 => {
                prints[at] = print;
                return true;
            }
            known if known == print => return false,
            _ => at = if at + 1 == prints.len() { 0 } else { at + 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::HashSet;

    #[test]
    fn a_shard_keeps_each_state_once_and_in_the_order_it_came() {
        let mut rng = Rng::new(7);
        let mut shard = Shard::<u64>::new();
        let mut known = HashSet::new();
        let mut order = Vec::new();
        for _ in 0..300 {
            let batch: Vec<u64> = (0..1_000).map(|_| rng.bits() % 200_000).collect();
            order.extend(batch.iter().copied().filter(|word| known.insert(*word)));
            shard.insert_all(&batch);
        }
        assert_eq!(shard.len(), order.len());
        for (index, word) in order.iter().enumerate() {
            assert_eq!(shard.get(index as u32), *word);
            assert_eq!(shard.find(word), Some(index as u32));
        }
        assert_eq!(shard.find(&300_000), None);
    }

    #[test]
    fn a_forgetful_shard_counts_the_same_and_keeps_only_what_is_to_come() {
        let mut rng = Rng::new(9);
        let (mut exact, mut forgetful) = (Shard::<u128>::new(), Shard::<u128>::forgetful());
        for _ in 0..40 {
            let batch: Vec<u128> =
                (0..5_000).map(|_| u128::from(rng.bits() % 90_000) << 40).collect();
            exact.insert_all(&batch);
            forgetful.insert_all(&batch);
            exact.end_level();
            forgetful.end_level();
        }
        assert_eq!(exact.len(), forgetful.len());
        let before = forgetful.bytes();
        forgetful.forget_before(39);
        assert!(forgetful.bytes() < before && forgetful.bytes() < exact.bytes());
        for index in forgetful.level(39) {
            assert_eq!(forgetful.get(index), exact.get(index));
        }
    }

    #[test]
    fn a_level_is_the_range_between_two_ends() {
        let mut shard = Shard::<u64>::new();
        shard.insert_all(&[1, 2]);
        shard.end_level();
        shard.insert_all(&[2, 3, 4, 5]);
        assert_eq!(shard.level(1), 0..2);
        assert_eq!(shard.level(2), 2..5);
        assert_eq!(shard.level(3), 5..5);
    }
}
