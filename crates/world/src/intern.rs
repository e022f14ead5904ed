//! Each value once, by number; and what was computed once, remembered. Both are shared by all
//! threads of an exploration.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A hasher for small numbers: the keys here are a few of them, and come from nobody who could
/// choose them badly.
#[derive(Default, Clone, Copy)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    fn finish(&self) -> u64 {
        (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A thread that panicked left nothing half done: every value is inserted whole.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Each value once, by number.
pub(crate) struct Interner<T>(RwLock<Interned<T>>);

struct Interned<T> {
    numbers: HashMap<Arc<T>, u32>,
    values: Vec<Arc<T>>,
}

impl<T: Hash + Eq> Default for Interner<T> {
    fn default() -> Self {
        Interner(RwLock::new(Interned { numbers: HashMap::new(), values: Vec::new() }))
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// The number of a value.
    pub(crate) fn put(&self, value: T) -> u32 {
        if let Some(number) = self.find(&value) {
            return number;
        }
        let mut interned = write(&self.0);
        if let Some(number) = interned.numbers.get(&value) {
            return *number;
        }
        let number = interned.values.len() as u32;
        let value = Arc::new(value);
        interned.values.push(Arc::clone(&value));
        interned.numbers.insert(value, number);
        number
    }

    /// The number of a value that was put here before.
    pub(crate) fn find(&self, value: &T) -> Option<u32> {
        read(&self.0).numbers.get(value).copied()
    }

    /// The value behind a number.
    pub(crate) fn get(&self, number: u32) -> Arc<T> {
        Arc::clone(&read(&self.0).values[number as usize])
    }

    pub(crate) fn len(&self) -> usize {
        read(&self.0).values.len()
    }
}

const SHARDS: usize = 16;

/// What was computed once for a key.
pub(crate) struct Memo<K, V>([Shard<K, V>; SHARDS]);

/// Two threads that ask at once rarely ask the same shard, and must not wait for each other's cache line.
#[repr(align(128))]
struct Shard<K, V>(RwLock<NumberMap<K, V>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Memo(std::array::from_fn(|_| Shard(RwLock::new(NumberMap::default()))))
    }
}

impl<K: Hash + Eq, V: Clone> Memo<K, V> {
    fn shard(&self, key: &K) -> &RwLock<NumberMap<K, V>> {
        let mut hasher = NumberHasher::default();
        key.hash(&mut hasher);
        &self.0[(hasher.finish() >> 57) as usize % SHARDS].0
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        read(self.shard(key)).get(key).cloned()
    }

    /// What is remembered, or what is computed now. No lock is held while it is computed; two
    /// threads may compute the same value, and the first one stays.
    pub(crate) fn get_or(&self, key: K, compute: impl FnOnce() -> V) -> V {
        if let Some(known) = self.get(&key) {
            return known;
        }
        let value = compute();
        write(self.shard(&key)).entry(key).or_insert(value).clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|shard| read(&shard.0).len()).sum()
    }
}
