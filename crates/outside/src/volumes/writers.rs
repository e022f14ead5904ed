//! Whoever writes to a volume holds still while a snapshot of it is taken.

use super::error::{Failure, Reason};
use crate::processes::{self, Frozen, Processes};
use std::path::Path;
use std::time::{Duration, Instant};

/// Those who may write to volumes.
pub trait Writers: Send + Sync {
    /// Makes all who may write to this folder hold still, for so long at most.
    fn hold_still(&self, folder: &Path, longest: Duration) -> Result<Box<dyn Still>, Failure>;
}

/// Writers that hold still until this is dropped, or too long.
pub trait Still: Send {
    /// When they go on by themselves; None if nobody had to be kept from anything.
    fn deadline(&self) -> Option<Instant>;

    /// Lets them go on. An error says that they did not hold still for all of the time: then what
    /// was read meanwhile is not what was there at one moment.
    fn let_go(self: Box<Self>) -> Result<(), Failure>;
}

impl Writers for Processes {
    fn hold_still(&self, folder: &Path, longest: Duration) -> Result<Box<dyn Still>, Failure> {
        let frozen = self.freeze_writers(folder, longest).map_err(|error| failure(&error))?;
        Ok(Box::new(frozen))
    }
}

impl Still for Frozen {
    fn deadline(&self) -> Option<Instant> {
        Frozen::deadline(self)
    }

    fn let_go(self: Box<Self>) -> Result<(), Failure> {
        self.thaw().map_err(|error| failure(&error))
    }
}

fn failure(error: &processes::Error) -> Failure {
    let reason = match error {
        processes::Error::FreezeTooLong { .. } | processes::Error::FrozenByAnother { .. } => {
            Reason::FreezeTooLong
        }
        _ => Reason::SnapshotFailed,
    };
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    Failure::new(reason, message)
}
