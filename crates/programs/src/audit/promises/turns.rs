//! What is never done to a cluster that is being maintained.

use super::{Keeper, Promise, is_done, may_be_done, text};
use interlock_kernel::Record;
use std::collections::BTreeMap;

/// No two turns of a cluster are open.
pub(super) const ONE_TURN: Promise = Promise {
    name: "OneTurn",
    sentence: "a cluster is given to a turn only after it was taken back from the one before",
    keeper: || Box::<Turns>::default(),
};

/// The turns that have a cluster, by its uid.
#[derive(Default)]
struct Turns(BTreeMap<String, String>);

impl Keeper for Turns {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        let effect = record.effect.as_ref().filter(|_| record.controller == "turns/turn");
        let Some(cluster) = effect.and_then(|effect| effect.uid.as_ref()) else { return Ok(()) };
        if record.decision.as_str() == Some("TakeBack") && may_be_done(record) {
            self.0.remove(cluster);
        }
        let turn = record.decision.get("Give").and_then(|place| place.as_u64());
        let Some(place) = turn.filter(|_| is_done(record)) else { return Ok(()) };
        let turn = text(&record.facts, &format!("/turns/{place}/uid")).unwrap_or_default();
        match self.0.insert(cluster.clone(), turn.to_owned()) {
            None => Ok(()),
            Some(before) => Err(format!("the cluster is given to turn {turn}; {before} has it")),
        }
    }
}
