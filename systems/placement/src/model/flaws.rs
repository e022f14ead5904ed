//! The mistakes that a controller could make, and what each would break.

use super::World;
use crate::spec::hub::Extent;
use interlock_checker::Mutant;

/// One mistake: something wrong in the facts, or another effect than the one that was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The scheduler takes a revoked grant for a released one.
    GrantWithoutRelease,
    /// A grant keeps the epoch of the one before.
    EpochNotGrown,
    /// The scheduler takes volumes left in place for images that can be used anywhere.
    InPlaceIsAnywhere,
    /// The scheduler does not ask whether a cluster fits.
    FitIgnored,
    /// The scheduler wishes what there is.
    WishIgnored,
    /// The scheduler takes an owner that is silent for one that has given it back.
    SilenceIsRelease,
    /// A syncer writes to the Grant whatever it has become since it was seen.
    HubUnguarded,
    /// The reply to a permit that was lost is taken for a refusal.
    LostReplyIsRefusal,
    /// The last image is asked for while another copy is under way.
    TagSetEarly,
    /// A permit rests on the cache.
    TruthFromCache,
    /// A permit does not look for ForceReleases.
    ForceIgnored,
    /// A permit takes every epoch for one that is asked for by force.
    AlwaysForced,
    /// A permit of an earlier boot still counts.
    BootIgnored,
    /// A permit names the boot at the time of the write, not of the look.
    BootReadLate,
    /// A permit is written over notes that changed since the look.
    PermitUnguarded,
    /// An epoch is closed over notes that changed since the look.
    CloseUnguarded,
    /// The syncer does not see what it closed, once it sees a grant.
    ReleasedIgnored,
    /// What is closed is kept in memory.
    ReleasedForgotten,
    /// The runtime does not look at what is closed.
    StartIgnoresReleased,
    /// The runtime looks at the permit before it has the lock.
    ReadsBeforeLocking,
    /// The syncer looks whether all is still while the permit is still there.
    LooksBeforeWithdrawing,
    /// The syncer does not look whether all is still.
    StillnessAssumed,
    /// The syncer looks for pods, but not at locks.
    LocksIgnored,
    /// The syncer takes what runs for nothing.
    NothingIsStopped,
    /// A volume that exists is taken for one that is filled.
    FilledWhenItExists,
    /// A pod is applied before the hub knows that its claims are filled.
    AppliesBeforeReporting,
    /// A claim is made before the Grant lists it.
    UnlistedClaimMade,
    /// Only the first claim is handed over.
    FirstClaimOnly,
    /// The last image is asked for before the epoch is closed.
    CopiesBeforeClosing,
    /// Nobody waits for the last image.
    NoLastImage,
    /// The acknowledgement does not name the new images.
    PinsNotWritten,
    /// The acknowledgement gives up what its images lack.
    LossKeptQuiet,
    /// A Grant that is not in the cache is taken for one that is gone.
    DeleteOnAbsence,
    /// A cluster does not note that something ran.
    RanIgnored,
    /// A ForceRelease counts for any epoch.
    ForceForAnyEpoch,
    /// A ForceRelease is asked for although the owner may run.
    ForceWhileRunning,
    /// A ForceRelease is refused by what the cache shows.
    RefusesFromCache,
    /// A ForceRelease that was done is not marked so.
    NeverAnswers,
}

const NOT_ONE: &[&str] = &["OnlyTheOwnerRuns", "ReleasedIsStill", "ClosedIsStill"];
const LOSES: &[&str] = &["NoLoss", "PinsHaveEveryWrite"];

/// One mistake or several that cover for each other, what it is, what it breaks, and what must be in
/// the world for that to show.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [Flaw], &'static [Need]);

/// What a mistake needs, beside planned moves between two clusters, in order to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Two claims, of which one is added late.
    TwoClaims,
    /// Power loss and ForceRelease.
    Force,
    /// Crashes.
    Crash,
    /// Crashes, and lists of the past after them.
    Relist,
    /// A second syncer.
    TwoSyncers,
    /// A cluster that takes nothing.
    Unfit,
    /// Background copies that take their time.
    Slow,
    /// No second cluster: the first one is enough.
    OneCluster,
}

const WRONG: &[Row] = &[
    (
        "grant-without-release",
        "the namespace is granted to the next cluster while another still owns it",
        &["OnlyTheOwnerRuns"],
        &[Flaw::GrantWithoutRelease],
        &[],
    ),
    (
        "silence-is-release",
        "an owner that is not heard of is taken for one that has given the namespace back",
        &["OnlyTheOwnerRuns"],
        &[Flaw::SilenceIsRelease],
        &[],
    ),
    (
        "hub-unguarded",
        "a syncer ends the grant of another, by an acknowledgement that it had written already",
        NOT_ONE,
        &[Flaw::HubUnguarded],
        &[],
    ),
    (
        "lost-reply-is-refusal",
        "a permit whose reply was lost is taken for none, and an epoch is closed over notes that \
         changed since: each alone would cover for the other",
        NOT_ONE,
        &[Flaw::LostReplyIsRefusal, Flaw::CloseUnguarded],
        &[],
    ),
    (
        "epoch-not-grown",
        "a new owner is granted the epoch of the one before",
        &["EpochOnlyGrows"],
        &[Flaw::EpochNotGrown],
        &[],
    ),
    (
        "revoke-with-no-target",
        "what runs is stopped for a cluster that cannot take it",
        &["RevokedForATarget"],
        &[Flaw::FitIgnored],
        &[Need::Unfit],
    ),
    (
        "in-place-anywhere",
        "volumes that were left in place are granted to another cluster",
        &["InPlaceStays"],
        &[Flaw::InPlaceIsAnywhere],
        &[],
    ),
    (
        "stillness-assumed",
        "an epoch is closed without a look at what runs",
        &["ClosedIsStill", "ReleasedIsStill"],
        &[Flaw::StillnessAssumed, Flaw::NothingIsStopped],
        &[],
    ),
    (
        "locks-ignored",
        "an epoch is closed when there is no pod, whoever has the lock",
        NOT_ONE,
        &[Flaw::LocksIgnored],
        &[],
    ),
    (
        "look-before-withdraw",
        "the syncer looks at the locks while the permit is still there",
        NOT_ONE,
        &[Flaw::LooksBeforeWithdrawing],
        &[],
    ),
    (
        "read-before-lock",
        "the runtime looks at the permit, and only then takes the lock",
        NOT_ONE,
        &[Flaw::ReadsBeforeLocking],
        &[],
    ),
    (
        "close-unguarded",
        "a syncer closes what another one has permitted since it looked",
        NOT_ONE,
        &[Flaw::CloseUnguarded],
        &[Need::TwoSyncers],
    ),
    (
        "permit-unguarded",
        "a permit is written over notes that changed since, and a start does not look at what is \
         closed: each alone would cover for the other",
        NOT_ONE,
        &[Flaw::PermitUnguarded, Flaw::StartIgnoresReleased],
        &[Need::TwoSyncers],
    ),
    (
        "released-ignored",
        "neither a permit nor a start looks at what is closed, and the permit trusts the cache",
        NOT_ONE,
        &[Flaw::ReleasedIgnored, Flaw::TruthFromCache],
        &[Need::Relist],
    ),
    (
        "released-forgotten",
        "a crash forgets what is closed, and the permit trusts the cache: each alone would cover \
         for the other",
        NOT_ONE,
        &[Flaw::ReleasedForgotten, Flaw::TruthFromCache],
        &[Need::Relist],
    ),
    (
        "released-not-durable",
        "a crash forgets what is closed",
        &["ReleasedNeverFalls"],
        &[Flaw::ReleasedForgotten],
        &[Need::Crash],
    ),
    (
        "delete-on-absence",
        "a syncer that does not find the Grant in its cache deletes what it has",
        &["NoLoss"],
        &[Flaw::DeleteOnAbsence],
        &[Need::Crash, Need::OneCluster],
    ),
    (
        "start-unfilled",
        "the workload starts when the volume exists, not when it is filled",
        &["NoLoss"],
        &[Flaw::FilledWhenItExists],
        &[],
    ),
    (
        "copy-before-close",
        "the last image is made while the epoch may still write",
        LOSES,
        &[Flaw::CopiesBeforeClosing],
        &[],
    ),
    (
        "no-last-image",
        "the namespace is released with whatever the last background copy had",
        LOSES,
        &[Flaw::NoLastImage],
        &[],
    ),
    (
        "tag-set-early",
        "the last image is asked for while a background copy is under way, whose end is taken for it",
        LOSES,
        &[Flaw::TagSetEarly],
        &[Need::Slow],
    ),
    (
        "pins-not-written",
        "the acknowledgement does not name the new images, so the old ones are filled in",
        LOSES,
        &[Flaw::PinsNotWritten],
        &[],
    ),
    (
        "loss-kept-quiet",
        "a release without a last image gives up the writes that its images lack",
        &["LossIsDeclared"],
        &[Flaw::NoLastImage, Flaw::LossKeptQuiet],
        &[],
    ),
    (
        "first-claim-only",
        "the namespace is released after the first of two claims has its last image",
        LOSES,
        &[Flaw::FirstClaimOnly],
        &[Need::TwoClaims],
    ),
    (
        "unlisted-claim-made",
        "a claim is made and written to before the Grant lists it, so the release leaves it out",
        LOSES,
        &[Flaw::UnlistedClaimMade],
        &[Need::TwoClaims],
    ),
    (
        "applied-before-reported",
        "a pod writes to a claim that the hub does not know to be filled, so no image is made",
        LOSES,
        &[Flaw::AppliesBeforeReporting],
        &[Need::TwoClaims],
    ),
    (
        "permit-from-cache",
        "a permit trusts the syncer's cache, which shows the past and no ForceRelease",
        &["OnlyTheOwnerRuns", "ReleasedIsStill"],
        &[Flaw::TruthFromCache],
        &[Need::Force, Need::OneCluster],
    ),
    (
        "permit-ignores-force",
        "a cluster that came back is permitted between the ForceRelease and the fence",
        &["OnlyTheOwnerRuns", "ReleasedIsStill"],
        &[Flaw::ForceIgnored],
        &[Need::Force, Need::OneCluster],
    ),
    (
        "boot-ignored",
        "when power returns, a permit from before still counts",
        &["OnlyTheOwnerRuns", "ReleasedIsStill"],
        &[Flaw::BootIgnored],
        &[Need::Force, Need::OneCluster],
    ),
    (
        "boot-read-late",
        "a permit that was looked for before the power loss names the boot after it",
        &["OnlyTheOwnerRuns", "ReleasedIsStill"],
        &[Flaw::BootReadLate],
        &[Need::Force, Need::OneCluster],
    ),
    (
        "force-while-running",
        "a ForceRelease is asked for although the owner is not powered off",
        &["ReleasedIsStill"],
        &[Flaw::ForceWhileRunning],
        &[Need::Force, Need::OneCluster],
    ),
    (
        "ran-ignored",
        "a copy that has what no image has is taken for a superseded one",
        &["DivergedIsMarked"],
        &[Flaw::RanIgnored],
        &[Need::Force, Need::OneCluster],
    ),
    (
        "force-for-any-epoch",
        "a ForceRelease of an earlier epoch ends a later one",
        &["ForceIsExact"],
        &[Flaw::ForceForAnyEpoch],
        &[Need::Force],
    ),
];

const STUCK: &[Row] = &[
    (
        "nothing-is-stopped",
        "a syncer that leaves tells nothing to stop, and waits for it",
        &["RevokeEnds"],
        &[Flaw::NothingIsStopped],
        &[],
    ),
    (
        "always-forced",
        "a ForceRelease of any epoch holds back every permit",
        &["GrantRuns"],
        &[Flaw::AlwaysForced],
        &[],
    ),
    (
        "wish-ignored",
        "the namespace stays where it is, whatever is wished",
        &["WishIsMet"],
        &[Flaw::WishIgnored],
        &[],
    ),
    (
        "never-answers",
        "a ForceRelease that was done stays pending",
        &["ForceIsAnswered"],
        &[Flaw::NeverAnswers],
        &[Need::Force, Need::OneCluster],
    ),
    (
        "refuses-from-cache",
        "a ForceRelease is refused because the cache does not show its epoch yet",
        &["GrantRuns"],
        &[Flaw::RefusesFromCache],
        &[Need::Force, Need::OneCluster],
    ),
];

impl World {
    /// The least world in which a mistake shows: faults that it does not need only hide it.
    fn flawed_as(&self, flaws: &'static [Flaw], needs: &[Need]) -> World {
        let needs = |need: Need| needs.contains(&need);
        World {
            extent: Extent {
                clusters: if needs(Need::OneCluster) { 1 } else { self.extent.clusters.max(2) },
                epochs: self.extent.epochs.max(2),
                writes: self.extent.writes.max(1),
            },
            claims: if needs(Need::TwoClaims) { 2 } else { 1 },
            force: needs(Need::Force),
            relist: needs(Need::Relist),
            crash: needs(Need::Crash) || needs(Need::Relist),
            two_syncers: needs(Need::TwoSyncers),
            unfit: needs(Need::Unfit),
            slow: needs(Need::Slow),
            lag: true,
            partition: true,
            lost_replies: true,
            // What is stale in any number is kept out of a world that must come to rest.
            faults: None,
            flaws,
        }
    }

    pub(super) fn flawed(&self) -> Vec<Mutant<World>> {
        let mutant = |(name, sentence, breaks, flaws, needs): &Row| {
            Mutant::new(*name, *sentence, breaks, self.flawed_as(flaws, needs))
        };
        let stuck = |row: &Row| {
            let mut mutant = mutant(row);
            // Two faults are enough to be stuck.
            mutant.model.faults = self.faults.map(|faults| faults.max(2));
            mutant
        };
        let mut mutants: Vec<_> = WRONG.iter().map(mutant).collect();
        if self.faults.is_some() {
            mutants.extend(STUCK.iter().map(stuck));
        }
        mutants
    }
}
