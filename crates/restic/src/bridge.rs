//! The files of a repository as rustic_core wants them, with what it must not do kept from it.
//!
//! * It saves a snapshot although files could not be read. Here a snapshot is only written after a
//!   gate has checked everything that went wrong, so one that is not whole never exists.
//! * It believes whatever a file says. Here a file whose content is not that of its name is damage.
//! * It loses what sort of trouble there was. Here the first one is remembered.

use crate::failure::{Failure, Reason};
use crate::lock::Held;
use crate::packs::Packs;
use crate::seal::name_of;
use crate::store::{File, Kind, Store, StoreError};
use bytes::Bytes;
use rustic_core::{
    BytesList, ErrorKind, FileType, Id, ReadBackend, RusticError, RusticResult, WriteBackend,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Looks at a snapshot, sealed as it is written, and says whether it may be.
pub(crate) type Gate = Box<dyn Fn(&Bytes) -> Result<(), Failure> + Send + Sync>;

/// The files of a repository.
pub(crate) struct Bridge {
    store: Arc<dyn Store>,
    location: String,
    packs: Packs,
    /// The config as rustic_core is to see it: with what the Secret says about packs and compression,
    /// which it knows from the config only.
    config: Option<Bytes>,
    held: OnceLock<Arc<Held>>,
    gate: OnceLock<Gate>,
    first_failure: Mutex<Option<Failure>>,
    is_broken: AtomicBool,
}

impl Bridge {
    pub(crate) fn new(store: Arc<dyn Store>, location: String, config: Option<Bytes>) -> Self {
        Bridge {
            packs: Packs::new(store.clone()),
            store,
            location,
            config,
            held: OnceLock::new(),
            gate: OnceLock::new(),
            first_failure: Mutex::new(None),
            is_broken: AtomicBool::new(false),
        }
    }

    /// From now on nothing is written or removed unless this lock is held.
    pub(crate) fn only_while(&self, held: Arc<Held>) {
        let _ = self.held.set(held);
    }

    /// From now on no snapshot is written that this gate does not let through.
    pub(crate) fn only_through(&self, gate: Gate) {
        let _ = self.gate.set(gate);
    }

    /// Whether something could not be written, so that going on is of no use.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// What an error of rustic_core is about: the first trouble that there was here, else what it says
    /// itself.
    pub(crate) fn failure(&self, error: &RusticError) -> Failure {
        let first = self.first_failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        first.unwrap_or_else(|| told(&self.location, error))
    }

    fn note(&self, failure: Failure) -> Box<RusticError> {
        let error = RusticError::new(ErrorKind::Backend, failure.message.clone());
        let mut first = self.first_failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(failure);
        error
    }

    fn trouble(&self, error: &StoreError) -> Box<RusticError> {
        self.note(error.failure(&self.location))
    }

    fn may_change(&self) -> RusticResult<()> {
        match self.held.get().map(|held| held.check()) {
            Some(Err(failure)) => {
                self.is_broken.store(true, Ordering::Relaxed);
                Err(self.note(failure))
            }
            _ => Ok(()),
        }
    }
}

fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::Config => Kind::Config,
        FileType::Index => Kind::Index,
        FileType::Key => Kind::Key,
        FileType::Snapshot => Kind::Snapshot,
        FileType::Pack => Kind::Pack,
    }
}

impl ReadBackend for Bridge {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn list_with_size(&self, kind: FileType) -> RusticResult<Vec<(Id, u32)>> {
        if kind == FileType::Config {
            let has_config = self.store.has_config().map_err(|error| self.trouble(&error))?;
            return Ok(has_config.then(|| (Id::default(), 0)).into_iter().collect());
        }
        let listed = self.store.list(kind_of(kind)).map_err(|error| self.trouble(&error))?;
        let sized = listed.into_iter().map(|(name, size)| {
            let id: Id = name.parse()?;
            let size = u32::try_from(size).map_err(|_| {
                let title = File::new(kind_of(kind), &name).title();
                self.trouble(&StoreError::Damaged(format!("{title} is larger than can be")))
            })?;
            Ok((id, size))
        });
        sized.collect()
    }

    fn read_full(&self, kind: FileType, id: &Id) -> RusticResult<Bytes> {
        if let (FileType::Config, Some(config)) = (kind, &self.config) {
            return Ok(config.clone());
        }
        let name = id.to_hex();
        let file = File::new(kind_of(kind), name.as_str());
        let content = self.store.read(file).map_err(|error| self.trouble(&error))?;
        if kind != FileType::Config && name_of(&content) != name.as_str() {
            let damage = format!("{} has another content than its name says", file.title());
            return Err(self.trouble(&StoreError::Damaged(damage)));
        }
        Ok(content)
    }

    fn read_partial(
        &self,
        kind: FileType,
        id: &Id,
        cacheable: bool,
        offset: u32,
        length: u32,
    ) -> RusticResult<Bytes> {
        let name = id.to_hex();
        let part = match (kind, cacheable) {
            // Trees are many small parts of few packs.
            (FileType::Pack, true) => self.packs.read(name.as_str(), offset, length),
            _ => {
                let file = File::new(kind_of(kind), name.as_str());
                self.store.read_part(file, u64::from(offset), length as usize)
            }
        };
        part.map_err(|error| self.trouble(&error))
    }

    fn warmup_path(&self, kind: FileType, id: &Id) -> String {
        File::new(kind_of(kind), id.to_hex().as_str()).path()
    }
}

impl WriteBackend for Bridge {
    fn create(&self) -> RusticResult<()> {
        self.store.prepare().map_err(|error| self.trouble(&error))
    }

    fn write_bytes(
        &self,
        kind: FileType,
        id: &Id,
        _cacheable: bool,
        content: BytesList,
    ) -> RusticResult<()> {
        self.may_change()?;
        if let (FileType::Snapshot, Some(gate)) = (kind, self.gate.get()) {
            let sealed = content.slice().concat().into();
            gate(&sealed).map_err(|failure| self.note(failure))?;
        }
        let name = id.to_hex();
        let file = File::new(kind_of(kind), name.as_str());
        self.store.write(file, content.slice()).map_err(|error| {
            self.is_broken.store(true, Ordering::Relaxed);
            self.trouble(&error)
        })
    }

    fn remove(&self, kind: FileType, id: &Id, _cacheable: bool) -> RusticResult<()> {
        self.may_change()?;
        let name = id.to_hex();
        let file = File::new(kind_of(kind), name.as_str());
        self.store.remove(file).map_err(|error| self.trouble(&error))
    }
}

/// What rustic_core says about what it found, where the files themselves could all be read.
fn told(location: &str, error: &RusticError) -> Failure {
    let text = error.display_log();
    let text = text.lines().next().unwrap_or_default().trim_start_matches("Error: ");
    let looks_damaged =
        ["MAC check", "decode zstd", "deserialize", "not found in index", "corrupted"]
            .iter()
            .any(|sign| text.contains(sign))
            || text.contains("error processing");
    match looks_damaged {
        true => Failure::new(
            Reason::RepositoryDamaged,
            format!(
                "repository {location}: {text}; run `restic check` before anything is forgotten or \
                 pruned"
            ),
        ),
        false => Failure::new(Reason::MoverFailed, format!("repository {location}: {text}")),
    }
}
