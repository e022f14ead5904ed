//! What is done next about one VolumeSnapshot. First matching rule wins.

use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether our finalizer is on it.
    pub is_protected: bool,
    /// Whether anybody else has a finalizer on it: a hold, or something else.
    pub is_held: bool,
    /// Whether it says that it is ready to use.
    pub is_ready: bool,
    /// Whether it says what is in it.
    pub is_described: bool,
    /// Who takes it.
    pub class: Class,
    /// The volume that it is taken of.
    pub source: Source,
    /// The record of its snapshot.
    pub content: Content,
    /// How far its snapshot is on the disk.
    pub made: Made,
    /// What its status says that it waits for, word for word as it would be said now.
    pub said: Option<Obstacle>,
}

/// Who takes a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Class {
    /// Local storage.
    Local,
    /// It names a class that is not there.
    Missing,
    /// Somebody else, or nobody can tell yet.
    Foreign,
}

/// The volume that a snapshot is taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Source {
    /// It is there.
    Volume,
    /// Its claim has no volume yet.
    NotBound,
    /// Its claim is not there.
    Missing,
    /// It is no claim.
    NotSupported,
}

/// The record of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Content {
    /// The cache shows none, which proves nothing.
    NotSeen,
    /// There is none.
    None,
    /// It is there, and its snapshot with it when it goes.
    There {
        /// Whether it says that its snapshot is ready.
        is_ready: bool,
        /// Whether it is being deleted.
        is_deleting: bool,
    },
    /// It is there, and stays with its snapshot when the VolumeSnapshot is being deleted.
    Kept {
        /// Whether it says that its snapshot is ready.
        is_ready: bool,
    },
    /// The server says something else than the cache.
    Behind,
}

pub use crate::storage::claim::decide::Made;

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Say in its status what keeps it waiting.
    Say(Obstacle),
    /// Put our finalizer on it.
    Protect,
    /// Make its content.
    Record,
    /// See how far its snapshot is on the disk.
    AskDisk,
    /// Begin to take it.
    Take,
    /// Say why it could not be taken.
    ReportFailure,
    /// Let the disk forget a failure that is reported.
    Forget,
    /// Note on it what is in it.
    Describe,
    /// Say on its content that it is ready.
    ReportContent,
    /// Say on it that it is ready.
    ReportReady,
    /// Delete its snapshot on the disk.
    Delete,
    /// See whether its content is gone.
    ReadContent,
    /// Delete its content.
    DeleteContent,
    /// Take the finalizer off its content.
    LetContentGo,
    /// Take our finalizer off.
    LetGo,
}

/// What keeps a snapshot waiting until a person or another object changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Obstacle {
    /// Its class is not there.
    ClassMissing,
    /// Its claim is not there.
    SourceMissing,
    /// It is to be taken of something that is no claim.
    NotSupported,
}

impl Obstacle {
    /// All of them.
    pub const ALL: [Obstacle; 3] =
        [Obstacle::ClassMissing, Obstacle::SourceMissing, Obstacle::NotSupported];
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Why {
    /// Another storage takes it.
    NotOurs,
    /// It is there, whole, and says so.
    Ready,
    /// Its claim has no volume yet.
    SourceNotBound,
    /// It is being taken.
    Taking,
    /// It could not be taken, and is tried again later.
    BackingOff,
    /// It is deleted once it has no holder.
    Held,
    /// The server says something else than the cache.
    CacheBehind,
    /// It is being deleted, and nothing of ours is on it.
    Leaving,
    /// Its status says what it waits for.
    Said(Obstacle),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if facts.is_deleting {
        return leave(facts);
    }
    if facts.is_ready {
        return Decision::Nothing(Why::Ready);
    }
    match facts.class {
        Class::Foreign => return Decision::Nothing(Why::NotOurs),
        Class::Missing => return say(facts, Obstacle::ClassMissing),
        Class::Local => {}
    }
    let (has_content, is_content_ready) = match facts.content {
        Content::NotSeen | Content::None => (false, false),
        Content::There { is_ready, .. } | Content::Kept { is_ready } => (true, is_ready),
        Content::Behind => return Decision::Nothing(Why::CacheBehind),
    };
    if !has_content {
        match facts.source {
            Source::NotSupported => return say(facts, Obstacle::NotSupported),
            Source::Missing => return say(facts, Obstacle::SourceMissing),
            Source::NotBound => return Decision::Nothing(Why::SourceNotBound),
            Source::Volume if !facts.is_protected => return Decision::Protect,
            Source::Volume => return Decision::Record,
        }
    }
    match facts.made {
        Made::NotAsked => Decision::AskDisk,
        Made::Missing => Decision::Take,
        Made::MissingForNow => Decision::Nothing(Why::BackingOff),
        Made::Making => Decision::Nothing(Why::Taking),
        Made::Failed { is_reported: false } => Decision::ReportFailure,
        Made::Failed { is_reported: true } => Decision::Forget,
        Made::Whole if !facts.is_described => Decision::Describe,
        Made::Whole if !is_content_ready => Decision::ReportContent,
        Made::Whole => Decision::ReportReady,
    }
}

/// Says it once; what it waits for is an object, whose change brings the next step.
fn say(facts: &Facts, obstacle: Obstacle) -> Decision {
    match facts.said == Some(obstacle) {
        true => Decision::Nothing(Why::Said(obstacle)),
        false => Decision::Say(obstacle),
    }
}

fn leave(facts: &Facts) -> Decision {
    if !facts.is_protected || facts.class == Class::Foreign {
        return Decision::Nothing(Why::Leaving);
    }
    if facts.is_held {
        return Decision::Nothing(Why::Held);
    }
    if matches!(facts.content, Content::Kept { .. }) {
        return Decision::LetGo;
    }
    match facts.made {
        Made::NotAsked => Decision::AskDisk,
        Made::Making => Decision::Nothing(Why::Taking),
        Made::Whole | Made::Failed { .. } => Decision::Delete,
        Made::Missing | Made::MissingForNow => match facts.content {
            Content::There { is_deleting: false, .. } => Decision::DeleteContent,
            Content::There { is_deleting: true, .. } => Decision::LetContentGo,
            Content::NotSeen => Decision::ReadContent,
            Content::Behind => Decision::Nothing(Why::CacheBehind),
            Content::None | Content::Kept { .. } => Decision::LetGo,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_snapshot_says_already_is_not_said_again() {
        let missing = Facts {
            is_deleting: false,
            is_protected: false,
            is_held: false,
            is_ready: false,
            is_described: false,
            class: Class::Local,
            source: Source::Missing,
            content: Content::NotSeen,
            made: Made::NotAsked,
            said: None,
        };
        assert_eq!(decide(&missing), Decision::Say(Obstacle::SourceMissing));
        let said = Facts { said: Some(Obstacle::SourceMissing), ..missing };
        assert_eq!(decide(&said), Decision::Nothing(Why::Said(Obstacle::SourceMissing)));
        let other = Facts { said: Some(Obstacle::ClassMissing), ..missing };
        assert_eq!(decide(&other), Decision::Say(Obstacle::SourceMissing));
    }
}
