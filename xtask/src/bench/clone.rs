//! Snapshots of volumes and volumes from snapshots, against `cp -a` of the same files, in turn; for root on
//! file systems of our own, so that nobody waits for what others write, and else on that of the build.

use super::cost::Cost;
use super::files::{self, Size, Sort};
use super::process::Directory;
use super::spread::{Rounds, time};
use super::{build_example, say_goals};
use crate::real::is_root;
use crate::say;
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the benchmark.
pub(crate) fn run(is_quick: bool) -> anyhow::Result<bool> {
    let clone = build_example("interlock-outside", "clone")?;
    let (rounds, part) = if is_quick { (1, 10) } else { (3, 1) };
    // So much, ten times as much, and a hundred times as much.
    let small = [200, 2_000, 20_000].map(|files| Size { files: files / part, bytes: 4 << 10 });
    let large = [5, 50, 500].map(|megabytes| Size { files: 1, bytes: (megabytes << 20) / part });
    say(
        "| file system | data | `cp -a` | snapshot, with digest | times as fast | volume from snapshot | times as fast | processor `cp -a` | snapshot | volume |",
    );
    say("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut missed = Vec::new();
    for place in FileSystem::all()? {
        for size in small.into_iter().chain(large) {
            let mut all = Rounds::default();
            place.measure(&clone, size, rounds, &mut all)?;
            let slow = tell(&place.title, &files::title(size), &all);
            missed.extend(slow.into_iter().filter(|_| !place.shares_blocks));
        }
    }
    say_goals(
        "at least 0.9 times as fast as `cp -a` on ext4, and independent of bytes elsewhere",
        &missed,
    );
    Ok(true)
}

/// A file system to copy on.
struct FileSystem {
    title: String,
    shares_blocks: bool,
    folder: PathBuf,
    // In this order: the one is in the other.
    _mount: Option<Mount>,
    _directory: Directory,
}

struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

impl FileSystem {
    fn all() -> anyhow::Result<Vec<Self>> {
        if !is_root() {
            say("not root: measured here only, and not where blocks can be shared");
            let directory = Directory::new("clone")?;
            let folder = directory.path().to_owned();
            let here = FileSystem {
                title: "here".to_owned(),
                shares_blocks: false,
                folder,
                _mount: None,
                _directory: directory,
            };
            return Ok(vec![here]);
        }
        let kinds = [("ext4", false), ("xfs", true), ("btrfs", true)];
        kinds.into_iter().map(|(kind, shares_blocks)| Self::mounted(kind, shares_blocks)).collect()
    }

    fn mounted(kind: &str, shares_blocks: bool) -> anyhow::Result<Self> {
        let directory = Directory::new(&format!("clone-{kind}"))?;
        let (file, folder) = (directory.path().join("file"), directory.path().join("mounted"));
        fs::File::create(&file)?.set_len(16 << 30)?;
        fs::create_dir(&folder)?;
        succeed(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&file))?;
        succeed(Command::new("mount").args(["-o", "loop"]).arg(&file).arg(&folder))?;
        let (title, mount) = (kind.to_owned(), Some(Mount(folder.clone())));
        Ok(FileSystem { title, shares_blocks, folder, _mount: mount, _directory: directory })
    }

    fn measure(
        &self,
        clone: &Path,
        size: Size,
        rounds: usize,
        all: &mut Rounds,
    ) -> anyhow::Result<()> {
        // One for each size: to remove it takes longer than to fill it.
        let folder = self.folder.join(files::title(size));
        fs::create_dir(&folder)?;
        let ours = |args: &[&str]| {
            let mut command = Command::new(clone);
            command.arg(&folder).args(args);
            command
        };
        succeed(&mut ours(&["empty", "source"]))?;
        let source = folder.join("volumes/bench/source");
        files::make(&source, Sort::Noise, size)?;
        for round in 0..rounds {
            let (snapshot, volume) = (format!("snapshot-{round}"), format!("volume-{round}"));
            let copy = folder.join(format!("copy-{round}"));
            let mut cp = Command::new("cp");
            cp.arg("-aT").arg(&source).arg(&copy);
            let mut each = [
                ("cp", cp),
                ("snapshot", ours(&["snapshot", &snapshot, "source"])),
                ("volume", ours(&["volume", &volume, &snapshot])),
            ];
            // Who is first changes from round to round.
            if round % 2 == 1 {
                each.rotate_left(1);
            }
            for (what, command) in &mut each {
                let cost = Cost::of(command, &folder)?;
                all.note(what, "seconds", cost.seconds);
                all.note(what, "processor", cost.processor_seconds);
            }
        }
        Ok(())
    }
}

/// Prints a line; returns what is slower than `cp`.
fn tell(place: &str, title: &str, all: &Rounds) -> Vec<String> {
    let seconds = |what: &str| all.of(what, "seconds").median;
    let processor = |what: &str| time(all.of(what, "processor").median * 1e6);
    let (cp, snapshot, volume) = (seconds("cp"), seconds("snapshot"), seconds("volume"));
    say(&format!(
        "| {place} | {title} | {} | {} | {:.2} | {} | {:.2} | {} | {} | {} |",
        time(cp * 1e6),
        time(snapshot * 1e6),
        cp / snapshot,
        time(volume * 1e6),
        cp / volume,
        processor("cp"),
        processor("snapshot"),
        processor("volume"),
    ));
    let ratios = [("a snapshot", cp / snapshot), ("a volume", cp / volume)];
    let missed = ratios.into_iter().filter(|(_, ratio)| *ratio < 0.9);
    missed.map(|(what, ratio)| format!("{place}, {title}, {what}: {ratio:.2}")).collect()
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
