//! Faults on purpose, around every effect: for simulation and kill tests, and for nothing else.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// The process is as good as dead: nothing more is done by this runner.
    Crash,
    /// The request never arrives, and nobody says so. Before an effect only.
    LoseRequest,
    /// The effect happens, and its reply never arrives.
    LoseReply,
}

/// One place in time at which something may go wrong.
#[derive(Debug, Clone)]
pub struct Point<'a> {
    /// Which effect this is, counted over all controllers that share a seam, from 1.
    pub number: u64,
    /// Whose effect.
    pub controller: &'a str,
    /// About what.
    pub subject: &'a str,
    /// What is done, in words: `create ConfigMap a/b at the hub`.
    pub action: &'a str,
}

/// Says what goes wrong before and after each effect.
pub trait Faults: Send + Sync {
    /// Just before an effect.
    fn before(&self, _point: &Point<'_>) -> Fault {
        Fault::None
    }

    /// Just after it, before anybody knows how it went.
    fn after(&self, _point: &Point<'_>) -> Fault {
        Fault::None
    }
}

/// The numbered seam between deciding and doing. By default there is nothing in it.
#[derive(Clone, Default)]
pub struct Seam(Option<Arc<Inner>>);

struct Inner {
    faults: Box<dyn Faults>,
    numbered: AtomicU64,
}

impl fmt::Debug for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seam").field(&self.0.is_some()).finish()
    }
}

impl Seam {
    /// A seam with faults in it. Clones share the count.
    pub fn with(faults: impl Faults + 'static) -> Seam {
        Seam(Some(Arc::new(Inner { faults: Box::new(faults), numbered: AtomicU64::new(0) })))
    }

    /// How many effects there were.
    pub fn effects(&self) -> u64 {
        self.0.as_ref().map_or(0, |inner| inner.numbered.load(Ordering::SeqCst))
    }

    /// Passes an effect that is about to be done; its number, for [`Seam::after`].
    pub(crate) fn before(&self, controller: &str, subject: &str, action: &str) -> (u64, Fault) {
        let Some(inner) = &self.0 else { return (0, Fault::None) };
        let number = inner.numbered.fetch_add(1, Ordering::SeqCst) + 1;
        (number, inner.faults.before(&Point { number, controller, subject, action }))
    }

    pub(crate) fn after(
        &self,
        number: u64,
        controller: &str,
        subject: &str,
        action: &str,
    ) -> Fault {
        let Some(inner) = &self.0 else { return Fault::None };
        inner.faults.after(&Point { number, controller, subject, action })
    }
}
