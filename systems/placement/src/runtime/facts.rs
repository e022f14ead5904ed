//! What a decision of the runtime rests on.

use super::tokens::Tokens;
use crate::syncer::tenancy::{Epoch, Running};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// All that one decision rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Facts {
    /// The pod is not in the cache: all that can be left of it is a lock, in our hands or in those of a
    /// process.
    NoPod {
        /// The lock in our hands.
        stray: Stray,
        /// The process.
        holder: Holder,
    },
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
    /// The container that the pod is at.
    #[serde(default)]
    pub stage: Stage,
    /// Its process, as the machine shows it.
    pub process: Process,
    /// The lock of its name.
    pub lock: Lock,
    /// The process that has the lock, where it is not one of this pod.
    pub holder: Holder,
    /// What the cache shows of the namespace: if nothing may start, it is not worth taking the lock.
    pub home: Home,
    /// By whom the pod was made, as the cache shows it.
    pub stamp: Stamp,
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
    /// What its probes found, of a process that lives.
    pub probing: Probing,
    /// Whether the time that a stop may take is over.
    pub is_grace_over: bool,
    /// The tokens that it wants.
    pub tokens: Tokens,
    /// Whether the machine has files that were made for it.
    pub has_token_files: bool,
}

/// A process that has the lock of a name, and is of no pod that the cache shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Holder {
    /// Nobody asked.
    NotAsked,
    /// No process has it.
    None,
    /// One has it.
    Process(Orphan),
}

/// A process whose pod is not in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Orphan {
    /// How far it is.
    pub process: Process,
    /// Whether its pod is gone for certain; None: there was no live read.
    pub is_pod_gone: Option<bool>,
    /// Whether the time that its stop may take is over.
    pub is_grace_over: bool,
}

/// What a namespace says of what may start in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Home {
    /// Nothing may: it is not there, or being deleted.
    Closed,
    /// It is not placed: everything may.
    Unplaced,
    /// It is placed.
    Placed {
        /// What may run.
        running: Running,
        /// The highest epoch that was closed.
        released: Epoch,
    },
}

/// By whom a pod was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Stamp {
    /// By a person, or by a maker in a namespace that is not placed.
    None,
    /// By the syncer, which makes it anew in each epoch.
    Syncer,
    /// By a maker, such as a ReplicaSet, in this epoch of its namespace.
    Epoch(Epoch),
}

/// What the probes of a process found, and what was reported of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Probing {
    /// Its startup probe.
    pub startup: Finding,
    /// Its liveness probe.
    pub liveness: Finding,
    /// Its readiness probe.
    pub readiness: Finding,
    /// What the status of the pod says of this very process.
    pub was: Health,
}

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Finding {
    /// There is no such probe.
    NoProbe,
    /// Not enough yet, since the process or the machine's counting began.
    Nothing,
    /// It succeeded as often as it has to.
    Success,
    /// It failed as often as it may.
    Failure,
}

/// Whether a process serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Health {
    /// Its startup probe succeeded, if it has one.
    pub is_started: bool,
    /// Its readiness probe succeeds, if it has one.
    pub is_ready: bool,
}

/// A probe by which a process is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum FailedProbe {
    /// It did not come to start.
    Startup,
    /// It was found not to live.
    Liveness,
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

/// Which container a pod is at: its init containers run one after another, and then its container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Stage {
    /// Whether it is an init container: it is to succeed, and another one comes after it.
    pub is_init: bool,
    /// Whether an init container succeeded before it.
    pub has_begun: bool,
}

/// The process of a pod: that of the container that the pod is at.
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

/// The lock of a pod's name.
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
    /// What the namespace says.
    pub home: Home,
    /// By whom the pod was made.
    pub stamp: Stamp,
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
    Running(Health),
    /// An init container runs, or the next container is about to start.
    Initializing,
    /// It ended, and starts again so many seconds after that.
    StartsAgain(u64),
    /// It ended well, and does not start again.
    Succeeded,
    /// It did not end well, and does not start again.
    Failed,
}
