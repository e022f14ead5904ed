//! A writer whose records are in its claim: clusters that share no storage, and nothing is lost.

use super::chaos::{Done, MOVES, Random, seed};
use super::fleet::{Fleet, until};
use super::processes::{Watcher, writers};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The snapshot that the owner of a grant started from.
fn snapshot(grant: &Value) -> Value {
    grant["status"]["pins"][0]["snapshot"].clone()
}

#[test]
fn a_writer_in_its_claim_moves_ten_times_under_random_kills_and_loses_nothing() {
    let fleet = Fleet::of(&["west", "east"]);
    let numbers = fleet.numbers();
    let watcher = Watcher::of(numbers.directory());
    let uid = fleet.place_in_claim("ledger", "west", &numbers);
    fleet.writes_on("ledger", &uid, "west");
    let (mut random, mut done) = (Random(seed()), Done::default());
    for to in ["east", "west"].iter().cycle().take(MOVES) {
        fleet.place_on("ledger", to);
        done.disturb(&fleet, "ledger", &uid, &mut random);
        let grant = fleet.writes_on("ledger", &uid, to);
        let count = numbers.prove_all_are_in(&fleet.volumes(to));
        let from = snapshot(&grant)["volumeSnapshot"]["cluster"]["name"].clone();
        assert_ne!(from, **to, "its data came from the other cluster: {grant:#}");
        eprintln!("on {to}: {count} records, all there");
    }
    let (found, grant) = (writers(numbers.directory()), fleet.grant("ledger", &uid));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(grant["status"]["epoch"], 1 + MOVES as i64, "every move is one epoch");
    fleet.delete("ledger");
    let seen = watcher.saw();
    assert!(seen.together.is_empty(), "two writers at once (seed {}): {seen:?}", seed());
    assert!(seen.with_one > 100 && done.in_the_middle > 0, "too little: {done:?}, {seen:?}");
    let epochs: Vec<i64> = (1..=1 + MOVES as i64).collect();
    assert_eq!(numbers.prove_one_writer_after_another(), epochs, "every owner wrote");
    // What was deleted is deleted: no volume and no snapshot is left on the disk.
    for cluster in ["west", "east"] {
        until(&format!("nothing is left on {cluster}"), || {
            let left = [fleet.volumes(cluster), fleet.snapshots(cluster)].concat();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
    }
    fleet.end(&[]);
}

#[test]
fn a_move_whose_desired_cluster_comes_back_in_time_copies_nothing() {
    let fleet = Fleet::of(&["west", "east"]);
    let log = fleet.path("numbers/numbers");
    let script = format!(
        "trap '' TERM; while true; do echo \"$INTERLOCK_EPOCH\" >> data/epochs; \
         n=$(wc -l < data/epochs); echo \"$n $INTERLOCK_EPOCH\" >> {}; sleep 0.05; done",
        log.display()
    );
    let numbers = fleet.numbers();
    let uid = fleet.place_command("shop", "west", &json!(["sh", "-c", script]));
    fleet.writes_on("shop", &uid, "west");
    let before = fleet.volumes("west");
    fleet.place_on("shop", "east");
    // It does not stop before its time is over.
    until("it is taken back", || {
        let grant = fleet.grant("shop", &uid);
        if grant["status"]["phase"] == "Revoking" { Ok(()) } else { Err(fleet.story(&grant)) }
    });
    fleet.place_on("shop", "west");
    let grant = until("it runs again where it was", || {
        let grant = fleet.grant("shop", &uid);
        let is_there = numbers.last().is_some_and(|last| last.epoch == 2);
        if is_there { Ok(grant) } else { Err(fleet.story(&grant)) }
    });
    assert_eq!(grant["status"]["owner"]["name"], "west");
    assert!(snapshot(&grant)["inPlace"].is_object(), "{grant:#}");
    assert_eq!(fleet.volumes("west"), before, "it has the volume that it had");
    assert_eq!(fleet.snapshots("west"), [""; 0].map(PathBuf::from), "no snapshot was taken");
    assert_eq!(fleet.volumes("east"), [""; 0].map(PathBuf::from), "nothing was copied");
    fleet.end(&["shop"]);
}

/// Asks a database something.
fn sqlite(database: &Path, question: &str) -> String {
    let mut command = Command::new("sqlite3");
    let output = command.args(["-cmd", ".timeout 5000"]).arg(database).arg(question).output();
    let output = output.expect("sqlite3 is not here: apt-get install sqlite3");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
#[ignore = "needs sqlite3: cargo xtask test-real"]
fn a_database_in_a_claim_loses_no_acknowledged_row() {
    assert_eq!(sqlite(Path::new(":memory:"), "select 1"), "1");
    let fleet = Fleet::of(&["west", "east"]);
    let numbers = fleet.numbers();
    let log = numbers.directory().join("numbers");
    // A row is acknowledged when sqlite3 has said that it is committed, in a log outside.
    let script = format!(
        "sqlite3 data/db 'pragma journal_mode=wal; create table if not exists rows(n integer \
         primary key, epoch integer)'; while true; do n=$(sqlite3 -cmd '.timeout 5000' data/db \
         \"pragma synchronous=full; insert into rows(epoch) values($INTERLOCK_EPOCH) returning n\") \
         && echo \"$n $INTERLOCK_EPOCH\" >> {}; done",
        log.display()
    );
    let uid = fleet.place_command("shop", "west", &json!(["sh", "-c", script]));
    fleet.writes_on("shop", &uid, "west");
    let (mut random, mut done) = (Random(seed()), Done::default());
    for to in ["east", "west"].iter().cycle().take(MOVES) {
        fleet.place_on("shop", to);
        done.disturb(&fleet, "shop", &uid, &mut random);
        fleet.writes_on("shop", &uid, to);
    }
    fleet.place_on("shop", "east");
    fleet.writes_on("shop", &uid, "east");
    let acknowledged = std::fs::read_to_string(&log).expect("it was written");
    let last = |volume: &PathBuf| {
        let database = volume.join("db");
        let is_there = database.is_file();
        is_there.then(|| sqlite(&database, "select ifnull(max(epoch), 0) from rows").parse::<i64>())
    };
    let volumes = fleet.volumes("east");
    let volume = volumes.iter().max_by_key(|volume| last(volume).and_then(Result::ok));
    let database = volume.expect("a volume").join("db");
    assert_eq!(sqlite(&database, "pragma integrity_check"), "ok");
    let rows = sqlite(&database, "select n || ' ' || epoch from rows order by n");
    let rows: std::collections::BTreeSet<&str> = rows.lines().collect();
    let whole = acknowledged.rsplit_once('\n').expect("records").0;
    let lost: Vec<&str> = whole.lines().filter(|record| !rows.contains(record)).collect();
    assert!(lost.is_empty(), "{} acknowledged rows are lost: {lost:?}", lost.len());
    eprintln!("{} rows acknowledged, {} there, {done:?}", whole.lines().count(), rows.len());
    fleet.end(&["shop"]);
}
