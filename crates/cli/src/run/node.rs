//! This machine, as the Node of a cluster whose pods are its processes.

use interlock_workloads::node::Machine;
use std::fs;
use std::path::Path;

/// How many pods a cluster may have on its one node: that of kubelet, times ten, since a process costs less.
const MOST_PODS: u32 = 1_100;

/// This machine. Each cluster on it has a Node of its own, which bears the name of the cluster.
pub(super) fn of_this_machine(name: &str, boot_id: &str) -> Machine {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let kernel = rustix::system::uname();
    Machine {
        name: name.to_owned(),
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes().unwrap_or(0),
        disk_bytes: disk_bytes(Path::new("/")).unwrap_or(0),
        pods: MOST_PODS,
        boot_id: boot_id.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        architecture: architecture(std::env::consts::ARCH).to_owned(),
        operating_system: std::env::consts::OS.to_owned(),
        kernel_version: kernel.release().to_string_lossy().into_owned(),
    }
}

/// As Kubernetes calls it.
fn architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn memory_bytes() -> Option<u64> {
    total_of(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn disk_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    found.f_blocks.checked_mul(found.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_in_the_words_of_kubernetes() {
        let machine = of_this_machine("west", "b");
        assert!(machine.processors > 0 && machine.memory_bytes > 0, "{machine:?}");
        assert_eq!(architecture("x86_64"), "amd64");
        assert_eq!(total_of("MemFree: 1 kB\nMemTotal:  2048 kB\n"), Some(2_097_152));
        assert_eq!(total_of("MemTotal: many"), None);
    }
}
