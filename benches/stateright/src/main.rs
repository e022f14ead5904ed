//! The crate stateright on one of our models: the same successor function, its own engine.
//!
//! `stateright-bench nodes=1,dpus=1,tenants=2` prints one JSON object.

use interlock_checker::{Model as _, Size, Steps, successors};
use interlock_nodes::seed::DpuMultiTenant;
use stateright::{Checker, Model, Property};
use std::time::Instant;

struct Adapted(DpuMultiTenant);

impl Model for Adapted {
    type State = u64;
    /// A step is named by where it leads: stateright asks for actions and then for their outcome.
    type Action = u64;

    fn init_states(&self) -> Vec<u64> {
        self.0.initial().iter().map(|state| self.0.pack(state)).collect()
    }

    fn actions(&self, state: &u64, actions: &mut Vec<u64>) {
        let mut steps = Steps::default();
        successors(&self.0, &self.0.unpack(state), &mut steps);
        actions.extend(steps.as_slice().iter().map(|step| self.0.pack(&step.to)));
    }

    fn next_state(&self, _state: &u64, action: u64) -> Option<u64> {
        Some(action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("invariants", |model: &Adapted, state| {
            let state = model.0.unpack(state);
            model.0.invariants().iter().all(|invariant| (invariant.holds)(&state))
        })]
    }
}

fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) * 1024.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let size = std::env::args().nth(1).unwrap_or_default();
    let model = DpuMultiTenant::from_size(&Size::parse(&size)?)?;
    let before = resident_bytes();
    let started = Instant::now();
    let checker = Adapted(model).checker().threads(2).spawn_bfs().join();
    let seconds = started.elapsed().as_secs_f64();
    checker.assert_properties();
    let distinct = checker.unique_state_count();
    let answer = serde_json::json!({
        "distinct_states": distinct,
        "generated_states": checker.state_count(),
        "seconds": seconds,
        "bytes_per_state": (resident_bytes() - before) / distinct as f64,
    });
    println!("{answer}");
    Ok(())
}
