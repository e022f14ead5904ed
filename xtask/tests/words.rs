//! The words of STYLE.md, held against every text of the project that a person reads.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Words that STYLE.md rules out, and what to write instead. A star at the end stands for any ending.
/// Words are compared without case and punctuation, so `is_told` and `IsTold` are `is told`, too.
const RULED_OUT: &[(&str, &str)] = &[
    ("wish*", "desired, the desired cluster"),
    ("what stands", "what is blocked"),
    ("nobody has it", "the grant has no owner"),
    ("nobody owns it", "the grant has no owner"),
    ("owner nobody", "owner: none"),
    ("not heard of", "no heartbeat for 7s"),
    ("is heard of", "sends heartbeats"),
    ("was heard of", "sent a heartbeat"),
    ("been heard of", "has sent no heartbeat since"),
    ("never heard of", "has never sent a heartbeat"),
    ("sign of life", "heartbeat"),
    ("signs of life", "heartbeats"),
    ("is going", "is being deleted, terminating"),
    ("told of", "reported"),
    ("is told", "is reported, reports"),
    ("are told", "are reported"),
    ("was told", "was reported"),
    ("were told", "were reported"),
    ("been told", "been reported"),
    ("fresh look*", "live read"),
    ("look again", "read again, requeue"),
    ("looks again", "reads again, is requeued"),
    ("looked at", "read, checked"),
    ("seen afresh", "read live"),
    ("overtak*", "write conflict"),
    ("overtook", "write conflict"),
    ("misfit*", "the reason why a cluster does not fit"),
    ("sight", "live state"),
    ("no hands", "no driver"),
    ("hands of a controller", "the driver of a controller"),
    ("deed", "action"),
    ("deeds", "actions"),
    ("asked wrongly", "usage error"),
    ("duty", "background controller"),
    ("duties", "background controllers"),
    ("patien*", "backoff, timeout"),
    ("pace", "rate limit, interval"),
    ("paces", "rate limits, intervals"),
    ("say more why nothing", "enable debug logging"),
    ("why nothing happened too", "enable debug logging"),
    ("becomes of", "happens to"),
    ("become of", "happens to"),
    ("last image", "last snapshot"),
    ("image of a claim", "snapshot of a claim"),
    ("image of a volume", "snapshot of a volume"),
    ("image of the volume", "snapshot of the volume"),
    ("images of a claim", "snapshots of a claim"),
    ("images of a volume", "snapshots of a volume"),
];

/// Objects that are deleted; they do not go.
const OBJECTS: &[&str] = &[
    "namespace",
    "claim",
    "cluster",
    "grant",
    "snapshot",
    "volume",
    "pod",
    "destination",
    "source",
    "placement",
    "copy",
];

/// Where something goes that is not deleted.
const WAYS: &[&str] = &[
    "to",
    "into",
    "through",
    "on",
    "down",
    "by",
    "back",
    "from",
    "over",
    "out",
    "where",
    "along",
    "up",
    "elsewhere",
    "there",
    "in",
    "beyond",
    "ahead",
    "first",
];

/// Names that the specifications in TLA+ have, too.
const NAMES: &[&str] = &["destination-goes-early"];

/// Cargo says where it runs the test: clones of one repository may share a build cache.
fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test runs this");
    Path::new(&here).join("..").canonicalize().unwrap()
}

/// Models follow the specifications in TLA+, whose names are the authors' own.
fn is_model(path: &str) -> bool {
    const MODELS: &[&str] = &["seed", "fixed", "spec", "hold", "lease", "epoch", "queue"];
    let mut parts = path.split('/');
    let (folder, room) = (parts.next(), parts.nth(2).unwrap_or_default());
    folder == Some("systems") && MODELS.contains(&room.trim_end_matches(".rs"))
}

/// Every text of the project, by its path from the root. STYLE.md has the table itself, and this file
/// has it again.
fn texts(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "specs" {
                texts(&path, found);
            }
            continue;
        }
        let within = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let is_text = ["rs", "md", "yaml"].iter().any(|end| name.ends_with(&format!(".{end}")));
        if is_text && name != "STYLE.md" && within != "xtask/tests/words.rs" && !is_model(&within) {
            found.push((within, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The words of a line in small letters: names in code are taken apart.
fn words(line: &str) -> Vec<String> {
    let mut text = String::new();
    let mut was_small = false;
    for letter in line.chars() {
        if letter.is_uppercase() && was_small {
            text.push(' ');
        }
        was_small = letter.is_lowercase();
        text.extend(letter.to_lowercase().map(|it| if it.is_alphanumeric() { it } else { ' ' }));
    }
    text.split_whitespace().map(str::to_owned).collect()
}

fn fits(word: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => word == pattern,
    }
}

/// What is ruled out in a line, and what to write instead.
fn ruled_out(line: &str) -> Vec<(String, &'static str)> {
    let line = NAMES.iter().fold(line.to_owned(), |line, name| line.replace(name, ""));
    let words = words(&line);
    let mut found = Vec::new();
    for (phrase, instead) in RULED_OUT {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        let is_here = |at: &[String]| at.iter().zip(&phrase).all(|(word, part)| fits(word, part));
        if words.windows(phrase.len()).any(is_here) {
            found.push((phrase.join(" "), *instead));
        }
    }
    for (place, word) in words.iter().enumerate().skip(1) {
        let next = words.get(place + 1).map(String::as_str);
        let object = words[place - 1].as_str();
        if word == "goes" && OBJECTS.contains(&object) && !next.is_some_and(|it| WAYS.contains(&it))
        {
            found.push((format!("{object} goes"), "is being deleted, terminating"));
        }
    }
    found
}

#[test]
fn every_text_keeps_to_the_words_of_the_style() {
    let mut all = Vec::new();
    texts(&root(), &mut all);
    assert!(all.len() > 500, "only {} files were read", all.len());
    let mut wrong = Vec::new();
    for (path, text) in &all {
        for (number, line) in text.lines().enumerate() {
            for (word, instead) in ruled_out(line) {
                wrong.push(format!("{path}:{}: `{word}`: write `{instead}`", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "STYLE.md rules these words out:\n{}", wrong.join("\n"));
}

#[test]
fn a_word_of_the_table_is_found_however_it_is_written() {
    let found = |line: &str| ruled_out(line).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
    assert_eq!(found("/// The cluster that is wished"), ["wish*"]);
    assert_eq!(found("Reason::WishDoesNotFit"), ["wish*"]);
    assert_eq!(found("fn a_claim_is_told_why() {"), ["is told"]);
    assert_eq!(found("\"west is not heard of for 7s\""), ["not heard of"]);
    assert_eq!(found("/// The namespace goes, and"), ["namespace goes"]);
    assert_eq!(found("## What becomes of the data"), ["becomes of"]);
    assert_eq!(found("/// Say more: why nothing happened"), ["say more why nothing"]);
}

#[test]
fn ordinary_words_are_left_alone() {
    for line in ["a namespace goes through a repository", "indeed", "namespaces", "look up a table"]
    {
        assert!(ruled_out(line).is_empty(), "{line}: {:?}", ruled_out(line));
    }
}
