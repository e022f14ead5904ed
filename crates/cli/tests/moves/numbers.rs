//! What the writer has written, and what that proves.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The directory of a writer.
#[derive(Debug, Clone)]
pub(crate) struct Numbers(PathBuf);

/// One record of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) number: u64,
    pub(crate) epoch: i64,
}

fn parse(line: &str) -> Record {
    let (number, epoch) = line.split_once(' ').unwrap_or_else(|| panic!("no record: {line:?}"));
    Record { number: number.parse().expect(line), epoch: epoch.parse().expect(line) }
}

/// The records of a file that is being written, without what is not whole yet.
fn whole_records(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
    whole.lines().map(parse).collect()
}

impl Numbers {
    pub(crate) fn in_new(directory: PathBuf) -> Self {
        std::fs::create_dir_all(&directory).expect("the directory is ours");
        Numbers(directory)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }

    /// The last record; none before the first.
    pub(crate) fn last(&self) -> Option<Record> {
        let mut file = File::open(self.0.join("numbers")).ok()?;
        let length = file.metadata().expect("it is open").len();
        file.seek(SeekFrom::Start(length.saturating_sub(64))).expect("a file can be sought");
        let mut tail = String::new();
        file.read_to_string(&mut tail).expect("records are text");
        // What comes after the last line feed is being written.
        let (whole, _) = tail.rsplit_once('\n')?;
        Some(parse(whole.rsplit('\n').next()?))
    }

    /// No writer found the file in another one's hands when it began.
    pub(crate) fn prove_that_none_met(&self) {
        let refusals = std::fs::read_to_string(self.0.join("refusals")).unwrap_or_default();
        assert_eq!(refusals, "", "a writer met another one");
    }

    /// Everything that was acknowledged by now is in the volume that was written to last: each
    /// record in its place. How many they are.
    pub(crate) fn prove_all_are_in(&self, volumes: &[PathBuf]) -> usize {
        let acknowledged = whole_records(&self.0.join("numbers"));
        // More may have come since: what is there begins with what was acknowledged.
        let of = |volume: &PathBuf| whole_records(&volume.join("numbers"));
        let last = volumes.iter().map(of).max_by_key(|all| all.last().map_or(0, |r| r.epoch));
        let there = last.expect("there is a volume");
        assert!(
            there.len() >= acknowledged.len(),
            "{} records of {} are lost",
            acknowledged.len() - there.len(),
            acknowledged.len()
        );
        assert_eq!(acknowledged[..], there[..acknowledged.len()], "another record");
        acknowledged.len()
    }

    /// One writer after another: numbers without a gap, none twice, epochs that never fall, and no
    /// writer that met another one. The epochs that wrote.
    pub(crate) fn prove_one_writer_after_another(&self) -> Vec<i64> {
        let text = std::fs::read_to_string(self.0.join("numbers")).expect("it was written");
        assert!(text.ends_with('\n'), "the last record is torn");
        let records: Vec<Record> = text.lines().map(parse).collect();
        for (place, record) in records.iter().enumerate() {
            assert_eq!(record.number, place as u64 + 1, "record {place}");
            let before = place.checked_sub(1).map_or(0, |before| records[before].epoch);
            assert!(record.epoch >= before, "{record:?} after epoch {before}");
        }
        self.prove_that_none_met();
        let mut epochs: Vec<i64> = records.iter().map(|record| record.epoch).collect();
        epochs.dedup();
        epochs
    }
}
