//! A repository, opened; or made, where it is certain that there is none.

use crate::bridge::Bridge;
use crate::failure::{Failure, Reason};
use crate::keys::{self, Found};
use crate::lock::{Lock, Locks, Want};
use crate::seal::Seal;
use crate::settings::{Compression, Settings};
use crate::store::{self, File, Kind, Store, StoreError};
use crate::watch::Watch;
use bytes::Bytes;
use rustic_core::repofile::{ConfigFile, SnapshotFile};
use rustic_core::{
    ConfigOptions, Credentials, KeyOptions, OpenStatus, RepositoryBackends, RepositoryOptions,
};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

/// Two who make a repository at one moment on a server that cannot decide between them: the one whose
/// config is there after this while has won.
const DECIDED_AFTER: Duration = Duration::from_millis(300);

/// A repository that the password opens.
pub(crate) struct Repository {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) seal: Seal,
    pub(crate) bridge: Arc<Bridge>,
    pub(crate) location: String,
    /// For rustic_core; taken by whoever reads the index, which is a state of it.
    pub(crate) inner: rustic_core::Repository<OpenStatus>,
}

impl Repository {
    /// Opens a repository. Where there is none, none is made.
    pub(crate) fn open(settings: &Settings, watch: &Watch) -> Result<Self, Failure> {
        let store = store::open(settings)?;
        let location = settings.location();
        match has_config(&*store, &location)? {
            true => Self::opened(settings, store, watch),
            false => Err(Failure::new(
                Reason::RepositoryMissing,
                format!(
                    "there is no repository at {location}; check RESTIC_REPOSITORY, or let a backup \
                     make it"
                ),
            )),
        }
    }

    /// Opens a repository, or makes one where there certainly is none.
    pub(crate) fn open_or_make(settings: &Settings, watch: &Watch) -> Result<Self, Failure> {
        let store = store::open(settings)?;
        if !has_config(&*store, &settings.location())? {
            make(settings, &store)?;
        }
        Self::opened(settings, store, watch)
    }

    fn opened(settings: &Settings, store: Arc<dyn Store>, watch: &Watch) -> Result<Self, Failure> {
        let location = settings.location();
        let found = keys::find(&*store, &settings.password.0, &location)?;
        if found.is_empty() {
            return Err(Failure::new(
                Reason::WrongPassword,
                format!("RESTIC_PASSWORD does not open the repository at {location}; correct it"),
            ));
        }
        let sealed = store.read(File::CONFIG).map_err(|error| error.failure(&location))?;
        let opened = found.into_iter().find_map(|key| Some((key.seal.open_file(&sealed)?, key)));
        let damaged = || {
            Failure::new(
                Reason::RepositoryDamaged,
                format!(
                    "the config of the repository at {location} makes no sense; run `restic check`"
                ),
            )
        };
        let (text, key) = opened.ok_or_else(damaged)?;
        let mut config: ConfigFile = serde_json::from_slice(&text).map_err(|_| damaged())?;
        if !matches!(config.version, 1 | 2) {
            return Err(Failure::new(
                Reason::RepositoryNotSupported,
                format!(
                    "the repository at {location} has version {}; 1 and 2 are known",
                    config.version
                ),
            ));
        }
        adjust(&mut config, settings);
        let text = serde_json::to_vec(&config).expect("a config is plain data");
        let overlay = Bytes::from(key.seal.close(&text));
        let bridge = Arc::new(Bridge::new(store.clone(), location.clone(), Some(overlay)));
        let backends = RepositoryBackends::new(bridge.clone(), None);
        let inner =
            rustic_core::Repository::new_with_progress(&options(), &backends, watch.clone())
                .and_then(|repository| repository.open(&Credentials::Masterkey(key.master)))
                .map_err(|error| bridge.failure(&error))?;
        Ok(Repository { store, seal: key.seal, bridge, location, inner })
    }

    /// Locks it; from then on nothing is written or removed unless the lock is held.
    pub(crate) fn lock(&self, want: Want, unlock: bool) -> Result<Lock, Failure> {
        let lock = self.locks().acquire(want, unlock)?;
        self.bridge.only_while(lock.held());
        Ok(lock)
    }

    pub(crate) fn locks(&self) -> Locks {
        Locks {
            store: self.store.clone(),
            seal: self.seal.clone(),
            location: self.location.clone(),
        }
    }

    /// All snapshots, newest first. One that cannot be read is an error: nobody could say whether it
    /// was the one that was asked for.
    pub(crate) fn snapshots(&self) -> Result<Vec<SnapshotFile>, Failure> {
        let snapshots = self.inner.get_all_snapshots();
        let mut snapshots = snapshots.map_err(|error| self.bridge.failure(&error))?;
        snapshots.sort_by_key(|snapshot| Reverse((snapshot.time.timestamp(), snapshot.id)));
        Ok(snapshots)
    }
}

/// No cache on disk: movers come and go, and what they left would be read by nobody.
fn options() -> RepositoryOptions {
    RepositoryOptions::default().no_cache(true)
}

fn has_config(store: &dyn Store, location: &str) -> Result<bool, Failure> {
    store.has_config().map_err(|error| error.failure(location))
}

/// What the Secret says about packs and compression. Packs do not grow with the repository, as
/// rustic_core would let them: they are held in memory.
fn adjust(config: &mut ConfigFile, settings: &Settings) {
    let bytes = settings.pack_size << 20;
    config.datapack_size = Some(bytes);
    config.datapack_growfactor = Some(0);
    config.datapack_size_limit = Some(bytes);
    config.treepack_size = Some(bytes);
    config.treepack_growfactor = Some(0);
    config.treepack_size_limit = Some(bytes);
    config.compression = match settings.compression {
        Compression::Auto => None,
        Compression::Off => Some(0),
        Compression::Level(level) => Some(level),
    };
    // Opening again what was just sealed costs as much as sealing it; `restic` of the version that we
    // are measured against does not do it either.
    config.extra_verify = Some(false);
}

/// Makes a repository, version 2. Whoever else does the same at the same moment, there is one
/// repository afterwards, and every key in it opens it.
fn make(settings: &Settings, store: &Arc<dyn Store>) -> Result<(), Failure> {
    let location = settings.location();
    let trouble = |error: StoreError| error.failure(&location);
    for kind in [Kind::Snapshot, Kind::Index, Kind::Pack] {
        let is_empty = match store.list(kind) {
            Err(StoreError::Missing(_)) => true,
            listed => listed.map_err(trouble)?.is_empty(),
        };
        if !is_empty {
            return Err(Failure::new(
                Reason::RepositoryDamaged,
                format!(
                    "at {location} there is no config but there are files in {}: nothing is made over \
                     what was a repository; bring its config back, or name an empty place",
                    kind.folder()
                ),
            ));
        }
    }
    store.prepare().map_err(trouble)?;
    // A key without a config was left by somebody who died here, or is of somebody who is about to
    // write the config: either way the repository is to have that key, and no second one.
    let left = keys::find(&**store, &settings.password.0, &location)?.pop();
    let (key, is_new) = match left {
        Some(key) => (key, false),
        None => (keys::create(&**store, &settings.password.0, &location)?, true),
    };
    let written = write_config(store, &location, &key);
    std::thread::sleep(DECIDED_AFTER);
    match store.read(File::CONFIG) {
        Ok(config) if key.seal.open_file(&config).is_some() => Ok(()),
        // Somebody else's repository, which our key does not open: it must not stay there.
        Ok(_) if is_new => store.remove(File::new(Kind::Key, &key.name)).map_err(trouble),
        Ok(_) => Ok(()),
        Err(error) => Err(written.err().unwrap_or_else(|| trouble(error))),
    }
}

fn write_config(store: &Arc<dyn Store>, location: &str, key: &Found) -> Result<(), Failure> {
    let bridge = Arc::new(Bridge::new(store.clone(), location.to_owned(), None));
    let backends = RepositoryBackends::new(bridge.clone(), None);
    let credentials = Credentials::Masterkey(key.master.clone());
    rustic_core::Repository::new(&options(), &backends)
        .and_then(|repository| {
            repository.init(&credentials, &KeyOptions::default(), &ConfigOptions::default())
        })
        .map(|_| ())
        .map_err(|error| bridge.failure(&error))
}
