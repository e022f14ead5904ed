//! Reads logs of steps into an audit, once or for as long as they are written.

use anyhow::Context;
use interlock_kernel::Line;
use interlock_programs::audit::{Audit, Finding, Report};
use interlock_shell::{Lines, Read};
use jiff::{SignedDuration, Timestamp};
use std::path::{Path, PathBuf};

/// A step that was decided this long ago has been recorded, unless it hangs: what promises say of it is final.
const SETTLED: SignedDuration = SignedDuration::from_secs(2);

/// Logs of steps, and what is found in them.
pub(crate) struct Follower {
    logs: Vec<Log>,
    audit: Audit,
}

/// A log, read one line ahead.
struct Log {
    lines: Lines,
    next: Option<Read>,
    /// When the next line was written, or the last one before it of which that is known.
    time: Timestamp,
    /// Nothing was there when it was read last.
    is_at_end: bool,
}

impl Log {
    fn new(lines: Lines) -> Log {
        Log { lines, next: None, time: Timestamp::MIN, is_at_end: false }
    }

    /// The time of the next line, if there is one.
    fn ahead(&mut self) -> anyhow::Result<Option<Timestamp>> {
        if self.next.is_none() && !self.is_at_end {
            self.next = self.lines.read_next().context("cannot read the log of steps")?;
            self.is_at_end = self.next.is_none();
            if let Some(Read::Line(line)) = &self.next {
                match &**line {
                    Line::Begins(begins) => self.time = begins.time,
                    Line::Step(record) => self.time = record.time,
                    Line::Missing(_) => {}
                }
            }
        }
        Ok(self.next.is_some().then_some(self.time))
    }
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
        let logs = directories.iter().map(|directory| open(directory).map(Log::new));
        let logs = logs.collect::<anyhow::Result<Vec<Log>>>()?;
        Ok(Follower { logs, audit: Audit::default() })
    }

    /// Reads on; the steps that are not explained. More may follow in logs that are still written.
    pub(crate) fn read(&mut self, is_live: bool) -> anyhow::Result<Vec<Finding>> {
        let mut found = Vec::new();
        self.logs.iter_mut().for_each(|log| log.is_at_end = false);
        while let Some(log) = self.earliest()? {
            found.extend(match self.logs[log].next.take() {
                Some(Read::Line(line)) => self.audit.hear(log, *line),
                // The process was ended in the middle of a line; the next one says that it began.
                Some(Read::Torn(_)) | None => Vec::new(),
                Some(Read::Unreadable { file, line, because }) => {
                    tracing::warn!("{}, line {line}: {because}", file.display());
                    self.audit.unreadable()
                }
            });
        }
        let settled = Timestamp::now().checked_sub(SETTLED).ok();
        if let Some(settled) = settled.filter(|_| is_live) {
            found.extend(self.audit.pass(settled));
        }
        Ok(found)
    }

    /// The log whose next line was written first: logs of several programs are one story.
    fn earliest(&mut self) -> anyhow::Result<Option<usize>> {
        let mut earliest: Option<(Timestamp, usize)> = None;
        for (place, log) in self.logs.iter_mut().enumerate() {
            if let Some(time) = log.ahead()?
                && earliest.is_none_or(|(first, _)| time < first)
            {
                earliest = Some((time, place));
            }
        }
        Ok(earliest.map(|(_, place)| place))
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
