//! The rules that make a move safe, and each of them broken on purpose.

use super::Placement;
use super::hub::Extent;
use interlock_checker::Mutant;

/// What the protocol insists on. All of it holds in the protocol; a mutant gives one thing up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// `NeedAck`: nobody is granted what another still owns.
    pub need_ack: bool,
    /// `DurableRel`: a crash does not forget which epochs are closed.
    pub durable_rel: bool,
    /// `CloseFirst`: the final copy is taken of an epoch that can no longer start.
    pub close_first: bool,
    /// `FinalSyncOn`: a last copy is taken before the release.
    pub final_sync: bool,
    /// `PermitFresh`: a permit reads the hub, not the syncer's cache.
    pub permit_fresh: bool,
    /// `PermitSeesForce`: a permit is refused when a ForceRelease names this owner and epoch.
    pub permit_sees_force: bool,
    /// `BootNeedsPermit`: a node that comes back does not restart what it ran.
    pub boot_needs_permit: bool,
    /// `ForceBound`: a ForceRelease counts for the epoch it names only.
    pub force_bound: bool,
    /// `Truthful`: who asks for a ForceRelease has seen that the owner is powered off.
    pub truthful: bool,
    /// `FillMarked`: a volume is used when it is filled, not when it exists.
    pub fill_marked: bool,
    /// `StartChecksRel`: a start looks at the closed epoch once more.
    pub start_checks_rel: bool,
    /// `StopFirst`: an epoch is closed after its processes are seen to have stopped.
    pub stop_first: bool,
    /// `PinsComplete`: the release names the images in the same write.
    pub pins_complete: bool,
    /// A stop also ends what the node would restart; `Stop` and its `was[c] # 0`.
    pub stop_ends_restarts: bool,
    /// A ForceRelease ends a grant that was never revoked; `Fence` and its `"Granted"`.
    pub fence_ends_grants: bool,
    /// Each grant has a new epoch; `Grant` and its `hub.e + 1`.
    pub new_epochs: bool,
    /// Writes are given up by a fence only; `must` stays as it is in `Ack`.
    pub loss_needs_fence: bool,
    /// Off in the protocol; on in the stage that ships, where the permit is a record at the cluster
    /// that a crash keeps and a step takes back, and what was never filled needs no copy.
    pub permit_on_record: bool,
}

impl Rules {
    /// The protocol.
    pub const ALL: Rules = Rules {
        need_ack: true,
        durable_rel: true,
        close_first: true,
        final_sync: true,
        permit_fresh: true,
        permit_sees_force: true,
        boot_needs_permit: true,
        force_bound: true,
        truthful: true,
        fill_marked: true,
        start_checks_rel: true,
        stop_first: true,
        pins_complete: true,
        stop_ends_restarts: true,
        fence_ends_grants: true,
        new_epochs: true,
        loss_needs_fence: true,
        permit_on_record: false,
    };
}

const ALL: Rules = Rules::ALL;

impl Placement {
    /// Two clusters and two epochs are the least in which anything can go wrong. Most mutants need
    /// the faults too, up to three: power lost, ForceRelease asked for, the past listed.
    fn broken(&self, rules: Rules) -> Placement {
        Placement {
            extent: Extent {
                clusters: self.extent.clusters.max(2),
                epochs: self.extent.epochs.max(2),
                writes: self.extent.writes.max(1),
            },
            force: true,
            relist: true,
            faults: self.faults.map(|faults| faults.max(3)),
            rules,
        }
    }

    /// What is lost in a planned move is found without power loss and ForceRelease, and far sooner.
    fn broken_when_planned(&self, rules: Rules) -> Placement {
        Placement { force: false, ..self.broken(rules) }
    }

    pub(super) fn broken_rules(&self) -> Vec<Mutant<Placement>> {
        let mut mutants = self.two_owners();
        mutants.extend(self.broken_force());
        mutants.extend(self.lost_writes());
        if self.faults.is_some() {
            mutants.extend(self.stuck_moves());
        }
        mutants
    }

    fn two_owners(&self) -> Vec<Mutant<Placement>> {
        vec![
            Mutant::new(
                "grant-without-release",
                "the namespace is granted to the next cluster while another still owns it",
                &["OnlyTheOwnerRuns"],
                self.broken(Rules { need_ack: false, ..ALL }),
            ),
            Mutant::new(
                "released-forgotten",
                "a crash forgets the closed epoch, and the permit trusts the cache: each alone \
                 would cover for the other",
                &["ReleasedIsStill"],
                self.broken_when_planned(Rules { durable_rel: false, permit_fresh: false, ..ALL }),
            ),
            Mutant::new(
                "released-not-durable",
                "a crash forgets the closed epoch",
                &["ReleasedNeverFalls"],
                self.broken_when_planned(Rules { durable_rel: false, ..ALL }),
            ),
            Mutant::new(
                "epoch-reused",
                "a new owner is granted the epoch of the one before",
                &["EpochOnlyGrows"],
                // The past is kept by epoch, so it could not be kept here.
                Placement {
                    relist: false,
                    ..self.broken_when_planned(Rules { new_epochs: false, ..ALL })
                },
            ),
            Mutant::new(
                "start-ignores-released",
                "a start that was permitted goes ahead although the epoch was closed since",
                &["ReleasedIsStill"],
                self.broken_when_planned(Rules { start_checks_rel: false, ..ALL }),
            ),
            Mutant::new(
                "close-before-stop",
                "the epoch is closed, and so released, while its processes still run",
                &["ReleasedIsStill"],
                self.broken_when_planned(Rules { stop_first: false, ..ALL }),
            ),
        ]
    }

    fn broken_force(&self) -> Vec<Mutant<Placement>> {
        let more_epochs = |model: Placement| Placement {
            extent: Extent { epochs: model.extent.epochs.max(3), ..model.extent },
            ..model
        };
        vec![
            Mutant::new(
                "permit-from-cache",
                "a permit trusts the syncer's cache, which shows the past and no ForceRelease",
                &["ReleasedIsStill"],
                self.broken(Rules { permit_fresh: false, permit_sees_force: false, ..ALL }),
            ),
            Mutant::new(
                "permit-ignores-force",
                "a cluster that came back is permitted between the ForceRelease and the fence",
                &["ReleasedIsStill"],
                self.broken(Rules { permit_sees_force: false, ..ALL }),
            ),
            Mutant::new(
                "restart-at-boot",
                "when power returns, the node restarts what it ran, without a permit",
                &["ReleasedIsStill"],
                self.broken(Rules { boot_needs_permit: false, ..ALL }),
            ),
            Mutant::new(
                "force-for-any-epoch",
                "a ForceRelease of an earlier epoch ends a later one, while that runs",
                &["ReleasedIsStill", "ForceIsExact"],
                more_epochs(self.broken(Rules { force_bound: false, ..ALL })),
            ),
            Mutant::new(
                "force-while-running",
                "a ForceRelease is asked for although the owner is not powered off",
                &["ReleasedIsStill"],
                self.broken(Rules { truthful: false, ..ALL }),
            ),
        ]
    }

    fn lost_writes(&self) -> Vec<Mutant<Placement>> {
        vec![
            Mutant::new(
                "start-unfilled",
                "the workload starts when the volume exists, not when it is filled",
                &["NoLoss"],
                self.broken_when_planned(Rules { fill_marked: false, ..ALL }),
            ),
            Mutant::new(
                "copy-before-close",
                "the final copy is taken while the epoch may still start again and write",
                &["NoLoss"],
                self.broken_when_planned(Rules { close_first: false, ..ALL }),
            ),
            Mutant::new(
                "no-final-copy",
                "the namespace is released with whatever the last background copy had",
                &["NoLoss"],
                self.broken_when_planned(Rules { final_sync: false, ..ALL }),
            ),
            Mutant::new(
                "release-without-pins",
                "the release does not name the new images, so the old ones are filled in",
                &["NoLoss"],
                self.broken_when_planned(Rules { pins_complete: false, ..ALL }),
            ),
            Mutant::new(
                "loss-kept-quiet",
                "a release without a final copy gives up the writes that its images lack",
                &["LossIsDeclared"],
                self.broken_when_planned(Rules {
                    final_sync: false,
                    loss_needs_fence: false,
                    ..ALL
                }),
            ),
        ]
    }

    fn stuck_moves(&self) -> Vec<Mutant<Placement>> {
        // Two faults are enough to be stuck, and far quicker to search for lassos.
        let stuck = |rules| Placement {
            faults: self.faults.map(|faults| faults.max(2)),
            ..self.broken(rules)
        };
        vec![
            Mutant::new(
                "restarts-never-stopped",
                "after a power loss nobody ends what the node would restart, so nothing closes",
                &["RevokeEnds"],
                stuck(Rules { stop_ends_restarts: false, ..ALL }),
            ),
            Mutant::new(
                "force-waits-for-revoke",
                "a ForceRelease blocks the permit of a grant that it does not end",
                &["GrantRuns"],
                stuck(Rules { fence_ends_grants: false, ..ALL }),
            ),
        ]
    }
}
