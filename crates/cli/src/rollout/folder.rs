//! A bundle on the disk of whoever asks: a folder of manifests, or files.

use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// The endings of files that are manifests; others in a folder are left alone.
const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];
/// How deep a folder is read: deeper than anybody nests manifests, and a loop of links ends here.
const DEEPEST: usize = 16;
/// What is read at most: a bundle has eight mebibytes in its compact form.
const MOST_BYTES: u64 = 64 << 20;

/// A file of manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Its path, below the folder that was named.
    pub(super) name: String,
    /// What is in it.
    pub(super) text: String,
}

/// The manifests of folders and files, in the order of their names; each folder is read with all that is below it.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Manifest>> {
    let mut found = Found::default();
    for path in paths {
        let metadata = fs::metadata(path);
        let metadata = metadata.with_context(|| format!("cannot read {}", path.display()))?;
        match metadata.is_dir() {
            true => found.folder(path, path, 0)?,
            false => found.file(path, &path.display().to_string())?,
        }
    }
    if found.manifests.is_empty() {
        let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        bail!(
            "{} has no manifests: files that end in .yaml, .yml or .json are read",
            named.join(", ")
        );
    }
    Ok(found.manifests)
}

#[derive(Debug, Default)]
struct Found {
    manifests: Vec<Manifest>,
    bytes: u64,
}

impl Found {
    fn folder(&mut self, top: &Path, folder: &Path, depth: usize) -> anyhow::Result<()> {
        if depth > DEEPEST {
            bail!("{} is nested too deep: more than {DEEPEST} folders", folder.display());
        }
        let cannot = || format!("cannot read the folder {}", folder.display());
        let entries = fs::read_dir(folder).with_context(cannot)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().with_context(cannot)?;
        paths.sort();
        for path in paths {
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
            if hidden {
                continue;
            }
            if path.is_dir() {
                self.folder(top, &path, depth + 1)?;
            } else if is_manifest(&path) {
                let name = path.strip_prefix(top).unwrap_or(&path).display().to_string();
                self.file(&path, &name)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &str) -> anyhow::Result<()> {
        let cannot = || format!("cannot read {}", path.display());
        self.bytes += fs::metadata(path).with_context(cannot)?.len();
        if self.bytes > MOST_BYTES {
            bail!("these manifests have more than {} MiB: split the bundle", MOST_BYTES >> 20);
        }
        let bytes = fs::read(path).with_context(cannot)?;
        let text = String::from_utf8(bytes);
        let text = text.with_context(|| format!("{} is not text in UTF-8", path.display()))?;
        self.manifests.push(Manifest { name: name.to_owned(), text });
        Ok(())
    }
}

fn is_manifest(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| MANIFESTS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_in_order_with_all_below_it_and_without_other_files() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("apps")).unwrap();
        for name in ["b.yaml", "apps/a.json", ".hidden.yaml", "README.md", "c.YML"] {
            fs::write(place.path().join(name), name).unwrap();
        }
        let found = read(&[place.path().to_owned()]).unwrap();
        let names: Vec<&str> = found.iter().map(|manifest| manifest.name.as_str()).collect();
        assert_eq!(names, ["apps/a.json", "b.yaml", "c.YML"]);
    }

    #[test]
    fn what_cannot_be_a_bundle_is_refused_with_its_name() {
        let place = tempfile::tempdir().unwrap();
        let refusal = |path: &Path| format!("{:#}", read(&[path.to_owned()]).unwrap_err());
        assert!(refusal(place.path()).contains("has no manifests"));
        assert!(refusal(&place.path().join("gone")).contains("cannot read"));
        fs::write(place.path().join("a.yaml"), [0xff, 0xfe]).unwrap();
        assert!(refusal(place.path()).contains("a.yaml is not text in UTF-8"));
    }
}
