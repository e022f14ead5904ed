//! A controller behind a pointer. What runs a controller is a thousand lines of asynchronous code: it is
//! compiled once for each kind of driver, and not once for each controller.

use interlock_kernel::{
    Controller, Decided, LiveReads, Object, Outside, Right, Step, Subject, View, Watch, Watcher,
};
use serde_json::Value;
use std::time::Duration;

/// Any controller with these questions and actions outside of the API.
pub(crate) struct Boxed<O>(Box<dyn Controller<Outside = O>>);

impl<O: Outside> Boxed<O> {
    pub(crate) fn new(controller: impl Controller<Outside = O>) -> Self {
        Boxed(Box::new(controller))
    }
}

impl<O: Outside> Watcher for Boxed<O> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn watches(&self) -> Vec<Watch> {
        self.0.watches()
    }

    fn rights(&self) -> Vec<Right> {
        self.0.rights()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        self.0.subjects(watch, object, view)
    }

    fn everything(&self, view: &dyn View) -> Option<Vec<Subject>> {
        self.0.everything(view)
    }

    fn resync(&self) -> Option<Duration> {
        self.0.resync()
    }
}

impl<O: Outside> Controller for Boxed<O> {
    type Outside = O;

    fn step(&self, subject: &Subject, view: &dyn View, live_reads: &LiveReads<O>) -> Step<O> {
        self.0.step(subject, view, live_reads)
    }

    fn step_on_record(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<O>,
    ) -> (Step<O>, Option<Decided>) {
        self.0.step_on_record(subject, view, live_reads)
    }

    fn judge(&self, facts: &Value) -> Result<Option<Value>, String> {
        self.0.judge(facts)
    }
}
