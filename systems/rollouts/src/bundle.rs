//! A bundle of manifests: read from wherever it is, in one canonical form, by one digest, and cut into parts.
//!
//! The canonical form has one object on each line, as JSON with sorted keys, sorted by what the objects are. So two
//! folders with the same objects have the same digest, whatever their files are called and however they are indented.

mod flaw;
mod object;
mod parts;
#[cfg(test)]
mod tests;
mod text;

pub use flaw::{Flaw, FlawReason};
pub use object::ObjectId;
pub use parts::{
    MOST_PARTS, PART_BYTES, PART_KEY, compressed, decompressed, joined, revisions, unpacked,
};
pub use text::File;

use interlock_api::rollouts::MOST_BUNDLE_BYTES;
use object::Manifest;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most objects of a bundle.
pub const MOST_OBJECTS: usize = 10_000;
/// The most flaws that are named at once.
const MOST_FLAWS: usize = 20;

/// A bundle in its canonical form.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    digest: String,
    text: String,
    objects: Vec<(ObjectId, Value)>,
}

impl Bundle {
    /// Reads the objects of files of YAML or JSON. Every flaw says in which file, line and object it is.
    pub fn from_files(files: &[File]) -> Result<Bundle, Vec<Flaw>> {
        let mut found = Vec::new();
        let mut flaws = Vec::new();
        for file in files {
            text::read(file, &mut found, &mut flaws);
        }
        Bundle::of(found, flaws)
    }

    /// Reads objects that are objects already.
    pub fn from_objects(objects: impl IntoIterator<Item = Value>) -> Result<Bundle, Vec<Flaw>> {
        let (mut found, mut flaws) = (Vec::new(), Vec::new());
        for (number, object) in objects.into_iter().enumerate() {
            let at = object::At { file: String::new(), line: number + 1 };
            object::expand(object, &at, &mut found, &mut flaws);
        }
        Bundle::of(found, flaws)
    }

    fn of(found: Vec<Manifest>, mut flaws: Vec<Flaw>) -> Result<Bundle, Vec<Flaw>> {
        let mut by_id: BTreeMap<ObjectId, Manifest> = BTreeMap::new();
        for manifest in found {
            match by_id.get(&manifest.id) {
                Some(first) => flaws.push(manifest.duplicates(first)),
                None => {
                    by_id.insert(manifest.id.clone(), manifest);
                }
            }
        }
        if by_id.is_empty() && flaws.is_empty() {
            flaws.push(Flaw::of_all(FlawReason::Empty, "there is no object in the bundle"));
        }
        if by_id.len() > MOST_OBJECTS {
            let words = format!("the bundle has {} objects, at most {MOST_OBJECTS}", by_id.len());
            flaws.push(Flaw::of_all(FlawReason::TooLarge, words));
        }
        let objects: Vec<(ObjectId, Value)> =
            by_id.into_iter().map(|(id, manifest)| (id, manifest.object)).collect();
        let text = canonical_text(&objects);
        if text.len() > MOST_BUNDLE_BYTES {
            let words = format!(
                "the bundle has {} bytes, at most {MOST_BUNDLE_BYTES}: split it into several clusters' worth \
                 of objects, or leave out what is generated",
                text.len()
            );
            flaws.push(Flaw::of_all(FlawReason::TooLarge, words));
        }
        if !flaws.is_empty() {
            flaws.truncate(MOST_FLAWS);
            return Err(flaws);
        }
        Ok(Bundle { digest: digest_of(text.as_bytes()), text, objects })
    }

    /// The digest of the canonical form: `sha256-` and 64 hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The canonical form.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The objects, by what they are.
    pub fn objects(&self) -> &[(ObjectId, Value)] {
        &self.objects
    }
}

fn canonical_text(objects: &[(ObjectId, Value)]) -> String {
    let mut text = String::new();
    for (_, object) in objects {
        // The map behind a JSON object is sorted, so equal objects have equal text.
        let _ = writeln!(text, "{object}");
    }
    text
}

/// The digest of a canonical form.
pub fn digest_of(text: &[u8]) -> String {
    let mut digest = "sha256-".to_owned();
    for byte in Sha256::digest(text) {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}
