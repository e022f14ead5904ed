//! The words that the systems and the shell share.
//!
//! A controller is pure: it is shown what a cache shows, and answers with at most one effect. The
//! shell runs it on a Kubernetes API; the checker runs the rules inside of it in every order.
//!
//! * [`Room`]: observe, decide, act. [`Watcher`]: what it watches, and what a change is about.
//!   [`Controller`]: the one step that the shell runs; every room is one.
//! * [`View`]: what a step may see. [`Selector`]: what of a kind the server shows at all. [`LiveReads`]: what it asked to see afresh.
//! * [`Right`]: what a controller may do, which its role is written from.
//! * [`Step`]: rest, wait, look, or act; each with a reason that a person can read. [`Record`]: what is written down of one.
//! * [`Objects`]: a cache of one kind as plain data. [`Queue`]: whose turn it is, and when. [`Bucket`]: who may call now.
//!   [`conditions`]: what is true of an object. [`metadata`]: its names, marks and finalizers. [`nearest`]: the names that a person may have meant.

mod bucket;
mod cache;
mod controller;
mod kind;
mod nearest;
mod object;
mod queue;
mod read_back;
mod record;
mod right;
mod room;
mod selection;
mod selector;
mod step;
mod view;
mod watch;

pub mod conditions;
pub mod metadata;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use bucket::{Bucket, CallRate, Token};
pub use cache::Objects;
pub use controller::{Controller, Subject, Watcher};
pub use kind::{Address, GroupVersion, Kind, Name, Place};
pub use nearest::nearest;
pub use object::{Object, Seen, read_part};
pub use queue::{Limits, Queue};
pub use read_back::{Word, answered, word, word_or_none};
pub use record::{Begins, Decided, End, Line, Record, RecordedEffect};
pub use right::{Right, Verb};
pub use room::{Act, Altered, AlteredStep, AlteredSubjects, Bent, Decide, Observe, Observed, Room};
pub use selection::{Narrowed, Selections};
pub use selector::Selector;
pub use step::{
    Action, DryRun, Effect, Event, Importance, LiveReads, MANAGER, MOST_LIVE_READS, Nothing,
    Outside, Part, Read, Refusal, Step, Write,
};
pub use view::{Index, View};
pub use watch::Watch;

/// The models of the pieces that every program runs on, by name.
#[cfg(any(test, feature = "model"))]
pub fn models() -> Vec<interlock_checker::Entry> {
    vec![queue::model::ENTRY, bucket::model::ENTRY]
}
