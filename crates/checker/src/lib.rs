//! An explicit-state model checker: exact, parallel, with fairness, refinement, free flags, symmetry,
//! random walks and mutants.
//!
//! A model says which states it begins in, which steps lead out of a state, and what it promises.
//! [`check`] explores every state it can reach and reports on each promise; [`simulate`] walks at
//! random where there are too many states; [`check_mutants`] breaks the rules on purpose and sees
//! whether the promises notice.
//!
//! ```
//! use interlock_checker::{
//!     Action, Coder, Fairness, Formula, Invariant, Model, Options, Property, Steps, Verdict, check,
//! };
//!
//! /// Two doors of an air lock. The rule: a door opens only while the other is shut.
//! struct AirLock {
//!     looks_at_the_other_door: bool,
//! }
//!
//! #[derive(Debug, Clone, Default, PartialEq)]
//! struct Doors {
//!     open: [bool; 2],
//! }
//!
//! impl Model for AirLock {
//!     type State = Doors;
//!     type Packed = u64;
//!
//!     fn size(&self) -> String {
//!         "doors=2".to_owned()
//!     }
//!     fn code(&self, state: &mut Doors, coder: &mut Coder) {
//!         state.open.iter_mut().for_each(|door| coder.bool(door));
//!     }
//!     fn initial(&self) -> Vec<Doors> {
//!         vec![Doors::default()]
//!     }
//!     fn actions(&self) -> Vec<Action> {
//!         ["Open(1)", "Open(2)", "Shut(1)", "Shut(2)"].map(|name| Action::new(name, "crew")).into()
//!     }
//!     fn next(&self, state: &Doors, steps: &mut Steps<Doors>) {
//!         for door in 0..2 {
//!             let mut next = state.clone();
//!             next.open[door] = !state.open[door];
//!             let may_open = !self.looks_at_the_other_door || !state.open[1 - door];
//!             if state.open[door] {
//!                 steps.step(2 + door as u16, next);
//!             } else if may_open {
//!                 steps.step(door as u16, next);
//!             }
//!         }
//!     }
//!     fn describe(&self, state: &Doors) -> Vec<(&'static str, String)> {
//!         vec![("open", format!("<<{}, {}>>", state.open[0], state.open[1]).to_uppercase())]
//!     }
//!     fn invariants(&self) -> Vec<Invariant<Doors>> {
//!         vec![Invariant::new("Airtight", "one door at least is shut", |s: &Doors| {
//!             s.open != [true, true]
//!         })]
//!     }
//!     fn properties(&self) -> Vec<Property<Doors>> {
//!         let is_shut = |s: &Doors| !s.open[0];
//!         vec![Property::new(
//!             "Shuts",
//!             "an open door is shut in the end",
//!             Formula::leads_to(|s: &Doors| s.open[0], is_shut),
//!         )]
//!     }
//!     fn fairness(&self) -> Vec<Fairness> {
//!         vec![Fairness::weak("Shut(1)", [2])]
//!     }
//! }
//!
//! let report = check("air-lock", &AirLock { looks_at_the_other_door: true }, &Options::default())?;
//! assert_eq!((report.distinct_states, report.generated_states, report.depth), (3, 5, 2));
//! assert!(report.all_hold());
//!
//! let report = check("mutant", &AirLock { looks_at_the_other_door: false }, &Options::default())?;
//! assert_eq!(report.invariants[0].verdict, Verdict::Violated);
//! assert_eq!(report.invariants[0].steps, Some(2));
//! # Ok::<(), interlock_checker::CheckError>(())
//! ```

pub mod catalog;
mod check;
mod checkpoint;
mod components;
mod edges;
pub mod error;
pub mod explore;
mod graph;
mod lasso;
mod liveness;
pub mod model;
mod mutants;
pub mod options;
mod question;
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
mod workers;

pub use catalog::{AnyModel, Entry, Size, SizeError, SizeKey};
pub use check::{Engine, check};
pub use error::CheckError;
pub use explore::successors;
pub use model::{
    Action, ActionId, Covers, Fairness, Flag, FlagMove, Formula, Invariant, Model, Mutant,
    Property, Reachable, Refinement, StepRule, Steps, reaches, reaches_between,
};
pub use mutants::{MutantReport, MutantsReport, check_mutants};
pub use options::{Liveness, Options, Progress};
pub use report::{Report, Verdict};
pub use rng::Rng;
pub use simulate::{OnWalks, Violation, Walked, Walks, simulate};
pub use word::{Coder, Word};
