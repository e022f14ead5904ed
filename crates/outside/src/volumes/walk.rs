//! Visits everything in a tree, by several threads.

use super::crew::Crew;
use super::fault::{Fault, Faults};
use super::progress::Cancellation;
use super::tree::{self, Named, Root};
use rustix::fd::OwnedFd;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, PoisonError};

/// How many files one piece of work is.
const BATCH: usize = 64;

/// What is done on a walk.
pub(super) trait Visitor: Sync {
    /// What is kept open beside a folder while its files are visited.
    type Beside: Send + Sync;

    /// Comes to a folder, before anything in it; the path of the root is empty.
    fn enter(&self, path: &[u8], folder: &OwnedFd, names: &[Named]) -> Result<Self::Beside, Fault>;

    /// Comes to anything that is not a folder.
    fn visit(
        &self,
        place: &WalkedFolder<Self::Beside>,
        name: &CStr,
        buffer: &mut [u8],
    ) -> Result<(), Fault>;
}

/// A folder on the walk.
pub(super) struct WalkedFolder<B> {
    pub(super) path: Vec<u8>,
    pub(super) folder: OwnedFd,
    pub(super) beside: B,
}

impl<B> WalkedFolder<B> {
    pub(super) fn path_of(&self, name: &CStr) -> Vec<u8> {
        tree::join(&self.path, name)
    }
}

enum Task<B> {
    Folder(Vec<u8>),
    Files(Arc<WalkedFolder<B>>, Vec<CString>),
}

/// Walks the whole tree, and returns what was wrong on the way.
pub(super) fn walk<V: Visitor>(root: &Root, cancellation: &Cancellation, visitor: &V) -> Faults {
    let faults = Mutex::new(Faults::default());
    Crew::work(vec![Task::Folder(Vec::new())], |task, crew, buffer| {
        let note = |path: &[u8], fault| {
            let mut faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
            if faults.note(path, fault) {
                crew.stop();
            }
        };
        match task {
            Task::Folder(path) => {
                let entered = cancellation.check().and_then(|()| enter(root, &path, visitor));
                match entered {
                    Ok(tasks) => crew.add(tasks),
                    Err(fault) => note(&path, fault),
                }
            }
            Task::Files(place, names) => {
                for name in names {
                    let visited = cancellation.check();
                    let visited = visited.and_then(|()| visitor.visit(&place, &name, buffer));
                    if let Err(fault) = visited {
                        note(&place.path_of(&name), fault);
                    }
                }
            }
        }
    });
    faults.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Enters a folder, and returns what is to be done there. Its files come last, and so are done
/// before the folders in it: then few folders are open at once.
fn enter<V: Visitor>(root: &Root, path: &[u8], visitor: &V) -> Result<Vec<Task<V::Beside>>, Fault> {
    let folder = root.folder(path).map_err(Fault::Source)?;
    let names = tree::list(&folder).map_err(Fault::Source)?;
    let beside = visitor.enter(path, &folder, &names)?;
    let place = Arc::new(WalkedFolder { path: path.to_owned(), folder, beside });
    let (folders, files): (Vec<_>, Vec<_>) = names.into_iter().partition(|named| named.is_folder);
    let folders = folders.iter().map(|named| Task::Folder(place.path_of(&named.name)));
    let files: Vec<_> = files.into_iter().map(|named| named.name).collect();
    let files = files.chunks(BATCH).map(|some| Task::Files(Arc::clone(&place), some.to_vec()));
    Ok(folders.chain(files).collect())
}
