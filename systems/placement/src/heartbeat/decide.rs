//! When the syncer of a cluster gives its next heartbeat. First matching rule wins.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often it counts. The hub takes a cluster for silent after four times as long.
pub const PERIOD: Duration = Duration::from_secs(10);
/// How often the cluster is asked who issues its tokens.
const ISSUER_EVERY: Duration = Duration::from_secs(3600);
/// The same while nobody knows.
const ISSUER_EVERY_AT_FIRST: Duration = Duration::from_secs(60);

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether the cluster that has the name of ours is ours: by its uid.
    pub is_ours: bool,
    /// Whether the cluster knows who serves it.
    pub is_syncer_known: bool,
    /// Whether the cluster knows which storage classes it has.
    pub are_classes_known: bool,
    /// Who issues the tokens of the cluster, as the cluster says.
    pub issuer: Issuer,
    /// Whether the hub knows of an issuer.
    pub is_issuer_published: bool,
    /// How often we counted.
    pub sequence: i64,
    /// How long ago we counted, by our own clock; None: never, or in the future, which means that
    /// the clock was set back.
    pub counted_ago: Option<Duration>,
    /// How often we count.
    pub period: Duration,
}

/// Who issues the tokens of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Issuer {
    /// The cluster was not asked.
    NotAsked,
    /// It was asked, and did not say: what the hub knows stays as it is.
    NotSaid,
    /// The one that the hub knows.
    Known,
    /// Another one.
    New,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Ask the cluster who issues its tokens.
    AskIssuer,
    /// Count, and tell this.
    Count(Reported),
    /// Count when this has passed.
    CountIn(Duration),
}

/// What a heartbeat tells of its cluster, beside who serves it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Reported {
    /// Which storage classes it has. These are written only when they changed: how much room is free
    /// in each is in the same list, and is not ours to say.
    pub are_classes_new: bool,
    /// Who issues its tokens.
    pub is_issuer_new: bool,
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
    if let Some(ago) = facts.counted_ago.filter(|ago| is_introduced && *ago < facts.period) {
        return Decision::CountIn(facts.period - ago);
    }
    if facts.issuer == Issuer::NotAsked && is_issuer_due(facts) {
        return Decision::AskIssuer;
    }
    Decision::Count(Reported {
        are_classes_new: !facts.are_classes_known,
        is_issuer_new: facts.issuer == Issuer::New,
    })
}

/// Whether the cluster is asked with this heartbeat: with the first one of a syncer, and with one in
/// so many after that. The count says which, so that nothing has to be kept in mind.
fn is_issuer_due(facts: &Facts) -> bool {
    let every = if facts.is_issuer_published { ISSUER_EVERY } else { ISSUER_EVERY_AT_FIRST };
    let beats = every.as_millis() / facts.period.as_millis().max(1);
    let beats = i64::try_from(beats).unwrap_or(i64::MAX).max(1);
    !facts.is_syncer_known || facts.sequence % beats == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Facts = Facts {
        is_ours: true,
        is_syncer_known: true,
        are_classes_known: true,
        issuer: Issuer::NotAsked,
        is_issuer_published: true,
        sequence: 1,
        counted_ago: None,
        period: PERIOD,
    };

    fn told(are_classes_new: bool, is_issuer_new: bool) -> Decision {
        Decision::Count(Reported { are_classes_new, is_issuer_new })
    }

    #[test]
    fn storage_classes_are_written_only_when_they_changed() {
        let (lately, long_ago) = (Some(Duration::from_secs(4)), Some(PERIOD));
        for (is_syncer_known, are_classes_known, counted_ago, wanted) in [
            (true, true, lately, Decision::CountIn(Duration::from_secs(6))),
            (true, true, long_ago, told(false, false)),
            (true, true, None, told(false, false)),
            (false, true, lately, told(false, false)),
            (true, false, lately, told(true, false)),
            (false, false, None, told(true, false)),
        ] {
            let issuer = Issuer::Known;
            let facts = Facts { is_syncer_known, are_classes_known, counted_ago, issuer, ..DUE };
            assert_eq!(decide(&facts), wanted, "{facts:?}");
            let other = Facts { is_ours: false, ..facts };
            assert_eq!(decide(&other), Decision::Nothing(Why::Replaced), "{other:?}");
        }
    }

    #[test]
    fn the_issuer_is_asked_for_at_the_start_and_once_an_hour() {
        let asks = |facts: Facts| decide(&facts) == Decision::AskIssuer;
        assert!(asks(Facts { is_syncer_known: false, ..DUE }), "a syncer that is new");
        for (sequence, is_issuer_published, wanted) in [
            (1, true, false),
            (6, true, false),
            (360, true, true),
            (361, true, false),
            (720, true, true),
            (1, false, false),
            (6, false, true),
            (7, false, false),
            (12, false, true),
        ] {
            let facts = Facts { sequence, is_issuer_published, ..DUE };
            assert_eq!(asks(facts), wanted, "{facts:?}");
        }
        let lately = Some(Duration::from_secs(4));
        assert!(
            !asks(Facts { sequence: 360, counted_ago: lately, ..DUE }),
            "with a heartbeat only"
        );
        let hourly = Duration::from_secs(7200);
        assert!(asks(Facts { period: hourly, ..DUE }), "with each, where these are rare");
        assert!(asks(Facts { period: Duration::ZERO, sequence: 0, ..DUE }));
    }

    #[test]
    fn a_cluster_that_does_not_say_is_heard_all_the_same() {
        for (issuer, is_issuer_new) in
            [(Issuer::NotSaid, false), (Issuer::Known, false), (Issuer::New, true)]
        {
            let facts = Facts { issuer, is_syncer_known: false, sequence: 360, ..DUE };
            assert_eq!(decide(&facts), told(false, is_issuer_new), "{facts:?}");
        }
    }
}
