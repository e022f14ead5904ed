//! `interlock up --demo --once`.

use super::fleet::{Said, interlock, run};
use super::harness::DataDirectory;
use super::processes::left_in;
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};

/// The page that shows a run.
const PAGE: &str = include_str!("../../../../docs/demo.md");

/// A second start is at the address of the first one: the tokens of processes that STS is shown name it.
fn demo(at: &DataDirectory, listen: SocketAddr) -> Said {
    let mut command = interlock();
    command.args(["up", "--demo", "--once", "--clusters", "west,east"]);
    command.args(["--listen", &listen.to_string()]).arg("--data-dir").arg(at.data());
    let said = run(command);
    let left = left_in(&at.path(""));
    assert!(left.is_empty(), "processes are left: {left:?}\n{said:#?}");
    said
}

/// An address that was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address is free");
    listener.local_addr().expect("it has one")
}

/// What was kept, line by line, without the clusters and numbers that are others in each run.
fn kept(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with("  kept: "));
    let shape = |line: &str| {
        let clusters = ["west", "east", "north"];
        let line =
            clusters.iter().fold(line.to_owned(), |line, name| line.replace(name, "CLUSTER"));
        // A move may be over before the second agent could be killed.
        let line = line.replace("CLUSTER, CLUSTER", "CLUSTER");
        line.chars().filter(|letter| !letter.is_ascii_digit()).collect()
    };
    lines.map(shape).collect()
}

#[test]
fn the_demonstration_says_that_every_promise_was_kept_and_says_so_again_on_the_same_fleet() {
    let (at, listen) = (DataDirectory::new(), free_address());
    for round in 1..=2 {
        let said = demo(&at, listen);
        assert_eq!(said.code, Some(0), "round {round}: {said:#?}");
        for word in [
            "writes on west",
            "writes on east",
            "the process on west assumed its role with its own token",
            "and STS refused the token of epoch ",
            "[########################] 100 %",
            "all in the volume on east; none lost",
            "all in the volume on west; none lost",
            "agents killed in the middle of it: ",
            "ledger wrote nothing on east from the beginning of v2 on",
            "the processes on east are those of v2 again",
            "the ledger had left east when demo-n",
            "every promise was kept",
        ] {
            assert!(said.out.contains(word), "round {round}: no {word:?}: {said:#?}");
        }
        assert!(!said.out.contains("BROKEN"), "round {round}: {said:#?}");
        let (seen, shown) = (kept(&said.out), kept(PAGE));
        // In the second round there is no first owner any more, before whom nobody had a token.
        let is_shown = if round == 1 { seen == shown } else { seen.is_subset(&shown) };
        assert!(is_shown, "docs/demo.md shows {shown:#?}, and round {round} said {seen:#?}");
    }
}

#[test]
fn the_demonstration_fails_when_a_writer_met_another_one() {
    let at = DataDirectory::new();
    std::fs::create_dir_all(at.data().join("demo")).expect("the directory is ours");
    let met = "a writer of epoch 7 met another one\n";
    std::fs::write(at.data().join("demo/refusals"), met).expect("the directory is ours");
    let said = demo(&at, free_address());
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(said.out.contains("BROKEN: a writer of epoch 7 met another one"), "{said:#?}");
    assert!(!said.out.contains("every promise was kept"), "{said:#?}");
}
