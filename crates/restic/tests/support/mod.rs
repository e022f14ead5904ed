//! Folders with everything in them that a folder can have, and what they look like.

#![allow(dead_code, reason = "each test uses some of it")]

use interlock_restic::{Backup, Choice, Mark, Restore, Settings, Sort};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A folder that is gone afterwards, with places for a source, a repository and a target.
pub(crate) struct TestFolders(tempfile::TempDir);

impl TestFolders {
    pub(crate) fn new() -> Self {
        let place = TestFolders(tempfile::tempdir().unwrap());
        for folder in ["source", "target"] {
            fs::create_dir(place.0.path().join(folder)).unwrap();
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.path("source")
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    pub(crate) fn target(&self) -> PathBuf {
        self.path("target")
    }

    pub(crate) fn settings(&self) -> Settings {
        settings(&self.repository().display().to_string(), PASSWORD)
    }
}

pub(crate) const PASSWORD: &str = "correct horse";

pub(crate) fn settings(repository: &str, password: &str) -> Settings {
    let keys = BTreeMap::from([
        ("RESTIC_REPOSITORY".to_owned(), repository.to_owned()),
        ("RESTIC_PASSWORD".to_owned(), password.to_owned()),
    ]);
    Settings::from_secret(&keys, None).unwrap()
}

pub(crate) fn of(folder: &Path) -> Backup {
    Backup {
        folder: folder.to_owned(),
        sort: Sort::Snapshot,
        mark: Mark::Volsync,
        allow_empty: false,
        unlock: false,
    }
}

pub(crate) fn newest(into: &Path) -> Restore {
    Restore {
        into: into.to_owned(),
        choice: Choice::Newest { as_of: None, previous: 0 },
        delete_other_files: false,
        allow_empty: false,
        capacity_bytes: None,
        unlock: false,
    }
}

/// Bytes that look random and are the same every time.
pub(crate) fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub(crate) fn set_time(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Fills a folder with one of everything.
pub(crate) fn fill(folder: &Path) {
    let write = |name: &str, content: &[u8]| fs::write(folder.join(name), content).unwrap();
    write("empty", b"");
    write("one", b"1");
    write("page", &bytes(1, 4096));
    write("chunk", &bytes(2, 700_000));
    write("large", &bytes(3, 12_000_000));
    write("text", "all work and no play\n".repeat(50_000).as_bytes());
    write(" leading and trailing ", b"spaces");
    write("new\nline and \t tab", b"x");
    write("back\\slash \\x41 \"quotes\" 'and' `more`", b"y");
    write("ünïcödé 文字 🦀", b"z");
    write("-dash", b"--");
    write(&"long".repeat(60), b"long");
    fs::write(folder.join(OsStr::from_bytes(b"no utf-8 \xff\xfe\x80")), b"bytes").unwrap();
    fs::create_dir_all(folder.join("folder/inner/deep")).unwrap();
    fs::create_dir(folder.join("folder.with.dot")).unwrap();
    fs::create_dir(folder.join("empty folder")).unwrap();
    fs::create_dir(folder.join(OsStr::from_bytes(b"folder \xc3\x28"))).unwrap();
    write("folder/inner/deep/file", b"deep");
    write("folder.with.dot/file", b"dot");
    write("Case", b"upper");
    write("case", b"lower");
    holes(folder);
    links(folder);
    looks(folder);
}

fn holes(folder: &Path) {
    let file = fs::File::create(folder.join("holes")).unwrap();
    file.set_len(20 << 20).unwrap();
    file.write_all_at(b"in the middle", 9_999_999).unwrap();
    let file = fs::File::create(folder.join("hole at the end")).unwrap();
    file.set_len(3 << 20).unwrap();
    (&file).write_all(b"at the start").unwrap();
    fs::File::create(folder.join("only a hole")).unwrap().set_len(300_000).unwrap();
}

fn links(folder: &Path) {
    symlink("one", folder.join("link")).unwrap();
    symlink("/does/not/exist", folder.join("dangling")).unwrap();
    symlink(OsStr::from_bytes(b"to \xff"), folder.join("link to bytes")).unwrap();
    symlink("folder", folder.join("link to folder")).unwrap();
    fs::hard_link(folder.join("chunk"), folder.join("folder/same chunk")).unwrap();
    fs::hard_link(folder.join("chunk"), folder.join("again the chunk")).unwrap();
    fs::hard_link(folder.join("empty"), folder.join("folder.with.dot/same empty")).unwrap();
    rustix::fs::mknodat(
        CWD,
        folder.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o640),
        0,
    )
    .unwrap();
}

fn looks(folder: &Path) {
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("one", 0o400);
    mode("page", 0o4755);
    mode("text", 0o2750);
    mode("folder/inner", 0o1777);
    mode("empty folder", 0o500);
    let xattr = |name: &str, key: &str, value: &[u8]| {
        let set = rustix::fs::setxattr(folder.join(name), key, value, XattrFlags::empty());
        // Not every filesystem has them, and then they cannot be lost either.
        assert!(matches!(set, Ok(()) | Err(rustix::io::Errno::NOTSUP)), "{set:?}");
    };
    xattr("page", "user.colour", b"blue");
    xattr("page", "user.empty", b"");
    xattr("chunk", "user.bytes", &[0, 255, 10, 13]);
    xattr("folder", "user.folder", &bytes(9, 1500));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(folder.join("case"), Some(1234), Some(4321)).unwrap();
        std::os::unix::fs::lchown(folder.join("link"), Some(77), Some(78)).unwrap();
        std::os::unix::fs::lchown(folder.join("folder"), Some(1234), Some(5)).unwrap();
    }
    set_time(&folder.join("one"), 1, 1);
    set_time(&folder.join("page"), -86_400, 999_999_999);
    set_time(&folder.join("link"), 1_000_000_000, 5);
    set_time(&folder.join("folder/inner"), 1_234_567_890, 123_456_789);
    set_time(&folder.join("folder"), 4_000_000_000, 1);
}

/// What everything in a folder looks like, in words that can be compared.
pub(crate) fn look(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    look_into(folder, Path::new(""), &mut seen);
    // Numbers of files differ between folders; which names share one does not.
    let mut first = BTreeMap::new();
    let names: Vec<PathBuf> = seen.keys().cloned().collect();
    for path in names {
        let meta = fs::symlink_metadata(folder.join(&path)).unwrap();
        if !meta.is_dir() && meta.nlink() > 1 {
            let name = first.entry(meta.ino()).or_insert_with(|| path.clone()).clone();
            let line = seen.get_mut(&path).unwrap();
            line.push_str(&format!(" the same as {}", name.display()));
        }
    }
    seen
}

fn look_into(folder: &Path, inner: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder.join(inner)).unwrap() {
        let entry = entry.unwrap();
        let path = inner.join(entry.file_name());
        let whole = folder.join(&path);
        let meta = entry.metadata().unwrap();
        let kind = meta.file_type();
        let content = if kind.is_symlink() {
            format!("to {:?}", fs::read_link(&whole).unwrap())
        } else if kind.is_file() {
            let digest = Sha256::digest(fs::read(&whole).unwrap());
            format!("{} bytes {:x?}", meta.len(), &digest[..8])
        } else if kind.is_fifo() {
            "pipe".to_owned()
        } else {
            String::new()
        };
        let attributes = attributes(&whole);
        let line = format!(
            "{:o} {}:{} {}.{:09} {content} {attributes:?}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.mtime(),
            meta.mtime_nsec()
        );
        seen.insert(path.clone(), line);
        if kind.is_dir() {
            look_into(folder, &path, seen);
        }
    }
}

fn attributes(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut list = vec![0; 65_536];
    let Ok(length) = rustix::fs::llistxattr(path, &mut list[..]) else { return BTreeMap::new() };
    let names = list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let mut value = vec![0; 65_536];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            value.truncate(length);
            (String::from_utf8_lossy(name).into_owned(), value)
        })
        .collect()
}

/// Fails with the first difference, since all of both would fill the screen.
pub(crate) fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (look(one), look(other));
    for (path, line) in &one {
        let there = other.get(path).map_or("nothing", String::as_str);
        assert_eq!(line, there, "{}", path.display());
    }
    let extra: Vec<_> = other.keys().filter(|path| !one.contains_key(*path)).collect();
    assert!(extra.is_empty(), "{extra:?}");
}

/// The files in a folder of a repository, folders in it included.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    files
}
