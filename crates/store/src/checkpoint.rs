//! Checkpoints: everything that was there at one revision, in one file.
//!
//! A file is a header, blocks, and a footer that says how many rows there must be. Each of them has
//! a checksum, and a block names its tables, so it can be read without the others. The file gets
//! its name only when it is complete and durable, and counts only after it was read back.

use crate::KeyRange;
use crate::Revision;
use crate::disk::{Disk, DiskFile, temporary_name};
use crate::encoding::{Reader, checksum, push_bytes};
use crate::index::{Index, TableCell, Version, shared_value};
use std::io;
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"ILKSTA01";
const NAME: &str = "state-";
const HEADER: usize = 32;
const BLOCK_HEADER: usize = 16;
/// A block is written when it has become longer than this.
const BLOCK: usize = 256 << 10;
/// No block is longer: one value of 1.5 MiB may come on top.
const LONGEST_BLOCK: usize = 8 << 20;
/// So much is written between syncs, lest one long sync holds up those of the log.
const BETWEEN_SYNCS: u64 = 8 << 20;
const TABLE: u8 = 1;
const ROW: u8 = 2;
const FOOTER: u8 = 3;

/// The name of a checkpoint's file.
pub(crate) fn checkpoint_name(revision: Revision) -> String {
    format!("{NAME}{revision:020}")
}

/// The revision of the checkpoint of that name, if it is one.
pub(crate) fn checkpoint_of(name: &str) -> Option<Revision> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// Which checkpoint, of which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckpointId {
    /// The store's id.
    pub(crate) store: u64,
    /// The revision whose state it is.
    pub(crate) revision: Revision,
}

fn header(id: CheckpointId) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[0..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&id.store.to_le_bytes());
    bytes[16..24].copy_from_slice(&id.revision.to_le_bytes());
    let sum = checksum(&[&bytes[..HEADER - 4]]);
    bytes[HEADER - 4..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

struct Writer {
    file: Box<dyn DiskFile>,
    id: CheckpointId,
    offset: u64,
    synced: u64,
    sequence: u64,
    rows: u64,
    block: Vec<u8>,
}

impl Writer {
    fn row(&mut self, row: &str, version: &Version) {
        let Some(value) = &version.value else { return };
        self.block.push(ROW);
        self.block.extend_from_slice(&version.created.to_le_bytes());
        self.block.extend_from_slice(&version.modified.to_le_bytes());
        push_bytes(&mut self.block, row.as_bytes());
        push_bytes(&mut self.block, value.bytes());
        self.rows += 1;
    }

    fn begin(&mut self, table: &str) {
        self.block.push(TABLE);
        push_bytes(&mut self.block, table.as_bytes());
    }

    /// Writes the block. Its checksum also covers what it belongs to and which block it is.
    fn flush(&mut self) -> io::Result<()> {
        let length = u32::try_from(self.block.len() - BLOCK_HEADER).map_err(io::Error::other)?;
        self.block[0..4].copy_from_slice(&length.to_le_bytes());
        self.block[4..12].copy_from_slice(&self.sequence.to_le_bytes());
        let sum = block_checksum(self.id, &self.block);
        self.block[12..BLOCK_HEADER].copy_from_slice(&sum.to_le_bytes());
        self.file.write_at(self.offset, &self.block)?;
        self.offset += self.block.len() as u64;
        self.sequence += 1;
        self.block.truncate(BLOCK_HEADER);
        if self.offset - self.synced > BETWEEN_SYNCS {
            self.file.sync_data()?;
            self.synced = self.offset;
        }
        Ok(())
    }
}

fn block_checksum(id: CheckpointId, block: &[u8]) -> u32 {
    checksum(&[&header(id), &block[..12], &block[BLOCK_HEADER..]])
}

/// Writes what was there at a revision, from which the floor must not rise meanwhile. May be reported
/// to give up.
pub(crate) fn write(
    disk: &dyn Disk,
    index: &Index,
    id: CheckpointId,
    give_up: &dyn Fn() -> bool,
) -> io::Result<()> {
    let name = checkpoint_name(id.revision);
    let temporary = temporary_name(&name);
    let written = write_temporary(disk, index, id, give_up)
        .and_then(|()| verify(disk, &temporary, id))
        .and_then(|()| disk.rename(&temporary, &name))
        .and_then(|()| disk.sync_directory());
    if written.is_err() {
        // If it cannot be removed, the next start will.
        let _ = disk.remove(&temporary);
    }
    written
}

fn write_temporary(
    disk: &dyn Disk,
    index: &Index,
    id: CheckpointId,
    give_up: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut file = disk.create(&temporary_name(&checkpoint_name(id.revision)))?;
    file.write_at(0, &header(id))?;
    let (offset, block) = (HEADER as u64, vec![0; BLOCK_HEADER]);
    let mut writer = Writer { file, id, offset, synced: 0, sequence: 0, rows: 0, block };
    for table in index.tables() {
        write_table(&mut writer, &table, give_up)?;
    }
    if writer.block.len() > BLOCK_HEADER {
        writer.flush()?;
    }
    writer.block.push(FOOTER);
    let rows = writer.rows;
    writer.block.extend_from_slice(&rows.to_le_bytes());
    writer.flush()?;
    writer.file.sync_all()
}

fn write_table(
    writer: &mut Writer,
    table: &TableCell,
    give_up: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut rest = KeyRange::prefix(Arc::clone(&table.name), "");
    let mut has_begun = false;
    loop {
        let slice = table.read().slice(&rest, writer.id.revision);
        for (row, version) in &slice.items {
            if !has_begun {
                writer.begin(&table.name);
                has_begun = true;
            }
            writer.row(row, version);
            if writer.block.len() > BLOCK {
                writer.flush()?;
                has_begun = false;
            }
        }
        if give_up() {
            return Err(io::Error::other("the store is stopping"));
        }
        let Some(last) = slice.last else { return Ok(()) };
        rest.after = Some(last);
    }
}

/// Reads a checkpoint without keeping anything: whether it would do.
fn verify(disk: &dyn Disk, name: &str, id: CheckpointId) -> io::Result<()> {
    let mut rows = 0_u64;
    let read = read_blocks(disk, name, id.store, |_, payload| {
        let mut reader = Reader::new(payload);
        loop {
            match next(&mut reader)? {
                Some(Item::Row { .. }) => rows += 1,
                Some(Item::Table(_)) => {}
                Some(Item::Footer { rows: expected }) => return (expected == rows).then_some(true),
                None => return Some(false),
            }
        }
    });
    match read {
        Ok(found) if found == id.revision => Ok(()),
        Ok(_) => Err(io::Error::other("the checkpoint that was written is for another revision")),
        Err(ReadCheckpointError::Io(error)) => Err(error),
        Err(ReadCheckpointError::Damaged { offset }) => {
            Err(io::Error::other(format!("the checkpoint that was written is damaged at {offset}")))
        }
    }
}

/// Why a checkpoint could not be read.
#[derive(Debug)]
pub(crate) enum ReadCheckpointError {
    /// The disk says no.
    Io(io::Error),
    /// Something there is not as it was written.
    Damaged {
        /// Where, about.
        offset: u64,
    },
}

/// Reads a checkpoint into a new index, whose revision and floor are the checkpoint's.
pub(crate) fn load(
    disk: &dyn Disk,
    revision: Revision,
    store: u64,
) -> Result<Index, ReadCheckpointError> {
    let name = checkpoint_name(revision);
    let index = Index::at(revision);
    let mut rows = 0_u64;
    let found = read_blocks(disk, &name, store, |revision, payload| {
        load_block(&index, payload, revision, &mut rows)
    })?;
    if found != revision {
        return Err(ReadCheckpointError::Damaged { offset: 0 });
    }
    Ok(index)
}

/// Adds the rows of a block to the index. True at the footer, none if the block makes no sense.
fn load_block(index: &Index, payload: &[u8], revision: Revision, rows: &mut u64) -> Option<bool> {
    let mut reader = Reader::new(payload);
    let mut table: Option<Arc<TableCell>> = None;
    let mut pending = Vec::new();
    loop {
        let item = next(&mut reader)?;
        if let Some(Item::Row { row, created, modified, value }) = item {
            if modified > revision {
                return None;
            }
            let value = Some(shared_value(value));
            pending.push((Arc::from(row), Version { created, modified, value }));
            continue;
        }
        *rows += pending.len() as u64;
        if !pending.is_empty() && !index.load(table.as_ref()?, pending.drain(..)) {
            return None;
        }
        match item {
            Some(Item::Table(name)) => table = Some(index.table(name)),
            Some(Item::Footer { rows: expected }) => return (expected == *rows).then_some(true),
            Some(Item::Row { .. }) | None => return Some(false),
        }
    }
}

enum Item<'a> {
    Table(&'a str),
    Row { row: &'a str, created: Revision, modified: Revision, value: &'a [u8] },
    Footer { rows: u64 },
}

/// The next item of a block: none at all if it makes no sense, an inner none at the end.
fn next<'a>(reader: &mut Reader<'a>) -> Option<Option<Item<'a>>> {
    if reader.is_done() {
        return Some(None);
    }
    let item = match reader.u8()? {
        TABLE => Item::Table(reader.text()?),
        ROW => {
            let (created, modified) = (reader.u64()?, reader.u64()?);
            Item::Row { created, modified, row: reader.text()?, value: reader.bytes()? }
        }
        FOOTER => Item::Footer { rows: reader.u64()? },
        _ => return None,
    };
    Some(Some(item))
}

/// Passes each block to a function until that says that it has seen the end. Returns the header's
/// revision.
fn read_blocks(
    disk: &dyn Disk,
    name: &str,
    store: u64,
    mut block: impl FnMut(Revision, &[u8]) -> Option<bool>,
) -> Result<Revision, ReadCheckpointError> {
    let file = disk.open(name).map_err(ReadCheckpointError::Io)?;
    let read = |offset: u64, buffer: &mut [u8]| {
        let length = file.read_at(offset, buffer).map_err(ReadCheckpointError::Io)?;
        let is_whole = length == buffer.len();
        if is_whole { Ok(()) } else { Err(ReadCheckpointError::Damaged { offset }) }
    };
    let mut first = [0; HEADER];
    read(0, &mut first)?;
    let mut reader = Reader::new(&first[8..]);
    let ids = reader.u64().zip(reader.u64());
    let id = ids.map(|(store, revision)| CheckpointId { store, revision });
    let is_ours = |id: &CheckpointId| id.store == store && header(*id) == first;
    let id = id.filter(is_ours).ok_or(ReadCheckpointError::Damaged { offset: 0 })?;

    let (mut offset, mut sequence, mut buffer) = (HEADER as u64, 0_u64, Vec::new());
    loop {
        let damaged = || ReadCheckpointError::Damaged { offset };
        buffer.resize(BLOCK_HEADER, 0);
        read(offset, &mut buffer)?;
        let mut reader = Reader::new(&buffer);
        let length = reader.u32().and_then(|length| usize::try_from(length).ok());
        let (found, sum) = (reader.u64(), reader.u32());
        let length = length.filter(|it| *it <= LONGEST_BLOCK).ok_or_else(damaged)?;
        buffer.resize(BLOCK_HEADER + length, 0);
        read(offset + BLOCK_HEADER as u64, &mut buffer[BLOCK_HEADER..])?;
        if found != Some(sequence) || sum != Some(block_checksum(id, &buffer)) {
            return Err(damaged());
        }
        if block(id.revision, &buffer[BLOCK_HEADER..]).ok_or_else(damaged)? {
            return Ok(id.revision);
        }
        offset += buffer.len() as u64;
        sequence += 1;
    }
}
