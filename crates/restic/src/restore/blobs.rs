//! The contents of a repository, each checked against its name.

use crate::failure::{Failure, Reason};
use crate::packs::Packs;
use crate::repository::Repository;
use crate::seal::Seal;
use rustic_core::repofile::Tree;
use rustic_core::{BlobId, DataId, IndexedFullStatus, PackedId, TreeId};
use sha2::{Digest, Sha256};
use std::cell::RefCell;

/// No blob is larger; one that says so is broken or means harm.
const LARGEST: usize = 256 << 20;

/// The contents of a repository.
pub(super) struct Blobs {
    index: rustic_core::Repository<IndexedFullStatus>,
    packs: Packs,
    seal: Seal,
    location: String,
}

thread_local! {
    /// Setting one up takes longer than unpacking a small blob.
    static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        const { RefCell::new(None) };
}

impl Blobs {
    /// Reads the index.
    pub(super) fn new(repository: Repository) -> Result<Self, Failure> {
        let bridge = repository.bridge;
        let index = repository.inner.to_indexed().map_err(|error| bridge.failure(&error))?;
        Ok(Blobs {
            index,
            packs: Packs::new(repository.store),
            seal: repository.seal,
            location: repository.location,
        })
    }

    /// How long a piece of a file is.
    pub(super) fn length(&self, id: &DataId) -> Result<u64, Failure> {
        let entry = self.index.get_index_entry(id).map_err(|_| self.missing(*id))?;
        Ok(u64::from(entry.data_length()))
    }

    /// A piece of a file.
    pub(super) fn data(&self, id: &DataId) -> Result<Vec<u8>, Failure> {
        self.blob(*id)
    }

    /// A folder.
    pub(super) fn tree(&self, id: TreeId) -> Result<Tree, Failure> {
        let text = self.blob(id)?;
        serde_json::from_slice(&text).map_err(|_| self.damaged(id, "is no folder"))
    }

    /// Whether there is nothing in a folder but folders.
    pub(super) fn is_empty(&self, root: TreeId) -> Result<bool, Failure> {
        let mut folders = vec![root];
        while let Some(folder) = folders.pop() {
            for node in self.tree(folder)?.nodes {
                if !node.is_dir() {
                    return Ok(false);
                }
                folders.extend(node.subtree);
            }
        }
        Ok(true)
    }

    fn blob<T: PackedId>(&self, id: T) -> Result<Vec<u8>, Failure> {
        let entry = self.index.get_index_entry(&id).map_err(|_| self.missing(id))?;
        let place = entry.location;
        let sealed = self
            .packs
            .read(entry.pack.to_hex().as_str(), place.offset, place.length)
            .map_err(|error| error.failure(&self.location))?;
        let text = self.seal.open(&sealed).ok_or_else(|| self.damaged(id, "cannot be opened"))?;
        let text = match place.uncompressed_length {
            None => text,
            Some(length) => {
                let length = length.get() as usize;
                let unpacked = unpacked(&text, length).filter(|text| text.len() == length);
                unpacked.ok_or_else(|| self.damaged(id, "cannot be unpacked"))?
            }
        };
        let blob: BlobId = id.into();
        if rustic_core::Id::new(Sha256::digest(&text).into()) != *blob {
            return Err(self.damaged(id, "has another content than its name says"));
        }
        Ok(text)
    }

    fn damaged(&self, id: impl PackedId, what: &str) -> Failure {
        let id: BlobId = id.into();
        Failure::new(
            Reason::RepositoryDamaged,
            format!(
                "repository {}: blob {} {what}; run `restic check --read-data`",
                self.location,
                id.to_hex().as_str()
            ),
        )
    }

    fn missing(&self, id: impl PackedId) -> Failure {
        self.damaged(id, "is in no index")
    }
}

fn unpacked(text: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > LARGEST {
        return None;
    }
    UNPACKER.with_borrow_mut(|unpacker| {
        if unpacker.is_none() {
            *unpacker = zstd::bulk::Decompressor::new().ok();
        }
        unpacker.as_mut()?.decompress(text, length).ok()
    })
}
