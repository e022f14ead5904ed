//! The mover against the restic program: the same data, the same key, in turn.

use super::cost::Cost;
use super::files::{self, Size, Sort};
use super::process::Directory;
use super::spread::{Rounds, grouped};
use super::{build_example, say_goals};
use crate::say;
use anyhow::bail;
use std::path::Path;
use std::process::Command;

const PASSWORD: &str = "versus";
const WORKS: [&str; 3] = ["backup of new data", "backup, no change", "restore"];

/// Runs the benchmark.
pub(crate) fn run(is_quick: bool) -> anyhow::Result<bool> {
    let mover = build_example("interlock-restic", "mover")?;
    let (rounds, part) = if is_quick { (1, 20) } else { (5, 1) };
    let sets = [
        ("text", Sort::Text, Size { files: 20_000 / part, bytes: 4 << 10 }),
        ("noise", Sort::Noise, Size { files: 4, bytes: (96 << 20) / part }),
        ("text", Sort::Text, Size { files: 4, bytes: (64 << 20) / part }),
    ];
    say(
        "| data | work | restic | ours | times as fast | processor restic | ours | ratio | memory restic | ours | ratio |",
    );
    say("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut missed = Vec::new();
    for (like, sort, size) in sets {
        let title = &format!("{}, {like}", files::title(size));
        let data = Directory::new("restic-data")?;
        files::make(data.path(), sort, size)?;
        let mut all = Rounds::default();
        // What a round leaves stays until the last one is over: ext4 searches past inodes that were
        // freed in the last minutes, and whoever makes many files after a deletion pays for it.
        let mut left = Vec::new();
        for number in 0..rounds {
            left.push(round(&mover, data.path(), number, &mut all)?);
        }
        for work in WORKS {
            missed.extend(tell(title, work, &all));
        }
        let size = all.of("repository", "bytes").median;
        say(&format!("| {title} | size of the repository | | | | | | | | | {size:.3} |"));
        if (size - 1.0).abs() > 0.02 {
            missed.push(format!("{title}: the repository is {size:.3} times as large"));
        }
    }
    say_goals("as fast as restic at 1.5 times its processor and memory, sizes within 2 %", &missed);
    Ok(true)
}

/// One round, in a directory of its own; who is first changes from round to round.
fn round(mover: &Path, data: &Path, number: usize, all: &mut Rounds) -> anyhow::Result<Directory> {
    let place = Directory::new(&format!("restic-{number}"))?;
    let at = |name: &str| place.path().join(name);
    // One key: how much work a password is, restic decides by how busy the machine is.
    let restic = |args: &[&str], repository: &str| {
        let mut command = Command::new("restic");
        command
            .env("RESTIC_REPOSITORY", at(repository))
            .env("RESTIC_PASSWORD", PASSWORD)
            .env("RESTIC_CACHE_DIR", at("cache"))
            .arg("--quiet")
            .args(args);
        command
    };
    let ours = |work: &str, folder: &Path| {
        let mut command = Command::new(mover);
        command.env("RESTIC_PASSWORD", PASSWORD).arg(work).arg(at("ours")).arg(folder);
        command
    };
    succeed(&mut restic(&["init"], "theirs"))?;
    succeed(Command::new("cp").arg("-a").arg(at("theirs")).arg(at("ours")))?;
    std::fs::create_dir(at("our target"))?;
    let their_target = at("their target").display().to_string();
    for work in WORKS {
        let mut they = match work {
            "restore" => restic(&["restore", "latest", "--target", &their_target], "theirs"),
            _ => restic(&["backup", "--host", "volsync", "."], "theirs"),
        };
        they.current_dir(data);
        let mut we = match work {
            "restore" => ours("restore", &at("our target")),
            _ => ours("backup", data),
        };
        let mut both = [("restic", &mut they), ("ours", &mut we)];
        if number % 2 == 1 {
            both.reverse();
        }
        for (who, command) in both {
            let cost = Cost::of(command, place.path())?;
            let what = format!("{work} {who}");
            all.note(&what, "seconds", cost.seconds);
            all.note(&what, "processor", cost.processor_seconds);
            all.note(&what, "memory", cost.memory_bytes);
        }
    }
    all.note("repository", "bytes", size(&at("ours"))? / size(&at("theirs"))?);
    Ok(place)
}

/// Prints a line; returns which goals it misses.
fn tell(title: &str, work: &str, all: &Rounds) -> Vec<String> {
    let of = |who: &str, key: &str| all.of(&format!("{work} {who}"), key).median;
    let both = |key: &str| (of("restic", key), of("ours", key));
    let ((time, our_time), (cpu, our_cpu)) = (both("seconds"), both("processor"));
    let (memory, our_memory) = both("memory");
    let (faster, cpu_ratio, memory_ratio) = (time / our_time, our_cpu / cpu, our_memory / memory);
    let megabytes = |bytes: f64| format!("{} MiB", grouped(bytes / f64::from(1 << 20)));
    say(&format!(
        "| {title} | {work} | {} s | {} s | {faster:.2} | {} s | {} s | {cpu_ratio:.2} | {} | {} | {memory_ratio:.2} |",
        grouped(time),
        grouped(our_time),
        grouped(cpu),
        grouped(our_cpu),
        megabytes(memory),
        megabytes(our_memory),
    ));
    let goals = [
        (faster >= 1.0, format!("{faster:.2} times as fast")),
        (cpu_ratio <= 1.5, format!("{cpu_ratio:.2} times the processor")),
        (memory_ratio <= 1.5, format!("{memory_ratio:.2} times the memory")),
    ];
    let missed = goals.into_iter().filter(|(is_met, _)| !is_met);
    missed.map(|(_, what)| format!("{title}, {work}: {what}")).collect()
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    if !command.status()?.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

fn size(folder: &Path) -> anyhow::Result<f64> {
    let output = Command::new("du").args(["-s", "-B1", "--apparent-size"]).arg(folder).output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}
