//! What is in a tree, in 64 letters that a shell script can recompute.
//!
//! The digest is the BLAKE3 hash of the sorted lines of all names below the root, in hexadecimal.
//! Lines are sorted by their bytes (`LC_ALL=C sort`), and each ends with a newline:
//!
//! ```text
//! type mode uid:gid size mtime content path
//! type mode uid:gid size mtime content path -> target
//! ```
//!
//! | field | what |
//! |---|---|
//! | type | as `find -printf %y`: `f` file, `d` folder, `l` link, `p` fifo, `c` and `b` devices |
//! | mode | octal without leading zeros, as `%m` |
//! | uid:gid | numbers, as `%U:%G` |
//! | size | bytes of a file, of the target of a link; else `0` |
//! | mtime | seconds since 1970, a dot, nine digits of nanoseconds; before 1970 the seconds are rounded down |
//! | content | BLAKE3 of a file's bytes; `major:minor` of a device, decimal; else `-` |
//! | path | below the root, without `./`; a backslash is `\\`, a newline `\n`; else its bytes |
//! | target | of links only, written likewise |
//!
//! Not in it: the root itself, for a repository does not have it; sockets, which no snapshot has;
//! which names share one file, and extended attributes. `digest.sh` beside this file says the same
//! in shell.

use super::Content;
use super::content;
use super::error::Failure;
use super::fault::{Fault, Purpose};
use super::progress::{Cancellation, Counters};
use super::tree::{self, Named, Root};
use super::walk::{Visitor, WalkedFolder, walk};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use std::collections::HashSet;
use std::ffi::CStr;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One entry of a tree, as it goes into the digest.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) stat: Stat,
    pub(super) what: What,
    /// Its names; more than one if they are links to one file.
    pub(super) paths: Vec<Vec<u8>>,
}

/// What tells entries of one type apart, beyond what every entry has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A file with this content.
    File([u8; 32]),
    /// A file of which nobody has read the content: it shares the blocks of another.
    Unread,
    /// A link to this.
    Link(Vec<u8>),
    /// A device.
    Device,
    /// A folder or a fifo.
    Bare,
}

/// The lines of a tree, so far.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<Vec<u8>>);

impl Lines {
    /// Adds a line for each name of the entry.
    pub(super) fn add(&mut self, entry: &Entry) {
        let fields = fields(entry);
        for path in &entry.paths {
            let mut line = Vec::with_capacity(fields.len() + path.len() + 1);
            line.extend_from_slice(fields.as_bytes());
            escape(path, &mut line);
            if let What::Link(target) = &entry.what {
                line.extend_from_slice(b" -> ");
                escape(target, &mut line);
            }
            line.push(b'\n');
            self.0.push(line);
        }
    }

    /// The digest of them all.
    pub(super) fn digest(mut self) -> String {
        self.0.sort_unstable();
        let mut hasher = blake3::Hasher::new();
        for line in &self.0 {
            hasher.update(line);
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// Everything of a line that is before the path.
fn fields(entry: &Entry) -> String {
    let stat = &entry.stat;
    let letter = match tree::kind(stat) {
        FileType::RegularFile => 'f',
        FileType::Directory => 'd',
        FileType::Symlink => 'l',
        FileType::Fifo => 'p',
        FileType::CharacterDevice => 'c',
        FileType::BlockDevice => 'b',
        FileType::Socket => 's',
        FileType::Unknown => '?',
    };
    let size = match &entry.what {
        What::File(_) | What::Unread => stat.st_size,
        What::Link(target) => target.len() as i64,
        What::Device | What::Bare => 0,
    };
    let mut fields = String::with_capacity(160);
    let written = write!(
        fields,
        "{letter} {:o} {}:{} {size} {}.{:09} {} ",
        stat.st_mode & 0o7777,
        stat.st_uid,
        stat.st_gid,
        stat.st_mtime,
        stat.st_mtime_nsec,
        content_field(entry),
    );
    written.expect("writing to a string does not fail");
    fields
}

fn content_field(entry: &Entry) -> String {
    match &entry.what {
        What::File(hash) => blake3::Hash::from_bytes(*hash).to_hex().to_string(),
        What::Device => {
            let device = entry.stat.st_rdev;
            format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
        }
        What::Unread | What::Link(_) | What::Bare => "-".to_owned(),
    }
}

fn escape(bytes: &[u8], line: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            byte => line.push(*byte),
        }
    }
}

/// Reads a whole tree, and says what is in it.
pub fn digest_of(folder: &Path) -> Result<Content, Failure> {
    read(folder, &Counters::default(), &Cancellation::never())
}

/// The same, with counters and a cancellation.
pub(super) fn read(
    folder: &Path,
    counters: &Counters,
    cancellation: &Cancellation,
) -> Result<Content, Failure> {
    let purpose = Purpose { what: "read", path: folder.to_owned() };
    let root = Root::open(folder).map_err(|error| purpose.unopened(&error))?;
    let reading = Reading { counters, cancellation, found: Mutex::default() };
    walk(&root, cancellation, &reading).into_result(&purpose)?;
    let found = reading.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Content { files: found.files, bytes: found.bytes, digest: found.lines.digest() })
}

struct Reading<'a> {
    counters: &'a Counters,
    cancellation: &'a Cancellation,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    lines: Lines,
    files: u64,
    bytes: u64,
    /// The files with several names whose bytes are counted.
    counted: HashSet<(u64, u64)>,
}

impl Visitor for Reading<'_> {
    type Beside = ();

    fn enter(&self, path: &[u8], folder: &OwnedFd, _: &[Named]) -> Result<(), Fault> {
        if path.is_empty() {
            return Ok(());
        }
        let stat = rustix::fs::fstat(folder).map_err(|error| Fault::Source(error.into()))?;
        let entry = Entry { stat, what: What::Bare, paths: vec![path.to_owned()] };
        self.found.lock().unwrap_or_else(PoisonError::into_inner).lines.add(&entry);
        Ok(())
    }

    fn visit(&self, place: &WalkedFolder<()>, name: &CStr, buffer: &mut [u8]) -> Result<(), Fault> {
        let stat = tree::look(&place.folder, name).map_err(Fault::Source)?.ok_or(Fault::Changed)?;
        let what = match tree::kind(&stat) {
            FileType::RegularFile => What::File(self.hash(&place.folder, name, &stat, buffer)?),
            FileType::Symlink => What::Link(content::target_of(&place.folder, name)?),
            FileType::CharacterDevice | FileType::BlockDevice => What::Device,
            FileType::Fifo => What::Bare,
            FileType::Socket => return Ok(()),
            FileType::Directory | FileType::Unknown => return Err(Fault::Changed),
        };
        self.counters.add_file();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.files += 1;
        let is_first = stat.st_nlink <= 1 || found.counted.insert((stat.st_dev, stat.st_ino));
        if matches!(what, What::File(_)) && is_first {
            found.bytes += stat.st_size as u64;
        }
        found.lines.add(&Entry { stat, what, paths: vec![place.path_of(name)] });
        Ok(())
    }
}

impl Reading<'_> {
    fn hash(
        &self,
        at: &OwnedFd,
        name: &CStr,
        stat: &Stat,
        buffer: &mut [u8],
    ) -> Result<[u8; 32], Fault> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(at, name, flags, Mode::empty());
        let file = file.map_err(|error| Fault::Source(error.into()))?;
        let seen = rustix::fs::fstat(&file).map_err(|error| Fault::Source(error.into()))?;
        if !tree::is_unchanged(stat, &seen) {
            return Err(Fault::Changed);
        }
        content::hash(&file, &seen, content::Course::new(self.counters, self.cancellation, buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_end_a_line() {
        let mut line = Vec::new();
        escape(b"a\\n\nb\xff", &mut line);
        assert_eq!(line, b"a\\\\n\\nb\xff");
    }
}
