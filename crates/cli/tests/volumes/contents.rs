//! What is in a folder, to be compared with what is in another one.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Everything in a folder: by its path, its mode, its time and what is in it.
pub(crate) type Contents = BTreeMap<PathBuf, (u32, (i64, i64), Vec<u8>)>;

/// Everything in a folder but the folder itself.
pub(crate) fn contents(folder: &Path) -> Contents {
    let mut found = Contents::new();
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        let entries = std::fs::read_dir(&next).unwrap_or_else(|why| panic!("{next:?}: {why}"));
        for path in entries.map(|entry| entry.expect("readable").path()) {
            let metadata = path.symlink_metadata().expect("it is there");
            let bytes = if metadata.is_dir() {
                left.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                std::fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).expect("readable")
            };
            let time = (metadata.mtime(), metadata.mtime_nsec());
            let name = path.strip_prefix(folder).expect("it is below").to_owned();
            found.insert(name, (metadata.mode(), time, bytes));
        }
    }
    found
}

/// Two folders have the same in them, byte for byte.
pub(crate) fn same(one: &Contents, other: &Contents) {
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    let differ: Vec<&PathBuf> = names.filter(|name| one.get(*name) != other.get(*name)).collect();
    assert!(differ.is_empty(), "these differ: {differ:?}");
}

/// Bytes that look random, and are the same for one seed.
pub(crate) fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(next).take(length / 8 + 1).flatten().collect();
    bytes.truncate(length);
    bytes
}

/// Files, folders and links, all of them different for each seed.
pub(crate) fn fill(folder: &Path, seed: u64) {
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).expect("the folder is ours");
    };
    std::fs::create_dir_all(folder.join("folder/deep")).expect("the folder is ours");
    write("seed", seed.to_string().as_bytes());
    write("empty", b"");
    write("large", &bytes(seed, 700_001));
    write("folder/deep/ünïcödé 文字", &bytes(seed + 1, 5000));
    write("folder/runs", b"#!/bin/sh\n");
    let mode = std::fs::Permissions::from_mode(0o750);
    std::fs::set_permissions(folder.join("folder/runs"), mode).expect("it is ours");
    let link = folder.join("link");
    if !link.is_symlink() {
        symlink("folder/deep", link).expect("the folder is ours");
    }
}
