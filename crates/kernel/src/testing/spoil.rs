//! Objects that nobody would write, for the promise that no input makes a controller panic.

use super::{Machine, TestServers};
use crate::Controller;
use serde_json::{Value, json};

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    /// A number below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (limit.max(1) as u64)).unwrap_or(0)
    }
}

/// Spoils one place of an object: what is there becomes something that nobody would write.
pub fn spoil(object: &mut Value, dice: &mut Dice) {
    let junk = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("\u{1F980}é".repeat(70)),
        json!([]),
        json!([null, {}]),
        json!({}),
        json!("9999-12-31T23:59:59Z"),
        json!("-9999-01-01T00:00:00Z"),
    ];
    let goes_deeper = dice.below(6) != 0;
    match object {
        Value::Object(members) if goes_deeper && !members.is_empty() => {
            let place = dice.below(members.len());
            if let Some((_, member)) = members.iter_mut().nth(place) {
                spoil(member, dice);
            }
        }
        Value::Array(items) if goes_deeper && !items.is_empty() => {
            let place = dice.below(items.len());
            spoil(&mut items[place], dice);
        }
        place => *place = junk[dice.below(junk.len())].clone(),
    }
}

/// Spoils objects in many ways, and lets a controller take its steps: it may do anything but panic.
pub fn survives<C: Controller>(
    controller: &C,
    machine: &dyn Machine<C::Outside>,
    objects: &[Value],
) {
    for seed in 1..3000_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut spoiled = objects.to_vec();
        for _ in 0..=dice.below(3) {
            let place = dice.below(spoiled.len());
            spoil(&mut spoiled[place], &mut dice);
        }
        let world =
            TestServers::of(controller as &dyn Controller<Outside = C::Outside>).with(spoiled);
        for subject in world.subjects(controller) {
            drop(world.step(controller, machine, &subject));
        }
    }
}
