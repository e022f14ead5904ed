use super::*;
use clap::Parser;
use serde_json::{Value, json};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

fn parse(options: &[&str]) -> Result<Args, clap::Error> {
    let words = ["audit"].iter().chain(options);
    Command::try_parse_from(words).map(|command| command.args)
}

#[test]
fn a_log_that_is_not_there_is_a_usage_error_that_says_where_logs_are() {
    let args = parse(&["--log", "/nonexistent"]).expect("the options are right");
    let error = run(&args).expect_err("there is no log");
    let text = format!("{error:#}");
    assert!(text.contains("/nonexistent") && text.contains("name it with --log"), "{text}");
}

#[test]
fn promises_are_listed_without_a_log() {
    assert!(parse(&["--promises"]).expect("the options are right").promises);
    assert!(parse(&["--promises", "--follow"]).is_err());
    let none = interlock_programs::audit::Audit::default();
    let text = page::promises(none.report());
    for promise in ["RulesAreFollowed", "OnePermit", "OneTenant", "OneWorker"] {
        assert!(text.contains(promise), "{promise} is not in\n{text}");
    }
}

/// A step of the syncer of a cluster, at a second.
struct Step {
    second: u64,
    decision: Value,
}

fn at(second: u64, decision: Value) -> Step {
    Step { second, decision }
}

/// The log of a syncer that decides about one grant.
fn log_of(cluster: &str, steps: &[Step]) -> String {
    let time = |second: u64| format!("2026-01-01T00:00:{second:02}Z");
    let begins = json!({"version": "1.0.0", "process": cluster, "time": time(0), "goes_on": false});
    let mut text = format!("{}\n", json!({ "begins": begins }));
    for (place, Step { second, decision }) in steps.iter().enumerate() {
        let step = json!({
            "time": time(*second), "number": place + 1, "controller": "placement/syncer",
            "at": {"hub": "hub"}, "subject": "shop", "view": "0", "because": "it is a test",
            "effect": {"action": "patch", "place": "cluster"}, "end": "done",
            "facts": {"at": {"grant": "shop", "cluster": cluster}}, "decision": decision,
        });
        text += &format!("{}\n", json!({ "step": step }));
    }
    text
}

#[test]
fn logs_of_several_programs_are_one_story() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let permit = |epoch: i64| json!({ "Permit": epoch });
    let west = [at(1, permit(1)), at(11, json!("Withdraw")), at(51, permit(3))];
    let east = [at(21, permit(2)), at(41, json!("Withdraw"))];
    let logs = [
        ("west", log_of("west", &west)),
        ("east", log_of("east", &east)),
        ("keeps", log_of("east", &east[..1])),
    ];
    for (name, log) in &logs {
        let directory = place.path().join(name);
        std::fs::create_dir(&directory).expect("it is ours");
        std::fs::write(directory.join("00-1-000001.steps.jsonl"), log).expect("it is ours");
    }
    let broken = |names: [&str; 2]| {
        let directories = names.map(|name| place.path().join(name));
        let mut follower = Follower::of_all(&directories).expect("they are there");
        follower.read(false).expect("they can be read");
        let report = follower.end();
        assert_eq!(report.unreadable, 0);
        let kept = report.promises.iter().find(|kept| kept.promise == "OnePermit");
        kept.map(|kept| kept.broken)
    };
    assert_eq!(broken(["west", "east"]), Some(0));
    assert_eq!(broken(["east", "west"]), Some(0));
    assert_eq!(broken(["west", "keeps"]), Some(1));
}
