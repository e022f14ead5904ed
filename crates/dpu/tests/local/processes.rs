//! Eight processes on the ports of one device, with random calls: no read-back contradicts an earlier report.

use crate::support::driver;
use interlock_nodes::outside::{Action, Entry, Gate, Port, Question, Tag};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const FOLDER: &str = "INTERLOCK_TEST_DPU_FOLDER";
const NUMBER: &str = "INTERLOCK_TEST_DPU_NUMBER";
const PROCESSES: u64 = 8;
const CALLS: u64 = 120;

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
    for _ in 0..CALLS {
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
    let (mut opened, mut compared) = (0, 0);
    for later in &all {
        opened += usize::from(later.open > 0);
        assert!(later.open == 0 || later.open > later.floor, "open at or under its own floor");
        for earlier in all.iter().filter(|it| it.until < later.from && it.port == later.port) {
            compared += 1;
            if earlier.term == later.term {
                assert!(earlier.floor <= later.floor, "the floor of {} fell", later.port);
            }
            let is_reported = earlier.node != "-" && earlier.node == later.node;
            assert!(
                !is_reported || later.open == 0 || later.open > earlier.floor,
                "{} is open at {}, and floor {} was reported",
                later.port,
                later.open,
                earlier.floor
            );
        }
    }
    assert!(
        all.len() as u64 == PROCESSES * CALLS && opened > 50 && compared > 10_000,
        "{} read-backs, {opened} open, {compared} pairs",
        all.len()
    );
}
