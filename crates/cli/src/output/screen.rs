//! A picture at the bottom of the terminal that is drawn again in place. Everything that is printed meanwhile goes above
//! it, so all that prints has to go through `write`.

use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The rows of a terminal that does not say how many it has.
const ROWS: usize = 24;
/// Rows that stay free for what is printed above.
const FREE_ROWS: usize = 4;

/// What is at the bottom of the terminal; None: nothing stays there.
static BOTTOM: Mutex<Option<Bottom>> = Mutex::new(None);

#[derive(Debug, Default)]
struct Bottom {
    /// A line that changes often, above the picture; empty: none.
    line: String,
    picture: String,
    /// How many rows of the terminal it takes now.
    rows: usize,
}

/// The right to draw at the bottom of the terminal. With its end everything is gone from there.
#[derive(Debug)]
pub(crate) struct Screen(());

impl Screen {
    /// None: nobody looks, or the terminal cannot move its cursor.
    pub(crate) fn begin() -> Option<Screen> {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if is_dumb || !io::stdout().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        *bottom() = Some(Bottom::default());
        Some(Screen(()))
    }

    /// Draws a picture in place of the last one.
    pub(crate) fn show(&self, picture: &str) {
        change(|bottom| picture.clone_into(&mut bottom.picture));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let ended = bottom().take();
        if let Some(ended) = ended {
            let _ = finish(&mut io::stdout(), &ended.lifted());
        }
    }
}

/// Standard error, line by line, for a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write(&mut io::stderr(), bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Writes whole lines, above the picture if there is one.
pub(super) fn write(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let mut bottom = bottom();
    let Some(bottom) = bottom.as_mut() else { return finish(to, bytes) };
    finish(&mut io::stdout(), &bottom.lifted())?;
    let written = finish(to, bytes);
    finish(&mut io::stdout(), &bottom.drawn(rows()))?;
    written
}

/// Shows a line above the picture; false: there is no picture.
pub(super) fn set_line(text: &str) -> bool {
    change(|bottom| text.clone_into(&mut bottom.line))
}

fn change(with: impl FnOnce(&mut Bottom)) -> bool {
    let mut bottom = bottom();
    let Some(bottom) = bottom.as_mut() else { return false };
    let mut text = bottom.lifted();
    with(bottom);
    text.extend(bottom.drawn(rows()));
    let _ = finish(&mut io::stdout(), &text);
    true
}

fn bottom() -> MutexGuard<'static, Option<Bottom>> {
    // What is there is text: whoever stopped in the middle left nothing that could be wrong.
    BOTTOM.lock().unwrap_or_else(PoisonError::into_inner)
}

fn finish(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// How many rows the terminal has now.
fn rows() -> usize {
    let size = tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_row));
    size.filter(|rows| *rows > 0).unwrap_or(ROWS)
}

impl Bottom {
    /// Takes it away: the cursor is where it was before.
    fn lifted(&self) -> Vec<u8> {
        match self.rows {
            0 => Vec::new(),
            rows => format!("\x1b[{rows}A\r\x1b[J").into_bytes(),
        }
    }

    /// Draws it. A line that is longer than the terminal is wide is cut by the terminal, so each takes one row.
    fn drawn(&mut self, rows: usize) -> Vec<u8> {
        let line = Some(self.line.as_str()).filter(|line| !line.is_empty());
        let all: Vec<&str> = line.into_iter().chain(self.picture.lines()).collect();
        let room = rows.saturating_sub(FREE_ROWS).max(1);
        let shown = &all[..all.len().min(room)];
        self.rows = shown.len();
        if shown.is_empty() {
            return Vec::new();
        }
        let mut text = "\x1b[?7l".to_owned();
        for line in shown {
            text += line;
            text += "\r\n";
        }
        text += "\x1b[?7h";
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(bottom: &mut Bottom, rows: usize) -> String {
        String::from_utf8(bottom.drawn(rows)).expect("text")
    }

    #[test]
    fn what_was_drawn_is_taken_away_row_by_row() {
        let mut bottom = Bottom { picture: "a\nb\n".to_owned(), ..Bottom::default() };
        assert_eq!(bottom.lifted(), b"");
        assert_eq!(drawn(&mut bottom, 24), "\x1b[?7la\r\nb\r\n\x1b[?7h");
        assert_eq!(bottom.lifted(), b"\x1b[2A\r\x1b[J");
        bottom.line = "copying".to_owned();
        assert_eq!(drawn(&mut bottom, 24), "\x1b[?7lcopying\r\na\r\nb\r\n\x1b[?7h");
        assert_eq!(bottom.lifted(), b"\x1b[3A\r\x1b[J");
    }

    #[test]
    fn a_low_terminal_shows_the_beginning_and_keeps_rows_for_the_log() {
        let picture = (0..40).map(|n| format!("{n}\n")).collect();
        let mut bottom = Bottom { picture, ..Bottom::default() };
        assert!(drawn(&mut bottom, 10).ends_with("5\r\n\x1b[?7h"));
        assert_eq!(bottom.rows, 6);
        drawn(&mut bottom, 2);
        assert_eq!(bottom.rows, 1);
    }
}
