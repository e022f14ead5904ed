//! Where the fleet is, and what is said when there is none.

use super::harness::{DataDirectory, Process, TIMEOUT, serve};
use super::harness::{TOKEN, write_kubeconfig};
use super::world::{TestHub, interlock, run};
use std::net::TcpListener;
use std::time::Instant;

#[test]
fn without_a_fleet_all_that_was_tried_is_named() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut command = interlock(home.path());
    command.arg("status");
    run(command).refuses(&[
        "no fleet found",
        "$KUBECONFIG is not set",
        "share/interlock/kubeconfig",
        ".kube/config",
        "interlock up",
    ]);
}

#[test]
fn a_hub_that_does_not_answer_is_named() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    write_kubeconfig(&home.path().join("config"), &address.to_string(), TOKEN);
    let mut command = interlock(home.path());
    command.args(["explain", "shop"]).env("KUBECONFIG", home.path().join("config"));
    run(command).refuses(&["does not answer", &address.to_string(), "$KUBECONFIG", "interlock up"]);
}

#[test]
fn a_hub_without_placement_says_so() {
    let world = TestHub::bare();
    for args in [&["status"][..], &["explain", "default"], &["move", "default", "--to", "east"]] {
        world.run(args).refuses(&["placement is not installed", "interlock up"]);
    }
}

#[test]
fn a_context_that_is_not_there_is_named_with_those_that_are() {
    let world = TestHub::bare();
    world.run(&["status", "--context", "moon"]).refuses(&["no context `moon`", "it has: hub"]);
}

#[test]
fn a_kubeconfig_that_is_missing_or_broken_is_named() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("broken");
    let ask = || {
        let mut command = interlock(home.path());
        command.arg("status").arg("--kubeconfig").arg(&file);
        run(command)
    };
    ask().refuses(&["cannot read --kubeconfig", "broken"]);
    std::fs::write(&file, "{nonsense").expect("it is ours");
    ask().refuses(&["cannot read --kubeconfig", "broken"]);
}

#[test]
fn the_server_in_its_usual_place_is_found_by_itself_over_tls() {
    let place = DataDirectory::new();
    let home = place.path("home");
    let mut command = serve();
    command.args(["--listen", "127.0.0.1:0"]).env("XDG_DATA_HOME", home.join("share"));
    let _hub = Process::spawn(command);
    let began = Instant::now();
    loop {
        let mut command = interlock(&home);
        command.arg("status");
        let said = run(command);
        // It was reached, whether or not it serves the kinds of placement.
        let is_reached = said.out.contains("no namespace is placed")
            || said.err.contains("placement is not installed at https://127.0.0.1:");
        if is_reached {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "{said:#?}");
    }
}
