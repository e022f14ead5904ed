//! What is said about a request beside its answer: warnings for the client, annotations for the audit log.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is said about one request.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    warnings: Mutex<Vec<String>>,
    /// By the name of the object: a write that is judged again replaces what was said before.
    admission: Mutex<BTreeMap<String, Admitted>>,
}

/// What admission says about the write of one object.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// For the client.
    pub(crate) warnings: Vec<String>,
    /// For the audit log.
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Notes {
    /// Tells the client something beside the answer.
    pub(crate) fn warn(&self, text: String) {
        lock(&self.warnings).push(text);
    }

    /// Takes in what admission says about the write of an object.
    pub(crate) fn admitted(&self, name: &str, said: Admitted) {
        let mut all = lock(&self.admission);
        if said.warnings.is_empty() && said.annotations.is_empty() {
            all.remove(name);
        } else {
            all.insert(name.to_owned(), said);
        }
    }

    /// All warnings for the client, each once.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let own = lock(&self.warnings);
        let admission = lock(&self.admission);
        for text in own.iter().chain(admission.values().flat_map(|said| &said.warnings)) {
            if !all.contains(text) {
                all.push(text.clone());
            }
        }
        all
    }

    /// The annotations of the audit line. The first of a name stands.
    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (name, text) in lock(&self.admission).values().flat_map(|said| &said.annotations) {
            all.entry(name.clone()).or_insert_with(|| text.clone());
        }
        all
    }
}

// A thread that panicked while it held one of these locks left whole texts behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
