//! What the process runtime of a cluster does next about one pod. First matching rule wins.
//!
//! A start takes the lock and only then looks at the permit and at the pod; a syncer that leaves
//! withdraws the permit and only then looks at the locks, and a pod is deleted only while its lock is free.
//! So one of the two always sees the other.
//!
//! In a namespace that is not placed no permit is needed; that it is not placed, and not being deleted, is read
//! live, after the lock was taken, like a permit. A lock goes by the name of its pod, so a process whose pod
//! was deleted by force keeps the next pod of that name from starting. It is stopped when a live read shows
//! that its pod is gone.
//!
//! A pod has one process at a time: its init containers run one after another, and then its container. Each start is
//! one of its own, with lock and permit. Which container the pod is at follows from the records of the machine, so a
//! crash between an end and the next start loses nothing.

pub use super::facts::*;
use super::tokens::Tokens;
use crate::syncer::tenancy::{Epoch, Running};
use serde::Serialize;
use std::time::Duration;

/// The first wait before a restart; each is twice the one before.
const FIRST_BACK_OFF_SECONDS: u64 = 10;
/// The longest.
const LONGEST_BACK_OFF_SECONDS: u64 = 300;
/// One that ran for longer starts afresh.
const STEADY: Duration = Duration::from_secs(600);

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Ask the machine for a lock of a pod that is not in the cache.
    AskForStray,
    /// Ask the machine what it knows of the pod.
    AskMachine,
    /// Ask the machine which process has the lock of the pod.
    AskForHolder,
    /// See whether the pod of the process that has the lock is gone.
    ReadWhetherOrphan,
    /// Ask that process to stop.
    TerminateOrphan,
    /// Make it stop.
    KillOrphan,
    /// Put our finalizer on the pod.
    PutFinalizer,
    /// Take the lock.
    TakeLock,
    /// See whether the namespace permits it.
    ReadPermit,
    /// Start the command.
    Start(Epoch),
    /// The same, and tell which fields of the pod have no effect.
    StartAndTell(Epoch),
    /// Have a token issued into its file.
    WriteToken,
    /// Remove all files with tokens.
    RemoveTokens,
    /// Let go of a lock that nobody needs.
    LetGo,
    /// Let go of it because the pod cannot be started after all.
    LetGoUnstarted,
    /// Let go of one that was taken for a pod which is not there.
    LetGoOfStray,
    /// Ask it to stop.
    Terminate,
    /// Ask it to stop because this probe failed.
    Restart(FailedProbe),
    /// Make it stop.
    Kill,
    /// Say this in the pod's status.
    Report(Report),
    /// Say in the pod's status why it is not started.
    ReportProblem,
    /// It is gone for certain: take our finalizer off the pod.
    TakeFinalizerOff,
    /// It is gone for certain: delete the pod, which has no finalizer of ours.
    DeletePod,
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Why {
    /// The pod is not in the cache.
    NotInTheCache,
    /// It runs.
    Running,
    /// It ran.
    Finished,
    /// Another process has the volumes.
    LockTaken,
    /// The namespace does not permit it.
    NotPermitted,
    /// The namespace is not there, or being deleted.
    NamespaceCloses,
    /// The namespace is placed, and the pod was made neither by the syncer nor by a maker.
    NotOurs,
    /// The pod was made in another epoch than the one that may run.
    OtherEpoch,
    /// No process can be made of it, and nothing is to be said about that.
    CannotStart,
    /// A token that it needs was not issued.
    TokenNotIssued,
    /// It may still stop by itself.
    Stopping,
    /// It was killed, and the kernel does not let it go.
    WillNotDie,
    /// It starts again after this time.
    BackingOff(Duration),
}

/// The epoch of what needs no permit.
pub const UNPLACED: Epoch = 0;

/// The epoch in which a pod may start, or why it may not.
///
/// A pod runs in its own epoch only: a maker that has not heard that an epoch was closed may still create a pod,
/// and that pod must not start in a later one. What belongs to a grant needs a permit, whatever the namespace says.
pub fn may_start(home: Home, stamp: Stamp) -> Result<Epoch, Why> {
    match (home, stamp) {
        (Home::Closed, _) => Err(Why::NamespaceCloses),
        (Home::Unplaced, Stamp::None) => Ok(UNPLACED),
        (Home::Unplaced, Stamp::Syncer | Stamp::Epoch(_)) => Err(Why::NotPermitted),
        (Home::Placed { .. }, Stamp::None) => Err(Why::NotOurs),
        (Home::Placed { running: Running::Permitted(epoch), released }, _) if released < epoch => {
            match stamp {
                Stamp::Epoch(of) if of != epoch => Err(Why::OtherEpoch),
                Stamp::Epoch(_) | Stamp::Syncer | Stamp::None => Ok(epoch),
            }
        }
        (Home::Placed { .. }, Stamp::Syncer | Stamp::Epoch(_)) => Err(Why::NotPermitted),
    }
}

/// Whether a process serves. What was reported last holds until a probe has found something: a restart of
/// the agent is no reason to take traffic from anybody.
pub fn health(probing: &Probing) -> Health {
    let is_started = match probing.startup {
        Finding::NoProbe | Finding::Success => true,
        Finding::Nothing | Finding::Failure => probing.was.is_started,
    };
    let is_ready = match probing.readiness {
        Finding::NoProbe | Finding::Success => true,
        Finding::Nothing => probing.was.is_ready,
        Finding::Failure => false,
    };
    Health { is_started, is_ready: is_ready && is_started }
}

/// The probe for which a process is restarted.
fn failed(probing: &Probing) -> Option<FailedProbe> {
    if probing.startup == Finding::Failure {
        return Some(FailedProbe::Startup);
    }
    let is_dead = probing.liveness == Finding::Failure && health(probing).is_started;
    is_dead.then_some(FailedProbe::Liveness)
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    match facts {
        Facts::NoPod { stray: Stray::NotAsked, .. } => Decision::AskForStray,
        Facts::NoPod { stray: Stray::Held, .. } => Decision::LetGoOfStray,
        Facts::NoPod { stray: Stray::None, holder } => match holder {
            Holder::NotAsked => Decision::AskForStray,
            Holder::None => Decision::Nothing(Why::NotInTheCache),
            Holder::Process(orphan) => stop_orphan(orphan),
        },
        Facts::NotAsked => Decision::AskMachine,
        Facts::Asked(facts) if facts.is_stray_lock_held => Decision::LetGoOfStray,
        Facts::Asked(facts) => match facts.pod {
            Pod::Leaving => stop(facts),
            Pod::Wanted | Pod::Finished => run(facts),
        },
    }
}

/// A process that has the lock, and whose pod the cache does not show. A cache may be behind, so its pod is
/// looked for first; the uid of a pod that is gone never comes back.
fn stop_orphan(orphan: &Orphan) -> Decision {
    match (orphan.is_pod_gone, orphan.process) {
        (None, _) => Decision::ReadWhetherOrphan,
        (Some(false), _) | (_, Process::None | Process::Gone(_)) => {
            Decision::Nothing(Why::LockTaken)
        }
        (Some(true), Process::Lives) => Decision::TerminateOrphan,
        (Some(true), Process::Stopping) if orphan.is_grace_over => Decision::KillOrphan,
        (Some(true), Process::Stopping) => Decision::Nothing(Why::Stopping),
        (Some(true), Process::Killed) => Decision::Nothing(Why::WillNotDie),
    }
}

/// Somebody else has the lock: another runtime that is about to start the pod, or a process of an earlier
/// pod of its name.
fn lock_taken(facts: &Asked) -> Decision {
    match &facts.holder {
        Holder::NotAsked => Decision::AskForHolder,
        Holder::None => Decision::Nothing(Why::LockTaken),
        Holder::Process(orphan) => stop_orphan(orphan),
    }
}

fn stop(facts: &Asked) -> Decision {
    match facts.process {
        Process::Lives => Decision::Terminate,
        Process::Stopping if facts.is_grace_over => Decision::Kill,
        Process::Stopping => Decision::Nothing(Why::Stopping),
        Process::Killed => Decision::Nothing(Why::WillNotDie),
        Process::None | Process::Gone(_) => match facts.lock {
            Lock::Mine => Decision::LetGo,
            // Another runtime may be about to start it: a pod that went now would leave a process that
            // nobody stops.
            Lock::Taken => lock_taken(facts),
            Lock::Free if facts.has_token_files => Decision::RemoveTokens,
            // First our finalizer, then the pod.
            Lock::Free if facts.has_finalizer => Decision::TakeFinalizerOff,
            Lock::Free => Decision::DeletePod,
        },
    }
}

fn run(facts: &Asked) -> Decision {
    let report = report(facts);
    if let Some(report) = report.filter(|_| facts.reported != report) {
        return Decision::Report(report);
    }
    match facts.process {
        Process::Lives => live(facts),
        Process::Stopping if facts.is_grace_over => Decision::Kill,
        Process::Stopping => Decision::Nothing(Why::Stopping),
        Process::Killed => Decision::Nothing(Why::WillNotDie),
        Process::Gone(exit) => match restart(&exit) {
            Restart::Never if facts.lock == Lock::Mine => Decision::LetGo,
            Restart::Never => finished(facts),
            Restart::In(Duration::ZERO) => start(facts),
            Restart::In(left) => Decision::Nothing(Why::BackingOff(left)),
        },
        Process::None if facts.pod == Pod::Finished => finished(facts),
        Process::None => start(facts),
    }
}

fn live(facts: &Asked) -> Decision {
    match failed(&facts.probing) {
        Some(probe) => Decision::Restart(probe),
        // Somebody took it off: a pod that was deleted then would leave its process behind.
        None if !facts.has_finalizer => Decision::PutFinalizer,
        None if facts.tokens == Tokens::Due => Decision::WriteToken,
        None => Decision::Nothing(Why::Running),
    }
}

/// It is not started again, so nobody reads its files any more.
fn finished(facts: &Asked) -> Decision {
    match facts.has_token_files {
        true => Decision::RemoveTokens,
        false => Decision::Nothing(Why::Finished),
    }
}

/// What the status of a pod is to say of its process; None: nothing.
fn report(facts: &Asked) -> Option<Report> {
    match facts.process {
        Process::None => is_between(facts).then_some(Report::Initializing),
        Process::Lives | Process::Stopping | Process::Killed if facts.stage.is_init => {
            Some(Report::Initializing)
        }
        Process::Lives | Process::Stopping | Process::Killed => {
            Some(Report::Running(health(&facts.probing)))
        }
        Process::Gone(exit) => Some(match restart(&exit) {
            Restart::In(_) => Report::StartsAgain(back_off(&exit).as_secs()),
            Restart::Never if exit.is_success => Report::Succeeded,
            Restart::Never => Report::Failed,
        }),
    }
}

/// Whether an init container is done, and the next container can be started. One that cannot is reported with the
/// reason; and while somebody else has the lock, the next container may be started already.
fn is_between(facts: &Asked) -> bool {
    facts.stage.has_begun
        && facts.pod == Pod::Wanted
        && facts.lock != Lock::Taken
        && facts.description == Description::Complete
}

/// What follows an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    /// Nothing.
    Never,
    /// Another start, after this time.
    In(Duration),
}

fn restart(exit: &Exit) -> Restart {
    let is_over = match exit.policy {
        RestartPolicy::Never => true,
        RestartPolicy::OnFailure => exit.is_success,
        RestartPolicy::Always => false,
    };
    if is_over {
        return Restart::Never;
    }
    Restart::In(back_off(exit).saturating_sub(exit.ago))
}

/// How long a pod waits after an exit. The first restart is at once.
pub(super) fn back_off(exit: &Exit) -> Duration {
    if exit.restarts == 0 || exit.ran > STEADY {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(exit.restarts - 1).unwrap_or(u32::MAX).min(16);
    let seconds = FIRST_BACK_OFF_SECONDS << doublings;
    Duration::from_secs(seconds.min(LONGEST_BACK_OFF_SECONDS))
}

fn start(facts: &Asked) -> Decision {
    match facts.lock {
        Lock::Free => return before_lock(facts),
        Lock::Taken => return lock_taken(facts),
        Lock::Mine => {}
    }
    let Some(permit) = facts.permit else { return Decision::ReadPermit };
    match may_start(permit.home, permit.stamp) {
        Ok(epoch) if permit.is_pod_there => permitted(facts, epoch),
        Ok(_) | Err(_) => Decision::LetGo,
    }
}

/// The lock is taken only for a pod that can be started. What a process cannot have is reported even
/// before anything is permitted: it will not come by itself.
fn before_lock(facts: &Asked) -> Decision {
    let is_reported = match (facts.description, may_start(facts.home, facts.stamp)) {
        (_, Err(why @ Why::NotOurs)) => return Decision::Nothing(why),
        (Description::NotSupported { is_reported }, _) => is_reported,
        (_, Err(why)) => return Decision::Nothing(why),
        // First what keeps the pod until its process is gone.
        (Description::Complete, Ok(_)) if !facts.has_finalizer => return Decision::PutFinalizer,
        // Before the lock, which nobody is to wait for while a server does not answer.
        (Description::Complete, Ok(_)) if facts.tokens == Tokens::Due => {
            return Decision::WriteToken;
        }
        (Description::Complete, Ok(_)) => return Decision::TakeLock,
        (Description::Missing { is_reported }, Ok(_)) => is_reported,
    };
    match facts.process {
        Process::None if !is_reported => Decision::ReportProblem,
        _ if matches!(facts.tokens, Tokens::Failing { .. }) => {
            Decision::Nothing(Why::TokenNotIssued)
        }
        // The status of a process that ended says how it ended; it is not said over.
        Process::None | Process::Lives | Process::Stopping | Process::Killed | Process::Gone(_) => {
            Decision::Nothing(Why::CannotStart)
        }
    }
}

/// What has no effect is reported once, with the first start of the pod.
fn permitted(facts: &Asked, epoch: Epoch) -> Decision {
    match (facts.description, facts.process) {
        (Description::Missing { .. } | Description::NotSupported { .. }, _) => {
            Decision::LetGoUnstarted
        }
        (Description::Complete, Process::None)
            if facts.has_fields_without_effect && !facts.stage.has_begun =>
        {
            Decision::StartAndTell(epoch)
        }
        (Description::Complete, _) => Decision::Start(epoch),
    }
}

#[cfg(test)]
mod tests;
