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

/// How a password is stretched in key files that we write: as restic does on most machines, 32 MiB.
const LOG_N: u8 = 15;
const R: u32 = 8;
const P: u32 = 5;

/// Who writes key files decides how much memory opening them takes, and repositories are written by
/// tenants.
const MOST_MEMORY: u64 = 1 << 30;

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
        let mut stretched = [0; 64];
        scrypt::scrypt(password.as_bytes(), &salt, &parameters, &mut stretched).ok()?;
        Some(Seal::from_bytes(&stretched))
    }
}
