//! Compiled patterns: made when they are needed, and forgotten when all of them together take too much memory.
//!
//! A small schema can name a thousand patterns, each of which takes kilobytes once it is compiled. What is forgotten is
//! compiled again when it is needed.

use regex::{Error, Regex, RegexBuilder};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// All compiled patterns together take no more, about.
const MOST_BYTES: usize = 64 << 20;
/// What a compiled pattern takes beside its program, about: room for states that are made as texts are read.
const CACHE_BYTES: usize = 32 << 10;
/// The size that is tried first. Each further try may be four times as large.
const FIRST_TRY_BYTES: usize = 16 << 10;

/// The place of one compiled pattern.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Option<Arc<Regex>>>);

impl Slot {
    /// The pattern, if it is still there.
    pub(super) fn get(&self) -> Option<Arc<Regex>> {
        locked(&self.0).clone()
    }

    /// Puts a pattern of this size there, and forgets the oldest ones if there are too many.
    pub(super) fn put(self: &Arc<Self>, regex: &Arc<Regex>, bytes: usize) {
        *locked(&self.0) = Some(Arc::clone(regex));
        locked(&KEPT).add(Arc::downgrade(self), bytes, MOST_BYTES);
    }
}

/// Those that are kept, oldest first.
static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Kept {
    slots: VecDeque<(Weak<Slot>, usize)>,
    bytes: usize,
}

impl Kept {
    fn add(&mut self, slot: Weak<Slot>, bytes: usize, most_bytes: usize) {
        self.slots.push_back((slot, bytes));
        self.bytes += bytes;
        while self.bytes > most_bytes
            && self.slots.len() > 1
            && let Some((oldest, bytes)) = self.slots.pop_front()
        {
            self.bytes -= bytes;
            if let Some(slot) = oldest.upgrade() {
                *locked(&slot.0) = None;
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compiles a pattern of our dialect, and says what it takes, about. The program takes at most so much.
pub(super) fn compile(source: &str, max_bytes: usize) -> Result<(Arc<Regex>, usize), Error> {
    let mut most = FIRST_TRY_BYTES.min(max_bytes);
    loop {
        let built = RegexBuilder::new(source)
            .size_limit(most)
            .dfa_size_limit(256 * 1024)
            .nest_limit(100)
            .build();
        match built {
            Ok(regex) => return Ok((Arc::new(regex), most + CACHE_BYTES)),
            Err(Error::CompiledTooBig(_)) if most < max_bytes => most = (most * 4).min(max_bytes),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_when_all_take_too_much() {
        let mut kept = Kept::default();
        let slots: Vec<Arc<Slot>> = (0..10).map(|_| Arc::default()).collect();
        for slot in &slots {
            let (regex, _) = compile("^a+$", 1 << 20).expect("it compiles");
            *locked(&slot.0) = Some(regex);
            kept.add(Arc::downgrade(slot), 10, 35);
        }
        let held: Vec<bool> = slots.iter().map(|slot| slot.get().is_some()).collect();
        assert_eq!(held, [false, false, false, false, false, false, false, true, true, true]);
        assert_eq!((kept.bytes, kept.slots.len()), (30, 3));
        // Those of schemas that are gone leave nothing behind.
        drop(slots);
        kept.add(Weak::new(), 35, 35);
        assert_eq!((kept.bytes, kept.slots.len()), (35, 1));
    }

    #[test]
    fn a_large_pattern_counts_for_more_and_one_that_is_too_large_is_refused() {
        let (_, small) = compile("^[a-z]+$", 1 << 20).expect("it compiles");
        let (_, large) = compile("^(a{50}){50}$", 1 << 20).expect("it compiles");
        assert!(large > small, "{large} and {small}");
        assert!(compile("^((a{50}){50}){50}$", 1 << 20).is_err());
    }
}
