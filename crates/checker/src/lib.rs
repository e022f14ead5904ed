//! An explicit-state model checker.
pub mod catalog;
mod check;
mod checkpoint;
mod components;
mod edges;
pub mod explore;
mod graph;
mod lasso;
mod liveness;
pub mod model;
mod mutants;
pub mod options;
pub mod reference;
pub mod render;
mod replay;
pub mod report;
pub mod rng;
mod simulate;
mod space;
mod store;
pub mod symmetry;
mod trace;
mod typed;
mod walk;
pub mod word;

pub use catalog::{AnyModel, Entry, Size, SizeError, SizeKey};
pub use check::check;
pub use explore::{CheckError, successors};
pub use model::{
    Action, ActionId, Fairness, Flag, FlagMove, Formula, Invariant, Model, Mutant, Property,
    Reachable, Refinement, StepRule, Steps,
};
pub use mutants::{MutantReport, MutantsReport, check_mutants};
pub use options::{Liveness, Options, Progress};
pub use report::{Report, Verdict};
pub use rng::Rng;
pub use simulate::{Violation, Walked, Walks, simulate};
pub use word::{Coder, Word};
