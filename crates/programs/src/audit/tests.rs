use super::*;
use interlock_api::turns::TurnPhase;
use interlock_kernel::{End, RecordedEffect, Room};
use interlock_turns::turn::{Facts, Turn, Turns};
use serde_json::{Value, json};

/// Facts of the smallest system: a turn has the cluster, and the cache does not show that turn.
fn facts() -> Facts {
    let waiting = Turn { uid: "b".into(), is_finished: false, phase: TurnPhase::Waiting };
    Facts { holder: Some("a".into()), turns: vec![waiting], ..Facts::default() }
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("it is JSON")
}

fn record(number: u64, second: i64, facts: &Facts, decision: Value) -> Record {
    Record {
        time: Timestamp::from_second(second).expect("a time"),
        number,
        controller: "turns/turn".to_owned(),
        at: [("hub".to_owned(), "hub".to_owned())].into(),
        subject: "west".to_owned(),
        view: "0".to_owned(),
        same: 0,
        because: "it is a test".to_owned(),
        effect: None,
        end: End::Rests,
        facts: json(facts),
        decision,
    }
}

fn right(number: u64, second: i64) -> Line {
    Line::Step(Box::new(record(number, second, &facts(), json(&Turns::decide(&facts())))))
}

fn gives(number: u64, second: i64) -> Line {
    let free = Facts { holder: None, ..facts() };
    let effect = RecordedEffect {
        action: "patch".to_owned(),
        place: Some("hub".to_owned()),
        kind: Some("WorkloadCluster".to_owned()),
        name: Some("west".to_owned()),
        uid: Some("w".to_owned()),
        seen: Some("1".to_owned()),
        now: Some("2".to_owned()),
    };
    let step = record(number, second, &free, json(&Turns::decide(&free)));
    Line::Step(Box::new(Record { effect: Some(effect), end: End::Done, ..step }))
}

fn begins(process: &str, goes_on: bool) -> Line {
    let time = Timestamp::UNIX_EPOCH;
    Line::Begins(Begins { version: "1.0.0".into(), process: process.into(), time, goes_on })
}

#[test]
fn a_decision_of_the_rules_is_explained() {
    let mut audit = Audit::default();
    assert_eq!(audit.hear(0, begins("here", false)), []);
    assert_eq!(audit.hear(0, right(1, 10)), []);
    assert_eq!(audit.end(), []);
    assert!(audit.report().is_good());
    assert_eq!((audit.report().steps, audit.report().missing), (1, 0));
}

#[test]
fn a_decision_of_other_rules_is_named_with_the_fact_that_was_left_out() {
    let mut audit = Audit::default();
    audit.hear(0, begins("here", false));
    // It believes its cache: the turn that has the cluster is not there.
    let wrong = record(1, 10, &facts(), json!("TakeBack"));
    let found = audit.hear(0, Line::Step(Box::new(wrong)));
    let [finding] = &found[..] else { panic!("one step is wrong: {found:?}") };
    assert_eq!(
        (finding.promise, &*finding.controller, &*finding.subject),
        ("RulesAreFollowed", "turns/turn", "west")
    );
    assert_eq!(finding.expected, Some(json!("LiveRead")));
    assert_eq!(finding.turning_points, ["/is_holder_gone"]);
    assert_eq!(finding.version.as_deref(), Some("1.0.0"));
    assert_eq!(audit.report().first.as_ref(), Some(finding));
    assert!(!audit.report().is_good());
}

#[test]
fn facts_that_are_none_are_said() {
    let mut audit = Audit::default();
    let mut none = record(1, 10, &facts(), json!("LiveRead"));
    none.facts = Value::Null;
    let found = audit.hear(0, Line::Step(Box::new(none)));
    assert!(found[0].what.contains("cannot be read"), "{found:?}");
}

#[test]
fn a_controller_that_is_unknown_is_counted_and_no_difference() {
    let mut audit = Audit::default();
    let other = record(1, 10, &facts(), json!(1));
    let other = Record { controller: "somebody/else".to_owned(), ..other };
    assert_eq!(audit.hear(0, Line::Step(Box::new(other))), []);
    assert_eq!(audit.report().not_judged["somebody/else"], 1);
    assert!(audit.report().is_good());
}

#[test]
fn promises_hear_steps_in_the_order_in_which_they_were_decided() {
    let mut audit = Audit::default();
    audit.hear(0, begins("here", false));
    assert_eq!(audit.hear(0, gives(1, 12)), []);
    // It ended later and was decided earlier: the first of the two.
    assert_eq!(audit.hear(0, gives(2, 11)), []);
    let found = audit.pass(Timestamp::from_second(13).expect("a time"));
    let [finding] = &found[..] else { panic!("one step is wrong: {found:?}") };
    assert_eq!((finding.promise, finding.number), ("OneTurn", 1));
    let kept = audit.report().promises.iter().find(|kept| kept.promise == "OneTurn");
    assert_eq!(kept.map(|kept| kept.broken), Some(1));
}

#[test]
fn after_a_gap_the_promises_are_audited_anew() {
    let mut audit = Audit::default();
    audit.hear(0, begins("here", false));
    audit.hear(0, gives(1, 10));
    // Two steps are missing: the cluster may have been taken back.
    assert_eq!(audit.hear(0, gives(4, 20)), []);
    assert_eq!(audit.end(), []);
    assert_eq!(audit.report().missing, 2);
    let since: Vec<_> = audit.report().promises.iter().filter_map(|kept| kept.since).collect();
    let seconds: Vec<i64> = since.iter().map(|since| since.as_second()).collect();
    assert_eq!(seconds[0], 10);
    assert!(seconds[1..].iter().all(|second| *second == 20), "{seconds:?}");
    // So after a start, and not when the same process begins another file.
    audit.hear(0, begins("here", true));
    let found = [audit.hear(0, gives(5, 30)), audit.end()].concat();
    assert_eq!(found.len(), 1);
    audit.hear(0, begins("again", false));
    let found = [audit.hear(0, gives(1, 40)), audit.end()].concat();
    assert_eq!(found, []);
}

#[test]
fn what_others_decided_while_steps_of_a_log_are_lost_is_not_held_against_them() {
    let begins_at = |process: &str, second: i64| {
        let time = Timestamp::from_second(second).expect("a time");
        let version = "1.0.0".to_owned();
        Line::Begins(Begins { version, process: process.to_owned(), time, goes_on: false })
    };
    let hear = |last: i64| {
        let mut audit = Audit::default();
        audit.hear(0, begins_at("a", 1));
        audit.hear(1, begins_at("b", 1));
        // The cluster is given, and taken back by a process whose last steps are lost.
        audit.hear(0, gives(1, 10));
        audit.hear(1, right(1, last));
        audit.hear(0, gives(2, 12));
        let mut found = audit.hear(1, begins_at("c", 15));
        // Decided before, and recorded late.
        found.extend(audit.hear(0, gives(3, 14)));
        found.extend(audit.hear(0, gives(4, 16)));
        found.extend(audit.end());
        found.len()
    };
    assert_eq!(hear(11), 0);
    // What it recorded well after a step shows that nothing before that step is lost.
    assert_eq!(hear(13), 1);
}

fn takes_back(number: u64, second: i64, end: End) -> Line {
    let Line::Step(given) = gives(number, second) else { unreachable!("it is a step") };
    let over = Facts { is_holder_gone: Some(true), ..facts() };
    let decision = json(&Turns::decide(&over));
    assert_eq!(decision, json!("TakeBack"));
    Line::Step(Box::new(Record { facts: json(&over), decision, end, ..*given }))
}

#[test]
fn what_was_under_way_when_a_process_died_may_be_done() {
    let begins_at = |process: &str, second: i64| {
        let time = Timestamp::from_second(second).expect("a time");
        let version = "1.0.0".to_owned();
        Line::Begins(Begins { version, process: process.to_owned(), time, goes_on: false })
    };
    let hear = |is_said: bool| {
        let mut audit = Audit::default();
        audit.hear(0, begins_at("a", 1));
        audit.hear(1, begins_at("b", 1));
        audit.hear(0, gives(1, 10));
        // The reply never comes; what others do rests on it, and its process goes on with other steps, and dies.
        if is_said {
            audit.hear(1, takes_back(1, 11, End::UnderWay));
        }
        audit.hear(0, gives(2, 12));
        audit.hear(1, right(1 + u64::from(is_said), 15));
        let mut found = audit.hear(1, begins_at("c", 16));
        found.extend(audit.end());
        assert_eq!(audit.report().steps, 3, "what has no end is not judged");
        found.len()
    };
    assert_eq!((hear(true), hear(false)), (0, 1));
}

#[test]
fn a_step_that_was_under_way_counts_once_and_by_its_end() {
    for (end, expected) in [(End::Done, 0), (End::Unknown, 0), (End::Conflict, 1)] {
        let mut audit = Audit::default();
        audit.hear(0, begins("here", false));
        audit.hear(0, gives(1, 10));
        audit.hear(0, takes_back(2, 11, End::UnderWay));
        audit.hear(0, takes_back(3, 11, end));
        audit.hear(0, gives(4, 12));
        assert_eq!(audit.end().len(), expected, "{end:?}");
        assert_eq!((audit.report().steps, audit.report().missing), (3, 0));
    }
}

#[test]
fn every_controller_of_every_program_has_a_judge() {
    let judges = Judges::shipped();
    let names: Vec<&str> = judges.names().collect();
    for system in
        ["placement/", "volumes/", "identities/", "nodes/", "rollouts/", "workloads/", "turns/"]
    {
        assert!(names.iter().any(|name| name.starts_with(system)), "{system} is not in {names:?}");
    }
    // None of them is something else than a room: each can say whether it can read these facts.
    for name in names {
        assert!(judges.decide(name, &json!("nonsense")).is_some(), "{name} cannot be judged");
    }
}
