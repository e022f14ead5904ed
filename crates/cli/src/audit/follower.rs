//! Reads logs of steps into an audit, once or for as long as they are written.

use anyhow::Context;
use interlock_programs::audit::{Audit, Finding, Report};
use interlock_shell::{Lines, Read};
use jiff::{SignedDuration, Timestamp};
use std::path::{Path, PathBuf};

/// A step that was decided this long ago has been recorded, unless it hangs: what promises say of it is final.
const SETTLED: SignedDuration = SignedDuration::from_secs(2);

/// Logs of steps, and what is found in them.
pub(crate) struct Follower {
    logs: Vec<Lines>,
    audit: Audit,
}

impl Follower {
    /// All that these logs have.
    pub(crate) fn of_all(directories: &[PathBuf]) -> anyhow::Result<Follower> {
        Follower::of(directories, Lines::all)
    }

    /// What a log has from its newest file on.
    pub(crate) fn of_newest(directory: PathBuf) -> anyhow::Result<Follower> {
        Follower::of(&[directory], Lines::from_newest)
    }

    fn of(
        directories: &[PathBuf],
        open: impl Fn(&Path) -> std::io::Result<Lines>,
    ) -> anyhow::Result<Follower> {
        let open = |directory: &PathBuf| {
            open(directory).with_context(|| {
                let directory = directory.display();
                format!(
                    "cannot read a log of steps in {directory}; `interlock up` writes one into audit in its data \
                     directory: name it with --log"
                )
            })
        };
        let logs = directories.iter().map(open).collect::<anyhow::Result<Vec<Lines>>>()?;
        Ok(Follower { logs, audit: Audit::default() })
    }

    /// Reads on; the steps that are not explained. More may follow in logs that are still written.
    pub(crate) fn read(&mut self, is_live: bool) -> anyhow::Result<Vec<Finding>> {
        let mut found = Vec::new();
        for (log, lines) in self.logs.iter_mut().enumerate() {
            while let Some(read) = lines.read_next().context("cannot read the log of steps")? {
                found.extend(match read {
                    Read::Line(line) => self.audit.hear(log, *line),
                    // The process was ended in the middle of a line; the next one says that it began.
                    Read::Torn(_) => Vec::new(),
                    Read::Unreadable { file, line, because } => {
                        tracing::warn!("{}, line {line}: {because}", file.display());
                        self.audit.unreadable()
                    }
                });
            }
        }
        let settled = Timestamp::now().checked_sub(SETTLED).ok();
        if let Some(settled) = settled.filter(|_| is_live) {
            found.extend(self.audit.pass(settled));
        }
        Ok(found)
    }

    /// What was found so far.
    pub(crate) fn report(&self) -> &Report {
        self.audit.report()
    }

    /// What was found, once nothing more comes.
    pub(crate) fn end(&mut self) -> Report {
        self.audit.end();
        self.audit.report().clone()
    }
}
