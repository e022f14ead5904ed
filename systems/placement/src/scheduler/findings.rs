//! What a person reads about a grant: what, why, and the next command.
//!
//! A message never has a time in it that runs on, or a count that changes by itself: it would be
//! written again with every look.

use super::decide::{Desired, Missed, Reason, Said, SaidPlaced, SaidUnreachable, Why};
use super::observe::{Scene, desired};
use crate::kinds::MOVES_FULL;
use crate::record::{GrantRecord, condition, syncers};
use interlock_api::names::ANNOTATION_FORGET_COPIES;
use interlock_api::placement::condition::{FENCED, OWNER_UNREACHABLE, PLACED, REACHABLE};
use interlock_api::placement::{CopyState, Ref, RevokedBecause, Snapshot};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::metadata::{name_of, uid_of};

/// How many clusters one message names.
const NAMED: usize = 20;

/// A sentence, and what a person does next.
type Advice = (String, Option<String>);

const REASONS: [Reason; 11] = [
    Reason::Granted,
    Reason::UnknownCluster,
    Reason::NoneFits,
    Reason::DesiredClusterDoesNotFit,
    Reason::DataElsewhere,
    Reason::NeedsCopy,
    Reason::MovesFull,
    Reason::Moving,
    Reason::Deleting,
    Reason::CopiesLeft,
    Reason::SyncersLeft,
];

impl Reason {
    /// As the condition has it.
    fn word(self) -> &'static str {
        match self {
            Reason::Granted => "Granted",
            Reason::UnknownCluster => "UnknownCluster",
            Reason::NoneFits => "NoneFits",
            Reason::DesiredClusterDoesNotFit => "DesiredClusterDoesNotFit",
            Reason::DataElsewhere => "DataElsewhere",
            Reason::NeedsCopy => "NeedsCopy",
            Reason::MovesFull => MOVES_FULL,
            Reason::Moving => "Moving",
            Reason::Deleting => "Deleting",
            Reason::CopiesLeft => "CopiesLeft",
            Reason::SyncersLeft => "SyncersLeft",
        }
    }

    /// What would be said for this reason; None: nothing could.
    fn why(self, scene: &Scene) -> Option<Why> {
        Some(match self {
            Reason::Granted => Why::Placed,
            Reason::UnknownCluster => Why::UnknownCluster,
            Reason::NoneFits => Why::NoneFits,
            Reason::DesiredClusterDoesNotFit => match desired(scene) {
                Desired::On(place) => Why::DesiredClusterDoesNotFit(place),
                Desired::Any | Desired::Unknown => return None,
            },
            Reason::DataElsewhere => Why::DataElsewhere,
            Reason::NeedsCopy => Why::NeedsCopy,
            Reason::MovesFull => Why::MovesFull,
            Reason::Moving | Reason::Deleting => Why::OwnerStops,
            Reason::CopiesLeft => Why::CopiesLeft,
            Reason::SyncersLeft => Why::SyncersLeft,
        })
    }
}

const MISSED: [Missed; 2] = [Missed::NoHeartbeat, Missed::ClusterReplaced];

impl Missed {
    /// As the condition has it.
    fn word(self) -> &'static str {
        match self {
            Missed::NoHeartbeat => "NoHeartbeat",
            Missed::ClusterReplaced => "ClusterReplaced",
        }
    }
}

/// What the conditions of a grant say.
pub(crate) fn said(scene: &Scene, grant: &GrantRecord) -> Said {
    let known = &grant.status.conditions;
    let is_said = |found: Option<Finding>| found.is_some_and(|found| found.is_in(known));
    let said = conditions::find(known, PLACED);
    let reason = REASONS.into_iter().find(|r| said.is_some_and(|said| said.reason == r.word()));
    let narrow = narrow(scene);
    Said {
        placed: reason.map(|reason| SaidPlaced {
            reason,
            is_current: is_said(reason.why(scene).and_then(|why| placed(scene, grant, why))),
        }),
        is_ambiguity_told: narrow.is_some() && said.is_some_and(|said| said.next == narrow),
        unreachable: conditions::find(known, OWNER_UNREACHABLE).map(|said| {
            let reason = MISSED.into_iter().find(|missed| said.reason == missed.word());
            SaidUnreachable {
                is_true: said.status == "True",
                reason,
                is_current: is_said(reason.map(|missed| missing(scene, grant, missed))),
            }
        }),
        is_fenced: conditions::is_true(known, FENCED),
    }
}

/// What is to be said of a grant that nothing is done about; nothing at all for some.
pub(crate) fn finding(scene: &Scene, grant: &GrantRecord, why: Why) -> Option<Finding> {
    match why {
        Why::OwnerUnreachable => Some(missing(scene, grant, Missed::NoHeartbeat)),
        Why::ClusterReplaced => Some(missing(scene, grant, Missed::ClusterReplaced)),
        why => placed(scene, grant, why),
    }
}

fn missing(scene: &Scene, grant: &GrantRecord, missed: Missed) -> Finding {
    match missed {
        Missed::NoHeartbeat => unreachable(scene, grant),
        Missed::ClusterReplaced => replaced(grant),
    }
}

/// An owner that was missed is there again.
pub(crate) fn heard_again() -> Finding {
    Finding::fails(
        OWNER_UNREACHABLE,
        "Heard",
        "the owner sends heartbeats again, or the grant has another owner",
    )
}

fn placed(scene: &Scene, grant: &GrantRecord, why: Why) -> Option<Finding> {
    let namespace = &grant.spec.namespace.name;
    let fails = |reason: Reason, (message, next): Advice| {
        let message = format!("{message}{}", staying(grant));
        Some(Finding::fails(PLACED, reason.word(), message).next(next))
    };
    match why {
        Why::Placed => Some(granted(scene, grant.status.owner.as_ref(), grant.status.epoch)),
        Why::UnknownCluster => fails(Reason::UnknownCluster, unknown_cluster(scene, namespace)),
        Why::NoneFits => fails(Reason::NoneFits, none_fits(scene, namespace)),
        Why::DesiredClusterDoesNotFit(place) => {
            fails(Reason::DesiredClusterDoesNotFit, desired_cluster_does_not_fit(scene, place))
        }
        Why::DataElsewhere => fails(Reason::DataElsewhere, data_elsewhere(grant)),
        Why::NeedsCopy => fails(Reason::NeedsCopy, needs_copy(grant)),
        Why::MovesFull => fails(
            Reason::MovesFull,
            (
                format!(
                    "{} moves are in progress, which is the limit; this move begins when one of \
                     them ends",
                    scene.limits.moves
                ),
                Some("interlock status".to_owned()),
            ),
        ),
        Why::OwnerStops => Some(stopping(grant, grant.status.because)),
        Why::CopiesLeft => fails(Reason::CopiesLeft, copies_left(grant)),
        Why::SyncersLeft => fails(Reason::SyncersLeft, syncers_left(scene)),
        Why::NamespaceUnknown
        | Why::Unplaced
        | Why::ClusterTerminating
        | Why::ClusterDraining
        | Why::OwnerUnreachable
        | Why::ClusterReplaced => None,
    }
}

/// A cluster has it.
pub(crate) fn granted(scene: &Scene, owner: Option<&Ref>, epoch: i64) -> Finding {
    let owner = owner.map(|owner| owner.name.as_str()).unwrap_or_default();
    let mut message = format!("cluster {owner} owns the namespace at epoch {epoch}");
    if let Some(ambiguous) = ambiguous(scene) {
        message = format!("{message}; {ambiguous}");
    }
    Finding::holds(PLACED, Reason::Granted.word(), message).next(narrow(scene))
}

/// That two Placements select the namespace, if they do.
pub(crate) fn ambiguous(scene: &Scene) -> Option<String> {
    let rules = scene.rules.as_ref()?;
    let rival = rules.rival.as_ref()?;
    Some(format!(
        "Placements {} and {rival} both select the namespace; {0} is used because it is first by \
         name",
        rules.name
    ))
}

/// What a person does next about two Placements that select the namespace, if they do. Both are named, so that this field by
/// itself says which two a condition is about: no message is searched for them.
fn narrow(scene: &Scene) -> Option<String> {
    let rules = scene.rules.as_ref()?;
    let rival = rules.rival.as_ref()?;
    Some(format!(
        "narrow the namespaceSelector of Placement {} or of Placement {rival}",
        rules.name
    ))
}

/// Its owner was asked to stop.
pub(crate) fn stopping(grant: &GrantRecord, because: Option<RevokedBecause>) -> Finding {
    let owner = name(grant.status.owner.as_ref());
    let namespace = &grant.spec.namespace.name;
    let (reason, message) = match because {
        Some(RevokedBecause::Deletion) => (
            Reason::Deleting,
            format!("cluster {owner} stops the namespace, because the namespace is being deleted"),
        ),
        Some(RevokedBecause::Move | RevokedBecause::Drain) | None => {
            let target = name(grant.spec.target.as_ref());
            (
                Reason::Moving,
                format!(
                    "cluster {owner} stops the namespace and hands it over to cluster {target}"
                ),
            )
        }
    };
    let next = format!("interlock explain {namespace}");
    Finding::fails(PLACED, reason.word(), message).next(next)
}

fn name(found: Option<&Ref>) -> &str {
    found.map_or("(none)", |found| found.name.as_str())
}

fn staying(grant: &GrantRecord) -> String {
    match &grant.status.owner {
        Some(owner) if grant.is_held() => {
            format!("; the namespace stays on cluster {owner} until then")
        }
        _ => String::new(),
    }
}

fn unknown_cluster(scene: &Scene, namespace: &str) -> Advice {
    let asked = scene.asked_for().unwrap_or_default();
    let near = scene.nearest_clusters();
    let (hint, next) = match near.first() {
        Some(first) => (
            format!("similar names: {}", near.join(", ")),
            format!("interlock move {namespace} --to {first}"),
        ),
        None => {
            ("no cluster has a similar name".to_owned(), "kubectl get workloadclusters".to_owned())
        }
    };
    (format!("cluster {asked:?} does not exist; {hint}"), Some(next))
}

fn none_fits(scene: &Scene, namespace: &str) -> Advice {
    if scene.clusters.is_empty() {
        let next = "create a WorkloadCluster and start its syncer".to_owned();
        return ("no WorkloadCluster exists".to_owned(), Some(next));
    }
    let all = scene.clusters.iter().zip(&scene.unfit_reasons);
    let reasons: Vec<String> = all
        .filter_map(|(cluster, unfit_reason)| Some((cluster, unfit_reason.as_ref()?)))
        .map(|(cluster, unfit_reason)| format!("{}: {}", name_of(cluster), unfit_reason))
        .collect();
    let more = match reasons.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = reasons.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    (format!("no cluster fits: {shown}{more}"), Some(format!("interlock explain {namespace}")))
}

fn desired_cluster_does_not_fit(scene: &Scene, place: usize) -> Advice {
    let cluster = scene.cluster(place);
    let unfit_reason = scene.unfit_reasons.get(place).and_then(Option::as_ref);
    let why = unfit_reason.map(ToString::to_string).unwrap_or_default();
    let message = format!("the desired cluster {cluster} does not fit: {why}");
    (message, Some("interlock status".to_owned()))
}

fn data_elsewhere(grant: &GrantRecord) -> Advice {
    let places: Vec<String> = grant
        .status
        .pins
        .iter()
        .filter_map(|pin| match &pin.snapshot {
            Snapshot::InPlace { cluster, .. } => {
                Some(format!("claim {} is on cluster {cluster} only", pin.claim))
            }
            Snapshot::VolumeSnapshot { cluster, .. } => {
                Some(format!("claim {} is in a snapshot on cluster {cluster}", pin.claim))
            }
            Snapshot::Restic { .. } => Some(format!("claim {} is in a repository", pin.claim)),
            Snapshot::Fresh {} => None,
        })
        .collect();
    let places =
        if places.is_empty() { "at an unknown place".to_owned() } else { places.join("; ") };
    let message = format!("the data cannot be used on the target cluster: {places}");
    (message, Some("bring that cluster back".to_owned()))
}

fn needs_copy(grant: &GrantRecord) -> Advice {
    let written = grant.status.claims.iter().map(|claim| claim.name.as_str());
    let written = written.collect::<Vec<_>>().join(", ");
    let owner = name(grant.status.owner.as_ref());
    let message = format!(
        "claims {written} have data, and cluster {owner} has them in a storage class that does \
         not support snapshots"
    );
    (message, Some(format!("interlock move {} --to {owner}", grant.spec.namespace.name)))
}

fn copies_left(grant: &GrantRecord) -> Advice {
    let copies: Vec<String> = grant
        .status
        .copies
        .iter()
        .take(NAMED)
        .map(|copy| format!("cluster {} ({}, epoch {})", copy.cluster, copy.state, copy.epoch))
        .collect();
    let kept = grant
        .status
        .copies
        .iter()
        .find(|copy| matches!(copy.state, CopyState::Diverged | CopyState::Unclosed));
    let next = kept.map(|copy| {
        let desired = format!("{ANNOTATION_FORGET_COPIES}={}", grant.uid());
        format!("kubectl annotate workloadcluster {} {desired}", copy.cluster)
    });
    (format!("the namespace is being deleted, and its data is on {}", copies.join(", ")), next)
}

/// The syncers that hold a namespace that is being deleted, and of which no data is left to wait for.
fn syncers_left(scene: &Scene) -> Advice {
    let name_of_uid = |uid| {
        let cluster = scene.clusters.iter().find(|cluster| uid_of(cluster) == uid);
        cluster.map_or_else(|| format!("with uid {uid}"), |cluster| name_of(cluster).to_owned())
    };
    let holders = scene.namespace.iter().flat_map(|namespace| syncers(namespace));
    let clusters: Vec<String> = holders.map(name_of_uid).collect();
    let message = format!(
        "the namespace is being deleted; it stays until the syncer of cluster {} has removed its \
         finalizer",
        clusters.join(" and of cluster ")
    );
    let next = "make sure that the syncer runs and reaches the hub, or delete the WorkloadCluster";
    (message, Some(next.to_owned()))
}

fn unreachable(scene: &Scene, grant: &GrantRecord) -> Finding {
    let owner = grant.status.owner.clone().unwrap_or_default();
    let cluster = scene.clusters.iter().find(|cluster| uid_of(cluster) == owner.uid);
    let since = cluster
        .and_then(|cluster| condition(cluster, REACHABLE))
        .and_then(|reachable| reachable["lastTransitionTime"].as_str())
        .map_or_else(|| "it came".to_owned(), str::to_owned);
    let message = format!(
        "cluster {owner} has sent no heartbeat since {since}. The cluster may still run the \
         namespace, so the grant is not released. {}. If the cluster is off for certain, a person \
         can declare it gone",
        last_snapshots(grant),
    );
    Finding::holds(OWNER_UNREACHABLE, Missed::NoHeartbeat.word(), message).next(force_line(grant))
}

fn replaced(grant: &GrantRecord) -> Finding {
    let owner = name(grant.status.owner.as_ref());
    let message = format!(
        "the owner {owner} was deleted; a cluster with that name is another cluster. The deleted \
         cluster cannot report whether the namespace has stopped. {}. If it has stopped for \
         certain, a person can declare the cluster gone",
        last_snapshots(grant),
    );
    Finding::holds(OWNER_UNREACHABLE, Missed::ClusterReplaced.word(), message)
        .next(force_line(grant))
}

fn last_snapshots(grant: &GrantRecord) -> String {
    let claims: Vec<String> = grant
        .status
        .claims
        .iter()
        .map(|claim| match &claim.last_snapshot {
            Some(snapshot) => format!("claim {} of {}", claim.name, snapshot.taken.0),
            None => format!("claim {} none", claim.name),
        })
        .collect();
    if claims.is_empty() {
        return "The namespace has no claims".to_owned();
    }
    format!("Last snapshots: {}", claims.join(", "))
}

/// The command that ends it, complete but for what only a person knows.
fn force_line(grant: &GrantRecord) -> String {
    format!(
        "interlock force-release {} --owner {} --epoch {} --attest powered-off --reason \
         \"...\"",
        grant.spec.namespace.name,
        name(grant.status.owner.as_ref()),
        grant.status.epoch
    )
}
