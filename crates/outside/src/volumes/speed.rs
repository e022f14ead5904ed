//! How fast a clone is, beside `cp -a` on the same data. Not run by itself:
//! `cargo test --release -p interlock-outside speed -- --ignored --nocapture`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use super::fault::Purpose;
use super::pour::{Order, Target, pour};
use super::progress::{Counters, Patience};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const ROUNDS: usize = 5;

#[test]
#[ignore = "takes a minute and 2 GiB of disk"]
fn a_clone_is_about_as_fast_as_cp() {
    type Fill = fn(&Path);
    let sets: [(&str, Fill); 3] =
        [("20,000 small files", small), ("4 files of 128 MiB", large), ("one of 512 MiB", one)];
    for (name, fill) in sets {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        fs::create_dir(&source).unwrap();
        fill(&source);
        rustix::fs::syncfs(fs::File::open(&source).unwrap()).unwrap();
        let (mut cp, mut plain, mut hashed) = (Vec::new(), Vec::new(), Vec::new());
        // In turn, so that whatever else happens on the machine happens to all of them.
        for _ in 0..ROUNDS {
            cp.push(timed(place.path(), |into| {
                let copied = Command::new("cp").arg("-aT").arg(&source).arg(into).status();
                assert!(copied.unwrap().success());
            }));
            plain.push(timed(place.path(), |into| clone(&source, into, false)));
            hashed.push(timed(place.path(), |into| clone(&source, into, true)));
        }
        let (cp, plain, hashed) = (best(cp), best(plain), best(hashed));
        println!("{name}: cp -a {cp}; clone {plain}; with digest {hashed}");
    }
}

fn clone(source: &Path, into: &Path, wants_hash: bool) {
    let purpose = Purpose { what: "clone", path: source.to_owned() };
    let counters = Counters::default();
    let order = Order {
        source,
        into,
        target: Target::Fresh,
        wants_hash,
        purpose: &purpose,
        counters: &counters,
    };
    let poured = pour(&order, &Patience::endless()).unwrap();
    assert!(poured.files > 0);
    assert!(!wants_hash || poured.shares_blocks || poured.digest().is_some());
}

/// How long something took, and how much of the processors.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Took {
    seconds: f64,
    processor_seconds: f64,
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} s ({:.2} s of processors)", self.seconds, self.processor_seconds)
    }
}

/// Of this process and those that it waited for.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Fields 14 to 17 of proc(5), in ticks of ten milliseconds.
    fields[11..15].iter().map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

fn timed(place: &Path, copy: impl Fn(&Path)) -> Took {
    let into = place.join("target");
    fs::create_dir(&into).unwrap();
    let (began, used) = (Instant::now(), processor_seconds());
    copy(&into);
    let processor_seconds = processor_seconds() - used;
    let took = Took { seconds: began.elapsed().as_secs_f64(), processor_seconds };
    fs::remove_dir_all(&into).unwrap();
    // What one leaves to be written must not slow the next.
    rustix::fs::syncfs(fs::File::open(place).unwrap()).unwrap();
    took
}

fn best(times: Vec<Took>) -> Took {
    let faster = |one: Took, other: Took| if other.seconds < one.seconds { other } else { one };
    times.into_iter().reduce(faster).unwrap()
}

fn small(folder: &Path) {
    for number in 0..200 {
        let folder = folder.join(format!("folder-{number}"));
        fs::create_dir(&folder).unwrap();
        for number in 0..100 {
            fs::write(folder.join(format!("file-{number}")), vec![number as u8; 4096]).unwrap();
        }
    }
}

fn large(folder: &Path) {
    for number in 0..4 {
        fs::write(folder.join(format!("file-{number}")), noise(128 << 20)).unwrap();
    }
}

fn one(folder: &Path) {
    fs::write(folder.join("file"), noise(512 << 20)).unwrap();
}

fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut bytes = Vec::with_capacity(count);
    while bytes.len() < count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}
