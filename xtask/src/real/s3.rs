//! An S3 server that is not ours: moto's, out of its Python package.

use super::python;
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const PACKAGE: &str = "moto[s3,server]==5.1.4";
const BUCKET: &str = "bucket";

/// The server; it ends with this.
pub(super) struct S3 {
    server: Child,
    address: String,
}

impl S3 {
    /// Gets the package once, starts the server, and makes a bucket.
    pub(super) fn start() -> anyhow::Result<S3> {
        let folder = python::package("moto", PACKAGE)?;
        let mut server = Command::new("python3")
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONPATH", &folder)
            .env("PYTHONUNBUFFERED", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start python3")?;
        let said = server.stderr.take().context("the server says nothing")?;
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.split("http://").nth(1).map(str::to_owned));
        // Whoever does not read what it says would stop it in the end.
        std::thread::spawn(move || lines.for_each(drop));
        let mut s3 = S3 { server, address: String::new() };
        s3.address = address.context("moto's server does not say where it listens")?;
        let make = format!(
            "import urllib.request as u; u.urlopen(u.Request('http://{}/{BUCKET}', method='PUT'))",
            s3.address.trim()
        );
        let made = Command::new("python3").args(["-c", &make]).status();
        if !made.is_ok_and(|made| made.success()) {
            bail!("moto's server makes no bucket");
        }
        Ok(s3)
    }

    /// What tests are reported it.
    pub(super) fn settings(&self) -> [(&'static str, String); 3] {
        let repository = format!("s3:http://{}/{BUCKET}/test", self.address.trim());
        [
            ("INTERLOCK_S3_REPOSITORY", repository),
            ("AWS_ACCESS_KEY_ID", "any".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "key".to_owned()),
        ]
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
