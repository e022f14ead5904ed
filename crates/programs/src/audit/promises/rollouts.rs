//! What is never done to clusters that are updated.

use super::{Keeper, Promise, is_done, may_be_done};
use interlock_kernel::Record;
use std::collections::BTreeMap;

/// No two updates of a cluster are under way.
pub(super) const ONE_ACTIVE: Promise = Promise {
    name: "OneActive",
    sentence: "an update of a cluster is started only after the one before has ended",
    keeper: || Box::<Active>::default(),
};

/// The updates that are under way: in which step they were started, by the uid of the record of the cluster.
#[derive(Default)]
struct Active(BTreeMap<String, u64>);

impl Keeper for Active {
    fn hear(&mut self, record: &Record) -> Result<(), String> {
        let effect = record.effect.as_ref().filter(|_| record.controller == "rollouts/conductor");
        let Some(of) = effect.and_then(|effect| effect.uid.as_ref()) else { return Ok(()) };
        let ends = matches!(record.decision.as_str(), Some("Succeed" | "EndRolledBack"))
            || ["GiveUp", "EndAll"].iter().any(|name| record.decision.get(name).is_some());
        if ends && may_be_done(record) {
            self.0.remove(of);
        }
        if record.decision.as_str() != Some("Start") || !is_done(record) {
            return Ok(());
        }
        match self.0.insert(of.clone(), record.number) {
            None => Ok(()),
            Some(before) => {
                Err(format!("an update is started; the one of step {before} has not ended"))
            }
        }
    }
}
