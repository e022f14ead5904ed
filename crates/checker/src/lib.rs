//! An explicit-state model checker.
pub mod catalog;
pub mod explore;
pub mod model;
pub mod reference;
pub mod rng;
pub mod word;

pub use catalog::{AnyModel, Entry, Size, SizeError, SizeKey};
pub use model::{
    Action, ActionId, Fairness, Flag, FlagMove, Formula, Invariant, Model, Mutant, Property,
    Refinement, StepRule, Steps,
};
pub use rng::Rng;
pub use word::{Coder, Word};
