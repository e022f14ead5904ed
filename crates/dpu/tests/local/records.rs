//! The record on disk: lost, of another boot, replaced by a link.

use crate::support::{PORT, Scene, driver, entry};
use interlock_nodes::outside::{Gate, Question};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn a_record_of_another_boot_has_a_new_term_and_keeps_node_and_floor() {
    let folder = tempfile::tempdir().unwrap();
    let before = Scene(driver(folder.path(), "one"));
    before.adopt("n", 2).unwrap();
    before.attach(entry("n", 3)).unwrap();
    let term = before.term();
    let after = Scene(driver(folder.path(), "two"));
    let port = after.port();
    assert_ne!(port.record.term, term);
    assert_eq!((port.record.node.as_deref(), port.record.floor), (Some("n"), 2));
    assert_eq!(port.gate, Gate::Closed);
}

#[test]
fn a_driver_of_the_same_boot_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let before = Scene(driver(folder.path(), "one"));
    before.adopt("n", 2).unwrap();
    before.attach(entry("n", 3)).unwrap();
    assert_eq!(Scene(driver(folder.path(), "one")).port(), before.port());
}

#[test]
fn a_record_that_is_gone_or_cannot_be_read_begins_anew() {
    let whole = |scene: &Scene| {
        scene.adopt("n", 2).unwrap();
        scene.attach(entry("n", 3)).unwrap();
        scene.term()
    };
    type Damage = fn(&std::path::Path);
    let damages: [Damage; 5] = [
        |file| fs::remove_file(file).unwrap(),
        |file| fs::write(file, "").unwrap(),
        |file| fs::write(file, &fs::read(file).unwrap()[..40]).unwrap(),
        |file| {
            let text = fs::read_to_string(file).unwrap();
            fs::write(file, text.replace("record/v1", "record/v9")).unwrap();
        },
        |file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
            fs::remove_dir(file).unwrap();
        },
    ];
    for damage in damages {
        let folder = tempfile::tempdir().unwrap();
        let scene = Scene(driver(folder.path(), "one"));
        let term = whole(&scene);
        damage(&folder.path().join("p0.record"));
        let port = scene.port();
        assert_ne!(port.record.term, term);
        assert_eq!((port.record.node, port.record.floor, port.gate), (None, 0, Gate::Closed));
        assert_eq!(scene.attach(entry("n", 3)).unwrap_err().reason, "NodeDiffers");
    }
}

#[test]
fn nothing_is_read_or_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let scene = Scene(driver(folder.path(), "one"));
    scene.adopt("n", 2).unwrap();
    let (record, target) = (folder.path().join("p0.record"), elsewhere.path().join("target"));
    fs::rename(&record, &target).unwrap();
    let text = fs::read(&target).unwrap();
    for name in ["p0.record", "p0.record.new"] {
        symlink(&target, folder.path().join(name)).unwrap();
    }
    assert_eq!(scene.record().node, None, "the link is as good as nothing");
    assert_eq!(fs::read(&target).unwrap(), text);
    assert!(fs::symlink_metadata(&record).unwrap().is_file());

    let lock = folder.path().join("p0.lock");
    fs::remove_file(&lock).unwrap();
    symlink(&target, &lock).unwrap();
    let refused = scene.0.answer(&Question::Port(PORT.to_owned())).unwrap_err();
    assert_eq!(refused.reason, "RecordNotKept");
    assert_eq!(fs::read(&target).unwrap(), text);
}

#[test]
fn files_are_for_the_agent_alone() {
    let folder = tempfile::tempdir().unwrap();
    let within = folder.path().join("made");
    let scene = Scene(driver(&within, "one"));
    scene.adopt("n", 2).unwrap();
    scene.attach(entry("n", 3)).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&within), 0o700);
    for file in fs::read_dir(&within).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_folder_that_others_may_write_in_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let settings = interlock_dpu::Settings::of(folder.path()).unwrap();
    let refused = interlock_dpu::Driver::local(settings).unwrap_err();
    assert!(refused.message.contains("others may write in it: chmod 700"), "{}", refused.message);
}
