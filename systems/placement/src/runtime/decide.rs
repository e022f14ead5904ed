//! What the process runtime of a cluster does next about one pod. First matching rule wins.
//!
//! A start takes the lock and only then looks at the permit and at the pod; a syncer that leaves
//! withdraws the permit and only then looks at the locks, and a pod is deleted only while its lock is free.
//! So one of the two always sees the other.

use super::tokens::Tokens;
use crate::syncer::tenancy::{Epoch, Running};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The first wait before a restart; each is twice the one before.
const FIRST_BACK_OFF_SECONDS: u64 = 10;
/// The longest.
const LONGEST_BACK_OFF_SECONDS: u64 = 300;
/// One that ran for longer starts afresh.
const STEADY: Duration = Duration::from_secs(600);

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Facts {
    /// The pod is not in the cache: all that can be left of it is a lock.
    NoPod(Stray),
    /// There is a pod, and nobody asked the machine about it.
    NotAsked,
    /// There is a pod, and the machine has answered.
    Asked(Asked),
}

/// Whether a lock is in our hands that was taken for a pod of some name which is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Stray {
    /// Nobody asked.
    NotAsked,
    /// There is none.
    None,
    /// There is one.
    Held,
}

/// A pod in the cache, and what the machine says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Asked {
    /// The pod, as the cache shows it.
    pub pod: Pod,
    /// Whether our finalizer is on it.
    pub has_finalizer: bool,
    /// Its process, as the machine shows it.
    pub process: Process,
    /// The lock of its volumes.
    pub lock: Lock,
    /// Whether the cache shows a permit: without one it is not worth taking the lock.
    pub is_permit_seen: bool,
    /// Whether a lock is in our hands that was taken for a pod of this name which is not there: by its
    /// uid, so one that has its name is another.
    pub is_stray_lock_held: bool,
    /// What a live read showed; None: not read since the lock was taken.
    pub permit: Option<Permit>,
    /// Whether a process can be made of the pod.
    pub description: Description,
    /// Whether the pod says what means nothing to a process.
    pub has_fields_without_effect: bool,
    /// What the pod's status says of its process; None: something else, or nothing.
    pub reported: Option<Report>,
    /// Whether the time that a stop may take is over.
    pub is_grace_over: bool,
    /// The tokens that it wants.
    pub tokens: Tokens,
    /// Whether the machine has files with tokens for it.
    pub has_token_files: bool,
}

/// A pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Pod {
    /// It is to run.
    Wanted,
    /// It ran, and is not to run again.
    Finished,
    /// It is asked to stop.
    Leaving,
}

/// The process of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Process {
    /// There was none.
    None,
    /// It lives.
    Lives,
    /// It was asked to stop, and lives.
    Stopping,
    /// It was killed, and lives: the kernel does not let it go.
    Killed,
    /// It is gone, with everything that it started.
    Gone(Exit),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Exit {
    /// Whether it said that all went well.
    pub is_success: bool,
    /// When the pod wants another start.
    pub policy: RestartPolicy,
    /// How often the pod was started before this one.
    pub restarts: u64,
    /// How long it ran.
    pub ran: Duration,
    /// How long ago it ended.
    pub ago: Duration,
}

/// When a pod wants another start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum RestartPolicy {
    /// After every exit.
    Always,
    /// After one that was no success.
    OnFailure,
    /// Never.
    Never,
}

/// The lock of a pod's volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Lock {
    /// No process has the lock.
    Free,
    /// It is ours.
    Mine,
    /// Somebody else has it.
    Taken,
}

/// What the namespace of a pod permits, and whether there is a pod to permit it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Permit {
    /// Whether the pod is there, and not asked to stop.
    pub is_pod_there: bool,
    /// What may run.
    pub running: Running,
    /// The highest epoch that was closed.
    pub released: Epoch,
}

/// Whether a process can be made of a pod, for the epoch that may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Description {
    /// It can; of one that lives it was.
    Complete,
    /// Something that it needs is not there yet.
    Missing {
        /// Whether the pod's status says so.
        is_reported: bool,
    },
    /// It asks for what a process cannot have.
    NotSupported {
        /// Whether the pod's status says so.
        is_reported: bool,
    },
}

/// What the status of a pod says of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Report {
    /// It runs.
    Running,
    /// It ended, and starts again so many seconds after that.
    StartsAgain(u64),
    /// It ended well, and does not start again.
    Succeeded,
    /// It did not end well, and does not start again.
    Failed,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Ask the machine for a lock of a pod that is not in the cache.
    AskForStray,
    /// Ask the machine what it knows of the pod.
    AskMachine,
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

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    match facts {
        Facts::NoPod(Stray::NotAsked) => Decision::AskForStray,
        // To let go is always safe: a start without the lock comes to nothing.
        Facts::NoPod(Stray::Held) => Decision::LetGoOfStray,
        Facts::NoPod(Stray::None) => Decision::Nothing(Why::NotInTheCache),
        Facts::NotAsked => Decision::AskMachine,
        Facts::Asked(facts) if facts.is_stray_lock_held => Decision::LetGoOfStray,
        Facts::Asked(facts) => match facts.pod {
            Pod::Leaving => stop(facts),
            Pod::Wanted | Pod::Finished => run(facts),
        },
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
            // Another runtime is about to start it: a pod that went now would leave a process that
            // nobody stops.
            Lock::Taken => Decision::Nothing(Why::LockTaken),
            Lock::Free if facts.has_token_files => Decision::RemoveTokens,
            // First our finalizer, then the pod.
            Lock::Free if facts.has_finalizer => Decision::TakeFinalizerOff,
            Lock::Free => Decision::DeletePod,
        },
    }
}

fn run(facts: &Asked) -> Decision {
    let report = report(facts.process);
    if let Some(report) = report.filter(|_| facts.reported != report) {
        return Decision::Report(report);
    }
    match facts.process {
        Process::Lives if facts.tokens == Tokens::Due => Decision::WriteToken,
        Process::Lives | Process::Stopping | Process::Killed => Decision::Nothing(Why::Running),
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

/// It is not started again, so nobody reads its tokens any more.
fn finished(facts: &Asked) -> Decision {
    match facts.has_token_files {
        true => Decision::RemoveTokens,
        false => Decision::Nothing(Why::Finished),
    }
}

/// What the status of a pod is to say of its process; None: nothing.
fn report(process: Process) -> Option<Report> {
    match process {
        Process::None => None,
        Process::Lives | Process::Stopping | Process::Killed => Some(Report::Running),
        Process::Gone(exit) => Some(match restart(&exit) {
            Restart::In(_) => Report::StartsAgain(back_off(&exit).as_secs()),
            Restart::Never if exit.is_success => Report::Succeeded,
            Restart::Never => Report::Failed,
        }),
    }
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
        Lock::Taken => return Decision::Nothing(Why::LockTaken),
        Lock::Mine => {}
    }
    let Some(permit) = facts.permit else { return Decision::ReadPermit };
    match permit.running {
        _ if !permit.is_pod_there => Decision::LetGo,
        Running::Permitted(epoch) if permit.released < epoch => permitted(facts, epoch),
        Running::Permitted(_) | Running::Lapsed(_) | Running::Nothing => Decision::LetGo,
    }
}

/// The lock is taken only for a pod that can be started. What a process cannot have is reported even
/// before anything is permitted: it will not come by itself.
fn before_lock(facts: &Asked) -> Decision {
    let is_reported = match facts.description {
        // Before the lock, which nobody is to wait for while a server does not answer.
        Description::Complete if facts.is_permit_seen && facts.tokens == Tokens::Due => {
            return Decision::WriteToken;
        }
        Description::Complete if facts.is_permit_seen => return Decision::TakeLock,
        Description::Missing { is_reported } if facts.is_permit_seen => is_reported,
        Description::Complete | Description::Missing { .. } => {
            return Decision::Nothing(Why::NotPermitted);
        }
        Description::NotSupported { is_reported } => is_reported,
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

/// What has no effect is reported once, with the first start.
fn permitted(facts: &Asked, epoch: Epoch) -> Decision {
    match (facts.description, facts.process) {
        (Description::Missing { .. } | Description::NotSupported { .. }, _) => {
            Decision::LetGoUnstarted
        }
        (Description::Complete, Process::None) if facts.has_fields_without_effect => {
            Decision::StartAndTell(epoch)
        }
        (Description::Complete, _) => Decision::Start(epoch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISSING: Description = Description::Missing { is_reported: false };
    const NOT_SUPPORTED: Description = Description::NotSupported { is_reported: false };

    fn wanted(process: Process, lock: Lock) -> Asked {
        let permit = Permit { is_pod_there: true, running: Running::Permitted(3), released: 2 };
        Asked {
            pod: Pod::Wanted,
            has_finalizer: true,
            process,
            lock,
            is_permit_seen: true,
            is_stray_lock_held: false,
            permit: Some(permit).filter(|_| lock == Lock::Mine),
            description: Description::Complete,
            has_fields_without_effect: false,
            reported: report(process),
            is_grace_over: false,
            tokens: Tokens::None,
            has_token_files: false,
        }
    }

    fn exit(is_success: bool, policy: RestartPolicy) -> Exit {
        let (ran, ago) = (Duration::from_secs(5), Duration::from_secs(3600));
        Exit { is_success, policy, restarts: 0, ran, ago }
    }

    fn decided(facts: Asked) -> Decision {
        decide(&Facts::Asked(facts))
    }

    #[test]
    fn the_machine_is_asked_before_anything_is_decided() {
        for (facts, expected) in [
            (Facts::NoPod(Stray::NotAsked), Decision::AskForStray),
            (Facts::NoPod(Stray::None), Decision::Nothing(Why::NotInTheCache)),
            (Facts::NoPod(Stray::Held), Decision::LetGoOfStray),
            (Facts::NotAsked, Decision::AskMachine),
        ] {
            assert_eq!(decide(&facts), expected);
        }
    }

    #[test]
    fn no_lock_is_taken_for_what_cannot_be_started() {
        let told = |is_reported| {
            [Description::Missing { is_reported }, Description::NotSupported { is_reported }]
        };
        let free = wanted(Process::None, Lock::Free);
        assert_eq!(decided(free), Decision::TakeLock);
        for description in told(false) {
            assert_eq!(decided(Asked { description, ..free }), Decision::ReportProblem);
            let ended = wanted(Process::Gone(exit(false, RestartPolicy::Always)), Lock::Free);
            let expected = Decision::Nothing(Why::CannotStart);
            assert_eq!(decided(Asked { description, ..ended }), expected, "how it ended stays");
            let mine = wanted(Process::None, Lock::Mine);
            assert_eq!(decided(Asked { description, ..mine }), Decision::LetGoUnstarted);
        }
        for description in told(true) {
            let expected = Decision::Nothing(Why::CannotStart);
            assert_eq!(decided(Asked { description, ..free }), expected);
        }
    }

    #[test]
    fn without_a_permit_only_what_is_never_supported_is_reported() {
        let free = Asked { is_permit_seen: false, ..wanted(Process::None, Lock::Free) };
        for (description, expected) in [
            (Description::Complete, Decision::Nothing(Why::NotPermitted)),
            (MISSING, Decision::Nothing(Why::NotPermitted)),
            (NOT_SUPPORTED, Decision::ReportProblem),
        ] {
            assert_eq!(decided(Asked { description, ..free }), expected);
        }
    }

    #[test]
    fn fields_without_effect_are_reported_with_the_first_start_only() {
        let again = Process::Gone(exit(false, RestartPolicy::Always));
        for (process, has_fields_without_effect, expected) in [
            (Process::None, false, Decision::Start(3)),
            (Process::None, true, Decision::StartAndTell(3)),
            (again, true, Decision::Start(3)),
        ] {
            let facts = Asked { has_fields_without_effect, ..wanted(process, Lock::Mine) };
            assert_eq!(decided(facts), expected);
        }
    }

    #[test]
    fn the_status_says_what_follows_an_exit() {
        use RestartPolicy::{Always, Never, OnFailure};
        for (is_success, policy, expected) in [
            (true, Always, Report::StartsAgain(0)),
            (false, Always, Report::StartsAgain(0)),
            (true, OnFailure, Report::Succeeded),
            (false, OnFailure, Report::StartsAgain(0)),
            (true, Never, Report::Succeeded),
            (false, Never, Report::Failed),
        ] {
            let process = Process::Gone(exit(is_success, policy));
            let facts = Asked { reported: None, ..wanted(process, Lock::Free) };
            assert_eq!(decided(facts), Decision::Report(expected));
        }
        let lives = wanted(Process::Lives, Lock::Taken);
        assert_eq!(decided(lives), Decision::Nothing(Why::Running));
        let stale = Asked { reported: Some(Report::Failed), ..lives };
        assert_eq!(decided(stale), Decision::Report(Report::Running));
    }

    #[test]
    fn each_restart_waits_twice_as_long_up_to_five_minutes() {
        let ended = exit(false, RestartPolicy::Always);
        for (restarts, seconds) in [(0, 0), (1, 10), (2, 20), (5, 160), (6, 300), (60, 300)] {
            assert_eq!(back_off(&Exit { restarts, ..ended }), Duration::from_secs(seconds));
        }
        let steady = Exit { restarts: 5, ran: Duration::from_secs(601), ..ended };
        assert_eq!(back_off(&steady), Duration::ZERO);
        let lately = Exit { restarts: 2, ago: Duration::from_secs(5), ..ended };
        let facts = wanted(Process::Gone(lately), Lock::Free);
        let left = Duration::from_secs(15);
        assert_eq!(decided(facts), Decision::Nothing(Why::BackingOff(left)));
    }

    #[test]
    fn a_token_is_written_before_the_lock_is_taken_and_while_the_process_lives() {
        let missing = Tokens::Failing { is_missing: true };
        let late = Tokens::Failing { is_missing: false };
        let running = Decision::Nothing(Why::Running);
        for (process, lock, tokens, expected) in [
            (Process::None, Lock::Free, Tokens::Due, Decision::WriteToken),
            (Process::None, Lock::Free, Tokens::Good, Decision::TakeLock),
            (Process::None, Lock::Free, late, Decision::TakeLock),
            (Process::None, Lock::Mine, Tokens::Due, Decision::Start(3)),
            (Process::Lives, Lock::Taken, Tokens::Due, Decision::WriteToken),
            (Process::Lives, Lock::Taken, Tokens::Good, running),
            (Process::Lives, Lock::Taken, late, running),
            (Process::Lives, Lock::Taken, missing, running),
            (Process::Stopping, Lock::Taken, Tokens::Due, running),
        ] {
            let facts = Asked { tokens, ..wanted(process, lock) };
            assert_eq!(decided(facts), expected, "{facts:?}");
        }
        let unpermitted = Asked {
            is_permit_seen: false,
            tokens: Tokens::Due,
            ..wanted(Process::None, Lock::Free)
        };
        assert_eq!(decided(unpermitted), Decision::Nothing(Why::NotPermitted));
    }

    #[test]
    fn a_pod_without_its_token_says_so_and_is_tried_again() {
        let tokens = Tokens::Failing { is_missing: true };
        let refused = Asked { description: MISSING, tokens, ..wanted(Process::None, Lock::Free) };
        assert_eq!(decided(refused), Decision::ReportProblem);
        let description = Description::Missing { is_reported: true };
        let told = Asked { description, ..refused };
        assert_eq!(decided(told), Decision::Nothing(Why::TokenNotIssued));
        let ended = Process::Gone(exit(false, RestartPolicy::Always));
        let again = Asked { description: MISSING, tokens, ..wanted(ended, Lock::Free) };
        assert_eq!(decided(again), Decision::Nothing(Why::TokenNotIssued));
    }

    #[test]
    fn tokens_are_removed_when_nobody_reads_them_any_more() {
        let over = Process::Gone(exit(true, RestartPolicy::Never));
        for (pod, process, lock, expected) in [
            (Pod::Leaving, Process::None, Lock::Free, Decision::RemoveTokens),
            (Pod::Leaving, over, Lock::Free, Decision::RemoveTokens),
            (Pod::Leaving, Process::Lives, Lock::Taken, Decision::Terminate),
            (Pod::Leaving, over, Lock::Taken, Decision::Nothing(Why::LockTaken)),
            (Pod::Finished, over, Lock::Free, Decision::RemoveTokens),
            (Pod::Finished, Process::None, Lock::Free, Decision::RemoveTokens),
            (Pod::Wanted, Process::Lives, Lock::Taken, Decision::Nothing(Why::Running)),
        ] {
            let facts = Asked { pod, has_token_files: true, ..wanted(process, lock) };
            assert_eq!(decided(facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn a_pod_that_leaves_loses_our_finalizer_and_is_then_deleted() {
        for (process, lock, has_finalizer, expected) in [
            (Process::None, Lock::Free, true, Decision::TakeFinalizerOff),
            (Process::None, Lock::Free, false, Decision::DeletePod),
            (Process::None, Lock::Mine, true, Decision::LetGo),
            (Process::None, Lock::Taken, false, Decision::Nothing(Why::LockTaken)),
            (Process::Lives, Lock::Taken, true, Decision::Terminate),
        ] {
            let facts = Asked { pod: Pod::Leaving, has_finalizer, ..wanted(process, lock) };
            assert_eq!(decided(facts), expected);
        }
    }
}
