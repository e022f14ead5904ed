//! The heartbeat of a DPU: its agent renews a Lease. For display and deadlines only: nothing is given or taken back
//! because of it. The one subject is the Lease.

#[cfg(test)]
mod tests;

use crate::kinds::{LEASE, LEASE_NAMESPACE};
use interlock_api::nodes::DpuName;
use interlock_kernel::metadata::name_of;
use interlock_kernel::{
    Address, LiveReads, Name, Nothing, Object, Observed, Place, Right, Room, Selector, Step,
    Subject, Verb, View, Watch, Watcher, Write,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// How often the Lease is renewed.
pub const PERIOD: Duration = Duration::from_secs(10);
/// After how long without a renewal nobody should believe that the agent runs.
const SILENT_AFTER_SECONDS: u64 = 40;

/// Renews the Lease of one DPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The DPU that it runs on.
    pub here: DpuName,
}

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Facts {
    /// The cache shows no Lease.
    NoLease,
    /// How long ago it was renewed, by our own clock; None: never, or in the future, which means that the clock was
    /// set back.
    Renewed(Option<Duration>),
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Make the Lease. If there is one, this does nothing.
    Create,
    /// Renew it.
    Renew,
    /// Renew it when this has passed.
    RenewIn(Duration),
}

/// What a heartbeat is about.
#[derive(Debug)]
pub struct Scene {
    now: Timestamp,
    lease: Option<Object>,
}

impl Heartbeat {
    fn name(&self) -> Name {
        Name::within(LEASE_NAMESPACE, &self.here.lease())
    }

    /// What the Lease says from now on. Whole seconds are enough.
    fn spec(&self, now: Timestamp) -> Value {
        json!({
            "holderIdentity": self.here.to_string(),
            "leaseDurationSeconds": SILENT_AFTER_SECONDS,
            "renewTime": format!("{now:.6}"),
        })
    }
}

impl Watcher for Heartbeat {
    fn name(&self) -> &'static str {
        "nodes/heartbeat"
    }

    fn watches(&self) -> Vec<Watch> {
        let own = Selector::Named(self.here.lease().as_str().into());
        vec![Watch::all(Place::HUB, &LEASE).only(own)]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::HUB, &LEASE, &[Verb::Create, Verb::Patch])
    }

    fn subjects(&self, _: &Watch, object: &Object, _: &dyn View) -> Vec<Subject> {
        let is_own = Name::of(object) == self.name();
        is_own.then(|| Subject::from(name_of(object))).into_iter().collect()
    }

    /// The Lease is made by the first step.
    fn everything(&self, _: &dyn View) -> Option<Vec<Subject>> {
        Some(vec![Subject::from(self.here.lease())])
    }
}

impl Room for Heartbeat {
    type Outside = Nothing;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        _: &Subject,
        view: &dyn View,
        _: &LiveReads<Nothing>,
    ) -> Observed<Facts, Scene> {
        let now = view.now();
        let lease = view.get(Place::HUB, &LEASE, &self.name());
        let facts = match &lease {
            None => Facts::NoLease,
            Some(lease) => {
                let renewed = lease.data["spec"]["renewTime"].as_str();
                let renewed = renewed.and_then(|at| at.parse::<Timestamp>().ok());
                let ago = renewed.map(|at| now.duration_since(at));
                Facts::Renewed(ago.and_then(|ago| Duration::try_from(ago).ok()))
            }
        };
        Observed::Seen { facts, scene: Scene { now, lease } }
    }

    fn decide(facts: &Facts) -> Decision {
        match facts {
            Facts::NoLease => Decision::Create,
            Facts::Renewed(Some(ago)) if *ago < PERIOD => Decision::RenewIn(PERIOD - *ago),
            Facts::Renewed(_) => Decision::Renew,
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        let spec = self.spec(scene.now);
        match (decision, &scene.lease) {
            (Decision::RenewIn(at_most), _) => {
                Step::Wait { because: "the Lease was renewed recently".to_owned(), at_most }
            }
            (Decision::Renew, Some(lease)) => {
                let write = Write::patch(Place::HUB, &LEASE, lease, json!({"spec": spec}));
                Step::write(write, "the heartbeat is due").then_waiting(Some(PERIOD))
            }
            (Decision::Create | Decision::Renew, _) => {
                let address = Address::new(Place::HUB, &LEASE, self.name());
                let write = Write::Create { address, object: json!({"spec": spec}) };
                Step::write(write, "the DPU has no Lease yet").then_waiting(Some(PERIOD))
            }
        }
    }
}
