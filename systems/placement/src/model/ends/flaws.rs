//! The mistakes that a controller could make about what goes, and what each would break.

use super::World;
use interlock_checker::Mutant;

/// One mistake: something wrong in the facts, or another effect than the one that was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The scheduler takes a revoked grant for a released one.
    GrantWithoutRelease,
    /// A namespace is known by its name, not by its uid.
    NamespaceByName,
    /// A cluster is known by its name, not by its uid.
    ClusterByName,
    /// The scheduler takes an owner whose cluster is gone for one that has given it back.
    GoneIsRelease,
    /// A cluster is let go whatever it has.
    GrantsDoNotHold,
    /// A grant that is not in the cache is taken for one that is not there.
    AbsenceIsNoGrant,
    /// A grant that is not in the cache of a syncer is taken for one that has ended.
    AbsenceIsTheEnd,
    /// The copy of an owner is forgotten like any other.
    OwnersIsForgotten,
    /// The syncer puts no finalizer on the namespace.
    NoSyncerFinalizer,
    /// A copy goes as soon as another cluster has the namespace.
    SettledAtOnce,
    /// A copy that may be alone in having something is taken for a superseded one.
    DivergedIsSuperseded,
    /// A cluster that is granted the namespace again takes over what it may be alone in having.
    AloneIsTakenOver,
    /// The hub is told that no copy is left while there is one.
    LeftoverOverlooked,
    /// What is left of a copy is never deleted.
    LeftoverKept,
    /// Labels of other clusters stay when one is put on.
    LabelLeftOn,
    /// The labels of claims are not looked at.
    ClaimNotMirrored,
    /// The scheduler always takes some copy to be left.
    CopiesNeverGone,
    /// The scheduler does not look whether syncers hold the namespace.
    SyncersOverlooked,
    /// The scheduler takes a cluster to stay that its cache shows.
    LookBelieved,
    /// A cluster is let go although a grant is about to be its own.
    TargetsDoNotHold,
    /// The scheduler leaves a cluster the target that is being deleted.
    TargetKept,
}

/// A mistake or several that cover for each other, what it is, what it breaks, and what must be in
/// the world for that to show.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [Flaw], fn(&mut World));

fn one_cluster(world: &mut World) {
    world.clusters = 1;
}

const OF_DELETION: &[Row] = &[
    (
        "key-by-name",
        "a namespace that is made again under its name finds the grant of the one before",
        &["NothingInherited"],
        &[Flaw::NamespaceByName],
        |world| (world.clusters, world.namespaces, world.strip, world.faults) = (1, 2, true, 1),
    ),
    (
        "cluster-by-name",
        "a cluster that is made again under its name takes the grants of the one before for its own",
        &["OnlyTheOwnerRuns"],
        &[Flaw::ClusterByName],
        |world| {
            (world.retire, world.replace, world.strip, world.faults) = (true, true, true, 1);
        },
    ),
    (
        "gone-cluster-is-release",
        "an owner whose cluster is not at the hub any more is taken for one that has stopped",
        &["OnlyTheOwnerRuns"],
        &[Flaw::GoneIsRelease],
        |world| (world.retire, world.strip, world.faults) = (true, true, 1),
    ),
    (
        "finalizer-stripped-with-the-cluster",
        "a cluster that is deleted is let go with the grants that it owns",
        &["ClusterStays"],
        &[Flaw::GrantsDoNotHold],
        |world| (world.clusters, world.retire) = (1, true),
    ),
    (
        "granted-to-a-cluster-that-was-let-go",
        "the scheduler grants to a cluster that its cache still has, without a fresh look",
        &["ClusterStays"],
        &[Flaw::LookBelieved],
        |world| (world.clusters, world.retire, world.lag) = (1, true, true),
    ),
    (
        "let-go-under-a-grant",
        "a cluster is let go between the look of the scheduler and its grant",
        &["ClusterStays"],
        &[Flaw::TargetsDoNotHold],
        |world| (world.clusters, world.retire, world.lag) = (1, true, true),
    ),
    (
        "target-kept",
        "a cluster that is deleted stays the target of a grant, and so stays for ever",
        &["DeletedClusterGoes"],
        &[Flaw::TargetKept],
        |world| (world.clusters, world.retire, world.lag) = (1, true, true),
    ),
    (
        "namespace-let-go-on-absence",
        "the finalizer comes off because the cache has no grant, and no syncer put one of its own \
         on: each alone would cover for the other",
        &["NamespaceStays"],
        &[Flaw::AbsenceIsNoGrant, Flaw::NoSyncerFinalizer],
        one_cluster,
    ),
    (
        "owners-copy-forgotten",
        "a person asks for a copy to be forgotten, and it is the owner's",
        &["OwnersCopyStays"],
        &[Flaw::OwnersIsForgotten],
        |world| (world.clusters, world.faults) = (1, 1),
    ),
    (
        "copy-overlooked",
        "the hub is told that nothing is left while a volume is there",
        &["CopiesAreListed", "NamespaceStays"],
        &[Flaw::LeftoverOverlooked],
        one_cluster,
    ),
    (
        "copies-never-gone",
        "the grant waits for copies that are gone, and its namespace with it",
        &["DeletedGoes"],
        &[Flaw::CopiesNeverGone],
        one_cluster,
    ),
    (
        "syncer-left-behind",
        "the grant goes while a syncer whose copy was given up holds the namespace: nothing tells it \
         to let go",
        &["DeletedGoes"],
        &[Flaw::SyncersOverlooked],
        |world| (world.clusters, world.faults) = (1, 1),
    ),
    (
        "old-grant-orphaned",
        "the grant of a namespace that was replaced waits for copies that are gone",
        &["OldGrantEnds"],
        &[Flaw::CopiesNeverGone],
        |world| (world.clusters, world.namespaces, world.strip, world.faults) = (1, 2, true, 1),
    ),
];

const OF_VOLUMES: &[Row] = &[
    (
        "grant-without-release",
        "the namespace is granted to the next cluster while another still owns it",
        &["OnlyTheOwnerRuns"],
        &[Flaw::GrantWithoutRelease],
        |_| {},
    ),
    (
        "copy-overlooked",
        "the hub is told that nothing is left while a volume is there",
        &["CopiesAreListed"],
        &[Flaw::LeftoverOverlooked],
        |_| {},
    ),
    (
        "old-volume-deleted-early",
        "a volume goes as soon as another cluster has the namespace",
        &["VolumesOutliveMoves"],
        &[Flaw::SettledAtOnce],
        |_| {},
    ),
    (
        "diverged-volume-deleted",
        "a volume that may be alone in having something goes like any other",
        &["VolumesOutliveMoves"],
        &[Flaw::DivergedIsSuperseded],
        |world| (world.force, world.faults) = (true, 2),
    ),
    (
        "diverged-volume-taken-over",
        "a cluster that gets the namespace again forgets that it may be alone in having something",
        &["VolumesOutliveMoves"],
        &[Flaw::AloneIsTakenOver],
        |world| (world.epochs, world.force, world.faults) = (3, true, 2),
    ),
    (
        "volume-deleted-on-absence",
        "a syncer that does not find the Grant in its cache deletes what it has",
        &["VolumesOutliveMoves"],
        &[Flaw::AbsenceIsTheEnd],
        |world| (world.crash, world.faults) = (true, 1),
    ),
    (
        "old-label-left-on",
        "the label of the cluster before stays when the next one's is put on",
        &["Inv_PVCAtMostOneCluster", "Inv_NSAtMostOneCluster"],
        &[Flaw::LabelLeftOn],
        |world| world.labels = true,
    ),
    (
        "claim-not-mirrored",
        "the labels of claims stay as they are",
        &["LabelsFollow"],
        &[Flaw::ClaimNotMirrored],
        |world| world.labels = true,
    ),
    (
        "old-copies-stay",
        "a copy that nobody needs is kept for ever",
        &["OldCopiesGo"],
        &[Flaw::LeftoverKept],
        |_| {},
    ),
];

impl World {
    pub(super) fn flawed(&self) -> Vec<Mutant<World>> {
        let rows = if self.settle { OF_VOLUMES } else { OF_DELETION };
        let mutant = |(name, sentence, breaks, flaws, needs): &Row| {
            // The least world in which a mistake shows: faults that it does not need only hide it.
            let mut model = World {
                flaws,
                settle: self.settle,
                is_deleted: !self.settle,
                ..World::bare(2, 2, 0)
            };
            needs(&mut model);
            Mutant::new(*name, *sentence, breaks, model.numbered())
        };
        rows.iter().map(mutant).collect()
    }
}
