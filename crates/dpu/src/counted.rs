//! How often a DPU was changed, and why not, as Prometheus reads it.

use interlock_nodes::outside::{Action, Failure};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The outcome of a call that was carried out.
const DONE: &str = "done";

/// The calls of one driver, by what they are and what became of them.
#[derive(Debug, Default)]
pub(crate) struct Counted(Mutex<Calls>);

/// The name of a call, and its outcome.
type Calls = BTreeMap<(&'static str, &'static str), u64>;

impl Counted {
    pub(crate) fn add(&self, action: &Action, done: &Result<(), Failure>) {
        let outcome = done.as_ref().err().map_or(DONE, |failure| failure.reason);
        *self.calls().entry((name(action), outcome)).or_default() += 1;
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(action: &Action) -> &'static str {
    match action {
        Action::Adopt { .. } => "adopt",
        Action::Isolate { .. } => "isolate",
        Action::Attach { .. } => "attach",
        Action::Detach { .. } => "detach",
        Action::Flood { .. } => "flood",
        Action::Forget { .. } => "forget",
    }
}

/// The calls of several DPUs, in one family.
pub(crate) fn page<'a>(dpus: impl Iterator<Item = (String, &'a Counted)>) -> String {
    let mut text = String::new();
    for (dpu, counted) in dpus {
        for ((call, outcome), count) in counted.calls().iter() {
            let labels = format!("dpu=\"{dpu}\",call=\"{call}\",outcome=\"{outcome}\"");
            // Writing to a String does not fail.
            let _ = writeln!(text, "interlock_dpu_calls_total{{{labels}}} {count}");
        }
    }
    if text.is_empty() {
        return text;
    }
    let help = "# HELP interlock_dpu_calls_total Calls that change a DPU, by outcome: done, or why \
                the driver refused.\n# TYPE interlock_dpu_calls_total counter\n";
    help.to_owned() + &text
}
