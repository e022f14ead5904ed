//! What goes into a repository comes out of it, and nothing else happens.

#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod support;

use interlock_restic::{
    Backup, Choice, Keep, LeftByMoves, Mark, Outcome, Reason, Restore, Sort, Tidy, Watch, backup,
    restore, tidy, tidy_moves, unlock,
};
use jiff::Timestamp;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use support::{
    PASSWORD, TestFolders, assert_same, bytes, files_in, fill, look, newest, of, set_time, settings,
};

fn backed_up(place: &TestFolders) -> Outcome {
    backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap()
}

fn restored(place: &TestFolders) -> Outcome {
    restore(&place.settings(), &newest(&place.target()), &Watch::default()).unwrap()
}

fn reason_of_backup(place: &TestFolders) -> Reason {
    backup(&place.settings(), &of(&place.source()), &Watch::default()).unwrap_err().reason
}

fn reason_of_restore(place: &TestFolders, choice: Choice) -> Reason {
    let job = Restore { choice, ..newest(&place.target()) };
    restore(&place.settings(), &job, &Watch::default()).unwrap_err().reason
}

#[test]
fn everything_comes_back_as_it_was() {
    let place = TestFolders::new();
    fill(&place.source());
    let watch = Watch::default();
    let made = backup(&place.settings(), &of(&place.source()), &watch).unwrap();
    let files = look(&place.source()).len() - 6;
    assert_eq!(made.files, files as u64, "all but the folders");
    assert_eq!(watch.progress().files, made.files);
    assert_eq!(watch.progress().bytes, made.bytes);
    let back = restored(&place);
    assert_eq!((back.files, &back.snapshot), (made.files, &made.snapshot));
    assert_same(&place.source(), &place.target());
    assert!(files_in(&place.repository().join("locks")).is_empty());
}

#[test]
fn holes_stay_holes() {
    let place = TestFolders::new();
    fill(&place.source());
    backed_up(&place);
    restored(&place);
    for name in ["holes", "hole at the end", "only a hole"] {
        let meta = fs::metadata(place.target().join(name)).unwrap();
        assert!(meta.blocks() * 512 < meta.len() / 2, "{name} has {} blocks", meta.blocks());
    }
}

#[test]
fn the_volume_itself_comes_back_too_with_and_without_a_parent() {
    let place = TestFolders::new();
    fill(&place.source());
    let mut job = of(&place.source());
    job.sort = Sort::Volume;
    backup(&place.settings(), &job, &Watch::default()).unwrap();
    fs::write(place.source().join("one more"), b"new").unwrap();
    fs::write(place.source().join("page"), bytes(77, 4096)).unwrap();
    let second = backup(&place.settings(), &job, &Watch::default()).unwrap();
    assert!(second.log.contains("1 of them new and 1 changed"), "{}", second.log);
    restored(&place);
    assert_same(&place.source(), &place.target());
}

#[test]
fn an_unchanged_snapshot_adds_nothing_but_its_snapshot() {
    let place = TestFolders::new();
    fill(&place.source());
    backed_up(&place);
    let before = files_in(&place.repository().join("data"));
    // As a clone is: the same content with other numbers and times of change.
    let clone = place.path("clone");
    fs::create_dir(&clone).unwrap();
    let copied =
        std::process::Command::new("cp").arg("-a").arg(place.source()).arg(&clone).status();
    assert!(copied.unwrap().success());
    backup(&place.settings(), &of(&clone.join("source")), &Watch::default()).unwrap();
    assert_eq!(files_in(&place.repository().join("data")), before);
    assert_eq!(files_in(&place.repository().join("snapshots")).len(), 2);
}

#[test]
fn another_file_with_the_size_and_times_of_the_last_one_is_read() {
    let place = TestFolders::new();
    let folders = [place.path("source/a"), place.path("source/b")];
    for (folder, content) in folders.iter().zip(["content one", "content two"]) {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("file"), content).unwrap();
    }
    // Until both were changed within one tick of the kernel's clock.
    loop {
        folders.iter().for_each(|folder| set_time(&folder.join("file"), 1_000_000, 0));
        let [a, b] = folders.each_ref().map(|folder| fs::metadata(folder.join("file")).unwrap());
        if (a.ctime(), a.ctime_nsec()) == (b.ctime(), b.ctime_nsec()) {
            break;
        }
    }
    for folder in &folders {
        let mut job = of(folder);
        job.sort = Sort::Volume;
        backup(&place.settings(), &job, &Watch::default()).unwrap();
    }
    restored(&place);
    assert_eq!(fs::read_to_string(place.target().join("file")).unwrap(), "content two");
}

#[test]
fn a_folder_with_nothing_in_it_is_refused_unless_it_is_meant() {
    let place = TestFolders::new();
    fs::create_dir_all(place.source().join("only/folders")).unwrap();
    assert_eq!(reason_of_backup(&place), Reason::SourceEmpty);
    assert!(!place.repository().exists(), "no repository was made for nothing");
    let mut job = of(&place.source());
    job.allow_empty = true;
    backup(&place.settings(), &job, &Watch::default()).unwrap();
    assert_eq!(
        reason_of_restore(&place, Choice::Newest { as_of: None, previous: 0 }),
        Reason::SourceEmpty
    );
    let job = Restore { allow_empty: true, ..newest(&place.target()) };
    restore(&place.settings(), &job, &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
}

#[test]
fn a_snapshot_that_takes_more_than_the_volume_may_hold_is_refused_and_holes_take_nothing() {
    let place = TestFolders::new();
    fs::write(place.source().join("full"), bytes(1, 3_000_000)).unwrap();
    fs::File::create(place.source().join("holes")).unwrap().set_len(48 << 20).unwrap();
    backed_up(&place);
    let with = |capacity| Restore { capacity_bytes: Some(capacity), ..newest(&place.target()) };
    let refused = restore(&place.settings(), &with(2_999_999), &Watch::default()).unwrap_err();
    assert_eq!(refused.reason, Reason::SizeMismatch, "{refused}");
    assert!(refused.message.contains("may hold 2999999 bytes"), "{refused}");
    restore(&place.settings(), &with(3_500_000), &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
}

#[test]
fn what_a_filesystem_check_left_is_not_backed_up() {
    let place = TestFolders::new();
    fs::create_dir(place.source().join("lost+found")).unwrap();
    fs::write(place.source().join("lost+found/#12"), b"x").unwrap();
    assert_eq!(reason_of_backup(&place), Reason::SourceEmpty);
    fs::write(place.source().join("file"), b"x").unwrap();
    assert_eq!(backed_up(&place).files, 1);
}

#[test]
fn a_missing_folder_is_said_to_be_missing() {
    let place = TestFolders::new();
    let failure =
        backup(&place.settings(), &of(&place.path("nowhere")), &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::SourceMissing);
    assert!(!place.repository().exists());
}

#[test]
fn a_file_that_changes_under_the_hand_means_no_snapshot() {
    let place = TestFolders::new();
    fs::write(place.source().join("another"), b"fine").unwrap();
    let victim = place.source().join("victim");
    let file = fs::File::create(&victim).unwrap();
    file.set_len(2 << 30).unwrap();
    let watch = Watch::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while watch.progress().bytes < 1 << 20 {
                std::thread::yield_now();
            }
            file.set_len(1).unwrap();
        });
        let failure = backup(&place.settings(), &of(&place.source()), &watch).unwrap_err();
        assert_eq!(failure.reason, Reason::SourceUnreadable, "{failure}");
        assert!(failure.message.contains("victim"), "{failure}");
    });
    assert!(files_in(&place.repository().join("snapshots")).is_empty());
    assert!(files_in(&place.repository().join("locks")).is_empty());
}

#[test]
fn a_backup_that_is_cancelled_leaves_no_snapshot() {
    let place = TestFolders::new();
    fs::File::create(place.source().join("file")).unwrap().set_len(4 << 30).unwrap();
    let watch = Watch::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while watch.progress().bytes == 0 {
                std::thread::yield_now();
            }
            watch.cancel();
        });
        let failure = backup(&place.settings(), &of(&place.source()), &watch).unwrap_err();
        assert_eq!(failure.reason, Reason::Cancelled, "{failure}");
    });
    assert!(files_in(&place.repository().join("snapshots")).is_empty());
    assert!(files_in(&place.repository().join("locks")).is_empty());
}

#[test]
fn another_password_is_refused_and_nothing_is_made_over_what_is_there() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    backed_up(&place);
    let before = look(&place.repository());
    let other = settings(&place.repository().display().to_string(), "wrong");
    let failure = backup(&other, &of(&place.source()), &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::WrongPassword);
    assert!(!failure.message.contains("wrong"), "{failure}");
    let failure = restore(&other, &newest(&place.target()), &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::WrongPassword);
    assert_eq!(look(&place.repository()), before);
}

#[test]
fn a_restore_makes_no_repository() {
    let place = TestFolders::new();
    let choice = Choice::Newest { as_of: None, previous: 0 };
    assert_eq!(reason_of_restore(&place, choice), Reason::RepositoryMissing);
    assert!(!place.repository().exists());
    let failure = tidy(&place.settings(), &Tidy::default(), &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::RepositoryMissing);
}

#[test]
fn a_repository_that_lost_its_config_is_not_made_anew() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    backed_up(&place);
    fs::remove_file(place.repository().join("config")).unwrap();
    let before = look(&place.repository());
    assert_eq!(reason_of_backup(&place), Reason::RepositoryDamaged);
    assert_eq!(look(&place.repository()), before);
}

#[test]
fn a_place_that_cannot_be_read_is_not_an_empty_one() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    fs::write(place.repository(), b"a file, no folder").unwrap();
    assert_eq!(reason_of_backup(&place), Reason::RepositoryUnreachable);
}

#[test]
fn two_who_make_a_repository_at_once_make_one() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| backed_up(&place));
        }
    });
    assert_eq!(files_in(&place.repository().join("snapshots")).len(), 4);
    let keys = place.repository().join("keys");
    let all: Vec<_> =
        files_in(&keys).iter().map(|key| (key.clone(), fs::read(key).unwrap())).collect();
    assert!(!all.is_empty());
    for (key, content) in &all {
        // Every key that is left opens it, alone.
        files_in(&keys).iter().for_each(|key| fs::remove_file(key).unwrap());
        fs::write(key, content).unwrap();
        restored(&place);
    }
}

#[test]
fn a_key_that_somebody_left_before_the_config_is_used() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    backed_up(&place);
    for folder in ["snapshots", "index", "data"] {
        files_in(&place.repository().join(folder)).iter().for_each(|f| fs::remove_file(f).unwrap());
    }
    fs::remove_file(place.repository().join("config")).unwrap();
    let keys = files_in(&place.repository().join("keys"));
    backed_up(&place);
    assert_eq!(files_in(&place.repository().join("keys")), keys);
    restored(&place);
}

/// Four snapshots, each with its number in it, and when each was.
fn four(place: &TestFolders) -> Vec<(Outcome, Timestamp)> {
    (0..4)
        .map(|number| {
            fs::write(place.source().join("number"), number.to_string()).unwrap();
            (backed_up(place), Timestamp::now())
        })
        .collect()
}

fn number_in(place: &TestFolders) -> String {
    fs::read_to_string(place.target().join("number")).unwrap()
}

#[test]
fn the_snapshot_that_was_asked_for_is_restored() {
    let place = TestFolders::new();
    let made = four(&place);
    let newest_as_of = |as_of, previous| Choice::Newest { as_of, previous };
    for (choice, number) in [
        (newest_as_of(None, 0), "3"),
        (newest_as_of(None, 2), "1"),
        (newest_as_of(Some(made[2].1), 0), "2"),
        (newest_as_of(Some(made[2].1), 1), "1"),
        (Choice::Id(made[0].0.snapshot.clone()), "0"),
        (Choice::Id(made[1].0.snapshot[..12].to_owned()), "1"),
    ] {
        let job = Restore { choice: choice.clone(), ..newest(&place.target()) };
        restore(&place.settings(), &job, &Watch::default()).unwrap();
        assert_eq!(number_in(&place), number, "{choice:?}");
    }
    let long_ago = made[0].0.began;
    for choice in [
        newest_as_of(None, 4),
        newest_as_of(Some(long_ago), 0),
        Choice::Id("0123456789abcdef".into()),
        Choice::Id(String::new()),
    ] {
        assert_eq!(reason_of_restore(&place, choice), Reason::NoEligibleSnapshot);
    }
}

#[test]
fn a_snapshot_of_a_move_is_found_by_its_id_only() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    let mut job = of(&place.source());
    job.mark = Mark::Move(vec!["epoch=3".into(), "claim=data".into()]);
    let made = backup(&place.settings(), &job, &Watch::default()).unwrap();
    let choice = Choice::Newest { as_of: None, previous: 0 };
    assert_eq!(reason_of_restore(&place, choice), Reason::NoEligibleSnapshot);
    let job = Restore { choice: Choice::Id(made.snapshot), ..newest(&place.target()) };
    restore(&place.settings(), &job, &Watch::default()).unwrap();
    assert_same(&place.source(), &place.target());
}

#[test]
fn what_is_in_the_way_is_replaced_and_never_followed() {
    let place = TestFolders::new();
    fill(&place.source());
    backed_up(&place);
    let outside = place.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), b"precious").unwrap();
    let target = place.target();
    symlink(&outside, target.join("folder.with.dot")).unwrap();
    symlink(outside.join("file"), target.join("one")).unwrap();
    fs::hard_link(outside.join("file"), target.join("page")).unwrap();
    fs::create_dir_all(target.join("text/a/b")).unwrap();
    fs::write(target.join("text/a/b/c"), b"in the way").unwrap();
    fs::write(target.join("folder"), b"a file where a folder is to be").unwrap();
    fs::create_dir(target.join("link")).unwrap();
    restored(&place);
    assert_same(&place.source(), &target);
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn other_files_are_deleted_only_if_that_is_wanted() {
    let place = TestFolders::new();
    fill(&place.source());
    backed_up(&place);
    restored(&place);
    let extra = ["extra", "folder/extra", "extra folder/file"];
    fs::create_dir(place.target().join("extra folder")).unwrap();
    extra.iter().for_each(|name| fs::write(place.target().join(name), b"x").unwrap());
    fs::create_dir(place.target().join("lost+found")).unwrap();
    restored(&place);
    assert!(extra.iter().all(|name| place.target().join(name).exists()));
    let job = Restore { delete_other_files: true, ..newest(&place.target()) };
    restore(&place.settings(), &job, &Watch::default()).unwrap();
    assert!(place.target().join("lost+found").exists());
    fs::remove_dir(place.target().join("lost+found")).unwrap();
    assert_same(&place.source(), &place.target());
}

#[test]
fn a_changed_byte_in_a_pack_is_found_by_a_restore() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), bytes(5, 100_000)).unwrap();
    backed_up(&place);
    for pack in files_in(&place.repository().join("data")) {
        let mut content = fs::read(&pack).unwrap();
        content[40] ^= 1;
        fs::write(&pack, content).unwrap();
    }
    let choice = Choice::Newest { as_of: None, previous: 0 };
    assert_eq!(reason_of_restore(&place, choice), Reason::RepositoryDamaged);
}

#[test]
fn tidying_forgets_by_policy_and_keeps_what_is_pinned_or_not_ours() {
    let place = TestFolders::new();
    let made = four(&place);
    let mut job = of(&place.source());
    job.mark = Mark::Move(vec!["epoch=1".into()]);
    let moved = backup(&place.settings(), &job, &Watch::default()).unwrap();
    let pinned = made[0].0.snapshot.clone();
    let job = Tidy { pinned: vec![pinned.clone()], prune: true, ..Tidy::default() };
    let tidied = tidy(&place.settings(), &job, &Watch::default()).unwrap();
    assert_eq!(tidied.kept, 3);
    assert_eq!(tidied.forgotten.len(), 2);
    for id in [pinned, made[3].0.snapshot.clone(), moved.snapshot] {
        let job = Restore { choice: Choice::Id(id), ..newest(&place.target()) };
        restore(&place.settings(), &job, &Watch::default()).unwrap();
    }
    for id in &tidied.forgotten {
        assert_eq!(reason_of_restore(&place, Choice::Id(id.clone())), Reason::NoEligibleSnapshot);
    }
    assert!(files_in(&place.repository().join("locks")).is_empty());
}

#[test]
fn tidying_moves_forgets_earlier_epochs_of_one_claim_and_nothing_else() {
    let place = TestFolders::new();
    let volsync = backed_up_something(&place);
    let saved = |epoch: &str, claim: &str| {
        let tags = [format!("epoch={epoch}"), format!("claim={claim}")];
        let job = Backup { mark: Mark::Move(tags.into()), ..of(&place.source()) };
        backup(&place.settings(), &job, &Watch::default()).unwrap().snapshot
    };
    let (first, second, third) = (saved("1", "a"), saved("2", "a"), saved("3", "a"));
    let (other, longer, odd) = (saved("1", "b"), saved("1", "ab"), saved("none", "a"));
    let left = |epoch, pinned: &[&String]| LeftByMoves {
        claim: "a".into(),
        before_epoch: epoch,
        pinned: pinned.iter().map(|id| (*id).clone()).collect(),
    };
    // One that took over since has saved epoch 3: whoever is late must not reach it.
    let tidied = tidy_moves(&place.settings(), &left(3, &[&second]), &Watch::default()).unwrap();
    assert_eq!(tidied.forgotten, [first]);
    for id in [second, third, other, longer, odd, volsync] {
        let job = Restore { choice: Choice::Id(id), ..newest(&place.target()) };
        restore(&place.settings(), &job, &Watch::default()).unwrap();
    }
    let nothing = LeftByMoves { claim: String::new(), ..left(99, &[]) };
    let tidied = tidy_moves(&place.settings(), &nothing, &Watch::default()).unwrap();
    assert!(tidied.forgotten.is_empty(), "{tidied:?}");
}

fn backed_up_something(place: &TestFolders) -> String {
    fs::write(place.source().join("file"), b"something").unwrap();
    backed_up(place).snapshot
}

#[test]
fn pruning_frees_what_nothing_refers_to() {
    let place = TestFolders::new();
    let file = place.source().join("file");
    for seed in 0..3 {
        fs::write(&file, bytes(seed, 3_000_000)).unwrap();
        backed_up(&place);
    }
    let size = |place: &TestFolders| -> u64 {
        let packs = files_in(&place.repository().join("data"));
        packs.iter().map(|pack| fs::metadata(pack).unwrap().len()).sum()
    };
    assert!(size(&place) > 9_000_000);
    let job = Tidy { keep: Keep { last: Some(1), ..Keep::default() }, ..Tidy::default() };
    tidy(&place.settings(), &job, &Watch::default()).unwrap();
    assert!(size(&place) > 9_000_000, "forgetting alone frees nothing");
    let job = Tidy { prune: true, ..job };
    let tidied = tidy(&place.settings(), &job, &Watch::default()).unwrap();
    assert!(tidied.freed > 5_000_000, "{tidied:?}");
    assert!(size(&place) < 3_500_000);
    restored(&place);
    assert_same(&place.source(), &place.target());
}

#[test]
fn a_repository_without_snapshots_is_not_emptied() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    backed_up(&place);
    let snapshots = files_in(&place.repository().join("snapshots"));
    fs::remove_file(&snapshots[0]).unwrap();
    let before = files_in(&place.repository().join("data"));
    let job = Tidy { prune: true, ..Tidy::default() };
    tidy(&place.settings(), &job, &Watch::default()).unwrap();
    assert_eq!(files_in(&place.repository().join("data")), before);
}

#[test]
fn nothing_is_forgotten_in_a_damaged_repository() {
    let place = TestFolders::new();
    four(&place);
    // All of them: one that only forgotten snapshots need would be missed by nobody.
    for pack in files_in(&place.repository().join("data")) {
        fs::remove_file(pack).unwrap();
    }
    let job = Tidy { prune: true, ..Tidy::default() };
    let failure = tidy(&place.settings(), &job, &Watch::default()).unwrap_err();
    assert_eq!(failure.reason, Reason::RepositoryDamaged, "{failure}");
    assert_eq!(files_in(&place.repository().join("snapshots")).len(), 4);
}

#[test]
fn unlocking_a_repository_without_locks_removes_none() {
    let place = TestFolders::new();
    fs::write(place.source().join("file"), b"x").unwrap();
    backed_up(&place);
    assert_eq!(unlock(&place.settings()).unwrap(), 0);
}

#[test]
fn failures_tell_no_secrets() {
    let place = TestFolders::new();
    let failure = backup(&place.settings(), &of(Path::new("/nowhere")), &Watch::default());
    assert!(!failure.unwrap_err().to_string().contains(PASSWORD));
}
