//! The lines of the pages that show what to type, typed: `cargo xtask test-real --only docs`.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The pages whose every line is run, in this order, against one fleet.
const PAGES: [&str; 2] = ["docs/tour.md", "docs/workloads.md"];
/// How long a page may take.
const TIMEOUT: &str = "300";
/// How long the fleet may take to be there.
const START: Duration = Duration::from_secs(120);
/// What begins the output of a line, with its number behind it.
const MARK: &str = "### line ";

fn root() -> PathBuf {
    // Where cargo runs the test, not where it was compiled: clones may share a build cache.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the test");
    PathBuf::from(here).join("../..").canonicalize().expect("it is there")
}

/// A line of a page that is typed.
#[derive(Debug, Default)]
struct Line {
    number: usize,
    command: String,
    /// The first word of each line that the page shows after it.
    shows: Vec<String>,
}

/// The lines of a page that are typed, but for that which starts the fleet.
fn lines(page: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let (mut is_console, mut is_document) = (false, false);
    for (number, text) in page.lines().enumerate() {
        if let Some(kind) = text.strip_prefix("```") {
            is_console = kind == "console";
        } else if !is_console {
        } else if let Some(command) = text.strip_prefix("$ ") {
            is_document = command.contains("<<EOF");
            lines.push(Line { number: number + 1, command: command.to_owned(), ..Line::default() });
        } else if let Some(line) = lines.last_mut() {
            if is_document {
                line.command += &format!("\n{text}");
                is_document = text != "EOF";
            } else {
                let first = text.split_whitespace().next().filter(|word| *word != "...");
                line.shows.extend(first.map(str::to_owned));
            }
        }
    }
    lines.retain(|line| line.command != "interlock up");
    lines
}

/// What the page lacks that was printed: the line, and the word that it shows.
fn missing(lines: &[Line], printed: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for line in lines {
        let mark = format!("{MARK}{}\n", line.number);
        let after = printed.split_once(&mark).map_or("", |(_, after)| after);
        let own = after.split(MARK).next().unwrap_or_default();
        for word in &line.shows {
            let is_there = own
                .lines()
                .any(|it| it.split_whitespace().next().is_some_and(|it| it.starts_with(word)));
            if !is_there {
                missing.push(format!("line {}: no line begins with {word:?}:\n{own}", line.number));
            }
        }
    }
    missing
}

/// A fleet that ends with the test.
struct Fleet(Child);

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

fn in_home(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).env("HOME", home).env_remove("XDG_DATA_HOME");
    command.env_remove("KUBECONFIG").env_remove("RUST_LOG").env("NO_COLOR", "1");
    command
}

#[test]
fn a_page_is_read_as_a_person_types_it() {
    let page = "x\n```console\n$ interlock up\n```\n```console\n$ a  # why\nNAME  AGE\nb     1s\n...\n\
                $ apply <<EOF\nkind: x\nEOF\n$ c\n```\n$ not typed\n";
    let read = lines(page);
    let commands: Vec<&str> = read.iter().map(|line| line.command.as_str()).collect();
    assert_eq!(commands, ["a  # why", "apply <<EOF\nkind: x\nEOF", "c"]);
    assert_eq!(read[0].shows, ["NAME", "b"]);
    let printed = format!("{MARK}6\nNAME AGE\n{MARK}10\n{MARK}13\n");
    assert_eq!(missing(&read, &printed).len(), 1);
}

#[test]
#[ignore = "kubectl is needed: cargo xtask test-real"]
fn every_line_of_the_pages_does_what_they_say() {
    let binary = std::env::var_os("INTERLOCK_BINARY");
    let binary = binary.map_or_else(|| env!("CARGO_BIN_EXE_interlock").into(), PathBuf::from);
    let place = tempfile::tempdir().expect("a temporary directory");
    let (home, programs) = (place.path().join("home"), place.path().join("bin"));
    fs::create_dir_all(&home).expect("it is ours");
    fs::create_dir_all(&programs).expect("it is ours");
    std::os::unix::fs::symlink(&binary, programs.join("interlock")).expect("it is ours");
    let says = place.path().join("up.log");
    let log =
        || Stdio::from(File::options().create(true).append(true).open(&says).expect("it is ours"));
    let mut up = in_home(&binary, &home);
    up.args(["up", "--listen", "127.0.0.1:0"]);
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        up.arg("--allow-root-processes");
    }
    let up = up.stdin(Stdio::null()).stdout(log()).stderr(log()).spawn();
    let _fleet = Fleet(up.expect("the binary runs"));
    let said = || fs::read_to_string(&says).unwrap_or_default();
    let began = Instant::now();
    while !said().contains("ready") {
        assert!(began.elapsed() < START, "the fleet is not ready: {}", said());
        sleep(Duration::from_millis(100));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    for name in PAGES {
        let page = fs::read_to_string(root().join(name)).expect("it is there");
        let lines = lines(&page);
        assert!(lines.len() > 10, "{name} has {} lines to type", lines.len());
        let mut script =
            "set -euo pipefail\nexport KUBECONFIG=~/.local/share/interlock/kubeconfig\n".to_owned();
        for line in &lines {
            script += &format!("echo '{MARK}{}'\n{}\n", line.number, line.command);
        }
        let mut bash = in_home(Path::new("timeout"), &home);
        bash.args([TIMEOUT, "bash", "-c", &format!("exec 2>&1\n{script}")]);
        bash.env("PATH", format!("{}:{path}", programs.display()));
        let output = bash.output().expect("there is a bash");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {}\n{printed}\n{}", output.status, said());
        let missing = missing(&lines, &printed);
        assert!(missing.is_empty(), "{name}: {missing:#?}");
    }
}
