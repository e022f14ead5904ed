//! Volumes as folders, and where a run finds them.

use super::error::{Error, Result};
use super::start::Run;
use super::{Processes, durable, names};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Names one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume<'a> {
    /// The workload cluster that has it.
    pub cluster: &'a str,
    /// The namespace in that cluster.
    pub namespace: &'a str,
    /// The claim, or whatever else tells the volumes of one namespace apart.
    pub claim: &'a str,
}

/// A volume in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The name of the volume in the Pod; `INTERLOCK_VOLUME_<NAME>` is made of it.
    pub name: String,
    /// Where it appears below the folder of the run.
    pub path: String,
    /// The folder that it is.
    pub directory: PathBuf,
}

impl Processes {
    /// The folder of the volume, whether it is there or not.
    pub fn volume_directory(&self, volume: Volume<'_>) -> Result<PathBuf> {
        let mut path = self.directory.join("volumes");
        path.push(names::checked("cluster", volume.cluster)?);
        path.push(names::checked("namespace", volume.namespace)?);
        path.push(names::checked("claim", volume.claim)?);
        Ok(path)
    }

    /// Makes the folder of the volume, if it is not there, and returns it.
    pub fn create_volume(&self, volume: Volume<'_>) -> Result<PathBuf> {
        let path = self.volume_directory(volume)?;
        durable::make_folder(&path)?;
        for folder in path.ancestors().take(3) {
            durable::sync_folder_of(folder)
                .map_err(|source| Error::Prepare { path: folder.to_owned(), source })?;
        }
        Ok(path)
    }

    /// Whether the volume is there.
    pub fn volume_exists(&self, volume: Volume<'_>) -> Result<bool> {
        let path = self.volume_directory(volume)?;
        match fs::symlink_metadata(&path) {
            Ok(found) => Ok(found.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Makes the folder of a run afresh, with a link for each mount, and returns the folder in
    /// which its command is to run.
    pub(super) fn prepare_root(&self, run: &Run) -> Result<PathBuf> {
        let root = self.root(run)?;
        let mounts = mount_paths(run)?;
        let folder = root.join(below(run, run.working_directory.as_deref().unwrap_or("/"))?);
        match fs::remove_dir_all(&root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Remove { path: root, source: error });
            }
            _ => durable::make_folder(&root)?,
        }
        for (path, mount) in mounts {
            let link = root.join(path);
            if let Some(parent) = link.parent() {
                durable::make_folder(parent)?;
            }
            std::os::unix::fs::symlink(&mount.directory, &link)
                .map_err(|source| Error::Prepare { path: link, source })?;
        }
        durable::make_folder(&folder)?;
        Ok(folder)
    }

    /// The variables that tell a command where its volumes are.
    pub(super) fn mount_variables(&self, run: &Run) -> Result<BTreeMap<String, PathBuf>> {
        let mut variables = BTreeMap::from([("INTERLOCK_ROOT".to_owned(), self.root(run)?)]);
        for mount in &run.mounts {
            let name = variable_of(&mount.name);
            let earlier = variables.insert(name.clone(), mount.directory.clone());
            // One volume may be mounted twice, but one variable has one value.
            if earlier.is_some_and(|earlier| earlier != mount.directory) {
                let because = "two volumes would have it";
                return Err(Error::Variable { id: run.id.clone(), name, because });
            }
        }
        Ok(variables)
    }

    fn root(&self, run: &Run) -> Result<PathBuf> {
        Ok(self.run_folder(&run.id)?.join("root"))
    }
}

fn variable_of(volume: &str) -> String {
    let letter = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter.to_ascii_uppercase(),
        false => '_',
    };
    format!("INTERLOCK_VOLUME_{}", volume.chars().map(letter).collect::<String>())
}

/// Each mount with its path below the folder of the run.
fn mount_paths(run: &Run) -> Result<BTreeMap<PathBuf, &Mount>> {
    let mut paths: BTreeMap<PathBuf, &Mount> = BTreeMap::new();
    for mount in &run.mounts {
        let refused =
            |because| Error::Path { id: run.id.clone(), path: mount.path.clone(), because };
        let path = below(run, &mount.path)?;
        if path.as_os_str().is_empty() {
            return Err(refused("a volume cannot be the whole folder of a run"));
        }
        if paths.keys().any(|other| other.starts_with(&path) || path.starts_with(other)) {
            // The inner link would be made inside of the outer volume, and stay there.
            return Err(refused("a volume cannot be mounted in or over another one"));
        }
        if !mount.directory.is_absolute() {
            return Err(refused("the folder of its volume is not an absolute path"));
        }
        paths.insert(path, mount);
    }
    Ok(paths)
}

/// A path of a container as one below the folder of the run.
fn below(run: &Run, path: &str) -> Result<PathBuf> {
    let refused = |because| Error::Path { id: run.id.clone(), path: path.to_owned(), because };
    if path.contains('\0') {
        return Err(refused("it has a zero byte"));
    }
    let mut below = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => below.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(refused("it has `..`")),
        }
    }
    Ok(below)
}
