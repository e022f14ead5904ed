//! restic's own locks: everybody who reads or writes a repository has a shared one, whoever removes
//! from it an exclusive one.
//!
//! rustic_core writes none and honours none, and a prune beside a backup destroys it. A lock is a file
//! in the folder `locks`: when, who, exclusive or not, sealed with the key of the repository. It is
//! renewed every five minutes and counts for nothing after thirty.

use crate::failure::{Failure, Reason};
use crate::host::{self, Process};
use crate::seal::{Seal, name_of};
use crate::store::{File, Kind, Store, StoreError};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const RENEWED_AFTER: Duration = Duration::from_secs(5 * 60);
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(20);
/// restic's own limit.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(30);
/// We stop believing in our own lock some time before others do.
const DOUBTED_AFTER: SignedDuration = SignedDuration::from_mins(25);
/// As long as restic waits before it looks whether somebody else locked at the same moment.
const LOOKED_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Which lock is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// To read and to add.
    Shared,
    /// To remove.
    Exclusive,
}

/// What is in a lock.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note {
    time: Timestamp,
    exclusive: bool,
    #[serde(default)]
    hostname: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    pid: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    uid: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    gid: u32,
    /// Which process of ours, exactly; restic passes over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interlock: Option<Process>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Note {
    fn ours(want: Want) -> Self {
        Note {
            time: Timestamp::now(),
            exclusive: want == Want::Exclusive,
            // Not the name alone: restic's `unlock` sends SIGHUP to a process of its own host to see
            // whether it lives, and a process that has not prepared for that would die of it.
            hostname: format!("{} (interlock)", host::name()),
            username: "interlock".to_owned(),
            pid: i64::from(std::process::id()),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            interlock: Some(Process::this().clone()),
        }
    }

    fn is_stale(&self, now: Timestamp) -> bool {
        now.duration_since(self.time) > STALE_AFTER
    }

    /// Whether we may remove it without being asked to: it is ours, and its holder is gone or has
    /// itself stopped to believe in it.
    fn is_dead_and_ours(&self, name: &str, now: Timestamp) -> bool {
        match &self.interlock {
            None => false,
            Some(process) if process.is_this() => !living().contains(name),
            Some(process) => process.is_provably_dead() || self.is_stale(now),
        }
    }

    /// Whether restic's `unlock` would remove it: it is old, or of this host with its process gone.
    fn is_dead_for_restic(&self, now: Timestamp) -> bool {
        let is_here = self.interlock.is_none() && self.hostname == host::name();
        self.is_stale(now) || (is_here && !host::is_running(self.pid))
    }
}

/// Where locks are, and what seals them.
#[derive(Clone)]
pub(crate) struct Locks {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) seal: Seal,
    pub(crate) location: String,
}

/// A lock in the repository, and what is in it where that can be read.
struct Seen {
    name: String,
    note: Option<Note>,
}

/// The names of the locks that this process has.
fn living() -> MutexGuard<'static, BTreeSet<String>> {
    static LIVING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Locks {
    fn all(&self) -> Result<Vec<Seen>, Failure> {
        let mut seen = Vec::new();
        for (name, size) in self.store.list(Kind::Lock).map_err(|error| self.failure(&error))? {
            // A server that writes in steps shows a file before there is anything in it.
            if size == 0 {
                continue;
            }
            match self.store.read(File::new(Kind::Lock, &name)) {
                Ok(sealed) => {
                    let text = self.seal.open_file(&sealed);
                    let note = text.and_then(|text| serde_json::from_slice(&text).ok());
                    seen.push(Seen { name, note });
                }
                // Removed while we looked.
                Err(StoreError::Missing(_)) => {}
                Err(error) => return Err(self.failure(&error)),
            }
        }
        Ok(seen)
    }

    fn failure(&self, error: &StoreError) -> Failure {
        error.failure(&self.location)
    }

    /// Removes locks that nobody has any more: always our own dead ones, and with `unlock` all that
    /// restic's own `unlock` would remove. Tells how many.
    pub(crate) fn sweep(&self, unlock: bool) -> Result<usize, Failure> {
        let now = Timestamp::now();
        let mut removed = 0;
        for Seen { name, note } in self.all()? {
            let is_dead = note.is_some_and(|note| {
                note.is_dead_and_ours(&name, now) || (unlock && note.is_dead_for_restic(now))
            });
            if is_dead {
                self.store
                    .remove(File::new(Kind::Lock, &name))
                    .map_err(|error| self.failure(&error))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Locks the repository, or says who has it since when.
    pub(crate) fn acquire(&self, want: Want, unlock: bool) -> Result<Lock, Failure> {
        self.sweep(unlock)?;
        self.nobody_else(want, None)?;
        let held = Arc::new(Held { state: Mutex::default(), is_lost: AtomicBool::new(false) });
        let (name, time) = self.write(want)?;
        held.set(name.clone(), time);
        std::thread::sleep(LOOKED_AGAIN_AFTER);
        if let Err(failure) = self.nobody_else(want, Some(&name)) {
            self.forget(&name);
            return Err(failure);
        }
        let end = Arc::new((Mutex::new(false), Condvar::new()));
        let renewer = {
            let (locks, held, end) = (self.clone(), held.clone(), end.clone());
            std::thread::spawn(move || locks.renew(want, &held, &end))
        };
        Ok(Lock { locks: self.clone(), held, end, renewer: Some(renewer) })
    }

    /// Writes a new lock, and tells its name and when it was.
    fn write(&self, want: Want) -> Result<(String, Timestamp), Failure> {
        let note = Note::ours(want);
        let text = serde_json::to_vec(&note).expect("a lock is plain data");
        let sealed = self.seal.close(&text);
        let name = name_of(&sealed);
        // Known to live before anybody can see it.
        living().insert(name.clone());
        let written = self.store.write(File::new(Kind::Lock, &name), &[Bytes::from(sealed)]);
        match written {
            Ok(()) => Ok((name, note.time)),
            Err(error) => {
                self.forget(&name);
                Err(self.failure(&error))
            }
        }
    }

    /// Removes a lock of ours. If that fails, the next of us removes it, since no process lives for it.
    fn forget(&self, name: &str) {
        let _ = self.store.remove(File::new(Kind::Lock, name));
        living().remove(name);
    }

    fn nobody_else(&self, want: Want, ours: Option<&str>) -> Result<(), Failure> {
        for Seen { name, note } in self.all()? {
            if ours == Some(name.as_str()) {
                continue;
            }
            let short = name.get(..8).unwrap_or(&name);
            let Some(note) = note else {
                return Err(self.locked(&format!(
                    "by lock {short}, which cannot be read; once nobody uses the repository, run \
                     `restic unlock --remove-all`"
                )));
            };
            if want == Want::Shared && !note.exclusive {
                continue;
            }
            let sort = if note.exclusive { "exclusively " } else { "" };
            let next = match note.is_stale(Timestamp::now()) {
                true => "; it is stale: set unlock, or run `restic unlock`",
                false => "",
            };
            return Err(self.locked(&format!(
                "{sort}by {}@{} (process {}) since {}{next}",
                note.username,
                note.hostname,
                note.pid,
                note.time.strftime("%Y-%m-%dT%H:%M:%SZ")
            )));
        }
        Ok(())
    }

    fn locked(&self, by: &str) -> Failure {
        let message = format!("repository {} is locked {by}", self.location);
        Failure::new(Reason::RepositoryLocked, message)
    }

    /// Renews the lock until it is given back.
    fn renew(&self, want: Want, held: &Held, end: &(Mutex<bool>, Condvar)) {
        let mut pause = RENEWED_AFTER;
        loop {
            let is_over = end.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (is_over, _) = end
                .1
                .wait_timeout_while(is_over, pause, |is_over| !*is_over)
                .unwrap_or_else(PoisonError::into_inner);
            if *is_over {
                return;
            }
            drop(is_over);
            pause = match self.renew_once(want, held) {
                Ok(()) => RENEWED_AFTER,
                Err(_) => TRIED_AGAIN_AFTER,
            };
        }
    }

    /// Writes a new lock and removes the old one. Once the old one is gone, somebody has decided that
    /// we are dead and may have begun to remove: then there is no way back.
    fn renew_once(&self, want: Want, held: &Held) -> Result<(), Failure> {
        let old = held.name();
        match self.store.read(File::new(Kind::Lock, &old)) {
            Err(StoreError::Missing(_)) => {
                held.is_lost.store(true, Ordering::SeqCst);
                return Ok(());
            }
            Err(error) => return Err(self.failure(&error)),
            Ok(_) => {}
        }
        held.check()?;
        let (name, time) = self.write(want)?;
        held.set(name, time);
        self.forget(&old);
        Ok(())
    }
}

/// What there is to know about a lock that we have.
pub(crate) struct Held {
    state: Mutex<Option<(String, Timestamp)>>,
    is_lost: AtomicBool,
}

impl Held {
    fn set(&self, name: String, time: Timestamp) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some((name, time));
    }

    fn name(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(|(name, _)| name.clone()).unwrap_or_default()
    }

    /// Whether we may still act on it, as far as can be known without asking the repository.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let time = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.as_ref().map(|(_, time)| *time)
        };
        let age = time.map(|time| Timestamp::now().duration_since(time));
        let is_fresh = age.is_some_and(|age| age < DOUBTED_AFTER);
        if is_fresh && !self.is_lost.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(Failure::new(
            Reason::RepositoryLocked,
            "our lock was not renewed in time or was removed by somebody else; nothing more is \
             written, and the next attempt starts anew",
        ))
    }
}

/// A lock that we have, until it is dropped.
pub(crate) struct Lock {
    locks: Locks,
    held: Arc<Held>,
    end: Arc<(Mutex<bool>, Condvar)>,
    renewer: Option<JoinHandle<()>>,
}

impl Lock {
    pub(crate) fn held(&self) -> Arc<Held> {
        self.held.clone()
    }

    /// A way to ask the repository itself whether the lock is still there.
    pub(crate) fn asker(&self) -> impl Fn() -> Result<(), Failure> + Send + Sync + use<> {
        let (locks, held) = (self.locks.clone(), self.held.clone());
        move || {
            held.check()?;
            // It may be renewed between the two looks, so the name is asked for again.
            for _ in 0..3 {
                let name = held.name();
                match locks.store.read(File::new(Kind::Lock, &name)) {
                    Ok(_) => return Ok(()),
                    Err(StoreError::Missing(_)) if held.name() != name => {}
                    Err(StoreError::Missing(_)) => held.is_lost.store(true, Ordering::SeqCst),
                    Err(error) => return Err(locks.failure(&error)),
                }
            }
            held.check()
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        *self.end.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end.1.notify_all();
        if let Some(renewer) = self.renewer.take() {
            let _ = renewer.join();
        }
        self.locks.forget(&self.held.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::random;
    use crate::settings::Settings;
    use std::collections::BTreeMap;

    fn locks(folder: &tempfile::TempDir) -> Locks {
        let keys = BTreeMap::from([
            ("RESTIC_REPOSITORY".to_owned(), folder.path().display().to_string()),
            ("RESTIC_PASSWORD".to_owned(), "x".to_owned()),
        ]);
        let settings = Settings::from_secret(&keys, None).unwrap();
        let store = crate::store::open(&settings).unwrap();
        Locks { store, seal: Seal::from_bytes(&random()), location: settings.location() }
    }

    /// Somebody else's lock, as restic writes it.
    fn foreign(locks: &Locks, change: impl FnOnce(&mut Note)) -> String {
        let mut note = Note { interlock: None, ..Note::ours(Want::Shared) };
        note.hostname = "elsewhere".to_owned();
        note.username = "somebody".to_owned();
        change(&mut note);
        let sealed = locks.seal.close(&serde_json::to_vec(&note).unwrap());
        let name = name_of(&sealed);
        locks.store.write(File::new(Kind::Lock, &name), &[sealed.into()]).unwrap();
        name
    }

    fn minutes_ago(minutes: i64) -> Timestamp {
        Timestamp::now() - SignedDuration::from_mins(minutes)
    }

    fn count(locks: &Locks) -> usize {
        locks.store.list(Kind::Lock).unwrap().len()
    }

    #[test]
    fn shared_locks_go_together_and_an_exclusive_one_with_none() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(&folder);
        let one = locks.acquire(Want::Shared, false).unwrap();
        let two = locks.acquire(Want::Shared, false).unwrap();
        let failure = locks.acquire(Want::Exclusive, true).map(|_| ()).unwrap_err();
        assert_eq!(failure.reason, Reason::RepositoryLocked);
        drop((one, two));
        let exclusive = locks.acquire(Want::Exclusive, false).unwrap();
        assert!(locks.acquire(Want::Shared, true).is_err());
        drop(exclusive);
        assert_eq!(count(&locks), 0);
    }

    #[test]
    fn whoever_has_it_is_named_and_since_when() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(&folder);
        foreign(&locks, |note| {
            note.exclusive = true;
            note.pid = 4711;
        });
        let failure = locks.acquire(Want::Shared, true).map(|_| ()).unwrap_err();
        let year = Timestamp::now().strftime("since %Y-").to_string();
        for word in ["exclusively", "somebody@elsewhere", "4711", &year] {
            assert!(failure.message.contains(word), "{failure}");
        }
        assert_eq!(count(&locks), 1, "a living lock stays");
    }

    #[test]
    fn a_stale_lock_of_others_goes_only_when_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(&folder);
        foreign(&locks, |note| {
            note.exclusive = true;
            note.time = minutes_ago(31);
        });
        let failure = locks.acquire(Want::Shared, false).map(|_| ()).unwrap_err();
        assert!(failure.message.contains("stale"), "{failure}");
        locks.acquire(Want::Shared, true).unwrap();
        assert_eq!(count(&locks), 0);
    }

    #[test]
    fn a_lock_of_this_host_goes_when_its_process_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(&folder);
        foreign(&locks, |note| {
            note.hostname = host::name();
            note.pid = i64::from(std::process::id());
        });
        assert_eq!(locks.sweep(true).unwrap(), 0, "it runs");
        let gone = i64::from(i32::MAX);
        foreign(&locks, |note| {
            note.hostname = host::name();
            note.pid = gone;
        });
        foreign(&locks, |note| note.pid = gone);
        assert_eq!(locks.sweep(false).unwrap(), 0, "nobody asked");
        assert_eq!(locks.sweep(true).unwrap(), 1, "the one of another host stays");
    }

    #[test]
    fn our_own_dead_locks_go_by_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(&folder);
        // Of a thread of this process that could not remove it.
        let (name, _) = locks.write(Want::Exclusive).unwrap();
        assert!(locks.acquire(Want::Shared, false).is_err());
        living().remove(&name);
        locks.acquire(Want::Shared, false).unwrap();
        // Of another machine of ours that stopped to renew it.
        let mut elsewhere = serde_json::to_value(Process::this()).unwrap();
        elsewhere["token"] = "another".into();
        elsewhere["boot"] = "another".into();
        let process: Process = serde_json::from_value(elsewhere).unwrap();
        foreign(&locks, |note| note.interlock = Some(process.clone()));
        assert_eq!(locks.sweep(false).unwrap(), 0, "it may live");
        foreign(&locks, |note| {
            note.interlock = Some(process);
            note.time = minutes_ago(31);
        });
        assert_eq!(locks.sweep(false).unwrap(), 1);
    }

    #[test]
    fn a_lock_that_cannot_be_read_is_honoured_and_one_without_content_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(&folder);
        let name = "a".repeat(64);
        locks.store.write(File::new(Kind::Lock, &name), &[]).unwrap();
        drop(locks.acquire(Want::Exclusive, false).unwrap());
        locks.store.write(File::new(Kind::Lock, &name), &[Bytes::from_static(b"?")]).unwrap();
        let failure = locks.acquire(Want::Shared, true).map(|_| ()).unwrap_err();
        assert!(failure.message.contains("cannot be read"), "{failure}");
    }

    #[test]
    fn a_lock_that_somebody_removed_or_that_was_not_renewed_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(&folder);
        let lock = locks.acquire(Want::Shared, false).unwrap();
        let ask = lock.asker();
        ask().unwrap();
        locks.store.remove(File::new(Kind::Lock, &lock.held.name())).unwrap();
        lock.held.check().unwrap();
        assert_eq!(ask().unwrap_err().reason, Reason::RepositoryLocked);
        lock.held.check().unwrap_err();
        let lock = locks.acquire(Want::Shared, false).unwrap();
        let name = lock.held.name();
        lock.held.set(name, minutes_ago(26));
        lock.held.check().unwrap_err();
    }

    #[test]
    fn renewing_writes_a_new_lock_and_removes_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let locks = locks(&folder);
        let lock = locks.acquire(Want::Shared, false).unwrap();
        let old = lock.held.name();
        locks.renew_once(Want::Shared, &lock.held).unwrap();
        assert_ne!(lock.held.name(), old);
        assert_eq!(locks.store.list(Kind::Lock).unwrap()[0].0, lock.held.name());
        assert_eq!(count(&locks), 1);
        // Once it was removed, it is not written again: somebody acts on our death.
        locks.store.remove(File::new(Kind::Lock, &lock.held.name())).unwrap();
        locks.renew_once(Want::Shared, &lock.held).unwrap();
        assert_eq!(count(&locks), 0);
        lock.held.check().unwrap_err();
    }
}
