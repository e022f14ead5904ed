//! Eight agents with random calls on the ports of one DPU: no read-back contradicts an earlier report.

use crate::agent::Agent;
use crate::scene::{Scene, entry_in};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const AGENTS: u64 = 8;
/// How many calls all of them make together; [`CALLS`] unless this says otherwise. Each takes tens of milliseconds.
const CALLS_OF_ALL: &str = "INTERLOCK_DPU_CALLS";
const CALLS: u64 = 200;

/// What all agents have in common: the hub, with the floor of the node of each port, and a clock.
#[derive(Default)]
struct Around {
    floors: Mutex<[i64; 2]>,
    clock: AtomicU64,
    seen: Mutex<Vec<Seen>>,
}

/// A read-back: what was seen, between which moments.
struct Seen {
    from: u64,
    until: u64,
    port: usize,
    term: String,
    node: Option<String>,
    floor: i64,
    open: Option<i64>,
}

fn node(port: usize) -> String {
    format!("5f0d3c3e-7a7e-4c55-8d0b-3c6a9f7b1e1{port}")
}

/// Numbers that look random and are the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

impl Around {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn read(&self, agent: &mut Agent, port: usize) -> Value {
        let from = self.now();
        let read = agent.read(&format!("p{}", port + 1));
        let record = &read["record"];
        let seen = Seen {
            from,
            until: self.now(),
            port,
            term: record["term"].as_str().unwrap().to_owned(),
            node: record["node"].as_str().map(str::to_owned),
            floor: record["floor"].as_i64().unwrap(),
            open: read["gate"]["Open"]["tag"]["epoch"].as_i64(),
        };
        self.seen.lock().unwrap().push(seen);
        read
    }

    fn call(&self, agent: &mut Agent, chance: &mut Chance) {
        let port = usize::try_from(chance.below(2)).unwrap();
        let read = self.read(agent, port);
        // The live read of the hub comes after that of the port.
        let floor = {
            let mut floors = self.floors.lock().unwrap();
            floors[port] += i64::from(chance.below(4) == 0);
            floors[port]
        };
        let (name, term) = (format!("p{}", port + 1), read["record"]["term"].as_str().unwrap());
        let node = node(port);
        let line = match chance.below(8) {
            _ if read["record"]["node"] == json!(null) => {
                format!("adopt {name} {term} {node} {floor}")
            }
            0 => format!("adopt {name} {term} {node} {floor}"),
            1 | 2 => format!("isolate {name} {term} {node} {floor}"),
            3 => format!("detach {name} {term} -"),
            _ => {
                let vni = 4096 + u32::try_from(chance.below(2)).unwrap();
                let entry = entry_in(floor + 1, vni).replace(crate::scene::NODE, &node);
                format!("attach {name} {term} {entry}")
            }
        };
        // Refusals are what it is about.
        let _ = agent.ask(&line).expect("the agent answers");
    }
}

pub(crate) fn eight_agents() {
    let asked = std::env::var(CALLS_OF_ALL).map(|number| number.parse().expect("a number"));
    let of_each = asked.unwrap_or(CALLS).div_ceil(AGENTS);
    let (scene, around) = (Scene::new(), Around::default());
    std::thread::scope(|scope| {
        for number in 1..=AGENTS {
            let (mut agent, around) = (scene.agent(), &around);
            scope.spawn(move || {
                let mut chance = Chance(0x9E37_79B9_7F4A_7C15 ^ number);
                for _ in 0..20 {
                    chance.below(2);
                }
                for _ in 0..of_each {
                    around.call(&mut agent, &mut chance);
                }
            });
        }
    });
    let seen = around.seen.into_inner().unwrap();
    let (mut opened, mut compared) = (0, 0);
    for later in &seen {
        opened += usize::from(later.open.is_some());
        let is_above = |floor: i64| later.open.is_none_or(|epoch| epoch > floor);
        assert!(is_above(later.floor), "open at or under its own floor");
        for earlier in seen.iter().filter(|it| it.until < later.from && it.port == later.port) {
            compared += 1;
            assert!(earlier.term != later.term || earlier.floor <= later.floor, "a floor fell");
            let is_same = earlier.node.is_some() && earlier.node == later.node;
            assert!(!is_same || is_above(earlier.floor), "open under a floor that was reported");
        }
    }
    assert!(opened > 10 && compared > 1000, "{opened} open, {compared} pairs");
    println!("    {} read-backs, {opened} of an open port", seen.len());
}
