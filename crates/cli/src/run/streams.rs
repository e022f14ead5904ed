//! Logs, commands and ports of pods that are processes of this machine, for the API server.

mod carry;
mod owner;

pub(crate) use owner::serve_at_hub;

use carry::carry;
use interlock_apiserver::streams::{
    Answer, Command, Connection, Ended, LogOptions, Output, PodContainer, PodStreams, Registration,
    Session, Wanted,
};
use interlock_apiserver::{Server, Status};
use interlock_outside::processes::{
    EnterError, Entry, LogKeeper, LogOf, LogReader, LogWindow, Observed, Processes, Started,
};
use interlock_placement::runtime::outside::init_run;
use jiff::Timestamp;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

/// How long a port may take to be connected to.
const CONNECT: Duration = Duration::from_secs(10);
/// How often a log that is followed is read, at least and at most.
const SOONEST: Duration = Duration::from_millis(50);
const LATEST: Duration = Duration::from_millis(400);
/// How often it is asked whether the process of a log that is followed still lives.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(500);

/// The pods of one cluster have logs, and the like, until this is dropped.
#[derive(Debug)]
pub(crate) struct Streaming {
    _keeper: LogKeeper,
    _registration: Registration,
}

impl Streaming {
    /// Begins to keep the logs of these processes, and to serve them as those of the pods of a logical cluster.
    pub(crate) fn start(
        server: &Server,
        logical_cluster: &str,
        processes: &Arc<Processes>,
    ) -> Result<Streaming, interlock_outside::processes::Error> {
        let keeper = LogKeeper::start(processes)?;
        let streams = Arc::new(OfProcesses(Arc::clone(processes)));
        let registration = server.register_pods(logical_cluster, streams);
        Ok(Streaming { _keeper: keeper, _registration: registration })
    }
}

/// The streams of the processes of one cluster.
struct OfProcesses(Arc<Processes>);

/// The run of a container. An init container that was started has one of its own; the run of the container after
/// these has the uid of its pod.
fn run_of(processes: &Processes, of: &PodContainer) -> Result<String, Status> {
    let own = init_run(&of.uid, &of.container);
    match processes.observe(&own).map_err(internal)? {
        Observed::NoRecord => Ok(of.uid.clone()),
        Observed::Starting | Observed::Running { .. } | Observed::Exited { .. } => Ok(own),
    }
}

impl PodStreams for OfProcesses {
    fn logs(&self, of: PodContainer, options: LogOptions) -> Answer<mpsc::Receiver<bytes::Bytes>> {
        let processes = Arc::clone(&self.0);
        Box::pin(async move {
            let opened = aside(move || Following::open(processes, &of, &options)).await?;
            let (sender, receiver) = mpsc::channel(1);
            tokio::spawn(opened.run(sender));
            Ok(receiver)
        })
    }

    fn exec(&self, of: PodContainer, command: Command) -> Answer<Session> {
        let processes = Arc::clone(&self.0);
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let Command { words, wanted } = command;
            let entered = aside(move || {
                let entry = Entry { command: words, stdin: wanted.stdin, terminal: wanted.tty };
                let on_end = |left| {
                    // Nobody listens if the client is gone.
                    let _ = tell.send(left);
                };
                let run = run_of(&processes, &of)?;
                processes.enter(&run, &entry, on_end).map_err(|error| refused(&of, error))
            });
            let (input, inputs) = mpsc::channel(1);
            let (outputs, output) = mpsc::channel(1);
            let carrying = carry(entered.await?, told, inputs, outputs);
            tokio::spawn(carrying.map_err(Status::internal)?);
            Ok(Session { input, output })
        })
    }

    fn attach(&self, of: PodContainer, wanted: Wanted) -> Answer<Session> {
        let processes = Arc::clone(&self.0);
        Box::pin(async move {
            if wanted.stdin || wanted.tty {
                let why = format!(
                    "container {:?} in pod {:?} runs as a process that reads nothing and has no \
                     terminal: attach without --stdin and --tty, or use exec",
                    of.container, of.pod
                );
                return Err(Status::bad_request(why));
            }
            let from_now =
                LogOptions { follow: true, tail_lines: Some(0), ..LogOptions::default() };
            let following = aside(move || Following::open(processes, &of, &from_now)).await?;
            let (sender, mut parts) = mpsc::channel(1);
            tokio::spawn(following.run(sender));
            let (input, mut inputs) = mpsc::channel(1);
            let (outputs, output) = mpsc::channel(1);
            tokio::spawn(async move {
                let passing = async {
                    while let Some(part) = parts.recv().await {
                        outputs.send(Output::Stdout(part)).await?;
                    }
                    outputs.send(Output::Ended(Ended::Code(0))).await
                };
                tokio::select! {
                    // Nobody takes it: the client is gone.
                    _ = passing => {}
                    // It says nothing; this is that it goes.
                    _ = inputs.recv() => {}
                }
            });
            Ok(Session { input, output })
        })
    }

    fn port_forward(&self, of: PodContainer, port: u16) -> Answer<Box<dyn Connection>> {
        let processes = Arc::clone(&self.0);
        Box::pin(async move {
            let pod = of.pod.clone();
            let listening = aside(move || processes.listening(&of.uid, port).map_err(internal));
            let Some(address) = listening.await? else {
                let why = format!("no process of pod {pod:?} listens on port {port}");
                return Err(Status::bad_request(why));
            };
            let connected = tokio::time::timeout(CONNECT, TcpStream::connect(address)).await;
            let connection = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            let connection = connection.map_err(|error| {
                Status::bad_request(format!(
                    "cannot connect to port {port} of pod {pod:?}: {error}"
                ))
            })?;
            // What is said in small parts must not wait for more; without this it only takes longer.
            let _ = connection.set_nodelay(true);
            let connection: Box<dyn Connection> = Box::new(connection);
            Ok(connection)
        })
    }
}

/// Why a command is not run, for whoever asked for it.
fn refused(of: &PodContainer, error: EnterError) -> Status {
    match error {
        EnterError::NotThere { .. } => Status::bad_request(format!(
            "container not found ({:?}): it does not run in pod {:?}",
            of.container, of.pod
        )),
        EnterError::NoCommand | EnterError::ZeroByte => Status::bad_request(error.to_string()),
        // A snapshot takes a moment, and nothing may begin to write in it.
        EnterError::Processes(interlock_outside::processes::Error::VolumeFrozen { .. }) => {
            Status::unavailable(error.to_string(), 1)
        }
        EnterError::Start { .. } | EnterError::Processes(_) => internal(error),
    }
}

/// Does something that reads files and `/proc`, where it holds nobody up.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Status::internal(error)),
    }
}

fn internal(error: impl std::error::Error) -> Status {
    Status::internal(super::driver::in_words(&error))
}

/// A log that is read, and perhaps followed.
struct Following {
    processes: Arc<Processes>,
    id: String,
    /// The start whose log it is; None if it is followed no further than it goes now.
    start: Option<Started>,
    reader: LogReader,
}

impl Following {
    fn open(
        processes: Arc<Processes>,
        of: &PodContainer,
        options: &LogOptions,
    ) -> Result<Following, Status> {
        let (id, container) = (run_of(&processes, of)?, &of.container);
        let which = if options.previous { LogOf::StartBefore } else { LogOf::LastStart };
        let window = LogWindow {
            tail_lines: options.tail_lines,
            since: options.since.map(SystemTime::from),
            limit_bytes: options.limit_bytes,
            stamp: options.timestamps.then_some(stamp),
        };
        // Before the log is opened: if the run is started again in between, its log ends at once.
        let start = processes.leader(&id).map_err(internal)?;
        let reader = processes.read_log(&id, which, &window).map_err(internal)?;
        let Some(reader) = reader else {
            return Err(Status::bad_request(match which {
                LogOf::StartBefore => format!(
                    "previous terminated container {container:?} in pod {:?} not found",
                    of.pod
                ),
                LogOf::LastStart => format!(
                    "container {container:?} in pod {:?} has no log on this machine: it has not \
                     started yet, or its log was removed to make room",
                    of.pod
                ),
            }));
        };
        let start = start.filter(|_| options.follow && which == LogOf::LastStart);
        Ok(Following { processes, id, start, reader })
    }

    async fn run(mut self, sender: mpsc::Sender<bytes::Bytes>) {
        let mut pause = SOONEST;
        let mut asked_at = Instant::now();
        let mut is_over = self.start.is_none();
        loop {
            let asks = asked_at.elapsed() >= BETWEEN_QUESTIONS;
            if asks {
                asked_at = Instant::now();
            }
            let read = tokio::task::spawn_blocking(move || {
                // What was written before the end is read after it is known.
                let is_over = is_over || asks && self.is_over();
                let part = self.reader.next();
                (self, is_over, part)
            });
            let Ok((same, now_over, part)) = read.await else { return };
            (self, is_over) = (same, now_over);
            match part {
                Ok(Some(part)) => {
                    pause = SOONEST;
                    if sender.send(part.into()).await.is_err() {
                        return;
                    }
                }
                Ok(None) if is_over || self.reader.is_at_limit() => return,
                Ok(None) => {
                    tokio::select! {
                        () = sender.closed() => return,
                        () = sleep(pause) => pause = (pause * 2).min(LATEST),
                    }
                }
                Err(error) => {
                    tracing::warn!(run = self.id, %error, "cannot read the log of a run");
                    return;
                }
            }
        }
    }

    /// Whether the start whose log it is has ended.
    fn is_over(&self) -> bool {
        let lives = matches!(self.processes.observe(&self.id), Ok(Observed::Running { .. }));
        !lives || !matches!(self.processes.leader(&self.id), Ok(now) if now == self.start)
    }
}

/// A time as kubectl shows it before a line.
fn stamp(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string()
}

#[cfg(test)]
mod tests;
