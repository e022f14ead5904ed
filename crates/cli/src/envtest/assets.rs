//! The programs in the directory that `KUBEBUILDER_ASSETS` names.

use crate::output;
use anyhow::Context;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes the programs, each a few lines of shell, and prints the setting.
pub(super) fn write(directory: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let directory = std::path::absolute(directory)
        .with_context(|| format!("cannot use {}", directory.display()))?;
    let interlock = std::env::current_exe().context("cannot find the file of this program")?;
    let interlock = quoted(&interlock)?;
    for name in ["kube-apiserver", "etcd"] {
        install(&directory.join(name), &format!("exec {interlock} envtest {name} \"$@\""))?;
    }
    install(&directory.join("kubectl"), &kubectl(&directory)?)?;
    output::say(&format!("export KUBEBUILDER_ASSETS={}\n", quoted(&directory)?))?;
    Ok(ExitCode::SUCCESS)
}

/// The kubectl of the machine. Most tests never start it, so a machine without one is no error before they do.
fn kubectl(directory: &Path) -> anyhow::Result<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder != directory);
    match folders.map(|folder| folder.join("kubectl")).find(|file| file.is_file()) {
        Some(file) => Ok(format!("exec {} \"$@\"", quoted(&file)?)),
        None => Ok("echo 'no kubectl on the PATH: install one, then run: interlock envtest assets' >&2\nexit 127"
            .to_owned()),
    }
}

/// Replaces a program; one that runs keeps its own.
fn install(path: &Path, line: &str) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let new = PathBuf::from(format!("{}.new", path.display()));
    let text = format!("#!/bin/sh\n# Written by `interlock envtest assets`.\n{line}\n");
    std::fs::write(&new, text).with_context(failed)?;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).with_context(failed)?;
    std::fs::rename(&new, path).with_context(failed)
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().with_context(|| format!("{} is no text", path.display()))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_whatever_is_in_it() {
        assert_eq!(quoted(Path::new("/a b/it's")).expect("it is text"), r"'/a b/it'\''s'");
    }
}
