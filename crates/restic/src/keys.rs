//! The key files of a repository: the key that seals everything, itself sealed with a password.

use crate::failure::{Failure, Reason};
use crate::seal::{Seal, name_of, random};
use crate::store::{File, Kind, Store, StoreError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use jiff::Timestamp;
use rustic_core::repofile::MasterKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How a password is stretched in key files that we write: as restic does on most machines, 32 MiB.
const LOG_N: u8 = 15;
const R: u32 = 8;
const P: u32 = 5;

/// Who writes key files decides how much memory opening them takes, and repositories are written by
/// tenants.
const MOST_MEMORY: u64 = 1 << 30;

/// What passwords were stretched to lately, by the digest of password and parameters. Stretching takes a quarter of a
/// second of the processor and 32 MiB and more, on purpose, and a volume that is saved each minute would pay that each
/// minute. Who can read this memory can read the password itself, which is in the Secret that the process watches.
static STRETCHED: Stretched = Stretched::new();
/// How many of them are kept: a few hundred bytes each.
const STRETCHED_KEPT: usize = 256;

/// Stretched passwords by their digests, the oldest first.
struct Stretched(Mutex<VecDeque<([u8; 32], Seal)>>);

/// A key file, as restic writes it.
#[derive(Serialize, Deserialize)]
struct KeyFile {
    #[serde(default)]
    created: Option<String>,
    #[serde(default)]
    hostname: String,
    #[serde(default)]
    username: String,
    kdf: String,
    #[serde(rename = "N")]
    n: u32,
    r: u32,
    p: u32,
    salt: String,
    data: String,
}

/// The key of a repository, and which file it was in.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) seal: Seal,
    pub(crate) master: MasterKey,
}

/// All keys that the password opens. More than one only where several were added with one password, or
/// two tried to make the repository at once.
pub(crate) fn find(
    store: &dyn Store,
    password: &str,
    location: &str,
) -> Result<Vec<Found>, Failure> {
    let trouble = |error: StoreError| error.failure(location);
    let mut names = match store.list(Kind::Key) {
        Err(StoreError::Missing(_)) => Vec::new(),
        names => names.map_err(trouble)?,
    };
    names.sort();
    let mut found = Vec::new();
    for (name, _) in names {
        let content = match store.read(File::new(Kind::Key, &name)) {
            // Removed while we looked.
            Err(StoreError::Missing(_)) => continue,
            content => content.map_err(trouble)?,
        };
        let damaged = || {
            Failure::new(
                Reason::RepositoryDamaged,
                format!("repository {location}: keys/{name} makes no sense; run `restic check`"),
            )
        };
        let file: KeyFile = serde_json::from_slice(&content).map_err(|_| damaged())?;
        let sealed = BASE64.decode(&file.data).map_err(|_| damaged())?;
        let outer = file.stretched(password).ok_or_else(damaged)?;
        let Some(text) = outer.open(&sealed) else { continue };
        let master: MasterKey = serde_json::from_slice(&text).map_err(|_| damaged())?;
        let seal = Seal::from_master(&master).ok_or_else(damaged)?;
        found.push(Found { name, seal, master });
    }
    Ok(found)
}

/// Writes a new key, sealed with the password.
pub(crate) fn create(store: &dyn Store, password: &str, location: &str) -> Result<Found, Failure> {
    let master = MasterKey::new();
    let seal = Seal::from_master(&master).expect("a new key has the lengths of a key");
    let mut file = KeyFile {
        created: Some(Timestamp::now().to_string()),
        hostname: crate::host::name(),
        username: "interlock".to_owned(),
        kdf: "scrypt".to_owned(),
        n: 1 << LOG_N,
        r: R,
        p: P,
        salt: BASE64.encode(random::<64>()),
        data: String::new(),
    };
    let outer = file.stretched(password).expect("our own parameters are good ones");
    let text = serde_json::to_vec(&master).expect("a key is plain data");
    file.data = BASE64.encode(outer.close(&text));
    let content = serde_json::to_vec(&file).expect("a key file is plain data");
    let name = name_of(&content);
    store
        .write(File::new(Kind::Key, &name), &[Bytes::from(content)])
        .map_err(|error| error.failure(location))?;
    Ok(Found { name, seal, master })
}

impl KeyFile {
    /// What the password becomes with these parameters; nothing if they make no sense.
    fn stretched(&self, password: &str) -> Option<Seal> {
        let memory = 128 * u64::from(self.n) * u64::from(self.r);
        let is_sane = self.kdf == "scrypt"
            && self.n.is_power_of_two()
            && self.n > 1
            && memory <= MOST_MEMORY
            && self.p <= 64;
        let log_n = u8::try_from(self.n.trailing_zeros()).ok().filter(|_| is_sane)?;
        let parameters = scrypt::Params::new(log_n, self.r, self.p).ok()?;
        let salt = BASE64.decode(&self.salt).ok()?;
        STRETCHED.get_or(self.digest(password, &salt), || {
            let mut stretched = [0; 64];
            scrypt::scrypt(password.as_bytes(), &salt, &parameters, &mut stretched).ok()?;
            Some(Seal::from_bytes(&stretched))
        })
    }

    /// Of all that the stretched password depends on. The lengths keep password and salt apart.
    fn digest(&self, password: &str, salt: &[u8]) -> [u8; 32] {
        let mut digest = Sha256::new();
        for part in [password.as_bytes(), salt] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
        for number in [self.n, self.r, self.p] {
            digest.update(number.to_le_bytes());
        }
        digest.finalize().into()
    }
}

impl Stretched {
    const fn new() -> Self {
        Stretched(Mutex::new(VecDeque::new()))
    }

    /// What is kept under the digest, or what `stretch` makes. Nobody waits for somebody else's password: two who open
    /// one repository for the first time at once both stretch it.
    fn get_or(&self, digest: [u8; 32], stretch: impl FnOnce() -> Option<Seal>) -> Option<Seal> {
        let lately = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, seal)) = lately().iter().find(|(of, _)| *of == digest) {
            return Some(seal.clone());
        }
        let seal = stretch()?;
        let mut lately = lately();
        if lately.len() >= STRETCHED_KEPT {
            lately.pop_front();
        }
        lately.push_back((digest, seal.clone()));
        Some(seal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(salt: &str, p: u32) -> KeyFile {
        let (kdf, salt, data) = ("scrypt".to_owned(), BASE64.encode(salt), String::new());
        let (hostname, username) = (String::new(), String::new());
        KeyFile { created: None, hostname, username, kdf, n: 2, r: 8, p, salt, data }
    }

    #[test]
    fn a_password_is_stretched_once_with_the_same_parameters_and_anew_with_others() {
        let sealed = file("salt", 1).stretched("secret").unwrap().close(b"text");
        let opens = |file: KeyFile, password| file.stretched(password).unwrap().open(&sealed);
        assert_eq!(opens(file("salt", 1), "secret").as_deref(), Some(&b"text"[..]));
        assert_eq!(opens(file("salt", 1), "secret?"), None);
        assert_eq!(opens(file("salt?", 1), "secret"), None);
        assert_eq!(opens(file("salt", 2), "secret"), None);
        // What moves from the password to the salt makes another digest.
        assert_eq!(opens(file("tsalt", 1), "secre"), None);
        let digest = file("salt", 1).digest("secret", b"salt");
        assert!(STRETCHED.get_or(digest, || panic!("it is stretched again")).is_some());
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        // Not in the one that all share: the test beside this one would find its password gone.
        let stretched = Stretched::new();
        for number in 0..2 * STRETCHED_KEPT {
            let digest = Sha256::digest(number.to_le_bytes()).into();
            stretched.get_or(digest, || Some(Seal::from_bytes(&[0; 64])));
        }
        assert!(stretched.0.lock().unwrap().len() <= STRETCHED_KEPT);
    }
}
