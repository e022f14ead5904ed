//! Why a request is in its phase: a word, a sentence, and what a person does next.

use serde::Serialize;

/// Why a request is in its phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Why {
    /// It is valid, and waits.
    Valid,
    /// It waits, and this is for what.
    Waiting(Waits),
    /// Somebody ended it.
    Cancelled,
    /// Its namespace may not ask for this cluster.
    NamespaceNotAllowed {
        /// The namespace.
        namespace: String,
        /// The record, where that is said.
        record: String,
    },
    /// What it names as its source is not there.
    SourceMissing(String),
    /// Its bundle cannot be read, and how.
    InvalidBundle(String),
    /// Its bundle failed on this cluster before, and why.
    KnownBad(String),
    /// The record is full of requests.
    TooManyWaiting(usize),
    /// There is no such cluster.
    UnknownCluster(String),
    /// A newer one was queued.
    Superseded {
        /// Its version.
        by: i64,
    },
    /// It could not start in time.
    StartDeadline {
        /// How many seconds it had.
        seconds: i64,
        /// What it waited for.
        waits: Waits,
    },
    /// The agent found what would fail.
    PreflightFailed {
        /// How much was found.
        count: usize,
        /// The first of it.
        first: String,
    },
    /// The cluster is at this bundle already.
    NothingToChange,
    /// It started.
    Started,
    /// All its objects are on the cluster.
    Applied,
    /// They were all healthy for long enough.
    Healthy,
    /// Objects failed or were refused.
    Unhealthy {
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// It did not get healthy in time.
    DeadlinePassed {
        /// How many seconds it had.
        seconds: i64,
        /// What was not healthy, or that nobody knows.
        first: String,
    },
    /// The agent of the cluster sent no heartbeat in time.
    ClusterUnreachable {
        /// How many seconds it had.
        seconds: i64,
    },
    /// A newer request did not want to wait.
    Preempted {
        /// Its version.
        by: i64,
    },
    /// The cluster is back at an older version.
    RolledBack {
        /// That version; None: there was none, and all was removed.
        to: Option<i64>,
        /// Why it was rolled back.
        cause: String,
    },
    /// It could not be rolled back in all tries.
    RollbackDeadline {
        /// How many there were.
        tries: u32,
        /// What was in the way, or that nobody knows.
        first: String,
    },
    /// There was no version to go back to, and the objects are kept.
    KeptAsIs(String),
    /// The cluster is gone.
    ClusterGone(String),
    /// The cluster was made again under its name.
    ClusterReplaced(String),
    /// The record is being deleted.
    RecordDeleted,
    /// The bundle that the cluster is to equal is not at the hub any more.
    RevisionMissing(String),
}

/// What a request that is queued waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Waits {
    /// The request in flight, by its version.
    InFlight(i64),
    /// The record is paused.
    Paused(String),
    /// The agent has not answered.
    Agent(String),
    /// The cluster has no fence.
    Fence(String),
    /// The cluster is not drained, and why.
    Drain(String),
    /// Nothing but its turn.
    Turn,
}

impl Waits {
    fn reason(&self) -> &'static str {
        match self {
            Waits::InFlight(_) => "InFlight",
            Waits::Paused(_) => "Paused",
            Waits::Agent(_) => "AgentSilent",
            Waits::Fence(_) => "FenceMissing",
            Waits::Drain(_) => "Draining",
            Waits::Turn => "Queued",
        }
    }

    fn message(&self) -> String {
        match self {
            Waits::InFlight(version) => format!("version {version} is in flight"),
            Waits::Paused(record) => format!("ClusterRollout {record} is paused"),
            Waits::Agent(cluster) => format!("the agent of cluster {cluster} has not checked it"),
            Waits::Fence(cluster) => {
                format!("cluster {cluster} does not refuse late writes: it has no fence")
            }
            Waits::Drain(words) => format!("the cluster is not drained: {words}"),
            Waits::Turn => "it is about to start".to_owned(),
        }
    }

    fn next(&self) -> Option<String> {
        match self {
            Waits::InFlight(_) | Waits::Turn => None,
            Waits::Paused(record) => Some(format!(
                "kubectl patch clusterrollout {record} --type=merge -p '{{\"spec\":{{\"paused\":false}}}}'"
            )),
            Waits::Agent(cluster) => Some(format!("interlock status cluster/{cluster}")),
            Waits::Fence(cluster) => Some(format!(
                "interlock manifests cluster {cluster} --updates | kubectl apply -f - (on the cluster)"
            )),
            Waits::Drain(_) => Some("interlock status".to_owned()),
        }
    }
}

impl Why {
    /// In one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Why::Valid => "Valid",
            Why::Waiting(waits) => waits.reason(),
            Why::Cancelled => "Cancelled",
            Why::NamespaceNotAllowed { .. } => "NamespaceNotAllowed",
            Why::SourceMissing(_) => "SourceMissing",
            Why::InvalidBundle(_) => "InvalidBundle",
            Why::KnownBad(_) => "KnownBad",
            Why::TooManyWaiting(_) => "TooManyWaiting",
            Why::UnknownCluster(_) => "UnknownCluster",
            Why::Superseded { .. } => "Superseded",
            Why::StartDeadline { waits: Waits::Turn | Waits::InFlight(_), .. } => "StartDeadline",
            // It is stuck only once the time for it is over: until then namespaces leave.
            Why::StartDeadline { waits: Waits::Drain(_), .. } => "DrainStuck",
            Why::StartDeadline { waits, .. } => waits.reason(),
            Why::PreflightFailed { .. } => "PreflightFailed",
            Why::NothingToChange => "NothingToChange",
            Why::Started => "Started",
            Why::Applied => "Applied",
            Why::Healthy => "Healthy",
            Why::Unhealthy { .. } => "Unhealthy",
            Why::DeadlinePassed { .. } => "DeadlinePassed",
            Why::ClusterUnreachable { .. } => "ClusterUnreachable",
            Why::Preempted { .. } => "Preempted",
            Why::RolledBack { .. } => "RolledBack",
            Why::RollbackDeadline { .. } => "RollbackDeadline",
            Why::KeptAsIs(_) => "NothingToRollBackTo",
            Why::ClusterGone(_) => "ClusterGone",
            Why::ClusterReplaced(_) => "ClusterReplaced",
            Why::RecordDeleted => "RecordDeleted",
            Why::RevisionMissing(_) => "RevisionMissing",
        }
    }

    /// In a sentence.
    pub fn message(&self) -> String {
        match self {
            Why::Valid => "the request is valid".to_owned(),
            Why::Waiting(waits) => waits.message(),
            Why::Cancelled => "somebody cancelled the request".to_owned(),
            Why::NamespaceNotAllowed { namespace, record } => format!(
                "namespace {namespace} is not selected by spec.allowedNamespaces of ClusterRollout {record}"
            ),
            Why::SourceMissing(words) | Why::InvalidBundle(words) | Why::RevisionMissing(words) => {
                words.clone()
            }
            Why::KnownBad(words) => format!("the bundle failed on this cluster before: {words}"),
            Why::TooManyWaiting(count) => format!("{count} requests of the cluster wait already"),
            Why::UnknownCluster(name) => format!("there is no WorkloadCluster {name}"),
            Why::Superseded { by } => format!("version {by} is newer, and valid"),
            Why::StartDeadline { seconds, waits } => {
                format!("it could not start within {seconds} s: {}", waits.message())
            }
            Why::PreflightFailed { count, first } => format!("{count} objects would fail; {first}"),
            Why::NothingToChange => "the cluster is at this bundle already".to_owned(),
            Why::Started => "the agent applies the bundle".to_owned(),
            Why::Applied => "all objects are on the cluster, and have to be healthy".to_owned(),
            Why::Healthy => "all objects were healthy for as long as was asked".to_owned(),
            Why::Unhealthy { count, first } => format!("{count} objects failed; {first}"),
            Why::DeadlinePassed { seconds, first } => {
                format!("not healthy within {seconds} s; {first}")
            }
            Why::ClusterUnreachable { seconds } => {
                format!("the agent of the cluster has not reported on it within {seconds} s")
            }
            Why::Preempted { by } => format!("version {by} asked not to wait"),
            Why::RolledBack { to: Some(to), cause } => {
                format!("the cluster is back at version {to}: {cause}")
            }
            Why::RolledBack { to: None, cause } => {
                format!("all objects of it were removed, since no version was ever good: {cause}")
            }
            Why::RollbackDeadline { tries, first } => {
                format!("it could not be rolled back in {tries} tries; {first}")
            }
            Why::KeptAsIs(cause) => {
                format!("no version was ever good, and spec.firstInstallFailure says Keep: {cause}")
            }
            Why::ClusterGone(name) => format!("WorkloadCluster {name} was deleted"),
            Why::ClusterReplaced(name) => {
                format!("WorkloadCluster {name} was made again under its name")
            }
            Why::RecordDeleted => "the ClusterRollout of the cluster is being deleted".to_owned(),
        }
    }

    /// What a person does next; None: nobody has to do anything.
    pub fn next(&self) -> Option<String> {
        match self {
            Why::Waiting(waits) | Why::StartDeadline { waits, .. } => waits.next(),
            Why::NamespaceNotAllowed { record, .. } => {
                Some(format!("kubectl edit clusterrollout {record}"))
            }
            Why::SourceMissing(_) | Why::InvalidBundle(_) | Why::PreflightFailed { .. } => {
                Some("correct the bundle, and submit it again".to_owned())
            }
            Why::KnownBad(_) => {
                Some("submit a corrected bundle, or this one with spec.retryBad".to_owned())
            }
            Why::UnknownCluster(_) => Some("kubectl get workloadclusters".to_owned()),
            Why::ClusterReplaced(_) | Why::RecordDeleted | Why::TooManyWaiting(_) => {
                Some("submit it again".to_owned())
            }
            Why::Unhealthy { .. } | Why::DeadlinePassed { .. } | Why::RolledBack { .. } => {
                Some("correct the bundle, and submit it again".to_owned())
            }
            Why::ClusterUnreachable { .. } => Some("interlock status".to_owned()),
            Why::RollbackDeadline { .. } | Why::KeptAsIs(_) | Why::RevisionMissing(_) => {
                Some("submit a version that can be applied; the cluster takes it".to_owned())
            }
            Why::Valid
            | Why::Cancelled
            | Why::Superseded { .. }
            | Why::NothingToChange
            | Why::Started
            | Why::Applied
            | Why::Healthy
            | Why::Preempted { .. }
            | Why::ClusterGone(_) => None,
        }
    }
}
