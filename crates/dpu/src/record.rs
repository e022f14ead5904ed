//! The record beside a port, as it lies on disk, and what the port was last opened for.

use crate::files::Folder;
use interlock_nodes::outside::{Entry, Failure, Record, Tag, Term};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What the names of the files end with.
pub(crate) const ENDING: &str = ".record";

/// What is known about a port beside its hardware.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kept {
    /// The record.
    pub(crate) record: Record,
    /// What an attach of this boot was about to open, or opened. The hardware is compared with it, and never
    /// believed to be open for anything else.
    pub(crate) entry: Option<Entry>,
}

/// The file. A record of another version is one that cannot be read: the port is closed and adopted.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    version: Version,
    boot: String,
    term: String,
    node: Option<String>,
    floor: i64,
    entry: Option<WrittenEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Version {
    #[serde(rename = "interlock.dev/port-record/v1")]
    First,
}

#[derive(Debug, Serialize, Deserialize)]
struct WrittenEntry {
    node: String,
    tenant: String,
    claim: String,
    attachment: String,
    epoch: i64,
    vni: u32,
    mac: String,
    addresses: Vec<IpAddr>,
}

/// Reads a record, under the lock of its port. One that is missing or unreadable begins anew: no node, floor 0. One of
/// another boot keeps both: closed hardware came up. Either has a new term before anybody sees it, so what was
/// decided before is refused.
pub(crate) fn read(folder: &Folder, port: &str, boot: &str) -> Result<Kept, Failure> {
    let file = format!("{port}{ENDING}");
    let written = folder.read(&file).unwrap_or_else(|failure| {
        tracing::warn!(port, because = failure.message, "the record of a port is lost");
        None
    });
    let (written, is_of_this_boot) = match written.as_deref().and_then(parsed) {
        Some((kept, its_boot)) if its_boot == boot => (Some(kept), true),
        Some((kept, _)) => (Some(kept), false),
        None => (None, false),
    };
    let (node, floor) = match written {
        Some(kept) if is_of_this_boot => return Ok(kept),
        Some(kept) => (kept.record.node, kept.record.floor),
        None => (None, 0),
    };
    let kept = Kept { record: Record { term: new_term()?, node, floor }, entry: None };
    write(folder, port, &OfBoot { boot, kept: &kept })?;
    Ok(kept)
}

/// What is on disk, without the lock of the port: nothing is begun anew.
pub(crate) fn peek(folder: &Folder, port: &str, boot: &str) -> Result<Option<Kept>, Failure> {
    let written = folder.read(&format!("{port}{ENDING}"))?;
    Ok(written.as_deref().and_then(parsed).filter(|it| it.1 == boot).map(|it| it.0))
}

/// A record, and the boot that it is of.
pub(crate) struct OfBoot<'a> {
    pub(crate) boot: &'a str,
    pub(crate) kept: &'a Kept,
}

/// Replaces a record, under the lock of its port.
pub(crate) fn write(folder: &Folder, port: &str, what: &OfBoot<'_>) -> Result<(), Failure> {
    let Kept { record, entry } = what.kept;
    let written = Written {
        version: Version::First,
        boot: what.boot.to_owned(),
        term: record.term.0.clone(),
        node: record.node.clone(),
        floor: record.floor,
        entry: entry.as_ref().map(|Entry { tag, vni, mac, addresses }| WrittenEntry {
            node: tag.node.clone(),
            tenant: tag.tenant.clone(),
            claim: tag.claim.clone(),
            attachment: tag.attachment.clone(),
            epoch: tag.epoch,
            vni: *vni,
            mac: mac.clone(),
            addresses: addresses.clone(),
        }),
    };
    let mut text = serde_json::to_vec_pretty(&written).expect("strings and numbers are JSON");
    text.push(b'\n');
    folder.replace(&format!("{port}{ENDING}"), &text)
}

fn parsed(bytes: &[u8]) -> Option<(Kept, String)> {
    let written: Written = serde_json::from_slice(bytes).ok()?;
    let is_term = written.term.len() == 32 && written.term.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_term || written.floor < 0 {
        return None;
    }
    let entry = written.entry.map(|it| {
        let WrittenEntry { node, tenant, claim, attachment, epoch, vni, mac, addresses } = it;
        Entry { tag: Tag { node, tenant, claim, attachment, epoch }, vni, mac, addresses }
    });
    let record = Record { term: Term(written.term), node: written.node, floor: written.floor };
    Some((Kept { record, entry }, written.boot))
}

/// 128 random bits.
pub(crate) fn new_term() -> Result<Term, Failure> {
    let mut bytes = [0_u8; 16];
    // The kernel gives up to 256 bytes whole.
    match getrandom(&mut bytes[..], GetRandomFlags::empty()) {
        Ok(16) => Ok(Term(bytes.iter().map(|byte| format!("{byte:02x}")).collect())),
        other => Err(Failure {
            reason: "NoRandomNumbers",
            message: format!("the kernel gave no random numbers: {other:?}"),
        }),
    }
}
