//! specs/tlc.json: what TLC said, each answer under a hash of the files that it depends on. TLC takes half an hour for
//! all runs and says the same of the same files; a machine that begins with nothing need not ask it everything again.

use crate::root;
use crate::tlc::Said;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Of the answers on record, one of so many is asked for again, other ones with each commit.
const ONE_OF: u64 = 20;

/// The answers, by configuration.
#[derive(Debug)]
pub(crate) struct Record {
    answers: Mutex<BTreeMap<String, Answer>>,
    /// Which answers are asked for again.
    turn: u64,
}

/// An answer, and of what.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answer {
    key: String,
    said: Said,
}

impl Record {
    /// Reads it; without a file it is empty.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let path = path();
        let answers = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("cannot read {}", path.display()))?,
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(failure) => {
                return Err(failure).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        Ok(Record { answers: Mutex::new(answers), turn: turn() })
    }

    /// What was said of the very same files.
    pub(crate) fn said(&self, config: &str, key: &str) -> Option<Said> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.get(config).filter(|answer| answer.key == key)?;
        Some(answer.said.clone())
    }

    /// Whether it is the turn of this answer to be asked for again.
    pub(crate) fn is_due(&self, key: &str) -> bool {
        let number = key.get(..8).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        number.is_none_or(|number| number % ONE_OF == self.turn)
    }

    /// Keeps an answer, and writes the file: a run that is cut keeps what was said so far.
    pub(crate) fn keep(&self, config: &str, key: String, said: Said) -> anyhow::Result<()> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(config.to_owned(), Answer { key, said });
        let lines: Vec<String> = answers
            .iter()
            .map(|(config, answer)| Ok(format!("  {config:?}: {}", serde_json::to_string(answer)?)))
            .collect::<anyhow::Result<_>>()?;
        let (path, text) = (path(), format!("{{\n{}\n}}\n", lines.join(",\n")));
        let new = path.with_extension("new");
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path))?;
        Ok(())
    }
}

fn path() -> PathBuf {
    root().join("specs/tlc.json")
}

/// The commit says which answers are asked for again: all of them within some commits, and the same ones
/// whoever runs it.
fn turn() -> u64 {
    let head =
        Command::new("git").args(["rev-parse", "--short=8", "HEAD"]).current_dir(root()).output();
    let commit = head.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let digits = commit.ok().and_then(|text| u64::from_str_radix(text.get(..8)?, 16).ok());
    digits.unwrap_or_default() % ONE_OF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_of_the_same_files_only_and_each_has_its_turn() {
        let said = Said { distinct: Some(7), ..Said::default() };
        let answer = Answer { key: "000000ff00".to_owned(), said: said.clone() };
        let answers = Mutex::new(BTreeMap::from([("a.cfg".to_owned(), answer)]));
        let record = Record { answers, turn: 255 % ONE_OF };
        assert_eq!(record.said("a.cfg", "000000ff00"), Some(said));
        assert_eq!(record.said("a.cfg", "000000fe00"), None);
        assert_eq!(record.said("b.cfg", "000000ff00"), None);
        assert!(record.is_due("000000ff00") && !record.is_due("000000fe00"));
    }
}
