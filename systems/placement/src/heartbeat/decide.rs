//! When the syncer of a cluster gives its next sign of life. First matching rule wins.

use std::time::Duration;

/// How often it counts. The hub takes a cluster for silent after four times as long.
pub const PERIOD: Duration = Duration::from_secs(10);

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Whether our cluster is in the cache: by its uid, since one of its name is another.
    pub cluster: Cluster,
    /// Whether the cluster knows who serves it, and which storage classes it has.
    pub is_introduced: bool,
    /// How long ago we counted, by our own clock; None: never, or in the future, which means that
    /// the clock was set back.
    pub counted_ago: Option<Duration>,
    /// How often we count.
    pub period: Duration,
}

/// The cluster that we serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cluster {
    /// Not in the cache: that proves nothing.
    Unknown,
    /// Another one has its name.
    Replaced,
    /// It is there.
    Ours,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Count.
    Count,
    /// Count when this has passed.
    CountIn(Duration),
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The cluster is not in the cache.
    NotInTheCache,
    /// The cluster is another one: its signs of life are not ours to give.
    Replaced,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    match facts.cluster {
        Cluster::Unknown => return Decision::Nothing(Why::NotInTheCache),
        Cluster::Replaced => return Decision::Nothing(Why::Replaced),
        Cluster::Ours => {}
    }
    match facts.counted_ago {
        Some(ago) if facts.is_introduced && ago < facts.period => {
            Decision::CountIn(facts.period - ago)
        }
        Some(_) | None => Decision::Count,
    }
}
