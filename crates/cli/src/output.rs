//! What goes to a person: answers to standard output, everything else to standard error. `screen`: a picture that stays
//! below all of it.

mod screen;

pub(crate) use screen::{Lines, Screen};

use anyhow::Context;
use clap::ValueEnum;
use interlock_checker::Progress;
use interlock_checker::render::thousands;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Readable text
    Text,
    /// JSON with a stable schema
    Json,
}

/// Prints an answer. A reader that has gone away (`| head`) is no error.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    match screen::write(&mut io::stdout(), text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write the answer")
        }
        _ => Ok(()),
    }
}

/// Prints an answer for programs.
pub(crate) fn say_json(answer: &impl Serialize) -> anyhow::Result<()> {
    let mut text =
        serde_json::to_string_pretty(answer).context("cannot write the answer as JSON")?;
    text.push('\n');
    say(&text)
}

/// Prints what went wrong.
pub(crate) fn complain(text: &str) {
    let _ = screen::write(&mut io::stderr(), format!("{text}\n").as_bytes());
}

/// Writes a file that was asked for, and says so.
pub(crate) fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    complain(&format!("wrote {}", path.display()));
    Ok(())
}

/// Whether answers may be coloured: on a terminal, unless the user said no.
pub(crate) fn color() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// A line on the terminal that is written over and over, and gone at the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgressLine {
    shown: Arc<AtomicBool>,
}

impl ProgressLine {
    pub(crate) fn is_wanted() -> bool {
        io::stderr().is_terminal()
    }

    pub(crate) fn show(&self, text: &str) {
        self.shown.store(true, Ordering::Relaxed);
        if !screen::set_line(text) {
            let _ = write!(io::stderr().lock(), "\r\x1b[2K{text}");
            let _ = io::stderr().flush();
        }
    }

    pub(crate) fn clear(&self) {
        if self.shown.swap(false, Ordering::Relaxed) && !screen::set_line("") {
            let _ = write!(io::stderr().lock(), "\r\x1b[2K");
        }
    }

    /// How far an exploration is.
    pub(crate) fn exploring(&self, name: &str, progress: &Progress) {
        let seconds = progress.elapsed.as_secs_f64();
        let stands_for = if progress.multiplier > 1 {
            format!(" (x {} by flags)", thousands(progress.multiplier))
        } else {
            String::new()
        };
        self.show(&format!(
            "{name}: {} states{stands_for}, depth {}, {} queued, {:.1} M steps/s, {} MiB, {}",
            thousands(progress.stored),
            progress.depth,
            thousands(progress.queued),
            progress.transitions as f64 / seconds.max(1e-9) / 1e6,
            progress.bytes >> 20,
            eta(progress),
        ));
    }
}

/// The queue shrinks towards the end of a search, and only then can the rest be estimated.
fn eta(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs_f64();
    let expanded = progress.stored.saturating_sub(progress.queued);
    if expanded == 0 || progress.queued * 4 > progress.stored {
        return format!("{seconds:.0} s so far");
    }
    let left = progress.queued as f64 * seconds / expanded as f64;
    format!("{seconds:.0} s so far, at least {left:.0} s left")
}

/// A flag that Ctrl-C sets; a second Ctrl-C ends at once.
pub(crate) fn stop_on_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}
