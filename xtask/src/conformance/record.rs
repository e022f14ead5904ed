//! Which tests pass, and why the others do not.

use crate::root;
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

/// What is on record.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Record {
    /// The tests that must pass.
    pub(super) passing: BTreeSet<String>,
    /// The tests that do not, each with the reason.
    pub(super) missing: BTreeMap<String, String>,
}

impl Record {
    pub(super) fn read() -> anyhow::Result<Record> {
        let text = |name: &str| {
            let path = file(name);
            std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))
        };
        Record::parse(&text("passing.txt")?, &text("missing.txt")?)
    }

    /// A name on each line; of those that do not pass, with the reason on the next line, indented.
    fn parse(passing: &str, missing: &str) -> anyhow::Result<Record> {
        let passing: BTreeSet<String> = lines(passing).map(str::to_owned).collect();
        let mut record = Record { passing, missing: BTreeMap::new() };
        let mut missing = lines(missing).peekable();
        while let Some(name) = missing.next() {
            let reason = missing.next_if(|next| next.starts_with(' '));
            let Some(reason) = reason else {
                bail!(
                    "missing.txt does not say why {name:?} does not pass: write it on the next line, indented"
                );
            };
            if record.passing.contains(name) {
                bail!("{name:?} is in passing.txt and in missing.txt: remove it from one of them");
            }
            record.missing.insert(name.to_owned(), reason.trim().to_owned());
        }
        Ok(record)
    }

    /// Tests that passed stay on record.
    pub(super) fn add(&mut self, passed: &[String]) {
        for name in passed {
            self.missing.remove(name);
            self.passing.insert(name.clone());
        }
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        let (mut passing, mut missing) = (String::new(), String::new());
        for name in &self.passing {
            writeln!(passing, "{name}")?;
        }
        for (name, reason) in &self.missing {
            writeln!(missing, "{name}\n    {reason}")?;
        }
        for (name, text) in [("passing.txt", passing), ("missing.txt", missing)] {
            let path = file(name);
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

fn file(name: &str) -> PathBuf {
    root().join("tests/conformance/e2e").join(name)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_says_of_each_test_that_is_missing_why() {
        let record = Record::parse("a b\nc\n", "d e\n    needs a node\n").expect("it is read");
        assert_eq!(record.missing["d e"], "needs a node");
        assert_eq!(record.passing.len(), 2);
        for (missing, said) in
            [("d\n", "does not say why \"d\""), ("c\n    why\n", "in missing.txt")]
        {
            let refused = Record::parse("c\n", missing).expect_err("it is refused").to_string();
            assert!(refused.contains(said), "{refused}");
        }
        Record::read().expect("what is in the tree can be read");
    }

    #[test]
    fn what_passed_once_is_missing_no_more() {
        let mut record = Record::parse("c\n", "d\n    why\n").expect("it is read");
        record.add(&["d".to_owned()]);
        assert!(record.missing.is_empty() && record.passing.contains("d"));
    }
}
