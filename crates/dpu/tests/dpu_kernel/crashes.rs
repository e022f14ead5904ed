//! kill -9 before each call of the driver.

use crate::agent::{Agent, Stop};
use crate::scene::{NODE, OTHER, Scene, entry, entry_in};
use serde_json::{Value, json};

/// What was done before, what is being done, and what may be read afterwards.
struct Row {
    before: &'static [&'static str],
    what: &'static str,
    after: &'static [(i64, Option<i64>)],
}

/// Lines as words of the agent; E2 is the entry of epoch 2.
const ROWS: &[Row] = &[
    Row { before: &[], what: "adopt N 1", after: &[(0, None), (1, None)] },
    Row { before: &["adopt N 1"], what: "attach E2", after: &[(1, None), (1, Some(2))] },
    Row {
        before: &["adopt N 1", "attach E2"],
        what: "isolate N 2",
        after: &[(1, Some(2)), (1, None), (2, None)],
    },
    Row {
        before: &["adopt N 1", "attach E2"],
        what: "adopt O 5",
        after: &[(1, Some(2)), (1, None), (5, None)],
    },
    Row {
        before: &["adopt N 1", "attach E2"],
        what: "detach N 2",
        after: &[(1, Some(2)), (1, None)],
    },
    Row {
        before: &["adopt N 1", "attach E2", "isolate N 2"],
        what: "attach F3",
        after: &[(2, None), (2, Some(3))],
    },
];

fn line(words: &str) -> (String, String) {
    let (what, rest) = words.split_once(' ').unwrap();
    let rest = rest.replace('N', NODE).replace('O', OTHER);
    let rest = rest.replace("E2", &entry(2)).replace("F3", &entry_in(3, 4097));
    (what.to_owned(), rest)
}

fn act(agent: &mut Agent, words: &str) {
    let (what, rest) = line(words);
    agent.done(&what, "p1", &rest);
}

/// The epoch that a port is open for.
fn open(port: &Value) -> Option<i64> {
    port["gate"]["Open"]["tag"]["epoch"].as_i64()
}

pub(crate) fn at_each_call() {
    let scene = Scene::new();
    let mut crashes = 0;
    for row in ROWS {
        for at in 0.. {
            scene.reset();
            let mut agent = scene.agent();
            row.before.iter().for_each(|words| act(&mut agent, words));
            let term = agent.term("p1");
            drop(agent);
            let (what, rest) = line(row.what);
            let mut killed = scene.agent_that(Stop::KilledAt(at), "one");
            if let Some(said) = killed.ask(&format!("{what} p1 {term} {rest}")) {
                assert_eq!((&*said, at > 5), ("ok", true), "{} calls something", row.what);
                break;
            }
            crashes += 1;
            // The kernel's own words first: what is up and in a bridge is what the driver says is open.
            let (is_up, master) = scene.link("p1");
            let mut agent = scene.agent();
            let port = agent.read("p1");
            let seen =
                format!("{} killed before call {at}: {port}, up {is_up} in {master}", row.what);
            let is_passing = is_up && master != "none";
            assert_eq!(is_passing, open(&port).is_some(), "{seen}");
            let floor = port["record"]["floor"].as_i64().unwrap();
            assert!(row.after.contains(&(floor, open(&port))), "{seen}");
            assert!(open(&port).is_none_or(|epoch| epoch > floor), "{seen}");
            // Whoever comes next puts it right.
            if port["gate"].get("Foreign").is_some() {
                agent.done("detach", "p1", "-");
                assert_eq!(agent.read("p1")["gate"], json!("Closed"), "{seen}");
            }
            if what != "attach" || open(&port).is_none() {
                act(&mut agent, row.what);
            }
            let last = row.after.last().unwrap();
            let port = agent.read("p1");
            let floor = port["record"]["floor"].as_i64().unwrap();
            assert_eq!((floor, open(&port)), *last, "{seen}, and then {port}");
        }
    }
    assert!(crashes > 60, "only {crashes} crashes");
    println!("    killed {crashes} times");
}
