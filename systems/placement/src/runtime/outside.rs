//! What the runtime asks of the machine, and does to it.

use interlock_kernel::Outside;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The processes and locks of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Machine {}

impl Outside for Machine {
    type Question = Question;
    type Answer = Answer;
    type Action = Action;
}

/// A question to the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    /// What is known of the process of the pod with this uid.
    Process(String),
    /// What is known of the processes of the init containers of a pod.
    Inits {
        /// The uid of the pod.
        pod: String,
        /// The names of the init containers, in the order in which they run.
        containers: Vec<String>,
    },
    /// Who has the lock of a pod.
    Lock(LockName),
    /// Which locks of pods of this name are in the hands of the runtime that asks, and of no process.
    InHand {
        /// The namespace on the cluster.
        namespace: String,
        /// The name of the pods, which come and go.
        name: String,
    },
    /// Whose process has the lock of the pods of this name: the pod may be gone.
    Holder {
        /// The namespace on the cluster.
        namespace: String,
        /// The name of the pods, which come and go.
        name: String,
    },
    /// Which files the machine made for the pod with this uid, and which tokens are in them.
    Tokens(String),
    /// What the probes of a run have found. They are run and counted by the machine, from the first
    /// time that it is asked, and from the beginning for each start of the run.
    Health(Box<Watched>),
}

/// Names the lock of a pod, and who wants it. There is one lock for each namespace and name, so two
/// pods that have a name one after the other never run at once, even if the first was deleted by
/// force. All of a namespace are found together: the syncer asks whether any of them is held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockName {
    /// The namespace on the cluster.
    pub namespace: String,
    /// The uid of the pod that it is taken for.
    pub pod: String,
    /// The name of the pod: who has the lock in its hands finds it by that when the pod is gone.
    pub name: String,
}

/// What the machine answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To [`Question::Process`].
    Process(Known),
    /// To [`Question::Inits`], in the order in which it was asked.
    Inits(Vec<Known>),
    /// To [`Question::Lock`].
    Lock(Held),
    /// To [`Question::InHand`].
    InHand(Vec<LockName>),
    /// To [`Question::Holder`]; None: no process has it.
    Holder(Option<Holder>),
    /// To [`Question::Tokens`].
    Tokens(TokenFiles),
    /// To [`Question::Health`].
    Health(Verdicts),
}

/// The process that has the lock of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The uid of the pod that it was started for.
    pub pod: String,
    /// The run that it is of.
    pub run: String,
    /// What is known of it.
    pub known: Known,
}

/// Between the uid of a pod and the name of an init container: in neither of the two.
const OF_POD: char = '~';

/// Names the run of an init container. The run of the container after these has the uid of the pod as its name.
#[must_use]
pub fn init_run(pod: &str, container: &str) -> String {
    format!("{pod}{OF_POD}{container}")
}

/// The uid of the pod that a run is of.
#[must_use]
pub fn pod_of_run(run: &str) -> &str {
    run.split_once(OF_POD).map_or(run, |(pod, _)| pod)
}

/// A run whose probes are to be run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Watched {
    /// The run.
    pub id: String,
    /// Where its commands run.
    pub working_directory: Option<String>,
    /// Its probes.
    pub probes: Probes,
    /// Whether the run is known to have started: its startup probe is not run any more.
    pub is_started: bool,
}

/// The probes of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Probes {
    /// Until it succeeds the others are not run.
    pub startup: Option<Probe>,
    /// A run that fails it is restarted.
    pub liveness: Option<Probe>,
    /// A run that fails it gets no traffic.
    pub readiness: Option<Probe>,
}

/// A probe.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Probe {
    /// What is tried.
    pub check: Check,
    /// How long after the start it is tried first.
    pub initial_delay_seconds: u64,
    /// How long after the last try it is tried again.
    pub period_seconds: u64,
    /// How long a try may take.
    pub timeout_seconds: u64,
    /// So many successes in a row are a success.
    pub successes: u64,
    /// So many failures in a row are a failure.
    pub failures: u64,
}

/// What a probe tries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Check {
    /// A command beside the run, which is to end with 0.
    Exec(Vec<String>),
    /// A GET, whose answer is to be from 200 to 399.
    Http {
        /// Who is asked.
        host: String,
        /// At which port.
        port: u16,
        /// For what.
        path: String,
        /// With these headers.
        headers: Vec<(String, String)>,
    },
    /// A connection.
    Tcp {
        /// To whom.
        host: String,
        /// At which port.
        port: u16,
    },
}

/// What the probes of a run have found; None: not enough yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Of the startup probe.
    pub startup: Option<Verdict>,
    /// Of the liveness probe.
    pub liveness: Option<Verdict>,
    /// Of the readiness probe.
    pub readiness: Option<Verdict>,
}

/// What a probe has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It succeeded as often as it has to.
    Success,
    /// It failed as often as it may.
    Failure,
}

/// The files that were made for a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenFiles {
    /// Whether there is any that has to be removed with the pod.
    pub is_there: bool,
    /// Those that have a token.
    pub held: Vec<HeldToken>,
    /// What came of the last request that was refused, or not answered, since one was answered.
    pub failed: Option<FailedRequest>,
}

/// A file with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldToken {
    /// What the token was asked for.
    pub asked: TokenFile,
    /// When, by the clock of the machine.
    pub issued: Timestamp,
    /// For how long it was given.
    pub life: Duration,
}

/// A request for a token that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRequest {
    /// When, by the clock of the machine.
    pub at: Timestamp,
    /// Why, in a sentence.
    pub because: String,
}

/// A file that is to have a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenFile {
    /// The volume of the pod that it is in.
    pub volume: String,
    /// Where in that volume.
    pub path: String,
    /// Who the token is for; None: the API server.
    pub audience: Option<String>,
    /// For how long it is asked for.
    pub seconds: u64,
    /// Who may read the file, as in `chmod`.
    pub mode: u32,
}

/// What is known of a process of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// There was none, or its command never ran.
    Nothing,
    /// It lives.
    Lives(Started),
    /// It was asked to stop, and something of it lives. A machine that forgot telling it may answer
    /// [`Known::Lives`]: it is reported once more.
    Stopping {
        /// The process that leads it.
        run: Started,
        /// When it was asked.
        since: Timestamp,
    },
    /// It was killed, and something of it lives.
    Killed(Started),
    /// It is gone with everything that it started, and its lock is free.
    Gone {
        /// The process that led it.
        run: Started,
        /// How that one ended.
        ending: Ending,
        /// When, if anybody saw it.
        finished: Option<Timestamp>,
    },
}

/// A process that was started: the two tell it from every other start of the same pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// The process that leads it.
    pub pid: i32,
    /// When.
    pub since: Timestamp,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It did nothing: its command could not be executed, for the reason with this number of the operating system.
    NotExecuted(i32),
    /// Nobody was there to see it.
    Unknown,
}

/// Who has a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Nobody.
    Free,
    /// The runtime that is asked, and no process of the pod.
    Mine,
    /// Somebody else, such as the process itself or what is left of an earlier one.
    Taken,
}

/// Something done to the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Take the lock of a pod, if it is free.
    TakeLock(LockName),
    /// Let go of it.
    LetGo(LockName),
    /// Start the command and hand the lock over to it. What is on record of an earlier start of the
    /// pod, which is gone, is forgotten first.
    Start(Box<Run>),
    /// Ask every process of this run to stop.
    Terminate(String),
    /// Make every process of this run stop.
    Kill(String),
    /// Ask the API server of the cluster for a token, and put it into its file. That it is refused is
    /// no error: the answer to the next question says so.
    WriteToken(Box<TokenRequest>),
    /// Remove all files that were made for the pod: those with tokens, and its other volumes that are
    /// no claims.
    RemoveTokens(String),
}

/// A request for a token, which is bound to a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRequest {
    /// The namespace on the cluster.
    pub namespace: String,
    /// The service account that the token is of.
    pub service_account: String,
    /// The name of the pod.
    pub pod_name: String,
    /// The uid of the pod.
    pub pod_uid: String,
    /// The file that it is for.
    pub file: TokenFile,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The lock that it runs under; its `pod` is the pod's uid.
    pub lock: LockName,
    /// Names the run: the uid of the pod, or that with the name of an init container.
    pub id: String,
    /// The epoch that is permitted; 0 in a namespace that is not placed.
    pub epoch: i64,
    /// The program and its first arguments.
    pub command: Vec<String>,
    /// More arguments.
    pub args: Vec<String>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub working_directory: Option<String>,
    /// Its volumes.
    pub mounts: Vec<Mount>,
    /// Its volumes of tokens.
    pub token_mounts: Vec<TokenMount>,
    /// Its volumes of files that are made before it starts.
    pub files: Vec<FilesMount>,
    /// What is run before it is asked to stop; empty: nothing.
    pub pre_stop: Vec<String>,
    /// How long it may take to stop before it is killed.
    pub grace_seconds: u64,
}

/// A volume of files that are made before a run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesMount {
    /// The name of the volume in the pod.
    pub name: String,
    /// Where it appears.
    pub path: String,
    /// The part of the volume that appears there; empty: all of it.
    pub part: String,
    /// Whether service-account tokens are in the same volume.
    pub has_tokens: bool,
    /// What is in it; None: it begins empty, and keeps what is written to it for as long as the pod is
    /// there.
    pub files: Option<Vec<FileText>>,
}

/// A file of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// Where in the volume.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Who may read it, as in `chmod`.
    pub mode: u32,
}

/// A volume of tokens of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMount {
    /// The name of the volume in the pod.
    pub name: String,
    /// Where it appears.
    pub path: String,
    /// A variable of the environment that has the path of a file in it: the variable, and which file.
    pub variable: Option<FileVariable>,
}

/// A variable whose value only the machine knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVariable {
    /// The name of the variable.
    pub name: String,
    /// The file in the volume.
    pub file: String,
}

/// A volume of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The name of the volume in the pod.
    pub name: String,
    /// The claim on the cluster.
    pub claim: String,
    /// The uid of that claim: another one is another volume, whatever it is called.
    pub claim_uid: String,
    /// The volume on this machine that the claim has, where somebody else makes volumes. None: one is
    /// made for the claim, if there is none.
    pub handle: Option<String>,
    /// Where it appears.
    pub path: String,
}
