//! Writes the definitions of our own kinds, which are generated from their types and reviewed as
//! text: `crates/api/crds`.

use anyhow::{Context, Result};
use interlock_api::manifest::manifests;
use std::fs;
use std::path::Path;

/// Writes every definition anew, and removes those of kinds that are no more.
pub(crate) fn run(into: &Path) -> Result<()> {
    let manifests = manifests();
    fs::create_dir_all(into).with_context(|| format!("cannot make {}", into.display()))?;
    let entries = fs::read_dir(into).with_context(|| format!("cannot list {}", into.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", into.display()))?.path();
        let is_wanted = manifests.iter().any(|one| path.ends_with(&one.file_name));
        if !is_wanted {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    for manifest in manifests {
        let path = into.join(manifest.file_name);
        fs::write(&path, manifest.text)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
