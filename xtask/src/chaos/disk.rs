//! The disk of the hub: a file system of its own, in memory, that can be made full. To mount one needs root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How large it is while it is not full. It takes no more memory than is written to it.
const SIZE: &str = "4g";

/// A file system that is mounted; it goes with this.
pub(crate) struct Disk {
    at: PathBuf,
}

impl Disk {
    /// Mounts one on a folder; None: this user may not.
    pub(crate) fn mount(at: &Path) -> Option<Disk> {
        let options = format!("size={SIZE},mode=700");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "interlock-chaos"]).arg(at);
        is_done(&mut mount).then(|| Disk { at: at.to_owned() })
    }

    /// Takes away one that a run left that could not end.
    pub(crate) fn unmount_left(at: &Path) {
        is_done(Command::new("umount").arg("-l").arg(at));
    }

    /// Leaves no room on it; whether there is none. Nothing is written for that: its size becomes what is used of it, which
    /// fails if somebody writes at that very moment.
    pub(crate) fn fill(&self) -> bool {
        self.used_kib().is_some_and(|used| used > 0 && self.resize(&format!("{used}k")))
    }

    /// Gives it its room back.
    pub(crate) fn free(&self) {
        self.resize(SIZE);
    }

    fn resize(&self, size: &str) -> bool {
        let mut mount = Command::new("mount");
        is_done(mount.args(["-o", &format!("remount,size={size}")]).arg(&self.at))
    }

    fn used_kib(&self) -> Option<u64> {
        let said = Command::new("df").args(["--output=used", "-k"]).arg(&self.at).output().ok()?;
        String::from_utf8(said.stdout).ok()?.lines().last()?.trim().parse().ok()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Disk::unmount_left(&self.at);
    }
}

fn is_done(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
