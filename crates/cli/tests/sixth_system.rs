//! `docs/adding-a-system.md` says how small a system can be, and names the files of one: held against the tree.

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

const GUIDE: &str = "docs/adding-a-system.md";
/// A system may be no larger.
const BELOW: usize = 600;
/// What belongs to the system and to nothing else.
const OWN: [&str; 4] = [
    "systems/turns",
    "crates/api/src/turns.rs",
    "crates/cli/src/fleet/turns.rs",
    "crates/cli/tests/moves/turns.rs",
];
/// Where else it is named, and by which words.
const ELSEWHERE: [&str; 6] =
    ["Cargo.toml", "crates/api", "crates/cli", "crates/programs", "tests/simulation", "xtask"];
/// What a running fleet is judged by, which a system may do without: it is counted by itself.
const AUDIT: [&str; 1] = ["crates/programs/src/audit/promises/turns.rs"];
/// The audit, whose own tests have the system as their example.
const AUDITS: &str = "crates/programs/src/audit";
const WORDS: [&str; 6] =
    ["turns", "Turns", "interlock_turns", "MaintenanceTurn", "MaintenanceTurns", "TurnRow"];

fn root() -> PathBuf {
    // Where cargo runs the test, not where it was compiled: clones may share a build cache.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the test");
    PathBuf::from(here).join("../..")
}

/// The sources below a path, and the manifests of crates.
fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = read_dir(path).expect("it is there").map(|entry| entry.expect("readable"));
        return entries.flat_map(|entry| sources(&entry.path())).collect();
    }
    let is_source = path.extension().is_some_and(|it| it == "rs") || path.ends_with("Cargo.toml");
    if is_source { vec![path.to_owned()] } else { Vec::new() }
}

fn names_it(line: &str) -> bool {
    let is_apart = |c: char| !c.is_alphanumeric() && c != '_';
    line.split(is_apart).any(|word| WORDS.contains(&word))
}

#[test]
fn a_system_takes_less_than_600_lines_and_the_guide_says_how_many() {
    let root = root();
    let text = |path: &PathBuf| read_to_string(path).expect("a source is text");
    let own: Vec<PathBuf> = OWN.iter().flat_map(|path| sources(&root.join(path))).collect();
    let mut lines: usize = own.iter().map(|path| text(path).lines().count()).sum();
    let elsewhere = ELSEWHERE.iter().flat_map(|path| sources(&root.join(path)));
    let this = Path::new(file!()).file_name();
    for path in elsewhere.filter(|path| !own.contains(path) && path.file_name() != this) {
        if !path.starts_with(root.join(AUDITS)) {
            lines += text(&path).lines().filter(|line| names_it(line)).count();
        }
    }
    assert!(lines < BELOW, "it takes {lines} lines");
    let audit: usize = AUDIT.iter().map(|path| text(&root.join(path)).lines().count()).sum();
    let guide = read_to_string(root.join(GUIDE)).expect("it is there");
    assert!(
        guide.contains(&format!("in {lines} lines"))
            && guide.contains(&format!("{audit} lines more")),
        "it takes {lines}, and its audit {audit}; {GUIDE} says otherwise"
    );
}

#[test]
fn every_file_that_the_guide_links_to_is_there() {
    let guide = root().join(GUIDE);
    let text = read_to_string(&guide).expect("it is there");
    let links: Vec<&str> = text.split("](").skip(1).filter_map(|it| it.split(')').next()).collect();
    assert!(links.len() > 10, "{links:?}");
    for link in links {
        assert!(guide.with_file_name(link).exists(), "{link}");
    }
}
