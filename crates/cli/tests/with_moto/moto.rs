//! moto's server, and what boto3 finds there.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The folder with boto3 and moto.
fn packages() -> PathBuf {
    let folder = std::env::var_os("INTERLOCK_MOTO");
    folder
        .map(PathBuf::from)
        .expect("INTERLOCK_MOTO names the folder of Python packages: cargo xtask test-real")
}

/// moto's server; it ends with this.
pub(crate) struct Moto {
    server: Child,
    pub(crate) address: SocketAddr,
}

impl Moto {
    pub(crate) fn start() -> Moto {
        let mut server = Command::new("python3")
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONPATH", packages())
            .env("PYTHONUNBUFFERED", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.split("http://").nth(1).map(str::to_owned));
        // Whoever does not read what it says would stop it in the end.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.expect("moto says where it listens");
        Moto { server, address: address.trim().parse().unwrap() }
    }

    /// What boto3 finds.
    pub(crate) fn account(&self) -> Value {
        self.run(&[], &[])
    }

    /// What somebody else does, by boto3.
    pub(crate) fn run(&self, words: &[&str], more: &[(&str, String)]) -> Value {
        // Clones of one repository may share a build cache.
        let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test runs this");
        let script = Path::new(&here).join("tests/with_moto/account.py");
        let output = Command::new("python3")
            .arg(script)
            .args(words)
            .env("PYTHONPATH", packages())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SERVER", format!("http://{}", self.address))
            .envs(more.iter().cloned())
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
