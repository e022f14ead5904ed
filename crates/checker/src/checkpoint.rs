//! What was explored, kept in a file to go on from.
//!
//! The file is written beside its place and moved there when it is whole, so a full disk or a kill
//! leaves the older one as it was. A sum over all bytes is the last thing in it.

use crate::error::CheckError;
use crate::explore::{Explored, Seen, Sighting, Stop, read};
use crate::options::Options;
use crate::store::{SHARDS, Shard};
use crate::walk::Walk;
use crate::word::{MAX_LIMBS, Word};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::RwLock;
use std::time::Duration;

const MAGIC: u64 = u64::from_le_bytes(*b"intrlock");
/// Changes whenever what follows it does.
const VERSION: u64 = 1;

/// Keeps an exploration that was stopped, if the options say where.
pub(crate) fn keep<W: Word>(
    name: &str,
    walk: &dyn Walk<W>,
    options: &Options,
    explored: &Explored<W>,
) -> Result<(), CheckError> {
    let Some(path) = &options.checkpoint else { return Ok(()) };
    if !matches!(explored.stop, Some(Stop::Interrupted | Stop::Memory)) {
        return Ok(());
    }
    let partial = path.with_extension("partial");
    save(&partial, &subject(name, walk), explored)
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|error| {
            // A half-written file helps nobody; the one before, if any, is untouched.
            let _ = std::fs::remove_file(&partial);
            CheckError::Checkpoint { path: path.clone(), why: error.to_string() }
        })
}

/// The exploration that was kept, if the options ask to go on from it.
pub(crate) fn resume<W: Word>(
    name: &str,
    walk: &dyn Walk<W>,
    options: &Options,
) -> Result<Option<Explored<W>>, CheckError> {
    let (Some(path), true) = (&options.checkpoint, options.resume) else { return Ok(None) };
    load(path, &subject(name, walk))
        .map(Some)
        .map_err(|error| CheckError::Checkpoint { path: path.clone(), why: error.to_string() })
}

/// What a checkpoint is of: it fits nothing else.
fn subject<W>(name: &str, walk: &dyn Walk<W>) -> String {
    let facts = walk.facts();
    let flags = if facts.product.is_some() { " without flags" } else { "" };
    let symmetry = if facts.permutations > 0 { " up to symmetry" } else { "" };
    let promises = facts.invariants.iter().chain(&facts.rules).chain(&facts.reachable);
    let promises: Vec<_> = promises.map(|promise| promise.name.as_str()).collect();
    format!("{name} {}{flags}{symmetry}: {}", facts.size, promises.join(" "))
}

/// A sum that any damage changes.
#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn add(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    }
}

/// Writes numbers and sums them.
struct Out<T> {
    inner: T,
    sum: Sum,
}

/// Reads numbers and sums them.
struct In<T> {
    inner: T,
    sum: Sum,
}

impl<T: Write> Out<T> {
    fn number(&mut self, number: u64) -> io::Result<()> {
        self.sum.add(number);
        self.inner.write_all(&number.to_le_bytes())
    }
    fn text(&mut self, text: &str) -> io::Result<()> {
        self.number(text.len() as u64)?;
        text.bytes().try_for_each(|byte| self.number(u64::from(byte)))
    }
    fn word<W: Word>(&mut self, word: &W) -> io::Result<()> {
        let limbs = word.limbs();
        limbs[..W::BYTES / 8].iter().try_for_each(|limb| self.number(*limb))
    }
    fn sighting<W: Word>(&mut self, sighting: &Option<Sighting<W>>) -> io::Result<()> {
        let Some(sighting) = sighting else { return self.number(0) };
        self.number(1 + u64::from(sighting.step.is_some()))?;
        self.number(u64::from(sighting.level))?;
        self.word(&sighting.state)?;
        let Some((action, to)) = sighting.step else { return Ok(()) };
        self.number(u64::from(action))?;
        self.word(&to)
    }
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

impl<T: Read> In<T> {
    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.inner.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => broken("it ends too early"),
            _ => error,
        })?;
        let number = u64::from_le_bytes(bytes);
        self.sum.add(number);
        Ok(number)
    }
    /// A number that says how much follows; a file that lies about it must not take all memory.
    fn count(&mut self, most: u64) -> io::Result<usize> {
        let count = self.number()?;
        if count > most { Err(broken("a count in it is impossible")) } else { Ok(count as usize) }
    }
    fn text(&mut self) -> io::Result<String> {
        let bytes: io::Result<Vec<u8>> =
            (0..self.count(1 << 16)?).map(|_| self.number().map(|byte| byte as u8)).collect();
        String::from_utf8(bytes?).map_err(|_| broken("a name in it is not text"))
    }
    fn word<W: Word>(&mut self) -> io::Result<W> {
        let mut limbs = [0; MAX_LIMBS];
        for limb in &mut limbs[..W::BYTES / 8] {
            *limb = self.number()?;
        }
        Ok(W::from_limbs(&limbs))
    }
    fn sighting<W: Word>(&mut self) -> io::Result<Option<Sighting<W>>> {
        let kind = self.count(2)?;
        if kind == 0 {
            return Ok(None);
        }
        let (level, state) = (self.number()? as u32, self.word()?);
        let step = if kind == 2 { Some((self.number()? as u16, self.word()?)) } else { None };
        Ok(Some(Sighting { level, state, step }))
    }
    fn sightings<W: Word>(&mut self) -> io::Result<Vec<Option<Sighting<W>>>> {
        (0..self.count(1 << 16)?).map(|_| self.sighting()).collect()
    }
}

fn save<W: Word>(path: &Path, subject: &str, explored: &Explored<W>) -> io::Result<()> {
    let file = File::create(path)?;
    let mut out = Out { inner: BufWriter::with_capacity(1 << 20, file), sum: Sum::default() };
    out.number(MAGIC)?;
    out.number(VERSION)?;
    out.text(subject)?;
    out.number(u64::from(explored.depth))?;
    out.number(explored.next_task as u64)?;
    out.number(explored.elapsed.as_micros() as u64)?;
    let seen = &explored.seen;
    for number in [seen.generated, seen.distinct, seen.expanded, seen.transitions, seen.verified] {
        out.number(number)?;
    }
    for sightings in [&seen.invariants, &seen.rules, &seen.refinements, &seen.reachable] {
        out.number(sightings.len() as u64)?;
        sightings.iter().try_for_each(|sighting| out.sighting(sighting))?;
    }
    out.sighting(&seen.deadlock)?;
    out.number(seen.actions.len() as u64)?;
    seen.actions.iter().try_for_each(|count| out.number(*count))?;
    for shard in &explored.shards {
        let shard = read(shard);
        out.number(shard.levels().len() as u64)?;
        shard.levels().iter().try_for_each(|level| out.number(u64::from(*level)))?;
        out.number(shard.len() as u64)?;
        (0..shard.len() as u32).try_for_each(|index| out.word(&shard.get(index)))?;
    }
    let sum = out.sum.0;
    out.number(sum)?;
    out.inner.flush()?;
    out.inner.get_ref().sync_all()
}

fn load<W: Word>(path: &Path, subject: &str) -> io::Result<Explored<W>> {
    let file = File::open(path)?;
    let mut from = In { inner: BufReader::with_capacity(1 << 20, file), sum: Sum::default() };
    if from.number()? != MAGIC {
        return Err(broken("it is not a checkpoint"));
    }
    let version = from.number()?;
    if version != VERSION {
        return Err(broken(&format!("it is of version {version}, this program reads {VERSION}")));
    }
    let kept = from.text()?;
    if kept != subject {
        return Err(broken(&format!("it is of `{kept}`, this check is of `{subject}`")));
    }
    let depth = from.number()? as u32;
    let next_task = from.number()? as usize;
    let elapsed = Duration::from_micros(from.number()?);
    let seen = load_seen(&mut from)?;
    let mut shards = Vec::with_capacity(SHARDS);
    for _ in 0..SHARDS {
        let levels: io::Result<Vec<u32>> =
            (0..from.count(1 << 24)?).map(|_| from.number().map(|level| level as u32)).collect();
        let mut shard = Shard::new();
        for _ in 0..from.count(crate::store::SHARD_MOST as u64)? {
            shard.push(from.word()?);
        }
        shard.rebuild(0);
        shard.set_levels(levels?);
        shards.push(RwLock::new(shard));
    }
    let sum = from.sum.0;
    if from.number()? != sum {
        return Err(broken("its sum is wrong: it was damaged"));
    }
    Ok(Explored { shards, seen, depth, stop: None, next_task, edges: None, elapsed, peak_bytes: 0 })
}

fn load_seen<W: Word, T: Read>(from: &mut In<T>) -> io::Result<Seen<W>> {
    Ok(Seen {
        generated: from.number()?,
        distinct: from.number()?,
        expanded: from.number()?,
        transitions: from.number()?,
        verified: from.number()?,
        invariants: from.sightings()?,
        rules: from.sightings()?,
        refinements: from.sightings()?,
        reachable: from.sightings()?,
        deadlock: from.sighting()?,
        actions: (0..from.count(1 << 16)?).map(|_| from.number()).collect::<io::Result<_>>()?,
    })
}
