//! Where a world comes to rest by itself: another world can begin there.

use crate::state::{CLUSTERS, State};
use crate::system::System;
use crate::world::World;
use interlock_checker::{Model, Steps};
use interlock_kernel::{Kind, Name};
use serde_json::Value;

/// More steps than any world takes to come to rest.
const MOST_STEPS: usize = 10_000;

/// What is on the servers and machines of a world that is at rest.
pub struct Rest<M> {
    /// The objects of the hub and of the clusters, for [`crate::Servers::put`].
    pub objects: [Vec<(Kind, Name, Value)>; 1 + CLUSTERS],
    /// The machines of the clusters.
    pub machines: [M; CLUSTERS],
}

impl<S: System> World<S> {
    /// The world after some run in which everything happens that can, in one order.
    ///
    /// Only for a world that comes to rest whatever the order is.
    pub fn rest(&self) -> Rest<S::Machine> {
        let mut state = self.initial().swap_remove(0);
        let mut steps = Steps::default();
        for _ in 0..MOST_STEPS {
            steps.clear();
            self.next(&state, &mut steps);
            let Some(step) = steps.as_slice().first() else { return self.resting(&state) };
            state = step.to;
        }
        unreachable!("a world that is asked for its rest comes to one")
    }

    fn resting(&self, state: &State) -> Rest<S::Machine> {
        let servers = &self.0.servers;
        let objects = state.servers.map(|server| {
            let there = servers.content(server);
            let shown = there.objects.iter().filter_map(|(slot, version)| {
                let key = servers.key(*slot);
                let mut object = serde_json::to_value(&*servers.object(*version)?).ok()?;
                object["metadata"].as_object_mut()?.remove("resourceVersion");
                Some((key.0.clone(), key.1.clone(), object))
            });
            shown.collect()
        });
        let machines = state.machines.map(|machine| self.0.machines.get(machine));
        Rest { objects, machines: machines.map(|machine| S::Machine::clone(&machine)) }
    }
}
