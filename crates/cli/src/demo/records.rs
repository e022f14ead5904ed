//! The writer of the demonstration (`interlock write-numbers`), what it leaves, and how that is judged.

use super::session;
use anyhow::Context;
use clap::Args as ClapArgs;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The file in which a writer says that it met another one.
pub(super) const REFUSALS: &str = "refusals";

/// One record of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) number: u64,
    pub(super) epoch: i64,
}

/// The records of one writer after another are numbered without a gap, and epochs never fall.
pub(super) fn judge(records: &[Record]) -> Result<(), String> {
    for (place, record) in records.iter().enumerate() {
        let expected = place as u64 + 1;
        if record.number != expected {
            return Err(format!("record {expected} has the number {}", record.number));
        }
        if place > 0 && record.epoch < records[place - 1].epoch {
            return Err(format!("record {expected} is of an earlier epoch than the one before"));
        }
    }
    Ok(())
}

/// Whether everything that was acknowledged is in the volume, in its place.
pub(super) fn compare(
    acknowledged: &[Record],
    there: &[Record],
    cluster: &str,
) -> Result<(), String> {
    judge(there).map_err(|broken| format!("in the volume on {cluster}, {broken}"))?;
    match acknowledged.iter().zip(there).position(|(said, found)| said != found) {
        Some(place) => Err(format!("record {} is another in the volume on {cluster}", place + 1)),
        None if there.len() < acknowledged.len() => Err(format!(
            "records {} to {} were acknowledged and are not in the volume on {cluster}",
            there.len() + 1,
            acknowledged.len()
        )),
        None => Ok(()),
    }
}

pub(super) fn read_lines(path: &Path) -> Vec<String> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    BufReader::new(file).lines().map_while(Result::ok).collect()
}

pub(super) fn read(path: &Path) -> Vec<Record> {
    let parse = |line: String| {
        let (number, epoch) = line.split_once(' ')?;
        Some(Record { number: number.parse().ok()?, epoch: epoch.parse().ok()? })
    };
    read_lines(path).into_iter().map_while(parse).collect()
}

pub(super) fn count(path: &Path) -> usize {
    read(path).len()
}

/// Options of `write-numbers`.
#[derive(Debug, ClapArgs)]
pub(crate) struct WriterArgs {
    /// Where to say what was written; without --into: where to write
    directory: PathBuf,
    /// Where to write, if not there: a folder in a volume
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// How many bytes to have there besides
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "into")]
    ballast: u64,
    /// Say what STS answers to the token of this process, and to that of the owner before it
    #[arg(long)]
    role: bool,
}

/// The file of the records.
pub(super) const RECORDS: &str = "numbers";
/// The pause between two records.
const PAUSE: Duration = Duration::from_millis(10);

/// Appends numbered, synced records until it is asked to stop.
pub(crate) fn write_numbers(args: &WriterArgs) -> anyhow::Result<ExitCode> {
    let epoch = std::env::var("INTERLOCK_EPOCH").unwrap_or_else(|_| "0".to_owned());
    let (mut log, acknowledged) = open(&args.directory.join(RECORDS))?;
    // Another writer must be gone: if it is not, that is what the demonstration is there to show.
    if log.try_lock().is_err() {
        return refuse(args, &format!("a writer of epoch {epoch} met another one"));
    }
    if args.role {
        let epoch = epoch.parse().context("INTERLOCK_EPOCH is not a number")?;
        session::ask_beside(args.directory.clone(), epoch);
    }
    let Some(into) = &args.into else {
        let mut number = acknowledged.len() as u64;
        loop {
            number += 1;
            append(&mut log, &format!("{number} {epoch}"))?;
            std::thread::sleep(PAUSE);
        }
    };
    let (mut records, there) = open(&into.join(RECORDS))?;
    weigh_down(&into.join("ballast"), args.ballast)?;
    if there.len() < acknowledged.len() {
        return refuse(
            args,
            &format!(
                "a writer of epoch {epoch} misses records: {} were acknowledged, and {} are there",
                acknowledged.len(),
                there.len()
            ),
        );
    }
    // Who wrote a record and did not live to say so is helped.
    for record in &there[acknowledged.len()..] {
        append(&mut log, &format!("{} {}", record.number, record.epoch))?;
    }
    let mut number = there.len() as u64;
    loop {
        number += 1;
        let record = format!("{number} {epoch}");
        append(&mut records, &record)?;
        append(&mut log, &record)?;
        std::thread::sleep(PAUSE);
    }
}

/// Fills a file with noise up to so many bytes: nothing that a copier could leave out.
fn weigh_down(path: &Path, bytes: u64) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new().create(true).append(true).open(path).with_context(cannot)?;
    let mut there = file.metadata().with_context(cannot)?.len();
    let mut noise = there | 1;
    while there < bytes {
        let mut block = Vec::with_capacity(1 << 20);
        while block.len() < 1 << 20 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            block.extend_from_slice(&(noise >> 16).to_le_bytes());
        }
        file.write_all(&block).with_context(cannot)?;
        there += block.len() as u64;
    }
    file.sync_data().with_context(cannot)
}

/// Opens a file of records for more. A line that somebody did not live to finish was never
/// acknowledged, and goes.
fn open(path: &Path) -> anyhow::Result<(File, Vec<Record>)> {
    let cannot = || format!("cannot open {}", path.display());
    let mut file =
        OpenOptions::new().create(true).append(true).read(true).open(path).with_context(cannot)?;
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0)).with_context(cannot)?;
    file.read_to_end(&mut text).with_context(cannot)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < text.len() && file.try_lock().is_ok() {
        file.set_len(whole as u64).with_context(cannot)?;
    }
    Ok((file, read(path)))
}

fn append(file: &mut File, record: &str) -> anyhow::Result<()> {
    // In one piece: a line is there or not.
    file.write_all(format!("{record}\n").as_bytes()).context("cannot write a record")?;
    file.sync_data().context("cannot sync a record")
}

fn refuse(args: &WriterArgs, words: &str) -> anyhow::Result<ExitCode> {
    let mut refusals = OpenOptions::new()
        .create(true)
        .append(true)
        .open(args.directory.join(REFUSALS))
        .context("cannot say what is wrong")?;
    writeln!(refusals, "{words}").context("cannot say what is wrong")?;
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(numbers: &[(u64, i64)]) -> Vec<Record> {
        numbers.iter().map(|&(number, epoch)| Record { number, epoch }).collect()
    }

    #[test]
    fn one_writer_after_another_is_as_promised() {
        assert_eq!(judge(&records(&[(1, 1), (2, 1), (3, 2)])), Ok(()));
    }

    #[test]
    fn a_gap_a_number_twice_and_an_old_writer_are_found() {
        assert!(judge(&records(&[(1, 1), (3, 1)])).is_err());
        assert!(judge(&records(&[(1, 1), (1, 2)])).is_err());
        assert!(judge(&records(&[(1, 2), (2, 1)])).is_err());
    }

    #[test]
    fn a_record_that_was_acknowledged_and_is_not_there_is_found() {
        let (two, three) = (records(&[(1, 1), (2, 1)]), records(&[(1, 1), (2, 1), (3, 1)]));
        assert_eq!(compare(&two, &three, "west"), Ok(()));
        assert_eq!(compare(&three, &three, "west"), Ok(()));
        assert!(compare(&three, &two, "west").unwrap_err().contains("records 3 to 3"));
        let other = records(&[(1, 1), (2, 2)]);
        assert!(compare(&two, &other, "west").unwrap_err().contains("record 2 is another"));
    }
}
