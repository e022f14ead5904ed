//! A directory with volumes and snapshots in it, trees to put there, and a second pair of eyes.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use interlock_outside::volumes::{
    Content, Failure, FromSnapshot, LocalVolumes, Made, NewVolume, Volumes,
};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const CLUSTER: &str = "9d2f6a54-5a57-4b52-9d36-8f0a6f1f6e11";

pub struct Shelves {
    // Before the directory, so that its threads are over when that goes.
    pub volumes: LocalVolumes,
    pub directory: tempfile::TempDir,
}

impl Shelves {
    pub fn new() -> Shelves {
        let directory = tempfile::tempdir().unwrap();
        Shelves { volumes: LocalVolumes::open(directory.path(), CLUSTER).unwrap(), directory }
    }

    /// On no disk, where that can be: nothing waits for what others write to the disk.
    pub fn in_memory() -> Shelves {
        let memory = Path::new("/dev/shm");
        let directory = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let directory = directory.unwrap();
        Shelves { volumes: LocalVolumes::open(directory.path(), CLUSTER).unwrap(), directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// An empty volume, and its folder.
    pub fn volume(&self, handle: &str) -> PathBuf {
        self.volumes.make_volume(&empty(handle)).unwrap();
        self.until_volume(handle);
        self.volumes.volume_path(handle).unwrap()
    }

    pub fn snapshot(&self, handle: &str, volume: &str) -> Content {
        self.volumes.take_snapshot(handle, volume).unwrap();
        self.until_snapshot(handle)
    }

    pub fn until_volume(&self, handle: &str) -> Content {
        whole(until_settled(|| self.volumes.volume_state(handle).unwrap()))
    }

    pub fn until_snapshot(&self, handle: &str) -> Content {
        whole(until_settled(|| self.volumes.snapshot_state(handle).unwrap()))
    }

    pub fn volume_failure(&self, handle: &str) -> Failure {
        failure(until_settled(|| self.volumes.volume_state(handle).unwrap()))
    }

    pub fn snapshot_failure(&self, handle: &str) -> Failure {
        failure(until_settled(|| self.volumes.snapshot_state(handle).unwrap()))
    }

    pub fn snapshot_path(&self, handle: &str) -> PathBuf {
        self.path().join("snapshots").join(CLUSTER).join(handle)
    }

    /// What is in the folders of volumes and snapshots besides whole ones and locks.
    pub fn leftovers(&self) -> Vec<String> {
        leftovers(self.path())
    }
}

pub fn leftovers(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for kind in ["volumes", "snapshots"] {
        for entry in fs::read_dir(root.join(kind).join(CLUSTER)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.starts_with(".partial") || name.starts_with(".deleted") {
                found.push(name);
            }
        }
    }
    found
}

pub fn empty(handle: &str) -> NewVolume {
    let owner = "shop".to_owned();
    NewVolume { handle: handle.to_owned(), owner, capacity_bytes: 1 << 40, from: None }
}

pub fn from(handle: &str, snapshot: &str, digest: &str) -> NewVolume {
    let from = Some(FromSnapshot { handle: snapshot.to_owned(), digest: digest.to_owned() });
    NewVolume { from, ..empty(handle) }
}

pub fn until_settled(state: impl Fn() -> Made) -> Made {
    let mut seen = Made::Missing;
    until("it is made", || {
        seen = state();
        !matches!(seen, Made::Making(_))
    });
    seen
}

#[track_caller]
pub fn whole(made: Made) -> Content {
    let Made::Whole(content) = made else { panic!("{made:?}") };
    content
}

#[track_caller]
pub fn failure(made: Made) -> Failure {
    let Made::Failed(failure) = made else { panic!("{made:?}") };
    failure
}

/// Looks until it is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(180);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Everything that a walker without any of our code sees of a tree. Two names of one file have the
/// same number; holes are seen by the blocks.
pub fn seen(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    let mut stack = vec![root.to_owned()];
    while let Some(path) = stack.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        let below = path.strip_prefix(root).unwrap().to_owned();
        let kind = found.file_type();
        if kind.is_socket() {
            continue;
        }
        let mut text = format!(
            "{:o} {}:{} {}.{:09}",
            found.mode(),
            found.uid(),
            found.gid(),
            found.mtime(),
            found.mtime_nsec()
        );
        if kind.is_dir() {
            stack.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if kind.is_symlink() {
            text += &format!(" -> {:?}", fs::read_link(&path).unwrap());
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            let sum = bytes
                .iter()
                .fold(7_u64, |sum, byte| sum.wrapping_mul(1_099_511_628_211) ^ u64::from(*byte));
            text += &format!(" {} bytes {sum:x}", bytes.len());
        } else {
            text += &format!(" device {}", found.rdev());
        }
        if !kind.is_symlink() && !kind.is_fifo() {
            text += &format!(" {:?}", attributes(&path));
        }
        if found.nlink() > 1 && !kind.is_dir() {
            let next = numbers.len();
            // Numbered by the first name, which the sorting below makes the same for both trees.
            let number = *numbers.entry((found.dev(), found.ino())).or_insert(next);
            text += &format!(" file#{number}");
        }
        seen.insert(below, text);
    }
    with_first_names(seen)
}

/// Replaces the numbers of files by the first of their names.
fn with_first_names(seen: BTreeMap<PathBuf, String>) -> BTreeMap<PathBuf, String> {
    let mut first: BTreeMap<String, PathBuf> = BTreeMap::new();
    let named = seen.into_iter().map(|(path, text)| match text.rsplit_once(" file#") {
        None => (path, text),
        Some((front, number)) => {
            let first = first.entry(number.to_owned()).or_insert_with(|| path.clone());
            let text = format!("{front} same as {first:?}");
            (path, text)
        }
    });
    named.collect()
}

fn attributes(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut names = vec![0; 4096];
    let count = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let names = names[..count].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let value = |name: &[u8]| {
        let mut value = vec![0; 65536];
        let count = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
        value.truncate(count);
        (String::from_utf8_lossy(name).into_owned(), value)
    };
    names.map(value).collect()
}

/// A folder with one of everything.
pub fn one_of_everything(root: &Path) {
    fs::write(root.join("plain"), "hello").unwrap();
    fs::write(root.join("empty"), "").unwrap();
    fs::create_dir_all(root.join("folder/inner/innermost")).unwrap();
    fs::create_dir(root.join("bare folder")).unwrap();
    fs::write(root.join("folder/inner/file"), vec![7; 300_000]).unwrap();
    fs::write(root.join("Case"), "upper").unwrap();
    fs::write(root.join("case"), "lower").unwrap();
    fs::write(root.join("new\nline and \\ and  spaces "), "odd").unwrap();
    fs::write(root.join(OsString::from_vec(b"not utf-8 \xff\xfe".to_vec())), "bytes").unwrap();
    fs::write(root.join("n".repeat(255)), "long").unwrap();
    fs::write(root.join(".partial-trick"), "a file like any other").unwrap();
    std::os::unix::fs::symlink("plain", root.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at all -> x\n", root.join("link to nowhere")).unwrap();
    std::os::unix::fs::symlink("folder", root.join("link to a folder")).unwrap();
    fs::hard_link(root.join("plain"), root.join("second name")).unwrap();
    fs::hard_link(root.join("plain"), root.join("folder/third name")).unwrap();
    fs::hard_link(root.join("link"), root.join("second name of a link")).unwrap();
    sparse(&root.join("holes"));
    rustix::fs::mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .unwrap();
    drop(std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap());
    for (name, mode) in
        [("plain", 0o640), ("empty", 0o4755), ("Case", 0o444), ("bare folder", 0o1777)]
    {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for name in ["folder/inner/file", "bare folder"] {
        let (key, value) = ("user.interlock.test", b"kept \0 whole");
        rustix::fs::setxattr(root.join(name), key, value, XattrFlags::empty()).unwrap();
    }
    if is_root() {
        let (uid, gid) = (Uid::from_raw(1234), Gid::from_raw(5678));
        rustix::fs::chown(root.join("case"), Some(uid), Some(gid)).unwrap();
        let link = root.join("link to nowhere");
        rustix::fs::chownat(CWD, link, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let null = rustix::fs::makedev(1, 3);
        rustix::fs::mknodat(CWD, root.join("null"), FileType::CharacterDevice, Mode::RUSR, null)
            .unwrap();
    }
    fs::set_permissions(root.join("folder/inner"), fs::Permissions::from_mode(0o550)).unwrap();
    for (name, seconds) in [("plain", 1_000_000_000), ("link", -5), ("folder", 4_000_000_000)] {
        set_time(&root.join(name), seconds, 123_456_789);
    }
}

/// Holes at the beginning, in the middle and at the end.
pub fn sparse(path: &Path) {
    let file = fs::File::create(path).unwrap();
    file.write_all_at(b"first", 1 << 20).unwrap();
    file.write_all_at(&[9; 70_000], 5 << 20).unwrap();
    file.set_len(9 << 20).unwrap();
}

pub fn set_time(path: &Path, tv_sec: i64, tv_nsec: i64) {
    let time = Timespec { tv_sec, tv_nsec };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Makes a random tree, or changes one at random: each call adds, replaces and removes some.
pub fn scramble(root: &Path, random: &mut Random, steps: u64) {
    for _ in 0..steps {
        let folder = some_folder(root, random);
        let path = folder.join(name(random));
        let there = fs::symlink_metadata(&path).ok();
        match random.below(12) {
            0 if there.is_some() => drop(match there.unwrap().is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            }),
            1 | 2 => drop(fs::create_dir(&path)),
            3 => drop(std::os::unix::fs::symlink(name(random), &path)),
            4 => {
                let other = some_folder(root, random).join(name(random));
                let is_file = fs::symlink_metadata(&other).is_ok_and(|found| !found.is_dir());
                if is_file {
                    drop(fs::hard_link(other, &path));
                }
            }
            5 if there.is_none() => sparse(&path),
            6 if there.is_none() => {
                rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
            }
            7 if there.as_ref().is_some_and(|found| !found.is_symlink()) => {
                let mode = 0o700 | (random.below(0o7777) as u32 & 0o7077);
                drop(fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
            }
            8 if there.is_some() => {
                set_time(
                    &path,
                    random.below(2_000_000_000) as i64,
                    random.below(1_000_000_000) as i64,
                );
            }
            9 if there.as_ref().is_some_and(|found| found.is_file() || found.is_dir()) => {
                let value = random.next().to_string();
                rustix::fs::setxattr(&path, "user.random", value.as_bytes(), XattrFlags::empty())
                    .unwrap();
            }
            // The same length and time, other bytes: only reading tells.
            10 if there.as_ref().is_some_and(|found| found.is_file() && found.len() > 0) => {
                let found = there.unwrap();
                let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&[random.next() as u8], random.below(found.len())).unwrap();
                set_time(&path, found.mtime(), found.mtime_nsec());
            }
            _ if there.as_ref().is_none_or(|found| found.is_file()) => {
                let length = [0, 1, 100, 5000, 70_000, 600_000][random.below(6) as usize];
                fs::write(&path, vec![random.next() as u8; length]).unwrap();
            }
            _ => {}
        }
    }
}

fn name(random: &mut Random) -> OsString {
    let names: [&[u8]; 12] = [
        b"a",
        b"A",
        b"b",
        b"c d",
        b"e\nf",
        b"g\\h",
        b"\xff",
        b"i",
        b".interlock-new-0",
        b".interlock-link-0",
        b"..j",
        b"k -> l",
    ];
    OsString::from_vec(names[random.below(names.len() as u64) as usize].to_vec())
}

fn some_folder(root: &Path, random: &mut Random) -> PathBuf {
    let mut path = root.to_owned();
    for _ in 0..random.below(5) {
        let next = path.join(name(random));
        if fs::symlink_metadata(&next).is_ok_and(|found| found.is_dir()) {
            path = next;
        }
    }
    path
}

/// Random enough to choose what to do.
pub struct Random(pub u64);

impl Random {
    /// Seeded by the clock; the seed is printed, so that a failure can be repeated.
    pub fn new() -> Random {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = match std::env::var("INTERLOCK_TEST_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => since.as_nanos() as u64 | 1,
        };
        println!("INTERLOCK_TEST_SEED={seed}");
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit.max(1)
    }
}

/// The path as bytes, for names that are no text.
pub fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}
