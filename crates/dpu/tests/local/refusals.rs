//! What each action refuses, and what it does otherwise.

use crate::support::{PORT, Scene, attach, driver, entry};
use interlock_dpu::Driver;
use interlock_nodes::outside::{Action, Entry, Failure, Gate, Network, Question, Term};

/// A port of node `n` at floor 2.
fn scene(folder: &tempfile::TempDir) -> Scene {
    let scene = Scene(driver(folder.path(), "boot"));
    scene.adopt("n", 2).unwrap();
    scene
}

fn reason(done: Result<(), Failure>) -> &'static str {
    done.err().map_or("done", |failure| failure.reason)
}

#[test]
fn a_port_that_was_never_seen_is_closed_and_of_no_node() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene(driver(folder.path(), "boot"));
    let port = scene.port();
    assert_eq!((port.record.node, port.record.floor, port.gate), (None, 0, Gate::Closed));
    assert_eq!(port.record.term.0.len(), 32);
    assert_eq!(scene.term(), port.record.term, "it is on record");
    assert_eq!(reason(scene.attach(entry("n", 1))), "NodeDiffers");
    assert_eq!(reason(scene.isolate("n", 1)), "NodeDiffers");
}

#[test]
fn every_action_about_a_port_is_refused_under_another_term() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(&folder);
    let (port, term, node) = (PORT.to_owned(), Term("0".repeat(32)), "n".to_owned());
    let actions = [
        Action::Adopt { port: port.clone(), term: term.clone(), node: node.clone(), floor: 9 },
        Action::Isolate { port: port.clone(), term: term.clone(), node, floor: 9 },
        attach(term.clone(), entry("n", 3)),
        Action::Detach { port, term, tag: None },
    ];
    let before = scene.port();
    for action in actions {
        assert_eq!(reason(scene.0.perform(&action)), "TermDiffers", "{action:?}");
        let port = scene.port();
        assert_eq!(port.failure.unwrap().reason, "TermDiffers", "and the port says so");
        assert_eq!((port.record, port.gate), (before.record.clone(), before.gate.clone()));
    }
    scene.attach(entry("n", 3)).unwrap();
    assert_eq!(scene.port().failure, None);
}

#[test]
fn a_port_opens_above_its_floor_only_and_for_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(&folder);
    let refused = scene.attach(entry("n", 2)).unwrap_err();
    assert_eq!(refused.reason, "AtOrUnderTheFloor");
    assert_eq!(refused.message, "epoch 2 is revoked: the floor of port p0 is 2");
    assert_eq!(reason(scene.attach(entry("other", 3))), "NodeDiffers");
    assert_eq!(scene.gate(), Gate::Closed);
    scene.attach(entry("n", 3)).unwrap();
    assert_eq!(
        scene.gate(),
        Gate::Open(entry("n", 3)),
        "as it was asked, addresses in their order"
    );
    let refused = scene.attach(entry("n", 4)).unwrap_err();
    assert_eq!(
        refused.message,
        "port p0 is not closed: it is open for tenant tenant-3 at epoch 3; detach or isolate it first"
    );
}

#[test]
fn isolating_closes_what_is_at_or_under_the_floor_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(&folder);
    scene.attach(entry("n", 5)).unwrap();
    scene.isolate("n", 4).unwrap();
    assert_eq!((scene.gate(), scene.record().floor), (Gate::Open(entry("n", 5)), 4));
    let term = scene.term();
    scene.isolate("n", 5).unwrap();
    assert_eq!((scene.gate(), scene.record().floor), (Gate::Closed, 5));
    scene.isolate("n", 3).unwrap();
    assert_eq!(scene.record().floor, 5, "a floor does not fall");
    assert_eq!(scene.term(), term, "and isolating makes no term");
    assert_eq!(reason(scene.isolate("other", 9)), "NodeDiffers");
}

#[test]
fn adopting_closes_and_keeps_the_higher_floor_of_the_same_node_only() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(&folder);
    scene.attach(entry("n", 3)).unwrap();
    let term = scene.term();
    scene.adopt("n", 1).unwrap();
    assert_eq!((scene.gate(), scene.record().floor), (Gate::Closed, 2));
    assert_ne!(scene.term(), term);
    scene.adopt("n", 7).unwrap();
    assert_eq!(scene.record().floor, 7);
    scene.adopt("other", 1).unwrap();
    assert_eq!((scene.record().node.as_deref(), scene.record().floor), (Some("other"), 1));
}

#[test]
fn an_attach_that_was_held_back_meets_the_term_of_the_next_node_or_the_floor() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(&folder);
    let late = attach(scene.term(), entry("n", 3));
    scene.isolate("n", 3).unwrap();
    assert_eq!(reason(scene.0.perform(&late)), "AtOrUnderTheFloor");
    scene.adopt("n", 0).unwrap();
    assert_eq!(reason(scene.0.perform(&late)), "TermDiffers");
}

#[test]
fn an_entry_is_detached_by_its_own_tag_only() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(&folder);
    scene.attach(entry("n", 3)).unwrap();
    for tag in [None, Some(entry("n", 4).tag), Some(entry("other", 3).tag)] {
        scene.detach(tag).unwrap();
        assert_eq!(scene.gate(), Gate::Open(entry("n", 3)));
    }
    scene.detach(Some(entry("n", 3).tag)).unwrap();
    assert_eq!(scene.gate(), Gate::Closed);
    scene.attach(entry("n", 3)).unwrap();
}

#[test]
fn an_entry_that_is_not_well_formed_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(&folder);
    let with = |change: fn(&mut Entry)| {
        let mut entry = entry("n", 3);
        change(&mut entry);
        scene.attach(entry).unwrap_err().message
    };
    let messages = [
        with(|it| it.vni = 1 << 24),
        with(|it| it.mac = "ff:ff:ff:ff:ff:ff".to_owned()),
        with(|it| it.tag.claim = "a b".to_owned()),
        with(|it| it.tag.epoch = 0),
        with(|it| it.addresses.push("224.0.0.1".parse().unwrap())),
    ];
    let expected = [
        "network 16777216: its number is not between 1 and 16777215",
        "MAC address \"ff:ff:ff:ff:ff:ff\": it is not the address of one machine",
        "the claim uid \"a b\": it is no uid",
        "epoch 0: the first one is 1",
        "address 224.0.0.1: it is not the address of a host",
    ];
    assert_eq!(messages, expected);
    assert_eq!(scene.gate(), Gate::Closed);
    let wrong = scene.0.answer(&Question::Port("../p0".to_owned())).unwrap_err();
    assert_eq!(wrong.reason, "Invalid");
}

#[test]
fn a_network_is_removed_when_no_port_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(&folder);
    let networks = || scene.0.answer(&Question::Device).unwrap().networks;
    let flood = Action::Flood { vni: 4096, vteps: vec!["192.0.2.9".parse().unwrap()] };
    assert_eq!(reason(scene.0.perform(&flood)), "NoSuchNetwork");
    scene.attach(entry("n", 3)).unwrap();
    let of = |vteps: &[&str], is_used| {
        let vteps = vteps.iter().map(|vtep| vtep.parse().unwrap()).collect();
        vec![Network { vni: 4096, vteps, is_used }]
    };
    assert_eq!(networks(), of(&["192.0.2.2", "192.0.2.3"], true));
    scene.0.perform(&flood).unwrap();
    assert_eq!(networks(), of(&["192.0.2.9"], true));
    let answer = scene.0.answer(&Question::Port(PORT.to_owned())).unwrap();
    assert_eq!(answer.networks, networks(), "a port is read with its network");
    let forget = Action::Forget { vni: 4096 };
    let refused = scene.0.perform(&forget).unwrap_err();
    assert_eq!(refused.reason, "NetworkInUse");
    assert!(refused.message.starts_with("port p0 is in network 4096"), "{}", refused.message);
    scene.isolate("n", 3).unwrap();
    assert_eq!(networks(), of(&["192.0.2.9"], false));
    scene.0.perform(&forget).unwrap();
    scene.0.perform(&forget).unwrap();
    assert_eq!(networks(), []);
}

#[test]
fn what_is_done_and_what_is_refused_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let scene = scene(&folder);
    let page = || Driver::metrics([("r1.d1".to_owned(), &scene.0)].into_iter());
    assert_eq!(reason(scene.attach(entry("n", 2))), "AtOrUnderTheFloor");
    assert_eq!(reason(scene.attach(entry("n", 1))), "AtOrUnderTheFloor");
    scene.attach(entry("n", 3)).unwrap();
    let lines = page();
    let found: Vec<&str> = lines.lines().filter(|line| line.contains("attach")).collect();
    assert_eq!(
        found,
        [
            "interlock_dpu_calls_total{dpu=\"r1.d1\",call=\"attach\",outcome=\"AtOrUnderTheFloor\"} 2",
            "interlock_dpu_calls_total{dpu=\"r1.d1\",call=\"attach\",outcome=\"done\"} 1",
        ]
    );
    assert_eq!(lines.lines().filter(|line| line.starts_with("# TYPE")).count(), 1);
    // A DPU to which nothing was done yet shows nothing.
    let other = tempfile::tempdir().unwrap();
    let idle = driver(other.path(), "boot");
    assert_eq!(Driver::metrics([("r1.d2".to_owned(), &idle)].into_iter()), "");
}
