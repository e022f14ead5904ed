//! One repository, worked on by us and by the real restic. These need programs that are not ours, and
//! are run by `cargo xtask test-real`.

#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod support;

use interlock_restic::{
    Backup, Choice, Keep, Mark, Reason, Restore, Settings, Sort, Tidy, Watch, backup, restore,
    tidy, unlock,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use support::{PASSWORD, TestFolders, assert_same, bytes, files_in, newest, of};

const INSTALL: &str = "apt-get install --yes --no-install-recommends restic rclone";

fn program(name: &str) -> Command {
    let found = Command::new(name).arg("version").stdout(Stdio::null()).status();
    assert!(found.is_ok_and(|found| found.success()), "there is no {name}: run `{INSTALL}`");
    Command::new(name)
}

/// restic on the repository of a place.
fn restic(place: &TestFolders) -> Command {
    restic_at(&place.repository().display().to_string())
}

fn restic_at(repository: &str) -> Command {
    let mut restic = program("restic");
    restic
        .env("RESTIC_REPOSITORY", repository)
        .env("RESTIC_PASSWORD", PASSWORD)
        .args(["--no-cache", "--quiet"]);
    restic
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{error}");
    output
}

fn json(command: &mut Command) -> Value {
    serde_json::from_slice(&run(command.arg("--json")).stdout).unwrap()
}

/// One of everything that restic keeps: it learned to keep links to what is no UTF-8 after 0.14.
fn fill(folder: &Path) {
    support::fill(folder);
    fs::remove_file(folder.join("link to bytes")).unwrap();
}

/// As VolSync's own script does it.
fn volsync_backup(place: &TestFolders) {
    run(restic(place).current_dir(place.source()).args([
        "backup",
        "--host",
        "volsync",
        "--exclude=lost+found",
        ".",
    ]));
}

/// The newest snapshot by its id: VolSync's say `/data`, where its volume is mounted, and these do not.
fn as_volsync(place: &TestFolders) -> Choice {
    let snapshots = json(restic(place).arg("snapshots"));
    let newest = snapshots.as_array().unwrap().last().unwrap();
    Choice::Id(newest["id"].as_str().unwrap().to_owned())
}

fn check(place: &TestFolders) {
    run(restic(place).args(["check", "--read-data"]));
}

fn restic_restores(place: &TestFolders, into: &Path) {
    let _ = fs::remove_dir_all(into);
    run(restic(place).args(["restore", "latest", "--target"]).arg(into));
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn what_restic_writes_we_restore_byte_for_byte() {
    let place = TestFolders::new();
    fill(&place.source());
    run(restic(&place).arg("init"));
    volsync_backup(&place);
    let job = Restore { choice: as_volsync(&place), ..newest(&place.target()) };
    restore(&place.settings(), &job, &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
    check(&place);
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn what_we_write_restic_checks_and_restores() {
    let place = TestFolders::new();
    fill(&place.source());
    backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap();
    check(&place);
    restic_restores(&place, &place.target());
    assert_same(&place.source(), &place.target());
    let snapshots = json(restic(&place).arg("snapshots"));
    let ours = &snapshots[0];
    assert_eq!(ours["hostname"], "volsync");
    assert_eq!(ours["paths"], serde_json::json!(["/data"]));
    assert!(ours["tags"].as_array().is_none_or(Vec::is_empty), "{ours}");
    let listed = run(restic(&place).args(["ls", "latest"])).stdout;
    let listed = String::from_utf8_lossy(&listed);
    assert!(listed.lines().any(|line| line == "/one"), "files are at the root: {listed}");
    let config = json(restic(&place).args(["cat", "config"]));
    assert_eq!(config["version"], 2);
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn moves_have_a_host_and_tags_of_their_own() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    let mark = Mark::Move(vec!["epoch=7".into(), "claim=data".into()]);
    let job = Backup { mark, ..of(&place.source()) };
    backup(&place.settings(), &job, &Watch::default()).unwrap();
    run(restic(&place).args(["forget", "--host", "volsync", "--keep-last", "1"]));
    let snapshots = json(restic(&place).arg("snapshots"));
    assert_eq!(snapshots[0]["hostname"], "interlock");
    let tags: BTreeSet<&str> =
        snapshots[0]["tags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(tags, BTreeSet::from(["epoch=7", "claim=data"]));
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn both_work_on_one_repository_in_turn() {
    let place = TestFolders::new();
    fill(&place.source());
    run(restic(&place).arg("init"));
    for round in 0..3 {
        fs::write(place.source().join("round"), bytes(round, 2_000_000)).unwrap();
        let sort = if round == 1 { Sort::Volume } else { Sort::Snapshot };
        backup(&place.settings(), &Backup { sort, ..of(&place.source()) }, &Watch::default())
            .unwrap();
        fs::write(place.source().join("round of restic"), bytes(round + 100, 2_000_000)).unwrap();
        volsync_backup(&place);
        let job = Tidy { prune: true, ..Tidy::default() };
        tidy(&place.settings(), &job, &Watch::default()).unwrap();
        check(&place);
        run(restic(&place).args(["forget", "--keep-last", "1", "--prune", "--group-by", "host"]));
        check(&place);
    }
    let job = Restore { choice: as_volsync(&place), ..newest(&place.target()) };
    restore(&place.settings(), &job, &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
    assert!(files_in(&place.repository().join("locks")).is_empty());
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn both_work_on_one_repository_at_once() {
    let place = TestFolders::new();
    fill(&place.source());
    run(restic(&place).arg("init"));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| volsync_backup(&place));
            scope.spawn(|| {
                backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap();
            });
        }
    });
    check(&place);
    assert_eq!(json(restic(&place).arg("snapshots")).as_array().unwrap().len(), 6);
    restore(&place.settings(), &newest(&place.target()), &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
}

/// Runs something while a backup of ours is under way.
fn beside_a_backup(place: &TestFolders, run: impl FnOnce()) {
    fs::File::create(place.source().join("slow")).unwrap().set_len(64 << 30).unwrap();
    let watch = Watch::default();
    std::thread::scope(|scope| {
        let ours = scope
            .spawn(|| backup(&place.settings(), &of(&place.source()), &watch).unwrap_err().reason);
        while watch.progress().bytes == 0 {
            std::thread::yield_now();
        }
        run();
        watch.cancel();
        assert_eq!(ours.join().unwrap(), Reason::Cancelled);
    });
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn restic_does_not_prune_beside_our_backup() {
    let place = TestFolders::new();
    run(restic(&place).arg("init"));
    beside_a_backup(&place, || {
        let prune = restic(&place).arg("prune").output().unwrap();
        assert!(!prune.status.success());
        let said = String::from_utf8_lossy(&prune.stderr);
        assert!(said.contains("already locked"), "{said}");
        // A lock that lives is not removed either, and restic does not end our process to find out.
        run(restic(&place).arg("unlock"));
        assert_eq!(files_in(&place.repository().join("locks")).len(), 1);
        let listed = run(restic(&place).args(["list", "locks", "--no-lock"])).stdout;
        let lock = String::from_utf8(listed).unwrap();
        let lock: Value = json(restic(&place).args(["cat", "lock", lock.trim(), "--no-lock"]));
        assert_eq!(lock["pid"], std::process::id());
        assert_eq!(lock["exclusive"], false);
    });
    assert!(files_in(&place.repository().join("locks")).is_empty());
}

/// Stops a restic that has a lock, so that it keeps it.
struct Stopped(Child);

impl Stopped {
    /// Begins again until it could be stopped before it was done.
    fn begin(place: &TestFolders, args: &[&str]) -> Self {
        let folder = place.repository().join("locks");
        // Not those that are being written: they have longer names, and count for nobody yet.
        let locks = || {
            let files = files_in(&folder).into_iter();
            files.filter(|lock| lock.file_name().is_some_and(|name| name.len() == 64)).count()
        };
        loop {
            let mut restic = restic(place);
            restic.args(args).current_dir(place.source()).stdout(Stdio::null());
            let mut stopped = Stopped(restic.spawn().unwrap());
            while locks() == 0 && stopped.0.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            if stopped.stop() && locks() == 1 {
                return stopped;
            }
            stopped.0.kill().unwrap();
            stopped.0.wait().unwrap();
            files_in(&folder).iter().for_each(|lock| fs::remove_file(lock).unwrap());
        }
    }

    /// Whether it stands still now; else it is over.
    fn stop(&mut self) -> bool {
        self.signal("STOP");
        while self.0.try_wait().unwrap().is_none() {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
            if stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" T")) {
                return true;
            }
        }
        false
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        // It may be over already.
        let _ = Command::new("kill").args(["-s", name, &pid]).stderr(Stdio::null()).status();
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn we_do_not_prune_beside_a_backup_of_restic() {
    let place = TestFolders::new();
    run(restic(&place).arg("init"));
    fs::File::create(place.source().join("slow")).unwrap().set_len(8 << 30).unwrap();
    let theirs = Stopped::begin(&place, &["backup", "."]);
    let failure = tidy(&place.settings(), &Tidy::default(), &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::RepositoryLocked);
    assert!(failure.message.contains(&theirs.0.id().to_string()), "{failure}");
    assert_eq!(unlock(&place.settings()).unwrap(), 0, "it lives");
    fs::write(place.path("file"), b"x").unwrap();
    fs::create_dir(place.path("small")).unwrap();
    fs::write(place.path("small/file"), b"x").unwrap();
    backup(&place.settings(), &of(&place.path("small")), &Watch::default()).unwrap();
    drop(theirs);
    assert_eq!(unlock(&place.settings()).unwrap(), 1, "it was killed");
    tidy(&place.settings(), &Tidy::default(), &Watch::default()).unwrap();
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn we_do_not_write_beside_a_prune_of_restic() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), bytes(1, 1_000_000)).unwrap();
    backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap();
    let _theirs = Stopped::begin(&place, &["prune"]);
    let failure = backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::RepositoryLocked);
    assert!(failure.message.contains("exclusively"), "{failure}");
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn restic_with_another_password_and_we_with_another_password() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    run(restic(&place).arg("init"));
    let repository = place.repository().display().to_string();
    let other = support::settings(&repository, "another");
    let failure = backup(&other, &of(&place.source()), &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::WrongPassword);
    // A second password of restic's opens it for us too.
    fs::write(place.path("password"), "another").unwrap();
    run(restic(&place).args(["key", "add", "--new-password-file"]).arg(place.path("password")));
    backup(&other, &of(&place.source()), &Watch::default()).unwrap();
    check(&place);
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn a_repository_of_version_1_works_too() {
    let place = TestFolders::new();
    fill(&place.source());
    run(restic(&place).args(["init", "--repository-version", "1"]));
    backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap();
    check(&place);
    restore(&place.settings(), &newest(&place.target()), &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn what_stays_is_what_restic_would_keep() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    run(restic(&place).arg("init"));
    // A year and a half: some hours of some days, at odd distances.
    let mut time = jiff::civil::date(2025, 3, 30).at(23, 30, 0, 0);
    for step in 0..40_i64 {
        let stamp = time.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let hours = 1 + (step * step * 7) % 700;
        time = time.checked_add(jiff::SignedDuration::from_hours(hours)).unwrap();
        run(restic(&place)
            .env("TZ", "UTC")
            .current_dir(place.source())
            .args(["backup", "--host", "volsync", "--time", &stamp, "."]));
    }
    let snapshots = json(restic(&place).arg("snapshots"));
    let mut times: Vec<(String, jiff::Zoned)> = snapshots
        .as_array()
        .unwrap()
        .iter()
        .map(|snapshot| {
            let time: jiff::Timestamp = snapshot["time"].as_str().unwrap().parse().unwrap();
            (snapshot["id"].as_str().unwrap().to_owned(), time.to_zoned(jiff::tz::TimeZone::UTC))
        })
        .collect();
    times.sort_by(|a, b| b.1.cmp(&a.1));
    assert_eq!(times.len(), 40);
    for (last, hourly, daily, weekly, monthly, yearly, within) in [
        (1, 0, 0, 0, 0, 0, ""),
        (3, 0, 5, 0, 2, 0, ""),
        (0, 7, 0, 0, 0, 0, ""),
        (0, 0, 12, 6, 0, 0, ""),
        (0, 0, 0, 100, 0, 0, ""),
        (0, 0, 0, 0, 0, 5, ""),
        (0, 0, 0, 0, 30, 0, ""),
        (2, 3, 4, 5, 6, 7, ""),
        (0, 0, 0, 0, 0, 0, "1m"),
        (1, 0, 0, 0, 3, 0, "3m12d5h"),
        (0, 0, 0, 0, 0, 0, "1y1h"),
    ] {
        let ask = |number: u32| (number > 0).then_some(number);
        let keep = Keep {
            last: ask(last),
            hourly: ask(hourly),
            daily: ask(daily),
            weekly: ask(weekly),
            monthly: ask(monthly),
            yearly: ask(yearly),
            within: (!within.is_empty()).then(|| within.to_owned()),
        };
        let mut forget = restic(&place);
        forget.env("TZ", "UTC").args(["forget", "--dry-run", "--group-by", "host"]);
        for (flag, number) in [
            ("last", last),
            ("hourly", hourly),
            ("daily", daily),
            ("weekly", weekly),
            ("monthly", monthly),
            ("yearly", yearly),
        ] {
            if number > 0 {
                forget.arg(format!("--keep-{flag}={number}"));
            }
        }
        if !within.is_empty() {
            forget.arg(format!("--keep-within={within}"));
        }
        let said = json(&mut forget);
        let theirs: BTreeSet<String> = said[0]["keep"]
            .as_array()
            .unwrap()
            .iter()
            .map(|snapshot| snapshot["id"].as_str().unwrap().to_owned())
            .collect();
        let ours = keep
            .kept(&times.iter().map(|t| t.1.clone()).collect::<Vec<_>>(), jiff::Timestamp::now());
        let ours: BTreeSet<String> = times
            .iter()
            .zip(ours.unwrap())
            .filter(|(_, kept)| *kept)
            .map(|((id, _), _)| id.clone())
            .collect();
        // restic of 0.14 drops the oldest where later ones keep it while a number is not used up; we do
        // as the later ones, and nothing else is different.
        let extra: BTreeSet<&String> = ours.difference(&theirs).collect();
        let oldest = times.last().map(|(id, _)| id);
        assert!(extra.iter().all(|id| Some(*id) == oldest), "{keep:?}: {extra:?}");
        assert!(theirs.is_subset(&ours), "{keep:?}");
    }
}

/// A server that is there while it is needed.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs restic and rclone: cargo xtask test-real"]
fn a_rest_server_is_as_good_as_a_folder() {
    let place = TestFolders::new();
    fill(&place.source());
    let mut child = program("rclone")
        .args(["serve", "restic", "--addr", "127.0.0.1:0", "--user", "me", "--pass", "p@ss", "-v"])
        .arg(place.repository())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let errors = BufReader::new(child.stderr.take().unwrap());
    let _server = Server(child);
    let mut lines = errors.lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("127.0.0.1:")).expect("it says where it is");
    std::thread::spawn(move || lines.for_each(drop));
    let address = line.split("127.0.0.1:").nth(1).unwrap();
    let port: String = address.chars().take_while(char::is_ascii_digit).collect();
    let url = format!("rest:http://127.0.0.1:{port}/folder/");
    let keys = |password: &str| {
        BTreeMap::from(
            [
                ("RESTIC_REPOSITORY", url.as_str()),
                ("RESTIC_PASSWORD", PASSWORD),
                ("RESTIC_REST_USERNAME", "me"),
                ("RESTIC_REST_PASSWORD", password),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        )
    };
    let settings = Settings::from_secret(&keys("p@ss"), None).unwrap();
    let theirs = format!("rest:http://me:p%40ss@127.0.0.1:{port}/folder/");
    far_away(&place, &settings, &theirs);
    let wrong = Settings::from_secret(&keys("wrong"), None).unwrap();
    let failure = backup(&wrong, &of(&place.source()), &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::RepositoryUnreachable);
    assert!(!failure.message.contains("wrong"), "{failure}");
}

#[test]
#[ignore = "needs restic and an S3 server: see the message"]
fn an_s3_server_is_as_good_as_a_folder() {
    let repository = std::env::var("INTERLOCK_S3_REPOSITORY").expect(
        "set INTERLOCK_S3_REPOSITORY to an empty place like s3:http://127.0.0.1:9000/bucket/test, \
         with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    );
    let place = TestFolders::new();
    fill(&place.source());
    let mut keys = BTreeMap::from([
        ("RESTIC_REPOSITORY".to_owned(), repository.clone()),
        ("RESTIC_PASSWORD".to_owned(), PASSWORD.to_owned()),
    ]);
    for key in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
        keys.insert(key.to_owned(), std::env::var(key).expect("the keys of the server"));
    }
    let settings = Settings::from_secret(&keys, None).unwrap();
    far_away(&place, &settings, &repository);
}

fn far_away(place: &TestFolders, settings: &Settings, theirs: &str) {
    let failure = restore(settings, &newest(&place.target()), &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::RepositoryMissing);
    backup(settings, &of(&place.source()), &Watch::default()).unwrap();
    fs::write(place.source().join("one more"), bytes(4, 5_000_000)).unwrap();
    backup(settings, &Backup { sort: Sort::Volume, ..of(&place.source()) }, &Watch::default())
        .unwrap();
    run(restic_at(theirs).args(["check", "--read-data"]));
    restore(settings, &newest(&place.target()), &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
    run(restic_at(theirs).current_dir(place.source()).args(["backup", "."]));
    let job = Tidy { prune: true, unlock: true, ..Tidy::default() };
    let tidied = tidy(settings, &job, &Watch::default()).unwrap();
    assert_eq!((tidied.forgotten.len(), tidied.kept), (1, 2));
    run(restic_at(theirs).args(["check", "--read-data"]));
    restore(settings, &newest(&place.target()), &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
}

#[test]
#[ignore = "needs restic, root and some minutes: cargo xtask test-real"]
fn a_full_disk_is_said_to_be_full_and_nothing_is_published() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), bytes(1, 12_000_000)).unwrap();
    let small = place.path("small");
    fs::create_dir(&small).unwrap();
    run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "none"]).arg(&small));
    let outcome = std::panic::catch_unwind(|| {
        let repository = small.join("repository").display().to_string();
        let settings = support::settings(&repository, PASSWORD);
        let failure = backup(&settings, &of(&place.source()), &Watch::default()).unwrap_err();
        assert_eq!(failure.reason, Reason::TargetFull, "{failure}");
        assert!(files_in(&small.join("repository/snapshots")).is_empty());
        fs::remove_dir_all(small.join("repository")).unwrap();
        backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap();
        let failure = restore(&place.settings(), &newest(&small), &Watch::default()).unwrap_err();
        assert_eq!(failure.reason, Reason::TargetFull, "{failure}");
        assert!(failure.message.contains("bytes are free"), "{failure}");
    });
    run(Command::new("umount").arg(&small));
    outcome.unwrap();
}

#[test]
#[ignore = "needs restic: cargo xtask test-real"]
fn files_are_cut_where_restic_cuts_them() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), bytes(1, 40 << 20)).unwrap();
    run(restic(&place).arg("init"));
    volsync_backup(&place);
    let packs = || -> u64 {
        let packs = files_in(&place.repository().join("data"));
        packs.iter().map(|pack| fs::metadata(pack).unwrap().len()).sum()
    };
    let theirs = packs();
    backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap();
    // A folder and where the blobs of the file are: nothing of the file.
    assert!(packs() - theirs < 64 << 10, "{} bytes more", packs() - theirs);
}

#[test]
#[ignore = "needs restic, and an optimised build or some minutes: cargo xtask test-real"]
fn many_small_files_and_a_large_one_with_a_hole() {
    let place = TestFolders::new();
    fill(&place.source());
    for number in 0..100_000 {
        let folder = place.source().join(format!("{:03}/{:02}", number / 1000, number % 50));
        if number % 1000 < 50 {
            fs::create_dir_all(&folder).unwrap();
        }
        fs::write(folder.join(format!("file {number}")), bytes(number, (number % 300) as usize))
            .unwrap();
    }
    let sparse = fs::File::create(place.source().join("sparse")).unwrap();
    sparse.set_len(2 << 30).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"island", 1 << 30).unwrap();
    let made = backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap();
    assert!(made.files > 100_001, "{made:?}");
    check(&place);
    let theirs = place.path("theirs");
    restic_restores(&place, &theirs);
    assert_same(&place.source(), &theirs);
    volsync_backup(&place);
    let job = Restore { choice: as_volsync(&place), ..newest(&place.target()) };
    restore(&place.settings(), &job, &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
    let restored = fs::metadata(place.target().join("sparse")).unwrap();
    assert!(restored.blocks() * 512 < 16 << 20, "{} blocks", restored.blocks());
}
