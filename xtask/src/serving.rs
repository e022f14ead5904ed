//! Our own API server, for other people's clients.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that does not start in this time does not start.
const TIMEOUT: Duration = Duration::from_secs(30);

/// `interlock serve` on an empty data directory, ended when this is dropped.
pub(crate) struct Serving {
    process: Child,
    kubeconfig: PathBuf,
}

impl Serving {
    pub(crate) fn start(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        let data = folder.join("data");
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data)?;
        let process = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("serve.log"))?)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut serving = Serving { process, kubeconfig: data.join("kubeconfig") };
        let started = Instant::now();
        // The kubeconfig is written when the address is known and taken.
        while !serving.kubeconfig.exists() {
            if serving.process.try_wait()?.is_some() || started.elapsed() > TIMEOUT {
                bail!("interlock serve did not start: see {}", folder.join("serve.log").display());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(serving)
    }

    /// Names the server and its administrator.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
