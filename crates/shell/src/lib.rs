//! Runs controllers on any Kubernetes API: the only client of one in this project.
//!
//! Everything that waits, fails or surprises lives here, so that controllers can be pure.
//!
//! * [`Server`]: one API server, with caches that all controllers share.
//! * [`Shell`]: runs controllers; each is a [`Runner`].
//! * [`step_once`]: one step of one controller, without any task in the background.
//! * [`foresee`]: what that step would do, without doing it; [`Rehearsal`]: and all that follow it.
//! * [`Driver`]: what a controller does outside of the API.
//! * [`faults`]: faults on purpose around every effect, for simulation and kill tests.
//! * [`leader`]: which of several processes acts.
//! * [`Recorder`]: writes down what each step decided, on which facts, and what came of it; [`Lines`] reads it.
//!
//! A step runs only after all caches that it looks at were filled once: an empty cache is not an
//! empty fleet. What a cache has is kept while a connection is down: absence is not deletion.

mod backoff;
mod boxed;
mod cache;
mod events;
pub mod faults;
mod feed;
mod foresee;
pub mod leader;
mod live_reads;
mod metrics;
mod once;
mod outside;
mod poll_backoff;
mod record;
mod rehearse;
mod runner;
mod server;
mod shell;
mod stop;
mod view;
mod work_queue;
mod write;

pub use cache::{Cache, Changes};
pub use foresee::foresee;
pub use live_reads::read_live;
pub use metrics::Metrics;
pub use once::{Clock, Ended, MOST_ROUNDS, News, Wiring, step_once};
pub use outside::{Driver, NoDriver};
pub use record::{Lines, LogSettings, Read, Recorder};
pub use rehearse::{Rehearsal, Rehearsed};
pub use runner::Settings;
pub use server::{ConnectError, Server};
pub use shell::{Runner, Shell, WiringError};
pub use stop::{Stop, Stopper};
pub use view::{Caches, Places};
pub use write::{Outcome, perform};
