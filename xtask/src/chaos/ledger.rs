//! What the writer of a namespace acknowledged, in a file that no part of the fleet writes to, and what that proves.

use super::processes::volume_of;
use anyhow::Context;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// One record of a writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) number: u64,
    pub(crate) epoch: i64,
}

/// The records of the writers of a namespace, as far as they were read.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) directory: PathBuf,
    read_to: u64,
    pub(crate) last: Record,
}

impl Ledger {
    /// One that is not written yet.
    pub(crate) fn of_new(directory: PathBuf) -> anyhow::Result<Ledger> {
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(Ledger { directory, read_to: 0, last: Record::default() })
    }

    /// Reads on. What is wrong: one writer after another leaves numbers without a gap, none twice, and epochs that never
    /// fall; and no writer finds another one at work, or a record missing that was acknowledged.
    pub(crate) fn judge(&mut self) -> Option<String> {
        let refusals = std::fs::read_to_string(self.directory.join("refusals")).unwrap_or_default();
        if let Some(line) = refusals.lines().next() {
            return Some(line.to_owned());
        }
        let text = self.read_on().ok()?;
        for line in text.lines() {
            let Some(record) = parse(line) else { return Some(format!("no record: {line:?}")) };
            let last = std::mem::replace(&mut self.last, record);
            if record.number != last.number + 1 {
                return Some(format!("{record:?} comes after {last:?}"));
            }
            if record.epoch < last.epoch {
                return Some(format!("{record:?} is of an earlier owner than {last:?}"));
            }
        }
        None
    }

    /// The whole lines that came since.
    fn read_on(&mut self) -> anyhow::Result<String> {
        let mut file = File::open(self.directory.join("numbers"))?;
        file.seek(SeekFrom::Start(self.read_to))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        self.read_to += text.len() as u64;
        Ok(text)
    }

    /// Whether all that was acknowledged is in the volume of the writer that runs now; what is not.
    pub(crate) fn compare(&self) -> anyhow::Result<Option<String>> {
        let volume = volume_of(&self.directory).context("no writer runs")?;
        // First what was acknowledged, then what is there: more may come in between.
        let acknowledged = records(&self.directory)?;
        let there = records(&volume)?;
        let differs = acknowledged.iter().zip(&there).position(|(said, found)| said != found);
        Ok(match differs {
            Some(place) => Some(format!("record {} is another in the volume", place + 1)),
            None if there.len() < acknowledged.len() => Some(format!(
                "{} records were acknowledged, and {} are in the volume",
                acknowledged.len(),
                there.len()
            )),
            None => None,
        })
    }

    /// Throws away the last records in the volume; whether there were any.
    pub(crate) fn forget(&self) -> anyhow::Result<bool> {
        let Some(volume) = volume_of(&self.directory) else { return Ok(false) };
        let path = volume.join("numbers");
        let text = std::fs::read_to_string(&path)?;
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let kept: usize = lines.iter().rev().skip(5).map(|line| line.len()).sum();
        File::options().write(true).open(&path)?.set_len(kept as u64)?;
        Ok(lines.len() > 5)
    }
}

fn parse(line: &str) -> Option<Record> {
    let (number, epoch) = line.split_once(' ')?;
    Some(Record { number: number.parse().ok()?, epoch: epoch.parse().ok()? })
}

/// All whole records of a folder.
fn records(folder: &Path) -> anyhow::Result<Vec<Record>> {
    let path = folder.join("numbers");
    let text = std::fs::read_to_string(&path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let all = whole.lines().map(|line| parse(line).with_context(|| format!("no record: {line}")));
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(name: &str, texts: &[&str]) -> Option<String> {
        let folder = std::env::temp_dir().join(format!("ledger-{name}-{}", std::process::id()));
        let mut ledger = Ledger::of_new(folder.clone()).expect("a folder");
        let mut found = None;
        for text in texts {
            std::fs::write(folder.join("numbers"), text).expect("it is ours");
            found = found.or(ledger.judge());
        }
        std::fs::remove_dir_all(&folder).expect("it is ours");
        found
    }

    #[test]
    fn one_writer_after_another_is_as_promised() {
        assert_eq!(judged("good", &["1 1\n2 1\n3", "1 1\n2 1\n3 2\n4 2\n"]), None);
    }

    #[test]
    fn a_gap_a_number_twice_and_an_old_owner_are_found() {
        for text in ["1 1\n3 1\n", "1 1\n1 1\n", "1 2\n2 1\n", "1 2\nx\n"] {
            assert!(judged("bad", &[text]).is_some(), "{text}");
        }
    }
}
