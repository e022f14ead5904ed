//! What a person declares: for which reason, by whom, and only after they have confirmed it.

use anyhow::{Context, bail};
use std::io::{BufRead, IsTerminal, Write};

/// A reason for the record.
pub(crate) fn reason(text: &str) -> Result<String, String> {
    match text.trim().chars().count() {
        0..10 => Err("the reason needs at least ten characters".to_owned()),
        10..=1024 => Ok(text.trim().to_owned()),
        _ => Err("the reason has at most 1024 characters".to_owned()),
    }
}

/// A person has to confirm what is declared, by typing a name.
pub(crate) fn confirm(declared: &str, what: &str, name: &str) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("no terminal to confirm on: add --yes");
    }
    let mut terminal = std::io::stderr().lock();
    let _ = write!(
        terminal,
        "this declares {declared} and cannot be undone; type the name of the {what} to confirm: "
    );
    let _ = terminal.flush();
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    if answer.trim() != name {
        bail!("not confirmed: nothing was done");
    }
    Ok(())
}

/// Who asks, for the record: the person at this machine, and who they are at the hub.
pub(crate) fn requester(user: &str) -> String {
    let person = ["USER", "LOGNAME"].iter().find_map(|key| std::env::var(key).ok());
    let person = person.filter(|person| !person.is_empty());
    let words = match (person, user) {
        (Some(person), "") => person,
        (Some(person), user) => format!("{person} as {user}"),
        (None, "") => "unknown".to_owned(),
        (None, user) => user.to_owned(),
    };
    words.chars().take(253).collect()
}

/// Five letters that tell two declarations about one epoch apart. The server refuses a name that is
/// taken, so a clash costs another try and nothing else.
pub(crate) fn short_id() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let clock = jiff::Timestamp::now().as_nanosecond().unsigned_abs();
    let mut left = clock ^ (u128::from(std::process::id()) << 20);
    let mut id = String::new();
    for _ in 0..5 {
        let place = usize::try_from(left % LETTERS.len() as u128).unwrap_or_default();
        id.push(char::from(LETTERS[place]));
        left /= LETTERS.len() as u128;
    }
    id
}
