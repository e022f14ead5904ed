//! `interlock up --demo --once`.

use super::fleet::{Said, interlock, run};
use super::harness::DataDirectory;
use super::processes::left_in;

fn demo(at: &DataDirectory) -> Said {
    let mut command = interlock();
    command.args(["up", "--demo", "--once", "--clusters", "west,east"]);
    command.args(["--listen", "127.0.0.1:0"]).arg("--data-dir").arg(at.data());
    let said = run(command);
    let left = left_in(&at.path(""));
    assert!(left.is_empty(), "processes are left: {left:?}\n{said:#?}");
    said
}

#[test]
fn the_demonstration_says_that_every_promise_was_kept_and_says_so_again_on_the_same_fleet() {
    let at = DataDirectory::new();
    for round in 1..=2 {
        let said = demo(&at);
        assert_eq!(said.code, Some(0), "round {round}: {said:#?}");
        for word in [
            "writes on west",
            "writes on east",
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
    }
}

#[test]
fn the_demonstration_fails_when_a_writer_met_another_one() {
    let at = DataDirectory::new();
    std::fs::create_dir_all(at.data().join("demo")).expect("the directory is ours");
    let met = "a writer of epoch 7 met another one\n";
    std::fs::write(at.data().join("demo/refusals"), met).expect("the directory is ours");
    let said = demo(&at);
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(said.out.contains("BROKEN: a writer of epoch 7 met another one"), "{said:#?}");
    assert!(!said.out.contains("every promise was kept"), "{said:#?}");
}
