//! Volumes of files that are made before a run starts.
#![allow(clippy::unwrap_used)]

mod scene;

use interlock_outside::processes::{Error, Mount, VolumeFile};
use scene::Scene;
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn file(path: &str, text: &str, mode: u32) -> VolumeFile {
    VolumeFile { path: path.to_owned(), bytes: text.as_bytes().to_vec(), mode }
}

#[test]
fn a_process_finds_its_files_where_they_are_mounted() {
    let scene = Scene::new();
    let files = [file("a", "one", 0o644), file("of/b", "two", 0o400)];
    let whole = scene.processes.make_files("pod", "config", &files).unwrap();
    let part = scene.processes.part_of_volume("pod", &whole, "of/b").unwrap();
    let mut run = scene.shell("pod", "cat etc/app/a etc/b > said; exec sleep 1000");
    let mount = |name: &str, path: &str, directory: &std::path::Path| Mount {
        name: name.to_owned(),
        path: path.to_owned(),
        directory: directory.to_owned(),
    };
    run.mounts = vec![mount("config", "/etc/app", &whole), mount("config/of/b", "/etc/b", &part)];
    scene.processes.start(&run, scene.lock("volumes")).unwrap();
    scene::until("it has read them", || {
        fs::read_to_string(scene.file("pod", "said")).is_ok_and(|said| said == "onetwo")
    });
    let mode = |path: &str| fs::metadata(whole.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("a"), mode("of/b")), (0o644, 0o400));
}

#[test]
fn files_are_made_anew_with_each_start_and_what_began_empty_stays() {
    let scene = Scene::new();
    let processes = &scene.processes;
    processes
        .make_files("pod", "config", &[file("a", "one", 0o400), file("b", "", 0o400)])
        .unwrap();
    let config = processes.make_files("pod", "config", &[file("a", "two", 0o400)]).unwrap();
    assert_eq!(fs::read_to_string(config.join("a")).unwrap(), "two");
    assert!(!config.join("b").exists());
    let scratch = processes.make_empty_volume("pod", "scratch").unwrap();
    fs::write(scratch.join("x"), "written").unwrap();
    assert_eq!(processes.make_empty_volume("pod", "scratch").unwrap(), scratch);
    assert!(scratch.join("x").exists());
    assert!(processes.part_of_volume("pod", &scratch, "sub").unwrap().is_dir());
    processes.make_empty_volume("other", "scratch").unwrap();
    assert!(processes.has_files("pod").unwrap());
    processes.remove_files("pod").unwrap();
    processes.remove_files("pod").unwrap();
    assert!(!processes.has_files("pod").unwrap() && processes.has_files("other").unwrap());
}

#[test]
fn a_path_that_leads_out_of_its_volume_is_refused() {
    let scene = Scene::new();
    for path in ["../up", "a/../../b", "/etc/passwd", "", "a\0b"] {
        let made = scene.processes.make_files("pod", "v", &[file(path, "x", 0o600)]);
        assert!(matches!(made, Err(Error::Path { .. })), "{path:?}: {made:?}");
        let volume = scene.processes.make_empty_volume("pod", "v").unwrap();
        let part = scene.processes.part_of_volume("pod", &volume, path);
        assert!(path.is_empty() || matches!(part, Err(Error::Path { .. })), "{path:?}: {part:?}");
    }
    let made = scene.processes.make_files("pod", "../v", &[]);
    assert!(matches!(made, Err(Error::Name { .. })), "{made:?}");
}
