//! What ARCHITECTURE.md says of the code, held against the code.

#![allow(clippy::unwrap_used, reason = "this is a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Cargo says where it runs the test: clones of one repository may share a build cache.
fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test runs this");
    Path::new(&here).join("..").canonicalize().unwrap()
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
    let known: BTreeMap<&str, &[&str]> =
        BTreeMap::from([("world", ["scene", "system", "world"].as_slice())]);
    for (name, source) in crates() {
        let circle = circle(&imports(&source));
        let known = known.get(name.as_str()).copied().unwrap_or_default().iter();
        let known: BTreeSet<String> = known.map(|module| (*module).to_owned()).collect();
        assert_eq!(circle, known, "a circle of imports in {name}");
    }
}

/// The text between the next quotes, or the next name.
fn value_of(text: &str, field: &str) -> Option<String> {
    let after = text.split_once(field)?.1.trim_start();
    match after.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().map(str::to_owned),
        None => first_name(after),
    }
}

#[test]
fn a_module_with_parts_is_a_file_beside_their_folder() {
    let sources = crates().into_iter().flat_map(|(_, source)| files(&source, ".rs"));
    let others: Vec<PathBuf> =
        sources.filter(|path| path.file_name().is_some_and(|name| name == "mod.rs")).collect();
    assert!(others.is_empty(), "name.rs beside name/, and not name/mod.rs: {others:?}");
}

#[test]
fn no_two_indexes_of_a_kind_have_one_name() {
    // A cache files objects by the first index of a name. The second one would be read as the first, and
    // a controller would not learn of what it waits for.
    let mut known: BTreeMap<(String, String), PathBuf> = BTreeMap::new();
    for path in files(&root().join("systems"), ".rs") {
        for index in code(&path).split("Index {").skip(1) {
            let (Some(name), Some(kind)) = (value_of(index, "name:"), value_of(index, "kind:"))
            else {
                continue;
            };
            // The systems name some kinds differently: SNAPSHOT and SNAPSHOT_KIND are one.
            let kind = kind.trim_end_matches("_KIND").to_owned();
            let before = known.insert((kind.clone(), name.clone()), path.clone());
            assert_eq!(before, None, "{} has another index {name} of {kind}", path.display());
        }
    }
    assert!(known.len() > 30, "the indexes are read: {known:?}");
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

/// The functions in some code with a parameter that is a tuple, with their lines.
fn bundling(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (place, _) in code.match_indices("fn ") {
        let is_word = code[..place].ends_with(|letter: char| letter.is_alphanumeric());
        let Some(name) = first_name(&code[place + 3..]).filter(|_| !is_word) else { continue };
        let parameters = parameters(&code[place + 3 + name.len()..]);
        if parameters.iter().any(|parameter| is_tuple(parameter)) {
            found.push((1 + code[..place].matches('\n').count(), name));
        }
    }
    found
}

/// The parameters of a function, from what follows its name.
fn parameters(text: &str) -> Vec<String> {
    let (mut angles, mut depth, mut found) = (0_i32, 0_i32, vec![String::new()]);
    let mut before = ' ';
    for letter in text.chars() {
        match letter {
            '<' => angles += 1,
            '>' if before != '-' => angles -= 1,
            '(' | '[' | '{' if angles == 0 || depth > 0 => depth += 1,
            ')' | ']' | '}' if angles == 0 || depth > 0 => depth -= 1,
            _ => {}
        }
        before = letter;
        if depth == 0 && letter == ')' {
            break;
        }
        let is_opening = depth == 1 && letter == '(' && found.len() == 1 && found[0].is_empty();
        if depth == 1 && angles == 0 && letter == ',' {
            found.push(String::new());
        } else if depth > 0 && !is_opening {
            found.last_mut().unwrap().push(letter);
        }
    }
    found.iter().map(|parameter| parameter.trim().to_owned()).collect()
}

/// Whether a parameter is taken apart as a tuple, or is of a tuple's type.
fn is_tuple(parameter: &str) -> bool {
    if parameter.trim_start_matches('&').starts_with('(') {
        return true;
    }
    let Some((_, kind)) = parameter.split_once(':') else { return false };
    let mut kind = kind.trim_start().trim_start_matches('&');
    if kind.starts_with('\'') {
        kind = kind.split_once(' ').map_or("", |(_, kind)| kind);
    }
    let Some(inner) = kind.trim_start_matches("mut ").strip_prefix('(') else { return false };
    let (mut depth, mut before) = (0_i32, ' ');
    for letter in inner.chars() {
        match letter {
            // Without a comma it is one type in parentheses: `&(dyn Any + Send)`.
            ',' if depth == 0 => return true,
            ')' if depth == 0 => return false,
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        before = letter;
    }
    false
}

/// Files whose functions may take tuples, with the reason.
const MAY_BUNDLE: [(&str, &str); 5] = [
    ("crates/cli/src/fleet/scene.rs", "for tests only"),
    (
        "crates/restic/src/lock.rs",
        "a condition variable and its mutex, as the standard library pairs them",
    ),
    ("systems/identities/src/world/clients.rs", "the question and the action of a driver's trait"),
    ("systems/placement/src/syncer/leftover/act.rs", "a row of the scene"),
    ("systems/volumes/src/world/disks.rs", "the key of a map"),
];

#[test]
fn no_function_bundles_its_parameters_into_a_tuple() {
    let mut sources: Vec<PathBuf> = crates().into_iter().map(|(_, source)| source).collect();
    sources.extend([root().join("xtask/src"), root().join("benches/load/src")]);
    let mut wrong = Vec::new();
    let mut functions = 0;
    for path in sources.iter().flat_map(|source| files(source, ".rs")) {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let is_test = name.contains("/src/") && name.ends_with("tests.rs")
            || name.split("/src/").nth(1).is_some_and(|within| within.contains("tests/"));
        if is_test || MAY_BUNDLE.iter().any(|(allowed, _)| name == *allowed) {
            continue;
        }
        let code = code(&path);
        functions += code.matches("fn ").count();
        wrong.extend(bundling(&code).iter().map(|(line, of)| format!("{name}:{line} {of}")));
    }
    assert!(functions > 1000, "the sources are read: {functions} functions");
    assert!(
        wrong.is_empty(),
        "a tuple that only bundles parameters is a parameter too many: give each its own, up to \
         four, or make the tuple a struct with a name (STYLE.md)\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_tuple_among_the_parameters_is_found() {
    let code = "fn a(x: u8, y: (u8, u8)) {}\nfn b<F: Fn(u8) -> u8>(f: F) {}\n\
                fn c(\n    &self,\n    (x, y): (u8, u8),\n) {}\nfn d(&(x, y): &(u8, u8)) {}\n\
                fn e(map: HashMap<u8, (u8, u8)>, each: impl Fn((u8, u8))) {}\n\
                fn f(each: &(impl Fn(u8, u8) -> Vec<u8> + Sync), nothing: ()) {}\n\
                fn g(pair: &'static mut (Vec<u8>, u8)) {}";
    let found: Vec<String> =
        bundling(code).into_iter().map(|(line, of)| format!("{line} {of}")).collect();
    assert_eq!(found, ["1 a", "3 c", "7 d", "10 g"]);
}
