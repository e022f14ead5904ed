//! Kills a process that writes, again and again, and checks what the next one finds.
//!
//! The test starts itself anew as the writing process, which prints what it was reported and what it
//! saw. The number of kills is 40, or what `INTERLOCK_KILLS` says.

use interlock_store::{
    Changes, Embedded, Guard, Key, KeyRange, Operation, Options, Revision, Store, Transaction,
};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const DIRECTORY: &str = "INTERLOCK_CRASH_DIRECTORY";
const RESUME: &str = "INTERLOCK_CRASH_RESUME";
const WRITERS: u64 = 64;
/// Every transaction writes to the first, and to some of the others with it.
const TABLES: [&str; 3] = ["main", "left", "right"];

/// Small, so that there are many segments and checkpoints to be killed in.
fn options() -> Options {
    Options {
        segment_bytes: 256 << 10,
        checkpoint_bytes: 200 << 10,
        reserve_bytes: 0,
        ..Options::default()
    }
}

fn say(line: &str) {
    // One write for each line, so that a kill cuts off the last line at most.
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("the parent reads it");
}

fn value(count: u64) -> Vec<u8> {
    format!("{count} {}", "x".repeat((count * 37 % 900) as usize)).into_bytes()
}

fn count_of(bytes: &[u8]) -> u64 {
    let text = std::str::from_utf8(bytes).expect("it was written as text");
    text.split(' ').next().expect("there is a first word").parse().expect("it is a number")
}

/// Writes one number after the other to the same row of all tables, each guarded by the last.
async fn write(store: Embedded, writer: u64) {
    let row = format!("writer-{writer:02}");
    let found = store.range(KeyRange::prefix("main", &*row), None, 1).await.expect("it runs");
    let (mut count, mut last) = match found.items.first() {
        Some(item) => (count_of(item.value.bytes()), item.modified),
        None => (0, 0),
    };
    loop {
        let main = Key::new("main", &*row);
        let guard = if last == 0 { Guard::Absent(main) } else { Guard::At(main, last) };
        let put = |table: &&str| Operation::Put(Key::new(*table, &*row), value(count + 1));
        let operations = TABLES.iter().map(put).collect();
        let transaction = Transaction { guards: vec![guard], operations, fairness: writer };
        let committed = store.commit(transaction).await;
        (count, last) = (count + 1, committed.expect("nobody else writes this row"));
        say(&format!("ack {writer} {count} {last}\n"));
    }
}

async fn watch(store: Embedded, after: Revision) {
    let watched = store.watch(KeyRange::prefix("main", ""), after).await;
    let mut cursor = watched.expect("the compaction is far behind");
    loop {
        let batch = cursor.next().await.expect("the compaction is far behind");
        for change in &batch.changes {
            let count = change.after.as_ref().map(|after| count_of(after.value.bytes()));
            say(&format!("saw {} {} {}\n", change.revision, change.key.row, count.unwrap_or(0)));
        }
    }
}

async fn compact(store: Embedded) {
    loop {
        tokio::time::sleep(Duration::from_millis(15)).await;
        let newest = store.newest().await.expect("it runs");
        store.compact(newest.saturating_sub(4000)).await.expect("it runs");
    }
}

/// The process that is killed.
#[test]
#[ignore = "it is started by the test that kills it"]
fn writing_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let resume = std::env::var(RESUME).expect("both are set").parse().expect("it is a number");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("threads can be started");
    runtime.block_on(async {
        let store = Embedded::open(directory, options()).expect("the killed one left it in order");
        say(&format!("up {}\n", store.newest().await.expect("it runs")));
        for writer in 0..WRITERS {
            tokio::spawn(write(store.clone(), writer));
        }
        tokio::spawn(compact(store.clone()));
        watch(store, resume).await;
    });
}

/// What the parent was reported, over all the lives of the writing process.
#[derive(Default)]
struct Told {
    // The last number of each writer that was acknowledged, and its revision.
    acknowledged: BTreeMap<u64, (u64, Revision)>,
    seen: Revision,
    newest: Revision,
    lives: u64,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().expect("it is a number");
        match words[0] {
            "up" => {
                let revision = number(1);
                assert!(revision >= self.newest, "revisions ran back to {revision}");
                self.newest = revision;
                self.lives += 1;
            }
            "ack" => {
                self.acknowledged.insert(number(1), (number(2), number(3)));
                self.newest = self.newest.max(number(3));
            }
            "saw" => {
                // Every transaction changes this table, so none may be left out or come twice.
                assert_eq!(
                    number(1),
                    self.seen + 1,
                    "the watcher missed something or saw it twice"
                );
                self.seen = number(1);
                self.newest = self.newest.max(self.seen);
            }
            // What the test harness prints.
            _ => {}
        }
    }
}

fn start(directory: &Path, resume: Revision) -> Child {
    Command::new(std::env::current_exe().expect("this is a program"))
        .args(["--exact", "writing_process", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(RESUME, resume.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can be started again")
}

/// Lets the process work for a while after it is up, kills it, and listens to its last words.
fn one_life(directory: &Path, told: &mut Told, work: Duration) {
    let mut child = start(directory, told.seen);
    let mut out = BufReader::new(child.stdout.take().expect("it was piped"));
    let (lines, heard) = mpsc::channel();
    let listener = std::thread::spawn(move || {
        let mut line = String::new();
        // The last line may be cut off: without its end it was not said.
        while out.read_line(&mut line).is_ok() && line.ends_with('\n') {
            let _ = lines.send(std::mem::take(&mut line));
        }
    });
    let mut all = Vec::new();
    loop {
        let line = heard.recv().expect("it says that it is up");
        let is_up = line.starts_with("up ");
        all.push(line);
        if is_up {
            break;
        }
    }
    std::thread::sleep(work);
    child.kill().expect("it runs until it is killed");
    child.wait().expect("it was started here");
    listener.join().expect("it only listens");
    all.extend(heard.try_iter());
    all.iter().for_each(|line| told.hear(line.trim_end()));
}

async fn check(directory: &Path, told: &mut Told) {
    let store = Embedded::open(directory, options()).expect("the killed one left it in order");
    let newest = store.newest().await.expect("it runs");
    assert!(newest >= told.newest, "{} was reported, {newest} is there", told.newest);
    told.newest = newest;
    let mut pages = Vec::new();
    for table in TABLES {
        let page = store.range(KeyRange::prefix(table, ""), None, usize::MAX).await;
        let rows = page.expect("it runs").items.into_iter().map(|item| {
            let count = count_of(item.value.bytes());
            assert_eq!(item.value.bytes(), value(count), "half a value");
            (item.key.row.to_string(), (count, item.created, item.modified))
        });
        pages.push(rows.collect::<BTreeMap<_, _>>());
    }
    assert!(pages[0] == pages[1] && pages[1] == pages[2], "a transaction is there in half");
    for (writer, (count, revision)) in &mut told.acknowledged {
        let row = format!("writer-{writer:02}");
        let (found, _, modified) = pages[0][&row];
        let is_kept = found == *count && modified == *revision;
        let is_followed = found == *count + 1 && modified > *revision;
        assert!(is_kept || is_followed, "{row} was reported {count} at {revision}, found {found}");
        if *revision >= store.floor() {
            let range = KeyRange::prefix("left", &*row);
            let page = store.range(range, Some(*revision), 1).await.expect("it is kept");
            assert_eq!(count_of(page.items[0].value.bytes()), *count);
        }
        // What was read must not be lost either.
        (*count, *revision) = (found, modified);
    }
    store.close().await;
}

#[test]
fn killed_at_any_moment_nothing_that_was_acknowledged_is_lost() {
    let kills = std::env::var("INTERLOCK_KILLS").ok().and_then(|text| text.parse().ok());
    let kills: u64 = kills.unwrap_or(40);
    let directory = Scratch::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it needs nothing");
    let mut told = Told::default();
    let mut state = u64::from(std::process::id()) | 1;
    for _ in 0..kills {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        one_life(&directory.0, &mut told, Duration::from_micros(state % 120_000));
        runtime.block_on(check(&directory.0, &mut told));
    }
    assert_eq!(told.lives, kills);
    assert!(told.acknowledged.len() as u64 == WRITERS && told.newest > kills, "hardly any writes");
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let name = format!("interlock-store-crash-{}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After a failure the files are evidence.
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
