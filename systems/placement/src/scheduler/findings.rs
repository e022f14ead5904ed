//! What a person is told about a grant: what, why, and the next command.
//!
//! A message never has a time in it that runs on, or a count that changes by itself: it would be
//! written again with every look.

use super::decide::{Missed, Reason, Said, SaidPlaced, SaidUnreachable, Why, Wish};
use super::observe::{Scene, wish};
use crate::kinds::MOVES_FULL;
use crate::record::{GrantRecord, condition, syncers};
use interlock_api::names::ANNOTATION_FORGET_COPIES;
use interlock_api::placement::condition::{FENCED, OWNER_UNREACHABLE, PLACED, REACHABLE};
use interlock_api::placement::{CopyState, Image, Ref, RevokedBecause};
use interlock_kernel::conditions::{self, Finding};
use interlock_kernel::metadata::{name_of, uid_of};

/// How many clusters one message names.
const NAMED: usize = 20;

/// What two Placements that select one namespace call for.
const NARROW: &str = "narrow the namespaceSelector of one of them";

/// A sentence, and what a person does next.
type Advice = (String, Option<String>);

const REASONS: [Reason; 11] = [
    Reason::Granted,
    Reason::UnknownCluster,
    Reason::NoneFits,
    Reason::WishDoesNotFit,
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
            Reason::WishDoesNotFit => "WishDoesNotFit",
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
            Reason::WishDoesNotFit => match wish(scene) {
                Wish::On(place) => Why::WishDoesNotFit(place),
                Wish::Any | Wish::Unknown => return None,
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
    let ambiguous = ambiguous(scene);
    Said {
        placed: reason.map(|reason| SaidPlaced {
            reason,
            is_current: is_said(reason.why(scene).and_then(|why| placed(scene, grant, why))),
        }),
        is_ambiguity_told: ambiguous
            .is_some_and(|note| said.is_some_and(|said| said.message.contains(&note))),
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
    Finding::fails(OWNER_UNREACHABLE, "Heard", "its owner was heard of again, or is another")
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
        Why::WishDoesNotFit(place) => {
            fails(Reason::WishDoesNotFit, wish_does_not_fit(scene, place))
        }
        Why::DataElsewhere => fails(Reason::DataElsewhere, data_elsewhere(grant)),
        Why::NeedsCopy => fails(Reason::NeedsCopy, needs_copy(grant)),
        Why::MovesFull => fails(
            Reason::MovesFull,
            (
                format!(
                    "{} moves are under way, which is the limit; it begins when one of them ends",
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
        | Why::ClusterGoes
        | Why::OwnerUnreachable
        | Why::ClusterReplaced => None,
    }
}

/// A cluster has it.
pub(crate) fn granted(scene: &Scene, owner: Option<&Ref>, epoch: i64) -> Finding {
    let owner = owner.map(|owner| owner.name.as_str()).unwrap_or_default();
    let mut message = format!("cluster {owner} has it, at epoch {epoch}");
    let ambiguous = ambiguous(scene);
    let next = ambiguous.as_ref().map(|_| NARROW.to_owned());
    if let Some(ambiguous) = ambiguous {
        message = format!("{message}; {ambiguous}");
    }
    Finding::holds(PLACED, Reason::Granted.word(), message).next(next)
}

/// That two Placements select the namespace, if they do.
pub(crate) fn ambiguous(scene: &Scene) -> Option<String> {
    let rules = scene.rules.as_ref()?;
    let rival = rules.rival.as_ref()?;
    Some(format!(
        "placements {} and {rival} both select it: {0} counts, being first by name",
        rules.name
    ))
}

/// Its owner was told to stop.
pub(crate) fn stopping(grant: &GrantRecord, because: Option<RevokedBecause>) -> Finding {
    let owner = name(grant.status.owner.as_ref());
    let namespace = &grant.spec.namespace.name;
    let (reason, message) = match because {
        Some(RevokedBecause::Deletion) => {
            (Reason::Deleting, format!("cluster {owner} stops, as its namespace is being deleted"))
        }
        Some(RevokedBecause::Move | RevokedBecause::Drain) | None => {
            let target = name(grant.spec.target.as_ref());
            (Reason::Moving, format!("cluster {owner} stops and hands over to cluster {target}"))
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
        Some(owner) if grant.is_held() => format!("; it stays on cluster {owner} meanwhile"),
        _ => String::new(),
    }
}

fn unknown_cluster(scene: &Scene, namespace: &str) -> Advice {
    let asked = scene.asked_for().unwrap_or_default();
    let near = scene.nearest_clusters();
    let (hint, next) = match near.first() {
        Some(first) => (
            format!("the nearest: {}", near.join(", ")),
            format!("interlock move {namespace} --to {first}"),
        ),
        None => {
            ("no other is called like it".to_owned(), "kubectl get workloadclusters".to_owned())
        }
    };
    (format!("there is no cluster {asked:?}; {hint}"), Some(next))
}

fn none_fits(scene: &Scene, namespace: &str) -> Advice {
    if scene.clusters.is_empty() {
        let next = "create a WorkloadCluster and start its syncer".to_owned();
        return ("there is no cluster".to_owned(), Some(next));
    }
    let all = scene.clusters.iter().zip(&scene.misfits);
    let reasons: Vec<String> = all
        .filter_map(|(cluster, misfit)| Some((cluster, misfit.as_ref()?)))
        .map(|(cluster, misfit)| format!("{}: {}", name_of(cluster), misfit))
        .collect();
    let more = match reasons.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = reasons.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    (format!("no cluster fits: {shown}{more}"), Some(format!("interlock explain {namespace}")))
}

fn wish_does_not_fit(scene: &Scene, place: usize) -> Advice {
    let cluster = scene.cluster(place);
    let misfit = scene.misfits.get(place).and_then(Option::as_ref);
    let why = misfit.map(ToString::to_string).unwrap_or_default();
    let message = format!("cluster {cluster} is asked for and does not fit: {why}");
    (message, Some("interlock status".to_owned()))
}

fn data_elsewhere(grant: &GrantRecord) -> Advice {
    let places: Vec<String> = grant
        .status
        .pins
        .iter()
        .filter_map(|pin| match &pin.image {
            Image::InPlace { cluster, .. } => {
                Some(format!("claim {} is on cluster {cluster} only", pin.claim))
            }
            Image::VolumeSnapshot { cluster, .. } => {
                Some(format!("claim {} is in an image on cluster {cluster}", pin.claim))
            }
            Image::Restic { .. } => Some(format!("claim {} is in a repository", pin.claim)),
            Image::Fresh {} => None,
        })
        .collect();
    let places =
        if places.is_empty() { "nobody knows where".to_owned() } else { places.join("; ") };
    let message = format!("its data cannot be used where it is to run: {places}");
    (message, Some("bring that cluster back".to_owned()))
}

fn needs_copy(grant: &GrantRecord) -> Advice {
    let written = grant.status.claims.iter().map(|claim| claim.name.as_str());
    let written = written.collect::<Vec<_>>().join(", ");
    let owner = name(grant.status.owner.as_ref());
    let message = format!(
        "its claims ({written}) have data, and cluster {owner} has them in a storage class that no \
         image can be taken of"
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
        let wish = format!("{ANNOTATION_FORGET_COPIES}={}", grant.uid());
        format!("kubectl annotate workloadcluster {} {wish}", copy.cluster)
    });
    (format!("its namespace is being deleted, and data of it is on {}", copies.join(", ")), next)
}

/// The syncers that hold a namespace that goes, and of which no data is left to wait for.
fn syncers_left(scene: &Scene) -> Advice {
    let name_of_uid = |uid| {
        let cluster = scene.clusters.iter().find(|cluster| uid_of(cluster) == uid);
        cluster.map_or_else(|| format!("with uid {uid}"), |cluster| name_of(cluster).to_owned())
    };
    let holders = scene.namespace.iter().flat_map(|namespace| syncers(namespace));
    let clusters: Vec<String> = holders.map(name_of_uid).collect();
    let message = format!(
        "its namespace is being deleted, and stays until the syncer of cluster {} has let go of it",
        clusters.join(" and of cluster ")
    );
    let next = "see that it runs and reaches the hub, or delete its WorkloadCluster";
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
        "cluster {owner} has not been heard of since {since}. It may still run the namespace, so \
         nothing is taken from it. {}. If it is off for certain, a person can declare it gone",
        last_images(grant),
    );
    Finding::holds(OWNER_UNREACHABLE, Missed::NoHeartbeat.word(), message).next(force_line(grant))
}

fn replaced(grant: &GrantRecord) -> Finding {
    let owner = name(grant.status.owner.as_ref());
    let message = format!(
        "cluster {owner}, which has it, was deleted; one of that name is another cluster. Nobody \
         can ask the old one whether it has stopped. {}. If it has for certain, a person can declare \
         it gone",
        last_images(grant),
    );
    Finding::holds(OWNER_UNREACHABLE, Missed::ClusterReplaced.word(), message)
        .next(force_line(grant))
}

fn last_images(grant: &GrantRecord) -> String {
    let claims: Vec<String> = grant
        .status
        .claims
        .iter()
        .map(|claim| match &claim.last_image {
            Some(image) => format!("claim {} of {}", claim.name, image.taken.0),
            None => format!("claim {} none", claim.name),
        })
        .collect();
    if claims.is_empty() {
        return "It has no claims".to_owned();
    }
    format!("Last images: {}", claims.join(", "))
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
