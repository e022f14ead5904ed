//! What ARCHITECTURE.md says of the code, held against the code.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Every file below a folder that ends so.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The sources of each of our crates, by the name of its folder.
fn crates() -> Vec<(String, PathBuf)> {
    let root = root();
    let mut found = Vec::new();
    for folder in ["crates", "systems", "tests"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.join("src").is_dir() {
                found.push((path.file_name().unwrap().to_string_lossy().into(), path.join("src")));
            }
        }
    }
    found.sort();
    found
}

/// Code without its comments, and without the tests at its end.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The names that follow each `crate::`, braces included.
fn imported(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        let Some(list) = part.strip_prefix('{') else {
            names.extend(first_name(part));
            continue;
        };
        let (mut depth, mut begins) = (0_i32, true);
        for (place, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                _ if begins && depth == 0 && !letter.is_whitespace() => {
                    begins = false;
                    names.extend(first_name(&list[place..]));
                }
                _ => {}
            }
        }
    }
    names
}

fn first_name(text: &str) -> Option<String> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name: String = text.chars().take_while(|letter| is_name(*letter)).collect();
    (!name.is_empty()).then_some(name)
}

/// Which modules at the top of a crate import which.
fn imports(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files(source, ".rs") {
        let within = path.strip_prefix(source).unwrap().to_string_lossy().into_owned();
        if within.split('/').any(|part| part == "tests" || part == "tests.rs") {
            continue;
        }
        let top = within.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        if top != "lib" && top != "main" {
            graph.entry(top).or_default().extend(imported(&code(&path)));
        }
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (of, names) in &mut graph {
        names.retain(|name| name != of && modules.contains(name));
    }
    graph
}

/// The modules that import each other, directly or through others.
fn circle(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let reached = |from: &String| {
        let mut reached: BTreeSet<&String> = graph[from].iter().collect();
        let mut open: Vec<&String> = reached.iter().copied().collect();
        while let Some(module) = open.pop() {
            open.extend(graph[module].iter().filter(|next| reached.insert(next)));
        }
        reached
    };
    graph.keys().filter(|module| reached(module).contains(module)).cloned().collect()
}

#[test]
fn no_module_imports_one_that_imports_it() {
    // A world and the trait of what it explores name each other.
    let known = BTreeMap::from([("world", ["scene", "system", "world"])]);
    for (name, source) in crates() {
        let circle = circle(&imports(&source));
        let known = known.get(name.as_str()).into_iter().flatten();
        let known: BTreeSet<String> = known.map(|module| (*module).to_owned()).collect();
        assert_eq!(circle, known, "a circle of imports in {name}");
    }
}

#[test]
fn every_entry_point_of_the_architecture_is_where_it_says() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("## Where do I look when").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut rows = 0;
    for row in section.lines().filter(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let quoted = |cell: &str| -> Vec<String> {
            cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        let named = quoted(cells[1]);
        assert!(!named.is_empty(), "{row} names a file");
        let mut found = String::new();
        for file in &named {
            found += &fs::read_to_string(root().join(file)).unwrap_or_else(|_| panic!("no {file}"));
        }
        // The first word of the last cell is the function or type, if it is one.
        if let Some(item) = quoted(cells[2]).first().filter(|_| cells[2].trim().starts_with('`')) {
            let is_there = ["fn ", "struct ", "enum ", "mod "]
                .iter()
                .any(|kind| found.contains(&format!("{kind}{item}")) || root().join(item).exists());
            assert!(is_there || item == "feed", "{item} is not in {named:?}");
        }
        rows += 1;
    }
    assert!(rows >= 10, "the table is read");
}
