//! A bundle in parts: as BundleRevisions, and as Secrets beside a request.
//!
//! The canonical form is cut before it is compressed. So each part says the same whichever version of the compressor
//! wrote it, and parts that two writers made fit together.

use super::flaw::{Flaw, FlawReason};
use super::{Bundle, digest_of};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_api::rollouts::BundleRevisionSpec;
use serde_json::Value;

/// How many bytes of the canonical form are in a part: even if nothing can be compressed, and the names are as long as
/// the rest, an object with it is smaller than an API server takes.
pub const PART_BYTES: usize = 512 << 10;
/// The most parts of a bundle.
pub const MOST_PARTS: usize = 16;
/// The key of a part in its Secret.
pub const PART_KEY: &str = "part";
/// How much time is spent for fewer bytes: the compressor's own default.
const LEVEL: i32 = 3;

/// The parts of the canonical form of a bundle, as they are, in order.
fn cut(bundle: &Bundle) -> Vec<&[u8]> {
    bundle.text().as_bytes().chunks(PART_BYTES).collect()
}

/// The parts of a bundle, each compressed: what is packed into Secrets.
pub fn compressed(bundle: &Bundle) -> Vec<Vec<u8>> {
    // Compression into memory fails only for a level that there is not.
    cut(bundle).into_iter().filter_map(|part| zstd::bulk::compress(part, LEVEL).ok()).collect()
}

/// The parts of a bundle as BundleRevisions.
pub fn revisions(bundle: &Bundle) -> Vec<BundleRevisionSpec> {
    let data = compressed(bundle);
    let parts = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut ids: Vec<Vec<String>> = vec![Vec::new(); data.len()];
    let mut begins = 0;
    for ((id, _), line) in bundle.objects().iter().zip(bundle.text().lines()) {
        if let Some(of_part) = ids.get_mut(begins / PART_BYTES) {
            of_part.push(id.to_string());
        }
        begins += line.len() + 1;
    }
    let each = data.into_iter().zip(ids).zip(0..);
    each.map(|((data, ids), part)| BundleRevisionSpec {
        digest: bundle.digest().to_owned(),
        part,
        parts,
        ids,
        data: STANDARD.encode(data),
    })
    .collect()
}

fn broken(message: impl Into<String>) -> Flaw {
    Flaw::of_all(FlawReason::Broken, message)
}

/// One part of the canonical form. It is never more than a part may be, whatever it claims.
pub fn decompressed(data: &[u8]) -> Result<Vec<u8>, Flaw> {
    zstd::bulk::decompress(data, PART_BYTES)
        .map_err(|error| broken(format!("a part cannot be decompressed: {error}")))
}

/// The bundle of these parts, in order, if it has this digest.
pub fn unpacked(digest: &str, parts: &[Vec<u8>]) -> Result<Bundle, Flaw> {
    if parts.len() > MOST_PARTS {
        return Err(broken(format!("the bundle has {} parts, at most {MOST_PARTS}", parts.len())));
    }
    let mut text = Vec::new();
    for part in parts {
        text.extend(decompressed(part)?);
    }
    let found = digest_of(&text);
    if found != digest {
        return Err(broken(format!(
            "the parts have the digest {found}, and {digest} was asked for"
        )));
    }
    let text = String::from_utf8(text).map_err(|_| broken("the canonical form is no text"))?;
    let objects: Result<Vec<Value>, serde_json::Error> =
        text.lines().map(serde_json::from_str).collect();
    let objects = objects.map_err(|error| broken(format!("a line is no object: {error}")))?;
    let bundle = Bundle::from_objects(objects).map_err(|mut flaws| match flaws.is_empty() {
        true => broken("the bundle cannot be read"),
        false => flaws.swap_remove(0),
    })?;
    // Somebody may have made a digest of a text that is in no canonical form.
    match bundle.digest() == digest {
        true => Ok(bundle),
        false => Err(broken(format!("{digest} is the digest of a text in another form"))),
    }
}

/// The bundle of BundleRevisions, in whatever order, if they are all of its parts and have its digest.
pub fn joined(digest: &str, parts: &[BundleRevisionSpec]) -> Result<Bundle, Flaw> {
    let mut sorted: Vec<&BundleRevisionSpec> = parts.iter().collect();
    sorted.sort_by_key(|part| part.part);
    let count = sorted.first().map_or(0, |first| first.parts as usize);
    if count == 0 || count != sorted.len() {
        let words = format!("{} of {count} parts of bundle {digest} are there", sorted.len());
        return Err(broken(words));
    }
    let mut data = Vec::new();
    for (number, part) in sorted.into_iter().enumerate() {
        if part.digest != digest || part.part as usize != number || part.parts as usize != count {
            return Err(broken(format!("part {number} of bundle {digest} is of another bundle")));
        }
        let decoded = STANDARD.decode(&part.data);
        data.push(decoded.map_err(|error| broken(format!("part {number} is no base64: {error}")))?);
    }
    unpacked(digest, &data)
}
