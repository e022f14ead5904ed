//! Compiled schemas, shared by all clusters that have the same CRD.

use crate::schema::{Schema, custom};
use crate::status::{FieldError, Path};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// The schemas in use, by what they were compiled from. They are not kept alive here: with the last
/// cluster that uses a schema it is dropped, unless it is one of the last.
static SHARED: LazyLock<Mutex<HashMap<Key, Weak<Schema>>>> = LazyLock::new(Mutex::default);

/// So many of those that were compiled last are kept all the same: what a write has checked is needed again at once, by
/// those who serve it.
const KEPT: usize = 8;

/// Those that were compiled last, oldest first.
static LAST: LazyLock<Mutex<VecDeque<Arc<Schema>>>> = LazyLock::new(Mutex::default);

/// 128 bits of the schema's text, and which ObjectMeta was put in. Two schemas with one key would
/// be taken for each other, so the hash is wide, and its seed is made at start so that nobody can
/// look for such a pair beforehand.
type Key = (u64, u64, usize);

static SEEDS: LazyLock<[u64; 2]> = LazyLock::new(|| {
    let seed = || std::hash::BuildHasher::build_hasher(&std::hash::RandomState::new()).finish();
    [seed(), seed()]
});

fn key(text: &str, metadata: Option<&Schema>) -> Key {
    let half = |seed: u64| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        text.hash(&mut hasher);
        hasher.finish()
    };
    (half(SEEDS[0]), half(SEEDS[1]), metadata.map_or(0, |schema| schema.nodes.len()))
}

/// Compiles a schema, or finds it compiled.
pub(super) fn compile(
    openapi: &Value,
    metadata: Option<&Schema>,
    path: &Path<'_>,
) -> Result<Arc<Schema>, Vec<FieldError>> {
    let key = key(&openapi.to_string(), metadata);
    let known =
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).get(&key).and_then(Weak::upgrade);
    if let Some(known) = known {
        return Ok(known);
    }
    let schema = Arc::new(custom::compile(openapi, metadata, path)?);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.len().is_power_of_two() {
        shared.retain(|_, schema| schema.strong_count() > 0);
    }
    // Two may have compiled the same at once: the first to come is kept.
    if let Some(known) = shared.get(&key).and_then(Weak::upgrade) {
        return Ok(known);
    }
    shared.insert(key, Arc::downgrade(&schema));
    drop(shared);
    keep(&schema);
    Ok(schema)
}

fn keep(schema: &Arc<Schema>) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    last.push_back(Arc::clone(schema));
    let gone = if last.len() > KEPT { last.pop_front() } else { None };
    // A large schema takes a while to go: nobody waits for it.
    drop(last);
    drop(gone);
}
