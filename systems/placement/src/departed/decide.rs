//! When the finalizer of a cluster comes off without it. First matching rule wins.

use serde::{Deserialize, Serialize};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Facts {
    /// Whether a grant is held by the cluster or has data on it, as the cache shows it.
    pub has_grants: bool,
    /// What the hub itself says; None: not read.
    pub truth: Option<Truth>,
}

/// What the hub itself says of a cluster that the cache does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Truth {
    /// Whether there is a WorkloadCluster of that uid.
    pub is_there: bool,
    /// Whether a grant is held by it or has data on it.
    pub has_grants: bool,
    /// Whether its finalizer is on an object in the namespace.
    pub has_objects: bool,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Ask the hub itself.
    LiveRead,
    /// Take it off one object.
    TakeOffObject,
    /// Take it off the namespace.
    TakeOffNamespace,
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Why {
    /// The cluster is there: its syncer takes it off.
    ClusterThere,
    /// A grant still names the cluster: a person has to say what became of it.
    GrantsLeft,
}

/// The one next thing to do. The namespace comes last: as long as it has the finalizer, objects that
/// have it are found.
pub fn decide(facts: &Facts) -> Decision {
    if facts.has_grants {
        return Decision::Nothing(Why::GrantsLeft);
    }
    let Some(truth) = facts.truth else { return Decision::LiveRead };
    if truth.is_there {
        return Decision::Nothing(Why::ClusterThere);
    }
    if truth.has_grants {
        return Decision::Nothing(Why::GrantsLeft);
    }
    if truth.has_objects {
        return Decision::TakeOffObject;
    }
    Decision::TakeOffNamespace
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(has_grants: bool, truth: Option<Truth>) -> Decision {
        decide(&Facts { has_grants, truth })
    }

    #[test]
    fn a_finalizer_comes_off_only_where_the_hub_shows_no_cluster_and_no_grant() {
        let truth =
            |is_there, has_grants, has_objects| Some(Truth { is_there, has_grants, has_objects });
        for (truth, wanted) in [
            (None, Decision::LiveRead),
            (truth(true, false, true), Decision::Nothing(Why::ClusterThere)),
            (truth(false, true, true), Decision::Nothing(Why::GrantsLeft)),
            (truth(false, false, true), Decision::TakeOffObject),
            (truth(false, false, false), Decision::TakeOffNamespace),
        ] {
            assert_eq!(decided(false, truth), wanted, "{truth:?}");
            assert_eq!(decided(true, truth), Decision::Nothing(Why::GrantsLeft), "{truth:?}");
        }
    }
}
