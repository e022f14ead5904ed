//! Why a check could not be carried out.

use std::path::PathBuf;
use thiserror::Error;

/// Why a check could not be carried out.
#[derive(Debug, Error)]
pub enum CheckError {
    /// A declared flag is not free.
    #[error("`{flag}` is declared a free flag, but {why}; the reduction is refused")]
    FalseFlag {
        /// The flag.
        flag: String,
        /// What gives it away.
        why: String,
    },
    /// Values declared interchangeable are not.
    #[error("permutation {permutation} is declared a symmetry, but {why}; it is refused")]
    FalseSymmetry {
        /// Which permutation.
        permutation: usize,
        /// What gives it away.
        why: String,
    },
    /// Two things that exclude each other were asked for.
    #[error("{0}")]
    Conflict(String),
    /// A name that the model does not have.
    #[error("{model} promises nothing called `{name}`; it has: {known}")]
    UnknownPromise {
        /// The model.
        model: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A checkpoint cannot be used or written.
    #[error("cannot use the checkpoint {path}: {why}")]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The counterexample found does not replay: a defect of the checker itself.
    #[error("the counterexample for {name} does not replay: {why}; please report this")]
    Replay {
        /// The promise.
        name: String,
        /// What went wrong.
        why: String,
    },
}
