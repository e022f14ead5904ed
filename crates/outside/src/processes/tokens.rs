//! Files with tokens for a run: a reader sees the old token or the new one, never a part of one.
//!
//! The folders of the tokens are not in that of the run, so they outlive a restart of its command and are
//! not copied with a volume. What is noted beside them says when each was issued, and never what it is.

use super::error::{Error, Result};
use super::{Processes, durable, names};
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file with a token, and what is known of that token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenFile {
    /// The volume of the run that it is in.
    pub volume: String,
    /// Where in that volume.
    pub path: String,
    /// Who the token is for; none: the API server.
    pub audience: Option<String>,
    /// For how long the token was asked for.
    pub asked_seconds: u64,
    /// For how long it was given, from when it was issued.
    pub life_seconds: u64,
    /// When, by the clock of this machine.
    pub issued_unix_seconds: u64,
    /// Who may read the file, as in `chmod`.
    pub mode: u32,
}

impl TokenFile {
    fn is_over(&self, now: SystemTime) -> bool {
        let until = self.issued_unix_seconds.saturating_add(self.life_seconds);
        let until = UNIX_EPOCH.checked_add(Duration::from_secs(until));
        until.is_some_and(|until| until < now)
    }
}

impl Processes {
    /// The folder of a volume of tokens.
    pub fn token_folder(&self, id: &str, volume: &str) -> Result<PathBuf> {
        Ok(self.tokens_of(id)?.join("volumes").join(names::checked("volume", volume)?))
    }

    /// Puts a token into its file, and notes what is known of it. The note comes last: after a crash
    /// in between the token is asked for once more.
    pub fn write_token(&self, id: &str, file: &TokenFile, token: &str) -> Result<()> {
        let below = below(id, &file.path)?;
        let path = self.token_folder(id, &file.volume)?.join(below);
        if let Some(folder) = path.parent() {
            durable::make_folder(folder)?;
        }
        let own = self.tokens_of(id)?;
        replace(&own.join("new"), &path, token, file.mode)
            .map_err(|source| Error::Write { path: path.clone(), source })?;
        let mut files = noted(&own)?;
        files.retain(|known| (&known.volume, &known.path) != (&file.volume, &file.path));
        files.push(file.clone());
        let bytes = serde_json::to_vec_pretty(&files).map_err(io::Error::from);
        let notes = own.join(NOTES);
        let bytes = bytes.map_err(|source| Error::Write { path: notes.clone(), source })?;
        durable::replace(&notes, &bytes)
    }

    /// The files with tokens that a run has; None: it never had any.
    pub fn tokens(&self, id: &str) -> Result<Option<Vec<TokenFile>>> {
        let own = self.tokens_of(id)?;
        if !own.is_dir() {
            return Ok(None);
        }
        let mut files = noted(&own)?;
        files.retain(|file| {
            let folder = self.token_folder(id, &file.volume);
            let path = folder.and_then(|folder| Ok(folder.join(below(id, &file.path)?)));
            path.is_ok_and(|path| path.is_file())
        });
        Ok(Some(files))
    }

    /// Removes all files with tokens of a run.
    pub fn remove_tokens(&self, id: &str) -> Result<()> {
        let path = self.tokens_of(id)?;
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::Remove { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Removes what is left of runs that are gone, all of whose tokens are over: those whose end nobody
    /// was there to see.
    pub fn remove_tokens_that_are_over(&self, now: SystemTime) -> Result<()> {
        let path = self.directory.join(TOKENS);
        let failed = |source| Error::Read { path: path.clone(), source };
        for entry in fs::read_dir(&path).map_err(failed)? {
            let Ok(id) = entry.map_err(failed)?.file_name().into_string() else { continue };
            let files = self.tokens(&id)?.unwrap_or_default();
            let is_over = !files.is_empty() && files.iter().all(|file| file.is_over(now));
            if is_over && self.is_gone(&id)? {
                self.remove_tokens(&id)?;
            }
        }
        Ok(())
    }

    fn tokens_of(&self, id: &str) -> Result<PathBuf> {
        Ok(self.directory.join(TOKENS).join(names::checked("run", id)?))
    }
}

/// The folder of all tokens.
pub(super) const TOKENS: &str = "tokens";
const NOTES: &str = "notes.json";

/// Notes that cannot be read are none: the tokens are asked for once more.
fn noted(own: &Path) -> Result<Vec<TokenFile>> {
    let bytes = durable::read(&own.join(NOTES))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

/// The file is made elsewhere in the same file system and then moved: whoever lists the folder of the
/// volume sees tokens only.
fn replace(new: &Path, path: &Path, token: &str, mode: u32) -> io::Result<()> {
    let write = || {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(new)?;
        file.write_all(token.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
        fs::rename(new, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(new);
    })
}

/// A path in a volume of tokens: whatever could lead out of it is refused.
pub(super) fn below(id: &str, path: &str) -> Result<PathBuf> {
    let refused = |because| Error::Path { id: id.to_owned(), path: path.to_owned(), because };
    if path.contains('\0') {
        return Err(refused("it has a zero byte"));
    }
    let mut below = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => below.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::ParentDir | Component::Prefix(_) => {
                return Err(refused("it leads out of its volume"));
            }
        }
    }
    match below.as_os_str().is_empty() {
        true => Err(refused("it names no file")),
        false => Ok(below),
    }
}
