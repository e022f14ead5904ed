//! What is written next about a cluster. First matching rule wins.

use interlock_api::placement::CopyState;
use serde::{Deserialize, Serialize};

/// A cluster that has sent no heartbeat for this long is not reachable. The syncer counts every 10 s, so
/// three counts may get lost.
pub const SILENCE_SECONDS: i64 = 40;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
    /// Its last heartbeat.
    pub heartbeat: Heartbeat,
    /// How long after it the cluster is taken for unreachable.
    pub silence_seconds: i64,
    /// Whether its syncer says that what runs the workloads does not answer.
    pub is_runtime_down: bool,
    /// What its conditions say.
    pub said: Said,
    /// The copies here of the grant that a person named in `interlock.dev/forget-copies`; none, if
    /// it has none or there is no such grant. None: nobody named one.
    pub forget: Option<Vec<CopyState>>,
    /// The grants that have to do with it, as the cache shows them.
    pub grants: Grants,
    /// Whether no grant has to do with it, by a live read.
    pub is_surely_empty: Option<bool>,
    /// Whether somebody needs it empty; None: nobody.
    pub drain: Option<Drain>,
    /// Whether it says that it is empty for somebody who does not need that any more.
    pub is_answered_in_vain: bool,
}

/// What is known of a cluster that somebody needs empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Drain {
    /// Whether it says to everybody who asked that it is empty.
    pub is_answered: bool,
    /// Whether a list of all grants, read after the cluster itself, shows none that keeps it; None: not
    /// read. A list that is no answer, since the cluster has changed, counts as one that shows some.
    pub is_surely_empty: Option<bool>,
}

/// How many grants have to do with a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Grants {
    /// Those that it owns.
    pub owned: usize,
    /// Those that have data on it.
    pub copies: usize,
    /// Those that it is to own.
    pub to_come: usize,
    /// Those between two owners whose volumes stayed in place on it.
    pub in_place: usize,
}

/// What the conditions of a cluster say, word for word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Said {
    /// None: something else, or nothing.
    pub reachable: Option<Reachable>,
    /// None: something else, or nothing.
    pub ready: Option<Ready>,
    /// Whether they say that something is left on it, whatever that is.
    pub is_left: bool,
    /// Whether they say that it is empty for those who asked for it; None: nothing.
    pub is_drained: Option<bool>,
}

/// What the conditions of a cluster are to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Conditions {
    /// Whether its syncer sends heartbeats.
    pub reachable: Reachable,
    /// Whether it takes namespaces.
    pub ready: Ready,
    /// What is left on a cluster that is being deleted; None: this condition goes.
    pub left: Option<Left>,
    /// Whether it is empty for those who asked for it; None: nobody did, and this condition goes.
    pub drained: Option<Drained>,
}

/// Whether a cluster is empty for those who asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Drained {
    /// It is, and it says so to each of them.
    Empty,
    /// It is not known to be, and nobody new learns that it is.
    NotYet(Grants),
}

/// Whether the syncer of a cluster sends heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Reachable {
    /// It never was.
    NeverHeard,
    /// It is.
    Heard,
    /// It was.
    Silent,
}

/// Whether a cluster takes namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Ready {
    /// It does.
    Ready,
    /// What runs the workloads does not answer.
    RuntimeNotReady,
    /// Its syncer sends no heartbeat.
    NotReachable,
}

/// What keeps a cluster that is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Left {
    /// How many grants it owns.
    pub owned: usize,
    /// How many grants have data on it.
    pub copies: usize,
}

/// The last heartbeat of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Heartbeat {
    /// There never was one.
    Never,
    /// There is one that nobody noted.
    New,
    /// It was noted this long ago.
    Noted {
        /// By the clock of the hub.
        seconds_ago: i64,
    },
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Put our finalizer on it.
    PutFinalizer,
    /// Note the heartbeat, and say in its conditions what is true.
    Stamp(Conditions),
    /// Say in its conditions what is true.
    Tell(Conditions),
    /// Drop the copies here that are of these states from the grant that a person named.
    ForgetCopies(Vec<CopyState>),
    /// Refuse to drop the copy of an owner, and remove the annotation.
    RefuseToForget,
    /// The copy that was to be forgotten is: remove the annotation.
    TakeAnnotationOff,
    /// See whether any grant is left.
    ReadGrants,
    /// See whether any grant keeps it from being empty: the cluster first, then the grants.
    ReadClusterAndGrants,
    /// Nothing is left: let it go.
    TakeFinalizerOff,
    /// Nothing, until it has been silent for too long.
    WaitForSilence {
        /// How long until then.
        seconds: i64,
    },
    /// Nothing, and why.
    Nothing(Why),
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Why {
    /// It is silent, and its conditions say so.
    Silent,
    /// It is being deleted, and grants are left that the cache does not show.
    CacheBehind,
    /// It is being deleted, and is silent, and grants are left.
    GrantsLeft,
    /// It is on its way out.
    Gone,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    // Nothing can be granted to it before this: it is not Ready until the conditions say so.
    if !facts.is_deleting && !facts.has_finalizer {
        return Decision::PutFinalizer;
    }
    if facts.heartbeat == Heartbeat::New {
        return Decision::Stamp(conditions(facts));
    }
    if let Some(copies) = &facts.forget {
        return forget(copies);
    }
    let Grants { owned, copies, to_come, .. } = facts.grants;
    if facts.is_deleting && owned + copies + to_come == 0 {
        return leave(facts);
    }
    if facts.drain.is_some_and(|drain| is_to_be_read(facts, drain)) {
        return Decision::ReadClusterAndGrants;
    }
    let conditions = conditions(facts);
    let is_answered_now = conditions.drained == Some(Drained::Empty)
        && facts.drain.is_some_and(|drain| !drain.is_answered);
    if !is_said(&facts.said, &conditions) || is_answered_now || facts.is_answered_in_vain {
        return Decision::Tell(conditions);
    }
    match facts.heartbeat {
        Heartbeat::Noted { seconds_ago } if seconds_ago < facts.silence_seconds => {
            Decision::WaitForSilence { seconds: (facts.silence_seconds - seconds_ago).max(1) }
        }
        _ if facts.is_deleting => Decision::Nothing(Why::GrantsLeft),
        Heartbeat::Never | Heartbeat::New | Heartbeat::Noted { .. } => {
            Decision::Nothing(Why::Silent)
        }
    }
}

/// What the conditions of a cluster are to say.
pub fn conditions(facts: &Facts) -> Conditions {
    let reachable = match facts.heartbeat {
        Heartbeat::Never => Reachable::NeverHeard,
        Heartbeat::New => Reachable::Heard,
        Heartbeat::Noted { seconds_ago } if seconds_ago < facts.silence_seconds => Reachable::Heard,
        Heartbeat::Noted { .. } => Reachable::Silent,
    };
    let ready = match reachable {
        Reachable::Heard if facts.is_runtime_down => Ready::RuntimeNotReady,
        Reachable::Heard => Ready::Ready,
        Reachable::NeverHeard | Reachable::Silent => Ready::NotReachable,
    };
    let Grants { owned, copies, .. } = facts.grants;
    let is_left = facts.is_deleting && owned + copies > 0;
    let left = is_left.then_some(Left { owned, copies });
    Conditions { reachable, ready, left, drained: facts.drain.map(|drain| drained(facts, drain)) }
}

/// Whoever learned that it is empty keeps it so: nothing is granted to it while they ask.
fn drained(facts: &Facts, drain: Drain) -> Drained {
    match drain.is_answered || drain.is_surely_empty == Some(true) {
        true => Drained::Empty,
        false => Drained::NotYet(facts.grants),
    }
}

/// A cache that shows grants is proof enough that it is not empty, and one that shows none is no proof.
fn is_to_be_read(facts: &Facts, drain: Drain) -> bool {
    let Grants { owned, to_come, in_place, .. } = facts.grants;
    !drain.is_answered && drain.is_surely_empty.is_none() && owned + to_come + in_place == 0
}

/// What is left changes with every grant that leaves: it is reported once, and then anew with each sign
/// of life, as is that nothing is left any more. So it is with what a drain waits for.
fn is_said(said: &Said, conditions: &Conditions) -> bool {
    said.reachable == Some(conditions.reachable)
        && said.ready == Some(conditions.ready)
        && (said.is_left || conditions.left.is_none())
        && said.is_drained == conditions.drained.map(|drained| drained == Drained::Empty)
}

/// A person gives up what a cluster has of a namespace, but never the copy of an owner.
fn forget(copies: &[CopyState]) -> Decision {
    let mut given_up: Vec<CopyState> = copies.to_vec();
    given_up.retain(|state| is_forgettable(*state));
    match (given_up.is_empty(), copies.is_empty()) {
        (false, _) => Decision::ForgetCopies(given_up),
        (true, false) => Decision::RefuseToForget,
        (true, true) => Decision::TakeAnnotationOff,
    }
}

/// The copy of an owner is never given up.
pub(crate) fn is_forgettable(state: CopyState) -> bool {
    match state {
        CopyState::Live => false,
        CopyState::Superseded | CopyState::Unclosed | CopyState::Diverged => true,
    }
}

/// Letting it go is final, so it does not rest on a cache.
fn leave(facts: &Facts) -> Decision {
    match (facts.has_finalizer, facts.is_surely_empty) {
        (false, _) => Decision::Nothing(Why::Gone),
        (true, None) => Decision::ReadGrants,
        (true, Some(true)) => Decision::TakeFinalizerOff,
        (true, Some(false)) => Decision::Nothing(Why::CacheBehind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Grants = Grants { owned: 0, copies: 0, to_come: 0, in_place: 0 };

    fn facts(heartbeat: Heartbeat) -> Facts {
        let mut facts = Facts {
            is_deleting: false,
            has_finalizer: true,
            heartbeat,
            silence_seconds: SILENCE_SECONDS,
            is_runtime_down: false,
            said: Said { reachable: None, ready: None, is_left: false, is_drained: None },
            forget: None,
            grants: NONE,
            is_surely_empty: None,
            drain: None,
            is_answered_in_vain: false,
        };
        let Conditions { reachable, ready, .. } = conditions(&facts);
        facts.said.reachable = Some(reachable);
        facts.said.ready = Some(ready);
        facts
    }

    fn noted(seconds_ago: i64) -> Heartbeat {
        Heartbeat::Noted { seconds_ago }
    }

    #[test]
    fn a_cluster_takes_namespaces_while_it_sends_heartbeats_and_its_runtime_answers() {
        use Reachable::{Heard, NeverHeard, Silent};
        for (heartbeat, is_runtime_down, reachable, ready) in [
            (Heartbeat::Never, false, NeverHeard, Ready::NotReachable),
            (Heartbeat::New, false, Heard, Ready::Ready),
            (Heartbeat::New, true, Heard, Ready::RuntimeNotReady),
            (noted(39), false, Heard, Ready::Ready),
            (noted(40), false, Silent, Ready::NotReachable),
            (noted(40), true, Silent, Ready::NotReachable),
        ] {
            let facts = Facts { is_runtime_down, ..facts(heartbeat) };
            let wanted = Conditions { reachable, ready, left: None, drained: None };
            assert_eq!(conditions(&facts), wanted);
        }
    }

    #[test]
    fn conditions_are_written_when_they_say_something_else() {
        assert_eq!(decide(&facts(noted(10))), Decision::WaitForSilence { seconds: 30 });
        assert_eq!(decide(&facts(noted(40))), Decision::Nothing(Why::Silent));
        let mut stale = facts(noted(40));
        stale.said.reachable = Some(Reachable::Heard);
        assert_eq!(decide(&stale), Decision::Tell(conditions(&stale)));
        let mut foreign = facts(noted(40));
        foreign.said.ready = None;
        assert_eq!(decide(&foreign), Decision::Tell(conditions(&foreign)));
        // What is said of grants that are not there any more is not worth a write of its own.
        let mut emptied = facts(noted(10));
        emptied.said.is_left = true;
        assert_eq!(decide(&emptied), Decision::WaitForSilence { seconds: 30 });
    }

    #[test]
    fn what_is_left_is_reported_of_a_cluster_that_is_being_deleted_and_of_no_other() {
        let grants = Grants { owned: 2, copies: 1, ..NONE };
        let stays = Facts { grants, ..facts(noted(10)) };
        assert_eq!(conditions(&stays).left, None);
        let mut goes = Facts { is_deleting: true, ..stays };
        let left = Some(Left { owned: 2, copies: 1 });
        assert_eq!(decide(&goes), Decision::Tell(Conditions { left, ..conditions(&goes) }));
        goes.said.is_left = true;
        goes.grants.owned = 1;
        assert_eq!(decide(&goes), Decision::WaitForSilence { seconds: 30 });
        goes.grants = Grants { to_come: 1, ..NONE };
        assert_eq!(decide(&goes), Decision::WaitForSilence { seconds: 30 });
        goes.grants = NONE;
        assert_eq!(decide(&goes), Decision::ReadGrants);
    }

    #[test]
    fn a_cluster_is_empty_for_those_who_asked_only_after_a_live_list() {
        let drain = |is_answered, is_surely_empty| Some(Drain { is_answered, is_surely_empty });
        let waits = Decision::WaitForSilence { seconds: 30 };
        let mut facts = Facts { drain: drain(false, None), ..facts(noted(10)) };
        assert_eq!(decide(&facts), Decision::ReadClusterAndGrants);
        // The cache shows grants: nothing has to be read to say so, and it is said once.
        for grants in [
            Grants { owned: 1, ..NONE },
            Grants { to_come: 1, ..NONE },
            Grants { in_place: 1, ..NONE },
        ] {
            facts.grants = grants;
            facts.said.is_drained = None;
            let drained = Some(Drained::NotYet(grants));
            let wanted = Conditions { drained, ..conditions(&facts) };
            assert_eq!(decide(&facts), Decision::Tell(wanted));
            facts.said.is_drained = Some(false);
            assert_eq!(decide(&facts), waits);
        }
        // A copy that nobody needs any more keeps nobody.
        facts.grants = Grants { copies: 1, ..NONE };
        assert_eq!(decide(&facts), Decision::ReadClusterAndGrants);
        facts.drain = drain(false, Some(false));
        assert_eq!(decide(&facts), waits, "the cache is behind");
        facts.drain = drain(false, Some(true));
        let drained = Some(Drained::Empty);
        let wanted = Conditions { drained, ..conditions(&facts) };
        assert_eq!(decide(&facts), Decision::Tell(wanted));
        facts.said.is_drained = Some(true);
        assert_eq!(decide(&facts), Decision::Tell(wanted), "a second one who asked learns it, too");
        facts.drain = drain(true, None);
        assert_eq!(decide(&facts), waits);
        facts.is_answered_in_vain = true;
        assert_eq!(decide(&facts), Decision::Tell(wanted));
        let ended = Facts { drain: None, is_answered_in_vain: false, ..facts };
        assert_eq!(decide(&ended), Decision::Tell(conditions(&ended)), "the condition goes");
        assert_eq!(conditions(&ended).drained, None);
    }

    #[test]
    fn every_copy_that_is_not_an_owners_is_given_up_at_once() {
        use CopyState::{Diverged, Live, Superseded, Unclosed};
        for (copies, wanted) in [
            (vec![], Decision::TakeAnnotationOff),
            (vec![Live], Decision::RefuseToForget),
            (vec![Superseded, Live, Unclosed], Decision::ForgetCopies(vec![Superseded, Unclosed])),
            (vec![Diverged], Decision::ForgetCopies(vec![Diverged])),
        ] {
            let facts = Facts { forget: Some(copies), ..facts(noted(10)) };
            assert_eq!(decide(&facts), wanted);
        }
    }
}
