//! Forgets snapshots and removes what nothing refers to any more.

use crate::backup::{MOVES, PATH, VOLSYNC};
use crate::failure::{Failure, Reason};
use crate::guarded;
use crate::keep::Keep;
use crate::lock::Want;
use crate::repository::Repository;
use crate::settings::Settings;
use crate::watch::Watch;
use jiff::{Timestamp, Zoned};
use rustic_core::repofile::{SnapshotFile, SnapshotId};
use rustic_core::{LimitOption, PruneOptions, PrunePlan};

/// The host of snapshots that an earlier design wrote before their real ones. Nothing restores them.
const PARTIAL: &str = "interlock-partial";

/// What is tidied, and how.
#[derive(Debug, Clone, Default)]
pub struct Tidy {
    /// Which of VolSync's snapshots stay.
    pub keep: Keep,
    /// Snapshots that stay whatever the policy says, by their ids or beginnings of them.
    pub pinned: Vec<String>,
    /// Whether what nothing refers to any more is removed too.
    pub prune: bool,
    /// Whether locks that restic itself calls stale are removed first.
    pub unlock: bool,
}

/// The snapshots that earlier moves of a claim left, and that no move needs any more.
#[derive(Debug, Clone, Default)]
pub struct LeftByMoves {
    /// The claim, as it is in their tags.
    pub claim: String,
    /// Those of earlier epochs go. Whoever took later ones may start from them.
    pub before_epoch: u64,
    /// Snapshots that stay all the same, by their ids or beginnings of them.
    pub pinned: Vec<String>,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tidied {
    /// The ids of the snapshots that are no more.
    pub forgotten: Vec<String>,
    /// How many snapshots are left, of whomever.
    pub kept: usize,
    /// How many bytes were removed from the repository.
    pub freed: u64,
}

/// Forgets by policy, and prunes. If the repository turns out to be damaged, nothing is forgotten.
pub fn tidy(settings: &Settings, job: &Tidy, watch: &Watch) -> Result<Tidied, Failure> {
    guarded(|| {
        let repository = Repository::open(settings, watch)?;
        let _lock = repository.lock(Want::Exclusive, job.unlock)?;
        run(&repository, |snapshots| chosen(snapshots, job), job.prune, watch)
    })
}

/// Forgets what earlier moves of a claim left, and prunes.
pub fn tidy_moves(
    settings: &Settings,
    left: &LeftByMoves,
    watch: &Watch,
) -> Result<Tidied, Failure> {
    guarded(|| {
        let repository = Repository::open(settings, watch)?;
        let _lock = repository.lock(Want::Exclusive, false)?;
        run(&repository, |snapshots| Ok(left.chosen(snapshots)), true, watch)
    })
}

/// Removes locks that are stale or whose holders are provably dead; tells how many.
pub fn unlock(settings: &Settings) -> Result<usize, Failure> {
    guarded(|| Repository::open(settings, &Watch::default())?.locks().sweep(true))
}

fn run(
    repository: &Repository,
    chosen: impl FnOnce(&[SnapshotFile]) -> Result<Vec<SnapshotId>, Failure>,
    prunes: bool,
    watch: &Watch,
) -> Result<Tidied, Failure> {
    watch.still_wanted()?;
    let snapshots = repository.snapshots()?;
    // Without any snapshot a prune would remove everything. Nobody means that, and a server that loses
    // a listing must not lead to it.
    if snapshots.is_empty() {
        return Ok(Tidied::default());
    }
    let forgotten = chosen(&snapshots)?;
    // Before anything is removed: this goes through all that stays, and fails if any of it is missing.
    let plan = match prunes {
        true => Some(planned(repository, &forgotten)?),
        false => None,
    };
    watch.still_wanted()?;
    repository
        .inner
        .delete_snapshots(&forgotten)
        .map_err(|error| repository.bridge.failure(&error))?;
    let mut tidied = Tidied {
        kept: snapshots.len() - forgotten.len(),
        forgotten: forgotten.iter().map(|id| id.to_hex().as_str().to_owned()).collect(),
        freed: 0,
    };
    if let Some((options, plan)) = plan {
        let size = plan.stats.size_sum();
        tidied.freed = size.remove + size.repackrm + plan.stats.size_unref;
        repository
            .inner
            .prune(&options, plan)
            .map_err(|error| repository.bridge.failure(&error))?;
    }
    Ok(tidied)
}

/// The snapshots that are being deleted: VolSync's by policy, and those that nobody restores.
fn chosen(snapshots: &[SnapshotFile], job: &Tidy) -> Result<Vec<SnapshotId>, Failure> {
    let ruled: Vec<&SnapshotFile> =
        snapshots.iter().filter(|snapshot| is_ruled(snapshot)).collect();
    let times: Vec<Zoned> = ruled.iter().map(|snapshot| snapshot.time.clone()).collect();
    let kept = job.keep.kept(&times, Timestamp::now())?;
    let by_policy = ruled.into_iter().zip(kept).filter(|(_, kept)| !kept).map(|(ruled, _)| ruled);
    let partial = snapshots.iter().filter(|snapshot| snapshot.hostname == PARTIAL);
    let gone = by_policy.chain(partial).filter(|snapshot| !is_pinned(snapshot, &job.pinned));
    Ok(gone.map(|snapshot| snapshot.id).collect())
}

fn is_pinned(snapshot: &SnapshotFile, pinned: &[String]) -> bool {
    let id = snapshot.id.to_hex();
    pinned.iter().any(|pin| !pin.is_empty() && id.as_str().starts_with(pin.as_str()))
}

impl LeftByMoves {
    /// The snapshots that are being deleted. One that does not say which claim and epoch it is of is left alone.
    fn chosen(&self, snapshots: &[SnapshotFile]) -> Vec<SnapshotId> {
        let is_left = |snapshot: &&SnapshotFile| {
            let tagged = |key: &str| {
                let mut tags = (&snapshot.tags).into_iter();
                tags.find_map(|tag| tag.strip_prefix(key)?.strip_prefix('='))
            };
            let epoch = tagged("epoch").and_then(|epoch| epoch.parse::<u64>().ok());
            snapshot.hostname == MOVES
                && !self.claim.is_empty()
                && tagged("claim") == Some(self.claim.as_str())
                && epoch.is_some_and(|epoch| epoch < self.before_epoch)
                && !is_pinned(snapshot, &self.pinned)
        };
        snapshots.iter().filter(is_left).map(|snapshot| snapshot.id).collect()
    }
}

/// Whether a snapshot has the shape of VolSync's. Others in the repository are not ours to forget.
pub(crate) fn is_ruled(snapshot: &SnapshotFile) -> bool {
    snapshot.hostname == VOLSYNC && snapshot.paths.into_iter().eq([PATH])
}

fn planned(
    repository: &Repository,
    forgotten: &[SnapshotId],
) -> Result<(PruneOptions, PrunePlan), Failure> {
    let mut options = PruneOptions::default();
    // Nobody else is here, by our exclusive lock; and what is only marked, restic does not understand.
    options.instant_delete = true;
    options.max_repack = LimitOption::Unlimited;
    options.max_unused = LimitOption::Percentage(5);
    options.ignore_snaps = forgotten.to_vec();
    match repository.inner.prune_plan(&options) {
        Ok(plan) => Ok((options, plan)),
        Err(error) => {
            let failure = repository.bridge.failure(&error);
            let reason = match failure.reason {
                Reason::MoverFailed => Reason::RepositoryDamaged,
                reason => reason,
            };
            Err(Failure::new(reason, format!("{}; nothing was forgotten", failure.message)))
        }
    }
}
