//! Us against the restic program: the same data, the same machine, one run, as ratios.
//!
//! `cargo run --release -p interlock-restic --example versus_restic -- <folder> [rounds]`
//!
//! Both are processes of their own, looked at from outside in the same way: time until everything is on
//! the disk, processor time, most memory. restic has its cache, as it has with VolSync. Rounds alternate,
//! and the middle one of each is told.

use interlock_restic::{Backup, Choice, Mark, Restore, Settings, Sort, Watch, backup, restore};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PASSWORD: &str = "versus";
/// How many ticks of the kernel's accounts are a second.
const TICKS: f64 = 100.0;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What something took.
#[derive(Debug, Clone, Copy)]
struct Cost {
    seconds: f64,
    processor_seconds: f64,
    memory_mib: f64,
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["ours", "backup", repository, folder, mark] => ours_backs_up(repository, folder, mark),
        ["ours", "restore", repository, folder] => ours_restores(repository, folder),
        [folder] => compare(Path::new(folder), 3),
        [folder, rounds] => compare(Path::new(folder), rounds.parse()?),
        _ => Err("say a folder, and how many rounds".into()),
    }
}

fn settings(repository: &str) -> Outcome<Settings> {
    let keys = BTreeMap::from([
        ("RESTIC_REPOSITORY".to_owned(), repository.to_owned()),
        ("RESTIC_PASSWORD".to_owned(), PASSWORD.to_owned()),
    ]);
    Ok(Settings::from_secret(&keys, None)?)
}

fn ours_backs_up(repository: &str, folder: &str, mark: &str) -> Outcome<()> {
    let mark = match mark {
        "volsync" => Mark::Volsync,
        _ => Mark::Move(vec![]),
    };
    let folder = PathBuf::from(folder);
    let job = Backup { folder, sort: Sort::Volume, mark, allow_empty: true, unlock: false };
    backup(&settings(repository)?, &job, &Watch::default())?;
    Ok(())
}

fn ours_restores(repository: &str, folder: &str) -> Outcome<()> {
    let job = Restore {
        into: PathBuf::from(folder),
        choice: Choice::Newest { as_of: None, previous: 0 },
        delete_other_files: false,
        allow_empty: false,
        unlock: false,
    };
    restore(&settings(repository)?, &job, &Watch::default())?;
    Ok(())
}

fn ours(args: &[&str]) -> Outcome<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("ours").args(args);
    Ok(command)
}

fn theirs(place: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("restic");
    command
        .env("RESTIC_REPOSITORY", place.join("theirs"))
        .env("RESTIC_PASSWORD", PASSWORD)
        .env("RESTIC_CACHE_DIR", place.join("cache"))
        .arg("--quiet")
        .args(args);
    command
}

/// Runs something to its end, and `sync` of a folder after it.
fn measured(mut command: Command, folder: &Path) -> Outcome<Cost> {
    Command::new("sync").status()?;
    let began = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let mut most = 0.0_f64;
    // Once it has ended, its memory is gone but its times are still to be read.
    let ticks = loop {
        let status = fs::read_to_string(process.join("status"))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        if let Some(peak) = peak.and_then(|peak| peak.split_whitespace().next()) {
            most = most.max(peak.parse()?);
        }
        let stat = fs::read_to_string(process.join("stat"))?;
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        if fields.first() == Some(&"Z") {
            let (user, system): (f64, f64) = (fields[11].parse()?, fields[12].parse()?);
            break user + system;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("{command:?} failed").into());
    }
    Command::new("sync").arg("--file-system").arg(folder).status()?;
    Ok(Cost {
        seconds: began.elapsed().as_secs_f64(),
        processor_seconds: ticks / TICKS,
        memory_mib: most / 1024.0,
    })
}

/// One round: for each piece of work our cost and theirs, and the sizes of the repositories.
fn round(folder: &Path, place: &Path) -> Outcome<(Vec<(Cost, Cost)>, f64)> {
    let (our_place, their_place) = (place.join("ours"), place.join("theirs"));
    let nothing = place.join("nothing");
    fs::create_dir_all(&nothing)?;
    let repository = our_place.display().to_string();
    // Repositories are made before, as they are in life.
    ours(&["backup", &repository, &nothing.display().to_string(), "other"])?.status()?;
    theirs(place, &["init"]).status()?;
    let source = folder.display().to_string();
    let mut costs = Vec::new();
    for _ in ["new data", "no change"] {
        let we = ours(&["backup", &repository, &source, "volsync"])?;
        let mut they = theirs(place, &["backup", "--host", "volsync", "."]);
        they.current_dir(folder);
        costs.push((measured(we, &our_place)?, measured(they, &their_place)?));
    }
    let (our_target, their_target) = (place.join("our target"), place.join("their target"));
    fs::create_dir_all(&our_target)?;
    fs::create_dir_all(&their_target)?;
    let we = ours(&["restore", &repository, &our_target.display().to_string()])?;
    let they =
        theirs(place, &["restore", "latest", "--target", &their_target.display().to_string()]);
    costs.push((measured(we, &our_target)?, measured(they, &their_target)?));
    Ok((costs, size(&our_place)? / size(&their_place)?))
}

fn size(folder: &Path) -> Outcome<f64> {
    let output = Command::new("du").args(["-s", "-B1", "--apparent-size"]).arg(folder).output()?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

fn compare(folder: &Path, rounds: usize) -> Outcome<()> {
    let folder = folder.canonicalize()?;
    let mut all: Vec<Vec<(Cost, Cost)>> = Vec::new();
    let mut sizes = Vec::new();
    for number in 0..rounds {
        let place = tempfile::tempdir()?;
        let (costs, ratio) = round(&folder, place.path())?;
        writeln!(std::io::stderr(), "round {} of {rounds}: {costs:.2?}", number + 1)?;
        all.push(costs);
        sizes.push(ratio);
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:<22}{:>9}{:>9}{:>8}{:>10}{:>10}{:>7}{:>10}{:>10}{:>7}",
        "",
        "ours s",
        "restic s",
        "faster",
        "ours cpu",
        "restic",
        "ratio",
        "ours MiB",
        "restic",
        "ratio"
    )?;
    for (work, title) in ["backup of new data", "backup, no change", "restore"].iter().enumerate() {
        let pick = |get: fn(&(Cost, Cost)) -> f64| {
            middle(all.iter().map(|costs| get(&costs[work])).collect())
        };
        let (time, time_theirs) = (pick(|c| c.0.seconds), pick(|c| c.1.seconds));
        let (cpu, cpu_theirs) = (pick(|c| c.0.processor_seconds), pick(|c| c.1.processor_seconds));
        let (memory, memory_theirs) = (pick(|c| c.0.memory_mib), pick(|c| c.1.memory_mib));
        writeln!(
            out,
            "{title:<22}{time:>9.2}{time_theirs:>9.2}{:>7.2}x{cpu:>10.2}{cpu_theirs:>10.2}{:>7.2}\
             {memory:>10.0}{memory_theirs:>10.0}{:>7.2}",
            time_theirs / time,
            cpu / cpu_theirs,
            memory / memory_theirs
        )?;
    }
    writeln!(out, "size of the repository, ours to restic's: {:.3}", middle(sizes))?;
    Ok(())
}

fn middle(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
