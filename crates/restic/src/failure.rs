//! Why something failed: one word for programs, one sentence for people.

use std::fmt;

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Failure {
    /// One word.
    pub reason: Reason,
    /// What, where, and what to do next. No secret is ever in it.
    pub message: String,
}

impl Failure {
    /// A failure with its sentence.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Failure { reason, message: message.into() }
    }
}

/// Why something failed, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A key of the Secret is missing, or its value makes no sense.
    SecretIncomplete,
    /// The repository is of a sort that is not supported, or its address makes no sense.
    RepositoryNotSupported,
    /// There is no repository.
    RepositoryMissing,
    /// The repository asks for another password.
    WrongPassword,
    /// Somebody else has the repository.
    RepositoryLocked,
    /// The repository cannot be believed.
    RepositoryDamaged,
    /// The repository does not answer, or does not let us in.
    RepositoryUnreachable,
    /// No snapshot fits what was asked for.
    NoEligibleSnapshot,
    /// What was to be read is not there.
    SourceMissing,
    /// The source cannot be read, in part or whole.
    SourceUnreadable,
    /// The source, or the snapshot, has nothing in it.
    SourceEmpty,
    /// There is no space, in the repository or in the volume.
    TargetFull,
    /// The volume may hold less than is to go in.
    SizeMismatch,
    /// Whoever asked for it wants it no more.
    Cancelled,
    /// Anything else, in the sentence.
    MoverFailed,
}

impl Reason {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Reason::SecretIncomplete => "SecretIncomplete",
            Reason::RepositoryNotSupported => "RepositoryNotSupported",
            Reason::RepositoryMissing => "RepositoryMissing",
            Reason::WrongPassword => "WrongPassword",
            Reason::RepositoryLocked => "RepositoryLocked",
            Reason::RepositoryDamaged => "RepositoryDamaged",
            Reason::RepositoryUnreachable => "RepositoryUnreachable",
            Reason::NoEligibleSnapshot => "NoEligibleSnapshot",
            Reason::SourceMissing => "SourceMissing",
            Reason::SourceUnreadable => "SourceUnreadable",
            Reason::SourceEmpty => "SourceEmpty",
            Reason::TargetFull => "TargetFull",
            Reason::SizeMismatch => "SizeMismatch",
            Reason::Cancelled => "Cancelled",
            Reason::MoverFailed => "MoverFailed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
