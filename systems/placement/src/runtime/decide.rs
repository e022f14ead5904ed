//! What the process runtime of a cluster does next about one pod. First matching rule wins.
//!
//! A start takes the lock and only then looks at the permit and at the pod; a syncer that leaves
//! withdraws the permit and only then looks at the locks, and a pod goes only while its lock is free.
//! So one of the two always sees the other.

use crate::syncer::decide::{Epoch, Running};

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The pod, as the cache shows it.
    pub pod: Pod,
    /// Its process, as the machine shows it.
    pub process: Process,
    /// The lock of its volumes.
    pub lock: Lock,
    /// Whether the cache shows a permit: without one it is not worth taking the lock.
    pub is_permit_seen: bool,
    /// Whether a lock is in our hands that was taken for a pod of this name which is not there: by its
    /// uid, so one that has its name is another.
    pub is_stray_lock_held: bool,
    /// What a fresh look showed; None: nobody looked since the lock was taken.
    pub permit: Option<Permit>,
    /// Whether what the pod's status says is what is true.
    pub is_reported: bool,
    /// Whether the time that a stop may take is over.
    pub is_grace_over: bool,
    /// Whether an exit is followed by another start, now or later.
    pub restart: Restart,
}

impl Facts {
    /// Those of a pod that is not in the cache: all that can be left of it is a lock.
    pub fn without_pod(is_stray_lock_held: bool) -> Facts {
        Facts {
            pod: Pod::Unknown,
            process: Process::None,
            lock: Lock::Free,
            is_permit_seen: false,
            is_stray_lock_held,
            permit: None,
            is_reported: true,
            is_grace_over: false,
            restart: Restart::Never,
        }
    }
}

/// A pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pod {
    /// Not in the cache: that proves nothing.
    Unknown,
    /// It is to run.
    Wanted,
    /// It ran, and is not to run again.
    Finished,
    /// It is told to go.
    Leaving,
}

/// The process of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    /// There was none.
    None,
    /// It lives.
    Lives,
    /// It was told to stop, and lives.
    Stopping,
    /// It was killed, and lives: the kernel does not let it go.
    Killed,
    /// It is gone, with everything that it started.
    Gone,
}

/// The lock of a pod's volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Nobody has it.
    Free,
    /// It is ours.
    Mine,
    /// Somebody else has it.
    Taken,
}

/// What the namespace of a pod permits, and whether there is a pod to permit it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    /// Whether the pod is there, and not told to go.
    pub is_pod_there: bool,
    /// What may run.
    pub running: Running,
    /// The highest epoch that was closed.
    pub released: Epoch,
}

/// What follows an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Nothing.
    Never,
    /// Another start, in a while.
    Later,
    /// Another start.
    Now,
}

/// The one next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, and why.
    Nothing(Why),
    /// Take the lock.
    TakeLock,
    /// See whether the namespace permits it.
    LookAtPermit,
    /// Start the command.
    Start(Epoch),
    /// Let go of a lock that nobody needs.
    LetGo,
    /// Let go of one that was taken for a pod which is not there.
    LetGoOfStray,
    /// Ask it to stop.
    Terminate,
    /// Make it stop.
    Kill,
    /// Say in the pod's status what is true.
    Report,
    /// It is gone for certain: the pod may go.
    ConfirmGone,
}

/// Why there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// It may still stop by itself.
    Stopping,
    /// It was killed, and the kernel does not let it go.
    WillNotDie,
    /// It starts again in a while.
    BackingOff,
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    match facts.pod {
        // To let go is always safe: a start without the lock comes to nothing.
        _ if facts.is_stray_lock_held => Decision::LetGoOfStray,
        Pod::Unknown => Decision::Nothing(Why::NotInTheCache),
        Pod::Leaving => stop(facts),
        Pod::Wanted | Pod::Finished => run(facts),
    }
}

fn stop(facts: &Facts) -> Decision {
    match facts.process {
        Process::Lives => Decision::Terminate,
        Process::Stopping if facts.is_grace_over => Decision::Kill,
        Process::Stopping => Decision::Nothing(Why::Stopping),
        Process::Killed => Decision::Nothing(Why::WillNotDie),
        Process::None | Process::Gone => match facts.lock {
            Lock::Mine => Decision::LetGo,
            // Another runtime is about to start it: a pod that went now would leave a process that
            // nobody stops.
            Lock::Taken => Decision::Nothing(Why::LockTaken),
            Lock::Free => Decision::ConfirmGone,
        },
    }
}

fn run(facts: &Facts) -> Decision {
    match facts.process {
        Process::Lives | Process::Stopping | Process::Killed if !facts.is_reported => {
            Decision::Report
        }
        Process::Lives | Process::Stopping | Process::Killed => Decision::Nothing(Why::Running),
        Process::Gone if !facts.is_reported => Decision::Report,
        Process::Gone => match facts.restart {
            Restart::Never if facts.lock == Lock::Mine => Decision::LetGo,
            Restart::Never => Decision::Nothing(Why::Finished),
            Restart::Later => Decision::Nothing(Why::BackingOff),
            Restart::Now => start(facts),
        },
        Process::None if facts.pod == Pod::Finished => Decision::Nothing(Why::Finished),
        Process::None => start(facts),
    }
}

fn start(facts: &Facts) -> Decision {
    match facts.lock {
        Lock::Free if !facts.is_permit_seen => return Decision::Nothing(Why::NotPermitted),
        Lock::Free => return Decision::TakeLock,
        Lock::Taken => return Decision::Nothing(Why::LockTaken),
        Lock::Mine => {}
    }
    let Some(permit) = facts.permit else { return Decision::LookAtPermit };
    match permit.running {
        _ if !permit.is_pod_there => Decision::LetGo,
        Running::Permitted(epoch) if permit.released < epoch => Decision::Start(epoch),
        Running::Permitted(_) | Running::Lapsed(_) | Running::Nothing => Decision::LetGo,
    }
}
