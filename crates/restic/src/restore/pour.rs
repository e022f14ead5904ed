//! Goes through the folders of a snapshot and writes what is in them, on several threads.
//!
//! One thread makes folders, links and the rest; the others fill files. A folder gets its owner, mode
//! and times when the last of what is in it is done, which is when the last one drops it.

use super::Restore;
use super::blobs::Blobs;
use super::dress::{Dress, Undressed};
use super::target;
use crate::failure::{Failure, Reason};
use crate::watch::Watch;
use rustic_core::repofile::{Metadata, Node, NodeType};
use rustic_core::{DataId, TreeId};
use rustix::fs::{FileType, Mode, fstatvfs, ftruncate, mknodat, symlinkat, syncfs};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// A file with more pieces than this is filled by several threads at once, so many pieces each.
const PIECES: usize = 8;
/// What one thread takes at a time: so many files, or fewer if they have so many bytes. Handing over
/// costs more than writing a small file.
const BATCH_FILES: usize = 16;
const BATCH_BYTES: u64 = 1 << 20;
/// Batches that wait for a thread. Each file in them has its folder open.
const WAITING: usize = 8;
/// Zeros in a row of this many bytes are left out: the file has a hole there.
const HOLE: usize = 64 << 10;

/// What is poured, and what became of it so far.
pub(super) struct Pour<'a> {
    blobs: &'a Blobs,
    into: &'a Path,
    delete_other_files: bool,
    capacity_bytes: Option<u64>,
    watch: &'a Watch,
    shared: Arc<Shared>,
}

/// What was poured.
pub(super) struct Poured {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) deleted: u64,
}

#[derive(Default)]
struct Shared {
    failure: Mutex<Option<Failure>>,
    is_over: AtomicBool,
    files: AtomicU64,
    bytes: AtomicU64,
    /// What was written, holes aside.
    stored_bytes: AtomicU64,
    deleted: AtomicU64,
}

impl Shared {
    fn fail(&self, failure: Failure) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.is_over.store(true, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

/// A folder that is being filled.
struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    /// The root keeps what it looks like: a snapshot does not say.
    dress: Option<Dress>,
    was_there: bool,
    /// After its folders, so that it is dropped after them.
    _parent: Option<Arc<Folder>>,
    shared: Arc<Shared>,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let (Some(dress), false) = (&self.dress, self.shared.is_over())
            && let Err(error) = dress.put_on(&self.fd, self.was_there)
        {
            self.shared.fail(failed(&self.path, &Trouble::Dress(error)));
        }
    }
}

/// A file that is to be filled.
struct Filling {
    folder: Arc<Folder>,
    name: CString,
    /// Made already, where others link to it or fill it too.
    file: Option<OwnedFd>,
    dress: Dress,
    pieces_left: AtomicUsize,
}

/// Pieces of a file, from there on.
struct Task {
    filling: Arc<Filling>,
    from: u64,
    pieces: Vec<DataId>,
    /// How long the file is, where all of it is here.
    whole: Option<u64>,
}

/// Passes tasks to whoever fills files, some at a time.
struct Queue {
    sender: SyncSender<Vec<Task>>,
    batch: Vec<Task>,
    bytes: u64,
}

impl Queue {
    fn add(&mut self, task: Task, bytes: u64) {
        self.batch.push(task);
        self.bytes += bytes;
        if self.batch.len() == BATCH_FILES || self.bytes >= BATCH_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        self.bytes = 0;
        // Nobody listens only after a failure, which is noted already.
        let _ = self.sender.send(std::mem::take(&mut self.batch));
    }
}

/// Files with several names: the first name, and what is in it.
struct Links {
    /// What their paths begin at.
    root: Arc<Folder>,
    first: BTreeMap<(u64, u64), (PathBuf, Vec<DataId>)>,
}

/// A folder on the way.
struct Level {
    folder: Arc<Folder>,
    nodes: std::vec::IntoIter<Node>,
}

impl<'a> Pour<'a> {
    pub(super) fn new(blobs: &'a Blobs, watch: &'a Watch, job: &'a Restore) -> Self {
        Pour {
            blobs,
            into: &job.into,
            delete_other_files: job.delete_other_files,
            capacity_bytes: job.capacity_bytes,
            watch,
            shared: Arc::default(),
        }
    }

    /// Pours everything, and returns when it is on the disk for good.
    pub(super) fn run(
        self,
        root: OwnedFd,
        tree: TreeId,
        workers: usize,
    ) -> Result<Poured, Failure> {
        let (sender, receiver) = sync_channel(WAITING);
        let receiver = Mutex::new(receiver);
        let sync = root.try_clone().map_err(|error| {
            Failure::new(Reason::MoverFailed, format!("{}: {error}", self.into.display()))
        })?;
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| self.fill(&receiver));
            }
            let mut queue = Queue { sender, batch: Vec::new(), bytes: 0 };
            match self.walk(root, tree, &mut queue) {
                Ok(()) => queue.hand_over(),
                Err(failure) => self.shared.fail(failure),
            }
        });
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(failure) = failure {
            return Err(self.with_space(failure, &sync));
        }
        self.watch.still_wanted()?;
        syncfs(&sync).map_err(|error| self.failed(Path::new(""), error))?;
        Ok(Poured {
            files: self.shared.files.load(Ordering::SeqCst),
            bytes: self.shared.bytes.load(Ordering::SeqCst),
            deleted: self.shared.deleted.load(Ordering::SeqCst),
        })
    }

    /// Goes through all folders.
    fn walk(&self, root: OwnedFd, tree: TreeId, queue: &mut Queue) -> Result<(), Failure> {
        let root = Arc::new(Folder {
            fd: root,
            path: PathBuf::new(),
            dress: None,
            was_there: true,
            _parent: None,
            shared: self.shared.clone(),
        });
        let mut links = Links { root: root.clone(), first: BTreeMap::new() };
        let mut levels = vec![self.enter(root, tree)?];
        while let Some(level) = levels.last_mut() {
            if self.shared.is_over() {
                return Ok(());
            }
            self.watch.still_wanted()?;
            let Some(node) = level.nodes.next() else {
                levels.pop();
                continue;
            };
            let folder = level.folder.clone();
            let path = folder.path.join(node.name());
            if let (NodeType::Dir, Some(tree)) = (&node.node_type, node.subtree) {
                let inner = self.make_folder(folder, &node, path)?;
                levels.push(self.enter(inner, tree)?);
                continue;
            }
            self.shared.files.fetch_add(1, Ordering::SeqCst);
            self.watch.add_file();
            match node.node_type {
                NodeType::File => self.queue(folder, node, &mut links, queue)?,
                _ => self.make_special(&folder, node).map_err(|trouble| failed(&path, &trouble))?,
            }
        }
        Ok(())
    }

    /// Reads a folder of the snapshot, looks whether it can be one, and deletes what it does not have.
    fn enter(&self, folder: Arc<Folder>, tree: TreeId) -> Result<Level, Failure> {
        let nodes = self.blobs.tree(tree)?.nodes;
        let mut names = BTreeSet::new();
        for node in &nodes {
            let name = target::name(&node.name());
            let is_good = name.is_some_and(|name| names.insert(name));
            let has_folder = !node.is_dir() || node.subtree.is_some();
            if !is_good || !has_folder {
                return Err(Failure::new(
                    Reason::RepositoryDamaged,
                    format!(
                        "the folder /{} of the snapshot has a name in it twice, or one that cannot be",
                        folder.path.display()
                    ),
                ));
            }
        }
        if folder.was_there && self.delete_other_files {
            // What a filesystem check left at the top is not the tenant's.
            if folder.dress.is_none() {
                names.insert(c"lost+found".to_owned());
            }
            let deleted = target::clear_others(&folder.fd, &names);
            let deleted = deleted.map_err(|error| self.failed(&folder.path, error))?;
            self.shared.deleted.fetch_add(deleted, Ordering::SeqCst);
        }
        Ok(Level { folder, nodes: nodes.into_iter() })
    }

    fn make_folder(
        &self,
        parent: Arc<Folder>,
        node: &Node,
        path: PathBuf,
    ) -> Result<Arc<Folder>, Failure> {
        let name = target::name(&node.name()).unwrap_or_default();
        let (fd, was_there) =
            target::folder(&parent.fd, &name).map_err(|error| self.failed(&path, error))?;
        if was_there {
            // Else what is made in it would inherit its rules.
            let _ = rustix::fs::fremovexattr(&fd, "system.posix_acl_default");
        }
        Ok(Arc::new(Folder {
            fd,
            path,
            dress: Some(Dress::new(node.meta.clone())),
            was_there,
            _parent: Some(parent),
            shared: self.shared.clone(),
        }))
    }

    /// Links, devices, pipes, sockets.
    fn make_special(&self, folder: &Folder, node: Node) -> Result<(), Trouble> {
        let name = target::name(&node.name()).unwrap_or_default();
        let make = |kind, device| {
            target::replacing(&folder.fd, &name, || {
                mknodat(&folder.fd, &name, kind, Mode::RUSR | Mode::WUSR, device)
            })
        };
        match &node.node_type {
            NodeType::Symlink { .. } => {
                let to = node.node_type.to_link();
                target::replacing(&folder.fd, &name, || symlinkat(to, &folder.fd, &name))?;
            }
            NodeType::Dev { device } => make(FileType::BlockDevice, *device)?,
            NodeType::Chardev { device } => make(FileType::CharacterDevice, *device)?,
            NodeType::Fifo => make(FileType::Fifo, 0)?,
            NodeType::Socket => make(FileType::Socket, 0)?,
            NodeType::File | NodeType::Dir => {}
        }
        let is_link = node.is_symlink();
        Dress::new(node.meta).put_on_name(&folder.fd, &name, is_link)?;
        Ok(())
    }

    /// Passes a file to whoever fills files.
    fn queue(
        &self,
        folder: Arc<Folder>,
        node: Node,
        links: &mut Links,
        queue: &mut Queue,
    ) -> Result<(), Failure> {
        let name = target::name(&node.name()).unwrap_or_default();
        let path = folder.path.join(node.name());
        let content = node.content.unwrap_or_default();
        if content.is_empty() && node.meta.size > 0 {
            return Err(Failure::new(
                Reason::RepositoryDamaged,
                format!(
                    "the snapshot says that /{} has {} bytes, and has none of them",
                    path.display(),
                    node.meta.size
                ),
            ));
        }
        let mut must_be_there = false;
        if let Some(key) = several_names(&node.meta) {
            match links.first.get(&key) {
                Some((first, there)) if *there == content => {
                    target::link(&links.root.fd, first, &folder.fd, &name)
                        .map_err(|error| self.failed(&path, error))?;
                    return Ok(());
                }
                Some(_) => {}
                None => {
                    links.first.insert(key, (path.clone(), content.clone()));
                    must_be_there = true;
                }
            }
        }
        let is_split = content.len() > PIECES;
        let file = match must_be_there || is_split {
            true => {
                let made = target::file(&folder.fd, &name);
                Some(made.map_err(|error| self.failed(&path, error))?)
            }
            false => None,
        };
        let mut starts = Vec::with_capacity(content.len() / PIECES + 1);
        let mut length = 0;
        for (number, piece) in content.iter().enumerate() {
            if number % PIECES == 0 {
                starts.push(length);
            }
            length += self.blobs.length(piece)?;
        }
        if let (true, Some(file)) = (is_split, &file) {
            ftruncate(file, length).map_err(|error| self.failed(&path, error))?;
        }
        let filling = Arc::new(Filling {
            folder,
            name,
            file,
            dress: Dress::new(node.meta),
            pieces_left: AtomicUsize::new(content.chunks(PIECES).count().max(1)),
        });
        if !is_split {
            let task = Task { filling, from: 0, pieces: content, whole: Some(length) };
            queue.add(task, length);
            return Ok(());
        }
        for (pieces, from) in content.chunks(PIECES).zip(starts) {
            let filling = filling.clone();
            queue.add(Task { filling, from, pieces: pieces.to_vec(), whole: None }, BATCH_BYTES);
        }
        Ok(())
    }

    /// Fills files until there are no more.
    fn fill(&self, receiver: &Mutex<Receiver<Vec<Task>>>) {
        loop {
            let batch = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(batch) = batch else { return };
            for task in batch {
                if self.shared.is_over() || self.watch.is_cancelled() {
                    break;
                }
                if let Err(trouble) = self.fill_one(&task) {
                    let path = task.filling.folder.path.join(std::ffi::OsString::from(
                        task.filling.name.to_string_lossy().into_owned(),
                    ));
                    self.shared.fail(failed(&path, &trouble));
                }
            }
        }
    }

    fn fill_one(&self, task: &Task) -> Result<(), Trouble> {
        let filling = &*task.filling;
        let made;
        let file = match &filling.file {
            Some(file) => file,
            None => {
                made = target::file(&filling.folder.fd, &filling.name)?;
                &made
            }
        };
        let mut at = task.from;
        let mut end = 0;
        for piece in &task.pieces {
            let data = self.blobs.data(piece).map_err(Trouble::Blob)?;
            let written = write_with_holes(file, &data, at)?;
            self.fits(written.bytes)?;
            end = written.end.max(end);
            at += data.len() as u64;
            self.watch.add_bytes(data.len() as u64);
            if self.watch.is_cancelled() {
                return Ok(());
            }
        }
        if task.whole.is_some_and(|length| length > end) {
            ftruncate(file, at)?;
        }
        self.shared.bytes.fetch_add(at - task.from, Ordering::SeqCst);
        if filling.pieces_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            filling.dress.put_on(file, false)?;
        }
        Ok(())
    }

    /// Counts what was written. How much a snapshot takes is seen only here: it does not say where
    /// its files have holes.
    fn fits(&self, bytes: u64) -> Result<(), Trouble> {
        let all = self.shared.stored_bytes.fetch_add(bytes, Ordering::SeqCst) + bytes;
        let Some(capacity) = self.capacity_bytes.filter(|capacity| all > *capacity) else {
            return Ok(());
        };
        let has = self.watch.progress().of_bytes.map(|bytes| format!(" of its {bytes}"));
        let has = has.unwrap_or_default();
        let message = format!(
            "the volume may hold {capacity} bytes, and the snapshot needs more: {all}{has} bytes \
             were written when that was seen"
        );
        Err(Trouble::Blob(Failure::new(Reason::SizeMismatch, message)))
    }

    fn failed(&self, path: &Path, error: Errno) -> Failure {
        failed(path, &Trouble::System(error))
    }

    /// Says how much space there is, where that was the trouble.
    fn with_space(&self, failure: Failure, root: &OwnedFd) -> Failure {
        if failure.reason != Reason::TargetFull {
            return failure;
        }
        let free = fstatvfs(root).map_or(0, |space| space.f_bavail * space.f_frsize);
        let needed = match self.watch.progress().of_bytes {
            Some(bytes) => format!(", and the snapshot has {bytes}"),
            None => String::new(),
        };
        let message = format!("{}; {free} bytes are free{needed}", failure.message);
        Failure::new(Reason::TargetFull, message)
    }
}

/// What tells a file with several names apart, as restic does it.
fn several_names(meta: &Metadata) -> Option<(u64, u64)> {
    (meta.links > 1 && meta.inode != 0).then_some((meta.inode, meta.device_id))
}

/// What was written of a piece.
#[derive(Default)]
struct Written {
    /// Where the last of it ends in the file.
    end: u64,
    /// How much, holes aside.
    bytes: u64,
}

/// Writes data but for long runs of zeros.
fn write_with_holes(file: &OwnedFd, data: &[u8], at: u64) -> Result<Written, Errno> {
    let mut written = Written::default();
    let mut run = 0..0;
    for (number, part) in data.chunks(HOLE).enumerate() {
        let start = number * HOLE;
        let is_hole = part.len() == HOLE && is_zero(part);
        if !is_hole {
            run = if run.end == start && !run.is_empty() { run.start } else { start }
                ..start + part.len();
            continue;
        }
        if !run.is_empty() {
            written.end = write_all(file, &data[run.clone()], at + run.start as u64)?;
            written.bytes += run.len() as u64;
            run = 0..0;
        }
    }
    if !run.is_empty() {
        written.end = write_all(file, &data[run.clone()], at + run.start as u64)?;
        written.bytes += run.len() as u64;
    }
    Ok(written)
}

fn is_zero(part: &[u8]) -> bool {
    let (words, rest) = part.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

fn write_all(file: &OwnedFd, mut data: &[u8], mut at: u64) -> Result<u64, Errno> {
    while !data.is_empty() {
        match rustix::io::pwrite(file, data, at) {
            Ok(written) => {
                data = &data[written..];
                at += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

/// Why something could not be made as the snapshot has it.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    System(#[from] Errno),
    #[error(transparent)]
    Dress(#[from] Undressed),
    #[error(transparent)]
    Blob(Failure),
}

fn failed(path: &Path, trouble: &Trouble) -> Failure {
    let errno = match trouble {
        Trouble::Blob(failure) => return failure.clone(),
        Trouble::System(error) | Trouble::Dress(Undressed::System(error)) => Some(*error),
        Trouble::Dress(Undressed::Attribute(_, error) | Undressed::Refused(_, error)) => {
            Some(*error)
        }
        Trouble::Dress(Undressed::Other(_)) => None,
    };
    let reason = match errno {
        Some(Errno::NOSPC | Errno::DQUOT) => Reason::TargetFull,
        _ => Reason::MoverFailed,
    };
    Failure::new(reason, format!("cannot restore /{}: {trouble}", path.display()))
}
