//! Broken objects are facts like any other: nothing panics, and nothing is deleted on a guess.

use super::world::{TestFleet, carried};
use crate::kinds::{GRANT, NAMESPACE};
use interlock_kernel::{Action, Name, Step, Write};
use serde_json::{Value, json};

/// A little generator: the same numbers on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn value(&mut self, depth: u32) -> Value {
        const WORDS: [&str; 12] = [
            "a",
            "Granted",
            "Revoking",
            "Released",
            "1",
            "-3",
            "1@boot-1",
            "",
            "interlock-process",
            "shop",
            "g-uid",
            "data",
        ];
        let keys = [
            "phase",
            "owner",
            "epoch",
            "claims",
            "pins",
            "copies",
            "conditions",
            "containers",
            "volumes",
            "name",
            "uid",
            "volumeMounts",
            "ports",
            "template",
            "spec",
        ];
        match self.roll(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.roll(4)),
            2 => json!(true),
            3 | 4 => json!(WORDS[self.roll(12) as usize]),
            5 => (0..self.roll(3)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let fields = (0..self.roll(5))
                    .map(|_| (keys[self.roll(15) as usize].to_owned(), self.value(depth - 1)));
                Value::Object(fields.collect())
            }
        }
    }

    fn marks(&mut self) -> Value {
        let mut marks = json!({});
        for key in ["grant", "epoch", "released", "running", "ran", "from", "last"] {
            if self.roll(2) == 0 {
                let words = ["1", "2", "x", "g-uid", "1@boot-1", "1@vol", "g"];
                marks[format!("interlock.dev/{key}")] = json!(words[self.roll(7) as usize]);
            }
        }
        marks
    }
}

#[test]
fn broken_objects_do_no_harm() {
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let mut world = TestFleet::new(&["a"]);
        let me = world.cluster("a");
        let mut grant = json!({
            "metadata": {"uid": "g-uid"},
            "spec": {"namespace": {"name": "shop", "uid": "n-uid"}},
            "status": {"phase": "Granted", "owner": me, "epoch": 1},
        });
        if dice.roll(2) == 0 {
            let field = ["phase", "owner", "epoch", "claims", "pins", "copies"];
            grant["status"][field[dice.roll(6) as usize]] = dice.value(3);
        }
        world.put(&GRANT, Name::cluster_wide("g"), "", grant);
        let finalizers = json!([format!("interlock.dev/syncer-{}", me.uid)]);
        let namespace = json!({"metadata": {"uid": "n-uid", "finalizers": finalizers}});
        world.put(&NAMESPACE, Name::cluster_wide("shop"), "", namespace);
        let marks = dice.marks();
        let here = json!({"metadata": {"annotations": marks}});
        world.put(&NAMESPACE, Name::cluster_wide("g"), "a", here);
        for kind in carried() {
            for (within, cluster) in [("shop", ""), ("g", "a")] {
                let mut object = json!({"metadata": {"annotations": dice.marks()}});
                if dice.roll(2) == 0 {
                    object["metadata"]["labels"] = json!({"interlock.dev/grant": "g"});
                }
                object["spec"] = dice.value(4);
                object["status"] = dice.value(2);
                world.put(&kind, Name::within(within, "x"), cluster, object);
            }
        }
        let syncer = world.syncer("a");
        let step = world.step(&syncer, "a", "g");
        let runtime = crate::runtime::Runtime::new(super::world::BOOT);
        let _ = world.step(&runtime, "a", "g/x");
        if let Step::Act(effect) = step
            && let Action::Write(Write::Delete { address, .. }) = effect.action
        {
            assert_ne!(address.kind, NAMESPACE, "seed {seed}");
        }
        world.view("a").subjects(&syncer);
    }
}
