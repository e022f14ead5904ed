//! What comes late: after a loss of power, after the node was reassigned, while nft runs.

use crate::agent::Stop;
use crate::mode::script;
use crate::net::{Space, eventually};
use crate::scene::{NODE, OTHER, Scene, entry, wire};
use rustix::process::Signal;
use serde_json::json;

pub(crate) fn power_loss() {
    let mut scene = Scene::new();
    let mut agent = scene.agent();
    agent.done("adopt", "p1", &format!("{NODE} 1"));
    agent.done("attach", "p1", &entry(2));
    let term = agent.term("p1");
    drop(agent);
    // What the kernel had is gone, and the disk is as it was.
    let machine = Space::new(false);
    scene.dpu = Space::new(false);
    wire(&scene.dpu, &machine);
    let mut agent = scene.agent_that(Stop::Never, "two");
    let late = agent.ask(&format!("attach p1 {term} {}", entry(2))).unwrap();
    assert!(late.starts_with("refused TermDiffers"), "{late}");
    let port = agent.read("p1");
    assert_eq!(port["gate"], json!("Closed"));
    assert_eq!((&port["record"]["node"], &port["record"]["floor"]), (&json!(NODE), &json!(1)));
    assert_ne!(port["record"]["term"], json!(term));
    agent.done("attach", "p1", &entry(2));
    assert_eq!(scene.link("p1"), (true, "ilb4096".to_owned()));
}

pub(crate) fn held_back() {
    let scene = Scene::new();
    let (mut held, mut other) = (scene.agent(), scene.agent());
    other.done("adopt", "p1", &format!("{NODE} 1"));
    // The live reads are done; then the process is stopped, and the call is made when it goes on.
    let term = held.term("p1");
    held.signal(Signal::STOP);
    held.send(&format!("attach p1 {term} {}", entry(2)));
    other.done("isolate", "p1", &format!("{NODE} 2"));
    other.done("attach", "p1", &entry(3).replace("4096", "4097"));
    held.signal(Signal::CONT);
    let late = held.receive().unwrap();
    assert_eq!(late, "refused AtOrUnderTheFloor: epoch 2 is revoked: the floor of port p1 is 2");
    assert_eq!(scene.link("p1"), (true, "ilb4097".to_owned()), "the next tenant keeps its port");

    // The same with a record that was lost meanwhile.
    let term = held.term("p1");
    held.signal(Signal::STOP);
    held.send(&format!("attach p1 {term} {}", entry(4)));
    std::fs::remove_file(scene.records().join("p1.record")).unwrap();
    let gate = other.read("p1")["gate"].clone();
    assert!(gate["Foreign"].as_str().unwrap().contains("opened it for nobody"), "{gate}");
    other.done("adopt", "p1", &format!("{OTHER} 0"));
    held.signal(Signal::CONT);
    let late = held.receive().unwrap();
    assert!(late.starts_with("refused TermDiffers"), "{late}");
    assert_eq!(scene.link("p1"), (false, "none".to_owned()));
}

pub(crate) fn under_the_lock() {
    let scene = Scene::new();
    let mut other = scene.agent();
    other.done("adopt", "p1", &format!("{NODE} 1"));
    let term = other.term("p1");
    let mut held = scene.agent_that(Stop::HeldBefore("link up"), "one");
    held.send(&format!("attach p1 {term} {}", entry(2)));
    held.is_held();
    other.send(&format!("isolate p1 {term} {NODE} 2"));
    held.signal(Signal::CONT);
    // It stops before each link that it brings up: of the VXLAN, the bridge and the port.
    let mut last = None;
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        held.signal(Signal::CONT);
    }
    eventually("the attach ends", || {
        held.signal(Signal::CONT);
        last = last.take().or_else(|| held.receive());
        last.is_some()
    });
    assert_eq!(last.as_deref(), Some("ok"), "it was first");
    assert_eq!(other.receive().unwrap(), "ok");
    let port = other.read("p1");
    assert_eq!((&port["gate"], &port["record"]["floor"]), (&json!("Closed"), &json!(2)));
}

pub(crate) fn nft_goes_on() {
    let scene = Scene::new();
    let mut other = scene.agent();
    other.done("adopt", "p1", &format!("{NODE} 1"));
    let term = other.term("p1");
    // Slow only with the rules of an attach.
    let folder = scene.folder.path().display().to_string();
    let nft = script(
        scene.folder.path(),
        "nft",
        &format!(
            "#!/bin/sh\nif grep -q '02:00:00:00:00:01.*add.*element' /dev/stdin; then : > {folder}/runs\n\
             while [ ! -e {folder}/go ]; do sleep 0.01; done; fi\nexec /usr/sbin/nft \"$@\"\n"
        ),
    );
    let mut agent = scene.agent_with(&nft, Stop::Never, "one");
    agent.send(&format!("attach p1 {term} {}", entry(2)));
    eventually("nft runs", || scene.folder.path().join("runs").exists());
    agent.signal(Signal::KILL);
    drop(agent);
    other.send(&format!("isolate p1 {term} {NODE} 2"));
    let record = || std::fs::read_to_string(scene.records().join("p1.record")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(record().contains("\"floor\": 1"), "no floor is raised while nft runs: {}", record());
    std::fs::write(scene.folder.path().join("go"), "").unwrap();
    assert_eq!(other.receive().unwrap(), "ok");
    let port = other.read("p1");
    assert_eq!((&port["gate"], &port["record"]["floor"]), (&json!("Closed"), &json!(2)));
    assert_eq!(scene.link("p1"), (false, "none".to_owned()));
}
