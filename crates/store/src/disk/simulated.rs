//! A disk that crashes, fails and fills up when told to, and then loses, tears and reorders what
//! was not synced.

use super::{Disk, DiskFile};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

const SECTOR: usize = 512;

/// What goes wrong, and at which call that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The machine dies in this call; nothing works any more.
    Crash(u64),
    /// This one call fails; the disk works on.
    Fail(u64),
    /// So many calls from this one on find no room.
    Full(u64, u64),
}

/// What is left of unsynced data after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of it is gone.
    Everything,
    /// All of it happens to be there.
    Nothing,
    /// Each sector and each change of a name is there or not, by chance.
    Some(u64),
}

#[derive(Clone)]
enum Unsynced {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Clone, Default)]
struct Inode {
    durable: Vec<u8>,
    cached: Vec<u8>,
    unsynced: Vec<Unsynced>,
}

#[derive(Clone)]
enum NameChange {
    Link(String, usize),
    Unlink(String),
}

#[derive(Clone, Default)]
struct State {
    inodes: Vec<Inode>,
    durable: BTreeMap<String, usize>,
    cached: BTreeMap<String, usize>,
    // What belongs together happens together: a rename is one change of two names.
    unsynced: Vec<Vec<NameChange>>,
    calls: u64,
    is_dead: bool,
    free_bytes: Option<u64>,
}

/// A simulated directory; clones are the same one.
#[derive(Clone)]
pub(crate) struct SimulatedDisk {
    state: Arc<Mutex<State>>,
    fault: Arc<Mutex<Fault>>,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn failure(text: &str) -> io::Error {
    io::Error::other(text.to_owned())
}

enum Trouble {
    None,
    Dying,
    Failing,
    NoRoom,
}

impl SimulatedDisk {
    pub(crate) fn new(fault: Fault) -> Self {
        SimulatedDisk { state: Arc::default(), fault: Arc::new(Mutex::new(fault)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the lock")
    }

    /// How many calls there were that change something.
    pub(crate) fn calls(&self) -> u64 {
        self.state().calls
    }

    pub(crate) fn set_fault(&self, fault: Fault) {
        *self.fault.lock().expect("no thread panics with the lock") = fault;
    }

    pub(crate) fn set_free_bytes(&self, bytes: u64) {
        self.state().free_bytes = Some(bytes);
    }

    /// Flips a bit of a file, also of what is durable.
    pub(crate) fn flip_bit(&self, name: &str, byte: usize) {
        let mut state = self.state();
        let inode = state.cached[name];
        let inode = &mut state.inodes[inode];
        inode.cached[byte] ^= 0x10;
        inode.durable[byte] ^= 0x10;
    }

    /// What is in a file.
    pub(crate) fn contents(&self, name: &str) -> Vec<u8> {
        let state = self.state();
        state.inodes[state.cached[name]].cached.clone()
    }

    /// The process was killed, but not the machine: nothing is lost, and nothing is durable that
    /// was not.
    pub(crate) fn after_kill(&self) -> SimulatedDisk {
        let state = State { calls: 0, is_dead: false, ..self.state().clone() };
        let fault = Arc::new(Mutex::new(Fault::None));
        SimulatedDisk { state: Arc::new(Mutex::new(state)), fault }
    }

    /// The power failed: what is left.
    pub(crate) fn after_power_loss(&self, loss: Loss) -> SimulatedDisk {
        let before = self.state().clone();
        let mut random = Random(match loss {
            Loss::Some(seed) => seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            Loss::Everything | Loss::Nothing => 1,
        });
        let mut survives = |random: &mut Random| match loss {
            Loss::Everything => false,
            Loss::Nothing => true,
            Loss::Some(_) => random.next().is_multiple_of(2),
        };
        let mut names = before.durable.clone();
        for changes in &before.unsynced {
            if survives(&mut random) {
                changes.iter().for_each(|change| apply_name(&mut names, change));
            }
        }
        let mut inodes = before.inodes;
        for inode in &mut inodes {
            for unsynced in std::mem::take(&mut inode.unsynced) {
                apply_partly(&mut inode.durable, unsynced, &mut random, &mut survives);
            }
            inode.cached = inode.durable.clone();
        }
        let state = State { inodes, durable: names.clone(), cached: names, ..State::default() };
        let fault = Arc::new(Mutex::new(Fault::None));
        SimulatedDisk { state: Arc::new(Mutex::new(state)), fault }
    }

    /// Counts a call, and says what goes wrong in it.
    fn call(&self, state: &mut State) -> io::Result<Trouble> {
        if state.is_dead {
            return Err(failure("the machine is dead"));
        }
        state.calls += 1;
        let call = state.calls;
        Ok(match *self.fault.lock().expect("no thread panics with the lock") {
            Fault::Crash(at) if at == call => {
                state.is_dead = true;
                Trouble::Dying
            }
            Fault::Fail(at) if at == call => Trouble::Failing,
            Fault::Full(from, count) if (from..from + count).contains(&call) => Trouble::NoRoom,
            Fault::None | Fault::Crash(_) | Fault::Fail(_) | Fault::Full(..) => Trouble::None,
        })
    }

    fn change_names(
        &self,
        change: impl FnOnce(&mut State) -> io::Result<Vec<NameChange>>,
    ) -> io::Result<()> {
        let mut state = self.state();
        let trouble = self.call(&mut state)?;
        if matches!(trouble, Trouble::Failing) {
            return Err(failure("the call failed"));
        }
        let changes = change(&mut state)?;
        changes.iter().for_each(|change| apply_name(&mut state.cached, change));
        state.unsynced.push(changes);
        if matches!(trouble, Trouble::Dying) { Err(failure("the machine died")) } else { Ok(()) }
    }
}

fn apply_name(names: &mut BTreeMap<String, usize>, change: &NameChange) {
    match change {
        NameChange::Link(name, inode) => names.insert(name.clone(), *inode),
        NameChange::Unlink(name) => names.remove(name),
    };
}

fn apply(bytes: &mut Vec<u8>, unsynced: &Unsynced) {
    match unsynced {
        Unsynced::Truncate(size) => bytes.resize(*size, 0),
        Unsynced::Write(offset, new) => {
            let end = offset + new.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset..end].copy_from_slice(new);
        }
    }
}

/// Applies those sectors of a write that survive. What was lost in between is zeros or stale
/// rubbish.
fn apply_partly(
    bytes: &mut Vec<u8>,
    unsynced: Unsynced,
    random: &mut Random,
    survives: &mut impl FnMut(&mut Random) -> bool,
) {
    let Unsynced::Write(offset, new) = unsynced else {
        if survives(random) {
            apply(bytes, &unsynced);
        }
        return;
    };
    let mut at = offset;
    while at < offset + new.len() {
        let end = ((at / SECTOR + 1) * SECTOR).min(offset + new.len());
        if survives(random) {
            let is_rubbish = random.next().is_multiple_of(3);
            while bytes.len() < at {
                bytes.push(if is_rubbish { random.next() as u8 } else { 0 });
            }
            apply(bytes, &Unsynced::Write(at, new[at - offset..end - offset].to_vec()));
        }
        at = end;
    }
}

impl Disk for SimulatedDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().cached.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut id = 0;
        let is_full = {
            let mut state = self.state();
            let next = state.calls + 1;
            let fault = *self.fault.lock().expect("no thread panics with the lock");
            let is_full =
                matches!(fault, Fault::Full(from, count) if (from..from + count).contains(&next));
            state.calls += u64::from(is_full);
            is_full
        };
        if is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.change_names(|state| {
            id = state.inodes.len();
            state.inodes.push(Inode::default());
            Ok(vec![NameChange::Link(name.to_owned(), id)])
        })?;
        Ok(Box::new(SimulatedFile { disk: self.clone(), inode: id }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let inode = *self.state().cached.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(SimulatedFile { disk: self.clone(), inode }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change_names(|state| {
            let inode = *state.cached.get(from).ok_or(io::ErrorKind::NotFound)?;
            Ok(vec![NameChange::Unlink(from.to_owned()), NameChange::Link(to.to_owned(), inode)])
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change_names(|_| Ok(vec![NameChange::Unlink(name.to_owned())]))
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.state();
        match self.call(&mut state)? {
            Trouble::None => {}
            Trouble::NoRoom => return Err(io::ErrorKind::StorageFull.into()),
            Trouble::Dying => return Err(failure("the machine died")),
            Trouble::Failing => return Err(failure("the sync failed")),
        }
        let State { durable, unsynced, .. } = &mut *state;
        for changes in unsynced.drain(..) {
            changes.iter().for_each(|change| apply_name(durable, change));
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.state().free_bytes.unwrap_or(u64::MAX))
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    inode: usize,
}

impl SimulatedFile {
    fn change(&self, change: Unsynced) -> io::Result<()> {
        let mut state = self.disk.state();
        let trouble = self.disk.call(&mut state)?;
        let inode = &mut state.inodes[self.inode];
        let (change, result) = match (trouble, change) {
            (Trouble::None, change) => (change, Ok(())),
            (Trouble::NoRoom, change @ Unsynced::Truncate(_)) => (change, Ok(())),
            (Trouble::Dying, change) => (change, Err(failure("the machine died"))),
            // Half of it is there all the same.
            (Trouble::NoRoom, Unsynced::Write(offset, mut bytes)) => {
                bytes.truncate(bytes.len() / 2);
                (Unsynced::Write(offset, bytes), Err(io::ErrorKind::StorageFull.into()))
            }
            (Trouble::Failing, Unsynced::Write(offset, mut bytes)) => {
                bytes.truncate(bytes.len() / 2);
                (Unsynced::Write(offset, bytes), Err(failure("the write failed")))
            }
            (Trouble::Failing, Unsynced::Truncate(_)) => return Err(failure("the cut failed")),
        };
        apply(&mut inode.cached, &change);
        inode.unsynced.push(change);
        result
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let trouble = self.disk.call(&mut state)?;
        let inode = &mut state.inodes[self.inode];
        match trouble {
            Trouble::None | Trouble::NoRoom => {
                for change in inode.unsynced.drain(..) {
                    apply(&mut inode.durable, &change);
                }
                Ok(())
            }
            Trouble::Dying => Err(failure("the machine died")),
            Trouble::Failing => {
                // As Linux does it: what could not be written counts as clean, and is still read
                // from memory.
                let mut random = Random(self.inode as u64 * 2 + 1);
                for change in std::mem::take(&mut inode.unsynced) {
                    let mut survives = |random: &mut Random| random.next().is_multiple_of(2);
                    apply_partly(&mut inode.durable, change, &mut random, &mut survives);
                }
                Err(failure("the sync failed"))
            }
        }
    }
}

impl DiskFile for SimulatedFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.state().inodes[self.inode].cached.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.state();
        let bytes = &state.inodes[self.inode].cached;
        let from = (offset as usize).min(bytes.len());
        let read = buffer.len().min(bytes.len() - from);
        buffer[..read].copy_from_slice(&bytes[from..from + read]);
        Ok(read)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(Unsynced::Write(offset as usize, bytes.to_vec()))
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.change(Unsynced::Truncate(size as usize))
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.sync()
    }
}
