//! When the syncer of a cluster gives its next heartbeat. First matching rule wins.

use serde::Serialize;
use std::time::Duration;

/// How often it counts. The hub takes a cluster for silent after four times as long.
pub const PERIOD: Duration = Duration::from_secs(10);

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Whether the cluster that has the name of ours is ours: by its uid.
    pub is_ours: bool,
    /// Whether the cluster knows who serves it.
    pub is_syncer_known: bool,
    /// Whether the cluster knows which storage classes it has.
    pub are_classes_known: bool,
    /// How long ago we counted, by our own clock; None: never, or in the future, which means that
    /// the clock was set back.
    pub counted_ago: Option<Duration>,
    /// How often we count.
    pub period: Duration,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Count, and tell this.
    Count(Reported),
    /// Count when this has passed.
    CountIn(Duration),
}

/// What a heartbeat tells of its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Reported {
    /// Who serves it.
    Syncer,
    /// Who serves it, and which storage classes it has. These are written only when they changed:
    /// how much room is free in each is in the same list, and is not ours to say.
    SyncerAndClasses,
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Why {
    /// The cluster is another one: its heartbeats are not ours to give.
    Replaced,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if !facts.is_ours {
        return Decision::Nothing(Why::Replaced);
    }
    let is_introduced = facts.is_syncer_known && facts.are_classes_known;
    match facts.counted_ago {
        Some(ago) if is_introduced && ago < facts.period => Decision::CountIn(facts.period - ago),
        Some(_) | None if facts.are_classes_known => Decision::Count(Reported::Syncer),
        Some(_) | None => Decision::Count(Reported::SyncerAndClasses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_classes_are_written_only_when_they_changed() {
        let (lately, long_ago) = (Some(Duration::from_secs(4)), Some(PERIOD));
        for (is_syncer_known, are_classes_known, counted_ago, wanted) in [
            (true, true, lately, Decision::CountIn(Duration::from_secs(6))),
            (true, true, long_ago, Decision::Count(Reported::Syncer)),
            (true, true, None, Decision::Count(Reported::Syncer)),
            (false, true, lately, Decision::Count(Reported::Syncer)),
            (true, false, lately, Decision::Count(Reported::SyncerAndClasses)),
            (false, false, None, Decision::Count(Reported::SyncerAndClasses)),
        ] {
            let facts = Facts {
                is_ours: true,
                is_syncer_known,
                are_classes_known,
                counted_ago,
                period: PERIOD,
            };
            assert_eq!(decide(&facts), wanted, "{facts:?}");
            let other = Facts { is_ours: false, ..facts };
            assert_eq!(decide(&other), Decision::Nothing(Why::Replaced), "{other:?}");
        }
    }
}
