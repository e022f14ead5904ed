//! Eight processes on the ports of one device, with random calls: no read-back contradicts an earlier report.

use crate::support::driver;
use interlock_nodes::outside::{Action, Entry, Gate, Port, Question, Tag};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const FOLDER: &str = "INTERLOCK_TEST_DPU_FOLDER";
const NUMBER: &str = "INTERLOCK_TEST_DPU_NUMBER";
const PROCESSES: u64 = 8;
/// How many calls all of them make together; [`CALLS`] unless this says otherwise.
const CALLS_OF_ALL: &str = "INTERLOCK_DPU_CALLS";
const CALLS: u64 = 10_000;

/// Numbers that look random and are the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The floor that the hub has for the node of a port: read live, or raised before anybody is asked to isolate.
fn hub(folder: &Path, port: &str, raise: i64) -> i64 {
    let path = folder.join("hub").join(port);
    let mut file =
        File::options().create(true).truncate(false).read(true).write(true).open(path).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    let floor = text.trim().parse().unwrap_or(0) + raise;
    file.set_len(0).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    write!(file, "{floor}").unwrap();
    floor
}

fn calls_of_each() -> u64 {
    let asked = std::env::var(CALLS_OF_ALL).map(|number| number.parse().expect("a number"));
    asked.unwrap_or(CALLS).div_ceil(PROCESSES)
}

/// A clock of all processes: what it said before is before what it says later.
fn now(folder: &Path) -> i64 {
    hub(folder, "clock", 1)
}

/// One line for one read-back: from when to when, and what was seen.
fn line(from: i64, until: i64, port: &Port) -> String {
    let open = match &port.gate {
        Gate::Open(entry) => entry.tag.epoch,
        Gate::Closed => 0,
        Gate::Foreign(words) => panic!("the local driver has nothing foreign: {words}"),
    };
    let record = &port.record;
    let node = record.node.as_deref().unwrap_or("-");
    format!("{from} {until} {} {} {node} {} {open}\n", port.name, record.term.0, record.floor)
}

/// What one process does. It is a test, so that it can be started as one: without the folder it does nothing.
#[test]
fn a_process_with_random_calls() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let number: u64 = std::env::var(NUMBER).unwrap().parse().unwrap();
    let driver = driver(&folder.join("dpu"), "boot");
    let (mut chance, mut log) = (Chance(0x9E37_79B9_7F4A_7C15 ^ (number + 1)), String::new());
    for _ in 0..20 {
        chance.below(2);
    }
    for _ in 0..calls_of_each() {
        let port = format!("p{}", chance.below(2));
        let from = now(folder);
        let answer = driver.answer(&Question::Port(port.clone())).unwrap();
        let read = answer.port(&port).unwrap().clone();
        log += &line(from, now(folder), &read);
        let (term, node) = (read.record.term.clone(), format!("node-{port}"));
        let floor = hub(folder, &port, i64::from(chance.below(4) == 0));
        if chance.below(3) == 0 {
            std::thread::yield_now();
        }
        let action = match chance.below(8) {
            _ if read.record.node.is_none() => Action::Adopt { port, term, node, floor },
            0 => Action::Adopt { port, term, node, floor },
            1 | 2 => Action::Isolate { port, term, node, floor },
            3 => {
                let Gate::Open(entry) = read.gate else { continue };
                Action::Detach { port, term, tag: Some(entry.tag) }
            }
            4 if chance.below(4) == 0 => {
                let _ = fs::remove_file(folder.join("dpu").join(format!("{port}.record")));
                continue;
            }
            _ => {
                let tag = Tag {
                    node,
                    tenant: format!("tenant-{number}"),
                    claim: "claim".to_owned(),
                    attachment: "attachment".to_owned(),
                    epoch: floor + 1,
                };
                let entry = Entry {
                    tag,
                    vni: 4096,
                    mac: "02:00:00:00:00:01".to_owned(),
                    addresses: vec![],
                };
                Action::Attach { port, term, entry, vteps: vec![] }
            }
        };
        // Refusals are what it is about.
        let _ = driver.perform(&action);
    }
    fs::write(folder.join(format!("log-{number}")), log).unwrap();
}

/// A read-back of the log.
struct Seen {
    from: i64,
    until: i64,
    port: String,
    term: String,
    node: String,
    floor: i64,
    open: i64,
}

fn seen(line: &str) -> Seen {
    let mut parts = line.split(' ');
    let mut next = || parts.next().unwrap().to_owned();
    let (from, until) = (next().parse().unwrap(), next().parse().unwrap());
    let (port, term, node) = (next(), next(), next());
    Seen {
        from,
        until,
        port,
        term,
        node,
        floor: next().parse().unwrap(),
        open: next().parse().unwrap(),
    }
}

#[test]
fn no_read_back_contradicts_an_earlier_report_of_any_process() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("hub")).unwrap();
    let start = |number: u64| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::a_process_with_random_calls"])
            .env(FOLDER, folder.path())
            .env(NUMBER, number.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let processes: Vec<_> = (0..PROCESSES).map(start).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let mut all = Vec::new();
    for number in 0..PROCESSES {
        let log = fs::read_to_string(folder.path().join(format!("log-{number}"))).unwrap();
        all.extend(log.lines().map(seen));
    }
    let opened = all.iter().filter(|it| it.open > 0).count();
    let compared = compare(&all);
    assert!(
        all.len() as u64 == PROCESSES * calls_of_each()
            && opened * 25 > all.len()
            && compared > all.len() * 10,
        "{} read-backs, {opened} open, {compared} pairs",
        all.len()
    );
}

/// The highest floors that read-backs have shown which were over before a moment.
#[derive(Default)]
struct Shown<'a> {
    of_term: HashMap<(&'a str, &'a str), i64>,
    /// Of a port with the node of its record: what may be reported.
    of_node: HashMap<(&'a str, &'a str), i64>,
    read_backs: HashMap<&'a str, usize>,
}

impl<'a> Shown<'a> {
    fn add(&mut self, earlier: &'a Seen) {
        let port = &*earlier.port;
        let raise = |floor: &mut i64| *floor = earlier.floor.max(*floor);
        raise(self.of_term.entry((port, &*earlier.term)).or_default());
        if earlier.node != "-" {
            raise(self.of_node.entry((port, &*earlier.node)).or_default());
        }
        *self.read_backs.entry(port).or_default() += 1;
    }

    /// Holds a read-back against them; how many they are.
    fn compare(&self, later: &Seen) -> usize {
        let port = &*later.port;
        assert!(later.open == 0 || later.open > later.floor, "open at or under its own floor");
        let of_term = self.of_term.get(&(port, &*later.term)).copied().unwrap_or_default();
        assert!(of_term <= later.floor, "the floor of {port} fell");
        let of_node = self.of_node.get(&(port, &*later.node)).copied();
        assert!(
            later.open == 0 || of_node.is_none_or(|floor| later.open > floor),
            "{port} is open at {}, and floor {of_node:?} was reported",
            later.open,
        );
        self.read_backs.get(port).copied().unwrap_or_default()
    }
}

/// Holds each read-back against all that were over before it began; the number of such pairs.
fn compare(all: &[Seen]) -> usize {
    let (mut ended, mut begun): (Vec<&Seen>, Vec<&Seen>) =
        (all.iter().collect(), all.iter().collect());
    ended.sort_by_key(|it| it.until);
    begun.sort_by_key(|it| it.from);
    let (mut shown, mut ended, mut compared) = (Shown::default(), ended.into_iter().peekable(), 0);
    for later in begun {
        while let Some(earlier) = ended.next_if(|it| it.until < later.from) {
            shown.add(earlier);
        }
        compared += shown.compare(later);
    }
    compared
}

#[test]
#[should_panic(expected = "the floor of p1 fell")]
fn a_floor_that_falls_between_two_read_backs_is_noticed() {
    compare(&[seen("1 2 p1 t n 3 0"), seen("4 5 p1 t n 2 0")]);
}

#[test]
#[should_panic(expected = "p1 is open at 3, and floor Some(3) was reported")]
fn a_port_that_is_open_under_a_reported_floor_is_noticed() {
    compare(&[seen("1 2 p1 t n 3 0"), seen("4 5 p1 another n 2 3")]);
}
