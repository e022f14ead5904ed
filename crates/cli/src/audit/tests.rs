use super::*;
use clap::Parser;

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
