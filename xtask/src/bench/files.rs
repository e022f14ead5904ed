//! Files to be copied and backed up, the same in every run.

use super::spread::count;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// What the files are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Pages of a database, say: nothing to compress.
    Noise,
    /// Lines of a log.
    Text,
}

/// How many files, and of how many bytes each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) files: usize,
    pub(crate) bytes: usize,
}

/// `20,000 files of 4 KiB`, `one file of 96 MiB`.
pub(crate) fn title(Size { files, bytes }: Size) -> String {
    let each = match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        megabytes => format!("{megabytes} MiB"),
    };
    match files {
        1 => format!("one file of {each}"),
        files => format!("{} files of {each}", count(files)),
    }
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Makes so many files of about so many bytes each in a new folder, a hundred to a folder in it.
pub(crate) fn make(folder: &Path, sort: Sort, Size { files, bytes }: Size) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let mut numbers = Numbers(1);
    for number in 0..files {
        let inner = folder.join(format!("folder-{}", number / 100));
        fs::create_dir_all(&inner)?;
        let mut file = BufWriter::new(File::create(inner.join(format!("file-{number}")))?);
        let mut written = 0;
        while written < bytes {
            let number = numbers.next();
            written += match sort {
                Sort::Noise => {
                    file.write_all(&number.to_le_bytes())?;
                    8
                }
                Sort::Text => write_line(&mut file, number)?,
            };
        }
        file.flush()?;
    }
    Ok(())
}

fn write_line(file: &mut impl Write, number: u64) -> std::io::Result<usize> {
    const WORDS: [&str; 16] = [
        "volume", "snapshot", "claim", "epoch", "pinned", "held", "bound", "moved", "north",
        "south", "west", "granted", "fenced", "stopped", "started", "waiting",
    ];
    let word = |shift: u32| WORDS[(number >> shift) as usize % WORDS.len()];
    let line = format!(
        "level=info unit={:08x} {} {} of {} is {} after {} ms\n",
        number >> 32,
        word(0),
        word(4),
        word(8),
        word(12),
        number >> 16 & 0xffff
    );
    file.write_all(line.as_bytes())?;
    Ok(line.len())
}
