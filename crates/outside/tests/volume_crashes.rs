//! Whoever makes volumes is killed at any moment: what is whole is all of it, and the rest is redone.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod shelves;

use interlock_outside::volumes::{Copying, LocalVolumes, Made, NewCopy, Volumes, digest_of};
use shelves::{CLUSTER, Random, Shelves, from, seen, until};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "INTERLOCK_TEST_ROLE";
const PLACE: &str = "INTERLOCK_TEST_PLACE";
const PLAYER: &str = "this_binary_plays_the_other_parts_too";

/// Many files, so that there are many moments.
fn fill(volume: &Path) {
    for folder in 0..20 {
        let folder = volume.join(format!("folder-{folder}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..40 {
            fs::write(folder.join(format!("file-{file}")), vec![file as u8; 500 * file]).unwrap();
        }
        fs::hard_link(folder.join("file-1"), folder.join("second name")).unwrap();
    }
}

#[test]
fn a_killed_maker_leaves_all_or_nothing() {
    let shelves = Shelves::in_memory();
    let volume = shelves.volume("pvc-1");
    fill(&volume);
    let began = Instant::now();
    let first = shelves.snapshot("snapshot-first", "pvc-1");
    let window = began.elapsed().mul_f64(1.3);
    let mut random = Random::new();
    let (mut whole, mut cut, mut round) = (0, 0, 0);
    // On a machine that became faster or slower since, more rounds are needed to meet the middle.
    while round < 40 || cut < 3 && round < 400 {
        round += 1;
        let mut maker = Player::new("take snapshots", shelves.path());
        std::thread::sleep(window.mul_f64(random.below(1000) as f64 / 1000.0));
        maker.kill();
        // As it was left, before anybody tidies up.
        let partial = shelves.snapshot_path(".partial-snapshot-1");
        cut += usize::from(partial.exists());
        let seen_before = shelves.volumes.snapshot_state("snapshot-1").unwrap();
        assert!(!matches!(seen_before, Made::Making(_)), "round {round}: its maker is dead");
        let second = LocalVolumes::open(shelves.path(), CLUSTER).unwrap();
        let state = second.snapshot_state("snapshot-1").unwrap();
        assert_eq!(state, seen_before, "round {round}");
        if let Made::Whole(content) = &state {
            whole += 1;
            assert_eq!(content, &first, "round {round}");
            assert_eq!(digest_of(&shelves.snapshot_path("snapshot-1")).unwrap(), first);
        } else {
            assert_eq!(state, Made::Missing, "round {round}");
            shelves.snapshot("snapshot-1", "pvc-1");
        }
        second.delete_snapshot("snapshot-1").unwrap();
        until("nothing is left over", || shelves.leftovers().is_empty());
    }
    println!("{whole} whole, {cut} cut short of {round}");
    assert!(cut >= 3, "only {cut} were cut short: nothing was tried");
}

#[test]
fn a_killed_deleter_leaves_all_or_nothing() {
    let shelves = Shelves::in_memory();
    let volume = shelves.volume("pvc-1");
    fill(&volume);
    let snapshot = shelves.snapshot("snapshot-1", "pvc-1");
    let mut random = Random::new();
    for round in 0..20 {
        shelves.volumes.make_volume(&from("pvc-2", "snapshot-1", &snapshot.digest)).unwrap();
        shelves.until_volume("pvc-2");
        let mut deleter = Player::new("delete", shelves.path());
        std::thread::sleep(Duration::from_micros(random.below(15_000)));
        deleter.kill();
        match shelves.volumes.volume_state("pvc-2").unwrap() {
            Made::Whole(content) => {
                assert_eq!(content, snapshot);
                let path = shelves.volumes.volume_path("pvc-2").unwrap();
                assert_eq!(digest_of(&path).unwrap(), snapshot, "round {round}");
            }
            state => assert_eq!(state, Made::Missing, "round {round}"),
        }
        shelves.volumes.delete_volume("pvc-2").unwrap();
        until("nothing is left over", || shelves.leftovers().is_empty());
    }
}

#[test]
fn a_killed_copier_goes_on_where_it_was() {
    let shelves = Shelves::in_memory();
    let volume = shelves.volume("pvc-1");
    fill(&volume);
    shelves.snapshot("snapshot-1", "pvc-1");
    let into = shelves.volume("pvc-dest");
    let mut random = Random::new();
    let mut ends = 0;
    for round in 0..25 {
        if round % 5 == 0 {
            for entry in fs::read_dir(&into).unwrap() {
                fs::remove_dir_all(entry.unwrap().path()).unwrap();
            }
            fs::create_dir(into.join("old")).unwrap();
        }
        let mut copier = Player::new("copy", shelves.path());
        std::thread::sleep(Duration::from_millis(random.below(120)));
        copier.kill();
        ends += usize::from(!into.join("old").exists());
    }
    println!("{ends} of 25 got far");
    shelves.volumes.begin_copy("sync", &copy()).unwrap();
    until("it is over", || !matches!(shelves.volumes.copy_state("sync"), Copying::Runs(_)));
    let state = shelves.volumes.copy_state("sync");
    assert!(matches!(state, Copying::Done(_)), "{state:?}");
    assert_eq!(seen(&into), seen(&volume));
}

fn copy() -> NewCopy {
    NewCopy {
        into: "pvc-dest".to_owned(),
        cluster: CLUSTER.to_owned(),
        snapshot: "snapshot-1".to_owned(),
        digest: None,
        allow_empty: false,
    }
}

/// A process of its own that can be killed.
struct Player(Child);

impl Player {
    /// Returns when it has begun.
    fn new(role: &str, place: &Path) -> Player {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", PLAYER, "--nocapture"])
            .env(ROLE, role)
            .env(PLACE, place)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let begun = output.lines().map_while(Result::ok).any(|line| line.ends_with("begun"));
        assert!(begun, "a player ended early");
        Player(child)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Not a test of its own: what the others execute. Without a part to play, it does nothing.
#[test]
fn this_binary_plays_the_other_parts_too() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let place = PathBuf::from(std::env::var(PLACE).unwrap());
    let volumes = LocalVolumes::open(place, CLUSTER).unwrap();
    println!("begun");
    match role.as_str() {
        "take snapshots" => volumes.take_snapshot("snapshot-1", "pvc-1").unwrap(),
        "delete" => volumes.delete_volume("pvc-2").unwrap(),
        "copy" => volumes.begin_copy("sync", &copy()).unwrap(),
        role => panic!("no such part: {role}"),
    }
    loop {
        std::thread::park();
    }
}
