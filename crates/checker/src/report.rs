//! What a check found, as data: the contract behind `-o json` and everything that is drawn from it.

use crate::model::{Action, ActionId, Covers};
use crate::walk::Walk;
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::collections::BTreeMap;

/// The outcome of a check.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The model's name in the catalog.
    pub model: String,
    /// The size it was checked in.
    pub size: String,
    /// What the check says something about: a seed, a protocol, or shipped code.
    pub covers: Covers,
    /// How often shipped code was called.
    pub steps_called: u64,
    /// States, each counted once.
    pub distinct_states: u64,
    /// Initial states and successors, repeats included, as TLC counts them.
    pub generated_states: u64,
    /// Levels of the search, as TLC counts them: the initial states are the first.
    pub depth: u32,
    /// Time for the exploration.
    pub seconds: f64,
    /// Distinct states per second.
    pub states_per_second: f64,
    /// Memory for the states, over the number of distinct states.
    pub bytes_per_state: f64,
    /// Threads that explored.
    pub workers: usize,
    /// Whether every reachable state was seen.
    pub complete: bool,
    /// Why not, if not.
    pub stopped: Option<String>,
    /// The odds that two states were taken for one, where they are known by fingerprints only.
    pub collision_odds: Option<f64>,
    /// How the states were reduced, if they were.
    pub reduction: Option<Reduction>,
    /// The trace to a state without successors that is not allowed to rest.
    pub deadlock: Option<Trace>,
    /// Whether deadlocks were looked for.
    pub deadlock_checked: bool,
    /// What must hold in every state.
    pub invariants: Vec<Finding>,
    /// What must hold of every step or of every fair behaviour.
    pub properties: Vec<PropertyFinding>,
    /// Specifications that the model must refine.
    pub refines: BTreeMap<String, Finding>,
    /// What must be possible.
    pub reachable: Vec<Finding>,
    /// Actions that were never taken.
    pub never_taken: Vec<Unused>,
    /// Seconds spent on temporal properties.
    pub liveness_seconds: f64,
    /// Explanations that the model has for a deadlock.
    pub deadlock_explanation: Option<String>,
}

/// How the state space was reduced, and how that was verified.
#[derive(Debug, Clone, Serialize)]
pub struct Reduction {
    /// States that were kept.
    pub kept_states: u64,
    /// Valuations of the free flags that each of them stands for.
    pub flag_valuations: u64,
    /// The free flags.
    pub flags: Vec<String>,
    /// Permutations of interchangeable values, the identity included.
    pub permutations: usize,
    /// States against which the declarations were verified.
    pub verified_states: u64,
}

/// What is said of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It holds everywhere.
    Holds,
    /// It is broken.
    Violated,
    /// It holds, but could not have failed.
    Vacuous,
    /// It was not checked in this run.
    Unchecked,
}

/// What was found about a promise.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Its name in the specification.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Steps from the start to the state that breaks it; for what must be reachable, to the first.
    pub steps: Option<u32>,
    /// What it promises.
    pub sentence: String,
    /// Why it breaks or means nothing, where that is known.
    pub explanation: Option<String>,
    /// The shortest way to break it.
    pub trace: Option<Trace>,
}

/// What was found about a rule for steps or a temporal property.
#[derive(Debug, Clone, Serialize)]
pub struct PropertyFinding {
    /// Its name in the specification.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Steps before the loop.
    pub prefix_steps: Option<u32>,
    /// Steps in the loop; 0 when the model rests in its last state for ever.
    pub loop_steps: Option<u32>,
    /// What it promises.
    pub sentence: String,
    /// Why it breaks or means nothing, where that is known.
    pub explanation: Option<String>,
    /// Why the loop is fair: one line for each condition.
    pub fairness: Vec<String>,
    /// The behaviour that breaks it.
    pub trace: Option<Trace>,
}

/// An action that no reachable state enables.
#[derive(Debug, Clone, Serialize)]
pub struct Unused {
    /// The action.
    pub action: String,
    /// Why, where that is known.
    pub explanation: Option<String>,
}

/// A behaviour: its states, and where it loops back to.
#[derive(Debug, Clone, Serialize)]
pub struct Trace {
    /// The states with the actions that led to them.
    pub states: Vec<TraceState>,
    /// The place of the state that follows the last one again, for ever.
    pub loop_to: Option<usize>,
}

/// One state of a trace.
#[derive(Debug, Clone, Serialize)]
pub struct TraceState {
    /// The action that led here; none for the initial state.
    pub action: Option<String>,
    /// Who acted.
    pub actor: Option<String>,
    /// Upon whom.
    pub target: Option<String>,
    /// What happened, in words, where the model has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
    /// The variables.
    pub state: Variables,
}

impl TraceState {
    /// A state and the action that led to it.
    pub(crate) fn new(action: Option<&Action>, state: Vec<(&'static str, String)>) -> Self {
        TraceState {
            action: action.map(|action| action.name.clone()),
            actor: action.map(|action| action.actor.clone()),
            target: action.and_then(|action| action.target.clone()),
            story: None,
            state: Variables(state),
        }
    }

    /// The same, told in words.
    #[must_use]
    pub(crate) fn told(mut self, story: Option<String>) -> Self {
        self.story = story;
        self
    }
}

/// Variables with their values as TLA+ would print them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variables(pub Vec<(&'static str, String)>);

impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Trace {
    /// The trace of a path; its first step has no action.
    pub(crate) fn of<W>(walk: &dyn Walk<W>, path: &Path<W>) -> Trace {
        let actions = &walk.facts().actions;
        let state = |(place, (action, word)): (usize, &(Option<ActionId>, W))| {
            let before = place.checked_sub(1).map(|before| &path.steps[before].1).zip(*action);
            let story = before.and_then(|(from, action)| walk.tell(from, action, word));
            let action = action.map(|action| &actions[action as usize]);
            TraceState::new(action, walk.describe(word)).told(story)
        };
        Trace { states: path.steps.iter().enumerate().map(state).collect(), loop_to: path.loop_to }
    }
}

/// A behaviour as packed states, with the actions that led to them.
#[derive(Debug, Clone)]
pub(crate) struct Path<W> {
    pub(crate) steps: Vec<(Option<ActionId>, W)>,
    pub(crate) loop_to: Option<usize>,
}

impl Report {
    /// Whether every promise was checked and holds.
    pub fn all_hold(&self) -> bool {
        let fine = |verdict: Verdict| matches!(verdict, Verdict::Holds | Verdict::Unchecked);
        self.deadlock.is_none()
            && self.invariants.iter().all(|finding| fine(finding.verdict))
            && self.properties.iter().all(|finding| fine(finding.verdict))
            && self.refines.values().all(|finding| fine(finding.verdict))
            && self.reachable.iter().all(|finding| fine(finding.verdict))
    }

    /// The trace of the promise with this name, or of the deadlock.
    pub fn trace(&self, name: &str) -> Option<&Trace> {
        if name == "deadlock" {
            return self.deadlock.as_ref();
        }
        let invariants = self.invariants.iter().map(|f| (&f.name, &f.trace));
        let properties = self.properties.iter().map(|f| (&f.name, &f.trace));
        let refines = self.refines.values().map(|f| (&f.name, &f.trace));
        invariants
            .chain(properties)
            .chain(refines)
            .find(|(known, _)| *known == name)
            .and_then(|(_, trace)| trace.as_ref())
    }
}
