//! The rules of every controller, by name.

use crate::{
    Account, Agent, Applier, DpuAgent, DpuTenant, Hub, Identities, Machine, Machines, Program,
    Rollouts, TenantPlane, Visitor, Workloads,
};
use interlock_api::placement::Ref;
use interlock_kernel::{Controller, Outside, Record};
use interlock_placement::runtime::Scope;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a room decides on facts that were recorded.
type Judge = Box<dyn Fn(&Value) -> Result<Option<Value>, String> + Send + Sync>;

/// The rules of every controller: the visitor of the lists of programs that asks each room again.
#[derive(Default)]
pub struct Judges(BTreeMap<&'static str, Judge>);

impl<O: Outside> Visitor<O> for Judges {
    fn room<C: Controller<Outside = O>>(&mut self, _: Account, controller: C) {
        self.0.insert(controller.name(), Box::new(move |facts| controller.judge(facts)));
    }
}

/// How a decision compares to the rules.
#[derive(Debug, Clone, PartialEq)]
pub enum Judged {
    /// It is theirs.
    Same,
    /// They decide this.
    Other(Value),
    /// These are not the facts of the room, and why.
    Unreadable(String),
    /// No room of this program has that name.
    Unknown,
}

impl Judges {
    /// Those of all programs. What a room decides depends on its facts alone, so it may be that of any cluster.
    pub fn shipped() -> Judges {
        let mut judges = Judges::default();
        let machine = Some(Machine { is_root: false, has_volumes: true, scope: Scope::All });
        Hub::default().visit(&mut judges);
        Identities::of_any().visit(&mut judges);
        Agent::of_any(machine, &[]).visit(&mut judges);
        Workloads::of_any().visit(&mut judges);
        Rollouts.visit(&mut judges);
        Applier::of(Ref::default()).visit(&mut judges);
        Machines.visit(&mut judges);
        TenantPlane::default().visit(&mut judges);
        DpuAgent::default().visit(&mut judges);
        DpuTenant::of_any().visit(&mut judges);
        judges
    }

    /// The names of the controllers.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// Judges a recorded decision.
    pub fn judge(&self, record: &Record) -> Judged {
        match self.decide(&record.controller, &record.facts) {
            None => Judged::Unknown,
            Some(Err(because)) => Judged::Unreadable(because),
            Some(Ok(decision)) if decision == record.decision => Judged::Same,
            Some(Ok(decision)) => Judged::Other(decision),
        }
    }

    /// What the rules of a controller decide.
    pub(super) fn decide(&self, controller: &str, facts: &Value) -> Option<Result<Value, String>> {
        (self.0.get(controller)?)(facts).transpose()
    }
}
